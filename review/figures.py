"""GPUs and money before and after a change, counted as the policies count them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from policies.judging.unknown import CannotDecide
from policies.judging.view import View
from policies.reading.cards import gpus
from policies.reading.prices import Price, estate_price
from review.changes import Plan, Side

T = TypeVar("T")


@dataclass(frozen=True)
class PoolUse:
    """One GPU pool on one side of a change.

    Attributes:
        cards: cards there when the pool is largest.
        low: cards asked for by the fewest replicas; None where that is not known yet.
        high: cards asked for by the most replicas; None where that is not known yet.
    """

    cards: int = 0
    low: float | None = 0
    high: float | None = 0


@dataclass(frozen=True)
class Figures:
    """GPUs and money before and after.

    Attributes:
        pools: name -> before and after; before is None where nobody can tell.
        before: what the nodes cost in a month; None where nobody can tell.
        after: the same after the change.
    """

    pools: Mapping[str, tuple[PoolUse | None, PoolUse]]
    before: Price | None
    after: Price | None


def figures(plan: Plan) -> Figures:
    """GPUs and money before and after a change."""
    old, new = uses(plan.stack, plan.before) if plan.before else None, uses(plan.stack, plan.after)
    found = dict.fromkeys((*(old or {}), *new))
    pools = {name: (None if old is None else old.get(name, PoolUse()), new.get(name, PoolUse())) for name in found}
    before = _told(estate_price, _view(plan.stack, plan.before)) if plan.before else None
    return Figures(pools, before, _told(estate_price, _view(plan.stack, plan.after)))


def uses(stack: str, side: Side) -> dict[str, PoolUse]:
    """The GPU pools of a stack, by name."""
    found = _told(gpus, _view(stack, side))
    if found is None:
        return {pool.name: PoolUse(pool.cards, None, None) for pool in side.spec.gpu_pools}
    return {one.pool: PoolUse(one.there, one.low, one.high) for one in found}


def _view(stack: str, side: Side) -> View:
    return View(stack, side.spec, resources=side.resources)


def _told(count: Callable[[View], T], view: View) -> T | None:
    """What the policies count, or None where it depends on what is not known yet, or on an object that makes no sense.

    Of such an object the policies themselves have to say that they fail at it.
    """
    try:
        return count(view)
    except (CannotDecide, TypeError, AttributeError, ValueError, KeyError):
        return None
