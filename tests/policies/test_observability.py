"""Policies about observability: absent fields, unknown values, whose the series are, and what the tables know."""

import json
import re
from typing import Any, Final

import pytest

from components.gpu.dcgm_exporter import COUNTERS
from policies.judging.judge import Outcome
from policies.judging.policy import Policy
from policies.judging.unknown import SEALED, UNKNOWN
from policies.judging.view import Resource
from policies.observability import (
    alert_runbook,
    metric_nobody_exports,
    monitor_selects_nothing,
    prometheus_dcgm_labels,
    scraped_twice,
)
from policies.reading import exporters
from policies.reading.exporters import Exported
from policies.reading.monitored import of_dashboards
from tests.components.dashboarding import EXPORTED, queries
from tests.dataplane import metrics as dataplane
from tests.policies.judging import judged, made, messages, outcomes

MONITORING = "monitoring.coreos.com/v1"
# What Prometheus of the chart kube-prometheus-stack selects, which is the default of the stack file.
RELEASE = {"release": "kube-prometheus-stack"}
APP = {"app": "triton"}
NAME = "kubernetes.io/metadata.name"


def pods(name: str = "triton", image: str = "tritonserver", annotations: Any = None) -> Resource:
    ports = [{"name": "http", "containerPort": 8000}, {"name": "metrics", "containerPort": 8002}]
    template = {
        "metadata": {"labels": {"app": name}, "annotations": annotations},
        "spec": {"containers": [{"name": "server", "image": image, "ports": ports}]},
    }
    return made("apps/v1", "Deployment", name, {"template": template})


def service(name: str = "triton", namespace: str = "serving", port: Any = None, **metadata: Any) -> Resource:
    spec = {"selector": APP, "ports": [port or {"name": "metrics", "port": 9000, "targetPort": "metrics"}]}
    return made("core/v1", "Service", name, spec, namespace, **{"labels": APP, **metadata})


def monitor(
    kind: str = "ServiceMonitor", name: str = "triton", *ends: Any, labels: Any = None, **spec: Any
) -> Resource:
    field = "endpoints" if kind == "ServiceMonitor" else "podMetricsEndpoints"
    content = {"selector": {"matchLabels": APP}, field: list(ends) or [{"port": "metrics"}], **spec}
    return made(MONITORING, kind, name, content, labels=RELEASE if labels is None else labels)


def prometheus(name: str = "main", namespace: str = "watching", **spec: Any) -> Resource:
    return made(MONITORING, "Prometheus", name, spec, namespace)


def rule(expr: Any, **fields: Any) -> Resource:
    return made(
        MONITORING, "PrometheusRule", "rules", {"groups": [{"rules": [{"alert": "A", "expr": expr, **fields}]}]}
    )


def config_map(name: str, **data: Any) -> Resource:
    files = {key.replace("_", "."): text for key, text in data.items()}
    return Resource("kubernetes:core/v1:ConfigMap", name, {"metadata": {"name": name}, "data": files})


def chart(name: str, namespace: str = "serving", **values: Any) -> Resource:
    inputs = {"chart": f"oci://example/{name}", "namespace": namespace, "values": values}
    return Resource("kubernetes:helm.sh/v3:Release", name, inputs)


