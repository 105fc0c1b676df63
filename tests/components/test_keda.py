"""KEDA: a ScaledObject for each revision that asks for the same as the HPA would, and the chart behind it."""

import re
from collections.abc import Callable
from typing import Any

import promql_parser as promql
import pytest

from local import plan
from local.recorder import Recorded
from spec import signals
from tests.components.alerting import nodes, rules
from tests.components.conftest import TENSORS, Render

Renderer = Callable[..., Render]
URL = "http://prometheus.obs.svc:9090"
STACK: dict[str, Any] = {
    "environment": "prod",
    "namespace": "vision",
    "monitoring": {"prometheus": {"provider": "existing", "url": URL}},
    "gpuPools": [
        {"name": "whole", "gpuModel": "A100", "gpuMemory": "80Gi"},
        {"name": "hami", "sharing": "hami", "gpuModel": "A100", "gpuMemory": "80Gi"},
    ],
}
KEDA = STACK | {"autoscaler": {"backend": "keda"}}
STEPS = (
    "[{model_name: pre.v1, model_version: -1, input_map: {x: a}, output_map: {y: c}},"
    " {model_name: net_v2, model_version: -1, input_map: {x: c}, output_map: {y: b}}]"
)
MODELS = {
    "plain": "",
    "fixed": "scaling: {min: 2, max: 2}\n",
    "every": "resources: {cpu: 1, memory: 2Gi, gpu: 1}\n"
    "scaling: {max: 7, gpu: 60, qps: 0.5, queueMs: 2.5, pending: 4, cpu: 50, memory: 80, scaleUpStabilization: 10s}\n",
    "shared": "resources: {cpu: 1, memory: 2Gi, gpu: 0.5}\npool: hami\nscaling: {gpu: 70}\n",
    "steps": f"config: {{platform: ensemble, {TENSORS}, ensemble_scheduling: {{step: {STEPS}}}}}\n"
    "members: {pre.v1: {}, net_v2: {}}\nscaling: {qps: 5, queueMs: 5}\n",
    "many": "revisions: {v1: {}, v2: {scaling: {min: 1, max: 2}}}\ntraffic: {split: {v1: 90, v2: 10}}\n",
}
DAY = '{from: "0 9 * * mon-fri", to: "0 21 * * *", timezone: Asia/Shanghai, replicas: 3}'
NIGHT = {"m": f"scaling: {{min: 0, max: 5, qps: 10, cpu: 50, schedule: [{DAY}]}}\nloadTime: 10m\n"}


@pytest.fixture(scope="module")
def found(render: Renderer) -> Render:
    return render(MODELS, **KEDA)


@pytest.fixture(scope="module")
def hpas(render: Renderer) -> Render:
    return render(MODELS, **STACK)


@pytest.fixture(scope="module")
def night(render: Renderer) -> Render:
    return render(NIGHT, **KEDA)


@pytest.fixture(scope="module")
def managed(render: Renderer) -> Render:
    return render(MODELS, **STACK | {"autoscaler": {"backend": "keda", "provider": "managed"}})


def spec(found: Render, name: str) -> dict[str, Any]:
    return found.one("ScaledObject", name)["spec"]


def triggers(found: Render, name: str, kind: str = "") -> list[dict[str, Any]]:
    return [one for one in spec(found, name)["triggers"] if not kind or one["type"] == kind]


REVISIONS = ["plain-v1", "every-v1", "shared-v1", "steps-v1", "many-v1", "many-v2"]


