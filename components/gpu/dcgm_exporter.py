"""NVIDIA's dcgm-exporter: what every card does, and for which pod."""

from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_kubernetes as k8s

from components import versions
from components.args import Args
from components.crds import custom_resource
from components.gpu import node_pool, scraping
from components.gpu.daemons import Daemon, host_folder, security, variables
from spec.monitoring import MonitoringSpec
from spec.pool import GpuPoolSpec

NAME: Final = "dcgm-exporter"
PORT: Final = 9400
PORT_NAME: Final = "metrics"
_COUNTERS_FOLDER: Final = "/etc/dcgm-counters"
_COUNTERS_FILE: Final = "counters.csv"
# Where the kubelet answers which pod holds which device.
_POD_RESOURCES: Final = "/var/lib/kubelet/pod-resources"
_POD_RESOURCES_VOLUME: Final = "pod-resources"

# Field of DCGM, type of the metric, help text without a comma. Under MIG the fields of family PROF are the only ones
# that exist for a slice.
COUNTERS: Final = (
    ("DCGM_FI_DEV_GPU_UTIL", "gauge", "Time in which a kernel ran in percent; absent under MIG"),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Time in which memory was read or written in percent"),
    ("DCGM_FI_DEV_FB_USED", "gauge", "Memory used in MiB"),
    ("DCGM_FI_DEV_FB_FREE", "gauge", "Memory free in MiB"),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power in W"),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Energy since boot in mJ"),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "Temperature of the chip in C"),
    ("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Temperature of the memory in C"),
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "Clock of the multiprocessors in MHz"),
    ("DCGM_FI_DEV_XID_ERRORS", "gauge", "Number of the last XID error"),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether a row of memory could not be remapped"),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Rows of memory remapped for uncorrectable errors"),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Time in which the compute engine was busy as a ratio"),
    ("DCGM_FI_PROF_SM_ACTIVE", "gauge", "Multiprocessors with work as a ratio"),
    ("DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "Warps resident on a multiprocessor as a ratio of the most"),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Time in which the tensor cores were busy as a ratio"),
    ("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Time in which the memory was busy as a ratio"),
)


def daemon(pools: Sequence[GpuPoolSpec]) -> Daemon:
    """The exporter on the nodes of these pools."""
    counters = "".join(f"{field}, {kind}, {text}.\n" for field, kind, text in COUNTERS)
    return Daemon(NAME, NAME, versions.DCGM_EXPORTER_IMAGE, {_COUNTERS_FILE: counters}, pools)


def daemon_set(pools: Sequence[GpuPoolSpec]) -> k8s.apps.v1.DaemonSetInitArgs:
    """Build the DaemonSet."""
    exporter = daemon(pools)
    health = k8s.core.v1.HTTPGetActionArgs(path="/health", port=PORT_NAME)
    container = k8s.core.v1.ContainerArgs(
        name=NAME,
        image=exporter.image,
        env=[
            *variables(
                {
                    "DCGM_EXPORTER_LISTEN": f":{PORT}",
                    "DCGM_EXPORTER_KUBERNETES": "true",
                    "DCGM_EXPORTER_COLLECTORS": f"{_COUNTERS_FOLDER}/{_COUNTERS_FILE}",
                }
            ),
            k8s.core.v1.EnvVarArgs(
                name="NODE_NAME",
                value_from=k8s.core.v1.EnvVarSourceArgs(
                    field_ref=k8s.core.v1.ObjectFieldSelectorArgs(field_path="spec.nodeName")
                ),
            ),
        ],
        ports=[k8s.core.v1.ContainerPortArgs(name=PORT_NAME, container_port=PORT)],
        # DCGM starts its own engine, which holds some minutes of every field of every card.
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": "100m", "memory": "128Mi"}, limits={"memory": "512Mi"}
        ),
        startup_probe=k8s.core.v1.ProbeArgs(http_get=health, period_seconds=5, failure_threshold=36),
        readiness_probe=k8s.core.v1.ProbeArgs(http_get=health, period_seconds=10),
        liveness_probe=k8s.core.v1.ProbeArgs(http_get=health, period_seconds=10, failure_threshold=6),
        # The fields of family PROF need the capability, and only root gets it; without it a MIG slice has no use.
        security_context=security("SYS_ADMIN"),
        volume_mounts=[
            exporter.config_mount(_COUNTERS_FOLDER),
            k8s.core.v1.VolumeMountArgs(name=_POD_RESOURCES_VOLUME, mount_path=_POD_RESOURCES, read_only=True),
        ],
    )
    folder = host_folder(_POD_RESOURCES_VOLUME, _POD_RESOURCES)
    return exporter.daemon_set(container, node_pool.node_affinity(pools), [folder])


def service(pools: Sequence[GpuPoolSpec], monitoring: MonitoringSpec) -> k8s.core.v1.ServiceInitArgs:
    """Build the Service through which Prometheus finds the exporters."""
    exporter = daemon(pools)
    metadata = exporter.metadata
    metadata.annotations = scraping.scrape_annotations(PORT, monitoring) or None
    return k8s.core.v1.ServiceInitArgs(
        metadata=metadata,
        spec=k8s.core.v1.ServiceSpecArgs(
            selector=exporter.selector,
            ports=[k8s.core.v1.ServicePortArgs(name=PORT_NAME, port=PORT, target_port=PORT_NAME)],
        ),
    )


class DcgmExporterArgs(Args):
    """Arguments of :class:`DcgmExporter`.

    Attributes:
        pools: every GPU pool of the stack, at least one.
        monitoring: how Prometheus finds the exporter.
    """

    pools: Sequence[GpuPoolSpec]
    monitoring: MonitoringSpec


class DcgmExporter(pulumi.ComponentResource):
    """dcgm-exporter on every GPU node and on no other."""

    def __init__(self, name: str, args: DcgmExporterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:gpu:DcgmExporter", name, None, opts)
        exporter = daemon(args.pools)
        child = pulumi.ResourceOptions(parent=self)
        config = k8s.core.v1.ConfigMap(NAME, exporter.config_map(), child)
        after = pulumi.ResourceOptions(parent=self, depends_on=[config])
        k8s.apps.v1.DaemonSet(NAME, daemon_set(args.pools), after)
        k8s.core.v1.Service(NAME, service(args.pools, args.monitoring), child)
        if args.monitoring.operator:
            monitor = scraping.service_monitor(exporter.selector, PORT_NAME, args.monitoring)
            custom_resource(NAME, scraping.monitor_metadata(NAME, args.monitoring), monitor, child)
        self.register_outputs({})
