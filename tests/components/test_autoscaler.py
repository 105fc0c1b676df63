"""The HorizontalPodAutoscaler: current fields, targets in the metric's own unit, windows as declared."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.serving.autoscaling import quantity
from tests.components.conftest import POOLS, PROD_MODELS, Render

Renderer = Callable[..., Render]
SCALED = [name for name in PROD_MODELS if name != "fixed"]


def pods(name: str, value: str) -> dict[str, Any]:
    return {
        "type": "Pods",
        "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": value}},
    }


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
            ("qps: 300", [pods("triton_requests_per_second", "300")]),
            ("qps: 0.5", [pods("triton_requests_per_second", "500m")]),
            ("qps: 0.001", [pods("triton_requests_per_second", "1m")]),
            ("queueMs: 5", [pods("triton_queue_time_per_request_ms", "5")]),
            ("queueMs: 2.5", [pods("triton_queue_time_per_request_ms", "2500m")]),
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
         ("sliced", pods("triton_queue_time_per_request_ms", "10")),
         ("qgpu", pods("triton_queue_time_per_request_ms", "10"))],
    )  # fmt: skip
    def test_without_a_signal_there_is_one_that_fits_the_pool(
        self, name: str, metric: dict[str, Any], prod: Render
    ) -> None:
        assert prod.one("HorizontalPodAutoscaler", f"{name}-v1")["spec"]["metrics"] == [metric]

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
