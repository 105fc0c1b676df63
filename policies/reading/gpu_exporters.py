"""Exporters that speak of the pods of others, and whether their labels survive the scrape."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from policies.judging.view import Resource, View, dig
from policies.reading import promql
from policies.reading.adapters import adapter_configs
from policies.reading.config_maps import files
from policies.reading.exporters import HAMI, is_of_dcgm
from policies.reading.pods import Pods
from policies.reading.scrapes import Scrapes, endpoints

# What dcgm-exporter and the monitor of HAMi are called, in labels, names, images and scrape jobs.
_EXPORTERS: Final = {
    "dcgm": re.compile(r"dcgm|gpu-metrics|gpu-operator"),
    "hami": re.compile(r"hami|vgpu-?monitor"),
}
_ABOUT: Final = ("namespace", "pod")
_ANNOTATED: Final = "prometheus_io_scrape"


def exporter(scrapes: Scrapes, monitor: Resource) -> str:
    """Which of the exporters a monitor scrapes, ``dcgm`` or ``hami``; empty where it scrapes something else."""
    selector = monitor.at("spec", "selector", default={})
    texts = [monitor.object_name, *(str(value) for value in (dig(selector, "matchLabels") or {}).values())]
    pods = scrapes.selected_pods(monitor) if monitor.kind == "PodMonitor" else []
    if monitor.kind == "ServiceMonitor":
        pods = [one for service in scrapes.selected_services(monitor) for one in scrapes.services.pods(service)]
    return _named([*texts, *(image for one in pods for image in _images(one))])


def _images(pods: Pods) -> list[str]:
    return [dig(one, "image", default="").rpartition("/")[2] for one in pods.containers]


def _named(texts: Iterable[str]) -> str:
    every = "\n".join(texts)
    return next((name for name, pattern in _EXPORTERS.items() if pattern.search(every)), "")


def of_monitor(monitor: Resource, adapter_labels: frozenset[str]) -> Iterator[str]:
    """What is wrong with how a monitor treats the labels of such an exporter.

    Args:
        monitor: a ServiceMonitor or PodMonitor of one.
        adapter_labels: labels by which the estate's metrics adapter finds pods in these series.
    """
    renamed = frozenset(f"exported_{label}" for label in _ABOUT)
    for index, one in enumerate(endpoints(monitor)):
        kept = one.honors or one.moved >= set(_ABOUT)
        if kept and adapter_labels & renamed:
            asked = ", ".join(sorted(adapter_labels & renamed))
            yield f"endpoint {index} keeps the labels, and the metrics adapter asks for {asked}"
        elif not kept and not adapter_labels >= renamed:
            yield f"endpoint {index} has honorLabels: false, so that pod and namespace name the exporter itself"


def adapter_labels(view: View) -> Mapping[str, frozenset[str]]:
    """Labels by which the rules of adapters find the pods that hold a card, by exporter."""
    found: dict[str, set[str]] = {name: set() for name in _EXPORTERS}
    for config in adapter_configs(view):
        for rule in config.rules:
            try:
                metrics = promql.metrics(rule.found)
            except ValueError:
                continue  # said elsewhere
            for name, reports in (("dcgm", is_of_dcgm), ("hami", HAMI.__contains__)):
                if any(map(reports, metrics)):
                    found[name] |= set(rule.overrides())
    return {name: frozenset(labels) for name, labels in found.items()}


def of_chart(chart: Resource) -> Iterator[str]:
    """Charts that bring such an exporter with a monitor, whose own default is not to keep its labels."""
    name = str(chart.at("chart", default="")).rpartition("/")[2]
    monitor = {"dcgm-exporter": ("serviceMonitor",), "gpu-operator": ("dcgmExporter", "serviceMonitor")}.get(name)
    if monitor:
        path = ("values", *monitor)
        # The first makes its monitor unless it is told not to, the second if it is told to.
        made = chart.at(*path, "enabled", default=name == "dcgm-exporter")
        if made and not chart.at(*path, "honorLabels", default=False):
            yield f"{'.'.join(path)}.honorLabels is false, so that pod and namespace name the exporter itself"
    if name == "kube-prometheus-stack":
        jobs = chart.at("values", "prometheus", "prometheusSpec", "additionalScrapeConfigs", default=[])
        yield from _of_jobs(jobs if isinstance(jobs, list) else [], annotated=False)


def of_config_map(found: Resource, *, annotated: bool) -> Iterator[str]:
    """Scrape jobs for such an exporter in the configuration of a Prometheus.

    Args:
        found: a ConfigMap.
        annotated: whether the estate has such an exporter behind an annotated Service.
    """
    for _, text in files(found):
        if "scrape_configs" not in text:
            continue
        try:
            written = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        if isinstance(written, dict):
            yield from _of_jobs(written.get("scrape_configs") or [], annotated=annotated)


def _of_jobs(jobs: list[Mapping[str, Any]], *, annotated: bool) -> Iterator[str]:
    for job in jobs:
        text = str(job)
        about = _named([text]) or (annotated and _ANNOTATED in text and "endpoint" in text)
        if about and not job.get("honor_labels"):
            yield f"job {job.get('job_name')} has honor_labels: false, so that pod and namespace name the exporter"


def is_annotated(scrapes: Scrapes) -> bool:
    """Whether an estate has such an exporter behind a Service with prometheus.io annotations."""
    services = scrapes.services
    return any(
        dig(service.annotations, "prometheus.io/scrape") == "true"
        and _named(image for pods in services.pods(service) for image in _images(pods))
        for service in services.by_name.values()
    )
