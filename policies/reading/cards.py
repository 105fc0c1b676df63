"""How many cards the workloads of a stack ask for, counted as the outputs of the stack count them."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from policies.judging.view import View, dig
from policies.reading.nodes import pools_of
from policies.reading.pods import GPU_PREFIXES, Pods, pods_of
from policies.reading.replicas import Workload, workloads
from spec.gpu import GPU, GPU_CORES, GPU_MEMORY, GPU_MEMORY_PERCENT, VCUDA_CORE, mig_slices_per_card
from spec.pool import GpuPoolSpec

_QUANTITY: Final = re.compile(r"^([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(m|[kMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2}|)$")
_THOUSANDS: Final = ("k", "M", "G", "T", "P", "E")
_UNITS: Final = {
    "": Decimal(1), "m": Decimal("0.001"), **{unit: Decimal(1000) ** (n + 1) for n, unit in enumerate(_THOUSANDS)},
    **{f"{unit.upper()}i": Decimal(1024) ** (n + 1) for n, unit in enumerate(_THOUSANDS)},
}  # fmt: skip
_MIG: Final = re.compile(r"^nvidia\.com/mig-(([1-7])g\.[0-9]+gb)$")
_SHARES: Final = (GPU_CORES, GPU_MEMORY, GPU_MEMORY_PERCENT)


def quantity(value: Any) -> Decimal | None:  # noqa: ANN401  # JSON
    """A Kubernetes quantity as a number, or None where it is none.

    Raises:
        CannotDecide: it is unknown.
    """
    match = _QUANTITY.fullmatch(f"{value}")
    if not match:
        return None
    return Decimal(match[1]) * _UNITS[match[2]] if match[2] in _UNITS else Decimal(match[0])


def gpu_resources(container: Mapping[str, Any], part: str) -> dict[str, Any]:
    """GPU resources of a container as they are written, in its ``limits`` or its ``requests``."""
    found = dig(container, "resources", part, default={})
    return {name: value for name, value in found.items() if name.startswith(GPU_PREFIXES)}


def holds(container: Mapping[str, Any]) -> dict[str, Decimal]:
    """GPU resources that a container holds: the scheduler goes by requests, which are the limits by default."""
    written = gpu_resources(container, "limits") | gpu_resources(container, "requests")
    amounts = {name: quantity(value) for name, value in written.items()}
    return {name: amount for name, amount in amounts.items() if amount and amount > 0}


def cards(held: Mapping[str, Decimal], pool: GpuPoolSpec) -> float:
    """Cards of a pool that resources mean, see ``spec.gpu.GpuRequest.cards``: a MIG slice is its compute sevenths."""
    match pool.sharing:
        case "whole":
            return float(held.get(GPU, 0))
        case "mig":
            return sum(
                float(amount) * int(match[2]) / 7 for name, amount in held.items() if (match := _MIG.match(name))
            )
        case "timeSlicing":
            return float(held.get(f"{GPU}.shared", 0)) / (pool.slices or 1)
        case "hami":
            return _virtual_cards(held) * float(held.get(GPU_CORES, 100)) / 100
        case "qgpu":
            return float(held.get(VCUDA_CORE, 0)) / 100


def whole_cards(held: Mapping[str, Decimal], pool: GpuPoolSpec) -> int:
    """Free cards that are enough for a replica: several shares of one kind need as many cards."""
    match pool.sharing:
        case "whole" | "hami":
            return int(_virtual_cards(held))
        case "mig":
            slices = {
                name: mig_slices_per_card(match[1], pool.gpu_memory) for name in held if (match := _MIG.match(name))
            }
            return sum(math.ceil(held[name] / max(fit, 1)) for name, fit in slices.items())
        case "timeSlicing":
            return 1 if held else 0
        case "qgpu":
            return math.ceil(held.get(VCUDA_CORE, 0) / 100)


def _virtual_cards(held: Mapping[str, Decimal]) -> float:
    # HAMi takes a share without a number of cards for a share of one.
    return float(held.get(GPU, 1 if any(name in held for name in _SHARES) else 0))


@dataclass(frozen=True)
class Asked:
    """A workload that asks for GPUs.

    Attributes:
        pods: its pods.
        pool: where they run; None where they choose no pool of the stack. Of several it is the largest.
        replica: cards of one replica; 0 without a pool, which alone says what a resource means.
        spare: free cards of the pool that are enough for one more replica.
        low: fewest replicas.
        high: most replicas.
    """

    pods: Pods
    pool: GpuPoolSpec | None
    replica: float
    spare: int
    low: int
    high: int

    @property
    def part(self) -> tuple[str, float]:
        """Its name and the cards of its most replicas."""
        return self.pods.made_by.object_name, self.replica * self.high


@dataclass(frozen=True)
class PoolCards:
    """Cards of one pool.

    Attributes:
        pool: its name.
        low: cards asked for by the fewest replicas.
        high: cards asked for by the most replicas.
        there: cards that the pool has when it is largest.
        parts: what asks for them, and the cards of its most replicas.
    """

    pool: str
    low: float
    high: float
    there: int
    parts: tuple[tuple[str, float], ...] = ()


def gpus(view: View) -> tuple[PoolCards, ...]:
    """Cards asked for and cards there, for each pool of the stack.

    Raises:
        CannotDecide: something that counts is unknown.
    """
    listed = asked(view)
    return tuple(_pool_cards(pool, [one for one in listed if one.pool == pool]) for pool in view.spec.gpu_pools)


def _pool_cards(pool: GpuPoolSpec, listed: list[Asked]) -> PoolCards:
    low = round(sum(one.replica * one.low for one in listed), 3)
    high = round(sum(one.replica * one.high for one in listed), 3)
    return PoolCards(pool.name, low, high, pool.cards, tuple(one.part for one in listed))


def asked(view: View) -> list[Asked]:
    """The workloads that ask for GPUs.

    Raises:
        CannotDecide: something that counts is unknown.
    """
    found = (asked_by(workload, view) for workload in (*workloads(view), *_others(view)))
    return [one for one in found if one]


def asked_by(workload: Workload, view: View) -> Asked | None:
    """What one workload asks for, or None where that is no GPU.

    Raises:
        CannotDecide: something that counts is unknown.
    """
    pods = workload.pods
    if not any(map(holds, pods.all_containers)):
        return None
    pool = max(pools_of(pods, view), key=lambda one: one.cards, default=None)
    low, high = workload.fewest, workload.most
    if pool is None:
        return Asked(pods, None, 0, 0, low, high)
    if pods.made_by.kind == "DaemonSet":
        low, high = pool.eks.min if pool.eks else pool.nodes, pool.most_nodes
    main = [holds(container) for container in pods.containers]
    before = [holds(container) for container in pods.field("initContainers", default=[])]
    # Init containers end before the others start, and what they held is free again.
    replica = max(sum(cards(one, pool) for one in main), *(cards(one, pool) for one in before), 0)
    spare = max(sum(whole_cards(one, pool) for one in main), *(whole_cards(one, pool) for one in before), 0)
    return Asked(pods, pool, replica, spare, low, high)


def _others(view: View) -> Iterator[Workload]:
    """Pods that no autoscaler counts. Those of a job are there for a while only, and a DaemonSet has one a node."""
    for found in view.of_kind("Pod", "DaemonSet", "Job", "CronJob"):
        if pods := pods_of(found):
            path = ("spec", "jobTemplate", "spec") if found.kind == "CronJob" else ("spec",)
            most = found.at(*path, "parallelism", default=1)
            yield Workload(found, pods, 1 if found.kind == "Pod" else 0, most)
