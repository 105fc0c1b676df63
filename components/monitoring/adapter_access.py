"""What prometheus-adapter may do, and who may read its metrics."""

from typing import Final

import pulumi_kubernetes as k8s

from spec import names

NAME: Final = "prometheus-adapter"
# Objects without a namespace carry the project's name, for a cluster may hold another adapter's remains.
_READER: Final = f"{names.PROJECT}-metrics-adapter"
_DELEGATOR: Final = f"{names.PROJECT}-metrics-adapter-auth"
_HPA_READER: Final = f"{names.PROJECT}-custom-metrics"
_SYSTEM: Final = "kube-system"
_RBAC: Final = "rbac.authorization.k8s.io"


def labels() -> dict[str, str]:
    """Labels of every object of the adapter."""
    return names.estate_labels(NAME)


def metadata(name: str, namespace: str | None = None) -> k8s.meta.v1.ObjectMetaArgs:
    """Metadata of an object of the adapter."""
    return k8s.meta.v1.ObjectMetaArgs(name=name, namespace=namespace, labels=labels())


def service_account(namespace: str) -> k8s.core.v1.ServiceAccountInitArgs:
    """Who the adapter is; its pod mounts the token itself."""
    return k8s.core.v1.ServiceAccountInitArgs(metadata=metadata(NAME, namespace), automount_service_account_token=False)


def cluster_roles() -> list[k8s.rbac.v1.ClusterRoleInitArgs]:
    """To find the pods behind a selector, and to read custom metrics."""
    return [
        _role(_READER, "", ["namespaces", "pods"], ["get", "list", "watch"]),
        _role(_HPA_READER, "custom.metrics.k8s.io", ["*"], ["get", "list"]),
    ]


def cluster_role_bindings(namespace: str) -> list[k8s.rbac.v1.ClusterRoleBindingInitArgs]:
    """The adapter reads pods and has callers checked; the HPA controller reads its metrics."""
    adapter = _account(NAME, namespace)
    return [
        _binding(_READER, _READER, adapter),
        _binding(_DELEGATOR, "system:auth-delegator", adapter),
        _binding(_HPA_READER, _HPA_READER, _account("horizontal-pod-autoscaler", _SYSTEM)),
    ]


def authentication_reader(namespace: str) -> k8s.rbac.v1.RoleBindingInitArgs:
    """Lets the adapter know the API server by its certificate."""
    return k8s.rbac.v1.RoleBindingInitArgs(
        metadata=metadata(_DELEGATOR, _SYSTEM),
        role_ref=k8s.rbac.v1.RoleRefArgs(
            api_group=_RBAC, kind="Role", name="extension-apiserver-authentication-reader"
        ),
        subjects=[_account(NAME, namespace)],
    )


def _role(name: str, group: str, resources: list[str], verbs: list[str]) -> k8s.rbac.v1.ClusterRoleInitArgs:
    rule = k8s.rbac.v1.PolicyRuleArgs(api_groups=[group], resources=resources, verbs=verbs)
    return k8s.rbac.v1.ClusterRoleInitArgs(metadata=metadata(name), rules=[rule])


def _binding(name: str, role: str, subject: k8s.rbac.v1.SubjectArgs) -> k8s.rbac.v1.ClusterRoleBindingInitArgs:
    return k8s.rbac.v1.ClusterRoleBindingInitArgs(
        metadata=metadata(name),
        role_ref=k8s.rbac.v1.RoleRefArgs(api_group=_RBAC, kind="ClusterRole", name=role),
        subjects=[subject],
    )


def _account(name: str, namespace: str) -> k8s.rbac.v1.SubjectArgs:
    return k8s.rbac.v1.SubjectArgs(kind="ServiceAccount", name=name, namespace=namespace)
