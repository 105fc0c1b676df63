"""Prometheus finds each pod once, and its alerts are about the model that they name."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import promql_parser as promql
import pulumi
import pytest
import yaml

from local.toolchain import Toolchain
from spec.monitoring import AlertsSpec, MonitoringSpec
from tests.components.conftest import PROD_MODELS, ROOT, TENSORS, Render

Renderer = Callable[..., Render]
RUNBOOKS = ROOT / "docs" / "runbooks"
SUMMARIES = "server: {metrics-config: [summary_latencies=true]}\n"
LIMITS = "alerts: {owner: night-shift, errorRatioPercent: 0.5, queueToComputePercent: 50, p99Ms: 0.25}\n"
NO_P99 = "server: {metrics-config: [summary_latencies=true, 'summary_quantiles=0.5:0.05']}\n"
CACHED = f"config: {{backend: python, response_cache: {{enable: true}}, {TENSORS}}}\n"
MODELS = {
    "plain": "",
    "twin": "",
    "fixed": "scaling: {min: 2, max: 2}\n",
    "slow": f"{SUMMARIES}{LIMITS}loadTime: 10m\nscaling: {{max: 4, cpu: 50, scaleDownStabilization: 1h}}\n",
    "many": "revisions: {v1: {}, v2: {alerts: {errorRatioPercent: 1}}}\ntraffic: {split: {v1: 90, v2: 10}}\n",
}
ALERTS = {path.stem for path in RUNBOOKS.glob("*.md")}
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


def selected(monitor: dict[str, Any], found: Render) -> list[dict[str, Any]]:
    """The Services that a ServiceMonitor selects."""
    spec = monitor["spec"]
    expressions = [one for one in spec["selector"]["matchExpressions"] if one["operator"] == "Exists"]
    assert expressions == spec["selector"]["matchExpressions"]
    return [
        service
        for service in found.objects("Service")
        if service["metadata"]["namespace"] in spec["namespaceSelector"]["matchNames"]
        and spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        and all(one["key"] in service["metadata"]["labels"] for one in expressions)
    ]


def rules(found: Render, name: str = "") -> list[dict[str, Any]]:
    """The alerts, all or those of one revision."""
    objects = [one for one in found.objects("PrometheusRule") if not name or one["metadata"]["name"] == name]
    return [rule for one in objects for group in one["spec"]["groups"] for rule in group["rules"]]


def alert(found: Render, name: str, revision: str, severity: str = "") -> dict[str, Any]:
    (rule,) = [
        rule
        for rule in rules(found, revision)
        if rule["alert"] == name and (not severity or rule["labels"]["severity"] == severity)
    ]
    return rule


def nodes(expression: str) -> Iterator[Any]:
    """Every part of an expression, in Prometheus's own grammar."""
    waiting: list[Any] = [promql.parse(expression)]
    while waiting:
        node = waiting.pop()
        yield node
        children = [getattr(node, name, None) for name in ("lhs", "rhs", "expr", "vector_selector")]
        waiting += [child for child in [*children, *getattr(node, "args", [])] if child is not None]


def selectors(expression: str) -> dict[str, list[dict[str, str]]]:
    """The series that an expression reads: metric -> what each selector of it asks for."""
    result: dict[str, list[dict[str, str]]] = {}
    for node in nodes(expression):
        if isinstance(node, promql.VectorSelector):
            asked = {one.name: one.value for one in node.matchers.matchers if one.op == promql.MatchOp.Equal}
            result.setdefault(node.name or "", []).append(asked)
    return result


def seconds(duration: str) -> float:
    return promql.parse_duration(duration).total_seconds()


