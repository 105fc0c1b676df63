"""What a change does to the resources of a stack, whoever found it out: the engine, or two runs of the program."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from policies.judging.view import Resource
from review.words import in_words
from spec.estate import EstateSpec


class Op(StrEnum):
    """What happens to one resource."""

    SAME = "same"
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True)
class Change:
    """What happens to one resource.

    Attributes:
        op: what.
        old: as it is, None where it is not there yet.
        new: as it is going to be, None where it goes.
    """

    op: Op
    old: Resource | None
    new: Resource | None

    @cached_property
    def before(self) -> Resource | None:
        """The resource as it is, in words."""
        return in_words(self.old) if self.old else None

    @cached_property
    def after(self) -> Resource | None:
        """The resource as it is going to be, in words."""
        return in_words(self.new) if self.new else None

    @property
    def shown(self) -> Resource:
        """The resource to name it by, in words."""
        found = self.after or self.before
        if found is None:
            raise ValueError("a change of nothing")
        return found


@dataclass(frozen=True)
class Side:
    """A stack before or after the change.

    Attributes:
        spec: its settings.
        resources: all of them, with the marks of :mod:`policies.judging.unknown`.
    """

    spec: EstateSpec
    resources: tuple[Resource, ...]


@dataclass(frozen=True)
class Plan:
    """What a change does to a stack.

    Attributes:
        stack: its name.
        before: how it is; None where nobody can tell.
        after: how it is going to be.
        changes: one for each resource, those that stay as they are as well.
    """

    stack: str
    before: Side | None
    after: Side
    changes: tuple[Change, ...]

    def of(self, *ops: Op) -> list[Change]:
        """The changes of some kinds."""
        return [change for change in self.changes if change.op in ops]


# Fields that the provider or the API server changes only by making the object anew; those of the metadata always do.
_FIXED: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "Deployment": (("spec", "selector"),),
    "DaemonSet": (("spec", "selector"),),
    "StatefulSet": (("spec", "selector"), ("spec", "serviceName"), ("spec", "volumeClaimTemplates")),
    "Job": (("spec", "selector"), ("spec", "template")),
    "Pod": (("spec",),),
    "Service": (("spec", "clusterIP"),),
    "PersistentVolumeClaim": (("spec", "storageClassName"), ("spec", "accessModes")),
    "Node": (("status",),),
    "RoleBinding": (("roleRef",),),
    "ClusterRoleBinding": (("roleRef",),),
}
_NAMES: Final = (("metadata", "name"), ("metadata", "namespace"))


def between(stack: str, before: Side | None, after: Side) -> Plan:
    """The plan from what the program registers before and after: what the engine would do, as far as that tells."""
    old = _by_name(before.resources if before else ())
    new = _by_name(after.resources)
    changes = [_change(old.get(key), new.get(key)) for key in dict.fromkeys((*old, *new))]
    return Plan(stack, before, after, tuple(changes))


def _by_name(resources: Iterable[Resource]) -> dict[tuple[str, str], Resource]:
    return {(found.type, found.name): found for found in resources}


def _change(old: Resource | None, new: Resource | None) -> Change:
    if old is None or new is None:
        return Change(Op.DELETE if new is None else Op.CREATE, old, new)
    update = Change(Op.UPDATE, old, new)
    before, after = update.before, update.after
    if before is None or after is None or before.inputs == after.inputs:
        return Change(Op.SAME, old, new)
    fixed = (*_NAMES, *_FIXED.get(after.kind, ())) if after.is_object else ()
    if any(before.at(*path) != after.at(*path) for path in fixed):
        return Change(Op.REPLACE, old, new)
    return update
