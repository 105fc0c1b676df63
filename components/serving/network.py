"""Services in front of a model and of each revision, and who may talk to its pods."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import pulumi_kubernetes as k8s

from components.serving import objects, runtime
from spec import names
from spec.resolve import Model, Revision

_DNS_PORT: Final = 53
_STORE_PORT: Final = 443
# Where pods get the credentials of their workload identity: GKE's metadata server and its proxy, EKS Pod Identity.
_IDENTITY_ADDRESSES: Final = ("169.254.169.254/32", "169.254.169.252/32", "169.254.170.23/32")
_IDENTITY_PORTS: Final = (80, 988)


def model_service(model: Model, namespace: str) -> k8s.core.v1.ServiceInitArgs:
    """The model's one address. Its pods are those of the primary revision; the gateway shares out by weight."""
    metadata = k8s.meta.v1.ObjectMetaArgs(
        name=model.name, namespace=namespace, labels=names.labels(model.name, model.spec.owner)
    )
    return _service(metadata, model.primary)


def revision_service(
    revision: Revision, namespace: str, annotations: Mapping[str, str] | None = None
) -> k8s.core.v1.ServiceInitArgs:
    """The address of one revision: for routes, and for Prometheus to find its pods once."""
    metadata = objects.metadata(revision, namespace)
    metadata.annotations = annotations
    return _service(metadata, revision)


def _service(metadata: k8s.meta.v1.ObjectMetaArgs, revision: Revision) -> k8s.core.v1.ServiceInitArgs:
    return k8s.core.v1.ServiceInitArgs(
        metadata=metadata,
        spec=k8s.core.v1.ServiceSpecArgs(
            selector=names.selector(revision.model, revision.name),
            ports=[
                k8s.core.v1.ServicePortArgs(name=name, port=port, target_port=name, app_protocol=protocol)
                for name, port, protocol in runtime.PORTS
            ],
        ),
    )


def disruption_budget(revision: Revision, namespace: str) -> k8s.policy.v1.PodDisruptionBudgetInitArgs:
    """One replica at a time leaves for a drained node; a budget of all replicas would block every drain."""
    return k8s.policy.v1.PodDisruptionBudgetInitArgs(
        metadata=objects.metadata(revision, namespace),
        spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(max_unavailable=1, selector=objects.selector(revision)),
    )


def network_policy(revision: Revision, namespace: str) -> k8s.networking.v1.NetworkPolicyInitArgs:
    """In: Triton's ports. Out: DNS, the store and its credentials; nothing else, whatever a request asks for."""
    tcp = [_port(port) for _, port, _ in runtime.PORTS]
    egress = [
        k8s.networking.v1.NetworkPolicyEgressRuleArgs(ports=[_port(_DNS_PORT, "UDP"), _port(_DNS_PORT)]),
    ]
    if revision.spec.repository.scheme != "pvc":
        egress.append(k8s.networking.v1.NetworkPolicyEgressRuleArgs(ports=[_port(_store_port(revision))]))
        egress.append(
            k8s.networking.v1.NetworkPolicyEgressRuleArgs(
                to=[
                    k8s.networking.v1.NetworkPolicyPeerArgs(ip_block=k8s.networking.v1.IPBlockArgs(cidr=cidr))
                    for cidr in _IDENTITY_ADDRESSES
                ],
                ports=[_port(port) for port in _IDENTITY_PORTS],
            )
        )
    return k8s.networking.v1.NetworkPolicyInitArgs(
        metadata=objects.metadata(revision, namespace),
        spec=k8s.networking.v1.NetworkPolicySpecArgs(
            pod_selector=objects.selector(revision),
            policy_types=["Ingress", "Egress"],
            ingress=[k8s.networking.v1.NetworkPolicyIngressRuleArgs(ports=tcp)],
            egress=egress,
        ),
    )


def _store_port(revision: Revision) -> int:
    return urlsplit(revision.spec.repository.endpoint).port or _STORE_PORT


def _port(port: int, protocol: str = "TCP") -> k8s.networking.v1.NetworkPolicyPortArgs:
    return k8s.networking.v1.NetworkPolicyPortArgs(port=port, protocol=protocol)
