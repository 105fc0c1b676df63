"""Policies about security."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.cloud import bucket_exposed, iam_wildcard
from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy, object_policy
from policies.judging.view import Resource, View, dig
from policies.kinds import kind_nobody_judges, object_too_large
from policies.leaks import secret_in_plain_sight
from policies.network import network_open
from policies.rbac import service_account_token, wide_rbac
from policies.reading.each import each_pods
from policies.reading.pods import Pods, pods_of
from spec import names
from spec.images import parse_image
from spec.ingress import CONTROL_NAMESPACE

__all__ = [
    "bucket_exposed",
    "iam_wildcard",
    "image_registry",
    "kind_nobody_judges",
    "network_open",
    "object_too_large",
    "pod_hardening",
    "pod_security_level",
    "secret_in_plain_sight",
    "service_account_token",
    "wide_rbac",
]

_ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_RESTRICTED: Final = "restricted"
_LEVELS: Final = ("privileged", "baseline", _RESTRICTED)
_SECCOMP: Final = frozenset({"RuntimeDefault", "Localhost"})
# What the level `restricted` leaves of the kinds of volumes; hostPath belongs to the policy host-access.
_VOLUMES: Final = frozenset(
    {"name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    | {"image", "hostPath"}
)
_DOCKER_HUB: Final = "docker.io"


@object_policy(
    "pod-security-level",
    "Every namespace says which Pod Security level it enforces, the strictest that its pods allow",
    why="Without a level the namespace takes a pod that mounts the node's disk or runs as root on the node.",
    fix=f"label the namespace {_ENFORCE}: restricted; only {names.GPU_NAMESPACE}, and {CONTROL_NAMESPACE} with "
    "ingress.sidecars, need privileged",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def pod_security_level(found: Resource, view: View) -> Iterator[str]:
    """Labels of namespaces."""
    if found.kind != "Namespace":
        return
    level, name = dig(found.labels, _ENFORCE), found.object_name
    if level is None:
        yield f"no label {_ENFORCE}"
    elif level not in _LEVELS:
        yield f"{_ENFORCE} is {level}, and there are {', '.join(_LEVELS)}"
    elif name == view.spec.namespace and level != _RESTRICTED:
        yield f"the models' namespace enforces {level} instead of {_RESTRICTED}"
    elif level == "privileged" and name not in _privileged(view):
        yield "enforces privileged, which is no limit at all"


def _privileged(view: View) -> set[str]:
    """Where pods have to do what the other levels forbid."""
    sidecars = view.spec.ingress is not None and view.spec.ingress.sidecars
    return {names.GPU_NAMESPACE} | ({CONTROL_NAMESPACE} if sidecars else set())


@estate_policy(
    "pod-hardening",
    "Every pod is one that its namespace admits",
    why="The Deployment is made and its pods are refused: nothing serves, and only its ReplicaSet says why.",
    fix="set runAsNonRoot and seccompProfile in the pod, allowPrivilegeEscalation: false and capabilities.drop: [ALL] "
    "in each container",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def pod_hardening(view: View) -> Iterator[Finding]:
    """Pods in namespaces of the estate that enforce ``restricted``."""
    restricted = {one.object_name for one in view.of_kind("Namespace") if dig(one.labels, _ENFORCE) == _RESTRICTED}

    def check(pods: Pods) -> Iterator[str]:
        if pods.made_by.namespace in restricted:
            yield from _not_admitted(pods)

    yield from each_pods(view, check)


def _not_admitted(pods: Pods) -> Iterator[str]:
    own = pods.field("securityContext", default={})
    for volume in pods.field("volumes", default=[]):
        if kinds := sorted(kind for kind in volume if kind not in _VOLUMES):
            yield f"volume {dig(volume, 'name')} is of the kind {kinds[0]}"
    if dig(own, "runAsUser") == 0:
        yield "runAsUser is 0"
    for container in pods.all_containers:
        context = dig(container, "securityContext", default={})
        for what in _of_container(context, own):
            yield f"container {dig(container, 'name')}: {what}"


def _of_container(context: Mapping[str, Any], pod: Mapping[str, Any]) -> Iterator[str]:
    if dig(context, "runAsNonRoot", default=dig(pod, "runAsNonRoot", default=False)) is not True:
        yield "runAsNonRoot is not true"
    if dig(context, "runAsUser") == 0:
        yield "runAsUser is 0"
    if dig(context, "allowPrivilegeEscalation", default=True) is not False:
        yield "allowPrivilegeEscalation is not false"
    dropped, added = (dig(context, "capabilities", part, default=[]) for part in ("drop", "add"))
    if "ALL" not in dropped:
        yield "capabilities.drop is not [ALL]"
    if more := sorted(set(added) - {"NET_BIND_SERVICE"}):
        yield f"capabilities.add has {', '.join(more)}"
    profile = dig(context, "seccompProfile", "type", default=dig(pod, "seccompProfile", "type"))
    if profile not in _SECCOMP:
        yield f"seccompProfile is {profile or 'absent'}"


@object_policy(
    "image-registry",
    "Every image comes from a registry that this stack allows",
    why="An image from anywhere is code from anywhere, and its registry may be away when a node needs it.",
    fix="copy the image to an allowed registry and name it there (image in the model file), or have the registry added "
    "to registries in policies/settings.yaml",
    severity=Severity.MEDIUM,
    dev=Level.ADVISORY,
)
def image_registry(found: Resource, view: View) -> Iterator[str]:
    """Images of containers and of Prometheus' own kinds; those of Helm releases are not seen."""
    allowed = [prefix.rstrip("/") for prefix in view.policies.registries]
    if not allowed or not found.is_object:
        return
    images = [found.at("spec", "image")] if found.kind in {"Prometheus", "Alertmanager"} else []
    if pods := pods_of(found):
        images += [dig(container, "image") for container in pods.all_containers]
        images += [dig(volume, "image", "reference") for volume in pods.field("volumes", default=[])]
    for image in dict.fromkeys(image for image in images if image):
        name = _full(parse_image(image).name)
        if not any(f"{name}/".startswith(f"{prefix}/") for prefix in allowed):
            yield f"image {image} is from none of {', '.join(allowed)}"


def _full(name: str) -> str:
    """The name with its registry, which container engines add where there is none."""
    first, slash, _ = name.partition("/")
    if slash and (first == "localhost" or {".", ":"} & set(first)):
        return name
    return f"{_DOCKER_HUB}/{name}" if slash else f"{_DOCKER_HUB}/library/{name}"
