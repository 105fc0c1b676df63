"""The Prometheus operator, for a cluster that has none."""

from collections.abc import Mapping
from typing import Final

import pulumi
import pulumi_kubernetes as k8s

from components import versions
from components.charts import chart_release
from spec import names, prometheus
from spec.monitoring import MonitoringSpec

_RELEASE: Final = "prometheus-operator"


def operator_release(
    monitoring: MonitoringSpec, sources: Mapping[str, str], opts: pulumi.ResourceOptions
) -> k8s.helm.v3.Release:
    """The Prometheus operator, its kinds and kube-state-metrics, from the chart kube-prometheus-stack.

    Args:
        monitoring: of the stack.
        sources: the stack setting ``charts``.
        opts: options of the resource.
    """
    chart = versions.PROMETHEUS_STACK
    return chart_release(_RELEASE, chart, names.MONITORING_NAMESPACE, operator_values(monitoring), sources, opts)


def operator_values(monitoring: MonitoringSpec) -> dict[str, object]:
    """Values of the chart: everything that is typed here, or that no alert reads, is off."""
    off = {"enabled": False}
    theirs = (
        *("alertmanager", "grafana", "nodeExporter", "prometheus"),
        *("coreDns", "kubeApiServer", "kubeControllerManager", "kubeEtcd", "kubeProxy", "kubeScheduler", "kubelet"),
    )
    return dict.fromkeys(theirs, off) | {
        "fullnameOverride": prometheus.PROMETHEUS,
        "crds": {"enabled": True},
        "defaultRules": {"create": False},
        "prometheusOperator": {
            # Its certificate comes from a Job that runs once; rules are checked before they leave this project.
            "admissionWebhooks": off,
            "tls": off,
            "kubeletService": off,
            "kubeletEndpointsEnabled": False,
            "serviceMonitor": {"selfMonitor": False},
        },
        "kubeStateMetrics": {"enabled": True},
        "kube-state-metrics": {
            # The chart's own label of that name would be a second one beside the wanted.
            "releaseLabel": False,
            "prometheus": {"monitor": {"additionalLabels": dict(monitoring.labels), "honorLabels": True}},
        },
    }
