"""HAMi: shares of a card, each with a limit on memory and compute, by HAMi's own chart."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi
import pulumi_kubernetes as k8s

from components import versions
from components.args import Args
from components.charts import chart_release
from components.crds import custom_resource
from components.gpu import node_pool, scraping
from spec import names
from spec.gpu import GPU, GPU_CORES, GPU_MEMORY, GPU_MEMORY_PERCENT
from spec.gpu_software import HAMI_POD_LABEL
from spec.monitoring import MonitoringSpec
from spec.pool import GpuPoolSpec

RELEASE: Final = "hami"
# What the chart makes of the release's name for the monitor of each node.
_MONITOR: Final = f"{RELEASE}-device-plugin-monitor"
_MONITOR_LABELS: Final = {
    "app.kubernetes.io/name": "hami",
    "app.kubernetes.io/instance": RELEASE,
    "app.kubernetes.io/component": "hami-device-plugin",
}
_MONITOR_PORT: Final = 9394
_MONITOR_PORT_NAME: Final = "monitorport"


def chart_values(pools: Sequence[GpuPoolSpec], namespace: str, monitoring: MonitoringSpec) -> dict[str, Any]:
    """Values of the chart.

    Args:
        pools: pools in mode hami, at least one; all have the same split and memory scaling.
        namespace: where the models run.
        monitoring: how Prometheus finds the monitors.
    """
    return {
        "resourceName": GPU,
        "resourceCores": GPU_CORES,
        "resourceMem": GPU_MEMORY,
        "resourceMemPercentage": GPU_MEMORY_PERCENT,
        "scheduler": {
            # Without it no pod of these pools is placed.
            "replicas": 2,
            "leaderElect": True,
            "kubeScheduler": {"image": {"registry": "registry.k8s.io", "repository": "kube-scheduler"}},
            "admissionWebhook": _webhook(namespace),
        },
        "devicePlugin": {
            "deviceSplitCount": pools[0].split,
            "deviceMemoryScaling": pools[0].memory_scaling,
            "nvidiaNodeSelector": {node_pool.HAMI_LABEL: node_pool.HAMI_VALUE},
            "tolerations": _tolerations(pools),
            # By default the monitor has a port of every node, open to whoever reaches the node.
            "service": {"type": "ClusterIP", "annotations": scraping.scrape_annotations(_MONITOR_PORT, monitoring)},
        },
    }


def _webhook(namespace: str) -> dict[str, Any]:
    """Refuses the pods of HAMi's pools while HAMi cannot be asked: the usual scheduler would place them unlimited.

    It asks for no other pod, so that none waits for HAMi, and that pods with whole cards keep their scheduler.
    """
    return {
        "failurePolicy": "Fail",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "objectSelector": {"matchExpressions": [{"key": HAMI_POD_LABEL, "operator": "In", "values": ["hami"]}]},
    }


def _tolerations(pools: Sequence[GpuPoolSpec]) -> list[dict[str, str]]:
    parts = dict.fromkeys(pool.taint_parts for pool in pools)
    return [{"key": key, "operator": "Equal", "value": value, "effect": effect} for key, value, effect in parts]


class HamiVgpuArgs(Args):
    """Arguments of :class:`HamiVgpu`.

    Attributes:
        pools: pools in mode hami, at least one.
        namespace: where the models run.
        monitoring: how Prometheus finds the monitors.
        charts: the stack setting ``charts``.
    """

    pools: Sequence[GpuPoolSpec]
    namespace: str
    monitoring: MonitoringSpec
    charts: Mapping[str, str]


class HamiVgpu(pulumi.ComponentResource):
    """HAMi's scheduler and webhook, and its device plugin and monitor on the nodes labelled ``gpu=on``.

    Attributes:
        release: the Helm release; a pod that exists before the webhook does is not limited.
    """

    release: k8s.helm.v3.Release

    def __init__(self, name: str, args: HamiVgpuArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:gpu:HamiVgpu", name, None, opts)
        values = chart_values(args.pools, args.namespace, args.monitoring)
        child = pulumi.ResourceOptions(parent=self)
        self.release = chart_release(RELEASE, versions.HAMI_CHART, names.GPU_NAMESPACE, values, args.charts, child)
        if args.monitoring.operator:
            monitor = scraping.service_monitor(_MONITOR_LABELS, _MONITOR_PORT_NAME, args.monitoring)
            after = pulumi.ResourceOptions(parent=self, depends_on=[self.release])
            custom_resource(_MONITOR, scraping.monitor_metadata(_MONITOR, args.monitoring), monitor, after)
        self.register_outputs({})
