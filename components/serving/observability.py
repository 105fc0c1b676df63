"""How Prometheus finds a model's pods, and the alerts about them."""

from typing import Final

import pulumi_kubernetes as k8s

from components.crds import (
    Endpoint,
    LabelSelector,
    NamespaceSelector,
    PrometheusRule,
    Requirement,
    RuleGroup,
    ServiceMonitor,
)
from components.serving import alerts, objects, runtime
from spec import names
from spec.fields import duration_seconds
from spec.monitoring import MonitoringSpec
from spec.resolve import Model, Revision

_PATH: Final = "/metrics"
_SCHEME: Final = "http"
# Prometheus refuses a timeout above the interval.
_LONGEST_TIMEOUT: Final = "10s"


def monitor_metadata(model: Model, namespace: str, monitoring: MonitoringSpec) -> k8s.meta.v1.ObjectMetaArgs:
    """Metadata of the ServiceMonitor, with the labels by which Prometheus selects it."""
    labels = names.labels(model.name, model.spec.owner) | monitoring.labels
    return k8s.meta.v1.ObjectMetaArgs(name=model.name, namespace=namespace, labels=labels)


def service_monitor(model: Model, namespace: str, monitoring: MonitoringSpec) -> ServiceMonitor:
    """Scrapes each pod once: through the Service of its revision or heartbeat, never through the model's own."""
    interval = monitoring.scrape_interval
    return ServiceMonitor(
        selector=LabelSelector(
            match_labels={names.MODEL_LABEL: model.name, names.PART_OF_LABEL: names.PROJECT},
            match_expressions=[Requirement(key=names.REVISION_LABEL, operator="Exists")],
        ),
        namespace_selector=NamespaceSelector(match_names=[namespace]),
        endpoints=[
            Endpoint(
                port=runtime.METRICS_PORT_NAME,
                path=_PATH,
                scheme=_SCHEME,
                interval=interval,
                scrape_timeout=min(interval, _LONGEST_TIMEOUT, key=duration_seconds),
                # Triton writes about itself and names its series model, version and gpu_uuid, which no target label
                # is called. A metric of a Python model may carry any label, and must not pass for another pod's.
                honor_labels=False,
            )
        ],
        target_labels=[names.MODEL_LABEL, names.REVISION_LABEL, names.OWNER_LABEL],
    )


def rule_metadata(revision: Revision, namespace: str, monitoring: MonitoringSpec) -> k8s.meta.v1.ObjectMetaArgs:
    """Metadata of the PrometheusRule, with the labels by which Prometheus selects it."""
    metadata = objects.metadata(revision, namespace)
    metadata.labels = names.labels(revision.model, revision.owner, revision.name) | monitoring.labels
    return metadata


def prometheus_rule(revision: Revision, namespace: str, monitoring: MonitoringSpec) -> PrometheusRule:
    """The alerts about one revision."""
    name = f"{namespace}/{names.workload(revision.model, revision.name)}"
    return PrometheusRule(groups=[RuleGroup(name=name, rules=alerts.rules(revision, namespace, monitoring))])


def scrape_annotations(monitoring: MonitoringSpec, port: int) -> dict[str, str] | None:
    """Annotations for a Prometheus without operator; a pod has one way to be scraped, so None where it has one."""
    if monitoring.operator:
        return None
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/scheme": _SCHEME,
        "prometheus.io/path": _PATH,
        "prometheus.io/port": str(port),
    }
