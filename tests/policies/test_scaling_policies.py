"""Policies about scaling: absent fields, unknown values, and the last number that passes."""

from decimal import Decimal
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.monitoring.adapter_rules import config
from policies.judging.judge import Outcome
from policies.judging.levels import Level
from policies.judging.policy import Policy
from policies.judging.unknown import UNKNOWN
from policies.judging.view import Resource
from policies.reading import promql
from policies.reading.adapters import AdapterRule, adapter_config
from policies.reading.exporters import is_counter
from policies.reading.metric_units import _OWN_RATIOS
from policies.scaling import (
    adapter_rule_placeholders,
    adapter_rule_raw_counter,
    autoscaler_bounds,
    autoscaler_metric_served,
    autoscaler_metric_unit,
    autoscaler_target,
    replicas_beside_autoscaler,
    replicas_for_production,
)
from spec.signals import SIGNALS, Windows
from tests.policies.judging import deployment, judged, made, messages, outcomes

AUTOSCALING = "autoscaling/v2"
KEDA = "keda.sh/v1alpha1"
GPU = "container_gpu_usage"
QUERY = "sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[2m]))"
SERIES = 'nv_inference_request_success{namespace!="",pod!=""}'
OVERRIDES = {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}
RULE = {
    "seriesQuery": SERIES,
    "resources": {"overrides": OVERRIDES},
    "name": {"as": "requests"},
    "metricsQuery": QUERY,
}


def workload(name: str = "triton", kind: str = "Deployment", **spec: Any) -> Resource:
    found = deployment({}, name)
    return made("apps/v1", kind, name, {**found.inputs["spec"], **spec})


def hpa(name: str = "triton", *metrics: Any, **spec: Any) -> Resource:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return made(
        AUTOSCALING,
        "HorizontalPodAutoscaler",
        name,
        {"scaleTargetRef": target, "maxReplicas": 9, "metrics": list(metrics), **spec},
    )


def scaled_object(name: str = "triton", *triggers: Any, **spec: Any) -> Resource:
    return made(KEDA, "ScaledObject", name, {"scaleTargetRef": {"name": name}, "triggers": list(triggers), **spec})


def pods_metric(name: str, value: Any) -> dict[str, Any]:
    return {
        "type": "Pods",
        "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": value}},
    }


def prometheus(query: str, threshold: Any = "5", **fields: Any) -> dict[str, Any]:
    return {"type": "prometheus", "metadata": {"query": query, "threshold": threshold}, **fields}


def rules(*found: dict[str, Any], external: bool = False) -> Resource:
    text = yaml.safe_dump({"externalRules" if external else "rules": list(found)})
    return Resource("kubernetes:core/v1:ConfigMap", "rules", {"metadata": {"name": "rules"}, "data": {"c.yaml": text}})


class TestReplicasBesideAutoscaler:
    def test_no_replicas_at_all_are_the_right_number(self) -> None:
        assert messages(replicas_beside_autoscaler, workload(), hpa()) == []

    @pytest.mark.parametrize("replicas", [0, 1, 3])
    @pytest.mark.parametrize("by", [hpa(), scaled_object()], ids=["hpa", "keda"])
    def test_any_number_is_one_too_many(self, replicas: int, by: Resource) -> None:
        (message,) = messages(replicas_beside_autoscaler, workload(replicas=replicas), by)
        assert f"is {replicas}" in message
        assert by.key in message

    def test_another_namespace_or_kind_is_another_workload(self) -> None:
        elsewhere = made("apps/v1", "Deployment", "triton", {"replicas": 3}, "other")
        assert messages(replicas_beside_autoscaler, elsewhere, workload(kind="StatefulSet", replicas=3), hpa()) == []

    def test_an_unknown_number_hides_no_known_one(self) -> None:
        found = [workload("a", replicas=UNKNOWN), workload("b", replicas=2), hpa("a"), hpa("b")]
        assert outcomes(replicas_beside_autoscaler, *found) == [Outcome.VIOLATED, Outcome.UNDECIDED]