class TestBackend:
    @pytest.mark.parametrize("name", REVISIONS)
    def test_it_takes_the_place_of_the_hpa_and_bears_its_name(self, name: str, found: Render, hpas: Render) -> None:
        hpa, scaled = hpas.one("HorizontalPodAutoscaler", name), found.one("ScaledObject", name)
        advanced = scaled["spec"]["advanced"]["horizontalPodAutoscalerConfig"]
        assert advanced["name"] == hpa["metadata"]["name"] == name
        assert advanced["behavior"] == hpa["spec"]["behavior"]
        assert scaled["spec"]["scaleTargetRef"] == hpa["spec"]["scaleTargetRef"]
        assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (
            hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"],
        )  # fmt: skip
        assert scaled["metadata"]["labels"] == hpa["metadata"]["labels"]
        assert scaled["metadata"]["namespace"] == hpa["metadata"]["namespace"] == "vision"

    def test_nothing_has_both_and_a_fixed_number_has_neither(self, found: Render, hpas: Render) -> None:
        assert found.objects("HorizontalPodAutoscaler") == hpas.objects("ScaledObject") == []
        assert sorted(one["metadata"]["name"] for one in found.objects("ScaledObject")) == sorted(REVISIONS)

    def test_everything_else_stays_as_it_is(self, found: Render, hpas: Render) -> None:
        def others(render: Render) -> dict[tuple[str, str], Any]:
            # The alerts about the platform watch the backend that there is.
            kinds = ("HorizontalPodAutoscaler", "ScaledObject")
            return {
                key: value
                for key, value in render.resources.items()
                if not key[0].endswith(kinds) and key[1] != "platform-monitoring"
            }

        assert others(found) == others(hpas)
        assert found.outputs == hpas.outputs

    def test_it_may_take_over_an_hpa_that_is_there(self, found: Render) -> None:
        for one in found.objects("ScaledObject"):
            assert one["metadata"]["annotations"] == {"scaledobject.keda.sh/transfer-hpa-ownership": "true"}

    @pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "ScaledObject"])
    def test_of_two_autoscalers_with_one_name_the_old_one_goes_first(
        self, kind: str, found: Render, hpas: Render
    ) -> None:
        request = (found if kind == "ScaledObject" else hpas).request(kind, "plain-v1")
        tokens = {"autoscaling/v2:HorizontalPodAutoscaler", "keda.sh/v1alpha1:ScaledObject"}
        known = " ".join(alias.spec.type or alias.urn for alias in request.aliases)
        assert all(token in known for token in tokens)
        assert request.deleteBeforeReplace
        assert "kind" in request.replaceOnChanges

    @pytest.mark.parametrize("name", REVISIONS)
    def test_the_deployment_sends_no_replicas(self, name: str, found: Render) -> None:
        assert "replicas" not in found.one("Deployment", name)["spec"]

    @pytest.mark.parametrize("name", REVISIONS)
    def test_the_alert_about_the_maximum_reads_the_hpa_that_keda_makes(self, name: str, found: Render) -> None:
        (rule,) = [rule for rule in rules(found, name) if rule["alert"] == "TritonAtMaxReplicas"]
        hpa = spec(found, name)["advanced"]["horizontalPodAutoscalerConfig"]["name"]
        assert rule["expr"].count(f'horizontalpodautoscaler="{hpa}"') == 2


