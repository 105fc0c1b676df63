"""NVIDIA's device plugin: it tells the kubelet how many cards, slices or shares a node has."""

from collections.abc import Sequence
from typing import Any, Final

import pulumi
import pulumi_kubernetes as k8s
import yaml

from components import versions
from components.args import Args
from components.gpu import node_pool
from components.gpu.daemons import Daemon, host_folder, security, variables
from spec.gpu import GPU
from spec.gpu_software import PLUGIN_MODES
from spec.pool import GpuPoolSpec

_COMPONENT: Final = "nvidia-device-plugin"
_CONFIG_FOLDER: Final = "/etc/nvidia-device-plugin"
_CONFIG_FILE: Final = "config.yaml"
_SOCKETS: Final = "/var/lib/kubelet/device-plugins"
_SOCKETS_VOLUME: Final = "device-plugins"


def plugin_config(pool: GpuPoolSpec) -> dict[str, Any]:
    """Configuration of the plugin on the nodes of one pool, as its file format version v1 has it.

    With strategy mixed a slice is a resource named after its profile; a share of a time-sliced card is
    ``nvidia.com/gpu.shared``, so that nobody takes it for a card; more than one share is refused, because it would buy
    no more of the card.
    """
    config: dict[str, Any] = {
        "version": "v1",
        "flags": {"migStrategy": "mixed" if pool.sharing == "mig" else "none"},
    }
    if pool.sharing == "timeSlicing":
        slicing = {
            "renameByDefault": True,
            "failRequestsGreaterThanOne": True,
            "resources": [{"name": GPU, "replicas": pool.slices}],
        }
        config["sharing"] = {"timeSlicing": slicing}
    return config


def daemon(pool: GpuPoolSpec) -> Daemon:
    """The plugin of one pool; a pool has its own, so that another pool's change leaves its pods alone."""
    config = {_CONFIG_FILE: yaml.safe_dump(plugin_config(pool), sort_keys=False)}
    return Daemon(_COMPONENT, pool.name, versions.DEVICE_PLUGIN_IMAGE, config, [pool])


def daemon_set(pool: GpuPoolSpec) -> k8s.apps.v1.DaemonSetInitArgs:
    """Build the DaemonSet of one pool; no node that is labelled for HAMi is ever its own."""
    plugin = daemon(pool)
    slices = pool.sharing == "mig"
    environment = {
        "CONFIG_FILE": f"{_CONFIG_FOLDER}/{_CONFIG_FILE}",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }
    container = k8s.core.v1.ContainerArgs(
        name=_COMPONENT,
        image=plugin.image,
        command=["nvidia-device-plugin"],
        env=variables(environment | ({"NVIDIA_MIG_MONITOR_DEVICES": "all"} if slices else {})),
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": "50m", "memory": "64Mi"}, limits={"memory": "256Mi"}
        ),
        # The driver shows the state of slices to administrators only.
        security_context=security(*(["SYS_ADMIN"] if slices else [])),
        volume_mounts=[
            plugin.config_mount(_CONFIG_FOLDER),
            k8s.core.v1.VolumeMountArgs(name=_SOCKETS_VOLUME, mount_path=_SOCKETS),
        ],
    )
    affinity = node_pool.node_affinity([pool], but_hami=True)
    return plugin.daemon_set(container, affinity, [host_folder(_SOCKETS_VOLUME, _SOCKETS)])


class NvidiaDevicePluginArgs(Args):
    """Arguments of :class:`NvidiaDevicePlugin`.

    Attributes:
        pools: every GPU pool of the stack; those in another mode have another plugin, and get none here.
    """

    pools: Sequence[GpuPoolSpec]


class NvidiaDevicePlugin(pulumi.ComponentResource):
    """NVIDIA's device plugin on each pool of whole cards, MIG slices or time-sliced cards."""

    def __init__(self, name: str, args: NvidiaDevicePluginArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:gpu:NvidiaDevicePlugin", name, None, opts)
        for pool in args.pools:
            if pool.sharing in PLUGIN_MODES:
                plugin = daemon(pool)
                child = pulumi.ResourceOptions(parent=self)
                config = k8s.core.v1.ConfigMap(plugin.name, plugin.config_map(), child)
                after = pulumi.ResourceOptions(parent=self, depends_on=[config])
                k8s.apps.v1.DaemonSet(plugin.name, daemon_set(pool), after)
        self.register_outputs({})
