"""GPU nodes of one kind, and the contract between them and whatever runs on them."""

from collections.abc import Iterable
from typing import Final

import pulumi
import pulumi_kubernetes as k8s

from components.args import Args
from spec import names
from spec.fields import mebibytes
from spec.pool import GpuPoolSpec

# By this label HAMi knows its nodes, and NVIDIA's device plugin those that it must leave alone.
HAMI_LABEL: Final = "gpu"
HAMI_VALUE: Final = "on"
# Pods that one node takes; the kubelet's default.
_PODS: Final = "110"


def node_labels(pool: GpuPoolSpec) -> dict[str, str]:
    """Labels of every node of the pool, as GPU feature discovery writes them; ``node_selector`` picks from them."""
    hami = {HAMI_LABEL: HAMI_VALUE} if pool.sharing == "hami" else {}
    return (
        node_selector(pool)
        | hami
        | {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": pool.gpu_model,
            "nvidia.com/gpu.memory": str(mebibytes(pool.gpu_memory)),
        }
    )


def node_selector(pool: GpuPoolSpec) -> dict[str, str]:
    """What a pod writes to land on this pool and on no other."""
    return {names.POOL_LABEL: pool.name}


def node_affinity(pools: Iterable[GpuPoolSpec], *, but_hami: bool = False) -> k8s.core.v1.AffinityArgs:
    """What a DaemonSet writes to run on every node of these pools and on no other.

    Args:
        pools: at least one.
        but_hami: leave out nodes that are labelled for HAMi, whatever their pool.
    """
    requirement = k8s.core.v1.NodeSelectorRequirementArgs
    wanted = [requirement(key=names.POOL_LABEL, operator="In", values=[pool.name for pool in pools])]
    if but_hami:
        wanted.append(requirement(key=HAMI_LABEL, operator="NotIn", values=[HAMI_VALUE]))
    return k8s.core.v1.AffinityArgs(
        node_affinity=k8s.core.v1.NodeAffinityArgs(
            required_during_scheduling_ignored_during_execution=k8s.core.v1.NodeSelectorArgs(
                node_selector_terms=[k8s.core.v1.NodeSelectorTermArgs(match_expressions=wanted)]
            )
        )
    )


def taint(pool: GpuPoolSpec) -> k8s.core.v1.TaintArgs:
    """What keeps everything else off the nodes of a pool."""
    key, value, effect = pool.taint_parts
    return k8s.core.v1.TaintArgs(key=key, value=value, effect=effect)


def toleration(pool: GpuPoolSpec) -> k8s.core.v1.TolerationArgs:
    """What a pod writes to be let in."""
    key, value, effect = pool.taint_parts
    return k8s.core.v1.TolerationArgs(key=key, operator="Equal", value=value, effect=effect)


def tolerations(pools: Iterable[GpuPoolSpec]) -> list[k8s.core.v1.TolerationArgs]:
    """What a pod writes to be let in by all of these pools, each taint once."""
    return [toleration(pool) for pool in {pool.taint: pool for pool in pools}.values()]


def node_capacity(pool: GpuPoolSpec) -> dict[str, str]:
    """Capacity of one node: CPU, memory, pods and the extended resources of the sharing mode."""
    return {"cpu": pool.cpu, "memory": pool.memory, "pods": _PODS} | pool.node_capacity()


class GpuNodePoolArgs(Args):
    """Arguments of :class:`GpuNodePool`."""

    pool: GpuPoolSpec


class GpuNodePool(pulumi.ComponentResource):
    """The nodes of a pool.

    ``simulated`` makes KWOK Node objects, which accept pods and run nothing. ``eks`` makes a managed node group.
    ``existing`` makes nothing: the cluster has nodes with the pool's label and taint, and with ``gpu=on`` where HAMi
    shares their cards.

    Attributes:
        nodes: the nodes or the node group, for others to depend on.
    """

    nodes: list[pulumi.Resource]

    def __init__(self, name: str, args: GpuNodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:gpu:GpuNodePool", name, None, opts)
        pool = args.pool
        self.nodes = []
        if pool.provider == "simulated":
            self.nodes += [self._simulated_node(f"{pool.name}-{index}", pool) for index in range(pool.nodes)]
        elif pool.eks is not None:
            # The SDK of AWS takes a second to load, which only a stack with such a pool should wait for.
            from components.gpu import eks_nodes  # noqa: PLC0415

            self.nodes.append(eks_nodes.node_group(pool, pool.eks, node_labels(pool), parent=self))
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
            spec=k8s.core.v1.NodeSpecArgs(taints=[taint(pool)]),
            opts=pulumi.ResourceOptions(
                parent=self,
                transformations=[with_status],
                # The API server takes a node's status only when the node is created.
                replace_on_changes=["status"],
                delete_before_replace=True,
            ),
        )