class TestTriggers:
    def test_each_signal_has_one_in_the_unit_of_its_metric(self, found: Render) -> None:
        thresholds = {one["name"]: one["metadata"]["threshold"] for one in triggers(found, "every-v1", "prometheus")}
        assert thresholds == {
            "container_gpu_usage": "0.6",
            "triton_requests_per_second": "0.5",
            "triton_queue_time_per_request_ms": "2.5",
            "triton_pending_requests": "4",
        }

    @pytest.mark.parametrize(("name", "percent"), [("cpu", "50"), ("memory", "80")])
    def test_what_kubernetes_measures_is_of_the_server_only(self, name: str, percent: str, found: Render) -> None:
        (one,) = triggers(found, "every-v1", name)
        assert one["metricType"] == "Utilization"
        assert one["metadata"] == {"value": percent, "containerName": "triton"}
        assert found.triton("every-v1")["name"] == one["metadata"]["containerName"]

    @pytest.mark.parametrize("name", REVISIONS)
    def test_all_of_a_prometheus_are_averaged_over_the_replicas(self, name: str, found: Render) -> None:
        for one in triggers(found, name, "prometheus"):
            assert one["metricType"] == "AverageValue"
            assert one["metadata"]["serverAddress"] == URL

    @pytest.mark.parametrize("name", REVISIONS)
    def test_names_differ_and_metadata_is_text(self, name: str, found: Render) -> None:
        every = triggers(found, name)
        assert len({one["name"] for one in every}) == len(every) > 0
        assert all(isinstance(value, str) for one in every for value in one["metadata"].values())

    def test_the_signals_are_those_of_the_hpa(self, found: Render, hpas: Render) -> None:
        for name in REVISIONS:
            metrics = hpas.one("HorizontalPodAutoscaler", name)["spec"]["metrics"]
            asked = {one["pods"]["metric"]["name"] for one in metrics if one["type"] == "Pods"}
            asked |= {one["containerResource"]["name"] for one in metrics if one["type"] == "ContainerResource"}
            assert {one["name"] for one in triggers(found, name)} == asked


class TestQueries:
    @pytest.mark.parametrize("name", ["every-v1", "shared-v1", "steps-v1"])
    def test_each_gives_one_number_for_the_pods_of_its_own_deployment(self, name: str, found: Render) -> None:
        for one in triggers(found, name, "prometheus"):
            parsed = promql.parse(one["metadata"]["query"])
            assert isinstance(parsed, promql.AggregateExpr)
            assert (str(parsed.op), parsed.modifier) == ("sum", None)
            for selector in nodes(one["metadata"]["query"]):
                if isinstance(selector, promql.VectorSelector):
                    matchers = {(each.name, each.value) for each in selector.matchers.matchers}
                    assert {value for key, value in matchers if key.endswith("namespace")} == {"vision"}
                    (pattern,) = {value for key, value in matchers if key.startswith("pod") and value} - {"vision"}
                    assert re.fullmatch(pattern, f"{name}-7d4b9c6f5d-x2x8k")
                    for other in (
                        f"{name}-heartbeat-7d4b9c6f5d-x2x8k",
                        f"x{name}-7d4b9c6f5d-x2x8k",
                        f"{name}0-7d4b-x2x8k",
                    ):
                        assert not re.fullmatch(pattern, other)

    def test_each_names_its_model_inside_triton(self, found: Render) -> None:
        read = {one["name"]: set(re.findall(r'model(=~?"[^"]*")', one["metadata"]["query"]))
                for one in triggers(found, "steps-v1")}  # fmt: skip
        assert read == {
            "triton_requests_per_second": {'="steps"'},
            "triton_queue_time_per_request_ms": {'=~"pre[.]v1|net_v2"'},
        }

    def test_a_dot_in_a_name_is_a_dot(self, found: Render) -> None:
        (one,) = [one for one in triggers(found, "steps-v1") if "queue" in one["name"]]
        pattern = re.findall(r'model=~"([^"]*)"', one["metadata"]["query"])[0]
        assert re.fullmatch(pattern, "pre.v1")
        assert not re.fullmatch(pattern, "pre-v1")

    def test_both_spellings_of_hami_are_added_up(self, found: Render) -> None:
        (one,) = triggers(found, "shared-v1")
        text = one["metadata"]["query"]
        assert one["metadata"]["threshold"] == "0.35"
        assert 'hami_container_device_utilization_ratio{namespace="vision",pod=~' in text
        assert 'Device_utilization_desc_of_container{podnamespace="vision",podname=~' in text
        whole: Any = promql.parse(text)
        assert str(whole.expr.op) == "or"

    def test_the_ranges_are_those_of_the_stack(self, render: Renderer) -> None:
        settings = KEDA | {"autoscaler": {"backend": "keda", "gpuWindow": "7m", "rateWindow": "3m"}}
        estate = render({"every": MODELS["every"]}, **settings)
        text = "".join(one["metadata"]["query"] for one in triggers(estate, "every-v1", "prometheus"))
        assert set(re.findall(r"\[(\d+\w)\]", text)) == {"7m", "3m"}


