"""What runs on GPU nodes beside the models: which parts this stack installs (stack file)."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from spec import names
from spec.fields import Spec
from spec.gpu import SharingMode
from spec.pool import GpuPoolSpec
from spec.problems import Problem

Owner = Literal["managed", "existing"]
# Each mode has one kind of device plugin; gpu-manager, that of qgpu, comes with TKE.
PLUGIN_MODES: Final[tuple[SharingMode, ...]] = ("whole", "mig", "timeSlicing")
HAMI_MODES: Final[tuple[SharingMode, ...]] = ("hami",)
# The pods that HAMi's webhook sends to HAMi's scheduler. It would take every pod that asks for nvidia.com/gpu, also
# those of pools with whole cards, whose nodes that scheduler does not know.
HAMI_POD_LABEL: Final = f"{names.LABEL_DOMAIN}/gpu-sharing"


class GpuSoftwareSpec(Spec):
    """Who installs what serves the GPUs: ``managed`` is this stack, ``existing`` is the cluster's owner.

    Two device plugins on one node hand out one card twice, so nothing is installed unless told so.

    Attributes:
        device_plugin: NVIDIA's device plugin on pools in mode whole, mig and timeSlicing.
        dcgm_exporter: NVIDIA's metrics exporter on every pool.
        hami: HAMi (device plugin, scheduler, webhook, monitor) on pools in mode hami.
    """

    device_plugin: Owner = "existing"
    dcgm_exporter: Owner = "existing"
    hami: Owner = "existing"


def pools_in(pools: Sequence[GpuPoolSpec], modes: Sequence[SharingMode]) -> list[GpuPoolSpec]:
    """Pools that share their cards in one of these modes."""
    return [pool for pool in pools if pool.sharing in modes]


def pod_labels(software: GpuSoftwareSpec, pool: GpuPoolSpec | None) -> dict[str, str]:
    """Labels that a pod on this pool carries for the software there."""
    if software.hami == "managed" and pool is not None and pool.sharing == "hami":
        return {HAMI_POD_LABEL: "hami"}
    return {}


def check_software(
    software: GpuSoftwareSpec, pools: Sequence[GpuPoolSpec], namespace: str, *, embedded: bool
) -> Iterator[Problem]:
    """Software that would serve nothing, or cannot work; fields relative to the stack.

    Args:
        software: of the stack.
        pools: of the stack.
        namespace: where the models run.
        embedded: whether the cluster is the embedded plane.
    """
    served = {
        "devicePlugin": (software.device_plugin, pools_in(pools, PLUGIN_MODES), f"mode {' or '.join(PLUGIN_MODES)}"),
        "dcgmExporter": (software.dcgm_exporter, pools, "any mode"),
        "hami": (software.hami, pools_in(pools, HAMI_MODES), "mode hami"),
    }
    for name, (owner, found, modes) in served.items():
        if owner == "managed" and not found:
            yield Problem(f"gpuSoftware.{name}", f"the stack has no GPU pool in {modes}", owner, "existing",
                          f"add such a pool, or leave {name} out")  # fmt: skip
    if "managed" in dict(software).values() and namespace == names.GPU_NAMESPACE:
        yield Problem("namespace", "GPU software has this namespace, whose pods get at the node", namespace,
                      fix="choose another one for the models")  # fmt: skip
    if software.hami == "managed":
        if embedded:
            yield Problem("gpuSoftware.hami", "nothing runs on the embedded plane, and while HAMi's webhook does not "
                          "answer no pod of its pools is let in", software.hami, "existing",
                          "leave hami out, or write cluster: {provider: existing}")  # fmt: skip
        yield from _one_way_to_split(pools_in(pools, HAMI_MODES))


def _one_way_to_split(pools: Sequence[GpuPoolSpec]) -> Iterator[Problem]:
    # One chart value holds for all nodes; HAMi takes other values for a node by its name, which nobody knows of a node
    # that an autoscaler will start.
    for field, values in (
        ("split", {pool.split for pool in pools}),
        ("memoryScaling", {pool.memory_scaling for pool in pools}),
    ):
        if len(values) > 1:
            shown = ", ".join(pool.name for pool in pools)
            yield Problem("gpuPools", f"HAMi has one {field} for all its pools ({shown}), here are several",
                          sorted(values), "one value", f"write the same {field} in each")  # fmt: skip