class TestScraping:
    @pytest.mark.parametrize("name", MODELS)
    def test_a_monitor_selects_the_services_of_the_revisions_and_no_other(self, name: str, estate: Render) -> None:
        found = {service["metadata"]["name"] for service in selected(estate.one("ServiceMonitor", name), estate)}
        assert found == {f"{name}-{one}" for one in estate.outputs["models"][name]["revisions"]}

    def test_each_pod_is_scraped_once(self, estate: Render) -> None:
        services = [service for one in estate.objects("ServiceMonitor") for service in selected(one, estate)]
        for deployment in estate.objects("Deployment"):
            labels = deployment["spec"]["template"]["metadata"]["labels"]
            assert sum(service["spec"]["selector"].items() <= labels.items() for service in services) == 1

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_the_port_exists_by_name_and_is_tritons(self, name: str, prod: Render) -> None:
        monitor = prod.one("ServiceMonitor", name)
        (endpoint,) = monitor["spec"]["endpoints"]
        for service in selected(monitor, prod):
            (port,) = [port for port in service["spec"]["ports"] if port["name"] == endpoint["port"]]
            (open_port,) = [one for one in prod.triton(f"{name}-v1")["ports"] if one["name"] == port["targetPort"]]
            assert f"--metrics-port={open_port['containerPort']}" in prod.triton(f"{name}-v1")["args"]
        assert (endpoint["path"], endpoint["scheme"]) == ("/metrics", "http")

    def test_series_carry_model_revision_and_owner(self, estate: Render) -> None:
        for monitor in estate.objects("ServiceMonitor"):
            for service in selected(monitor, estate):
                carried = {service["metadata"]["labels"][key] for key in monitor["spec"]["targetLabels"]}
                model, _, revision = service["metadata"]["name"].rpartition("-")
                assert carried == {model, revision, "vision"}

    def test_no_label_of_triton_is_called_as_one_of_the_target(self, estate: Render) -> None:
        for monitor in estate.objects("ServiceMonitor"):
            carried = {re.sub(r"\W", "_", key) for key in monitor["spec"]["targetLabels"]}
            assert carried.isdisjoint({"model", "version", "gpu_uuid", "quantile", "reason"})
            assert monitor["spec"]["endpoints"][0]["honorLabels"] is False

    @pytest.mark.parametrize(("interval", "timeout"), [("5s", "5s"), ("30s", "10s"), ("2m", "10s")])
    def test_a_scrape_ends_before_the_next_begins(self, interval: str, timeout: str, render: Renderer) -> None:
        found = render({"a": ""}, monitoring={"scrapeInterval": interval})
        (endpoint,) = found.one("ServiceMonitor")["spec"]["endpoints"]
        assert (endpoint["interval"], endpoint["scrapeTimeout"]) == (interval, timeout)

    @pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule"])
    def test_prometheus_is_told_by_its_own_labels(self, kind: str, estate: Render, render: Renderer) -> None:
        other = render({"a": ""}, monitoring={"labels": {"prometheus": "k8s"}})
        for found, labels in ((estate, {"release": "kube-prometheus-stack"}), (other, {"prometheus": "k8s"})):
            for one in found.objects(kind):
                assert labels.items() <= one["metadata"]["labels"].items()
                assert ("release" in one["metadata"]["labels"]) == ("release" in labels)

    def test_only_what_prometheus_selects_carries_its_labels(self, estate: Render) -> None:
        marked = {one["kind"] for one in estate.objects() if "release" in one["metadata"].get("labels", {})}
        assert marked == {"ServiceMonitor", "PrometheusRule"}


class TestWithoutOperator:
    @pytest.fixture
    def bare(self, render: Renderer) -> Render:
        return render({name: MODELS[name] for name in ("plain", "fixed")}, monitoring={"operator": False})

    def test_no_custom_resource_is_made(self, bare: Render) -> None:
        assert not [one["kind"] for one in bare.objects() if "monitoring.coreos.com" in one["apiVersion"]]

    def test_each_pod_is_marked_once(self, bare: Render) -> None:
        marked = [one for one in bare.objects("Service") if "annotations" in one["metadata"]]
        assert {one["metadata"]["name"] for one in marked} == {"plain-v1", "fixed-v1"}
        for one in marked:
            assert one["metadata"]["annotations"] == {
                "prometheus.io/scrape": "true",
                "prometheus.io/scheme": "http",
                "prometheus.io/path": "/metrics",
                "prometheus.io/port": "8002",
            }

    def test_with_the_operator_nothing_is_marked(self, estate: Render) -> None:
        assert "prometheus.io/" not in str(estate.objects())


class TestKinds:
    @pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule"])
    def test_each_object_is_valid(self, kind: str, tools: Toolchain, estate: Render, prod: Render) -> None:
        check = validator(tools, kind)
        for found in [*estate.objects(kind), *prod.objects(kind)]:
            check.validate(found)

    def test_a_field_that_does_not_exist_would_be_noticed(self, tools: Toolchain, estate: Render) -> None:
        broken = estate.one("ServiceMonitor", "plain")
        broken = broken | {"spec": broken["spec"] | {"targetLabel": []}}
        with pytest.raises(jsonschema.ValidationError, match="targetLabel"):
            validator(tools, "ServiceMonitor").validate(broken)


def validator(tools: Toolchain, kind: str) -> Any:
    """Checks objects against the operator's own definition of their kind."""
    text = (tools.prometheus_crds / f"{kind.lower()}s.yaml").read_text(encoding="utf-8")
    (version,) = yaml.safe_load(text)["spec"]["versions"]
    return jsonschema.Draft202012Validator(closed(version["schema"]["openAPIV3Schema"]) | {"type": "object"})


