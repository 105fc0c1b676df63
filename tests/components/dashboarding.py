"""The dashboards as Grafana reads them, every query of theirs as Prometheus gets it, and which metrics there are."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from components.gpu.dcgm_exporter import COUNTERS
from components.monitoring import dashboards
from probes.heartbeat import Beats
from spec.pool import GpuPoolSpec
from spec.signals import Windows
from tests.dataplane import metrics

WINDOWS: Final = Windows(gpu="5m", rate="2m")
# What somebody may have chosen; a list is what Grafana makes of several values.
CHOSEN: Final[Mapping[str, str | Sequence[str]]] = {
    "datasource": "prometheus",
    "namespace": "serving",
    "model": "m",
    "triton_model": "m",
    "revision": ["v1", "v2"],
    "pod": ["m-v1-a", "m-v1-b", "m-v2-a"],
    "primary": "v1",
    "shadow": "v2",
    "node": ["node-0", "node-1"],
}

TRITON: Final = metrics.METRICS  # exposed by a real Triton in the tests of the data plane
DCGM: Final = frozenset(field for field, _, _ in COUNTERS)  # the counters file of our exporter
HEARTBEAT: Final = frozenset(re.findall(r"^# TYPE (\w+)", Beats({"a": 1}, {"a": 1.0}, 1, 1).text(), re.MULTILINE))
# cmd/vGPUmonitor/metrics.go of HAMi, from 2.9 on and before.
HAMI: Final = frozenset({"hami_container_device_utilization_ratio", "Device_utilization_desc_of_container"})
# docs/metrics of kube-state-metrics: cluster/node, workload/pod, workload/deployment, workload/horizontalpodautoscaler.
KUBERNETES: Final = frozenset({
    "kube_pod_container_resource_limits",
    "kube_pod_status_phase",
    "kube_deployment_status_replicas_available",
    "kube_horizontalpodautoscaler_spec_min_replicas",
    "kube_horizontalpodautoscaler_spec_max_replicas",
    "kube_horizontalpodautoscaler_spec_target_metric",
    "kube_horizontalpodautoscaler_status_target_metric",
    "kube_horizontalpodautoscaler_status_desired_replicas",
})  # fmt: skip
EXPORTED: Final = TRITON | DCGM | HEARTBEAT | HAMI | KUBERNETES

# Grafana's own: a value of a table that a link takes along.
_OWN: Final = "__data"
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?:\.[\w.]+)?\}|([A-Za-z_]\w*))")
_VALUES_OF: Final = re.compile(r"label_values\((.+), (\w+)\)")


@dataclass(frozen=True)
class PanelQuery:
    """One query.

    Attributes:
        dashboard: name of the dashboard.
        panel: title of the panel; ``$name`` for the values of a variable.
        legend: what its series are called; the head of the column in a table.
        expr: PromQL, without variables.
    """

    dashboard: str
    panel: str
    legend: str
    expr: str

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel}: {self.legend}"


def boards(windows: Windows = WINDOWS, pools: Sequence[GpuPoolSpec] = ()) -> dict[str, dict[str, Any]]:
    """The dashboards by name."""
    return {name: json.loads(text) for name, text in dashboards.render(windows, pools).items()}


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All but the heads of rows."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def variables(text: str) -> set[str]:
    """The variables in a text; ``$1`` is a group of label_replace."""
    return {one or two for one, two in _VARIABLE.findall(text)} - {_OWN}


def filled(text: str, chosen: Mapping[str, str | Sequence[str]] = CHOSEN) -> str:
    """A text with the variables' values in it, as Grafana writes them for Prometheus."""

    def value(match: re.Match[str]) -> str:
        found = chosen[match[1] or match[2]]
        return found if isinstance(found, str) else f"({'|'.join(found)})"

    return _VARIABLE.sub(value, text)


def queries(
    windows: Windows = WINDOWS,
    chosen: Mapping[str, str | Sequence[str]] = CHOSEN,
    pools: Sequence[GpuPoolSpec] = (),
) -> list[PanelQuery]:
    """Every query of every dashboard, those behind the choices included, ready for Prometheus.

    Args:
        windows: ranges of the queries.
        chosen: value of each variable, or several.
        pools: GPU pools of the stack.
    """
    return [query for name, board in boards(windows, pools).items() for query in _queries(name, board, chosen)]


def _queries(name: str, board: Mapping[str, Any], chosen: Mapping[str, str | Sequence[str]]) -> Iterator[PanelQuery]:
    for variable in board["templating"]["list"]:
        if found := _VALUES_OF.fullmatch(variable["query"]):
            expr = f"group by ({found[2]}) ({filled(found[1], chosen)})"
            yield PanelQuery(name, f"${variable['name']}", found[2], expr)
    for panel in panels(board):
        for target in panel["targets"]:
            legend = target.get("legendFormat") or column(panel, target["refId"])["displayName"]
            yield PanelQuery(name, panel["title"], legend, filled(target["expr"], chosen))


def column(panel: Mapping[str, Any], ref_id: str) -> dict[str, str]:
    """How a table shows the values of a query."""
    (found,) = [
        one["properties"]
        for one in panel["fieldConfig"]["overrides"]
        if one["matcher"] == {"id": "byName", "options": f"Value #{ref_id}"}
    ]
    return {one["id"]: one["value"] for one in found}
