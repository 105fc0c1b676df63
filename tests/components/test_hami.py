"""HAMi by its own chart: on its own nodes, failing closed for its own pods, in the units that models ask in."""

from functools import partial
from typing import Any

import pytest
from pulumi import ResourceOptions

from components import versions
from components.charts import Chart, chart_release
from components.gpu import hami, node_pool
from components.gpu.hami import HamiVgpu, HamiVgpuArgs
from spec import gpu, signals
from spec.gpu_software import GpuSoftwareSpec, pod_labels
from spec.monitoring import MonitoringSpec
from spec.pool import GpuPoolSpec
from tests.components.conftest import Render
from tests.components.gpu_nodes import MODES, pool, rendered, selects, tolerates

MONITORING = MonitoringSpec()
BARE = MonitoringSpec(operator=False)
RELEASE = ("kubernetes:helm.sh/v3:Release", "hami")


def install(
    *pools: GpuPoolSpec, monitoring: MonitoringSpec = MONITORING, charts: dict[str, str] | None = None
) -> Render:
    args = HamiVgpuArgs(pools=pools, namespace="models", monitoring=monitoring, charts=charts or {})
    return rendered(partial(HamiVgpu, "hami", args))


def values(*pools: GpuPoolSpec, monitoring: MonitoringSpec = MONITORING) -> dict[str, Any]:
    return install(*pools, monitoring=monitoring).resources[RELEASE]["values"]


@pytest.fixture(scope="module")
def found() -> Render:
    return install(pool("hami"))


