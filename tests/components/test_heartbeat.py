"""The heartbeat's objects: the program is told what it needs, and reaches the replicas and nothing else."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from probes.heartbeat import Settings
from tests.components.conftest import ONNX, Render

NAME = "m-v1-heartbeat"
HEARTBEAT = "heartbeat: {every: 30s, timeout: 2s}\n"


@pytest.fixture(scope="module")
def beating(render: Callable[..., Render]) -> Render:
    return render({"m": ONNX + HEARTBEAT})


def matches(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def container(found: Render) -> dict[str, Any]:
    (one,) = found.pod(NAME)["containers"]
    return one


def settings(found: Render) -> Settings:
    return Settings(**json.loads(found.one("ConfigMap", NAME)["data"]["settings.json"]))


def test_nothing_of_it_is_there_unless_asked_for(render: Callable[..., Render]) -> None:
    assert not [one for one in render({"m": ONNX}).objects() if "heartbeat" in one["metadata"]["name"]]


def test_the_program_gets_the_settings_that_it_reads(beating: Render) -> None:
    assert settings(beating) == Settings(
        host="m-v1-replicas.serving.svc.cluster.local",
        port=8000,
        model="m",
        every=30,
        timeout=2,
        metrics_port=8003,
        request=None,
    )


def test_its_command_names_files_that_are_mounted(beating: Render) -> None:
    files = {}
    for volume in beating.pod(NAME)["volumes"]:
        (mount,) = [one for one in container(beating)["volumeMounts"] if one["name"] == volume["name"]]
        data = beating.one("ConfigMap", volume["configMap"]["name"])["data"]
        files |= {f"{mount['mountPath']}/{name}": text for name, text in data.items()}
    program, told = container(beating)["command"][-2:]
    assert "def main" in files[program]
    compile(files[program], program, "exec")
    assert json.loads(files[told])["model"] == "m"


def test_the_name_it_asks_for_is_a_headless_service_of_the_replicas(beating: Render) -> None:
    service = beating.one("Service", settings(beating).host.partition(".")[0])["spec"]
    pods = beating.one("Deployment", "m-v1")["spec"]["template"]["metadata"]["labels"]
    assert service["clusterIP"] == "None"
    assert matches(service["selector"], pods)
    # Only those that are ready: the others are known to be out.
    assert "publishNotReadyAddresses" not in service


def test_no_selector_takes_it_for_a_replica(beating: Render) -> None:
    own = beating.one("Deployment", NAME)["spec"]["template"]["metadata"]["labels"]
    for one in beating.objects():
        spec = one.get("spec", {})
        selector = spec.get("selector") or spec.get("podSelector") or {}
        selector = selector.get("matchLabels", selector)
        about_it = one["metadata"]["name"] == NAME
        if one["kind"] in {"Service", "Deployment", "PodDisruptionBudget", "NetworkPolicy"}:
            assert matches(selector, own) == about_it, one["metadata"]["name"]


def test_it_may_reach_the_replicas_and_the_names_and_no_more(beating: Render) -> None:
    policy = beating.one("NetworkPolicy", NAME)["spec"]
    replicas = beating.one("Deployment", "m-v1")["spec"]["selector"]
    names, triton = policy["egress"]
    assert [port["port"] for port in names["ports"]] == [53, 53]
    assert triton == {"ports": [{"port": 8000, "protocol": "TCP"}], "to": [{"podSelector": replicas}]}
    assert policy["ingress"] == [{"ports": [{"port": 8003, "protocol": "TCP"}]}]


def test_prometheus_finds_it_by_the_monitor_of_the_model(beating: Render) -> None:
    monitor = beating.one("ServiceMonitor", "m")["spec"]
    found = []
    for service in beating.objects("Service"):
        labels = service["metadata"]["labels"]
        ports = [port["name"] for port in service["spec"]["ports"]]
        chosen = matches(monitor["selector"]["matchLabels"], labels) and "app.kubernetes.io/version" in labels
        found += [service["metadata"]["name"]] if chosen and monitor["endpoints"][0]["port"] in ports else []
    assert sorted(found) == ["m-v1", NAME]


def test_without_the_operator_annotations_say_where_it_is(render: Callable[..., Render]) -> None:
    found = render({"m": ONNX + HEARTBEAT}, monitoring={"operator": False})
    assert found.one("Service", NAME)["metadata"]["annotations"]["prometheus.io/port"] == "8003"
    assert "annotations" not in found.one("Service", "m-v1-replicas")["metadata"]


def test_another_request_or_program_rolls_it(render: Callable[..., Render]) -> None:
    def annotations(more: str) -> Any:
        return render({"m": ONNX + more}).one("Deployment", NAME)["spec"]["template"]["metadata"]["annotations"]

    assert annotations(HEARTBEAT) != annotations("heartbeat: {every: 31s, timeout: 2s}\n")


def test_each_revision_has_its_own(render: Callable[..., Render]) -> None:
    found = render({"m": f"{ONNX}{HEARTBEAT}revisions: {{v1: {{}}, v2: {{}}}}\ntraffic: {{split: {{v1: 100}}}}\n"})
    names = {one["metadata"]["name"] for one in found.objects("Deployment")}
    assert names == {"m-v1", "m-v2", "m-v1-heartbeat", "m-v2-heartbeat"}
    assert [one["metadata"]["name"] for one in found.objects("ConfigMap")].count("triton-heartbeat") == 1


def test_it_has_neither_token_nor_a_writable_file_system(beating: Render) -> None:
    assert beating.pod(NAME)["automountServiceAccountToken"] is False
    assert container(beating)["securityContext"]["readOnlyRootFilesystem"] is True
    assert beating.pod(NAME)["securityContext"]["runAsNonRoot"] is True


def test_the_alert_waits_for_two_rounds(render: Callable[..., Render]) -> None:
    def wait(every: str) -> str:
        rules = render({"m": f"{ONNX}heartbeat: {{every: {every}}}\n"}).one("PrometheusRule")["spec"]["groups"][0][
            "rules"
        ]
        (alert,) = [rule for rule in rules if rule["alert"] == "TritonHeartbeatFailing"]
        assert alert["labels"]["severity"] == "critical"
        return alert["for"]

    assert (wait("60s"), wait("1h")) == ("5m", "120m")
