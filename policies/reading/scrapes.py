"""How Prometheus comes to the pods of an estate: by monitors, and by annotations."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from components.monitoring.scraping import annotation_job
from policies.judging.view import Resource, View, dig
from policies.reading.mesh import Services, container_port, ports
from policies.reading.pods import Pods, all_pods, matches
from policies.reading.selection import Labelled
from spec import names

MONITORS: Final = ("ServiceMonitor", "PodMonitor")
_PATH: Final = "/metrics"
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_ANNOTATION: Final = "prometheus.io"
_SERVICE_LABEL: Final = "__meta_kubernetes_service_label_"


@dataclass(frozen=True)
class Scraper:
    """One Prometheus.

    Attributes:
        name: for messages.
        resource: the custom resource of which it is made, None for one that the cluster has.
        labels: by which one that the cluster has selects monitors.
    """

    name: str
    resource: Resource | None = None
    labels: Mapping[str, str] | None = None

    def selects(self, monitor: Resource, namespace: Mapping[str, str]) -> bool:
        """Whether it reads a monitor in a namespace with these labels."""
        if self.resource is None:
            return matches({"matchLabels": self.labels}, monitor.labels)
        field = _field(monitor.kind)
        within = self.resource.at("spec", f"{field}NamespaceSelector")
        inside = monitor.namespace == self.resource.namespace if within is None else matches(within, namespace)
        return inside and matches(self.resource.at("spec", f"{field}Selector"), monitor.labels)

    def wants(self, kind: str) -> str:
        """Which monitors of a kind it reads, in words."""
        own = self.resource.at("spec", f"{_field(kind)}Selector") if self.resource else {"matchLabels": self.labels}
        return f"{self.name} asks for {told(own)}"

    @property
    def reads_services(self) -> bool:
        """Whether it goes by the annotations of Services: of one that the cluster has, somebody meant them for it."""
        return self.resource is None or self.resource.at("spec", "additionalScrapeConfigs") is not None

    def ignores(self, service: Resource) -> bool:
        """Whether the scrape job that the estate makes leaves an annotated Service out."""
        return self.resource is not None and any(
            re.fullmatch(step.regex or "", ";".join(_source(service, one) for one in step.source_labels or []))
            for step in annotation_job().relabel_configs
            if step.action == "drop"
        )


def _field(kind: str) -> str:
    """What the fields about a kind of monitor begin with."""
    return kind[0].lower() + kind[1:]


def _source(service: Resource, label: str) -> str:
    found = {f"{_SERVICE_LABEL}{names.series_label(key)}": value for key, value in service.labels.items()}
    return found.get(label, "")


@dataclass(frozen=True)
class Endpoint:
    """What a monitor scrapes of each of its targets.

    Attributes:
        port: name or number, empty where the monitor gives none.
        by_name: whether it is the name of a port of the Service (of the container, for a PodMonitor).
        path: of the metrics, with the parameters of the request.
        honors: whether labels of the series win over those of the target.
        moved: labels that get their value from those that the exporter wrote.
    """

    port: str
    by_name: bool
    path: str
    honors: bool
    moved: frozenset[str]


def endpoints(monitor: Resource) -> Iterator[Endpoint]:
    """The endpoints of a monitor."""
    field = "endpoints" if monitor.kind == "ServiceMonitor" else "podMetricsEndpoints"
    for one in monitor.at("spec", field, default=[]):
        port, params = dig(one, "port"), dig(one, "params", default={})
        number = dig(one, "targetPort", default=dig(one, "portNumber", default=""))
        moved = {
            dig(step, "targetLabel", default="")
            for step in dig(one, "metricRelabelings", default=[])
            if f"exported_{dig(step, 'targetLabel', default='')}" in dig(step, "sourceLabels", default=[])
        }
        path = dig(one, "path", default=_PATH) + (f"?{sorted(params.items())}" if params else "")
        honors = dig(one, "honorLabels", default=False)
        yield Endpoint(str(port if port is not None else number), port is not None, path, honors, frozenset(moved))


@dataclass(frozen=True)
class Path:
    """One way on which one Prometheus comes to some pods.

    Attributes:
        scraper: whose.
        pods: to which.
        port: number, or name where no container says the number.
        path: of the metrics.
        by: by what, for messages.
    """

    scraper: str
    pods: Pods
    port: int | str
    path: str
    by: str


@dataclass(frozen=True)
class Scrapes:
    """Monitors of an estate, what they select, and who reads them.

    Attributes:
        view: the estate.
    """

    view: View

    @cached_property
    def scrapers(self) -> tuple[Scraper, ...]:
        """The estate's own, or the one that the cluster has."""
        own = tuple(Scraper(one.key, one) for one in self.view.of_kind("Prometheus") if one.is_object)
        return own or (Scraper("the cluster's Prometheus", labels=self.view.spec.monitoring.labels),)

    @cached_property
    def services(self) -> Services:
        """The Services and their pods."""
        return Services(self.view)

    @cached_property
    def monitors(self) -> tuple[Resource, ...]:
        """All of them."""
        return tuple(one for one in self.view.of_kind(*MONITORS) if one.is_object)

    def readers(self, monitor: Resource) -> list[Scraper]:
        """Who reads a monitor."""
        namespace = self._namespaces.get(monitor.namespace, {}) | {_NAMESPACE_NAME: monitor.namespace}
        return [one for one in self.scrapers if one.selects(monitor, namespace)]

    def namespaces(self, monitor: Resource) -> frozenset[str]:
        """Where a monitor looks; it may name namespaces that the estate does not have."""
        within = monitor.at("spec", "namespaceSelector", default={})
        if dig(within, "any", default=False):
            return frozenset([*self._services.namespaces, *self._pods.namespaces, *self.services.charted])
        return frozenset(dig(within, "matchNames", default=[]) or [monitor.namespace])

    def selected_services(self, monitor: Resource) -> list[Resource]:
        """The Services that a ServiceMonitor selects."""
        return list(self._services.select(monitor.at("spec", "selector"), self.namespaces(monitor)))

    def selected_pods(self, monitor: Resource) -> list[Pods]:
        """The pods that a PodMonitor selects."""
        return list(self._pods.select(monitor.at("spec", "selector"), self.namespaces(monitor)))

    def paths(self) -> Iterator[Path]:
        """Every way on which pods of the estate are scraped."""
        for monitor in self.monitors:
            for scraper in self.readers(monitor):
                yield from self._by_monitor(monitor, scraper.name)
        for scraper in self.scrapers:
            yield from self._by_annotation(scraper)

    def _by_monitor(self, monitor: Resource, scraper: str) -> Iterator[Path]:
        for index, one in enumerate(endpoints(monitor)):
            by = f"{monitor.key}, endpoint {index}"
            if monitor.kind == "PodMonitor":
                for pods in self.selected_pods(monitor):
                    port = container_port({"targetPort": one.port}, [pods])
                    yield Path(scraper, pods, port or one.port, one.path, by)
                continue
            for service in self.selected_services(monitor):
                for pods in self.services.pods(service):
                    if (port := service_port(service, one, pods)) is not None:
                        yield Path(scraper, pods, port, one.path, f"{by} through {service.key}")

    def _by_annotation(self, scraper: Scraper) -> Iterator[Path]:
        for service in self.services.by_name.values() if scraper.reads_services else ():
            if _annotated(service.annotations) and not scraper.ignores(service):
                for pods in self.services.pods(service):
                    open_ports = {container_port(one, [pods]) for one in ports(service)}
                    for port in _ports(service.annotations, open_ports):
                        path = dig(service.annotations, f"{_ANNOTATION}/path", default=_PATH)
                        yield Path(scraper.name, pods, port, path, f"annotations of {service.key}")
        # The estate's own Prometheus has no job for those of pods.
        for pods in all_pods(self.view) if scraper.resource is None else ():
            if _annotated(pods.annotations):
                path = dig(pods.annotations, f"{_ANNOTATION}/path", default=_PATH)
                listed = (dig(one, "ports", default=[]) for one in pods.containers)
                open_ports = {dig(port, "containerPort") for one in listed for port in one}
                for port in _ports(pods.annotations, open_ports):
                    yield Path(scraper.name, pods, port, path, "annotations of the pods themselves")

    @cached_property
    def _namespaces(self) -> Mapping[str, Mapping[str, str]]:
        return {one.object_name: one.labels for one in self.view.of_kind("Namespace")}

    @cached_property
    def _services(self) -> Labelled[Resource]:
        return Labelled((one, one.namespace, one.labels) for one in self.services.by_name.values())

    @cached_property
    def _pods(self) -> Labelled[Pods]:
        return Labelled((one, one.made_by.namespace, one.labels) for one in all_pods(self.view))


