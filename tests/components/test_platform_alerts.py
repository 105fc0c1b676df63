"""Alerts about the platform: each reads series that are there, about the parts that this stack has."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest

from components.gpu.dcgm_exporter import COUNTERS
from components.monitoring import rules as platform
from spec import signals
from spec.pool import GpuPoolSpec
from tests.components.alerting import nodes, seconds, selectors
from tests.components.conftest import POOLS, ROOT, Render
from tests.components.monitored import EXISTING, FULL, MANAGED, jobs

Renderer = Callable[..., Render]
RUNBOOKS = ROOT / "docs" / "runbooks"
KEDA = {"backend": "keda"}
EXPORTER = {"dcgmExporter": "managed"}
MODELS = {"a": "", "slow": "loadTime: 30m\nheartbeat: {}\n"}
ALERTS = {
    "AutoscalerWithoutMetrics",
    "GpuExporterMissing",
    "GpuIdle",
    "GpuXidError",
    "MetricsApiUnavailable",
    "ScalerFailing",
    "TargetDown",
    "Watchdog",
}
# What each part of the chain reports, by the documentation of that part.
SERIES = {
    "up",
    "kube_horizontalpodautoscaler_status_condition",
    "kube_horizontalpodautoscaler_status_current_replicas",
    "kube_node_status_capacity",
    "keda_scaler_detail_errors_total",
    *(name for name, _, _ in COUNTERS),
    *(one.series for found in signals.GPU.values() for one in (found, found.older) if one),
}
COUNTED = {"keda_scaler_detail_errors_total"}


@pytest.fixture(scope="module")
def estate(render: Renderer) -> Render:
    return render(MODELS, monitoring=MANAGED, gpuPools=POOLS, autoscaler=KEDA, gpuSoftware=EXPORTER)


@pytest.fixture(scope="module")
def without_gpus(render: Renderer) -> Render:
    return render({"a": ""}, monitoring=EXISTING)


def rules(found: Render, name: str = "", severity: str = "") -> list[dict[str, Any]]:
    """The alerts about the platform, all or those of one name."""
    (group,) = found.one("PrometheusRule", "platform-monitoring")["spec"]["groups"]
    return [
        one
        for one in group["rules"]
        if (not name or one["alert"] == name) and (not severity or one["labels"]["severity"] == severity)
    ]


def one(found: Render, name: str, severity: str = "") -> dict[str, Any]:
    (rule,) = rules(found, name, severity)
    return rule


def patterns(expression: str, metric: str, label: str) -> list[str]:
    """The regular expressions by which an expression selects a label of a metric."""
    return [
        matcher.value
        for node in nodes(expression)
        if isinstance(node, promql.VectorSelector) and node.name == metric
        for matcher in node.matchers.matchers
        if matcher.name == label and matcher.op == promql.MatchOp.Re
    ]


def numbers(expression: str) -> set[float]:
    return {node.val for node in nodes(expression) if isinstance(node, promql.NumberLiteral)}


class TestExpressions:
    def test_each_reads_only_what_the_chain_reports(self, estate: Render) -> None:
        kept = jobs(estate)["kubernetes-apiservers"]["metric_relabel_configs"][0]["regex"]
        read = {metric for rule in rules(estate) for metric in selectors(rule["expr"])}
        assert read <= SERIES | {kept}
        assert {"up", kept, "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_GPU_TEMP"} <= read

    def test_every_counter_stands_in_a_rate(self, estate: Render) -> None:
        for rule in rules(estate):
            every = list(nodes(rule["expr"]))
            rates = [node for node in every if isinstance(node, promql.Call) and node.func.name == "rate"]
            counters = [node for node in every if isinstance(node, promql.VectorSelector) and node.name in COUNTED]
            assert len(rates) == len(counters)
            # Of the longest interval between two scrapes, four.
            assert all(node.args[0].range.total_seconds() >= 4 * 120 for node in rates)

    def test_names_of_the_metrics_apis_are_matched_to_the_letter(self, estate: Render) -> None:
        rule = one(estate, "MetricsApiUnavailable")
        (pattern,) = patterns(rule["expr"], "aggregator_unavailable_apiservice", "name")
        known = ("v1beta1.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io",
                 "v1beta1.external.metrics.k8s.io")  # fmt: skip
        assert all(re.fullmatch(pattern, name) for name in known)
        assert not any(re.fullmatch(pattern, name) for name in ("v1.apps", "v1beta1xmetrics.k8s.io", "v1.example.com"))

    def test_targets_of_the_estate_are_watched_and_no_others(self, estate: Render) -> None:
        (pattern,) = patterns(one(estate, "TargetDown")["expr"], "up", "namespace")
        assert {one["metadata"]["namespace"] for one in estate.objects("ServiceMonitor")} <= set(pattern.split("|"))
        assert not re.fullmatch(pattern, "kube-system")
        assert {"job": "kubernetes-apiservers"} in selectors(one(estate, "TargetDown")["expr"])["up"]

    def test_an_autoscaler_without_replicas_needs_no_metrics(self, estate: Render) -> None:
        parts = selectors(one(estate, "AutoscalerWithoutMetrics")["expr"])
        assert parts == {
            "kube_horizontalpodautoscaler_status_condition": [
                {"namespace": "serving", "condition": "ScalingActive", "status": "false"}
            ],
            "kube_horizontalpodautoscaler_status_current_replicas": [{"namespace": "serving"}],
        }

    def test_kedas_errors_are_read_under_both_names_of_their_namespace(self, estate: Render) -> None:
        (found,) = selectors(one(estate, "ScalerFailing")["expr"]).values()
        assert found in ([{"namespace": "serving"}, {"exported_namespace": "serving"}],
                         [{"exported_namespace": "serving"}, {"namespace": "serving"}])  # fmt: skip


class TestGpus:
    def test_a_node_is_known_by_what_its_pool_offers(self, estate: Render) -> None:
        (pattern,) = patterns(one(estate, "GpuExporterMissing")["expr"], "kube_node_status_capacity", "resource")
        # kube-state-metrics writes every character of a resource's name but letters and digits as "_".
        offered = {re.sub(r"\W", "_", name) for pool in POOLS
                   for name in GpuPoolSpec.model_validate(pool).node_capacity()}  # fmt: skip
        assert set(pattern.split("|")) == offered
        assert {
            "nvidia_com_gpu",
            "nvidia_com_gpu_shared",
            "nvidia_com_mig_1g_10gb",
            "tencent_com_vcuda_core",
        } <= offered

    def test_the_exporter_is_known_by_the_node_that_it_names(self, estate: Render) -> None:
        rule = one(estate, "GpuExporterMissing")
        assert "unless on (node)" in rule["expr"]
        (call,) = [node for node in nodes(rule["expr"]) if isinstance(node, promql.Call)]
        assert [arg.val for arg in call.args[1:]] == ["node", "$1", "Hostname", "(.+)"]
        assert call.args[0].name == "DCGM_FI_DEV_GPU_TEMP"
        (container,) = estate.one("DaemonSet", "dcgm-exporter")["spec"]["template"]["spec"]["containers"]
        (name,) = [found for found in container["env"] if found["name"] == "NODE_NAME"]
        assert name["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"

    def test_errors_of_programs_are_no_trouble_of_the_card(self, estate: Render) -> None:
        card, program = (one(estate, "GpuXidError", severity) for severity in ("critical", "warning"))
        # The health check of NVIDIA's device plugin takes these for the program's own.
        ignored = {13.0, 31.0, 43.0, 45.0, 68.0, 109.0}
        assert numbers(card["expr"]) == numbers(program["expr"]) == ignored | {0.0}
        assert "unless" in card["expr"]
        assert "changes(DCGM_FI_DEV_XID_ERRORS[1h])" in program["expr"]
        assert card["for"] == program["for"] == "0m"

    def test_use_is_read_as_the_autoscalers_read_it(self, estate: Render) -> None:
        read = selectors(one(estate, "GpuIdle")["expr"]).keys()
        wanted = [found for mode, found in signals.GPU.items() if mode in {"whole", "mig", "hami"}]
        assert read == {one.series for found in wanted for one in (found, found.older) if one}

    def test_only_pods_of_models_are_idle(self, estate: Render) -> None:
        for rule in rules(estate, "GpuIdle"):
            for found in selectors(rule["expr"]).values():
                assert all("serving" in asked.values() for asked in found)
            assert seconds(rule["for"]) == 6 * 3600
            assert rule["labels"]["severity"] == "info"

    def test_a_pod_is_called_so_whatever_its_exporter_calls_it(self, estate: Render) -> None:
        calls = [node for node in nodes(one(estate, "GpuIdle")["expr"])
                 if isinstance(node, promql.Call) and node.func.name == "label_replace"]  # fmt: skip
        assert [[arg.val for arg in call.args[1:]] for call in calls] == [["pod", "$1", "podname", "(.+)"]]

    def test_a_mode_that_tells_no_use_has_no_such_alert(self, render: Renderer) -> None:
        found = render({}, monitoring=MANAGED, gpuPools=[pool for pool in POOLS if pool["name"] in {"sliced", "qgpu"}])
        assert not rules(found, "GpuIdle")
        assert rules(found, "GpuExporterMissing")

    def test_without_gpus_there_is_none(self, without_gpus: Render) -> None:
        assert {rule["alert"] for rule in rules(without_gpus)} == {
            "Watchdog",
            "TargetDown",
            "MetricsApiUnavailable",
            "AutoscalerWithoutMetrics",
        }


class TestAlerts:
    def test_no_two_have_all_labels_in_common(self, estate: Render) -> None:
        # They would be one to Alertmanager, and a mistake to promtool.
        labels = [(rule["alert"], *sorted(rule["labels"].items())) for rule in rules(estate)]
        assert len(labels) == len(set(labels))

    def test_all_are_there(self, estate: Render) -> None:
        assert {rule["alert"] for rule in rules(estate)} == ALERTS

    def test_none_repeats_an_alert_of_a_model(self, estate: Render) -> None:
        of_models = {rule["alert"] for found in estate.objects("PrometheusRule")
                     for group in found["spec"]["groups"] for rule in group["rules"]} - ALERTS  # fmt: skip
        assert "TritonAtMaxReplicas" in of_models
        assert all(name.startswith("Triton") for name in of_models)

    @pytest.mark.parametrize("name", sorted(ALERTS))
    def test_each_has_a_runbook_that_says_what_to_do(self, name: str, estate: Render) -> None:
        text = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {name}\n")
        for part in ("**Means:**", "**The caller feels:**", "## First", "## Likely causes"):
            assert part in text
        assert text.count("\n$ ") == 3
        assert all(Path(RUNBOOKS / link).exists() for link in re.findall(r"\]\((\S+)\)", text))
        assert {rule["annotations"]["runbook_url"] for rule in rules(estate, name)} == {f"docs/runbooks/{name}.md"}

    def test_no_runbook_is_without_an_alert(self) -> None:
        assert {path.stem for path in RUNBOOKS.glob("*.md") if not path.stem.startswith("Triton")} == ALERTS

    def test_each_says_how_bad_it_is_and_whose(self, estate: Render, render: Renderer) -> None:
        owned = render({"a": ""}, monitoring=FULL, gpuPools=POOLS)
        for found, owner in ((estate, "platform"), (owned, "infra")):
            for rule in rules(found):
                assert rule["labels"]["owner"] == owner
                assert rule["labels"]["severity"] in {"critical", "warning", "info", "none"}
                assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}

    def test_names_in_texts_are_labels_of_the_expression(self, estate: Render) -> None:
        for rule in rules(estate):
            root = promql.parse(rule["expr"])
            while isinstance(root, promql.BinaryExpr):
                root = root.lhs
            if isinstance(root, promql.AggregateExpr) and root.modifier:
                named = re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values()))
                assert set(named) <= set(root.modifier.labels), rule["alert"]

    def test_a_url_leads_to_the_runbook(self, render: Renderer) -> None:
        found = render({"a": ""}, monitoring=MANAGED | {"runbooks": "https://git.example.com/runbooks"})
        for rule in rules(found):
            assert rule["annotations"]["runbook_url"] == f"https://git.example.com/runbooks/{rule['alert']}.md"

    @pytest.mark.parametrize("name", ["TargetDown", "AutoscalerWithoutMetrics"])
    def test_a_model_that_loads_is_waited_for(self, name: str, estate: Render, without_gpus: Render) -> None:
        # Thirty minutes of load time and ten for the node and the image.
        assert one(estate, name)["for"] == "40m"
        assert one(without_gpus, name)["for"] == "15m"

    def test_the_watchdog_is_always_there(self, estate: Render) -> None:
        rule = one(estate, "Watchdog")
        assert (rule["expr"], rule["for"], rule["labels"]["severity"]) == ("vector(1)", "0m", "none")

    def test_keda_is_watched_where_it_scales(self, estate: Render, without_gpus: Render) -> None:
        assert rules(estate, "ScalerFailing")
        assert not rules(without_gpus, "ScalerFailing")

    def test_they_stand_beside_those_of_the_models(self, estate: Render, render: Renderer) -> None:
        elsewhere = render({"a": ""}, namespace="models", monitoring=EXISTING)
        for found, namespace in ((estate, "serving"), (elsewhere, "models")):
            rule = found.one("PrometheusRule", "platform-monitoring")["metadata"]
            assert rule["namespace"] == namespace
            assert rule["labels"]["release"] == "kube-prometheus-stack"

    def test_no_model_can_take_their_name(self) -> None:
        # A revision's name has nine characters at most.
        assert len(platform.NAME.rpartition("-")[2]) > 9