class TestNoValue:
    def test_lost_series_take_no_replica_away(self, found: Render) -> None:
        for name in REVISIONS:
            for one in triggers(found, name, "prometheus"):
                assert one["metadata"]["ignoreNullValues"] == "false"
                assert "activationThreshold" not in one["metadata"]
            assert "cooldownPeriod" not in spec(found, name)

    def test_where_there_may_be_no_replica_nothing_to_measure_is_no_mistake(self, night: Render) -> None:
        (one,) = triggers(night, "m-v1", "prometheus")
        assert (one["metadata"]["ignoreNullValues"], one["metadata"]["activationThreshold"]) == ("true", "0")

    def test_the_heartbeat_keeps_nothing_awake(self, render: Renderer) -> None:
        (one,) = triggers(render({"m": NIGHT["m"] + "heartbeat: {}\n"}, **KEDA), "m-v1", "prometheus")
        assert one["metadata"]["activationThreshold"] == one["metadata"]["threshold"] == "10"


class TestSchedule:
    def test_a_time_becomes_a_cron_trigger(self, night: Render) -> None:
        (one,) = triggers(night, "m-v1", "cron")
        assert one["metadata"] == {
            "timezone": "Asia/Shanghai", "start": "0 9 * * mon-fri", "end": "0 21 * * *", "desiredReplicas": "3",
        }  # fmt: skip

    def test_several_are_several(self, render: Renderer) -> None:
        more = DAY.replace("replicas: 3", "replicas: 4").replace("0 9", "0 12")
        estate = render({"m": f"scaling: {{min: 1, max: 5, schedule: [{DAY}, {more}]}}\n"}, **KEDA)
        found = triggers(estate, "m-v1", "cron")
        assert [(one["name"], one["metadata"]["desiredReplicas"]) for one in found] == [
            ("schedule-0", "3"), ("schedule-1", "4"),
        ]  # fmt: skip


class TestZero:
    def test_it_may_scale_to_none_and_something_wakes_it_up(self, night: Render) -> None:
        assert spec(night, "m-v1")["minReplicaCount"] == 0
        assert triggers(night, "m-v1", "cron")

    def test_a_replica_that_is_still_coming_is_not_sent_away(self, night: Render) -> None:
        assert spec(night, "m-v1")["cooldownPeriod"] >= 600 + 10 * 60
        assert spec(night, "m-v1")["cooldownPeriod"] >= night.one("Deployment")["spec"]["progressDeadlineSeconds"]

    def test_a_declared_window_lengthens_it(self, render: Renderer) -> None:
        text = NIGHT["m"].replace("cpu: 50", "cpu: 50, scaleDownStabilization: 1h")
        assert spec(render({"m": text}, **KEDA), "m-v1")["cooldownPeriod"] == 3600

    def test_no_series_are_missed_while_no_replica_is_wanted(self, night: Render, found: Render) -> None:
        (asleep,) = [rule["expr"] for rule in rules(night, "m-v1") if rule["alert"] == "TritonMetricsMissing"]
        (awake,) = [rule["expr"] for rule in rules(found, "plain-v1") if rule["alert"] == "TritonMetricsMissing"]
        assert promql.parse(asleep)
        assert 'and on () max(kube_deployment_spec_replicas{namespace="vision",deployment="m-v1"}) > 0' in asleep
        assert "spec_replicas" not in awake

    def test_the_outputs_count_no_card_for_it(self, render: Renderer) -> None:
        text = f"resources: {{cpu: 1, memory: 2Gi, gpu: 1}}\nscaling: {{min: 0, max: 3, schedule: [{DAY}]}}\n"
        pool = render({"m": text}, **KEDA).outputs["gpuPools"]["whole"]
        assert (pool["gpusAskedAtLeast"], pool["gpusAskedAtMost"]) == (0, 3)


