"""Triton's metrics that alert rules, dashboards and scaling may use, and those that a server exposes."""

import re
from collections.abc import Mapping
from typing import Final

_SAMPLE: Final = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')

COUNTERS: Final = frozenset({
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_count",
    "nv_inference_exec_count",
    "nv_inference_request_duration_us",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_input_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_inference_compute_output_duration_us",
})  # fmt: skip
GAUGES: Final = frozenset({"nv_inference_pending_request_count"})
# Only with the server option metrics-config: [summary_latencies=true].
SUMMARIES: Final = frozenset(
    f"nv_inference_{part}_summary_us{suffix}"
    for part in ("request", "queue", "compute_input", "compute_infer", "compute_output")
    for suffix in ("", "_count", "_sum")
)
METRICS: Final = COUNTERS | GAUGES | SUMMARIES

Samples = list[tuple[str, Mapping[str, str], float]]


def samples(exposition: str) -> Samples:
    """Name, labels and value of each sample in Prometheus' text form."""
    return [(name, dict(_LABEL.findall(labels)), float(value)) for name, labels, value in _SAMPLE.findall(exposition)]


def total(found: Samples, name: str, **labels: str) -> float:
    """Sum of all samples of a metric with these labels."""
    return sum(value for one, have, value in found if one == name and labels.items() <= have.items())
