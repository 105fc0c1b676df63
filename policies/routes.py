"""Policies about VirtualServices: who gets which request."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy, object_policy
from policies.judging.view import Resource, View, dig
from policies.reading.matching import swallowed
from policies.reading.mesh import MESH, Services, bound_to, destinations, full_host, is_istio, istio, ports, rules

_WHOLE: Final = 100
_METRICS_PORT: Final = 8002
_NO_TIMEOUT: Final = ("0s", "0ms", "0")


@object_policy(
    "route-weights",
    "The weights of a route's destinations sum to 100",
    why="Weights are shares of their sum: with any other sum the numbers in the file are not the percentages that "
    "requests are shared out by.",
    fix="traffic.split of the model file, or weight of each destination",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def route_weights(found: Resource, view: View) -> Iterator[str]:
    """Weights of routes with several destinations."""
    del view
    if found.kind != "VirtualService" or not is_istio(found):
        return
    for name, rule in rules(found, "http", "tls", "tcp"):
        weights = [weight for _, weight in destinations(rule)]
        if negative := [weight for weight in weights if weight is not None and weight < 0]:
            yield f"{name}: a weight is {negative[0]}"
        elif len(weights) > 1 and (total := sum(weight or 0 for weight in weights)) != _WHOLE:
            listed = ", ".join("none" if weight is None else str(weight) for weight in weights)
            yield f"{name}: weights sum to {total} ({listed})"


@estate_policy(
    "mirror-share",
    "Copies of requests are a share from 0 to 100 percent, for a Service that does not get the request itself",
    why="A Service that gets a request and its copy computes it twice for nothing, and copies that lead nowhere are "
    "dropped without a word.",
    fix="traffic.mirror of the model file: percent from 1 to 100, to a revision that the request does not go to",
    severity=Severity.MEDIUM,
    dev=Level.MANDATORY,
)
def mirror_share(view: View) -> Iterator[Finding]:
    """Mirrors of routes."""
    services = Services(view)
    for found in istio(view, "VirtualService"):
        for name, rule in rules(found, "http"):
            asked = [_place(one, found) for one, weight in destinations(rule) if weight != 0]
            for copy, share in _mirrors(rule):
                host = dig(copy, "host", default="")
                if not 0 <= share <= _WHOLE:
                    yield Finding(found, f"{name}: mirrors {share} percent")
                if services.is_missing(host, found.namespace):
                    yield Finding(found, f"{name}: mirrors to {host}, which is no Service of this stack")
                elif _place(copy, found) in asked:
                    yield Finding(found, f"{name}: mirrors to {host}, which gets the request itself")


@estate_policy(
    "route-clash",
    "One VirtualService says where the requests of a host go, the narrower rule before the wider",
    why="Two objects for one host are merged in the order of their creation, or one is ignored; a rule behind a wider "
    "one never gets a request, so a model answers for another.",
    fix="a host of its own for each model (traffic.host), or all rules of the host in one VirtualService, the longest "
    "prefix first and the rule without a match last",
    severity=Severity.CRITICAL,
    dev=Level.MANDATORY,
)
def route_clash(view: View) -> Iterator[Finding]:
    """Hosts and matches of VirtualServices."""
    owners: dict[tuple[str, str], list[Resource]] = {}
    for found in istio(view, "VirtualService"):
        for gateway in sorted(bound_to(found)):
            for host in found.at("spec", "hosts", default=[]):
                full = full_host(host, found.namespace) if gateway == MESH else host
                owners.setdefault((gateway, full), []).append(found)
        for name, asked, before in swallowed(found):
            yield Finding(found, f"{name} never gets {asked}: {before} takes it before")
    for (gateway, host), listed in owners.items():
        for first, second in combinations(listed, 2):
            if not _apart(first, second, gateway):
                yield Finding(second, f"{first.key} in {first.namespace} has the host {host} at {gateway} as well")


@estate_policy(
    "route-timeout",
    "Every route to a model has a timeout",
    why="Istio's default is none: a request to a model that hangs holds its connection for ever, and callers pile up.",
    fix="traffic.timeout of the model file, or timeout of the route, as long as the longest request may take",
    severity=Severity.MEDIUM,
    dev=Level.ADVISORY,
)
def route_timeout(view: View) -> Iterator[Finding]:
    """Timeouts of routes to serving pods."""
    services = Services(view)
    for found in istio(view, "VirtualService"):
        for name, rule in rules(found, "http"):
            timeout = dig(rule, "timeout")
            if timeout is None or timeout in _NO_TIMEOUT:
                models = [one for one, _ in destinations(rule) if _leads_to_model(one, found, services)]
                if models:
                    yield Finding(found, f"{name} to {dig(models[0], 'host')} has no timeout")


@estate_policy(
    "route-destination",
    "Routes lead to Services, ports and subsets that are there",
    why="Requests to anything else are answered 503, and nothing says so when the route is applied.",
    fix="host: <service>.<namespace>.svc.cluster.local and a port of that Service; a subset needs a DestinationRule "
    "that names it",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def route_destination(view: View) -> Iterator[Finding]:
    """Destinations of VirtualServices and hosts of DestinationRules."""
    services = Services(view)
    subsets: dict[str, set[str]] = {}
    for found in istio(view, "DestinationRule"):
        host = found.at("spec", "host", default="")
        if host and "*" not in host and services.is_missing(host, found.namespace):
            yield Finding(found, f"{host} is no Service of this stack")
        named = {dig(subset, "name") for subset in found.at("spec", "subsets", default=[])}
        subsets.setdefault(full_host(host, found.namespace), set()).update(named)
    for found in istio(view, "VirtualService"):
        for name, rule in rules(found, "http", "tls", "tcp"):
            for one, _ in destinations(rule):
                for reason in _lost(one, found, services, subsets):
                    yield Finding(found, f"{name}: {reason}")


def _lost(
    destination: Mapping[str, Any], routes: Resource, services: Services, subsets: Mapping[str, set[str]]
) -> Iterator[str]:
    """Why requests would not arrive at a destination."""
    host, namespace = dig(destination, "host", default=""), routes.namespace
    if services.is_missing(host, namespace):
        yield f"{host} is no Service of this stack"
        return
    service, number = services.at(host, namespace), dig(destination, "port", "number")
    if service is not None:
        there = [dig(port, "port") for port in ports(service)]
        listed = ", ".join(str(port) for port in there)
        if number is not None and number not in there:
            yield f"{host} has no port {number}, only {listed}"
        elif number is None and len(there) > 1 and bound_to(routes) != {MESH}:
            yield f"no port is named for {host}, which has {listed}"
    subset = dig(destination, "subset")
    if subset is not None and subset not in subsets.get(full_host(host, namespace), ()):
        yield f"no DestinationRule of {host} has the subset {subset}"


def _leads_to_model(destination: Mapping[str, Any], routes: Resource, services: Services) -> bool:
    """Whether requests for models go there; metrics are none."""
    if dig(destination, "port", "number") == _METRICS_PORT:
        return False
    service = services.at(dig(destination, "host", default=""), routes.namespace)
    return service is not None and bool(services.serving(service))


def _mirrors(rule: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], float]]:
    """Where copies go and how many percent; everything where the rule does not say."""
    if (one := dig(rule, "mirror")) is not None:
        old = dig(rule, "mirrorPercent", default=_WHOLE)  # the name before Istio 1.5
        yield one, dig(rule, "mirrorPercentage", "value", default=old)
    for more in dig(rule, "mirrors", default=[]):
        yield dig(more, "destination", default={}), dig(more, "percentage", "value", default=_WHOLE)


def _place(destination: Mapping[str, Any], routes: Resource) -> tuple[str, str | None]:
    return full_host(dig(destination, "host", default=""), routes.namespace), dig(destination, "subset")


def _apart(first: Resource, second: Resource, gateway: str) -> bool:
    """Whether no sidecar sees both: each is for its own namespace only."""
    own = all(one.at("spec", "exportTo", default=[]) == ["."] for one in (first, second))
    return gateway == MESH and own and first.namespace != second.namespace
