"""The ScaledObject of one revision: KEDA makes the HorizontalPodAutoscaler of it."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final, Literal

import pulumi_kubernetes as k8s

from components.crds import CustomSpec, Part
from components.serving import autoscaling, objects, workload
from spec import names
from spec.resolve import Revision
from spec.scaling_metrics import Metric
from spec.signals import Signal, Windows

# An HPA of this name may be there, made by hand or, for KEDA's cache, not gone yet: without this KEDA refuses.
_TAKES_OVER: Final = {"scaledobject.keda.sh/transfer-hpa-ownership": "true"}


class ScaleTarget(Part):
    """What is scaled."""

    api_version: Literal["apps/v1"]
    kind: Literal["Deployment"]
    name: str


class HpaConfig(Part):
    """The HPA that KEDA makes."""

    name: str
    behavior: autoscaling.Behavior


class Advanced(Part):
    """How KEDA scales."""

    horizontal_pod_autoscaler_config: HpaConfig


class Trigger(Part):
    """One thing to scale on; what ``metadata`` holds depends on the type, and all of it is text."""

    type: Literal["prometheus", "cpu", "memory", "cron"]
    name: str
    metric_type: Literal["AverageValue", "Utilization"]
    metadata: dict[str, str]


class ScaledObject(CustomSpec):
    """Tells KEDA what to scale, and on what."""

    API_VERSION = "keda.sh/v1alpha1"
    KIND = "ScaledObject"

    scale_target_ref: ScaleTarget
    min_replica_count: int
    max_replica_count: int
    # KEDA warns about it where nothing is scaled to zero.
    cooldown_period: int | None
    advanced: Advanced
    triggers: list[Trigger]


def metadata(revision: Revision, namespace: str) -> k8s.meta.v1.ObjectMetaArgs:
    """Name, namespace and labels, as those of the HPA."""
    result = objects.metadata(revision, namespace)
    result.annotations = dict(_TAKES_OVER)
    return result


def scaled_object(revision: Revision, namespace: str, windows: Windows, prometheus: str | None) -> ScaledObject:
    """Build the ScaledObject; the revision's scaling must not be fixed.

    Where Prometheus does not answer, the HPA keeps the replicas that there are, so no fallback is set: any fixed
    number would be too low under load and a waste without it.

    Args:
        revision: what is scaled.
        namespace: of the revision.
        windows: ranges of the queries.
        prometheus: URL of the Prometheus that is asked; None only where no signal needs one.
    """
    scaling, name = revision.scaling, names.workload(revision.model, revision.name)
    return ScaledObject(
        scale_target_ref=ScaleTarget(api_version="apps/v1", kind="Deployment", name=name),
        min_replica_count=scaling.min,
        max_replica_count=scaling.max,
        # A replica that was woken up must not go before it had the time to come.
        cooldown_period=None if scaling.min else max(scaling.down_seconds, workload.progress_seconds(revision)),
        # Alerts and dashboards know the HPA by this name.
        advanced=Advanced(
            horizontal_pod_autoscaler_config=HpaConfig(name=name, behavior=autoscaling.behavior(scaling))
        ),
        triggers=list(_triggers(revision, namespace, windows, prometheus or "")),
    )


def _triggers(revision: Revision, namespace: str, windows: Windows, prometheus: str) -> Iterator[Trigger]:
    scaling = revision.scaling
    for signal, target in scaling.targets.items():
        if metric := scaling.metrics.get(signal):
            yield Trigger(
                type="prometheus",
                name=metric.signal.metric,
                metric_type="AverageValue",
                metadata={
                    "serverAddress": prometheus,
                    "query": query(metric, revision, namespace, windows),
                    "threshold": _number(metric.target),
                    **_null_values(metric, revision),
                },
            )
        elif signal in {"cpu", "memory"}:
            container = {"value": str(int(target)), "containerName": autoscaling.CONTAINER}
            kind: Literal["cpu", "memory"] = "cpu" if signal == "cpu" else "memory"
            yield Trigger(type=kind, name=signal, metric_type="Utilization", metadata=container)
    for index, entry in enumerate(scaling.schedule):
        times = {"timezone": entry.timezone, "start": entry.start, "end": entry.end}
        replicas = {"desiredReplicas": str(entry.replicas)}
        name = f"schedule-{index}"
        yield Trigger(type="cron", name=name, metric_type="AverageValue", metadata=times | replicas)


def _null_values(metric: Metric, revision: Revision) -> dict[str, str]:
    """What a query without a result means, and from which value on the last replica stays.

    No replica, where there may be none: then it counts as nothing to do. Otherwise Prometheus has lost the pods, and
    a 0 would take replicas away from a loaded model.
    """
    if revision.scaling.min > 0:
        return {"ignoreNullValues": "false"}
    # Any use keeps the last replica; that by the heartbeat, which goes on for as long as there is one, must not.
    least = _number(metric.target) if revision.heartbeat else "0"
    return {"ignoreNullValues": "true", "activationThreshold": least}


def query(metric: Metric, revision: Revision, namespace: str, windows: Windows) -> str:
    """The sum over the revision's pods of what an HPA would see of each: KEDA's HPA divides it by the replicas."""
    name = names.workload(revision.model, revision.name)
    found = [metric.signal, metric.signal.older] if metric.signal.older else [metric.signal]
    each = [one.query(_matchers(one, name, namespace, metric.models), [one.pod_label], windows) for one in found if one]
    return f"sum({' or '.join(f'({one})' for one in each)})" if len(each) > 1 else f"sum({each[0]})"


def _matchers(signal: Signal, workload_name: str, namespace: str, models: tuple[str, ...]) -> list[str]:
    """The pods of one Deployment in one namespace, and in them the models that count."""
    # A ReplicaSet adds the hash of its template, and its pods five characters, to the Deployment's name.
    matchers = [
        f'{signal.namespace_label}="{namespace}"',
        f'{signal.pod_label}=~"{workload_name}-[a-z0-9]+-[a-z0-9]{{5}}"',
    ]
    if len(models) > 1:
        # Names inside Triton hold letters, digits, - and _, and dots, which a regular expression reads as anything.
        matchers.append(f'{signal.model_label}=~"{"|".join(model.replace(".", "[.]") for model in models)}"')
    elif models:
        matchers.append(f'{signal.model_label}="{models[0]}"')
    return matchers


def _number(value: Decimal) -> str:
    return format(value.normalize(), "f")
