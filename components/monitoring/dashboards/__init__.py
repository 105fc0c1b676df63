"""The dashboards, as JSON for a Grafana of any version; the same for every model, which is chosen in them.

Metrics are Triton's own, dcgm-exporter's, HAMi's, kube-state-metrics' and the heartbeat's. What also scales is asked
for as ``spec.signals`` does.
"""

from collections.abc import Sequence

from components.monitoring.dashboards import estate, model, nodes, traffic
from spec.pool import GpuPoolSpec
from spec.signals import Windows


def render(windows: Windows, pools: Sequence[GpuPoolSpec]) -> dict[str, str]:
    """All dashboards by name.

    Args:
        windows: ranges of the queries, those of the autoscaler.
        pools: the GPU pools of the stack, which say what a time slice is.
    """
    slices = min((pool.slices for pool in pools if pool.slices), default=1)
    return {
        "estate": estate.render(windows, slices),
        "model": model.render(windows),
        "gpu-nodes": nodes.render(),
        "traffic": traffic.render(windows),
    }
