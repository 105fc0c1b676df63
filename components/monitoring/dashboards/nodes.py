"""GPU nodes: use, memory, power and temperature of each card, and what the driver says of it."""

from typing import Final

from components.monitoring.dashboards.panels import (
    CELSIUS,
    MEBIBYTES,
    NUMBER,
    PERCENT,
    WATT,
    Panel,
    Query,
    choice,
    graph,
    number,
)
from components.monitoring.dashboards.panels import render as dashboard

_CARD: Final = "Hostname, gpu"
_LEGEND: Final = "{{Hostname}} gpu {{gpu}}"
_SLICE: Final = "Hostname, gpu, GPU_I_ID, GPU_I_PROFILE"
_SLICE_LEGEND: Final = f"{_LEGEND} {{{{GPU_I_PROFILE}}}} {{{{GPU_I_ID}}}}"
_NODES: Final = 'Hostname=~"$node"'


def render() -> str:
    """The dashboard as JSON."""
    return dashboard(
        "gpu-nodes",
        "GPU nodes",
        "What dcgm-exporter reports of the cards of each node, whoever uses them.",
        [choice("node", "Node", "DCGM_FI_DEV_GPU_TEMP", "Hostname", many=True)],
        [("", _counts()), ("Use", _use()), ("Health", _health())],
    )


def _each(metric: str, labels: str = _CARD) -> str:
    # A pod label comes and goes with the pod that has the card, and would cut the line.
    return f"max by ({labels}) ({metric}{{{_NODES}}})"


def _counts() -> list[Panel]:
    one = f"DCGM_FI_DEV_GPU_TEMP{{{_NODES}}}"
    used = f"sum by ({_CARD}) (DCGM_FI_DEV_FB_USED{{{_NODES}}})"
    return [
        number("Nodes", NUMBER, "Nodes whose exporter reports.", f"count(count by (Hostname) ({one}))", span=6),
        number("Cards", NUMBER, "Cards that are reported.", f"count(count by (UUID) ({one}))", span=6),
        number("Power of all", WATT, "Of all cards together.", f"sum({_each('DCGM_FI_DEV_POWER_USAGE')})", span=6),
        number("Memory used", MEBIBYTES, "On all cards.", f"sum({used})", span=6),
    ]


def _use() -> list[Panel]:
    used, free = (f"sum by ({_CARD}) (DCGM_FI_DEV_FB_{state}{{{_NODES}}})" for state in ("USED", "FREE"))
    return [
        graph(
            "Utilisation",
            PERCENT,
            "Time in which a kernel ran. A card that is cut by MIG has none: see its slices.",
            Query(f"{_each('DCGM_FI_DEV_GPU_UTIL')} / 100", _LEGEND),
            top=1,
        ),
        graph(
            "Graphics engine",
            PERCENT,
            "Time in which the card, or each of its MIG slices, was at work.",
            Query(_each("DCGM_FI_PROF_GR_ENGINE_ACTIVE", _SLICE), _SLICE_LEGEND),
            top=1,
        ),
        graph("Memory", PERCENT, "Used of the framebuffer.", Query(f"{used} / ({used} + {free} > 0)", _LEGEND), top=1),
        graph(
            "Multiprocessors",
            PERCENT,
            "Share of the multiprocessors with work, over time. Far below the utilisation: batches are too small.",
            Query(_each("DCGM_FI_PROF_SM_ACTIVE", _SLICE), _SLICE_LEGEND),
            top=1,
        ),
        graph(
            "Tensor cores",
            PERCENT,
            "Time in which tensor cores computed. None at all: the model runs in a precision that has no use for them.",
            Query(_each("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", _SLICE), _SLICE_LEGEND),
            top=1,
        ),
    ]


def _health() -> list[Panel]:
    return [
        graph("Power", WATT, "Of each card.", Query(_each("DCGM_FI_DEV_POWER_USAGE"), _LEGEND)),
        graph("Temperature", CELSIUS, "Of each card.", Query(_each("DCGM_FI_DEV_GPU_TEMP"), _LEGEND)),
        graph(
            "Last XID error",
            NUMBER,
            "Code of the last error that the driver reported of a card, 0 for none. NVIDIA's table of XIDs says which.",
            Query(_each("DCGM_FI_DEV_XID_ERRORS"), _LEGEND),
        ),
    ]
