"""Metrics that somebody exports, by name.

Sources: Triton's metrics page, HAMi's metrics reference with the names before 2.9 as ``--legacy-metrics`` keeps them,
the counters file of the estate's own dcgm-exporter, the heartbeat of this project. Of exporters whose lists are long
and grow with each version, the beginnings of their names stand here.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from policies.judging.unknown import known
from policies.judging.view import Resource, View, dig
from policies.reading.config_maps import files
from policies.reading.pods import all_pods
from probes.heartbeat import Beats
from spec import signals

_PARTS: Final = ("request", "queue", "compute_input", "compute_infer", "compute_output")
_HISTOGRAM: Final = ("", "_bucket", "_sum", "_count")
TRITON_COUNTERS: Final = frozenset({
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_count",
    "nv_inference_exec_count",
    *(f"nv_inference_{part}_duration_us" for part in _PARTS),
    "nv_energy_consumption",
    "nv_cache_num_hits_per_model",
    "nv_cache_num_misses_per_model",
    "nv_cache_hit_duration_per_model",
    "nv_cache_miss_duration_per_model",
})  # fmt: skip
# Only with the option metrics-config: [summary_latencies=true].
TRITON_SUMMARIES: Final = frozenset(
    f"nv_inference_{part}_summary_us{suffix}" for part in _PARTS for suffix in ("", "_count", "_sum")
)
TRITON_GAUGES: Final = frozenset({
    "nv_inference_pending_request_count",
    "nv_model_load_duration_secs",
    "nv_gpu_utilization",
    "nv_gpu_memory_total_bytes",
    "nv_gpu_memory_used_bytes",
    "nv_gpu_power_usage",
    "nv_gpu_power_limit",
    "nv_cpu_utilization",
    "nv_cpu_memory_total_bytes",
    "nv_cpu_memory_used_bytes",
    "nv_pinned_memory_pool_total_bytes",
    "nv_pinned_memory_pool_used_bytes",
})  # fmt: skip
_TRITON: Final = (
    TRITON_COUNTERS | TRITON_GAUGES | {f"nv_inference_first_response_histogram_ms{suffix}" for suffix in _HISTOGRAM}
)
HAMI: Final = frozenset({
    "hami_build_info",
    "hami_container_device_memory_bytes",
    "hami_container_device_utilization_ratio",
    "hami_container_last_kernel_elapsed_seconds",
    "hami_gpu_core_allocated_ratio",
    "hami_gpu_core_limit_ratio",
    "hami_gpu_memory_allocated_bytes",
    "hami_gpu_memory_limit_bytes",
    "hami_gpu_shared_count",
    "hami_host_gpu_memory_used_bytes",
    "hami_host_gpu_utilization_ratio",
    "hami_mig_device_info",
    "hami_node_gpu_memory_allocated_ratio",
    "hami_node_gpu_mig_instance_info",
    "hami_node_gpu_overview",
    "hami_resource_quota_used",
    "hami_scheduler_bind_total",
    "hami_scheduler_filter_total",
    *(f"hami_scheduler_filter_duration_seconds{suffix}" for suffix in _HISTOGRAM),
    "hami_vgpu_core_allocated_ratio",
    *(f"hami_vgpu_memory_{part}_bytes" for part in ("allocated", "buffer", "context", "limit", "module", "used")),
    "Device_last_kernel_of_container",
    "Device_memory_desc_of_container",
    "Device_utilization_desc_of_container",
    "GPUDeviceCoreAllocated",
    "GPUDeviceCoreLimit",
    "GPUDeviceMemoryAllocated",
    "GPUDeviceMemoryLimit",
    "GPUDeviceSharedNum",
    "HostCoreUtilization",
    "HostGPUMemoryUsage",
    "MigInfo",
    "nodeGPUMemoryPercentage",
    "nodeGPUOverview",
    "vGPUCorePercentage",
    "vGPUMemoryPercentage",
    "vGPUPodsDeviceAllocated",
    *(f"vGPU_device_memory_{part}_in_bytes" for part in ("limit", "usage")),
    *(f"vGPU_device_memory_{part}_size_bytes" for part in ("buffer", "context", "module")),
})  # fmt: skip
HEARTBEAT: Final = frozenset(re.findall(r"^# TYPE (\w+)", Beats().text(), re.MULTILINE))
_SIGNALS: Final = frozenset(one.series for found in signals.SIGNALS for one in (found, found.older) if one)
_DCGM: Final = "DCGM_"
_PROMETHEUS: Final = frozenset({"up", "ALERTS", "ALERTS_FOR_STATE"})
# Kubernetes with its addons, node-exporter, Envoy and Istio, KEDA, the monitoring stack, every client library; last
# the backends of Triton for language models.
_BEGINNINGS: Final = (
    *("aggregator_", "apiserver_", "cadvisor_", "cluster_autoscaler_", "container_", "coredns_", "etcd_", "karpenter_"),
    *("kube_", "kubelet_", "kubeproxy_", "machine_", "node_", "rest_client_", "scheduler_", "storage_", "workqueue_"),
    *("certmanager_", "citadel_", "controller_runtime_", "envoy_", "galley_", "istio_", "keda_", "pilot_"),
    *("alertmanager_", "grafana_", "prometheus_", "scrape_", "go_", "process_", "promhttp_", "python_"),
    *("nv_llm_", "nv_trt_llm_", "vllm:"),
)
_COUNTER: Final = re.compile(r".*_(total|count|sum|bucket|us|success|failure)")
_DCGM_COUNTERS: Final = frozenset({
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
})  # fmt: skip
_SUMMARIES_ON: Final = "summary_latencies=true"
# What only a replica or its card reports: none of it is there without a replica.
_OF_REPLICAS: Final = ("nv_", "DCGM_", "container_", "vllm:")


def is_counter(metric: str) -> bool:
    """Whether a metric only ever grows: by what its exporter says of it, or by the end of its name."""
    if metric in TRITON_COUNTERS | _DCGM_COUNTERS:
        return True
    # Names with a colon are results of recording rules.
    told = TRITON_GAUGES | TRITON_SUMMARIES | HAMI | HEARTBEAT
    if ":" in metric or (metric in told and not metric.endswith(("_total", "_count", "_sum", "_bucket"))):
        return False
    return metric not in TRITON_GAUGES | {"hami_gpu_shared_count"} and _COUNTER.fullmatch(metric) is not None


def is_of_dcgm(metric: str) -> bool:
    """Whether dcgm-exporter reports a metric."""
    return metric.startswith(_DCGM)


def is_of_replicas(metric: str) -> bool:
    """Whether only running replicas of a model, or the cards they hold, have a metric."""
    return metric.startswith(_OF_REPLICAS) or metric in _SIGNALS | HAMI


@dataclass(frozen=True)
class Exported:
    """What somebody exports to the Prometheus of an estate.

    Attributes:
        dcgm: counters of the estate's own dcgm-exporter; empty where it has none that is known.
        summaries: whether a Triton reports quantiles.
        recorded: names of the estate's recording rules.
        rules_known: whether no other rules than the estate's reach its Prometheus.
    """

    dcgm: frozenset[str]
    summaries: bool
    recorded: frozenset[str]
    rules_known: bool

    def has(self, metric: str) -> bool:
        """Whether there is such a metric."""
        if metric in self.recorded:
            return True
        if metric in TRITON_SUMMARIES:
            return self.summaries
        if metric.startswith(_DCGM):
            return metric in self.dcgm or not self.dcgm
        if metric in _TRITON | HAMI | HEARTBEAT | _SIGNALS | _PROMETHEUS or metric.startswith(_BEGINNINGS):
            return True
        return ":" in metric and not self.rules_known


def exported(view: View) -> Exported:
    """What the exporters of an estate report."""
    return Exported(
        dcgm=frozenset(counter for found in view.of_kind("ConfigMap") for counter in _counters(found)),
        summaries=_summaries(view),
        recorded=frozenset(
            rule["record"]
            for found in view.of_kind("PrometheusRule")
            for group in found.at("spec", "groups", default=[])
            for rule in dig(group, "rules", default=[])
            if rule.get("record")
        ),
        rules_known=next(view.of_kind("Prometheus"), None) is not None,
    )


def _counters(config_map: Resource) -> Iterator[str]:
    for name, text in files(config_map):
        if name.endswith(".csv") and _DCGM in text:
            yield from (row[0].strip() for row in csv.reader(text.splitlines()) if row and row[0].startswith(_DCGM))


def _summaries(view: View) -> bool:
    """Whether any Triton reports quantiles; so it is taken where no Triton of the estate can be seen."""
    seen = False
    for pods in all_pods(view):
        for container in pods.containers:
            told = [*(container.get("command") or ()), *(container.get("args") or ())]
            texts = [text for text in told if known(text)]
            if any(_SUMMARIES_ON in text for text in texts) or len(texts) < len(told):
                return True
            seen = seen or any("tritonserver" in text for text in texts)
    return not seen
