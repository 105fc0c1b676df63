"""Autoscalers: what they scale, between which numbers, and on what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from policies.judging.view import Resource, dig
from policies.reading import promql
from policies.reading.exporters import is_of_replicas

HPA: Final = "HorizontalPodAutoscaler"
KEDA: Final = "ScaledObject"


@dataclass(frozen=True)
class Autoscaler:
    """A HorizontalPodAutoscaler or a ScaledObject. What it does not say is as Kubernetes or KEDA take it then.

    Attributes:
        resource: the object.
    """

    resource: Resource

    @property
    def keda(self) -> bool:
        """Whether KEDA makes the HPA."""
        return self.resource.kind == KEDA

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name of what it scales."""
        kind = self._target("kind", "Deployment" if self.keda else "")
        return kind, self.resource.namespace, self._target("name", "")

    @property
    def api(self) -> str:
        """The apiVersion of what it scales."""
        return self._target("apiVersion", "apps/v1" if self.keda else "")

    @property
    def min(self) -> int:
        """Fewest replicas: an HPA keeps one, KEDA none."""
        return self.resource.at("spec", self.bounds[0], default=0 if self.keda else 1)

    @property
    def max(self) -> int | None:
        """Most replicas: an HPA has to say it."""
        return self.resource.at("spec", self.bounds[1], default=100 if self.keda else None)

    @property
    def bounds(self) -> tuple[str, str]:
        """What the fields of the two are called."""
        return ("minReplicaCount", "maxReplicaCount") if self.keda else ("minReplicas", "maxReplicas")

    @property
    def triggers(self) -> Sequence[Mapping[str, Any]]:
        """What KEDA scales on."""
        return self.resource.at("spec", "triggers", default=[])

    def _target(self, field: str, default: str) -> str:
        return self.resource.at("spec", "scaleTargetRef", field, default=default)


def autoscaler(found: Resource) -> Autoscaler | None:
    """An object as an autoscaler, or None if it is none."""
    return Autoscaler(found) if found.is_object and found.kind in (HPA, KEDA) else None


def wakes(trigger: Mapping[str, Any]) -> bool:
    """Whether a trigger can be active without a replica."""
    kind = dig(trigger, "type", default="")
    if kind == "cron":
        return str(dig(trigger, "metadata", "desiredReplicas", default="0")) != "0"
    if kind != "prometheus":
        return kind not in ("cpu", "memory", "")
    try:
        metrics = promql.metrics(promql.parse(dig(trigger, "metadata", "query", default="")))
    except ValueError:
        return False
    return any(not is_of_replicas(metric) for metric in metrics)