class TestTarget:
    @pytest.mark.parametrize(
        ("target", "said"),
        [
            ({"apiVersion": "apps/v1", "kind": "Deployment", "name": "triton"}, []),
            ({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "triton"}, []),
            ({"kind": "Deployment", "name": "triton"}, ["apiVersion ''"]),
            ({"apiVersion": "apps/v1beta2", "kind": "Deployment", "name": "triton"}, ["'apps/v1beta2'"]),
            ({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "triton"}, ["no StatefulSet/triton"]),
            ({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "triton"}, ["no replicas"]),
            ({"apiVersion": "apps/v1", "kind": "Deployment"}, ["no replicas"]),
            (None, ["no replicas"]),
        ],
    )
    def test_of_an_hpa(self, target: Any, said: list[str]) -> None:
        found = messages(autoscaler_target, workload(), hpa(scaleTargetRef=target))
        assert len(found) == len(said)
        assert all(one in message for one, message in zip(said, found, strict=True))

    def test_keda_fills_in_a_deployment(self) -> None:
        assert messages(autoscaler_target, workload(), scaled_object()) == []
        assert len(messages(autoscaler_target, scaled_object())) == 1

    def test_a_chart_may_bring_the_workload(self) -> None:
        chart = Resource("kubernetes:helm.sh/v3:Release", "c", {"chart": "x", "namespace": "serving"})
        assert messages(autoscaler_target, chart, hpa()) == []

    def test_two_at_one_target_are_told_at_the_second(self) -> None:
        (found,) = judged(autoscaler_target, workload(), hpa(), scaled_object())
        assert found.where == "ScaledObject/triton"
        assert "HorizontalPodAutoscaler/triton" in found.message

    def test_a_target_that_is_not_known_yet_is_undecided(self) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": UNKNOWN}
        assert outcomes(autoscaler_target, workload(), hpa(scaleTargetRef=target)) == [Outcome.UNDECIDED]