class TestMonitor:
    @pytest.mark.parametrize(
        ("found", "said"),
        [
            ([service(), monitor()], ""),
            ([monitor()], "no Service in serving has the labels app=triton"),
            ([service(namespace="other"), monitor()], "no Service in serving"),
            ([service(namespace="other"), monitor(namespaceSelector={"any": True})], ""),
            ([service(namespace="other"), monitor(namespaceSelector={"matchNames": ["serving", "other"]})], ""),
            ([service(), monitor(namespaceSelector={"matchNames": []})], ""),
            ([service(labels={"app": "x"}), monitor()], "app=triton"),
            ([service(labels=None), monitor()], "app=triton"),
            ([service(), monitor(selector={})], ""),
            ([service(), monitor(selector=None)], "labels none"),
            ([service(), monitor("ServiceMonitor", "m", {"port": "http"})], "has a port http"),
            ([service(), monitor("ServiceMonitor", "m", {"targetPort": 8002})], ""),
            ([service(), monitor("ServiceMonitor", "m", {"port": "metrics"}, {"port": "x"})], "has a port x"),
            ([service(), monitor(endpoints=[])], "no endpoints"),
            ([pods(), monitor("PodMonitor")], ""),
            ([pods("x"), monitor("PodMonitor")], "no pod in serving"),
            ([pods(), monitor("PodMonitor", "m", {"port": "http-metrics"})], "has a port http-metrics"),
            ([pods(), monitor("PodMonitor", "m", {"portNumber": 8002})], ""),
            ([pods(), monitor("PodMonitor", podMetricsEndpoints=None)], "no podMetricsEndpoints"),
        ],
    )
    def test_what_it_selects(self, found: list[Resource], said: str) -> None:
        got = messages(monitor_selects_nothing, *found)
        assert len(got) == bool(said), got
        assert said in "".join(got)

    def test_what_a_chart_brings_nobody_sees(self) -> None:
        assert messages(monitor_selects_nothing, monitor(), chart("exporter")) == []
        assert messages(monitor_selects_nothing, monitor("PodMonitor"), chart("exporter")) == []
        assert len(messages(monitor_selects_nothing, monitor(), chart("exporter", "other"))) == 1

    def test_a_chart_is_no_excuse_for_missing_a_service_that_is_there(self) -> None:
        wanted = monitor(selector={"matchLabels": {**APP, "app.kubernetes.io/instance": "a"}})
        assert len(messages(monitor_selects_nothing, service(), wanted, chart("exporter"))) == 1

    @pytest.mark.parametrize(
        ("labels", "reader", "read"),
        [
            (RELEASE, None, True),
            ({}, None, False),
            ({"release": "other"}, None, False),
            ({}, {"serviceMonitorSelector": {}, "serviceMonitorNamespaceSelector": {}}, True),
            ({}, {"serviceMonitorSelector": {}}, False),  # its own namespace only
            (RELEASE, {"serviceMonitorNamespaceSelector": {}}, False),  # an absent selector selects nothing
            ({"team": "a"}, {"serviceMonitorSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
                             "serviceMonitorNamespaceSelector": {"matchLabels": {NAME: "serving"}}}, True),
            ({"team": "a"}, {"serviceMonitorSelector": {"matchLabels": {"team": "b"}},
                             "serviceMonitorNamespaceSelector": {}}, False),
        ],
    )  # fmt: skip
    def test_who_reads_it(self, labels: dict[str, str], reader: dict[str, Any] | None, read: bool) -> None:
        found = [service(), monitor(labels=labels), *([] if reader is None else [prometheus(**reader)])]
        assert bool(messages(monitor_selects_nothing, *found)) is not read

    def test_a_namespace_is_selected_by_its_own_labels(self) -> None:
        reader = prometheus(
            serviceMonitorSelector={}, serviceMonitorNamespaceSelector={"matchLabels": {"watched": "yes"}}
        )
        namespace = Resource(
            "kubernetes:core/v1:Namespace", "serving", {"metadata": {"name": "serving", "labels": {"watched": "yes"}}}
        )
        assert len(messages(monitor_selects_nothing, service(), monitor(), reader)) == 1
        assert messages(monitor_selects_nothing, service(), monitor(), reader, namespace) == []

    @pytest.mark.parametrize(("value", "wrong"), [("false", 1), ("true", 1), (False, 0), (True, 0), (None, 0)])
    def test_a_flag_is_no_text(self, value: Any, wrong: int) -> None:
        found = chart("kube-prometheus-stack", prometheus={"prometheusSpec": {"ruleSelectorNilUsesHelmValues": value}})
        assert len(messages(monitor_selects_nothing, found)) == wrong

    def test_an_unknown_monitor_hides_no_other(self) -> None:
        found = [
            monitor("ServiceMonitor", "a", selector={"matchLabels": {"app": UNKNOWN}}),
            monitor(name="b"),
            service("x", labels={}),
        ]
        assert outcomes(monitor_selects_nothing, *found) == [Outcome.VIOLATED, Outcome.UNDECIDED]


SCRAPE = {"prometheus.io/scrape": "true"}


