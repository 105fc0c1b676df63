"""Alerts are about the model that they name, and about what its callers feel."""

import re
from collections.abc import Callable
from pathlib import Path

import promql_parser as promql
import pytest

from probes.heartbeat import Beats
from tests.components.alerting import MODELS, alert, nodes, rules, seconds, selectors, value
from tests.components.conftest import ROOT, Render

Renderer = Callable[..., Render]
RUNBOOKS = ROOT / "docs" / "runbooks"
# Those of the platform have tests of their own.
ALERTS = {path.stem for path in RUNBOOKS.glob("Triton*.md")}
TRITON = {
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_input_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_inference_compute_output_duration_us",
    "nv_inference_request_summary_us",
}
KUBE_STATE_METRICS = {
    "kube_deployment_created": "deployment",
    "kube_deployment_spec_replicas": "deployment",
    "kube_deployment_status_replicas_available": "deployment",
    "kube_deployment_status_replicas_updated": "deployment",
    "kube_horizontalpodautoscaler_spec_max_replicas": "horizontalpodautoscaler",
    "kube_horizontalpodautoscaler_status_desired_replicas": "horizontalpodautoscaler",
}
GAUGES = {"nv_inference_request_summary_us", *KUBE_STATE_METRICS}


@pytest.fixture(scope="session")
def estate(render: Renderer) -> Render:
    return render(MODELS, namespace="models")


class TestExpressions:
    def test_each_is_valid_and_reads_only_metrics_that_exist(self, estate: Render, prod: Render) -> None:
        read = {metric for rule in [*rules(estate), *rules(prod)] for metric in selectors(rule["expr"])}
        beating = {metric for metric in read if metric.startswith("triton_heartbeat")}
        assert beating < set(re.findall(r"^# TYPE (\S+)", Beats().text(), re.MULTILINE))
        assert beating
        assert read - beating == TRITON | KUBE_STATE_METRICS.keys()

    def test_every_counter_stands_in_a_rate_over_four_scrapes(self, render: Renderer) -> None:
        for interval in ("15s", "2m"):
            found = render({"slow": MODELS["slow"]}, monitoring={"scrapeInterval": interval})
            for rule in rules(found):
                every = list(nodes(rule["expr"]))
                rates = [node for node in every if isinstance(node, promql.Call) and node.func.name == "rate"]
                counters = [node.name for node in every if isinstance(node, promql.VectorSelector)]
                if rule["alert"] != "TritonMetricsMissing":
                    assert len(rates) == len([name for name in counters if name not in GAUGES])
                assert all(node.args[0].range.total_seconds() >= 4 * seconds(interval) for node in rates)

    def test_nothing_has_a_floor_and_every_divisor_a_guard(self, estate: Render) -> None:
        divisions = 0
        for rule in rules(estate):
            for node in nodes(rule["expr"]):
                if isinstance(node, promql.Call):
                    assert not node.func.name.startswith("clamp")
                if isinstance(node, promql.BinaryExpr) and str(node.op) == "/":
                    guard = node.rhs.expr
                    assert (str(guard.op), guard.rhs.val) == (">", 0)
                    divisions += 1
        assert divisions == 2 * len(estate.objects("PrometheusRule"))

    def test_every_selector_asks_for_the_revision_and_nothing_wider(self, estate: Render) -> None:
        for rule in rules(estate):
            labels = rule["labels"]
            own = {
                "app_kubernetes_io_instance": labels["service"],
                "app_kubernetes_io_version": labels["revision"],
            }
            for metric, asked in selectors(rule["expr"]).items():
                kind = KUBE_STATE_METRICS.get(metric)
                wanted = {kind: f"{labels['service']}-{labels['revision']}"} if kind else own
                assert all((wanted | {"namespace": "models"}).items() <= one.items() for one in asked)

    def test_a_selected_label_is_one_that_the_monitor_carries_over(self, estate: Render) -> None:
        carried = {re.sub(r"\W", "_", key) for key in estate.one("ServiceMonitor", "plain")["spec"]["targetLabels"]}
        carried |= {"namespace", "reason", "model", "quantile"}
        for rule in rules(estate):
            for metric, asked in selectors(rule["expr"]).items():
                assert metric in KUBE_STATE_METRICS or all(one.keys() <= carried for one in asked)

    def test_two_models_share_no_expression(self, estate: Render) -> None:
        one, two = ({rule["expr"] for rule in rules(estate, name)} for name in ("plain-v1", "twin-v1"))
        assert one.isdisjoint(two)
        assert {text.replace("plain", "twin") for text in one} == two

    def test_an_alert_is_about_an_object_that_is_there(self, estate: Render) -> None:
        for rule in rules(estate):
            for metric, asked in selectors(rule["expr"]).items():
                if kind := KUBE_STATE_METRICS.get(metric):
                    objects = [found for found in estate.objects() if found["kind"].lower() == kind]
                    assert {one[kind] for one in asked} <= {found["metadata"]["name"] for found in objects}


