"""The HorizontalPodAutoscaler of one revision."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, Literal

import pulumi_kubernetes as k8s
from pydantic.alias_generators import to_camel

from components.crds import Part
from components.serving import objects
from spec import names
from spec.resolve import Revision
from spec.scaling import Scaling
from spec.scaling_metrics import Metric

# The container that cpu and memory are measured of; others in the pod would blur them.
CONTAINER: Final = "triton"


class ScalingPolicy(Part):
    """How many replicas may come or go in a time."""

    type: Literal["Pods"]
    value: int
    period_seconds: int


class ScalingRules(Part):
    """One direction of scaling."""

    stabilization_window_seconds: int
    policies: list[ScalingPolicy] | None = None


class Behavior(Part):
    """How fast an HPA follows its metrics."""

    scale_up: ScalingRules
    scale_down: ScalingRules


def behavior(scaling: Scaling) -> Behavior:
    """Up as soon as the window lets it, down one by one."""
    return Behavior(
        scale_up=ScalingRules(stabilization_window_seconds=scaling.up_seconds),
        scale_down=ScalingRules(
            stabilization_window_seconds=scaling.down_seconds,
            # One pod at a time: every one that goes takes a loaded model with it.
            policies=[ScalingPolicy(type="Pods", value=1, period_seconds=60)],
        ),
    )


def autoscaler(revision: Revision, namespace: str) -> k8s.autoscaling.v2.HorizontalPodAutoscalerInitArgs:
    """Build the HPA; the revision's scaling must not be fixed."""
    scaling = revision.scaling
    wanted = behavior(scaling)
    return k8s.autoscaling.v2.HorizontalPodAutoscalerInitArgs(
        metadata=objects.metadata(revision, namespace),
        spec=k8s.autoscaling.v2.HorizontalPodAutoscalerSpecArgs(
            scale_target_ref=k8s.autoscaling.v2.CrossVersionObjectReferenceArgs(
                api_version="apps/v1", kind="Deployment", name=names.workload(revision.model, revision.name)
            ),
            min_replicas=scaling.min,
            max_replicas=scaling.max,
            metrics=[
                _pods(scaling.metrics[signal]) if signal in scaling.metrics else _container(signal, target)
                for signal, target in scaling.targets.items()
            ],
            behavior=k8s.autoscaling.v2.HorizontalPodAutoscalerBehaviorArgs(
                scale_up=_rules(wanted.scale_up), scale_down=_rules(wanted.scale_down)
            ),
        ),
    )


def custom_metrics(revision: Revision) -> dict[str, str]:
    """Name of the metric of each signal that scales the revision, by the signal's name in the model file."""
    return {to_camel(signal): metric.signal.metric for signal, metric in revision.scaling.metrics.items()}


def _rules(rules: ScalingRules) -> k8s.autoscaling.v2.HPAScalingRulesArgs:
    policies = [
        k8s.autoscaling.v2.HPAScalingPolicyArgs(type=one.type, value=one.value, period_seconds=one.period_seconds)
        for one in rules.policies or []
    ]
    return k8s.autoscaling.v2.HPAScalingRulesArgs(
        stabilization_window_seconds=rules.stabilization_window_seconds, policies=policies or None
    )


def _pods(metric: Metric) -> k8s.autoscaling.v2.MetricSpecArgs:
    """A metric of the custom metrics API, averaged over the pods."""
    return k8s.autoscaling.v2.MetricSpecArgs(
        type="Pods",
        pods=k8s.autoscaling.v2.PodsMetricSourceArgs(
            metric=k8s.autoscaling.v2.MetricIdentifierArgs(
                name=metric.signal.metric, selector=_selector(metric.signal.model_label, metric.models)
            ),
            target=k8s.autoscaling.v2.MetricTargetArgs(type="AverageValue", average_value=quantity(metric.target)),
        ),
    )


def _selector(label: str, models: Sequence[str]) -> k8s.meta.v1.LabelSelectorArgs | None:
    """Series of these models only: a server may hold others, whose requests are counted apart."""
    if len(models) > 1:
        requirement = k8s.meta.v1.LabelSelectorRequirementArgs(key=label, operator="In", values=list(models))
        return k8s.meta.v1.LabelSelectorArgs(match_expressions=[requirement])
    return k8s.meta.v1.LabelSelectorArgs(match_labels={label: models[0]}) if models else None


def _container(signal: str, target: float) -> k8s.autoscaling.v2.MetricSpecArgs:
    """Use of the container's own request, which Kubernetes measures itself."""
    return k8s.autoscaling.v2.MetricSpecArgs(
        type="ContainerResource",
        container_resource=k8s.autoscaling.v2.ContainerResourceMetricSourceArgs(
            container=CONTAINER,
            name=signal,
            target=k8s.autoscaling.v2.MetricTargetArgs(type="Utilization", average_utilization=int(target)),
        ),
    )


def quantity(value: Decimal) -> str:
    """A Kubernetes quantity in its canonical form: whole numbers plain, others in thousandths."""
    thousandths = int((value * 1000).to_integral_value())
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)
