"""What policies look at: the resources of one stack, and the stack's own settings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from policies.judging.settings import StackPolicies
from policies.judging.unknown import CannotDecide, known
from spec import names
from spec.estate import EstateSpec

_KUBERNETES: Final = "kubernetes:"
_DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True)
class Resource:
    """One resource as the program registers it.

    Attributes:
        type: Pulumi type token, e.g. ``kubernetes:apps/v1:Deployment``.
        name: Pulumi name.
        inputs: its properties, see :func:`policies.judging.unknown.plain`.
        urn: the engine's name for it, empty where there is no engine.
    """

    type: str
    name: str
    inputs: Mapping[str, Any]
    urn: str = ""

    @property
    def is_object(self) -> bool:
        """Whether it is a Kubernetes object rather than a component, a provider, a chart or a cloud resource."""
        return self.type.startswith(_KUBERNETES) and not self.type.startswith("kubernetes:helm.sh/")

    @property
    def kind(self) -> str:
        """Kubernetes kind, or the last part of the type token."""
        return self.type.rpartition(":")[2]

    @property
    def api(self) -> str:
        """Kubernetes API group and version, e.g. ``apps/v1``; empty for anything else."""
        return self.type.split(":")[1] if self.is_object else ""

    @property
    def object_name(self) -> str:
        """Kubernetes name, or the Pulumi name of anything else."""
        return self.at("metadata", "name", default=self.name) if self.is_object else self.name

    @property
    def namespace(self) -> str:
        """Namespace of a Kubernetes object; ``default`` where it says none."""
        return self.at("metadata", "namespace", default=_DEFAULT_NAMESPACE)

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of a Kubernetes object."""
        return self.at("metadata", "labels", default={})

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of a Kubernetes object."""
        return self.at("metadata", "annotations", default={})

    @property
    def model(self) -> str | None:
        """The model that a Kubernetes object belongs to."""
        return self.labels.get(names.MODEL_LABEL)

    @property
    def owner(self) -> str | None:
        """The team that a Kubernetes object belongs to."""
        return self.labels.get(names.OWNER_LABEL)

    @property
    def key(self) -> str:
        """How waivers and messages name it: ``<kind>/<name>``, or ``<type token>/<name>`` outside Kubernetes."""
        try:
            name = self.object_name
        except CannotDecide:
            name = self.name  # what policies say about it still needs a name
        return f"{self.kind if self.is_object else self.type}/{name}"

    def at(self, *path: str | int, default: Any = None) -> Any:  # noqa: ANN401  # JSON
        """The value at a path of keys and indices, or ``default`` where the path ends early; see :func:`dig`."""
        return dig(self.inputs, *path, default=default)


def dig(value: Any, *path: str | int, default: Any = None) -> Any:  # noqa: ANN401  # JSON
    """The value at a path inside plain data, or ``default`` where the path ends early or at null.

    Raises:
        CannotDecide: something on the path, or the value itself, is unknown or secret.
    """
    if not known(value):  # an item of a list
        raise CannotDecide(f"a value is {'secret' if repr(value) == '<secret>' else 'unknown'}")
    for step in path:
        if isinstance(value, Mapping) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, Sequence) and not isinstance(value, str) and isinstance(step, int):
            value = value[step] if step < len(value) else None
        else:
            return default
        if not known(value):
            raise CannotDecide(f"{_text(path)} is {'secret' if repr(value) == '<secret>' else 'unknown'}")
    return default if value is None else value


def _text(path: Iterable[str | int]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


@dataclass(frozen=True)
class View:
    """The resources of one stack.

    Attributes:
        stack: name of the stack.
        spec: the stack's settings.
        policies: the settings of the policies for this stack.
        resources: everything that the program registers, in order.
    """

    stack: str
    spec: EstateSpec
    policies: StackPolicies = field(default_factory=StackPolicies)
    resources: tuple[Resource, ...] = ()

    @property
    def prod(self) -> bool:
        """Whether the stack is production."""
        return self.spec.environment == "prod"

    @cached_property
    def objects(self) -> tuple[Resource, ...]:
        """The Kubernetes objects."""
        return tuple(found for found in self.resources if found.is_object)

    @cached_property
    def _by_kind(self) -> Mapping[str, tuple[Resource, ...]]:
        found: dict[str, list[Resource]] = {}
        for resource in self.resources:
            found.setdefault(resource.kind, []).append(resource)
        return {kind: tuple(resources) for kind, resources in found.items()}

    def of_kind(self, *kinds: str) -> Iterator[Resource]:
        """The resources of some kinds, e.g. ``Deployment``."""
        for kind in kinds:
            yield from self._by_kind.get(kind, ())

    def find(self, kind: str, namespace: str, name: str) -> Resource | None:
        """One Kubernetes object by its name."""
        return next(
            (one for one in self.of_kind(kind) if (one.namespace, one.object_name) == (namespace, name)),
            None,
        )