class TestScrapedTwice:
    @pytest.mark.parametrize(
        ("more", "times"),
        [
            ([], 0),
            ([monitor(name="again")], 1),
            ([monitor(name="again", labels={})], 0),
            ([monitor("ServiceMonitor", "again", {"port": "metrics", "path": "/other"})], 0),
            ([monitor("ServiceMonitor", "again", {"port": "metrics", "params": {"a": ["b"]}})], 0),
            ([monitor("ServiceMonitor", "again", {"targetPort": 8002})], 1),
            ([monitor("PodMonitor")], 1),
            ([monitor("PodMonitor", "again", {"port": "http"})], 0),
            ([service("alias")], 1),
            ([service("alias", labels={"app": "other"})], 0),
            ([service("alias", labels={}, annotations=SCRAPE)], 1),
            ([service("alias", labels={}, annotations=SCRAPE | {"prometheus.io/port": "8002"})], 1),
            ([service("alias", labels={}, annotations=SCRAPE | {"prometheus.io/port": "8000"})], 0),
            ([service("alias", labels={}, annotations=SCRAPE | {"prometheus.io/path": "/x"})], 0),
            ([service("alias", labels={}, annotations={"prometheus.io/scrape": "false"})], 0),
            ([service("alias", labels={}, port={"port": 8002}, annotations=SCRAPE)], 1),
        ],
    )
    def test_ways_beside_a_monitor(self, more: list[Resource], times: int) -> None:
        got = messages(scraped_twice, pods(), service(), monitor(), *more)
        assert len(got) == times, got
        assert all("port 8002" in message and "ServiceMonitor/triton" in message for message in got)

    def test_annotations_of_pods_are_a_way(self) -> None:
        annotated = pods(annotations=SCRAPE | {"prometheus.io/port": "8002"})
        assert len(messages(scraped_twice, annotated, service(), monitor())) == 1
        assert len(messages(scraped_twice, annotated, service("a", annotations=SCRAPE))) == 1

    def test_no_ways_from_a_prometheus_that_goes_by_monitors_only(self) -> None:
        selecting: dict[str, Any] = {"serviceMonitorSelector": {}, "serviceMonitorNamespaceSelector": {}}
        found = [pods(annotations=SCRAPE), service(), service("alias", labels={}, annotations=SCRAPE), monitor()]
        assert messages(scraped_twice, *found, prometheus(**selecting)) == []
        selecting["additionalScrapeConfigs"] = {"name": "jobs", "key": "jobs.yaml"}
        assert len(messages(scraped_twice, *found, prometheus(**selecting))) == 1

    def test_two_prometheuses_have_one_way_each(self) -> None:
        readers = [
            prometheus(name, serviceMonitorSelector={"matchLabels": {"for": name}}, serviceMonitorNamespaceSelector={})
            for name in ("a", "b")
        ]
        monitors = [monitor(name=name, labels={"for": name}) for name in ("a", "b")]
        assert messages(scraped_twice, pods(), service(), *monitors, *readers) == []

    def test_an_unknown_selector_is_undecided(self) -> None:
        found = [pods(), service(), monitor(), monitor(name="b", selector={"matchLabels": {"app": UNKNOWN}})]
        assert outcomes(scraped_twice, *found) == [Outcome.UNDECIDED]


class TestRunbook:
    FULL: Final = {
        "labels": {"severity": "warning"},
        "annotations": {"summary": "it is down", "runbook_url": "https://a/b"},
    }

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({}, ""),
            (
                {"labels": None, "annotations": None},
                "no label severity, no annotation summary, no annotation runbook_url",
            ),
            ({"annotations": {"summary": "it is down"}}, "no annotation runbook_url"),
            ({"annotations": {"summary": "", "runbook_url": "https://a/b"}}, "no annotation summary"),
            ({"labels": {"team": "a"}}, "no label severity"),
        ],
    )
    def test_what_an_alert_says(self, fields: dict[str, Any], said: str) -> None:
        got = messages(alert_runbook, rule("up == 0", **(self.FULL | fields)))
        assert got == ([f"alert A has {said}"] if said else [])

    def test_a_recording_rule_wakes_nobody(self) -> None:
        assert messages(alert_runbook, rule("up", alert=None, record="a:b")) == []

    def test_labels_of_the_group_hold_for_its_alerts(self) -> None:
        found = rule("up == 0", annotations=self.FULL["annotations"])
        assert len(messages(alert_runbook, found)) == 1
        found.inputs["spec"]["groups"][0]["labels"] = {"severity": "warning"}
        assert messages(alert_runbook, found) == []

    @pytest.mark.parametrize("groups", [None, [], [{"name": "a", "rules": None}]])
    def test_nothing_to_say_of_no_rules(self, groups: Any) -> None:
        assert messages(alert_runbook, made(MONITORING, "PrometheusRule", "a", {"groups": groups})) == []

    def test_an_unknown_summary_is_undecided(self) -> None:
        annotations = {"summary": UNKNOWN, "runbook_url": "https://a/b"}
        assert outcomes(alert_runbook, rule("up", labels={"severity": "a"}, annotations=annotations)) == [
            Outcome.UNDECIDED
        ]


