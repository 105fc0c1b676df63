"""dcgm-exporter: on every GPU node and on no other, with the fields of every mode, and its own labels kept."""

from functools import partial
from typing import Any

import pytest

from components.gpu import dcgm_exporter, node_pool
from components.gpu.dcgm_exporter import DcgmExporter, DcgmExporterArgs
from components.rolling import CONFIG_HASH
from local.toolchain import Toolchain
from spec import signals
from spec.monitoring import MonitoringSpec
from spec.pool import GpuPoolSpec
from tests.components.conftest import Render
from tests.components.gpu_nodes import MODES, check, pool, rendered, selects, tolerates
from tests.components.monitored import validator

ALL = [pool(mode) for mode in MODES]
MONITORING = MonitoringSpec.model_validate({"scrapeInterval": "5s", "labels": {"prometheus": "k8s"}})


def export(*pools: GpuPoolSpec, monitoring: MonitoringSpec = MONITORING) -> Render:
    return rendered(partial(DcgmExporter, "dcgm", DcgmExporterArgs(pools=pools, monitoring=monitoring)))


@pytest.fixture(scope="module")
def found() -> Render:
    return export(*ALL)


def daemon_pod(found: Render) -> dict[str, Any]:
    return found.one("DaemonSet", "dcgm-exporter")["spec"]["template"]["spec"]


def container(found: Render) -> dict[str, Any]:
    (one,) = daemon_pod(found)["containers"]
    return one


class TestNodes:
    def test_every_gpu_node_has_one_and_no_other_node(self, found: Render) -> None:
        for one in ALL:
            assert selects(daemon_pod(found), node_pool.node_labels(one))
        for labels in ({}, {"gpu": "on"}, {"nvidia.com/gpu.present": "true"}, {"triton-estate.io/node-pool": "cpu"}):
            assert not selects(daemon_pod(found), labels)

    def test_it_tolerates_the_taint_of_every_pool(self) -> None:
        pools = [pool("whole"), pool("mig", taint="dedicated=gpu:NoSchedule"), pool("hami", taint="a=b:NoExecute")]
        pod = daemon_pod(export(*pools))
        for one in pools:
            key, value, effect = one.taint_parts
            assert tolerates(pod, {"key": key, "value": value, "effect": effect})
        assert not tolerates(pod, {"key": "node-role.kubernetes.io/control-plane", "value": "", "effect": "NoSchedule"})


class TestCounters:
    def lines(self, found: Render) -> list[list[str]]:
        text = found.one("ConfigMap", "dcgm-exporter")["data"]["counters.csv"]
        return [line.split(", ") for line in text.splitlines()]

    def test_each_is_a_field_a_type_and_a_text(self, found: Render) -> None:
        for line in self.lines(found):
            field, kind, text = line
            assert field.startswith("DCGM_FI_")
            assert kind in {"gauge", "counter"}
            assert "," not in text

    def test_no_field_stands_twice(self, found: Render) -> None:
        fields = [line[0] for line in self.lines(found)]
        assert len(fields) == len(set(fields))

    @pytest.mark.parametrize("mode", ["whole", "mig"])
    def test_the_series_that_scales_is_among_them(self, mode: str, found: Render) -> None:
        series = {"whole": signals.GPU["whole"], "mig": signals.GPU["mig"]}[mode].series
        assert series in {line[0] for line in self.lines(found)}

    @pytest.mark.parametrize(
        "field",
        [
            "DCGM_FI_DEV_GPU_UTIL",
            "DCGM_FI_DEV_FB_USED",
            "DCGM_FI_DEV_FB_FREE",
            "DCGM_FI_DEV_POWER_USAGE",
            "DCGM_FI_DEV_GPU_TEMP",
            "DCGM_FI_DEV_XID_ERRORS",
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            "DCGM_FI_PROF_SM_ACTIVE",
            "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        ],
    )
    def test_so_is_all_that_alerts_and_dashboards_ask_for(self, field: str, found: Render) -> None:
        assert field in {line[0] for line in self.lines(found)}

    def test_the_exporter_reads_them(self, found: Render) -> None:
        file = {one["name"]: one.get("value") for one in container(found)["env"]}["DCGM_EXPORTER_COLLECTORS"]
        (mount,) = [one for one in container(found)["volumeMounts"] if file == f"{one['mountPath']}/counters.csv"]
        (volume,) = [one for one in daemon_pod(found)["volumes"] if one["name"] == mount["name"]]
        assert volume["configMap"]["name"] == "dcgm-exporter"

    def test_other_ones_replace_the_pods(self, found: Render, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dcgm_exporter, "COUNTERS", dcgm_exporter.COUNTERS[1:])
        hashes = [
            one.one("DaemonSet")["spec"]["template"]["metadata"]["annotations"][CONFIG_HASH]
            for one in (found, export(*ALL))
        ]
        assert len(set(hashes)) == 2


class TestPod:
    def test_its_version_speaks_as_alerts_and_dashboards_ask(self, found: Render) -> None:
        # The tag is DCGM's version and the exporter's. The exporter's 4.8.3 calls the label Hostname otherwise, and
        # 4.9 has other names and units for the fields.
        exporter = container(found)["image"].rpartition(":")[2].split("-")[1]
        assert tuple(map(int, exporter.split("."))) < (4, 8, 3)

    def test_its_series_name_the_node(self, found: Render) -> None:
        (node,) = [one for one in container(found)["env"] if one["name"] == "NODE_NAME"]
        assert node["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}

    def test_it_asks_the_kubelet_which_pod_holds_a_card(self, found: Render) -> None:
        env = {one["name"]: one.get("value") for one in container(found)["env"]}
        assert env["DCGM_EXPORTER_KUBERNETES"] == "true"
        assert env["DCGM_EXPORTER_LISTEN"] == ":9400"
        (mount,) = [one for one in container(found)["volumeMounts"] if "pod-resources" in one["mountPath"]]
        assert (mount["mountPath"], mount["readOnly"]) == ("/var/lib/kubelet/pod-resources", True)
        (volume,) = [one for one in daemon_pod(found)["volumes"] if one["name"] == mount["name"]]
        assert volume["hostPath"]["path"] == "/var/lib/kubelet/pod-resources"

    def test_it_has_the_one_capability_that_profiling_takes(self, found: Render) -> None:
        assert container(found)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]},
        }
        assert daemon_pod(found).keys().isdisjoint({"hostNetwork", "hostPID", "hostIPC"})
        assert daemon_pod(found)["automountServiceAccountToken"] is False

    def test_each_object_is_valid_and_in_the_namespace_for_gpu_software(self, found: Render) -> None:
        kinds = {one["kind"] for one in found.objects()}
        assert kinds == {"ConfigMap", "DaemonSet", "Service", "ServiceMonitor"}
        for one in found.objects():
            assert one["metadata"]["namespace"] == "gpu-system"
            if one["kind"] != "ServiceMonitor":
                check(one)