class TestValues:
    """Worked out by hand, from the growth per second of each counter by model."""

    def queue(self, found: Render, queue: dict[str, float], compute: dict[str, float]) -> dict[str, float]:
        zero = dict.fromkeys(compute, 0.0)
        rates = {f"nv_inference_compute_{part}_duration_us": zero for part in ("input", "output")}
        rates |= {"nv_inference_compute_infer_duration_us": compute, "nv_inference_queue_duration_us": queue}
        return value(promql.parse(alert(found, "TritonQueueTimeHigh", "plain-v1")["expr"]), rates)

    def errors(self, found: Render, failed: dict[str, float], succeeded: dict[str, float]) -> dict[str, float]:
        rates = {"nv_inference_request_failure": failed, "nv_inference_request_success": succeeded}
        return value(promql.parse(alert(found, "TritonErrorRatio", "plain-v1")["expr"]), rates)

    def test_an_idle_member_does_not_hide_a_busy_one(self, estate: Render) -> None:
        assert self.queue(estate, {"a": 300.0, "b": 0.0}, {"a": 100.0, "b": 0.0}) == {"a": 3.0}

    def test_little_traffic_counts_as_much_as_much(self, estate: Render) -> None:
        # One request in ten seconds, 5 ms queued and 2 ms computed.
        assert self.queue(estate, {"a": 500.0}, {"a": 200.0}) == {"a": 2.5}
        assert self.queue(estate, {"a": 0.003}, {"a": 0.001}) == {"a": pytest.approx(3)}

    def test_waiting_as_long_as_working_is_no_alert(self, estate: Render) -> None:
        assert self.queue(estate, {"a": 100.0}, {"a": 100.0}) == {}

    def test_no_request_is_no_error(self, estate: Render) -> None:
        assert self.errors(estate, {"a": 0.0}, {"a": 0.0}) == {}

    def test_failures_alone_are_all_errors(self, estate: Render) -> None:
        assert self.errors(estate, {"a": 0.01}, {"a": 0.0}) == {"a": 1.0}

    def test_one_in_ten_is_an_alert_and_one_in_a_hundred_none(self, estate: Render) -> None:
        assert self.errors(estate, {"a": 1.0, "b": 1.0}, {"a": 9.0, "b": 99.0}) == {"a": 0.1}


