"""Grafana: one that shows the dashboards and nothing else, or the dashboards for one that is there."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any
from unittest import mock

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils

from components.monitoring import dashboards
from spec.signals import Windows
from tests.components.conftest import ONNX, POOLS, ROOT, Render

Renderer = Callable[..., Render]
URL = "https://grafana.example.com/team"
ATTACHED = {"provider": "existing", "url": "http://prometheus.example.com:9090"}
MANAGED = {"url": URL, "adminSecret": "grafana-admin", "folder": "GPU serving"}
EXISTING = {"provider": "existing", "url": URL, "labels": {"dashboards": "yes"}, "folder": "GPU serving"}
BOARDS = ("estate", "gpu-nodes", "model", "traffic")


def shown(render: Renderer, grafana: dict[str, Any], **settings: object) -> Render:
    monitoring = {"prometheus": ATTACHED, "grafana": grafana, "scrapeInterval": "20s"}
    return render({"m": ONNX, "other": ""}, **({"monitoring": monitoring} | settings))


@pytest.fixture
def managed(render: Renderer) -> Render:
    return shown(render, MANAGED)


@pytest.fixture
def existing(render: Renderer) -> Render:
    return shown(render, EXISTING)


def ours(found: Render) -> list[dict[str, Any]]:
    """The objects that Grafana needs."""
    return [one for one in found.objects() if one["metadata"]["labels"].get("app.kubernetes.io/name") == "grafana"]


def container(found: Render) -> dict[str, Any]:
    (one,) = found.pod("grafana")["containers"]
    return one


def environment(found: Render) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container(found)["env"]}


def files(found: Render) -> dict[str, str]:
    """What lies in the container, by path."""
    maps = {one["metadata"]["name"]: one["data"] for one in found.objects("ConfigMap")}
    mounts = {one["name"]: one["mountPath"] for one in container(found)["volumeMounts"]}
    result: dict[str, str] = {}
    for volume in found.pod("grafana")["volumes"]:
        sources = [one["configMap"] for one in volume.get("projected", {}).get("sources", [])]
        sources += [volume["configMap"]] if "configMap" in volume else []
        for source in sources:
            keys = [item["key"] for item in source.get("items", [])] or list(maps[source["name"]])
            result |= {f"{mounts[volume['name']]}/{key}": maps[source["name"]][key] for key in keys}
    return result


class TestNothingUnasked:
    def test_a_stack_without_grafana_has_none_of_it(self, render: Renderer) -> None:
        found = render({"m": ""})
        assert ours(found) == []
        assert "grafana" not in json.dumps(found.outputs)

    def test_it_does_not_load_the_sdk_either(self) -> None:
        code = "import components.estate, sys; sys.exit('grafana_foundation_sdk' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0

    def test_an_existing_one_gets_dashboards_and_nothing_else(self, existing: Render) -> None:
        assert {one["kind"] for one in ours(existing)} == {"ConfigMap"}
        assert {name for one in ours(existing) for name in one["data"]} == {f"{name}.json" for name in BOARDS}


class TestManaged:
    def test_every_object_is_valid(self, managed: Render) -> None:
        with mock.patch.object(utils, "schema_contents", cache(utils.schema_contents)):
            for one in ours(managed):
                kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
        assert {one["kind"] for one in ours(managed)} == {"ConfigMap", "Deployment", "Service"}

    def test_all_of_it_lives_in_the_namespace_that_the_stack_makes(self, managed: Render) -> None:
        assert {one["metadata"]["namespace"] for one in ours(managed)} == {"monitoring"}
        labels = managed.one("Namespace", "monitoring")["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"

    def test_the_service_reaches_the_pod(self, managed: Render) -> None:
        service = managed.one("Service", "grafana")["spec"]
        template = managed.one("Deployment", "grafana")["spec"]["template"]
        assert service["selector"].items() <= template["metadata"]["labels"].items()
        (port,) = service["ports"]
        assert {"name": port["targetPort"], "containerPort": 3000} in container(managed)["ports"]

    def test_its_selector_means_no_other_grafana(self, managed: Render) -> None:
        selector = managed.one("Deployment", "grafana")["spec"]["selector"]["matchLabels"]
        assert selector["app.kubernetes.io/part-of"] == "triton-estate"
        assert managed.one("Service", "grafana")["spec"]["selector"] == selector

    def test_it_is_locked_down(self, managed: Render) -> None:
        pod, security = managed.pod("grafana"), container(managed)["securityContext"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod["automountServiceAccountToken"]
        assert security["readOnlyRootFilesystem"]
        assert not security["allowPrivilegeEscalation"]
        assert security["capabilities"] == {"drop": ["ALL"]}

    def test_it_can_write_where_it_has_to(self, managed: Render) -> None:
        scratch = {volume["name"] for volume in managed.pod("grafana")["volumes"] if "emptyDir" in volume}
        writable = {one["mountPath"] for one in container(managed)["volumeMounts"] if not one.get("readOnly")}
        assert writable == {"/var/lib/grafana", "/tmp"}  # noqa: S108
        assert {one["mountPath"] for one in container(managed)["volumeMounts"] if one["name"] in scratch} == writable

    @pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
    @pytest.mark.parametrize(("url", "path"), [(URL, "/team/api/health"), ("https://a.example.com", "/api/health")])
    def test_it_is_asked_for_its_health(self, probe: str, url: str, path: str, render: Renderer) -> None:
        found = shown(render, MANAGED | {"url": url})
        assert container(found)[probe]["httpGet"] == {"path": path, "port": "http"}

    def test_it_has_memory_and_a_limit_of_it(self, managed: Render) -> None:
        assert set(container(managed)["resources"]) == {"requests", "limits"}

    def test_the_password_is_only_named(self, managed: Render) -> None:
        reference = {"secretKeyRef": {"name": "grafana-admin", "key": "admin-password"}}
        assert environment(managed)["GF_SECURITY_ADMIN_PASSWORD"] == reference
        assert managed.objects("Secret") == []

    def test_it_knows_its_own_address(self, managed: Render, render: Renderer) -> None:
        assert environment(managed)["GF_SERVER_ROOT_URL"] == f"{URL}/"
        assert environment(managed)["GF_SERVER_SERVE_FROM_SUB_PATH"] == "true"
        plain = environment(shown(render, {"adminSecret": "a"}))
        assert plain["GF_SERVER_ROOT_URL"] == "http://grafana.monitoring.svc.cluster.local:3000/"
        assert "GF_SERVER_SERVE_FROM_SUB_PATH" not in plain

    def test_it_asks_nothing_outside(self, managed: Render) -> None:
        found = environment(managed)
        assert found["GF_PLUGINS_PREINSTALL_DISABLED"] == "true"
        off = ("CHECK_FOR_UPDATES", "CHECK_FOR_PLUGIN_UPDATES", "REPORTING_ENABLED")
        assert {found[f"GF_ANALYTICS_{name}"] for name in off} == {"false"}


class TestProvisioning:
    PATH = "/etc/grafana/provisioning"

    def test_the_prometheus_is_that_of_the_stack(self, managed: Render) -> None:
        (source,) = yaml.safe_load(files(managed)[f"{self.PATH}/datasources/datasources.yaml"])["datasources"]
        assert (source["type"], source["url"], source["isDefault"]) == ("prometheus", ATTACHED["url"], True)
        assert source["jsonData"] == {"httpMethod": "POST", "timeInterval": "20s"}

    def test_that_of_a_managed_prometheus_too(self, render: Renderer) -> None:
        found = shown(render, MANAGED, monitoring={"prometheus": {}, "grafana": MANAGED})
        (source,) = yaml.safe_load(files(found)[f"{self.PATH}/datasources/datasources.yaml"])["datasources"]
        service = found.one("Service", "prometheus")
        metadata, (port,) = service["metadata"], service["spec"]["ports"]
        assert source["url"] == f"http://{metadata['name']}.{metadata['namespace']}.svc:{port['port']}"

    def test_the_dashboards_lie_where_they_are_looked_for(self, managed: Render) -> None:
        (provider,) = yaml.safe_load(files(managed)[f"{self.PATH}/dashboards/dashboards.yaml"])["providers"]
        assert provider["folder"] == "GPU serving"
        assert not provider["allowUiUpdates"]
        folder = provider["options"]["path"]
        found = {path for path in files(managed) if path.startswith(f"{folder}/")}
        assert found == {f"{folder}/{name}.json" for name in BOARDS}

    def test_they_are_the_dashboards(self, managed: Render) -> None:
        rendered = dashboards.render(Windows(gpu="5m", rate="2m"), [])
        shown_there = {one["metadata"]["name"]: one["data"] for one in ours(managed) if one["kind"] == "ConfigMap"}
        for name, text in rendered.items():
            assert shown_there[f"triton-estate-{name}"] == {f"{name}.json": text}

    @pytest.mark.parametrize(
        ("change", "rolls"), [({"folder": "Other"}, True), ({}, False), ({"adminSecret": "grafana-admin"}, False)]
    )
    def test_what_grafana_reads_once_rolls_its_pod(
        self, change: dict[str, str], rolls: bool, managed: Render, render: Renderer
    ) -> None:
        one, two = (
            found.one("Deployment", "grafana")["spec"]["template"]["metadata"]["annotations"]
            for found in (managed, shown(render, MANAGED | change))
        )
        assert (one != two) == rolls
        assert all(len(value) == 64 for value in one.values())

    def test_the_pod_comes_after_all_that_it_mounts(self, managed: Render) -> None:
        after = {urn.rpartition("::")[2] for urn in managed.request("Deployment", "grafana").dependencies}
        mounted = {one["metadata"]["name"] for one in ours(managed) if one["kind"] == "ConfigMap"}
        assert mounted <= after


class TestRanges:
    def test_they_are_those_of_the_autoscaler(self, render: Renderer) -> None:
        slow = shown(render, MANAGED, monitoring={"prometheus": ATTACHED, "grafana": MANAGED, "scrapeInterval": "60s"})
        found = slow.one("ConfigMap", "triton-estate-model")["data"]["model.json"]
        assert "[4m]" in found
        assert "[2m]" not in found

    def test_a_time_slice_is_a_part_of_a_card(self, render: Renderer) -> None:
        found = shown(render, MANAGED, gpuPools=POOLS).one("ConfigMap", "triton-estate-estate")["data"]["estate.json"]
        assert 'nvidia_com_gpu_shared\\"})) / 4' in found


class TestExisting:
    def test_the_sidecar_finds_the_dashboards_and_their_folder(self, existing: Render) -> None:
        for one in ours(existing):
            metadata = one["metadata"]
            assert {"dashboards": "yes"}.items() <= metadata["labels"].items()
            assert "grafana_dashboard" not in metadata["labels"]
            assert metadata["annotations"] == {"k8s-sidecar-target-directory": "GPU serving"}

    def test_by_default_that_of_the_chart_does(self, render: Renderer) -> None:
        found = shown(render, {"provider": "existing", "url": URL, "folderAnnotation": "grafana_folder"})
        for one in ours(found):
            assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
            assert one["metadata"]["annotations"] == {"grafana_folder": "Triton"}

    def test_the_same_dashboards_are_handed_over(self, existing: Render, managed: Render) -> None:
        for name in BOARDS:
            one, two = (found.one("ConfigMap", f"triton-estate-{name}")["data"] for found in (existing, managed))
            assert one == two

    def test_the_namespace_is_made_unless_it_is_named(self, existing: Render, render: Renderer) -> None:
        assert existing.one("Namespace", "monitoring")
        found = shown(render, EXISTING | {"namespace": "observe"})
        assert {one["metadata"]["namespace"] for one in ours(found)} == {"observe"}
        assert {one["metadata"]["name"] for one in found.objects("Namespace")} == {"serving"}

    def test_a_namespace_that_another_part_of_the_stack_makes_comes_first(self, render: Renderer) -> None:
        found = shown(render, EXISTING | {"namespace": "serving"})
        (component,) = [one for key, one in found.requests.items() if key[0] == "triton-estate:monitoring:Grafana"]
        after = {urn.rpartition("::")[2] for urn in component.dependencies}
        assert after == {"serving"}


class TestOutputs:
    @pytest.mark.parametrize("grafana", [MANAGED, EXISTING])
    def test_each_model_has_its_dashboard(self, grafana: dict[str, Any], render: Renderer) -> None:
        found = shown(render, grafana)
        for name in ("m", "other"):
            chosen = f"var-model={name}&var-triton_model={name}&var-namespace=serving"
            assert found.outputs["models"][name]["dashboard"] == f"{URL}/d/triton-estate-model/model?{chosen}"

    def test_it_leads_to_a_dashboard_that_has_these_choices(self, managed: Render) -> None:
        link = managed.outputs["models"]["m"]["dashboard"]
        board = json.loads(managed.one("ConfigMap", "triton-estate-model")["data"]["model.json"])
        assert f"/d/{board['uid']}/" in link
        names = {variable["name"] for variable in board["templating"]["list"]}
        assert {part.partition("=")[0].removeprefix("var-") for part in link.partition("?")[2].split("&")} <= names
