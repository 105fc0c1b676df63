"""Which workloads get requests that somebody waits for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from policies.judging.view import Resource, View, dig
from policies.reading.mesh import Services, destinations, istio, rules, service_of
from policies.reading.pods import Pods
from spec import names

_WHOLE = 100


@dataclass(frozen=True)
class Callers:
    """Who is called in an estate.

    Attributes:
        view: the estate.
    """

    view: View

    def wait_for(self, pods: Pods) -> bool:
        """Whether somebody waits for the answers of these pods.

        Not so for a revision that only gets copies, or that routes lead to by a header alone or with weight 0, or that
        the model's own Service leaves out. A workload that no Service of the estate knows counts as called.
        """
        services = self._services_of.get(id(pods.made_by), [])
        weights = [self._weights[key] for one in services if (key := _key(one)) in self._weights]
        callers = [one for one in services if names.REVISION_LABEL not in one.labels]
        if any(weights) or any(_key(one) not in self._weights for one in callers):
            return True
        return not weights and not callers and not self._has_another_revision(pods)

    def _has_another_revision(self, pods: Pods) -> bool:
        model = pods.labels.get(names.MODEL_LABEL)
        return names.REVISION_LABEL in pods.labels and (pods.made_by.namespace, model) in self._models

    @cached_property
    def _services(self) -> Services:
        return Services(self.view)

    @cached_property
    def _models(self) -> frozenset[tuple[str, str | None]]:
        """Namespace and name of the models that have a Service for all their revisions."""
        found = (one for one in self._services.by_name.values() if names.REVISION_LABEL not in one.labels)
        return frozenset((one.namespace, one.model) for one in found if one.model)

    @cached_property
    def _services_of(self) -> Mapping[int, list[Resource]]:
        found: dict[int, list[Resource]] = {}
        for service in self._services.by_name.values():
            for pods in self._services.pods(service):
                found.setdefault(id(pods.made_by), []).append(service)
        return found

    @cached_property
    def _weights(self) -> Mapping[tuple[str, str], int]:
        """Largest weight with which routes lead to a Service; 0 where it gets copies and testers only."""
        found: dict[tuple[str, str], int] = {}
        for routes in istio(self.view, "VirtualService"):
            for _, rule in rules(routes, "http", "tls", "tcp"):
                for host, weight in _shares(rule):
                    if key := service_of(host, routes.namespace):
                        found[key] = max(found.get(key, 0), weight)
        return found


def _shares(rule: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Hosts that a rule sends everybody to, with the weights, and with 0 those that get copies or testers."""
    matches = dig(rule, "match", default=[])
    testers = bool(matches) and all(dig(one, "headers") for one in matches)
    listed = destinations(rule)
    for destination, weight in listed:
        share = weight if weight is not None else _WHOLE if len(listed) == 1 else 0
        yield dig(destination, "host", default=""), 0 if testers else share
    yield dig(rule, "mirror", "host", default=""), 0
    for copy in dig(rule, "mirrors", default=[]):
        yield dig(copy, "destination", "host", default=""), 0


def _key(service: Resource) -> tuple[str, str]:
    return service.namespace, service.object_name