class TestScraping:
    def test_its_own_labels_win(self, found: Render) -> None:
        (endpoint,) = found.one("ServiceMonitor")["spec"]["endpoints"]
        assert endpoint["honorLabels"] is True

    @pytest.mark.parametrize(
        ("written", "kept"),
        [
            ({"pod": "triton-a", "namespace": "serving"}, {"pod": "triton-a", "namespace": "serving"}),
            ({}, {}),
        ],
        ids=["a card that a pod holds", "an idle card"],
    )
    def test_a_card_is_held_by_whom_the_exporter_names_and_never_by_the_exporter(
        self, written: dict[str, str], kept: dict[str, str], found: Render
    ) -> None:
        (endpoint,) = found.one("ServiceMonitor")["spec"]["endpoints"]
        target = {"pod": "dcgm-1", "namespace": "gpu-system", "container": "dcgm-exporter"}
        target |= {one["targetLabel"]: one["replacement"] for one in endpoint["relabelings"]}
        # As Prometheus does it: an empty label is none, and the exporter's own win where they are honoured.
        series = {name: value for name, value in target.items() if value} | written
        assert {name: series[name] for name in ("pod", "namespace", "container") if name in series} == kept

    def test_the_monitor_is_what_the_operator_defines(self, tools: Toolchain, found: Render) -> None:
        validator(tools, "ServiceMonitor").validate(found.one("ServiceMonitor"))

    def test_the_monitor_selects_its_service_and_a_port_that_exists(self, found: Render) -> None:
        monitor, service = found.one("ServiceMonitor")["spec"], found.one("Service")
        assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert monitor["namespaceSelector"] == {"matchNames": [service["metadata"]["namespace"]]}
        assert [one["port"] for one in monitor["endpoints"]] == [one["name"] for one in service["spec"]["ports"]]

    def test_the_service_selects_its_pods(self, found: Render) -> None:
        template = found.one("DaemonSet")["spec"]["template"]
        service = found.one("Service")["spec"]
        assert service["selector"].items() <= template["metadata"]["labels"].items()
        (port,) = service["ports"]
        (target,) = [one for one in container(found)["ports"] if one["name"] == port["targetPort"]]
        assert (port["port"], target["containerPort"]) == (9400, 9400)

    def test_prometheus_is_told_by_its_own_labels_and_interval(self, found: Render) -> None:
        monitor = found.one("ServiceMonitor")
        assert monitor["metadata"]["labels"]["prometheus"] == "k8s"
        (endpoint,) = monitor["spec"]["endpoints"]
        assert (endpoint["interval"], endpoint["scrapeTimeout"]) == ("5s", "5s")
        assert "annotations" not in found.one("Service")["metadata"]

    def test_without_operator_the_service_is_marked_instead(self) -> None:
        found = export(*ALL, monitoring=MonitoringSpec(operator=False))
        assert not found.objects("ServiceMonitor")
        assert found.one("Service")["metadata"]["annotations"] == {
            "prometheus.io/scrape": "true",
            "prometheus.io/scheme": "http",
            "prometheus.io/path": "/metrics",
            "prometheus.io/port": "9400",
        }