def service_port(service: Resource, endpoint: Endpoint, pods: Pods | None = None) -> int | str | None:
    """Where an endpoint of a ServiceMonitor leads behind a Service; None where the Service has no such port."""
    behind = [pods] if pods else []
    for port in ports(service):
        name = dig(port, "name", default="") if endpoint.by_name else dig(port, "targetPort", default=dig(port, "port"))
        if str(name) == endpoint.port:
            return container_port(port, behind) or str(name)
    # A number or name of the container's that the Service itself does not have is looked for in the pod.
    return None if endpoint.by_name else container_port({"targetPort": endpoint.port}, behind) or endpoint.port


def told(selector: Mapping[str, Any] | None) -> str:
    """A label selector in words."""
    if selector is None:
        return "none"
    parts = [f"{key}={value}" for key, value in dig(selector, "matchLabels", default={}).items()]
    for rule in dig(selector, "matchExpressions", default=[]):
        values = "|".join(dig(rule, "values", default=[]))
        parts.append(" ".join(filter(None, (dig(rule, "key"), dig(rule, "operator"), values))))
    return ", ".join(parts) or "any"


def _annotated(annotations: Mapping[str, Any]) -> bool:
    return dig(annotations, f"{_ANNOTATION}/scrape", default="") == "true"


def _ports(annotations: Mapping[str, Any], open_ports: set[int | None]) -> Iterator[int]:
    """The port that annotations name, or all that there are."""
    written = str(dig(annotations, f"{_ANNOTATION}/port", default=""))
    yield from [int(written)] if written.isdigit() else sorted(one for one in open_ports if one is not None)