def board(*exprs: str, source: str = "prometheus", **variables: str) -> str:
    targets = [{"expr": expr} for expr in exprs]
    inner = {"type": "row", "panels": [{"title": "P", "datasource": {"type": source}, "targets": targets}]}
    listed = [{"name": name, "query": query} for name, query in variables.items()]
    return json.dumps({"panels": [inner], "templating": {"list": listed}})


class TestMetrics:
    ALL = Exported(frozenset(), summaries=True, recorded=frozenset(), rules_known=True)

    def test_the_table_knows_what_the_tests_of_dashboards_and_servers_know(self) -> None:
        unknown = {metric for metric in EXPORTED | dataplane.METRICS if not self.ALL.has(metric)}
        assert unknown == set()

    def test_the_table_tells_counters_as_a_real_server_does(self) -> None:
        assert dataplane.COUNTERS <= exporters.TRITON_COUNTERS
        assert not any(map(exporters.is_counter, dataplane.GAUGES))
        assert dataplane.SUMMARIES == exporters.TRITON_SUMMARIES

    def test_the_table_tells_counters_as_the_counters_file_does(self) -> None:
        for field, kind, _ in COUNTERS:
            assert exporters.is_counter(field) is (kind == "counter"), field

    def test_the_heartbeat_is_asked_itself(self) -> None:
        assert "triton_heartbeat_up" in exporters.HEARTBEAT
        assert all(re.fullmatch(r"triton_heartbeat_\w+", metric) for metric in exporters.HEARTBEAT)

    def test_no_dashboard_of_the_estate_asks_for_anything_else(self) -> None:
        read = [
            name for query in queries() for name in re.findall(r"\b(?:nv|kube|DCGM|hami|triton)_\w+(?={)", query.expr)
        ]
        assert read
        assert all(self.ALL.has(metric) for metric in read)

    @pytest.mark.parametrize(
        ("expr", "unknown"),
        [
            ("up == 0 or vector(1)", []),
            ("rate(nv_inference_request_success[5m])", []),
            ("nv_inference_request_sucess", ["nv_inference_request_sucess"]),
            ("a_b > 0 or c_d > 0", ["a_b", "c_d"]),
            ("{__name__='nv_typo'}", ["nv_typo"]),
            ('{__name__=~"nv_.*"}', []),
            ("triton_heartbeat_ups", ["triton_heartbeat_ups"]),
            ("hami_vgpu_memory", ["hami_vgpu_memory"]),
            ("istio_requests_total + envoy_cluster_upstream_rq", []),
            ("vllm:num_requests_waiting", []),
            ("histogram_quantile(0.9, sum by (le) (nv_inference_first_response_histogram_ms_bucket))", []),
        ],
    )
    def test_of_an_alert(self, expr: str, unknown: list[str]) -> None:
        got = messages(metric_nobody_exports, rule(expr))
        assert got == [f"A reads {metric}, which nobody exports" for metric in unknown]

    @pytest.mark.parametrize("expr", ["sum(", "", "rate(up)"])
    def test_what_is_no_promql_never_fires(self, expr: str) -> None:
        (message,) = messages(metric_nobody_exports, rule(expr))
        assert message.startswith("A: no PromQL")

    @pytest.mark.parametrize("args", [["--metrics-config=summary_latencies=true"], ["sh", "-c", UNKNOWN]])
    def test_quantiles_are_there_where_a_server_is_asked_for_them(self, args: list[Any]) -> None:
        expr = "nv_inference_queue_summary_us"
        server = pods()
        assert messages(metric_nobody_exports, rule(expr)) == []
        server.inputs["spec"]["template"]["spec"]["containers"][0]["args"] = ["tritonserver"]
        assert len(messages(metric_nobody_exports, rule(expr), server)) == 1
        server.inputs["spec"]["template"]["spec"]["containers"][0]["args"] = ["tritonserver", *args]
        assert messages(metric_nobody_exports, rule(expr), server) == []

    def test_the_counters_file_decides_what_dcgm_reports(self) -> None:
        found = rule("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL")
        counters = config_map("counters", counters_csv="# field\nDCGM_FI_DEV_GPU_UTIL, gauge, use\n")
        assert messages(metric_nobody_exports, found) == []
        assert len(messages(metric_nobody_exports, found, counters)) == 1
        assert messages(metric_nobody_exports, rule("DCGM_FI_DEV_GPU_UTIL"), counters) == []

    def test_rules_that_nobody_here_sees_may_record_anything(self) -> None:
        found = rule("a:b:rate5m")
        assert messages(metric_nobody_exports, found) == []
        assert len(messages(metric_nobody_exports, found, prometheus())) == 1
        recorded = made(
            MONITORING, "PrometheusRule", "b", {"groups": [{"rules": [{"record": "a:b:rate5m", "expr": "up"}]}]}
        )
        assert messages(metric_nobody_exports, found, recorded, prometheus()) == []

    @pytest.mark.parametrize(
        ("expr", "unknown"),
        [
            ('rate(nv_inference_count{namespace="$namespace"}[$__rate_interval])', []),
            ('rate(nv_inference_count{model=~"${model:regex}"}[$window])', []),
            ("rate(nv_inference_count[$window:$__interval])", []),
            ("topk($n, nv_gpu_utilization)", []),
            ("nv_gpu_utilization > $limit", []),
            ('$metric{a="b"}', []),
            ('label_replace(up, "a", "$1", "b", "(.+)")', []),
            ("avg(no_such_metric)", ["no_such_metric"]),
        ],
    )  # fmt: skip
    def test_of_a_dashboard(self, expr: str, unknown: list[str]) -> None:
        got = messages(metric_nobody_exports, config_map("b", b_json=board(expr)))
        assert [re.findall(r"reads (\w+)", message)[0] for message in got] == unknown

    def test_choices_of_a_dashboard_are_queries_too(self) -> None:
        text = board("up", pod='label_values(no_such{a="$b"}, pod)', all="label_values(pod)")  # fmt: skip
        (message,) = messages(metric_nobody_exports, config_map("b", b_json=text))
        assert "variable pod reads no_such" in message

    @pytest.mark.parametrize("text", [board("no_such", source="loki"), "{", "[]", '{"panels": null}', UNKNOWN, SEALED])
    def test_what_is_no_dashboard_of_prometheus(self, text: Any) -> None:
        assert messages(metric_nobody_exports, config_map("b", b_json=text)) == []
        assert list(of_dashboards(config_map("b", b_json=text))) == []

    def test_of_an_autoscaler(self) -> None:
        trigger = {"type": "prometheus", "metadata": {"query": "sum(no_such)"}}
        found = made("keda.sh/v1alpha1", "ScaledObject", "a", {"triggers": [trigger, {"type": "cpu"}]})
        rules = "rules: [{seriesQuery: no_such_series}, {seriesQuery: '{'}]"
        got = judged(metric_nobody_exports, found, config_map("rules", rules_yaml=rules))
        assert [one.where for one in got] == ["ScaledObject/a", "ConfigMap/rules"]

    def test_an_unknown_query_hides_no_other(self) -> None:
        other = made(MONITORING, "PrometheusRule", "b", {"groups": [{"rules": [{"alert": "B", "expr": "no_such"}]}]})
        assert outcomes(metric_nobody_exports, rule(UNKNOWN), other) == [Outcome.VIOLATED, Outcome.UNDECIDED]


