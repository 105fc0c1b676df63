"""How many pods workloads have, and which budget keeps them when a node is drained."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from policies.judging.view import Resource, View, dig
from policies.reading.pods import Pods, pods_of

# What runs a number of equal pods.
WORKLOADS: Final = ("Deployment", "StatefulSet", "ReplicaSet")
# KEDA's default for the most.
_KEDA_MOST: Final = 100


@dataclass(frozen=True)
class Workload:
    """Equal pods.

    Attributes:
        made_by: the object.
        pods: what each is.
        fewest: least number of them, by an autoscaler or the object itself.
        most: largest number of them.
    """

    made_by: Resource
    pods: Pods
    fewest: int
    most: int


def workloads(view: View) -> Iterator[Workload]:
    """The workloads of a stack, with the ranges of their autoscalers."""
    scaled = dict(_scaled(view))
    for found in view.of_kind(*WORKLOADS):
        if pods := pods_of(found):
            own = found.at("spec", "replicas", default=1)
            fewest, most = scaled.get((found.kind, found.namespace, found.object_name), (own, own))
            yield Workload(found, pods, fewest, most)


def _scaled(view: View) -> Iterator[tuple[tuple[str, str, str], tuple[int, int]]]:
    """Kind, namespace and name of what an autoscaler scales, and from where to where."""
    for found in view.of_kind("HorizontalPodAutoscaler"):
        spec = found.at("spec", default={})
        fewest = dig(spec, "minReplicas", default=1)
        yield _target(found, spec), (fewest, dig(spec, "maxReplicas", default=fewest))
    for found in view.of_kind("ScaledObject"):
        spec = found.at("spec", default={})
        yield (
            _target(found, spec),
            (dig(spec, "minReplicaCount", default=0), dig(spec, "maxReplicaCount", default=_KEDA_MOST)),
        )


def _target(found: Resource, spec: Mapping[str, Any]) -> tuple[str, str, str]:
    target = dig(spec, "scaleTargetRef", default={})
    return dig(target, "kind", default="Deployment"), found.namespace, dig(target, "name", default="")


def share(value: int | str, whole: int) -> int:
    """A number of pods, or a share of them, rounded up as Kubernetes does."""
    if isinstance(value, int):
        return value
    return math.ceil(int(value.removesuffix("%")) * whole / 100)