class TestAlerts:
    def test_each_has_a_runbook_and_each_runbook_an_alert(self, estate: Render) -> None:
        found = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rules(estate)}
        assert found == {name: f"docs/runbooks/{name}.md" for name in ALERTS}
        assert len(ALERTS) == 7

    def test_a_runbook_says_what_the_caller_feels_and_what_to_do(self) -> None:
        for name in ALERTS:
            text = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
            assert text.startswith(f"# {name}\n")
            assert "**Means:**" in text
            assert "**The caller feels:**" in text
            assert "## Likely causes" in text
            assert text.count("\n$ ") == 3
            for link in re.findall(r"\]\((\S+)\)", text):
                assert Path(RUNBOOKS / link).exists()

    def test_a_url_leads_to_the_runbook(self, render: Renderer) -> None:
        found = render({"a": ""}, monitoring={"runbooks": "https://git.example.com/docs/runbooks/"})
        for rule in rules(found):
            assert rule["annotations"]["runbook_url"] == f"https://git.example.com/docs/runbooks/{rule['alert']}.md"

    def test_each_says_how_bad_it_is_whose_and_where(self, estate: Render) -> None:
        for rule in rules(estate):
            assert rule["labels"]["severity"] in {"critical", "warning"}
            assert rule["labels"]["owner"] == ("night-shift" if rule["labels"]["service"] == "slow" else "vision")
            assert rule["labels"]["namespace"] == "models"
            assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
            where = f"{rule['labels']['service']}-{rule['labels']['revision']} in models: "
            assert rule["annotations"]["summary"].startswith(where)
            assert seconds(rule["for"]) >= 300

    def test_a_fixed_number_of_replicas_has_no_maximum_to_reach(self, estate: Render) -> None:
        without = {
            name for name in MODELS if "TritonAtMaxReplicas" not in {r["alert"] for r in rules(estate, f"{name}-v1")}
        }
        assert without == {"fixed"}

    def test_quantiles_are_watched_where_they_are_wished_for(self, estate: Render) -> None:
        having = {rule["labels"]["service"] for rule in rules(estate) if rule["alert"] == "TritonLatencyP99High"}
        assert having == {"slow"}
        expression = alert(estate, "TritonLatencyP99High", "slow-v1")["expr"]
        assert expression.endswith(" > 250")
        assert selectors(expression)["nv_inference_request_summary_us"][0].items() >= {
            "model": "slow", "quantile": "0.99"
        }.items()  # fmt: skip

    def test_no_queue_alert_where_triton_counts_no_time(self, render: Renderer) -> None:
        found = render({"a": "server: {metrics-config: [counter_latencies=false]}\n"})
        assert "TritonQueueTimeHigh" not in {rule["alert"] for rule in rules(found)}

    @pytest.mark.parametrize(
        ("name", "revision", "limit"),
        [
            ("TritonErrorRatio", "plain-v1", "0.05"),
            ("TritonErrorRatio", "slow-v1", "0.005"),
            ("TritonErrorRatio", "many-v2", "0.01"),
            ("TritonQueueTimeHigh", "plain-v1", "2"),
            ("TritonQueueTimeHigh", "slow-v1", "0.5"),
        ],
    )
    def test_the_model_file_sets_the_threshold(self, name: str, revision: str, limit: str, estate: Render) -> None:
        assert alert(estate, name, revision)["expr"].endswith(f" > {limit}")

    def test_a_slow_start_is_waited_for(self, estate: Render) -> None:
        # Ten minutes of load time and ten for the node and the image.
        assert alert(estate, "TritonNotReady", "slow-v1", "critical")["for"] == "10m"
        assert alert(estate, "TritonNotReady", "slow-v1", "critical")["expr"].endswith("> 1200")
        assert alert(estate, "TritonNotReady", "slow-v1", "warning")["for"] == "20m"
        assert alert(estate, "TritonMetricsMissing", "slow-v1")["for"] == "20m"

    def test_replicas_that_stay_after_a_peak_are_no_saturation(self, estate: Render) -> None:
        assert alert(estate, "TritonAtMaxReplicas", "plain-v1")["for"] == "15m"
        assert alert(estate, "TritonAtMaxReplicas", "slow-v1")["for"] == "65m"

    def test_a_revision_has_rules_of_its_own(self, estate: Render, render: Renderer) -> None:
        one = render({"many": "revisions: {v1: {}}\n"}, namespace="models")
        assert rules(one, "many-v1") == rules(estate, "many-v1")
