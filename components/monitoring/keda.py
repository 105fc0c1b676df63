"""KEDA: makes HorizontalPodAutoscalers of ScaledObjects, and answers the external metrics API for them."""

from collections.abc import Mapping
from typing import Final

import pulumi
import pulumi_kubernetes as k8s

from components import versions
from components.args import Args
from components.charts import chart_release
from spec.monitoring import MonitoringSpec

_NAME: Final = "keda"
# One of two leads; the other takes over when its node goes.
_REPLICAS: Final = 2


class KedaArgs(Args):
    """Arguments of :class:`Keda`.

    Attributes:
        namespace: an existing namespace.
        charts: the stack setting ``charts``.
        monitoring: how Prometheus finds the operator, whose errors are alerted on.
    """

    namespace: str
    charts: Mapping[str, str]
    monitoring: MonitoringSpec


class Keda(pulumi.ComponentResource):
    """KEDA's operator, metrics server, admission webhook and kinds.

    Attributes:
        release: what brings the kinds, for ScaledObjects to depend on.
    """

    release: k8s.helm.v3.Release

    def __init__(self, name: str, args: KedaArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:monitoring:Keda", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        chosen = values(args.monitoring)
        self.release = chart_release(_NAME, versions.KEDA_CHART, args.namespace, chosen, args.charts, child)
        self.register_outputs({})


def values(monitoring: MonitoringSpec) -> dict[str, object]:
    """Values of the chart: replicas that survive a node and are never both away, and metrics for Prometheus."""
    budget = {"maxUnavailable": 1}
    monitor = {
        "enabled": True,
        "additionalLabels": dict(monitoring.labels),
        "interval": monitoring.scrape_interval,
    }
    scraped = {"prometheus": {"operator": {"enabled": True, "serviceMonitor": monitor}}} if monitoring.operator else {}
    return {
        "operator": {"replicaCount": _REPLICAS},
        "metricsServer": {"replicaCount": _REPLICAS},
        "webhooks": {"replicaCount": _REPLICAS},
        "podDisruptionBudget": {"operator": budget, "metricServer": budget, "webhooks": budget},
        "image": {"pullPolicy": "IfNotPresent"},
        **scraped,
    }
