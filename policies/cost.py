"""Policies about cost: who pays, and how much it may become."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy, object_policy
from policies.judging.unknown import CannotDecide
from policies.judging.view import Resource, View, dig
from policies.reading.pods import pods_of
from policies.reading.prices import NODE_GROUP, estate_price
from spec import names
from spec.eks import EksSpec

# What costs money by itself, and can be told apart on the bill.
_WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod")
_LABELLED: Final = (*_WORKLOADS, "Service", "PersistentVolumeClaim")
_TAGGED: Final = (
    NODE_GROUP, "aws:eks/cluster:Cluster", "aws:ec2/instance:Instance", "aws:ebs/volume:Volume", "aws:s3/bucket:Bucket",
    "aws:s3/bucketV2:BucketV2", "aws:efs/fileSystem:FileSystem", "aws:fsx/lustreFileSystem:LustreFileSystem",
    "aws:lb/loadBalancer:LoadBalancer",
)  # fmt: skip


@object_policy(
    "owner-labels",
    f"Whatever costs money says whose it is: {names.OWNER_LABEL}, or {names.PART_OF_LABEL} for the platform's own",
    why="Nobody pays for it, nobody is woken when it breaks, and nobody dares to delete it.",
    fix=f"write owner into the model file; elsewhere put {names.OWNER_LABEL} on the object and its pods, or into the "
    "tags of the cloud resource",
    severity=Severity.MEDIUM,
    dev=Level.ADVISORY,
)
def owner_labels(found: Resource, view: View) -> Iterator[str]:
    """Labels of objects and of their pods, tags of cloud resources. What serves is a team's and not the platform's."""
    if found.type in _TAGGED:
        yield from _unowned("it", "tags", found.at("tags", default={}), platform=True)
    if not found.is_object or found.kind not in _LABELLED:
        return
    platform = found.namespace != view.spec.namespace
    yield from _unowned("it", "labels", found.labels, platform=platform)
    if found.kind != "Pod" and (pods := pods_of(found)):
        yield from _unowned("its pods", "labels", pods.labels, platform=platform)


def _unowned(what: str, where: str, labels: Mapping[str, Any], *, platform: bool) -> Iterator[str]:
    wanted = (names.OWNER_LABEL, names.PART_OF_LABEL) if platform else (names.OWNER_LABEL,)
    if not any(dig(labels, key) for key in wanted):
        yield f"among the {where} of {what} is no {' or '.join(wanted)}"


@object_policy(
    "dev-nodes-never-zero",
    "GPU nodes of a dev stack can all go",
    why="A node with GPUs that stays through nights and weekends costs as much as in production, for nobody.",
    fix="leave eks.min of the pool out of the stack file, or set it to 0: the cluster autoscaler starts the first node",
    severity=Severity.LOW,
    dev=Level.ADVISORY,
    prod=Level.DISABLED,
)
def dev_nodes_never_zero(found: Resource, view: View) -> Iterator[str]:
    """Fewest nodes of node groups with GPUs."""
    del view
    if found.type != NODE_GROUP or not _has_gpus(found):
        return
    # EKS makes a group without sizes of one node.
    fewest = found.at("scalingConfig", "minSize", default=1)
    if fewest > 0:
        yield f"its fewest nodes are {fewest}"


def _has_gpus(group: Resource) -> bool:
    kinds = group.at("instanceTypes", default=[])
    nvidia = any(word in group.at("amiType", default="") for word in ("NVIDIA", "GPU"))
    return nvidia or any(EksSpec.model_construct(instance_type=kind).cards for kind in kinds)


@estate_policy(
    "monthly-cost",
    "The nodes of the stack stay within its monthly budget",
    why="The bill comes a month after the change that made it.",
    fix="lower eks.max of a pool or choose another instanceType in the stack file, or have monthlyBudget of the stack "
    "raised in policies/settings.yaml; prices are in policies/prices.yaml",
    severity=Severity.LOW,
    dev=Level.ADVISORY,
    prod=Level.ADVISORY,
)
def monthly_cost(view: View) -> Iterator[Finding]:
    """The price of all node groups with their fewest and their most nodes, where the stack has a budget."""
    budget = view.policies.monthly_budget
    if budget is None:
        return
    price = estate_price(view)
    if price.high > budget:
        message = (
            f"its nodes cost {price.low:,.0f} to {price.high:,.0f} USD a month, above the {budget:,.0f} of its budget"
        )
        yield Finding(None, f"{message} ({price.note})")
    elif unknown := [f"{pool.pool}: {pool.unpriced}" for pool in price.pools if pool.made_here and pool.unpriced]:
        raise CannotDecide("; ".join(unknown))
