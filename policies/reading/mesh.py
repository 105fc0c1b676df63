"""Services, the pods behind them, and what Istio says about both: an index over the resources of a stack."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from policies.judging.view import Resource, View, dig
from policies.reading import triton
from policies.reading.pods import Pods, all_pods, matches

# Istio takes a name without a dot for a Service of the rule's own namespace, and every other one as it is.
_SERVICE_HOST: Final = re.compile(r"([^.]+)\.([^.]+)\.svc\.[^.].*")
_LOCAL: Final = "svc.cluster.local"
MESH: Final = "mesh"
_GROUPS: Final = ("networking.istio.io/", "security.istio.io/")


def istio(view: View, kind: str) -> Iterator[Resource]:
    """Istio's objects of a kind; others call theirs by the same names."""
    return (found for found in view.of_kind(kind) if is_istio(found))


def is_istio(found: Resource) -> bool:
    """Whether an object is Istio's."""
    return found.api.startswith(_GROUPS)


def full_host(host: str, namespace: str) -> str:
    """A host as Istio understands it in an object of a namespace."""
    return host if "." in host or host == "*" else f"{host}.{namespace}.{_LOCAL}"


def service_of(host: str, namespace: str) -> tuple[str, str] | None:
    """Namespace and name of the Service that a host means in an object of a namespace, None for any other host."""
    match = _SERVICE_HOST.fullmatch(full_host(host, namespace))
    return (match[2], match[1]) if match else None


def bound_to(routes: Resource) -> frozenset[str]:
    """The gateways of a VirtualService, ``<namespace>/<name>``, or ``mesh`` for the sidecars."""
    listed = routes.at("spec", "gateways", default=[]) or [MESH]
    return frozenset(name if name == MESH or "/" in name else f"{routes.namespace}/{name}" for name in listed)


def rules(routes: Resource, *protocols: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rules of a VirtualService, each with a name for messages.

    Args:
        routes: the VirtualService.
        protocols: ``http``, ``tls``, ``tcp``.
    """
    for protocol in protocols:
        for index, rule in enumerate(routes.at("spec", protocol, default=[])):
            yield f"rule {dig(rule, 'name', default=f'{protocol}[{index}]')}", rule


def destinations(rule: Mapping[str, Any]) -> Sequence[tuple[Mapping[str, Any], int | None]]:
    """Where a rule sends requests, with the weights; a weight is None where the rule gives none."""
    return [(dig(one, "destination", default={}), dig(one, "weight")) for one in dig(rule, "route", default=[])]


@dataclass(frozen=True)
class Services:
    """The Services of a stack and their pods.

    Attributes:
        view: the resources.
    """

    view: View

    @cached_property
    def by_name(self) -> Mapping[tuple[str, str], Resource]:
        """Services by namespace and name."""
        # Knative calls something else by the same name.
        services = (one for one in self.view.of_kind("Service") if one.api in ("core/v1", "v1"))
        return {(one.namespace, one.object_name): one for one in services}

    @cached_property
    def charted(self) -> frozenset[str]:
        """Namespaces that charts install into, whose Services nobody here knows."""
        charts = (one for one in self.view.resources if one.type.startswith("kubernetes:helm.sh/"))
        return frozenset(namespace for chart in charts if (namespace := chart.at("namespace")))

    @cached_property
    def _by_label(self) -> Mapping[tuple[str, str, str], list[Pods]]:
        found: dict[tuple[str, str, str], list[Pods]] = {}
        for pods in all_pods(self.view):
            for key, value in pods.labels.items():
                found.setdefault((pods.made_by.namespace, key, value), []).append(pods)
        return found

    def pods(self, service: Resource) -> list[Pods]:
        """The pods that a Service selects."""
        selector = service.at("spec", "selector", default={})
        if not selector:
            return []
        narrowest = min((self._by_label.get((service.namespace, *pair), []) for pair in selector.items()), key=len)
        return [pods for pods in narrowest if matches(selector, pods.labels)]

    def serving(self, service: Resource) -> list[Pods]:
        """The pods of a Service that answer requests to models."""
        return [pods for pods in self.pods(service) if triton.runs_triton(pods)]

    def at(self, host: str, namespace: str) -> Resource | None:
        """The Service that a host means in an object of a namespace, if it is of this stack."""
        key = service_of(host, namespace)
        return self.by_name.get(key) if key else None

    def is_missing(self, host: str, namespace: str) -> bool:
        """Whether a host leads nowhere: neither a Service nor a ServiceEntry, and no chart could have made one."""
        key = service_of(host, namespace)
        if key is None:
            return not any(_covers(entry, host) for entry in self._entries)
        return key not in self.by_name and key[0] not in self.charted

    @cached_property
    def _entries(self) -> frozenset[str]:
        entries = istio(self.view, "ServiceEntry")
        return frozenset(host for entry in entries for host in entry.at("spec", "hosts", default=[]))


def _covers(pattern: str, host: str) -> bool:
    return host == pattern or (pattern.startswith("*") and host.endswith(pattern[1:]))


def ports(service: Resource) -> Sequence[Mapping[str, Any]]:
    """The ports of a Service."""
    return service.at("spec", "ports", default=[])


def container_port(port: Mapping[str, Any], pods: Sequence[Pods]) -> int | None:
    """The number at which containers get what comes to a port of their Service, None where no container says it."""
    target = dig(port, "targetPort", default=dig(port, "port"))
    if not isinstance(target, str) or target.isdigit():
        return int(target) if target is not None else None
    for one in pods:
        for container in one.containers:
            for listed in dig(container, "ports", default=[]):
                if dig(listed, "name") == target:
                    return dig(listed, "containerPort")
    return None