def gpu_rules(*labels: str) -> Resource:
    overrides = ", ".join(f"{label}: {{resource: {label.removeprefix('exported_')}}}" for label in labels)
    text = f"rules: [{{seriesQuery: DCGM_FI_DEV_GPU_UTIL, resources: {{overrides: {{{overrides}}}}}}}]"
    return config_map("rules", rules_yaml=text)


EXPORTER = service("dcgm-exporter")
BOTH = ("exported_namespace", "exported_pod")


class TestDcgmLabels:
    def moved(self, *labels: str) -> dict[str, Any]:
        steps = [{"sourceLabels": [f"exported_{label}"], "targetLabel": label} for label in labels]
        return {"port": "metrics", "metricRelabelings": steps}

    @pytest.mark.parametrize(
        ("endpoint", "labels", "wrong"),
        [
            ({"honorLabels": True}, (), 0),
            ({}, (), 1),
            ({"honorLabels": None}, (), 1),
            ({}, BOTH, 0),
            ({}, ("exported_pod", "namespace"), 1),
            ({"honorLabels": True}, BOTH, 1),
            ({"honorLabels": True}, ("namespace", "pod"), 0),
        ],
    )
    def test_of_a_monitor(self, endpoint: dict[str, Any], labels: tuple[str, ...], wrong: int) -> None:
        found = [monitor("ServiceMonitor", "dcgm-exporter", {"port": "metrics", **endpoint}), EXPORTER]
        found += [gpu_rules(*labels)] if labels else []
        assert len(messages(prometheus_dcgm_labels, *found)) == wrong

    @pytest.mark.parametrize(("labels", "wrong"), [(("pod", "namespace"), 0), (("pod",), 1), ((), 1)])
    def test_labels_may_be_moved_back(self, labels: tuple[str, ...], wrong: int) -> None:
        found = monitor("ServiceMonitor", "dcgm-exporter", self.moved(*labels))
        assert len(messages(prometheus_dcgm_labels, found, EXPORTER)) == wrong

    @pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor"])
    @pytest.mark.parametrize(
        ("image", "wrong"),
        [("nvcr.io/nvidia/k8s/dcgm-exporter:4", 1), ("projecthami/hami:2.10", 1), ("hami.example.com/server:1", 0)],
    )
    def test_an_exporter_is_known_by_what_runs_in_it(self, kind: str, image: str, wrong: int) -> None:
        got = messages(prometheus_dcgm_labels, monitor(kind, "m"), service(), pods(image=image))
        assert len(got) == wrong

    @pytest.mark.parametrize(
        ("found", "wrong"),
        [
            (chart("dcgm-exporter"), 1),
            (chart("dcgm-exporter", serviceMonitor={"honorLabels": True}), 0),
            (chart("dcgm-exporter", serviceMonitor={"enabled": False}), 0),
            (chart("gpu-operator"), 0),
            (chart("gpu-operator", dcgmExporter={"serviceMonitor": {"enabled": True}}), 1),
            (chart("gpu-operator", dcgmExporter={"serviceMonitor": {"enabled": True, "honorLabels": True}}), 0),
            (chart("kube-prometheus-stack"), 0),
            (chart("hami"), 0),
        ],
    )
    def test_of_a_chart(self, found: Resource, wrong: int) -> None:
        assert len(messages(prometheus_dcgm_labels, found)) == wrong

    @pytest.mark.parametrize(
        ("job", "wrong"),
        [
            ({"job_name": "gpu-metrics"}, 1),
            ({"job_name": "gpu-metrics", "honor_labels": True}, 0),
            ({"job_name": "nodes"}, 0),
        ],
    )
    def test_of_a_scrape_job(self, job: dict[str, Any], wrong: int) -> None:
        text = json.dumps({"scrape_configs": [job]})
        assert len(messages(prometheus_dcgm_labels, config_map("p", prometheus_yml=text))) == wrong
        values = {"prometheusSpec": {"additionalScrapeConfigs": [job]}}
        assert len(messages(prometheus_dcgm_labels, chart("kube-prometheus-stack", prometheus=values))) == wrong

    @pytest.mark.parametrize(("annotations", "wrong"), [(SCRAPE, 1), ({}, 0)])
    def test_the_annotation_job_counts_where_an_exporter_is_annotated(self, annotations: Any, wrong: int) -> None:
        step = {"source_labels": ["__meta_kubernetes_service_annotation_prometheus_io_scrape"]}
        job = {"job_name": "a", "kubernetes_sd_configs": [{"role": "endpoints"}], "relabel_configs": [step]}
        found = [service(annotations=annotations), pods(image="dcgm-exporter:4")]
        text = json.dumps({"scrape_configs": [job]})
        assert len(messages(prometheus_dcgm_labels, *found, config_map("p", prometheus_yml=text))) == wrong

    def test_an_unknown_flag_is_undecided(self) -> None:
        found = monitor("ServiceMonitor", "dcgm-exporter", {"port": "metrics", "honorLabels": UNKNOWN})
        assert outcomes(prometheus_dcgm_labels, found, EXPORTER) == [Outcome.UNDECIDED]


@pytest.mark.parametrize(
    "policy",
    [monitor_selects_nothing, scraped_twice, metric_nobody_exports, prometheus_dcgm_labels],
    ids=lambda policy: policy.name,
)
def test_an_empty_estate_breaks_nothing(policy: Policy) -> None:
    assert messages(policy) == []
