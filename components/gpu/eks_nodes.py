"""The nodes of a GPU pool as a managed node group of EKS, which a cluster autoscaler can start from zero."""

from collections.abc import Mapping, Sequence
from typing import Final

import pulumi
import pulumi_aws as aws

from spec import names
from spec.eks import EksSpec
from spec.pool import GpuPoolSpec

# By this label the cluster autoscaler knows that a new node has GPUs even before its device plugin says so; without
# it one waiting pod starts node after node.
_ACCELERATOR: Final = "k8s.amazonaws.com/accelerator"
_TEMPLATE: Final = "k8s.io/cluster-autoscaler/node-template"
_EFFECTS: Final = {"NoSchedule": "NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}


def labels(pool: GpuPoolSpec, node_labels: Mapping[str, str]) -> dict[str, str]:
    """Labels of the nodes: those of every GPU node and the one that the cluster autoscaler asks for."""
    return dict(node_labels) | {_ACCELERATOR: pool.gpu_model}


def autoscaler_tags(pool: GpuPoolSpec, node_labels: Mapping[str, str]) -> dict[str, str]:
    """Tags of the Auto Scaling group, from which the autoscaler learns what a node will be like that is not there yet.

    EKS itself adds the two tags by which the autoscaler finds the group.
    """
    key, value, effect = pool.taint_parts
    return (
        {f"{_TEMPLATE}/label/{name}": text for name, text in labels(pool, node_labels).items()}
        | {f"{_TEMPLATE}/taint/{key}": f"{value}:{effect}"}
        | {f"{_TEMPLATE}/resources/{name}": quantity for name, quantity in pool.node_capacity().items()}
    )


def group_name(resources: Sequence[aws.eks.outputs.NodeGroupResource] | None) -> str:
    """Name of the Auto Scaling group behind a node group, empty as long as there is none."""
    groups = resources[0].autoscaling_groups if resources else None
    return (groups[0].name or "") if groups else ""


def node_group(
    pool: GpuPoolSpec, spec: EksSpec, node_labels: Mapping[str, str], parent: pulumi.Resource
) -> pulumi.Resource:
    """Register the node group and the tags of its Auto Scaling group.

    Args:
        pool: the pool.
        spec: its node group.
        node_labels: labels of every node, see ``components.gpu.node_pool.node_labels``.
        parent: the component they belong to.

    Returns:
        The node group, for others to wait for.
    """
    group = aws.eks.NodeGroup(
        pool.name,
        cluster_name=spec.cluster,
        node_group_name=pool.name,
        node_role_arn=spec.node_role_arn,
        subnet_ids=spec.subnets,
        instance_types=[spec.instance_type],
        ami_type=spec.ami,
        capacity_type="SPOT" if spec.spot else "ON_DEMAND",
        disk_size=spec.disk_gib,
        region=spec.region,
        labels=labels(pool, node_labels),
        taints=[_taint(pool)],
        scaling_config=aws.eks.NodeGroupScalingConfigArgs(min_size=spec.min, max_size=spec.max, desired_size=spec.min),
        # One at a time: every node that goes takes the models on its cards with it.
        update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
        tags=names.estate_labels("gpu-node"),
        # The autoscaler decides from the first node on.
        opts=pulumi.ResourceOptions(parent=parent, ignore_changes=["scalingConfig.desiredSize"]),
    )
    for key, value in sorted(autoscaler_tags(pool, node_labels).items()):
        aws.autoscaling.Tag(
            f"{pool.name}-{key.removeprefix(f'{_TEMPLATE}/')}",
            autoscaling_group_name=group.resources.apply(group_name),
            # For the autoscaler only: instances get their labels and taints from the node group.
            tag=aws.autoscaling.TagTagArgs(key=key, value=value, propagate_at_launch=False),
            region=spec.region,
            opts=pulumi.ResourceOptions(parent=parent),
        )
    return group


def _taint(pool: GpuPoolSpec) -> aws.eks.NodeGroupTaintArgs:
    key, value, effect = pool.taint_parts
    return aws.eks.NodeGroupTaintArgs(key=key, value=value, effect=_EFFECTS[effect])