class TestRelease:
    CHART = ("kubernetes:helm.sh/v3:Release", "keda")

    def test_it_is_installed_only_where_the_stack_asks_for_it(self, managed: Render, found: Render) -> None:
        assert self.CHART in managed.resources
        assert self.CHART not in found.resources
        assert "monitoring" not in {one["metadata"]["name"] for one in found.objects("Namespace")}

    def test_it_is_the_official_chart_pinned(self, managed: Render) -> None:
        release = managed.resources[self.CHART]
        assert (release["chart"], release["repositoryOpts"]["repo"]) == ("keda", "https://kedacore.github.io/charts")
        assert re.fullmatch(r"2\.21\.\d+", release["version"])
        assert release["namespace"] == "monitoring"

    def test_a_chart_of_ones_own_is_taken(self, render: Renderer) -> None:
        settings = STACK | {"autoscaler": {"backend": "keda", "provider": "managed"}, "charts": {"keda": "./keda.tgz"}}
        release = render({"plain": ""}, **settings).resources[self.CHART]
        assert release["chart"] == "./keda.tgz"
        assert "version" not in release

    def test_every_part_survives_a_drained_node(self, managed: Render) -> None:
        values = managed.resources[self.CHART]["values"]
        assert {values[part]["replicaCount"] for part in ("operator", "metricsServer", "webhooks")} == {2}
        assert values["podDisruptionBudget"].keys() == {"operator", "metricServer", "webhooks"}

    def test_prometheus_sees_the_errors_that_are_alerted_on(self, managed: Render, render: Renderer) -> None:
        monitor = managed.resources[self.CHART]["values"]["prometheus"]["operator"]["serviceMonitor"]
        assert monitor == {
            "enabled": True, "additionalLabels": {"release": "kube-prometheus-stack"}, "interval": "15s",
        }  # fmt: skip
        bare = render({"m": "scaling: {max: 5, cpu: 50}\n"}, monitoring={"operator": False},
                      autoscaler={"backend": "keda", "provider": "managed"})  # fmt: skip
        assert "prometheus" not in bare.resources[self.CHART]["values"]

    def test_no_scaled_object_comes_before_its_kind(self, managed: Render) -> None:
        for name in REVISIONS:
            model = name.rpartition("-")[0]
            service = managed.requests["triton-estate:serving:TritonService", model]
            assert "keda" in {urn.rpartition("::")[2] for urn in service.dependencies}
            scaled = managed.requests["kubernetes:keda.sh/v1alpha1:ScaledObject", name]
            assert scaled.parent.endswith(f"::{model}")
            assert name in {urn.rpartition("::")[2] for urn in scaled.dependencies}

    def test_only_one_answers_each_metrics_api(self, managed: Render) -> None:
        assert managed.objects("APIService") == []


def test_a_query_is_the_sum_of_what_an_hpa_sees_of_each_pod(found: Render) -> None:
    (one,) = [one for one in triggers(found, "every-v1") if one["name"] == "triton_pending_requests"]
    matchers = ['namespace="vision"', 'pod=~"every-v1-[a-z0-9]+-[a-z0-9]{5}"', 'model="every"']
    each = signals.PENDING.query(matchers, ["pod"], signals.Windows(gpu="5m", rate="2m"))
    assert one["metadata"]["query"] == f"sum({each})"


def test_the_plan_tells_how_many_replicas_there_may_be(night: Render) -> None:
    token = "kubernetes:keda.sh/v1alpha1:ScaledObject"  # noqa: S105  # a type
    recorded = [Recorded(token, "m-v1", night.resources[token, "m-v1"])]
    assert plan._replicas(recorded) == "0 to 5"