class TestChart:
    def test_it_is_the_official_one_at_one_version(self, found: Render) -> None:
        release = found.resources[RELEASE]
        assert release["chart"] == "hami"
        assert release["repositoryOpts"] == {"repo": "https://project-hami.github.io/HAMi/"}
        assert release["version"] == versions.HAMI_CHART.version
        assert (release["name"], release["namespace"]) == ("hami", "gpu-system")

    @pytest.mark.parametrize(("written", "path"), [("./hami.tgz", "./hami.tgz"), ("~/hami", "/home/me/hami")])
    def test_it_may_come_from_this_machine(self, written: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/me")
        release = install(pool("hami"), charts={"hami": written}).resources[RELEASE]
        assert release["chart"] == path
        assert release.keys().isdisjoint({"version", "repositoryOpts"})

    def test_the_source_of_another_chart_changes_nothing(self, found: Render) -> None:
        assert install(pool("hami"), charts={"keda": "./keda"}).resources == found.resources

    def test_no_pod_is_admitted_before_all_of_it_works(self, found: Render) -> None:
        release = found.resources[RELEASE]
        assert "skipAwait" not in release
        assert release["timeout"] == 600

    def test_values_are_those_that_were_given(self) -> None:
        chart = Chart("any", "https://charts.example.com", "1.2.3")
        program = partial(chart_release, "mine", chart, "somewhere", {"a": {"b": 1}}, {}, ResourceOptions())
        release = rendered(program).resources["kubernetes:helm.sh/v3:Release", "mine"]
        assert (release["values"], release["namespace"], release["version"]) == ({"a": {"b": 1}}, "somewhere", "1.2.3")


class TestUnits:
    def test_resources_are_called_as_models_ask_for_them(self, found: Render) -> None:
        chosen = found.resources[RELEASE]["values"]
        names = {chosen[key] for key in ("resourceName", "resourceCores", "resourceMem", "resourceMemPercentage")}
        asked = gpu.limits(gpu.GpuRequest(count=1, memory="8Gi", cores=50), "hami", 1)
        asked |= gpu.limits(gpu.GpuRequest(fraction=0.5), "hami", 1)
        assert set(asked) == names == set(pool("hami").node_capacity())

    def test_half_a_card_is_one_virtual_one_and_half_of_its_compute(self) -> None:
        # nvidia.com/gpu: 0.5 does not exist.
        found = gpu.limits(gpu.GpuRequest(fraction=0.5, memory="8Gi"), "hami", 1)
        assert found == {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "50", "nvidia.com/gpumem": "8192"}

    def test_a_card_is_split_as_the_pool_says(self) -> None:
        chosen = values(pool("hami", split=7, memoryScaling=1.5))["devicePlugin"]
        assert (chosen["deviceSplitCount"], chosen["deviceMemoryScaling"]) == (7, 1.5)

    def test_memory_is_not_handed_out_twice_unless_asked_for(self, found: Render) -> None:
        assert found.resources[RELEASE]["values"]["devicePlugin"]["deviceMemoryScaling"] == 1


class TestWebhook:
    def webhook(self, found: Render) -> dict[str, Any]:
        return found.resources[RELEASE]["values"]["scheduler"]["admissionWebhook"]

    def test_it_fails_closed_where_models_run_and_nowhere_else(self, found: Render) -> None:
        assert self.webhook(found)["failurePolicy"] == "Fail"
        assert self.webhook(found)["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "models"}}

    @pytest.mark.parametrize("mode", MODES)
    def test_it_sees_the_pods_of_its_pools_and_no_others(self, mode: str, found: Render) -> None:
        # Those with whole cards ask for nvidia.com/gpu too, and HAMi's scheduler does not know their nodes.
        (expression,) = self.webhook(found)["objectSelector"]["matchExpressions"]
        labels = pod_labels(GpuSoftwareSpec(hami="managed"), pool(mode))
        assert expression["operator"] == "In"
        assert (labels.get(expression["key"]) in expression["values"]) == (mode == "hami")

    def test_a_scheduler_may_fail(self, found: Render) -> None:
        scheduler = found.resources[RELEASE]["values"]["scheduler"]
        assert (scheduler["replicas"], scheduler["leaderElect"]) == (2, True)


class TestNodes:
    def test_its_nodes_are_those_of_its_pools(self, found: Render) -> None:
        pod = {"nodeSelector": found.resources[RELEASE]["values"]["devicePlugin"]["nvidiaNodeSelector"]}
        assert pod["nodeSelector"] == {"gpu": "on"}
        assert [mode for mode in MODES if selects(pod, node_pool.node_labels(pool(mode)))] == ["hami"]

    def test_it_tolerates_the_taint_of_every_one_of_them(self) -> None:
        pools = [pool("hami", "a"), pool("hami", "b", taint="dedicated=gpu:NoExecute"), pool("hami", "c")]
        pod = values(*pools)["devicePlugin"]
        for one in pools:
            key, value, effect = one.taint_parts
            assert tolerates(pod, {"key": key, "value": value, "effect": effect})
        assert len(pod["tolerations"]) == 2


class TestMonitor:
    def test_the_series_that_scales_is_one_of_this_version(self) -> None:
        # Older names have to be asked for since 2.9, and stay off here.
        assert signals.GPU["hami"].series == "hami_container_device_utilization_ratio"

    def test_prometheus_scrapes_the_service_that_the_chart_makes(self, found: Render) -> None:
        monitor = found.one("ServiceMonitor", "hami-device-plugin-monitor")
        assert monitor["spec"]["selector"]["matchLabels"] == {
            "app.kubernetes.io/name": "hami",
            "app.kubernetes.io/instance": "hami",
            "app.kubernetes.io/component": "hami-device-plugin",
        }
        (endpoint,) = monitor["spec"]["endpoints"]
        assert (endpoint["port"], endpoint["path"], endpoint["honorLabels"]) == ("monitorport", "/metrics", True)
        assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["gpu-system"]}
        assert monitor["metadata"]["labels"]["release"] == "kube-prometheus-stack"

    def test_without_operator_its_service_is_marked_instead(self) -> None:
        found = install(pool("hami"), monitoring=BARE)
        assert not found.objects("ServiceMonitor")
        annotations = found.resources[RELEASE]["values"]["devicePlugin"]["service"]["annotations"]
        assert annotations["prometheus.io/port"] == "9394"

    def test_with_operator_nothing_is_marked(self, found: Render) -> None:
        assert "prometheus.io/" not in str(found.resources)

    def test_no_port_of_a_node_is_opened(self, found: Render) -> None:
        assert found.resources[RELEASE]["values"]["devicePlugin"]["service"]["type"] == "ClusterIP"


def test_the_chart_is_given_no_value_that_it_does_not_know() -> None:
    # Names of values of chart 2.10.0; a misspelt one would do nothing without a word.
    known = {
        "resourceName", "resourceCores", "resourceMem", "resourceMemPercentage",
        "scheduler.replicas", "scheduler.leaderElect", "scheduler.kubeScheduler.image.registry",
        "scheduler.kubeScheduler.image.repository", "scheduler.admissionWebhook.failurePolicy",
        "scheduler.admissionWebhook.namespaceSelector.matchLabels",
        "scheduler.admissionWebhook.objectSelector.matchExpressions", "devicePlugin.deviceSplitCount",
        "devicePlugin.deviceMemoryScaling", "devicePlugin.nvidiaNodeSelector", "devicePlugin.tolerations",
        "devicePlugin.service.type", "devicePlugin.service.annotations",
    }  # fmt: skip

    def paths(value: object, path: str) -> set[str]:
        if path in known or not isinstance(value, dict):
            return {path}
        return {found for key, inner in value.items() for found in paths(inner, f"{path}.{key}".lstrip("."))}

    assert paths(hami.chart_values([pool("hami")], "models", MONITORING), "") == known
    assert versions.HAMI_CHART.version == "2.10.0"
