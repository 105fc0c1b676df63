"""GPU nodes of one kind, and the contract between them and whatever runs on them."""

from typing import Final

import pulumi
import pulumi_kubernetes as k8s

from components.args import Args
from spec import names
from spec.estate import GpuPoolSpec
from spec.fields import mebibytes

_TAINT_KEY: Final = "nvidia.com/gpu"
_TAINT_VALUE: Final = "present"
# Pods that one node takes; the kubelet's default.
_PODS: Final = "110"


def node_labels(pool: GpuPoolSpec) -> dict[str, str]:
    """Labels of every node of the pool, as GPU feature discovery writes them; ``node_selector`` picks from them."""
    return node_selector(pool) | {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": pool.gpu_model,
        "nvidia.com/gpu.memory": str(mebibytes(pool.gpu_memory)),
    }


def node_selector(pool: GpuPoolSpec) -> dict[str, str]:
    """What a pod writes to land on this pool and on no other."""
    return {names.POOL_LABEL: pool.name}


def taint() -> k8s.core.v1.TaintArgs:
    """What keeps everything else off GPU nodes."""
    return k8s.core.v1.TaintArgs(key=_TAINT_KEY, value=_TAINT_VALUE, effect="NoSchedule")


def toleration() -> k8s.core.v1.TolerationArgs:
    """What a pod writes to be let in."""
    return k8s.core.v1.TolerationArgs(key=_TAINT_KEY, operator="Equal", value=_TAINT_VALUE, effect="NoSchedule")


def node_capacity(pool: GpuPoolSpec) -> dict[str, str]:
    """Capacity of one node: CPU, memory, pods and the extended resources of the sharing mode."""
    return {"cpu": pool.cpu, "memory": pool.memory, "pods": _PODS} | pool.node_capacity()


class GpuNodePoolArgs(Args):
    """Arguments of :class:`GpuNodePool`."""

    pool: GpuPoolSpec


class GpuNodePool(pulumi.ComponentResource):
    """The nodes of a pool.

    ``simulated`` makes KWOK Node objects, which accept pods and run nothing. ``existing`` makes nothing: the cluster
    has nodes with the pool's label and taint.

    Attributes:
        nodes: the Node resources, for others to depend on.
    """

    nodes: list[pulumi.Resource]

    def __init__(self, name: str, args: GpuNodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:gpu:GpuNodePool", name, None, opts)
        pool = args.pool
        count = pool.nodes if pool.provider == "simulated" else 0
        self.nodes = [self._simulated_node(f"{pool.name}-{index}", pool) for index in range(count)]
        self.register_outputs({})

    def _simulated_node(self, name: str, pool: GpuPoolSpec) -> k8s.core.v1.Node:
        capacity = node_capacity(pool)

        def with_status(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
            # NodeArgs has no status, because a kubelet writes it; these nodes have none.
            return pulumi.ResourceTransformationResult(
                {**args.props, "status": {"capacity": capacity, "allocatable": capacity}}, args.opts
            )

        return k8s.core.v1.Node(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=name,
                labels=node_labels(pool)
                | names.estate_labels("gpu-node")
                | {"kubernetes.io/hostname": name, "type": "kwok"},
                annotations={"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
            ),
            spec=k8s.core.v1.NodeSpecArgs(taints=[taint()]),
            opts=pulumi.ResourceOptions(
                parent=self,
                transformations=[with_status],
                # The API server takes a node's status only when the node is created.
                replace_on_changes=["status"],
                delete_before_replace=True,
            ),
        )
