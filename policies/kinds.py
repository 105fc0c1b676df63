"""Policies about what no other policy could judge, or no cluster would take."""

import json
from collections.abc import Iterator
from typing import Any, Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import object_policy
from policies.judging.unknown import known
from policies.judging.view import Resource, View
from spec import names
from spec.ingress import RELEASES

_KUBERNETES: Final = {
    "core": {"ConfigMap", "Endpoints", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim",
             "Pod", "ResourceQuota", "Secret", "Service", "ServiceAccount"},
    "admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingAdmissionPolicy",
                                     "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"},
    "apiextensions.k8s.io": {"CustomResourceDefinition"},
    "apiregistration.k8s.io": {"APIService"},
    "apps": {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
    "autoscaling": {"HorizontalPodAutoscaler"},
    "batch": {"CronJob", "Job"},
    "discovery.k8s.io": {"EndpointSlice"},
    "networking.k8s.io": {"Ingress", "IngressClass", "NetworkPolicy"},
    "node.k8s.io": {"RuntimeClass"},
    "policy": {"PodDisruptionBudget"},
    "rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
    "scheduling.k8s.io": {"PriorityClass"},
    "storage.k8s.io": {"StorageClass"},
    # The kinds of others that the estate uses.
    "cert-manager.io": {"Certificate", "ClusterIssuer", "Issuer"},
    "keda.sh": {"ClusterTriggerAuthentication", "ScaledObject", "TriggerAuthentication"},
    "monitoring.coreos.com": {"Alertmanager", "PodMonitor", "Prometheus", "PrometheusRule", "ServiceMonitor"},
    "networking.istio.io": {"DestinationRule", "EnvoyFilter", "Gateway", "ServiceEntry", "Sidecar", "VirtualService"},
    "security.istio.io": {"AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"},
    "telemetry.istio.io": {"Telemetry"},
    # They only hold objects, each of which is a resource of its own.
    "yaml": {"ConfigFile", "ConfigGroup"},
    "kustomize": {"Directory"},
}  # fmt: skip
_OTHERS: Final = (f"{names.PROJECT}:", "pulumi:", "aws:s3/bucket", "aws:iam/")
_OTHER_TYPES: Final = frozenset({"aws:eks/nodeGroup:NodeGroup", "aws:autoscaling/tag:Tag"})
# The charts that components/ installs, by the names of their releases. A release of any other chart may hold anything.
_RELEASES: Final = frozenset({"hami", "keda", "prometheus-operator", "istio-base", "istio-cni", "istiod"}) | frozenset(
    RELEASES.values()
)
_RELEASE: Final = "Release"
_MEBIBYTE: Final = 2**20
# Kubernetes' own limits: what the values of a ConfigMap or Secret, the annotations of an object, and what etcd's
# --max-request-bytes allow.
_LONGEST_DATA: Final = _MEBIBYTE
_LONGEST_ANNOTATIONS: Final = 256 * 2**10
_LONGEST_OBJECT: Final = 3 * _MEBIBYTE // 2


@object_policy(
    "kind-nobody-judges",
    "Every resource is of a kind that the policies know",
    why="A workload of an unknown kind passes every policy because none of them looks at it. Into the Helm releases of "
    "the estate's own software nobody looks either: their values are judged, and the objects that they make are not.",
    fix="write a policy for the kind and add it to the table in policies/kinds.py, or have its reviewer waive it; "
    "install a chart of others as a Chart instead of a Release, so that its objects are seen",
    severity=Severity.HIGH,
    dev=Level.ADVISORY,
)
def kind_nobody_judges(found: Resource, view: View) -> Iterator[str]:
    """Kinds and types outside the tables. What the estate's own Helm releases hold is not looked at."""
    del view
    if found.is_object:
        group = found.api.rpartition("/")[0] or found.api
        if found.kind not in _KUBERNETES.get(group, ()):
            yield f"no policy knows the kind {found.kind} of {found.api}"
    elif found.type.startswith("kubernetes:"):
        if found.kind == _RELEASE and found.name not in _RELEASES:
            yield f"nobody sees what the chart {found.at('chart', default='?')} installs"
    elif not found.type.startswith(_OTHERS) and found.type not in _OTHER_TYPES:
        yield f"no policy knows the type {found.type}"


@object_policy(
    "object-too-large",
    "Every object fits into the API server",
    why="The API server refuses it in the middle of the update, when half of the change is there already.",
    fix="split it, or keep the content in the model's repository or in a volume",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def object_too_large(found: Resource, view: View) -> Iterator[str]:
    """Sizes in bytes. What is unknown or secret counts as nothing, so an object that is too large without it is so."""
    del view
    if not found.is_object:
        return
    if found.kind in {"ConfigMap", "Secret"}:
        size = sum(_size(found.inputs.get(part)) for part in ("data", "stringData"))
        # Three bytes are four characters.
        size += _size(found.inputs.get("binaryData")) * 3 // 4
        if size > _LONGEST_DATA:
            yield f"its data has {size} bytes, and {_LONGEST_DATA} are allowed"
            return
    annotations = found.annotations
    size = _size(annotations) + sum(len(key.encode()) for key in annotations)
    if size > _LONGEST_ANNOTATIONS:
        yield f"its annotations have {size} bytes, and {_LONGEST_ANNOTATIONS} are allowed"
        return
    size = len(
        json.dumps(dict(found.inputs), default=lambda _: None, ensure_ascii=False, separators=(",", ":")).encode()
    )
    if size > _LONGEST_OBJECT:
        yield f"it has {size} bytes as JSON, and {_LONGEST_OBJECT} are allowed"


def _size(values: Any) -> int:  # noqa: ANN401  # JSON
    """Bytes of the known texts of a mapping."""
    found = values.values() if known(values) and isinstance(values, dict) else ()
    return sum(len(one.encode()) for one in found if known(one) and isinstance(one, str))
