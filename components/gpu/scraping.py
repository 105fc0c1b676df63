"""How Prometheus finds the exporters on GPU nodes."""

from collections.abc import Mapping
from typing import Final

import pulumi_kubernetes as k8s

from components.crds import Endpoint, LabelSelector, NamespaceSelector, Relabeling, ServiceMonitor
from spec import names
from spec.fields import duration_seconds
from spec.monitoring import MonitoringSpec

_PATH: Final = "/metrics"
_SCHEME: Final = "http"
_HOLDER_LABELS: Final = ("namespace", "pod", "container")
# Prometheus refuses a timeout above the interval.
_LONGEST_TIMEOUT: Final = "10s"


def monitor_metadata(name: str, monitoring: MonitoringSpec) -> k8s.meta.v1.ObjectMetaArgs:
    """Metadata of a ServiceMonitor, with the labels by which Prometheus selects it."""
    labels = names.estate_labels(name) | monitoring.labels
    return k8s.meta.v1.ObjectMetaArgs(name=name, namespace=names.GPU_NAMESPACE, labels=labels)


def service_monitor(selector: Mapping[str, str], port: str, monitoring: MonitoringSpec) -> ServiceMonitor:
    """Scrapes an exporter that writes about the pods of others.

    Args:
        selector: labels of its Service.
        port: name of the Service's port.
        monitoring: of the stack.
    """
    interval = monitoring.scrape_interval
    return ServiceMonitor(
        selector=LabelSelector(match_labels=dict(selector)),
        namespace_selector=NamespaceSelector(match_names=[names.GPU_NAMESPACE]),
        endpoints=[
            Endpoint(
                port=port,
                path=_PATH,
                scheme=_SCHEME,
                interval=interval,
                scrape_timeout=min(interval, _LONGEST_TIMEOUT, key=duration_seconds),
                # The labels pod and namespace that the exporter wrote name the pod that uses the GPU; without this
                # they would name the exporter itself, and no model would ever see its own use.
                honor_labels=True,
                # A card that nobody holds has no such labels, and must not pass for one that the exporter holds.
                relabelings=[Relabeling(target_label=label, replacement="") for label in _HOLDER_LABELS],
            )
        ],
        target_labels=[],
    )


def scrape_annotations(port: int, monitoring: MonitoringSpec) -> dict[str, str]:
    """Annotations for a Prometheus without operator; none where a ServiceMonitor does it."""
    if monitoring.operator:
        return {}
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/scheme": _SCHEME,
        "prometheus.io/path": _PATH,
        "prometheus.io/port": str(port),
    }
