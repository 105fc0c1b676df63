"""Services in front of a model and of each revision, and who may talk to its pods."""

from collections.abc import Mapping, Sequence
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


def network_policy(
    revision: Revision,
    namespace: str,
    rules: Sequence[k8s.networking.v1.NetworkPolicyIngressRuleArgs] | None = None,
    egress: Sequence[k8s.networking.v1.NetworkPolicyEgressRuleArgs] = (),
) -> k8s.networking.v1.NetworkPolicyInitArgs:
    """In: Triton's ports. Out: DNS, the store and its credentials; nothing else, whatever a request asks for.

    Args:
        revision: whose pods.
        namespace: of the revision.
        rules: who comes in to which ports, None for everybody to all of Triton's.
        egress: where the pods may go beside that.
    """
    return policy(
        objects.metadata(revision, namespace),
        names.selector(revision.model, revision.name),
        ingress=[port for _, port, _ in runtime.PORTS],
        rules=rules,
        egress=[*store_egress(revision), *egress],
    )


def policy(
    metadata: k8s.meta.v1.ObjectMetaArgs,
    selector: Mapping[str, str],
    *,
    ingress: Sequence[int],
    egress: Sequence[k8s.networking.v1.NetworkPolicyEgressRuleArgs],
    rules: Sequence[k8s.networking.v1.NetworkPolicyIngressRuleArgs] | None = None,
) -> k8s.networking.v1.NetworkPolicyInitArgs:
    """Closes pods to everything but TCP on the ``ingress`` ports (or what ``rules`` say), DNS, and ``egress``."""
    dns = k8s.networking.v1.NetworkPolicyEgressRuleArgs(ports=[port(_DNS_PORT, "UDP"), port(_DNS_PORT)])
    ports = [port(number) for number in ingress]
    anybody = [k8s.networking.v1.NetworkPolicyIngressRuleArgs(ports=ports)] if ports else None
    return k8s.networking.v1.NetworkPolicyInitArgs(
        metadata=metadata,
        spec=k8s.networking.v1.NetworkPolicySpecArgs(
            pod_selector=k8s.meta.v1.LabelSelectorArgs(match_labels=dict(selector)),
            policy_types=["Ingress", "Egress"],
            ingress=anybody if rules is None else list(rules),
            egress=[dns, *egress],
        ),
    )


def store_egress(revision: Revision) -> list[k8s.networking.v1.NetworkPolicyEgressRuleArgs]:
    """To the store of a revision, and to where its credentials come from."""
    if revision.spec.repository.scheme == "pvc":
        return []
    identity = [
        k8s.networking.v1.NetworkPolicyPeerArgs(ip_block=k8s.networking.v1.IPBlockArgs(cidr=cidr))
        for cidr in _IDENTITY_ADDRESSES
    ]
    return [
        k8s.networking.v1.NetworkPolicyEgressRuleArgs(ports=[port(_store_port(revision))]),
        k8s.networking.v1.NetworkPolicyEgressRuleArgs(to=identity, ports=[port(number) for number in _IDENTITY_PORTS]),
    ]


def port(number: int, protocol: str = "TCP") -> k8s.networking.v1.NetworkPolicyPortArgs:
    """A port of a rule."""
    return k8s.networking.v1.NetworkPolicyPortArgs(port=number, protocol=protocol)


def _store_port(revision: Revision) -> int:
    return urlsplit(revision.spec.repository.endpoint).port or _STORE_PORT
