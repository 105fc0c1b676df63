"""What a change does to what runs: restarts, new routes, versions of what serves the nodes, what is lost."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policies.judging.view import Resource
from policies.reading.pods import pods_of
from review.changes import Change, Op, Plan
from review.models import field_paths, model_of, replicas
from review.words import containers, text, title

_ROUTES: Final = frozenset(
    {"VirtualService", "DestinationRule", "Gateway", "Service", "HTTPRoute", "GRPCRoute", "EnvoyFilter"}
)
_RELEASE: Final = "Release"
_ROLLS: Final = "rolls over all GPU nodes: running pods may be killed"
_NEW_SIDECARS: Final = "the control plane and the gateways restart; pods keep their old sidecar until they restart"
# Parts whose version matters to everything else, by a part of the image's name or by the name of the chart.
_WATCHED: Final[Mapping[str, tuple[str, str]]] = {
    "k8s-device-plugin": ("NVIDIA device plugin", _ROLLS),
    "dcgm-exporter": ("dcgm-exporter", "rolls over all GPU nodes; names and units of GPU metrics may change with it"),
    "hami": ("HAMi", _ROLLS),
    "istiod": ("Istio", _NEW_SIDECARS),
    "base": ("kinds of Istio", "objects of a kind that goes are lost"),
    "cni": ("Istio CNI", "rolls over all nodes: pods that start meanwhile may have to wait"),
    "gateway": ("Istio gateway", "open connections end when the old gateway pods go"),
    "kube-prometheus-stack": ("Prometheus operator", "Prometheus may restart; kinds are not upgraded by Helm"),
    "prometheus-operator": ("Prometheus operator", "Prometheus may restart"),
    "keda": ("KEDA", "nobody scales while its operator restarts"),
}
_LOST: Final[Mapping[str, str]] = {
    "Namespace": "everything in it goes with it",
    "CustomResourceDefinition": "every object of this kind goes with it",
    "PersistentVolumeClaim": "its data may go with it",
    "PersistentVolume": "its data may go with it",
    "StatefulSet": "its pods go; its volumes stay and have to be cleaned up by hand",
    "Prometheus": "Prometheus stops; its history may go with its volumes",
    "Alertmanager": "silences and pending alerts are lost",
    "Secret": "whatever reads it fails at its next start",
    "Node": "its pods are killed",
    "NodeGroup": "all of its nodes and their pods go",
    "Bucket": "what is stored in it is lost",
    "BucketV2": "what is stored in it is lost",
    "Key": "nothing that it encrypts can be read any more",
    "FileSystem": "what is stored in it is lost",
    "Cluster": "everything in it goes with it",
}


@dataclass(frozen=True)
class Effect:
    """Something that happens to one thing.

    Attributes:
        what: the resource, as policies name it.
        how: in words.
    """

    what: str
    how: str


@dataclass(frozen=True)
class Version:
    """A part of the platform that changes its version.

    Attributes:
        part: its name.
        old: version as it is.
        new: version as it is going to be.
        warning: what that does.
    """

    part: str
    old: str
    new: str
    warning: str


@dataclass(frozen=True)
class Effects:
    """What a change does to what runs.

    Attributes:
        restarts: pods that are made anew.
        routes: models and gateways of which only routes change: nothing restarts.
        versions: parts of the platform that change their version.
        losses: what goes, or goes and comes again, and takes something with it.
    """

    restarts: tuple[Effect, ...]
    routes: tuple[str, ...]
    versions: tuple[Version, ...]
    losses: tuple[Effect, ...]


def effects(plan: Plan) -> Effects:
    """What a change does to what runs."""
    updated = plan.of(Op.UPDATE, Op.REPLACE)
    after = {(one.kind, text(one.object_name)): one for one in (change.after for change in plan.changes) if one}
    restarts = tuple(effect for change in updated for effect in _restart(change, after))
    versions = dict.fromkeys(found for change in updated for found in _versions(change))
    losses = tuple(_losses(plan.of(Op.DELETE, Op.REPLACE)))
    return Effects(restarts, tuple(_only_routes(plan)), tuple(versions), losses)


def _restart(change: Change, after: Mapping[tuple[str, str], Resource]) -> Iterator[Effect]:
    old, new = change.before, change.after
    if old is None or new is None:
        return
    name = title(new)
    match new.kind:
        case "Deployment" | "StatefulSet" | "DaemonSet" if change.op is Op.REPLACE:
            yield Effect(name, "is deleted and made anew: all of its pods go at once")
        case "Deployment" if _template(old) != _template(new):
            yield Effect(name, f"{_many(replicas(new, after))}, {_strategy(new)}")
        case "StatefulSet" if _template(old) != _template(new):
            yield Effect(name, f"{_many(replicas(new, after))}, one after another")
        case "DaemonSet" if _template(old) != _template(new):
            yield Effect(name, f"on every node that it runs on, {_at_once(new)}")
        case "Pod" if change.op is Op.REPLACE:
            yield Effect(name, "is deleted and made anew")
        case "Prometheus" | "Alertmanager" if old.at("spec") != new.at("spec"):
            yield Effect(name, "the operator restarts its pods where they differ")
        case "Release" | "Chart" if old.inputs != new.inputs:
            yield Effect(name, "Helm restarts those of its pods that differ")


def _template(resource: Resource) -> tuple[object, object]:
    pods = pods_of(resource)
    # Both with the hash of the files that the pods read.
    return (pods.metadata, pods.spec) if pods else ({}, {})


def _many(count: str) -> str:
    return f"{count} replica" if count == "1" else f"{count} replicas"


def _strategy(deployment: Resource) -> str:
    kind = deployment.at("spec", "strategy", "type", default="RollingUpdate")
    if kind == "Recreate":
        return "all at once: nothing serves in between"
    surge = text(deployment.at("spec", "strategy", "rollingUpdate", "maxSurge", default="25%"))
    gone = text(deployment.at("spec", "strategy", "rollingUpdate", "maxUnavailable", default="25%"))
    if surge in {"0", "0%"}:
        return f"{gone} at a time: an old one ends before a new one starts"
    return f"up to {surge} new at a time" + ("" if gone in {"0", "0%"} else f", up to {gone} missing meanwhile")


def _at_once(daemons: Resource) -> str:
    kind = daemons.at("spec", "updateStrategy", "type", default="RollingUpdate")
    if kind == "OnDelete":
        return "when somebody deletes its pods"
    return f"{text(daemons.at('spec', 'updateStrategy', 'rollingUpdate', 'maxUnavailable', default=1))} at a time"


def _only_routes(plan: Plan) -> Iterator[str]:
    """Models, and other resources, of which routes change and no pod restarts."""
    kinds: dict[str, set[bool]] = {}
    for change in plan.of(Op.CREATE, Op.UPDATE, Op.REPLACE, Op.DELETE):
        name = model_of(change.shown) or title(change.shown)
        kinds.setdefault(name, set()).add(change.op is Op.UPDATE and change.shown.kind in _ROUTES)
    for name, found in sorted(kinds.items()):
        if found == {True}:
            yield name


def _versions(change: Change) -> Iterator[Version]:
    old, new = change.before, change.after
    if old is None or new is None:
        return
    if new.kind == _RELEASE:
        chart = text(new.at("chart", default="")).rstrip("/").rpartition("/")[2]
        before, after = (text(one.at("version") or one.at("chart", default="")) for one in (old, new))
        if before != after and chart in _WATCHED:
            yield Version(_WATCHED[chart][0], before, after, _WATCHED[chart][1])
        return
    before, after = _images(old), _images(new)
    for container, image in after.items():
        part = next((name for name in _WATCHED if name in image), None)
        if part and container in before and before[container] != image:
            yield Version(_WATCHED[part][0], before[container], image, _WATCHED[part][1])


def _images(resource: Resource) -> dict[str, str]:
    return {text(one.get("name")): text(one.get("image", "")) for one in containers(pods_of(resource))}


def _losses(gone: Iterable[Change]) -> Iterator[Effect]:
    for change in gone:
        kind, name = change.shown.kind, title(change.shown)
        if change.op is Op.REPLACE:
            why = ", ".join(field_paths(change)[:3]) or "a field that cannot be changed in place"
            lost = f"; {_LOST[kind]}" if kind in _LOST else ""
            yield Effect(name, f"is deleted and made anew ({why}){lost}")
        elif kind in _LOST:
            yield Effect(name, f"is deleted: {_LOST[kind]}")


def platform_changes(plan: Plan) -> list[tuple[Change, tuple[str, ...]]]:
    """What changes outside of models, components and providers, with the paths of some fields."""
    found = []
    for change in plan.of(Op.CREATE, Op.UPDATE, Op.REPLACE, Op.DELETE):
        shown = change.shown
        plain = shown.type.startswith(("pulumi:", "triton-estate:"))
        if not plain and not model_of(shown):
            found.append((change, field_paths(change)))
    return found
