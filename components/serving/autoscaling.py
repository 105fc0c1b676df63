"""The HorizontalPodAutoscaler of one revision."""

from decimal import Decimal
from typing import Final

import pulumi_kubernetes as k8s
from pydantic.alias_generators import to_camel

from components.serving import objects
from spec import names
from spec.resolve import Revision

# Name of the custom metric of each signal, and what one unit of the target is in the metric's own unit: GPU use is
# a ratio of 0 to 1 per pod.
_PODS_METRICS: Final = {
    "gpu": ("container_gpu_usage", Decimal("0.01")),
    "qps": ("triton_requests_per_second", Decimal(1)),
    "queue_ms": ("triton_queue_time_per_request_ms", Decimal(1)),
}


def autoscaler(revision: Revision, namespace: str) -> k8s.autoscaling.v2.HorizontalPodAutoscalerInitArgs:
    """Build the HPA; the revision's scaling must not be fixed."""
    scaling = revision.scaling
    return k8s.autoscaling.v2.HorizontalPodAutoscalerInitArgs(
        metadata=objects.metadata(revision, namespace),
        spec=k8s.autoscaling.v2.HorizontalPodAutoscalerSpecArgs(
            scale_target_ref=k8s.autoscaling.v2.CrossVersionObjectReferenceArgs(
                api_version="apps/v1", kind="Deployment", name=names.workload(revision.model, revision.name)
            ),
            min_replicas=scaling.min,
            max_replicas=scaling.max,
            metrics=[_metric(signal, target) for signal, target in scaling.targets.items()],
            behavior=k8s.autoscaling.v2.HorizontalPodAutoscalerBehaviorArgs(
                scale_up=k8s.autoscaling.v2.HPAScalingRulesArgs(stabilization_window_seconds=scaling.up_seconds),
                scale_down=k8s.autoscaling.v2.HPAScalingRulesArgs(
                    stabilization_window_seconds=scaling.down_seconds,
                    # One pod at a time: every one that goes takes a loaded model with it.
                    policies=[k8s.autoscaling.v2.HPAScalingPolicyArgs(type="Pods", value=1, period_seconds=60)],
                ),
            ),
        ),
    )


def custom_metrics(revision: Revision) -> dict[str, str]:
    """Name of the custom metric of each signal that scales the revision, by the signal's name in the model file."""
    return {
        to_camel(signal): _PODS_METRICS[signal][0] for signal in revision.scaling.targets if signal in _PODS_METRICS
    }


def _metric(signal: str, target: float) -> k8s.autoscaling.v2.MetricSpecArgs:
    if signal in _PODS_METRICS:
        metric, unit = _PODS_METRICS[signal]
        return k8s.autoscaling.v2.MetricSpecArgs(
            type="Pods",
            pods=k8s.autoscaling.v2.PodsMetricSourceArgs(
                metric=k8s.autoscaling.v2.MetricIdentifierArgs(name=metric),
                target=k8s.autoscaling.v2.MetricTargetArgs(
                    type="AverageValue", average_value=quantity(Decimal(str(target)) * unit)
                ),
            ),
        )
    return k8s.autoscaling.v2.MetricSpecArgs(
        type="ContainerResource",
        container_resource=k8s.autoscaling.v2.ContainerResourceMetricSourceArgs(
            container="triton",
            name=signal,
            target=k8s.autoscaling.v2.MetricTargetArgs(type="Utilization", average_utilization=int(target)),
        ),
    )


def quantity(value: Decimal) -> str:
    """A Kubernetes quantity in its canonical form: whole numbers plain, others in thousandths."""
    thousandths = int((value * 1000).to_integral_value())
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)
