"""Who may talk to Triton's pods where a gateway stands before them, and what a sidecar needs of a pod."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi_kubernetes as k8s

from components.ingress.policy_crds import (
    AuthorizationPolicy,
    AuthorizationRule,
    From,
    Operation,
    Source,
    To,
    WorkloadSelector,
)
from components.serving import network, runtime
from spec import names
from spec.estate import EstateSpec
from spec.ingress import Gateway, gateways, gateways_of
from spec.resolve import Model, Revision
from spec.traffic import TrafficSpec

# The API server writes it on every namespace.
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
_REQUESTS: Final = (runtime.HTTP_PORT, runtime.GRPC_PORT)
# Where istiod hands out configuration and certificates.
_ISTIOD_PORT: Final = 15012
_INJECT: Final = "sidecar.istio.io/inject"


@dataclass(frozen=True)
class Access:
    """Who comes in.

    Attributes:
        gateways: that lead to the model, or all of the stack.
        namespace: of the models.
        callers: further namespaces whose pods call models past the gateways.
        monitoring: namespace of the Prometheus, None where the stack does not know it.
        sidecars: whether Istio's sidecar runs beside Triton.
    """

    gateways: Sequence[Gateway]
    namespace: str
    callers: Sequence[str]
    monitoring: str | None
    sidecars: bool


def access(spec: EstateSpec, traffic: TrafficSpec | None = None) -> Access | None:
    """Who comes in to a model of a stack, None where it has no gateway and anybody in the cluster may.

    Args:
        spec: the stack.
        traffic: of the model, None for whatever all models have in common.
    """
    if spec.ingress is None:
        return None
    prometheus = spec.monitoring.prometheus
    managed = prometheus is not None and prometheus.provider == "managed"
    monitoring = names.MONITORING_NAMESPACE if managed else prometheus.namespace if prometheus else None
    ingress = spec.ingress
    leading = gateways_of(ingress, traffic) if traffic else gateways(ingress)
    return Access(leading, spec.namespace, sorted(set(ingress.callers)), monitoring, ingress.sidecars)


def ingress_rules(found: Access, *, open_to_callers: bool) -> list[k8s.networking.v1.NetworkPolicyIngressRuleArgs]:
    """Rules of a NetworkPolicy: gateways and callers to the ports for requests, Prometheus to that of the metrics.

    Args:
        found: who comes in.
        open_to_callers: whether the callers are among them.
    """
    peers = [_pods(gateway) for gateway in found.gateways]
    peers += [_namespace(name) for name in found.callers] if open_to_callers else []
    watcher = [_namespace(found.monitoring)] if found.monitoring else None
    everything = [port for _, port, _ in runtime.PORTS]
    return [
        _rule(peers, _REQUESTS),
        # Heartbeats, and whatever else the estate runs beside its models.
        _rule([_namespace(found.namespace)], everything),
        _rule(watcher, [runtime.METRICS_PORT]),
    ]


def egress_rules(found: Access) -> list[k8s.networking.v1.NetworkPolicyEgressRuleArgs]:
    """What a sidecar has to reach."""
    ports = [network.port(_ISTIOD_PORT)]
    return [k8s.networking.v1.NetworkPolicyEgressRuleArgs(ports=ports)] if found.sidecars else []


def pod_labels(found: Access) -> dict[str, str]:
    """Asks for a sidecar, or for none whatever the namespace says: a pod that is not made for one fails with it."""
    return {_INJECT: "true" if found.sidecars else "false"}


def companion_labels(found: Access | None) -> dict[str, str]:
    """Keeps a pod beside the models outside the mesh, whatever the namespace says."""
    return {_INJECT: "false"} if found else {}


def pod_annotations(found: Access) -> dict[str, str]:
    """What makes a sidecar fit: Prometheus goes past it, and it is there before anything else of the pod."""
    if not found.sidecars:
        return {}
    return {
        "traffic.sidecar.istio.io/excludeInboundPorts": str(runtime.METRICS_PORT),
        # Or the sidecar would be annotated as one more place of the pod's metrics.
        "prometheus.istio.io/merge-metrics": "false",
        # An init container that is restarted: it runs before the one that copies the models.
        "sidecar.istio.io/nativeSidecar": "true",
        # And before Triton, which may read the store itself, where a cluster has no such containers.
        "proxy.istio.io/config": json.dumps({"holdApplicationUntilProxyStarts": True}),
    }


def policy(model: Model, found: Access) -> AuthorizationPolicy:
    """Who may send requests to the pods of a model, by the identity that sidecars and gateways prove to each other.

    A heartbeat has none and goes to each replica directly; where there is one, its requests are let through, and who
    else could send them is the NetworkPolicy's business.
    """
    namespaces = {found.namespace, *(gateway.namespace for gateway in found.gateways)}
    namespaces |= set() if model.needs_token else set(found.callers)
    rules = [AuthorizationRule(from_=[From(source=Source(namespaces=sorted(namespaces)))])]
    beating = sorted({one.triton_name for one in model.revisions if one.heartbeat})
    if beating:
        paths = [path for name in beating for path in (f"/v2/models/{name}/infer", f"/v2/models/{name}/config")]
        operation = Operation(ports=[str(runtime.HTTP_PORT)], methods=["GET", "POST"], paths=paths)
        rules.append(AuthorizationRule(to=[To(operation=operation)]))
    selector = WorkloadSelector(match_labels=names.selector(model.name))
    return AuthorizationPolicy(selector=selector, action="ALLOW", rules=rules)


def network_policy(
    revision: Revision, namespace: str, found: Access | None, *, needs_token: bool
) -> k8s.networking.v1.NetworkPolicyInitArgs:
    """The NetworkPolicy of one revision."""
    if found is None:
        return network.network_policy(revision, namespace)
    return network.network_policy(
        revision,
        namespace,
        rules=ingress_rules(found, open_to_callers=not needs_token),
        egress=egress_rules(found),
    )


def _pods(gateway: Gateway) -> k8s.networking.v1.NetworkPolicyPeerArgs:
    peer = _namespace(gateway.namespace)
    peer.pod_selector = k8s.meta.v1.LabelSelectorArgs(match_labels=dict(gateway.selector))
    return peer


def _namespace(name: str) -> k8s.networking.v1.NetworkPolicyPeerArgs:
    selector = k8s.meta.v1.LabelSelectorArgs(match_labels={_NAMESPACE_LABEL: name})
    return k8s.networking.v1.NetworkPolicyPeerArgs(namespace_selector=selector)


def _rule(
    peers: list[k8s.networking.v1.NetworkPolicyPeerArgs] | None, ports: Sequence[int]
) -> k8s.networking.v1.NetworkPolicyIngressRuleArgs:
    numbers = [network.port(number) for number in ports]
    return k8s.networking.v1.NetworkPolicyIngressRuleArgs(from_=peers, ports=numbers)