def closed(schema: Any) -> Any:
    """The same schema without unknown fields, which the API server would drop without a word."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        whole = "kind" in schema["properties"] and "spec" in schema["properties"]
        result["additionalProperties"] = whole
    return result


class TestExpressions:
    def test_each_is_valid_and_reads_only_metrics_that_exist(self, estate: Render, prod: Render) -> None:
        read = {metric for rule in [*rules(estate), *rules(prod)] for metric in selectors(rule["expr"])}
        assert read == TRITON | KUBE_STATE_METRICS.keys()

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


def value(node: Any, rates: Mapping[str, Mapping[str, float]]) -> Any:
    """What an expression of rates gives: a number, or a number by model."""
    if isinstance(node, promql.NumberLiteral):
        return node.val
    if isinstance(node, promql.ParenExpr):
        return value(node.expr, rates)
    if isinstance(node, promql.AggregateExpr):
        return dict(rates[node.expr.args[0].vector_selector.name])
    left, right = value(node.lhs, rates), value(node.rhs, rates)
    pairs = [(key, one, right[key] if isinstance(right, dict) else right) for key, one in left.items()
             if not isinstance(right, dict) or key in right]  # fmt: skip
    if str(node.op) == ">":
        return {key: one for key, one, two in pairs if one > two}
    if str(node.op) == "/":
        return {key: one / two if two else math.nan if not one else math.inf for key, one, two in pairs}
    assert str(node.op) == "+"
    return {key: one + two for key, one, two in pairs}


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
        assert len(ALERTS) == 6

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


class TestEveryField:
    BEFORE: Mapping[str, Any] = {"owner": "a", "errorRatioPercent": 1, "queueToComputePercent": 100, "p99Ms": 10}

    @pytest.mark.parametrize("field", [field.alias for field in AlertsSpec.model_fields.values()])
    def test_of_a_model_changes_a_rule(self, field: str, render: Renderer) -> None:
        after = {**self.BEFORE, field: "b" if field == "owner" else self.BEFORE[field] + 0.5}
        one, two = (render({"a": f"{SUMMARIES}alerts: {alerts}\n"}) for alerts in (dict(self.BEFORE), after))
        assert rules(one) != rules(two)

    def test_of_a_stack_changes_an_object(self, render: Renderer) -> None:
        values = {"operator": False, "labels": {}, "scrapeInterval": "30s", "runbooks": "https://a.example"}
        assert values.keys() == {field.alias for field in MonitoringSpec.model_fields.values()}
        before = render({"a": ""}).objects()
        for field, changed in values.items():
            assert render({"a": ""}, monitoring={field: changed}).objects() != before


class TestBadInput:
    @pytest.mark.parametrize(
        ("monitoring", "says"),
        [
            ({"operator": False, "labels": {"a": "b"}}, "monitoring.labels: does nothing without the operator"),
            ({"operator": False, "scrapeInterval": "15s"}, "monitoring.scrapeInterval: does nothing without"),
            ({"operator": False, "runbooks": "https://a.example"}, "monitoring.runbooks: does nothing without"),
            ({"labels": {"app.kubernetes.io/instance": "x"}}, "is decided by the model"),
            ({"labels": {"triton-estate.io/owner": "x"}}, "is decided by the model"),
            ({"scrapeInterval": "0s"}, "monitoring.scrapeInterval: not a scrape interval"),
            ({"scrapeInterval": "3m"}, "allowed: 1s to 2m"),
            ({"scrapeInterval": 15}, "monitoring.scrapeInterval: not a duration"),
            ({"runbooks": "git.example.com/runbooks"}, "monitoring.runbooks: not the URL of a folder"),
            ({"runbooks": "https://a.example/?at=main"}, "monitoring.runbooks: not the URL of a folder"),
            ({"operator": "yes"}, "monitoring.operator"),
            ({"scrapeIntervall": "15s"}, "did you mean scrapeInterval?"),
        ],
    )
    def test_of_a_stack(self, monitoring: dict[str, Any], says: str, render: Renderer) -> None:
        assert says in self.refusal(render, "", monitoring=monitoring)

    @pytest.mark.parametrize(
        ("more", "says"),
        [
            ("alerts: {p99Ms: 10}\n", "alerts.p99Ms: Triton reports no quantiles unless it is told to"),
            (
                f"{NO_P99}alerts: {{p99Ms: 9}}\n",
                "fix:     write summary_quantiles=0.5:0.05,0.99:0.001",
            ),
            (
                f"{SUMMARIES}{CACHED}alerts: {{p99Ms: 9}}\n",
                "no summary of a model with a response cache",
            ),
            (
                "server: {metrics-config: [counter_latencies=false]}\nalerts: {queueToComputePercent: 9}\n",
                "alerts.queueToComputePercent: counter_latencies=false keeps",
            ),
            ("alerts: {errorRatioPercent: 0}\n", "alerts.errorRatioPercent"),
            ("alerts: {errorRatioPercent: 100}\n", "alerts.errorRatioPercent"),
            ("alerts: {owner: night shift}\n", "alerts.owner: not a Kubernetes label value"),
            ("alerts: {p95Ms: 10}\n", "did you mean p99Ms?"),
        ],
    )
    def test_of_a_model(self, more: str, says: str, render: Renderer) -> None:
        assert says in self.refusal(render, more)

    def test_alerts_in_a_stack_that_makes_none(self, render: Renderer) -> None:
        text = self.refusal(render, "alerts: {errorRatioPercent: 1}\n", monitoring={"operator": False})
        assert "alerts.errorRatioPercent: this stack makes no alerts" in text
        without = {"a": {"alerts": None}}
        assert render({"a": "alerts: {errorRatioPercent: 1}\n"}, monitoring={"operator": False}, models=without)

    def refusal(self, render: Renderer, more: str, **settings: object) -> str:
        with pytest.raises(pulumi.RunError) as refused:
            render({"a": more}, **settings)
        return str(refused.value)
