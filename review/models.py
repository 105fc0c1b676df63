"""What a change does to the models, in their owners' words."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from policies.judging.view import Resource
from policies.reading.pods import pods_of
from review.changes import Change, Op, Plan
from review.model_traffic import LEADS, traffic
from review.words import containers, differences, items, labels, mapping, text
from spec import names

_SERVES: Final = "triton"
_NAME: Final = "app.kubernetes.io/name"
_SCALERS: Final = ("HorizontalPodAutoscaler", "ScaledObject")
# What facts tell; everything else that differs is named by its path.
_TOLD: Final[Mapping[str, re.Pattern[str]]] = {
    "Deployment": re.compile(
        r"spec\.replicas|spec\.template\.spec\.(nodeSelector|(initC|c)ontainers\[\d+\]\.(image|env|args|resources)\b)"
    ),
    "HorizontalPodAutoscaler": re.compile(r"spec\.(minReplicas|maxReplicas|metrics)"),
    "ScaledObject": re.compile(r"spec\.(minReplicaCount|maxReplicaCount|triggers)"),
    "ConfigMap": re.compile(r"data\b"),
    "VirtualService": re.compile(r"spec\.http"),
}


@dataclass(frozen=True)
class Fact:
    """One thing about a model that changes.

    Attributes:
        what: in words, e.g. ``v2: image``.
        old: None where there was no such thing.
        new: None where there is none any more.
    """

    what: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class ModelChange:
    """What a change does to one model.

    Attributes:
        name: of the model.
        owner: the team.
        op: create, update or delete.
        facts: what changes; for a new model, what it is.
        others: resources of it that change in other ways, with the paths of some fields.
    """

    name: str
    owner: str
    op: Op
    facts: tuple[Fact, ...]
    others: tuple[tuple[Change, tuple[str, ...]], ...] = ()


@dataclass
class _Model:
    owner: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    revisions: dict[str, dict[str, str]] = field(default_factory=dict)


def model_of(resource: Resource) -> str:
    """The model that a resource in words belongs to, empty for everything else."""
    found = labels(resource)
    return text(found.get(names.MODEL_LABEL) or "") if names.OWNER_LABEL in found else ""


def model_changes(plan: Plan) -> list[ModelChange]:
    """Every model that a change touches, by name."""
    by_model: dict[str, list[Change]] = {}
    for change in plan.changes:
        if name := model_of(change.shown):
            by_model.setdefault(name, []).append(change)
    found = (_model_change(name, changes) for name, changes in sorted(by_model.items()))
    return [one for one in found if one is not None]


def _model_change(name: str, changes: Sequence[Change]) -> ModelChange | None:
    if all(change.op is Op.SAME for change in changes):
        return None
    old = _model(name, [change.before for change in changes if change.before])
    new = _model(name, [change.after for change in changes if change.after])
    if not new.revisions:
        return ModelChange(name, old.owner or new.owner, Op.DELETE, ())
    op = Op.UPDATE if old.revisions else Op.CREATE
    if op is Op.CREATE and len(new.revisions) == 1:
        new.facts = {what: value for what, value in new.facts.items() if what != LEADS}
    others = tuple(_others(changes)) if op is Op.UPDATE else ()
    return ModelChange(name, new.owner, op, tuple(_facts(old, new)), others)


def _facts(old: _Model, new: _Model) -> Iterator[Fact]:
    yield from _different("", {"owner": old.owner} if old.owner else {}, {"owner": new.owner} if old.owner else {})
    for name in dict.fromkeys((*old.revisions, *new.revisions)):
        before, after = old.revisions.get(name), new.revisions.get(name)
        if before is None or after is None:
            yield Fact(f"revision {name}", _brief(before), _brief(after))
        else:
            yield from _different(f"{name}: ", before, after)
    yield from _different("", old.facts, new.facts)


def _different(prefix: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Fact]:
    for what in dict.fromkeys((*old, *new)):
        if old.get(what) != new.get(what):
            yield Fact(f"{prefix}{what}", old.get(what), new.get(what))


def _brief(facts: Mapping[str, str] | None) -> str | None:
    shown = ("image", "replicas", "resources", "pool")
    return None if facts is None else ", ".join(f"{what} {facts[what]}" for what in shown if what in facts)


def _others(changes: Iterable[Change]) -> Iterator[tuple[Change, tuple[str, ...]]]:
    for change in changes:
        if change.op is Op.SAME:
            continue
        told = _TOLD.get(change.shown.kind)
        paths = [path for path in field_paths(change) if not (told and told.match(path))]
        if change.op is not Op.UPDATE or paths:
            yield change, tuple(paths)


def field_paths(change: Change) -> tuple[str, ...]:
    """Paths of the fields that differ, without what follows from others; empty where a resource comes or goes."""
    if change.before is None or change.after is None:
        return ()
    return tuple(dict.fromkeys(differences(change.before.inputs, change.after.inputs)))


def _model(name: str, resources: Iterable[Resource]) -> _Model:
    """What the objects of a model say about it."""
    model, listed = _Model(), list(resources)
    by_key = {(found.kind, text(found.object_name)): found for found in listed}
    for found in listed:
        model.owner = model.owner or text(labels(found).get(names.OWNER_LABEL) or "")
        if found.kind == "Deployment" and labels(found).get(_NAME) == _SERVES:
            revision = text(labels(found).get(names.REVISION_LABEL) or names.DEFAULT_REVISION)
            model.revisions[revision] = _revision(found, by_key)
    model.facts.update(traffic(name, listed))
    return model


def _revision(deployment: Resource, by_key: Mapping[tuple[str, str], Resource]) -> dict[str, str]:
    pods = pods_of(deployment)
    listed = containers(pods)
    main = next((one for one in listed if one.get("name") == "triton"), listed[0] if listed else {})
    name = text(deployment.object_name)
    facts = {"image": text(main.get("image", "")), "replicas": replicas(deployment, by_key)}
    facts["resources"] = _resources(mapping(main.get("resources")))
    if pods and (pool := mapping(pods.field("nodeSelector")).get(names.POOL_LABEL)):
        facts["pool"] = text(pool)
    for kind in _SCALERS:
        if scaler := by_key.get((kind, name)):
            facts["scales by"] = ", ".join(sorted(_signals(scaler)))
    facts |= {f"option {key}": value for key, value in _options(main).items()}
    facts |= {f"variable {text(one.get('name'))}": _variable(one) for one in map(mapping, items(main.get("env")))}
    for one in listed:
        if one is not main:
            facts[f"image of {text(one.get('name'))}"] = text(one.get("image", ""))
            facts[f"arguments of {text(one.get('name'))}"] = " ".join(map(text, items(one.get("args"))))
    config = by_key.get(("ConfigMap", f"{name}-config"))
    facts |= {f"file {file}": f"{text(held)}\n" for file, held in mapping(config.at("data") if config else {}).items()}
    return {what: value for what, value in facts.items() if value}


def replicas(deployment: Resource, by_key: Mapping[tuple[str, str], Resource]) -> str:
    """Replicas of a Deployment in words, be they fixed or scaled."""
    low, high = bounds(deployment, by_key)
    return low if low == high else f"{low} to {high}"


def bounds(deployment: Resource, by_key: Mapping[tuple[str, str], Resource]) -> tuple[str, str]:
    """Fewest and most replicas of a Deployment in words; an autoscaler bears the same name."""
    name = text(deployment.object_name)
    if scaler := by_key.get(("HorizontalPodAutoscaler", name)):
        return text(scaler.at("spec", "minReplicas", default=1)), text(scaler.at("spec", "maxReplicas", default=1))
    if scaler := by_key.get(("ScaledObject", name)):
        fewest, most = (
            scaler.at("spec", "minReplicaCount", default=0),
            scaler.at("spec", "maxReplicaCount", default=100),
        )
        return text(fewest), text(most)
    fixed = text(deployment.at("spec", "replicas", default=1))
    return fixed, fixed


def _signals(scaler: Resource) -> Iterator[str]:
    for metric in map(mapping, items(scaler.at("spec", "metrics"))):
        found = mapping(metric.get(text(metric.get("type", "")).lower()))
        target = mapping(found.get("target"))
        value = next((target[key] for key in ("averageValue", "averageUtilization", "value") if key in target), "")
        name = mapping(found.get("metric")).get("name") or found.get("name") or metric.get("type")
        yield f"{text(name)} {text(value)}".strip()
    for trigger in map(mapping, items(scaler.at("spec", "triggers"))):
        found = mapping(trigger.get("metadata"))
        value = found.get("threshold") or found.get("desiredReplicas") or found.get("value") or ""
        yield f"{text(trigger.get('name') or trigger.get('type'))} {text(value)}".strip()


def _resources(resources: Mapping[str, Any]) -> str:
    requests, limits = mapping(resources.get("requests")), mapping(resources.get("limits"))
    found = {**requests, **{key: value for key, value in limits.items() if "/" in key or key not in requests}}
    return ", ".join(f"{key} {text(value)}" for key, value in sorted(found.items()))


def _options(container: Mapping[str, Any]) -> dict[str, str]:
    """Options of tritonserver by their names."""
    found = [text(one) for one in items(container.get("args")) if text(one).startswith("--")]
    return {one.partition("=")[0]: one.partition("=")[2] or "set" for one in found}


def _variable(variable: Mapping[str, Any]) -> str:
    return text(variable["value"]) if "value" in variable else "from elsewhere" if variable.get("valueFrom") else "set"