class TestMetricUnit:
    def test_every_ratio_of_the_model_file_is_known(self) -> None:
        assert {GPU, "container_gpu_usage_mig", "container_gpu_usage_hami"} == _OWN_RATIOS

    @pytest.mark.parametrize("metric", [*sorted(_OWN_RATIOS), "nv_gpu_utilization", "dcgm_fi_prof_gr_engine_active"])
    @pytest.mark.parametrize(("value", "wrong"), [("600m", 0), ("1", 0), (1, 0), ("1001m", 1), ("60", 1), (60, 1)])
    def test_a_ratio_is_at_most_one(self, metric: str, value: Any, wrong: int) -> None:
        assert len(messages(autoscaler_metric_unit, hpa("a", pods_metric(metric, value)))) == wrong

    @given(st.integers(1, 100))
    def test_the_percent_that_is_meant_is_in_the_message(self, percent: int) -> None:
        found = messages(autoscaler_metric_unit, hpa("a", pods_metric(GPU, str(percent))))
        assert [f"{percent} % is {percent * 10}m" in one for one in found] == ([True] if percent > 1 else [])

    @pytest.mark.parametrize(("value", "wrong"), [("800m", 1), ("60", 0)])
    def test_a_percent_is_above_one(self, value: str, wrong: int) -> None:
        found = messages(autoscaler_metric_unit, hpa("a", pods_metric("DCGM_FI_DEV_GPU_UTIL", value)))
        assert len(found) == wrong

    def test_other_metrics_take_any_quantity(self) -> None:
        for one in SIGNALS:
            if one.unit != "ratio":
                assert messages(autoscaler_metric_unit, hpa("a", pods_metric(one.metric, "50"))) == []
        assert len(messages(autoscaler_metric_unit, hpa("a", pods_metric("queue", "a lot")))) == 1

    @pytest.mark.parametrize(
        ("metric", "said"),
        [
            ({"type": "Pods"}, "no field pods"),
            ({"type": "Gpu", "gpu": {}}, "does not know"),
            ({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Value", "value": "1"}}}, "'Value'"),
            ({"type": "Resource", "resource": {"target": {"type": "Utilization"}}}, "averageUtilization"),
            ({"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 70}}, "v2beta1"),
            ({"type": "Object", "object": {"target": {"type": "AverageValue"}}}, "averageValue"),
            ({"type": "External", "external": {"metric": {"name": "q", "selector": {"matchLabels": {}}},
                                               "target": {"type": "Value", "value": "1"}}}, "without a selector"),
        ],
    )  # fmt: skip
    def test_forms_that_the_api_does_not_take(self, metric: dict[str, Any], said: str) -> None:
        (message,) = messages(autoscaler_metric_unit, hpa("a", metric))
        assert said in message

    def test_every_metric_is_looked_at(self) -> None:
        found = messages(autoscaler_metric_unit, hpa("a", pods_metric(GPU, "60"), {"type": "Pods"}))
        assert [message.split()[0] for message in found] == ["metrics[0]", "metrics[1]"]

    @pytest.mark.parametrize("metrics", [None, []])
    def test_no_metrics_are_kubernetes_default(self, metrics: Any) -> None:
        assert messages(autoscaler_metric_unit, hpa("a", metrics=metrics)) == []

    @pytest.mark.parametrize(
        ("trigger", "said"),
        [
            (prometheus('nv_inference_pending_request_count{model="a"}'), ""),
            (prometheus('nv_inference_pending_request_count{pod!=""}'), "everybody"),
            (prometheus("vector(1)"), ""),
            (prometheus('sum(x{a="b"}'), "no PromQL"),
            (prometheus('x{a="b"}', threshold=None), "no number"),
            (prometheus('x{a="b"}', metricType="Utilization"), "cpu and memory only"),
            (prometheus('avg(nv_gpu_utilization{a="b"})', "60"), "ratio"),
            (prometheus('sum(nv_gpu_utilization{a="b"})', "9"), ""),
            (prometheus('avg(nv_gpu_utilization{a="b"}) * 100', "60"), ""),
            (prometheus('x{a="b"}', "2", name=GPU), "ratio"),
            (prometheus('x{a="b"}', "2", name=GPU, metricType="Value"), ""),
            ({"type": "cpu", "metricType": "Value"}, "cpu trigger"),
            ({"type": "cron", "metadata": {"desiredReplicas": "2"}}, ""),
        ],
    )
    def test_triggers(self, trigger: dict[str, Any], said: str) -> None:
        found = messages(autoscaler_metric_unit, scaled_object("a", trigger))
        assert len(found) == bool(said)
        assert said in "".join(found)

    def test_an_unknown_target_is_undecided(self) -> None:
        assert outcomes(autoscaler_metric_unit, hpa("a", pods_metric(GPU, UNKNOWN))) == [Outcome.UNDECIDED]


class TestBounds:
    @pytest.mark.parametrize(
        ("found", "wrong"),
        [
            (hpa(minReplicas=3, maxReplicas=3), 0),
            (hpa(minReplicas=3, maxReplicas=2), 1),
            (hpa(minReplicas=None, maxReplicas=1), 0),
            (hpa(maxReplicas=0), 1),
            (hpa(maxReplicas=None), 1),
            (hpa(minReplicas=0), 1),
            (scaled_object("a", {"type": "cpu"}), 1),
            (scaled_object("a"), 1),
            (scaled_object("a", {"type": "kafka"}), 0),
            (scaled_object("a", {"type": "cpu"}, minReplicaCount=1), 0),
            (scaled_object("a", {"type": "cpu"}, minReplicaCount=101), 1),
            (scaled_object("a", {"type": "kafka"}, maxReplicaCount=0), 1),
            (scaled_object("a", {"type": "cron", "metadata": {"desiredReplicas": "0"}}), 1),
            (scaled_object("a", {"type": "cron", "metadata": {"desiredReplicas": "1"}}), 0),
            (scaled_object("a", prometheus('nv_inference_pending_request_count{model="a"}')), 1),
            (scaled_object("a", prometheus('DCGM_FI_DEV_GPU_UTIL{pod=~"a.*"}')), 1),
            (scaled_object("a", prometheus('sum(rate(istio_requests_total{app="a"}[2m]))')), 0),
            (scaled_object("a", prometheus("sum(")), 1),
        ],
    )
    def test_room_and_a_way_to_wake(self, found: Resource, wrong: int) -> None:
        assert len(messages(autoscaler_bounds, found)) == wrong

    def test_an_unknown_bound_is_undecided(self) -> None:
        assert outcomes(autoscaler_bounds, hpa(maxReplicas=UNKNOWN)) == [Outcome.UNDECIDED]


def service(name: str, **labels: str) -> Resource:
    spec = {"selector": {"app": name.removesuffix("-alias")}}
    return made("core/v1", "Service", name, spec, labels=labels)


def routes(*rules: dict[str, Any]) -> Resource:
    return made("networking.istio.io/v1", "VirtualService", "routes", {"hosts": ["h"], "http": list(rules)})


def to(host: str, weight: int | None = None) -> dict[str, Any]:
    return {"destination": {"host": host}, **({} if weight is None else {"weight": weight})}


class TestReplicasForProduction:
    def test_it_is_for_production_only(self) -> None:
        assert replicas_for_production.dev is Level.DISABLED
        assert judged(replicas_for_production, workload(replicas=1), environment="dev") == []

    @pytest.mark.parametrize(
        ("found", "where"),
        [
            ([workload(replicas=3)], []),
            ([workload(replicas=2)], ["Deployment/triton"]),
            ([workload()], ["Deployment/triton"]),
            ([workload(), hpa(minReplicas=3)], []),
            ([workload(), hpa(minReplicas=2)], ["HorizontalPodAutoscaler/triton"]),
            ([workload(), hpa()], ["HorizontalPodAutoscaler/triton"]),
            ([workload(), scaled_object()], ["ScaledObject/triton"]),
            ([workload(), scaled_object(minReplicaCount=3)], []),
            ([workload(kind="StatefulSet", replicas=1)], ["StatefulSet/triton"]),
            ([deployment({"image": "redis:8"}, "redis")], []),
        ],
    )
    def test_the_fewest_count(self, found: list[Resource], where: list[str]) -> None:
        assert [one.where for one in judged(replicas_for_production, *found)] == where

    @pytest.mark.parametrize(
        ("rule", "wrong"),
        [
            ({"route": [to("a", 100), to("b", 0)]}, 0),
            ({"route": [to("a", 99), to("b", 1)]}, 1),
            ({"route": [to("a"), to("b")]}, 0),
            ({"route": [to("b")]}, 1),
            ({"route": [to("b.serving.svc.cluster.local")]}, 1),
            ({"route": [to("a")], "mirror": {"host": "b"}}, 0),
            ({"route": [to("a")], "mirrors": [{"destination": {"host": "b"}}]}, 0),
            ({"route": [to("b")], "match": [{"headers": {"x-tester": {"exact": "yes"}}}]}, 0),
            ({"route": [to("b")], "match": [{"headers": {"x": {"exact": "y"}}}, {"uri": {"prefix": "/"}}]}, 1),
            ({"route": [to("a")]}, 1),  # its own Service is called by whoever likes
        ],
    )
    def test_only_what_somebody_waits_for(self, rule: dict[str, Any], wrong: int) -> None:
        found = [workload("a", replicas=3), workload("b", replicas=1), service("a"), service("b"), routes(rule)]
        assert len(messages(replicas_for_production, *found)) == wrong

    def test_another_service_in_front_leads_past_the_routes(self) -> None:
        found = [workload("b", replicas=1), service("b"), routes({"route": [to("a", 100), to("b", 0)]})]
        assert messages(replicas_for_production, *found) == []
        assert len(messages(replicas_for_production, *found, service("b-alias"))) == 1

    def test_unknown_replicas_are_undecided(self) -> None:
        assert Outcome.UNDECIDED in outcomes(replicas_for_production, workload(replicas=UNKNOWN))


class TestMetricServed:
    HPA = hpa("a", pods_metric("requests", "5"))

    def test_without_an_adapter_nothing_is_known(self) -> None:
        assert messages(autoscaler_metric_served, self.HPA) == []

    @pytest.mark.parametrize(
        ("rule", "served"),
        [
            (RULE, True),
            (RULE | {"name": {"as": "others"}}, False),
            (RULE | {"name": {"as": "req${1}"}}, True),
            (RULE | {"name": {"as": "${1}_per_second"}}, False),
            (RULE | {"name": {"matches": "^(.*)_total$"}}, True),  # nobody here knows the series
            ({key: value for key, value in RULE.items() if key != "name"}, False),
            (RULE | {"seriesQuery": 'requests{pod!=""}', "name": None}, True),
            (RULE | {"seriesQuery": '{__name__=~"^req.*"}', "name": None}, True),
            (RULE | {"seriesQuery": '{__name__=~"^rep.*"}', "name": None}, False),
            (RULE | {"seriesQuery": "requests{", "name": None}, False),
        ],
    )
    def test_by_the_names_of_the_rules(self, rule: dict[str, Any], served: bool) -> None:
        assert bool(messages(autoscaler_metric_served, self.HPA, rules(rule))) is not served

    def test_resources_need_no_rule(self) -> None:
        cpu = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 9}},
        }
        assert messages(autoscaler_metric_served, hpa("a", cpu), rules(RULE)) == []

    def test_another_server_may_answer_for_external_metrics(self) -> None:
        metric = {"type": "External", "external": {"metric": {"name": "queue"}}}
        assert messages(autoscaler_metric_served, hpa("a", metric), rules(RULE)) == []
        assert len(messages(autoscaler_metric_served, hpa("a", metric), rules(RULE, external=True))) == 1

    def test_an_adapter_for_external_metrics_only_serves_no_pods(self) -> None:
        assert len(messages(autoscaler_metric_served, self.HPA, rules(RULE, external=True))) == 1

    @pytest.mark.parametrize(("default", "wrong"), [({}, 0), ({"default": True}, 0), ({"default": False}, 1)])
    def test_a_chart_has_rules_of_its_own_unless_told_otherwise(self, default: dict[str, bool], wrong: int) -> None:
        values = {"rules": {"custom": [RULE | {"name": {"as": "others"}}], **default}}
        chart = Resource("kubernetes:helm.sh/v3:Release", "c", {"chart": "prometheus-adapter", "values": values})
        assert len(messages(autoscaler_metric_served, self.HPA, chart)) == wrong


class TestRawCounter:
    @pytest.mark.parametrize(
        ("query", "raw"),
        [
            ("rate(nv_inference_count[2m])", []),
            ("increase(a_total[2m]) / increase(b_total[2m])", []),
            ("rate(a_total[2m]) / b_total", ["b_total"]),
            ("avg_over_time(a_total[5m])", ["a_total"]),
            ("max_over_time(rate(a_total[1m])[5m:1m])", []),
            ("count(a_total)", []),
            ("absent(a_total) or b_count", ["b_count"]),
            ("x unless a_total", []),
            ("x and on (pod) a_total", []),
            ("a_total and on (pod) x", ["a_total"]),
            ("topk(3, {__name__='a_total'})", ["a_total"]),
            ("-a_total", ["a_total"]),
            ("job:a_total:rate5m", []),
        ],
    )
    def test_what_makes_a_rate_of_it(self, query: str, raw: list[str]) -> None:
        found = messages(adapter_rule_raw_counter, scaled_object("a", prometheus(query)))
        assert found == [f"triggers[0] uses the counter {one} as it is" for one in raw]

    @pytest.mark.parametrize(
        ("metric", "counter"),
        [
            ("nv_inference_request_success", True),
            ("nv_inference_queue_duration_us", True),
            ("nv_inference_pending_request_count", False),
            ("nv_inference_request_summary_us", False),
            ("nv_inference_request_summary_us_count", True),
            ("nv_energy_consumption", True),
            ("nv_gpu_utilization", False),
            ("DCGM_FI_DEV_GPU_UTIL", False),
            ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", True),
            ("hami_gpu_shared_count", False),
            ("hami_scheduler_bind_total", True),
            ("triton_heartbeat_replicas", False),
            ("triton_heartbeat_requests_total", True),
            ("http_requests_total", True),
            ("queue_us", True),
        ],
    )
    def test_which_metrics_only_grow(self, metric: str, counter: bool) -> None:
        assert is_counter(metric) is counter

    def test_the_series_of_a_rule_stands_for_its_placeholder(self) -> None:
        assert messages(adapter_rule_raw_counter, rules(RULE)) == []
        query = "max by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})"
        assert len(messages(adapter_rule_raw_counter, rules(RULE | {"metricsQuery": query}))) == 1

    def test_what_is_no_promql_is_told_elsewhere(self) -> None:
        assert messages(adapter_rule_raw_counter, rules(RULE | {"metricsQuery": "sum("})) == []


class TestPlaceholders:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({}, []),
            ({"metricsQuery": None}, ["LabelMatchers", "GroupBy", "no PromQL"]),
            ({"metricsQuery": "sum(rate(<<.Series>>[2m]))"}, ["LabelMatchers", "GroupBy"]),
            ({"metricsQuery": 'sum by (<< .GroupBy >>) (<<.Series>>{<< .LabelMatchers >>,a="b"})'}, []),
            ({"metricsQuery": "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>)"}, ["no PromQL"]),
            ({"metricsQuery": "sum by (<<.GroupBy>>) (irate(<<.Series>>{<<.LabelMatchers>>}))"}, ["no PromQL"]),
            ({"metricsQuery": 'sum by (<<index .GroupBySlice 0>>) (x{pod=~"<<index .LabelValuesByName `pod`>>"})'}, []),
            ({"metricsQuery": 'x{<<.LabelMatchers>>,namespace="a"} * on (<<.GroupBy>>) y'}, ["namespace a"]),
            ({"seriesQuery": 'x{namespace="default",pod!=""}'}, ["namespace default"]),
            ({"seriesQuery": 'x{namespace=~"default|serving"}'}, ["namespace default|serving"]),
            ({"seriesQuery": 'x{namespace=~".+",pod=""}'}, []),
            ({"seriesQuery": "x{"}, ["seriesQuery that is no PromQL"]),
            ({"resources": None}, ["belongs to nothing"]),
            ({"resources": {"template": "<<.Resource>>"}}, []),
            ({"resources": {"overrides": {"pod": {"resource": "pod"}}}}, ["none for namespace"]),
            ({"resources": {"overrides": {"ns": {"resource": "namespace"}}}}, ["none for pod"]),
            ({"resources": {"overrides": {"ns": {"resource": "namespace"}, "svc": {"resource": "service"}}}}, []),
            ({"resources": {"overrides": {"node": {"resource": "node"}}}}, []),
            ({"seriesQuery": 'x{ns="a"}', "resources": {"overrides": {"ns": {"resource": "namespace"},
                                                                      "pod": {"resource": "pod"}}}}, ["namespace a"]),
        ],
    )  # fmt: skip
    def test_of_a_rule(self, change: dict[str, Any], said: list[str]) -> None:
        found = messages(adapter_rule_placeholders, rules(RULE | change))
        assert len(found) == len(said), found
        assert all(one in message for one, message in zip(said, found, strict=True))

    def test_an_external_metric_names_no_pod(self) -> None:
        rule = RULE | {"metricsQuery": "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m]))", "resources": None}
        assert messages(adapter_rule_placeholders, rules(rule, external=True)) == []

    def test_every_rule_is_looked_at(self) -> None:
        broken = RULE | {"metricsQuery": "sum(x)"}
        found = messages(adapter_rule_placeholders, rules(broken, RULE, broken))
        assert {message.split()[0] for message in found} == {"rules[0]", "rules[2]"}

    def test_rules_that_are_no_yaml_are_told(self) -> None:
        found = rules(RULE)
        found.inputs["data"]["c.yaml"] += "\n\t- {"
        (message,) = messages(adapter_rule_placeholders, found)
        assert "cannot be read" in message

    @pytest.mark.parametrize("data", [None, UNKNOWN, {"a.txt": "rules"}, {"a.txt": UNKNOWN}, {"a": "# seriesQuery"}])
    @pytest.mark.parametrize("policy", [adapter_rule_placeholders, adapter_rule_raw_counter])
    def test_other_config_maps_hold_no_rules(self, policy: Policy, data: Any) -> None:
        found = Resource("kubernetes:core/v1:ConfigMap", "a", {"metadata": {"name": "a"}, "data": data})
        assert messages(policy, found) == []

    @pytest.mark.parametrize("data", [UNKNOWN, {"config.yaml": UNKNOWN}])
    def test_an_adapter_whose_rules_are_not_known_yet_is_undecided(self, data: Any) -> None:
        inputs = {"metadata": {"name": "prometheus-adapter"}, "data": data}
        found = Resource("kubernetes:core/v1:ConfigMap", "prometheus-adapter", inputs)
        assert outcomes(adapter_rule_placeholders, found) == [Outcome.UNDECIDED]


@pytest.mark.parametrize("metric", [one.metric for one in SIGNALS])
def test_the_managed_adapter_serves_what_models_scale_on(metric: str) -> None:
    found = adapter_config(rules(*yaml.safe_load(config(Windows("5m", "2m")))["rules"]))
    assert found is not None
    assert any(rule.serves(metric) for rule in found.rules)
    assert not any(rule.serves(f"{metric}_x") for rule in found.rules)


def test_a_rule_without_a_series_asks_for_nothing() -> None:
    assert AdapterRule("rules[0]", external=False, fields={"seriesQuery": "vector(1)"}).series == ""


@given(st.decimals(min_value=Decimal("0.001"), max_value=1, places=3))
def test_every_share_of_a_card_is_a_ratio(share: Decimal) -> None:
    assert messages(autoscaler_metric_unit, hpa("a", pods_metric(GPU, f"{int(share * 1000)}m"))) == []


@pytest.mark.parametrize("text", ["sum(x) by (a)", "x{a='b'} offset 5m", "histogram_quantile(0.9, sum by (le) (x))"])
def test_metrics_are_found_wherever_they_stand(text: str) -> None:
    assert promql.metrics(promql.parse(text)) == {"x"}
