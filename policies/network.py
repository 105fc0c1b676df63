"""Policies about who can reach a model, and whom it can reach."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy
from policies.judging.unknown import CannotDecide
from policies.judging.view import Resource, View, dig
from policies.reading.each import each
from policies.reading.pods import POD_KINDS, Pods, all_pods, pods_of
from policies.reading.selection import Labelled

_WORLD: Final = frozenset({"0.0.0.0/0", "::/0"})
# The port of Triton's metrics, see components.serving.runtime: it takes no requests.
_METRICS: Final = (8002, "http-metrics")


@estate_policy(
    "network-open",
    "Replicas take connections from known callers, and open none to anywhere",
    why="Past the gateway nobody checks tokens or limits, and a model that fetches the address in a request fetches "
    "whatever the caller wants from inside your network.",
    fix="give the pods a NetworkPolicy of both types: ingress from the gateway and the callers (ingress.callers), "
    "egress to DNS and to the ports of the store",
    severity=Severity.HIGH,
    dev=Level.ADVISORY,
)
def network_open(view: View) -> Iterator[Finding]:
    """NetworkPolicies of the pods that serve; without a gateway the estate lets everybody come to Triton's ports."""
    serving = list(_serving(view))
    by_label = Labelled((pods, pods.made_by.namespace, pods.labels) for pods in serving)
    of: dict[int, list[Resource]] = {id(pods.made_by): [] for pods in serving}
    unsure: set[str] = set()
    for policy in view.of_kind("NetworkPolicy"):
        try:
            for pods in _selected(policy, by_label):
                of[id(pods.made_by)].append(policy)
        except CannotDecide:
            unsure.add(policy.namespace)

    def check(found: Resource) -> Iterator[str]:
        if found.kind == "NetworkPolicy":
            if any(_selected(found, by_label)):
                yield from _open_rules(found, gated=view.spec.ingress is not None)
        elif found.kind == "Service":
            yield from _past_the_gateway(found, by_label)
        elif (pods := pods_of(found)) and pods.serves:
            yield from _not_closed(of[id(found)], unsure=found.namespace in unsure)

    yield from each(view.of_kind(*POD_KINDS, "NetworkPolicy", "Service"), check, lambda found: found)


def _serving(view: View) -> Iterator[Pods]:
    for pods in all_pods(view):
        try:
            if pods.serves:
                yield pods
        except CannotDecide:
            continue  # the check of this one says so


def _selected(policy: Resource, by_label: Labelled[Pods]) -> Iterator[Pods]:
    # An empty selector is all pods of the namespace, and so is an absent one.
    return by_label.select(policy.at("spec", "podSelector", default={}), [policy.namespace])


def _past_the_gateway(service: Resource, by_label: Labelled[Pods]) -> Iterator[str]:
    kind, selector = service.at("spec", "type", default="ClusterIP"), service.at("spec", "selector", default={})
    if kind in {"LoadBalancer", "NodePort"} and selector and any(by_label.select(selector, [service.namespace])):
        yield f"a Service of type {kind} leads past the gateway to the replicas"


def _not_closed(policies: Sequence[Resource], *, unsure: bool) -> Iterator[str]:
    """Directions in which no NetworkPolicy of some pods closes them."""
    closed = {kind for policy in policies for kind in _types(policy)}
    if unsure and not closed >= {"Ingress", "Egress"}:
        raise CannotDecide("what a NetworkPolicy selects is unknown")
    if not policies:
        yield "no NetworkPolicy selects its pods"
        return
    if "Ingress" not in closed:
        yield "no NetworkPolicy says who comes in to its pods"
    if "Egress" not in closed:
        yield "no NetworkPolicy says where its pods go"


def _types(policy: Resource) -> Sequence[str]:
    egress = policy.at("spec", "egress") is not None
    return policy.at("spec", "policyTypes", default=["Ingress", *(["Egress"] if egress else [])])


def _open_rules(policy: Resource, *, gated: bool) -> Iterator[str]:
    types = _types(policy)
    for index, rule in enumerate(policy.at("spec", "ingress", default=[]) if "Ingress" in types else []):
        peers, ports = dig(rule, "from", default=[]), [dig(one, "port") for one in dig(rule, "ports", default=[])]
        if world := _world(peers):
            yield f"ingress rule {index} lets in {world}"
        elif not peers and not ports:
            yield f"ingress rule {index} lets in everybody to every port"
        elif not peers and gated and not set(ports) <= set(_METRICS):
            yield f"ingress rule {index} lets everybody past the gateway to {', '.join(map(str, ports))}"
    for index, rule in enumerate(policy.at("spec", "egress", default=[]) if "Egress" in types else []):
        peers, ports = dig(rule, "to", default=[]), dig(rule, "ports", default=[])
        if not ports and (not peers or _world(peers)):
            yield f"egress rule {index} lets out to {_world(peers) or 'everywhere'} on every port"


def _world(peers: Sequence[Mapping[str, Any]]) -> str | None:
    """The range of all addresses, if it is among the peers."""
    return next((found for peer in peers if (found := dig(peer, "ipBlock", "cidr")) in _WORLD), None)
