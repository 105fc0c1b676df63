"""Policies about observability: whether what is measured arrives, once, and whether somebody can act on it."""

from collections.abc import Iterator
from typing import Any, Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy, object_policy
from policies.judging.view import Resource, View, dig
from policies.reading import gpu_exporters, monitored
from policies.reading.each import each
from policies.reading.exporters import Exported, exported
from policies.reading.monitored import Query
from policies.reading.scrapes import Path, Scrapes, endpoints, service_port, told
from spec import names

_STACK_CHART: Final = "kube-prometheus-stack"
_NIL_FLAGS: Final = tuple(f"{kind}SelectorNilUsesHelmValues" for kind in ("serviceMonitor", "podMonitor", "rule"))
# Labels that say nothing about what an object is.
_COMMON: Final = frozenset({names.PART_OF_LABEL, "app.kubernetes.io/managed-by", "heritage", "release", "chart"})


@estate_policy(
    "monitor-selects-nothing",
    "Every monitor is read by a Prometheus, and leads to a port of something that is there",
    why="A monitor that selects nothing is no error to anybody: the target list is empty, no alert fires, and no"
    " autoscaler moves.",
    fix="give the monitor the labels of monitoring.labels in the stack file; name namespace, labels and port of the"
    " Service as they are in namespaceSelector, selector and endpoints[].port",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def monitor_selects_nothing(view: View) -> Iterator[Finding]:
    """Monitors, and the flags of the chart that decide which are read."""
    scrapes = Scrapes(view)

    def check(found: Resource) -> Iterator[str]:
        if found.kind not in ("ServiceMonitor", "PodMonitor"):
            yield from _flags(found)
            return
        if not scrapes.readers(found):
            wanted = " or ".join(one.wants(found.kind) for one in scrapes.scrapers)
            yield f"no Prometheus reads it in namespace {found.namespace} with its labels: {wanted}"
        yield from _pods_missed(found, scrapes) if found.kind == "PodMonitor" else _services_missed(found, scrapes)

    charts = [one for one in view.of_kind("Release", "Chart") if not one.is_object]
    return each([*scrapes.monitors, *charts], check, lambda found: found)


def _flags(chart: Resource) -> Iterator[str]:
    if str(chart.at("chart", default="")).rpartition("/")[2] != _STACK_CHART:
        return
    for flag in _NIL_FLAGS:
        value = chart.at("values", "prometheus", "prometheusSpec", flag)
        if isinstance(value, str):
            yield f"{flag} is the text {value!r}, which the chart takes for true: only monitors of the release are read"


def _services_missed(monitor: Resource, scrapes: Scrapes) -> Iterator[str]:
    services = scrapes.selected_services(monitor)
    wanted = _told(monitor)
    if not services:
        within = scrapes.namespaces(monitor)
        # What a chart brings nobody sees here, unless the estate has the same Service itself.
        if not (within & scrapes.services.charted) or _near(monitor, scrapes):
            yield f"no Service in {_listed(within)} has the labels {wanted}"
        return
    if not (listed := list(endpoints(monitor))):
        yield "has no endpoints"
    for one in listed:
        if all(service_port(service, one) is None for service in services):
            yield f"no Service with the labels {wanted} has a port {one.port or '?'}"


def _near(monitor: Resource, scrapes: Scrapes) -> bool:
    """Whether a Service of the estate has any of the labels that say what is looked for."""
    wanted = dig(monitor.inputs, "spec", "selector", "matchLabels", default={})
    telling = [(key, value) for key, value in wanted.items() if key not in _COMMON]
    return any(one.labels.get(key) == value for one in scrapes.services.by_name.values() for key, value in telling)


def _pods_missed(monitor: Resource, scrapes: Scrapes) -> Iterator[str]:
    pods = scrapes.selected_pods(monitor)
    if not pods:
        within = scrapes.namespaces(monitor)
        if not within & scrapes.services.charted:
            yield f"no pod in {_listed(within)} has the labels {_told(monitor)}"
        return
    ports = [port for one in pods for container in one.all_containers for port in dig(container, "ports", default=[])]
    there = {dig(port, "name") for port in ports}
    if not (listed := list(endpoints(monitor))):
        yield "has no podMetricsEndpoints"
    for one in listed:
        if one.by_name and one.port not in there:
            yield f"no container with the labels {_told(monitor)} has a port {one.port}"


def _told(monitor: Resource) -> str:
    return told(monitor.at("spec", "selector"))


def _listed(namespaces: frozenset[str]) -> str:
    return ", ".join(sorted(namespaces)) or "any namespace"


@estate_policy(
    "scraped-twice",
    "A port of a pod has one way to be scraped",
    why="Two targets give every series twice: sums over pods double, and an autoscaler that reads them makes twice the"
    " replicas.",
    fix="leave one of the two: a monitor, or prometheus.io annotations (monitoring.operator in the stack file decides"
    " for models); let a ServiceMonitor select one Service of those in front of the same pods",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def scraped_twice(view: View) -> Iterator[Finding]:
    """Ways to the same port and path."""
    found: dict[tuple[str, int, int | str, str], dict[str, Path]] = {}
    for path in Scrapes(view).paths():
        found.setdefault((path.scraper, id(path.pods.made_by), path.port, path.path), {})[path.by] = path
    for (_, _, port, _), paths in found.items():
        if len(paths) > 1:
            first = next(iter(paths.values()))
            yield Finding(first.pods.made_by, f"port {port} is scraped by {'; and by '.join(paths)}")


@object_policy(
    "alert-runbook",
    "Every alert says how bad it is, what happened, and what to do",
    why="Whoever is woken by an alert without a runbook starts from nothing; without a severity nobody is woken.",
    fix="give it the label severity and the annotations summary and runbook_url, and write the page",
    severity=Severity.MEDIUM,
    dev=Level.ADVISORY,
)
def alert_runbook(found: Resource, view: View) -> Iterator[str]:
    """Labels and annotations of alerts."""
    del view
    if found.kind != "PrometheusRule":
        return
    for group in found.at("spec", "groups", default=[]):
        for rule in dig(group, "rules", default=[]):
            if not (name := dig(rule, "alert")):
                continue
            # Labels of the group are laid under those of its rules.
            severity = dig(rule, "labels", "severity") or dig(group, "labels", "severity")
            lacks = [] if severity else ["label severity"]
            lacks += [f"annotation {one}" for one in ("summary", "runbook_url") if not dig(rule, "annotations", one)]
            if lacks:
                yield f"alert {name} has no {', no '.join(lacks)}"


@estate_policy(
    "metric-nobody-exports",
    "Every metric that an alert, a dashboard or an autoscaler reads is one that somebody exports",
    why="An alert on a metric that is not there never fires, its graph stays empty, and an autoscaler on it never"
    " moves; nobody is told.",
    fix="write the name as the exporter has it; add the field to the counters of dcgm-exporter; for quantiles of Triton"
    " write server: {metrics-config: [summary_latencies=true]} in the model file",
    severity=Severity.HIGH,
    dev=Level.ADVISORY,
)
def metric_nobody_exports(view: View) -> Iterator[Finding]:
    """Metrics in queries."""
    known = exported(view)
    readers: dict[str, Any] = {
        "PrometheusRule": monitored.of_rules,
        "ConfigMap": monitored.of_dashboards,
        "ScaledObject": monitored.of_triggers,
    }

    def check(found: Resource) -> Iterator[str]:
        for query in readers[found.kind](found):
            yield from _unknown(query, known)

    yield from each(view.of_kind(*readers), check, lambda found: found)
    for resource, where, metrics in monitored.of_adapters(view):
        for metric in sorted(metrics):
            if not known.has(metric):
                yield Finding(resource, f"{where} looks for {metric}, which nobody exports")


def _unknown(query: Query, known: Exported) -> Iterator[str]:
    try:
        metrics = query.metrics()
    except ValueError as error:
        yield f"{query.where}: no PromQL: {error}"
        return
    for metric in sorted(metrics):
        if not known.has(metric):
            yield f"{query.where} reads {metric}, which nobody exports"


@estate_policy(
    "prometheus-dcgm-labels",
    "Labels that a GPU exporter writes survive the scrape",
    why="The exporter names the pod that holds the card. Without honorLabels its own name takes that place, and no"
    " model ever sees the use of its GPU.",
    fix="set honorLabels: true on the endpoint (honor_labels in a scrape job), as the managed dcgm-exporter has it; or"
    " key every rule of the metrics adapter on exported_pod and exported_namespace",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def prometheus_dcgm_labels(view: View) -> Iterator[Finding]:
    """Scrapes of dcgm-exporter and of HAMi's monitor."""
    scrapes = Scrapes(view)
    keyed, annotated = gpu_exporters.adapter_labels(view), gpu_exporters.is_annotated(scrapes)

    def check(found: Resource) -> Iterator[str]:
        if found.kind == "ConfigMap":
            yield from gpu_exporters.of_config_map(found, annotated=annotated)
        elif found.kind in ("Release", "Chart"):
            yield from gpu_exporters.of_chart(found)
        elif name := gpu_exporters.exporter(scrapes, found):
            yield from gpu_exporters.of_monitor(found, keyed[name])

    charts = [one for one in view.of_kind("Release", "Chart") if not one.is_object]
    return each([*scrapes.monitors, *charts, *view.of_kind("ConfigMap")], check, lambda found: found)
