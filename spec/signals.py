"""The scaling signals, each defined once: series, query, unit, and where it is right.

Adapter rules, KEDA triggers, HPA targets, alerts and dashboards all take them from here.

Sources: Triton's metrics page (counters in microseconds), NVIDIA's dcgm-exporter (``DCGM_FI_DEV_GPU_UTIL`` is 0 to
100 and absent under MIG, ``DCGM_FI_PROF_GR_ENGINE_ACTIVE`` is 0 to 1), HAMi's monitor (percent of a card for each
container, for all its name; HAMi 2.9 renamed series and labels, Project-HAMi/HAMi#1644).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from string import Template
from typing import Final

from spec.gpu import SharingMode


@dataclass(frozen=True)
class Windows:
    """Ranges of the queries, as Prometheus durations.

    Attributes:
        gpu: over which GPU use is averaged, so that short bursts add no replica.
        rate: over which counters are turned into rates; four scrapes at least.
    """

    gpu: str
    rate: str


@dataclass(frozen=True)
class Signal:
    """One signal.

    Attributes:
        field: of ``scaling`` in a model file, as Python spells it.
        metric: name in the custom metrics API; its end tells the unit, where it has one.
        unit: of the metric.
        target_unit: one unit of the model file's target in the metric's unit; a percent of a ratio is 0.01.
        series: the series by which an adapter finds the pods that have the metric.
        pod_label: label of the series that names the pod.
        namespace_label: label of the series that names the pod's namespace.
        model_label: label that names the model inside Triton; empty where the series know no model.
        template: the query, ``$matchers`` inside braces, ``$by`` the labels kept, ``$gpu`` and ``$rate`` the windows.
        older: the same signal as older versions of its exporter tell it; a cluster has one or the other.
    """

    field: str
    metric: str
    unit: str
    target_unit: Decimal
    series: str
    template: str
    pod_label: str = "pod"
    namespace_label: str = "namespace"
    model_label: str = ""
    older: "Signal | None" = None

    def query(self, matchers: Sequence[str], by: Sequence[str], windows: Windows) -> str:
        """PromQL of the signal, one sample for each combination of the labels in ``by``.

        Args:
            matchers: label matchers such as ``namespace="serving"``; those of the signal itself are added.
            by: labels to keep; with the signal's ``pod_label`` it is the value that an HPA sees for each pod.
            windows: ranges.
        """
        # A GPU that no pod holds has an empty pod label, or none.
        every = ",".join([*matchers, f'{self.pod_label}!=""'])
        return Template(self.template).substitute(matchers=every, by=", ".join(by), gpu=windows.gpu, rate=windows.rate)


_GPU_FIELD: Final = "gpu"
_PERCENT: Final = Decimal("0.01")
_REQUESTS: Final = "sum by ($by) (rate(nv_inference_request_success{$matchers}[$rate]))"
_QUEUED: Final = "sum by ($by) (rate(nv_inference_queue_duration_us{$matchers}[$rate]))"

_GPU_WHOLE: Final = Signal(
    field=_GPU_FIELD,
    metric="container_gpu_usage",
    unit="ratio",
    target_unit=_PERCENT,
    series="DCGM_FI_DEV_GPU_UTIL",
    # The mean of a pod's cards: 1 is all of them busy.
    template="avg by ($by) (avg_over_time(DCGM_FI_DEV_GPU_UTIL{$matchers}[$gpu])) / 100",
)
_GPU_MIG: Final = Signal(
    field=_GPU_FIELD,
    metric="container_gpu_usage_mig",
    unit="ratio",
    target_unit=_PERCENT,
    series="DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    template="avg by ($by) (avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{$matchers}[$gpu]))",
)
_GPU_HAMI_OLDER: Final = Signal(
    field=_GPU_FIELD,
    metric="container_gpu_usage_hami",
    unit="ratio",
    target_unit=_PERCENT,
    series="Device_utilization_desc_of_container",
    template="avg by ($by) (avg_over_time(Device_utilization_desc_of_container{$matchers}[$gpu])) / 100",
    pod_label="podname",
    namespace_label="podnamespace",
)
_GPU_HAMI: Final = Signal(
    field=_GPU_FIELD,
    metric="container_gpu_usage_hami",
    unit="ratio",
    target_unit=_PERCENT,
    series="hami_container_device_utilization_ratio",
    # A share of the card, not of what the container was given: whoever sets a target has to convert it.
    template="avg by ($by) (avg_over_time(hami_container_device_utilization_ratio{$matchers}[$gpu])) / 100",
    older=_GPU_HAMI_OLDER,
)
QPS: Final = Signal(
    field="qps",
    metric="triton_requests_per_second",
    unit="requests/s",
    target_unit=Decimal(1),
    series="nv_inference_request_success",
    template=_REQUESTS,
    model_label="model",
)
QUEUE_TIME: Final = Signal(
    field="queue_ms",
    metric="triton_queue_time_per_request_ms",
    unit="ms",
    target_unit=Decimal(1),
    series="nv_inference_queue_duration_us",
    # All queueing over all requests, whichever model had them. Without requests nothing waits: 0, so that an idle
    # service is given up replica by replica, where no value at all would leave it as large as it is.
    template=f"({_QUEUED} / ({_REQUESTS} > 0) / 1000) or (0 * {_REQUESTS})",
    model_label="model",
)
PENDING: Final = Signal(
    field="pending",
    metric="triton_pending_requests",
    unit="requests",
    target_unit=Decimal(1),
    series="nv_inference_pending_request_count",
    template="sum by ($by) (nv_inference_pending_request_count{$matchers})",
    model_label="model",
)

# Where pods share a card without accounts of their own (timeSlicing, qgpu), every one would report the whole card.
GPU: Final[Mapping[SharingMode, Signal]] = {"whole": _GPU_WHOLE, "mig": _GPU_MIG, "hami": _GPU_HAMI}
SIGNALS: Final = (*GPU.values(), QPS, QUEUE_TIME, PENDING)


def signal(field: str, mode: SharingMode | None) -> Signal | None:
    """The signal behind a field of ``scaling`` on a pool of this mode (None without GPU).

    None where it is a resource metric of Kubernetes (cpu, memory), or cannot be right in this mode.
    """
    if field == _GPU_FIELD:
        return GPU.get(mode) if mode else None
    return next((one for one in (QPS, QUEUE_TIME, PENDING) if one.field == field), None)
