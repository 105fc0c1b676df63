"""Policies about GPUs: who asks for them, where, and whether there are enough."""

from collections.abc import Iterator, Sequence

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy, object_policy
from policies.judging.view import Resource, View, dig
from policies.reading import sharing
from policies.reading.cards import asked, asked_by, gpu_resources, gpus, holds, quantity
from policies.reading.each import each
from policies.reading.nodes import may_share_a_node, pools_of, tolerates
from policies.reading.pods import pods_of
from policies.reading.replicas import Workload, workloads
from policies.reading.rollouts import Rollout
from spec import names

_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_ROUNDING = 0.001  # of three decimals, in which cards are counted
_SHOWN = 5  # workloads in a message


@object_policy(
    "gpu-by-environment",
    "No container picks GPUs by NVIDIA_VISIBLE_DEVICES",
    why="The variable goes past the scheduler: pods disturb each other's cards, and no metric names the pod.",
    fix="ask for cards with resources.gpu; for cards without a guarantee use a pool with sharing: timeSlicing",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def gpu_by_environment(found: Resource, view: View) -> Iterator[str]:
    """Variables of containers."""
    del view
    # What hands out the devices of a node is a DaemonSet, and sees them all.
    pods = pods_of(found) if found.kind != "DaemonSet" else None
    for container in pods.all_containers if pods else ():
        for variable in container.get("env") or ():
            if variable["name"] == _VISIBLE:
                yield f"container {container['name']} sets {_VISIBLE} to {variable.get('value')!r}"


@object_policy(
    "gpu-not-in-limits",
    "GPUs stand in the limits of a container, in whole numbers, and its requests say the same",
    why="The API server refuses anything else, and a share of a card is another resource than half of one.",
    fix="ask for cards with resources.gpu of the model file, which knows what the pool offers; elsewhere write the "
    "same whole number into resources.limits and resources.requests",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def gpu_not_in_limits(found: Resource, view: View) -> Iterator[str]:
    """Limits and requests of containers."""
    del view
    pods = pods_of(found)
    for container in pods.all_containers if pods else ():
        name = f"container {dig(container, 'name', default='')}"
        limits, requests = gpu_resources(container, "limits"), gpu_resources(container, "requests")
        for resource, value in (requests | limits).items():
            amount = quantity(value)
            if amount is None or amount < 0 or amount % 1:
                yield f"{name} asks for {resource}: {value}, which is no whole number"
        for resource, value in requests.items():
            if resource not in limits:
                yield f"{name} requests {resource}: {value} and has no limit of it"
            elif quantity(value) != quantity(limits[resource]):
                yield f"{name} requests {resource}: {value} and has a limit of {limits[resource]}"


@object_policy(
    "gpu-without-pool",
    "A pod that asks for GPUs chooses a GPU pool of the stack and tolerates its taint",
    why="It waits for ever in front of the pool's taint, or lands on cards that are meant for others.",
    fix="name the pool in the model file (pool), or add it to gpuPools of the stack file; elsewhere write the pool's "
    f"label {names.POOL_LABEL} into nodeSelector and its taint into tolerations",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def gpu_without_pool(found: Resource, view: View) -> Iterator[str]:
    """Node selector, affinity and tolerations of pods with GPUs."""
    pods = pods_of(found)
    wanted = sorted({name for container in pods.all_containers for name in holds(container)}) if pods else []
    if pods is None or not wanted:
        return
    pools = pools_of(pods, view)
    if not pools:
        known = ", ".join(pool.name for pool in view.spec.gpu_pools) or "none"
        yield f"asks for {', '.join(wanted)} and chooses no GPU pool of the stack; pools: {known}"
    for pool in pools:
        if not tolerates(pods, pool):
            yield f"chooses pool {pool.name} and does not tolerate its taint {pool.taint}"


@estate_policy(
    "gpu-rollout-deadlock",
    "A rollout needs no card before it gives one back, unless the pool keeps one free",
    why="On full nodes the new pod waits for the card of the old one, and the old one for the new to be ready.",
    fix="set strategy.rollingUpdate to maxSurge: 0 and maxUnavailable: 1, or Recreate for a single replica, or keep "
    "cards free with spareGpus of the pool in the stack file",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def gpu_rollout_deadlock(view: View) -> Iterator[Finding]:
    """Strategies of Deployments with GPUs at their fewest replicas, where percents come out smallest."""

    def check(workload: Workload) -> Iterator[str]:
        one = asked_by(workload, view)
        if one is None or one.high == 0:
            return
        rollout = Rollout.of(workload.made_by, max(one.low, 1))
        if rollout is None or not rollout.waits or (one.pool and one.spare <= one.pool.spare_gpus):
            return
        pool = f"pool {one.pool.name} keeps {one.pool.spare_gpus} free" if one.pool else "its pool is not known"
        yield f"{rollout}: a new pod takes a card before an old one goes, and {pool}"

    yield from each(workloads(view), check, lambda workload: workload.made_by)


@estate_policy(
    "gpu-pool-budget",
    "A pool has the cards for the most replicas of everything that runs on it",
    why="On a busy day the last replicas wait for a card that does not exist, while the autoscalers ask for more.",
    fix="lower scaling.max of a model, give shares of a card their part of its compute (resources.gpu.cores), or add "
    "nodes to the pool in the stack file",
    severity=Severity.MEDIUM,
    dev=Level.ADVISORY,
)
def gpu_pool_budget(view: View) -> Iterator[Finding]:
    """Cards that the most replicas ask for against cards of the pool."""
    for pool in gpus(view):
        if pool.high > pool.there + _ROUNDING:
            most = f"pool {pool.pool} has {pool.there} cards, and the most replicas ask for {pool.high:g}"
            yield Finding(_pool(view, pool.pool), f"{most}: {_largest(pool.parts)}")


@estate_policy(
    "gpu-owner-budget",
    "The models of an owner stay within the owner's cards",
    why="Cards are the dearest thing here, and who takes more than was agreed takes it from another team.",
    fix="lower scaling.max of the owner's models, or have gpuBudgets of the stack raised in policies/settings.yaml",
    severity=Severity.MEDIUM,
    dev=Level.ADVISORY,
)
def gpu_owner_budget(view: View) -> Iterator[Finding]:
    """Cards that the most replicas of an owner ask for; an owner without a budget is free."""
    budgets = view.policies.gpu_budgets
    parts: dict[str, list[tuple[str, float]]] = {}
    for one in asked(view) if budgets else ():
        owner = one.pods.made_by.owner or one.pods.labels.get(names.OWNER_LABEL)
        if owner in budgets:
            parts.setdefault(owner, []).append(one.part)
    for owner, cards in parts.items():
        total = round(sum(part for _, part in cards), 3)
        if total > budgets[owner] + _ROUNDING:
            most = f"{owner} may hold {budgets[owner]:g} cards, and the most replicas of its models ask for {total:g}"
            yield Finding(None, f"{most}: {_largest(cards)}")


def _largest(parts: Sequence[tuple[str, float]]) -> str:
    shown = sorted(parts, key=lambda part: -part[1])
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(f"{name} {cards:.4g}" for name, cards in shown[:_SHOWN]) + more


def _pool(view: View, name: str) -> Resource | None:
    return next((found for found in view.of_kind("GpuNodePool") if found.name == name), None)


@estate_policy(
    "gpu-sharing-conflict",
    "Each card has one that hands it out, and pods on a pool of HAMi go through HAMi",
    why="Two device plugins on a node give one card to two pods, and a pod that passes HAMi by has no limit of memory.",
    fix="set gpuSoftware to managed in the stack file; elsewhere give the two plugins node selectors that exclude each "
    "other, the webhook failurePolicy: Fail, and pods no schedulerName",
    severity=Severity.CRITICAL,
    dev=Level.MANDATORY,
)
def gpu_sharing_conflict(view: View) -> Iterator[Finding]:
    """Nodes of device plugins, HAMi's webhook, and schedulers of pods on HAMi's pools."""
    hami = list(sharing.hami_plugins(view))
    for plugin in sharing.nvidia_plugins(view):
        both = [other.name for other in hami if may_share_a_node(plugin.nodes, other.nodes)]
        if both:
            yield Finding(
                plugin.made_by, f"{plugin.name} may run on the same nodes as {' and '.join(dict.fromkeys(both))}"
            )
    for found, policy in sharing.failure_policies(view):
        if policy != "Fail":
            yield Finding(found, f"HAMi's webhook has failurePolicy {policy}: without it pods start with no limit")
    for one in asked(view):
        scheduler = sharing.other_scheduler(one.pods) if one.pool and one.pool.sharing == "hami" else None
        if scheduler:
            yield Finding(one.pods.made_by, f"runs on a pool of HAMi and asks for scheduler {scheduler}")


@object_policy(
    "host-access",
    f"Only DaemonSets in {names.GPU_NAMESPACE} reach into the node: privileged, hostPath, host namespaces",
    why="Such a pod reads and writes whatever the node holds, the files and cards of other teams' pods included.",
    fix="take it out; files come by repository or by a volume, and metrics of the node from its exporter",
    severity=Severity.CRITICAL,
    dev=Level.MANDATORY,
)
def host_access(found: Resource, view: View) -> Iterator[str]:
    """Security contexts, volumes and host namespaces of pods."""
    del view
    pods = pods_of(found)
    if pods is None or (found.kind == "DaemonSet" and found.namespace == names.GPU_NAMESPACE):
        return
    for container in pods.all_containers:
        if dig(container, "securityContext", "privileged", default=False):
            yield f"container {dig(container, 'name', default='')} is privileged"
    for volume in pods.field("volumes", default=[]):
        if path := dig(volume, "hostPath", "path"):
            yield f"volume {dig(volume, 'name', default='')} is {path} of the node"
    for name in ("hostPID", "hostNetwork", "hostIPC"):
        if pods.field(name, default=False):
            yield f"{name} is true"


@estate_policy(
    "gpu-memory-overcommit",
    "No pool hands out more GPU memory than its cards have",
    why="The host's memory stands in for what is missing: slow for everybody on the card, and experimental in HAMi.",
    fix="leave memoryScaling of the pool out of the stack file, and ask for less GPU memory",
    severity=Severity.LOW,
    dev=Level.DISABLED,
    prod=Level.ADVISORY,
)
def gpu_memory_overcommit(view: View) -> Iterator[Finding]:
    """Pools of the stack."""
    for pool in view.spec.gpu_pools:
        if pool.memory_scaling > 1:
            offered = f"{pool.card_mebibytes / 1024:g}Gi of a card of {pool.gpu_memory}"
            yield Finding(_pool(view, pool.name), f"memoryScaling {pool.memory_scaling:g} hands out {offered}")
