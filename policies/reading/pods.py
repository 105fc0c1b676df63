"""Pods inside the objects that make them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from policies.judging.view import Resource, View, dig

# Where each kind keeps the pod that it makes.
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": (),
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
POD_KINDS: Final = tuple(_TEMPLATES)
# What the kinds of GPU devices have in common, see spec.gpu.
GPU_PREFIXES: Final = ("nvidia.com/", "tencent.com/vcuda")


@dataclass(frozen=True)
class Pods:
    """The pods that one object makes.

    Attributes:
        made_by: the object.
        metadata: labels and annotations of its pods.
        spec: their specification.
    """

    made_by: Resource
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of the pods."""
        return dig(self.metadata, "labels", default={})

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the pods."""
        return dig(self.metadata, "annotations", default={})

    @property
    def containers(self) -> Sequence[Mapping[str, Any]]:
        """Containers that run as long as the pod."""
        return dig(self.spec, "containers", default=[])

    @property
    def all_containers(self) -> Sequence[Mapping[str, Any]]:
        """Init containers and containers."""
        return [*dig(self.spec, "initContainers", default=[]), *self.containers]

    @property
    def gpu_limits(self) -> Mapping[str, str]:
        """GPU resources in the limits of all containers, e.g. ``nvidia.com/gpu``; the last one wins."""
        return {
            name: str(amount)
            for container in self.all_containers
            for name, amount in dig(container, "resources", "limits", default={}).items()
            if name.startswith(GPU_PREFIXES)
        }

    @property
    def serves(self) -> bool:
        """Whether Triton runs in them for requests: a heartbeat or a debug twin does not."""
        return self.labels.get("app.kubernetes.io/name") == "triton"

    def field(self, *path: str | int, default: Any = None) -> Any:  # noqa: ANN401  # JSON
        """A value of the pods' specification, see :func:`policies.judging.view.dig`."""
        return dig(self.spec, *path, default=default)


def pods_of(resource: Resource) -> Pods | None:
    """The pods of an object, or None if it makes none."""
    path = _TEMPLATES.get(resource.kind) if resource.is_object else None
    if path is None:
        return None
    template = resource.at(*path, default={}) if path else resource.inputs
    return Pods(resource, dig(template, "metadata", default={}), dig(template, "spec", default={}))


def all_pods(view: View) -> Iterator[Pods]:
    """The pods of every object that makes some."""
    for resource in view.objects:
        if pods := pods_of(resource):
            yield pods


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector, or plain ``matchLabels``, selects labels; an absent one selects nothing."""
    if selector is None:
        return False
    wanted = selector if not {"matchLabels", "matchExpressions"} & set(selector) else selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(rule, labels) for rule in selector.get("matchExpressions") or [])


def _holds(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(rule["key"]), rule.get("values") or []
    match rule["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise ValueError(f"no operator of label selectors: {rule['operator']}")
