"""The HorizontalPodAutoscaler: current fields, targets in the metric's own unit, windows as declared."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.serving.autoscaling import quantity
from tests.components.conftest import POOLS, PROD_MODELS, TENSORS, Render

Renderer = Callable[..., Render]
ENSEMBLE = f"""\
config:
  {{platform: ensemble, {TENSORS}, ensemble_scheduling: {{step: [
      {{model_name: decode, model_version: -1, input_map: {{x: a}}, output_map: {{y: c}}}},
      {{model_name: classify, model_version: -1, input_map: {{x: c}}, output_map: {{y: b}}}}]}}}}
members: {{decode: {{}}, classify: {{}}}}
scaling: {{max: 5, qps: 5, queueMs: 5, pending: 5}}
"""
SCALED = [name for name in PROD_MODELS if name != "fixed"]


def pods(name: str, value: str, model: str = "") -> dict[str, Any]:
    metric: dict[str, Any] = {"name": name} | ({"selector": {"matchLabels": {"model": model}}} if model else {})
    return {"type": "Pods", "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": value}}}


def container(name: str, percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "ContainerResource", "containerResource": {"container": "triton", "name": name, "target": target}}


class TestTarget:
    @pytest.mark.parametrize("name", SCALED)
    def test_it_scales_the_deployment_of_its_model(self, name: str, prod: Render) -> None:
        found = prod.one("HorizontalPodAutoscaler", f"{name}-v1")
        target = found["spec"]["scaleTargetRef"]
        deployment = prod.one("Deployment", target["name"])
        assert target == {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"{name}-v1"}
        assert deployment["metadata"]["namespace"] == found["metadata"]["namespace"]

    @pytest.mark.parametrize("name", SCALED)
    def test_it_is_of_the_current_version(self, name: str, prod: Render) -> None:
        assert prod.one("HorizontalPodAutoscaler", f"{name}-v1")["apiVersion"] == "autoscaling/v2"

    def test_no_field_of_an_older_version_is_anywhere(self, prod: Render) -> None:
        text = json.dumps(prod.objects())
        assert not any(word in text for word in ("v2beta", "metricName", "targetAverageValue", "targetCPU"))

    @pytest.mark.parametrize(("more", "low", "high"), [("", 3, 9), ("scaling: {min: 4, max: 6}\n", 4, 6)])
    def test_it_keeps_within_the_declared_replicas(self, more: str, low: int, high: int, render: Renderer) -> None:
        spec = render({"m": more}, environment="prod").one("HorizontalPodAutoscaler")["spec"]
        assert (spec["minReplicas"], spec["maxReplicas"]) == (low, high)


class TestMetrics:
    @pytest.mark.parametrize(
        ("scaling", "metrics"),
        [
            ("gpu: 60", [pods("container_gpu_usage", "600m")]),
            ("gpu: 100", [pods("container_gpu_usage", "1")]),
            ("gpu: 1", [pods("container_gpu_usage", "10m")]),
            ("qps: 300", [pods("triton_requests_per_second", "300", "m")]),
            ("qps: 0.5", [pods("triton_requests_per_second", "500m", "m")]),
            ("qps: 0.001", [pods("triton_requests_per_second", "1m", "m")]),
            ("queueMs: 5", [pods("triton_queue_time_per_request_ms", "5", "m")]),
            ("queueMs: 2.5", [pods("triton_queue_time_per_request_ms", "2500m", "m")]),
            ("pending: 8", [pods("triton_pending_requests", "8", "m")]),
            ("cpu: 50", [container("cpu", 50)]),
            ("memory: 80", [container("memory", 80)]),
            ("cpu: 50, gpu: 70", [pods("container_gpu_usage", "700m"), container("cpu", 50)]),
        ],
    )
    def test_a_signal_becomes_a_metric_in_its_own_unit(
        self, scaling: str, metrics: list[dict[str, Any]], render: Renderer
    ) -> None:
        more = f"resources: {{cpu: 1, memory: 2Gi, gpu: 1}}\nscaling: {{max: 5, {scaling}}}\n"
        found = render({"m": more}, gpuPools=POOLS[:1])
        assert found.one("HorizontalPodAutoscaler")["spec"]["metrics"] == metrics

    @pytest.mark.parametrize(
        ("name", "metric"),
        [("five-lines", container("cpu", 70)), ("whole", pods("container_gpu_usage", "700m")),
         ("sliced", pods("triton_queue_time_per_request_ms", "10", "sliced")),
         ("qgpu", pods("triton_queue_time_per_request_ms", "10", "qgpu"))],
    )  # fmt: skip
    def test_without_a_signal_there_is_one_that_fits_the_pool(
        self, name: str, metric: dict[str, Any], prod: Render
    ) -> None:
        assert prod.one("HorizontalPodAutoscaler", f"{name}-v1")["spec"]["metrics"] == [metric]

    @pytest.mark.parametrize(
        ("pool", "request_", "metric", "value"),
        [
            ("whole", "1", "container_gpu_usage", "600m"),
            ("mig", "{mig: 1g.10gb}", "container_gpu_usage_mig", "600m"),
            ("hami", "0.5", "container_gpu_usage_hami", "300m"),
            ("hami", "{cores: 25, memory: 8Gi}", "container_gpu_usage_hami", "150m"),
        ],
    )
    def test_gpu_use_has_the_name_and_the_share_of_the_pools_mode(
        self, pool: str, request_: str, metric: str, value: str, render: Renderer
    ) -> None:
        more = f"resources: {{cpu: 1, memory: 2Gi, gpu: {request_}}}\nscaling: {{max: 5, gpu: 60}}\n"
        found = render({"m": more}, gpuPools=[one for one in POOLS if one["name"] == pool])
        assert found.one("HorizontalPodAutoscaler")["spec"]["metrics"] == [pods(metric, value)]
        assert found.outputs["models"]["m"]["scalingMetrics"] == {"gpu": metric}

    def test_what_waits_for_an_ensemble_waits_in_its_steps(self, render: Renderer) -> None:
        metrics = render({"m": ENSEMBLE}).one("HorizontalPodAutoscaler")["spec"]["metrics"]
        asked = {metric["pods"]["metric"]["name"]: metric["pods"]["metric"]["selector"] for metric in metrics}
        steps = {"matchExpressions": [{"key": "model", "operator": "In", "values": ["decode", "classify"]}]}
        assert asked == {
            "triton_requests_per_second": {"matchLabels": {"model": "m"}},
            "triton_queue_time_per_request_ms": steps,
            "triton_pending_requests": steps,
        }

    def test_the_name_inside_triton_is_the_one_that_counts(self, render: Renderer) -> None:
        more = f"config: {{name: resnet_50, backend: python, {TENSORS}}}\nscaling: {{max: 5, qps: 5}}\n"
        (metric,) = render({"m": more}).one("HorizontalPodAutoscaler")["spec"]["metrics"]
        assert metric == pods("triton_requests_per_second", "5", "resnet_50")

    @pytest.mark.parametrize("name", SCALED)
    def test_a_container_metric_names_the_container_that_there_is(self, name: str, prod: Render) -> None:
        for metric in prod.one("HorizontalPodAutoscaler", f"{name}-v1")["spec"]["metrics"]:
            if metric["type"] == "ContainerResource":
                assert metric["containerResource"]["container"] == prod.triton(f"{name}-v1")["name"]
                assert metric["containerResource"]["name"] in prod.triton(f"{name}-v1")["resources"]["requests"]


class TestBehaviour:
    def test_by_default_up_at_once_and_down_one_by_one(self, prod: Render) -> None:
        behaviour = prod.one("HorizontalPodAutoscaler", "five-lines-v1")["spec"]["behavior"]
        assert behaviour == {
            "scaleUp": {"stabilizationWindowSeconds": 0},
            "scaleDown": {
                "stabilizationWindowSeconds": 300,
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
            },
        }

    @pytest.mark.parametrize(
        ("field", "side"), [("scaleUpStabilization", "scaleUp"), ("scaleDownStabilization", "scaleDown")]
    )
    @pytest.mark.parametrize(("written", "seconds"), [("600s", 600), ("1h", 3600), ("0s", 0)])
    def test_a_declared_window_is_the_window(
        self, field: str, side: str, written: str, seconds: int, render: Renderer
    ) -> None:
        behaviour = render({"m": f"scaling: {{{field}: {written}}}\n"}).one("HorizontalPodAutoscaler")["spec"][
            "behavior"
        ]
        assert behaviour[side]["stabilizationWindowSeconds"] == seconds


class TestQuantity:
    @pytest.mark.parametrize(
        ("value", "text"),
        [("0.6", "600m"), ("1", "1"), ("300", "300"), ("2.5", "2500m"), ("0.001", "1m"), ("19.6", "19600m")],
    )
    def test_it_is_in_the_form_that_kubernetes_prints(self, value: str, text: str) -> None:
        assert quantity(Decimal(value)) == text

    @given(st.integers(min_value=1, max_value=10**12))
    def test_it_means_the_same_number(self, thousandths: int) -> None:
        text = quantity(Decimal(thousandths) / 1000)
        assert (int(text[:-1]) if text.endswith("m") else int(text) * 1000) == thousandths
