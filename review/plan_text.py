"""The plan in words: models, what restarts, GPUs and money, everything else."""

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

from policies.reading.prices import Price
from review.changes import Change, Op, Plan
from review.effects import Effects, effects, platform_changes
from review.figures import PoolUse, figures
from review.markdown import code, left_out, prose, table
from review.models import Fact, ModelChange, model_changes
from review.words import title

_MOST_PATHS: Final = 3
_DONE: Final = {Op.CREATE: "new", Op.UPDATE: "changed", Op.REPLACE: "made anew", Op.DELETE: "deleted"}


def lines(plan: Plan, cap: int) -> Iterator[str]:
    """The sections of the plan, each list cut to ``cap`` items."""
    found, models, others = effects(plan), model_changes(plan), platform_changes(plan)
    counts = ", ".join(f"{len(plan.of(op))} {_DONE[op]}" for op in _DONE if plan.of(op))
    if not counts:
        yield "### Plan"
        yield ""
        yield "Nothing changes."
        yield ""
        yield from _figures(plan)
        return
    yield from _warnings(found, cap)
    yield "### Plan"
    yield ""
    yield f"Resources: {counts}, {len(plan.of(Op.SAME))} as they are."
    yield ""
    yield from _models(models, cap)
    yield from _runs(found, cap)
    yield from _figures(plan)
    yield from _others(others, cap)


def _warnings(found: Effects, cap: int) -> Iterator[str]:
    if not found.versions and not found.losses:
        return
    yield "### Take care"
    yield ""
    for one in found.versions[:cap]:
        yield f"- **{one.part}** changes from {code(one.old)} to {code(one.new)}: {one.warning}"
    yield from left_out(len(found.versions) - cap, "versions")
    for one in found.losses[:cap]:
        yield f"- {code(one.what)} {prose(one.how)}"
    yield from left_out(len(found.losses) - cap, "losses")
    yield ""


def _models(models: Sequence[ModelChange], cap: int) -> Iterator[str]:
    for op, heading in ((Op.CREATE, "added"), (Op.UPDATE, "changed"), (Op.DELETE, "removed")):
        found = [one for one in models if one.op is op]
        if not found:
            continue
        yield f"**{len(found)} {'model' if len(found) == 1 else 'models'} {heading}**"
        yield ""
        for model in found[:cap]:
            gone = ": its addresses answer no more" if op is Op.DELETE else ""
            yield f"- {code(model.name)} of {code(model.owner)}{gone}"
            yield from (f"  - {_fact(fact, alone=op is Op.CREATE)}" for fact in model.facts[:cap])
            yield from left_out(len(model.facts) - cap, "changes", "  ")
            yield from (f"  - {_change(*other)}" for other in model.others[:cap])
            yield from left_out(len(model.others) - cap, "resources", "  ")
        yield from left_out(len(found) - cap, "models")
        yield ""


def _fact(fact: Fact, *, alone: bool) -> str:
    what = prose(fact.what)
    if fact.old is None:
        return f"{what}: {code(fact.new or '')}{'' if alone else ', new'}"
    if fact.new is None:
        return f"{what}: {code(fact.old)}, gone"
    old, new = _apart(fact.old, fact.new)
    return f"{what}: {code(old)} -> {code(new)}"


def _apart(old: str, new: str) -> tuple[str, str]:
    """Two texts, and of those of several lines only the lines that differ."""
    if "\n" not in old + new:
        return old, new
    lines = [one.splitlines() for one in (old, new)]
    gone, come = [], []
    for op, first, last, start, end in difflib.SequenceMatcher(None, *lines, autojunk=False).get_opcodes():
        if op != "equal":
            gone += lines[0][first:last]
            come += lines[1][start:end]
    return " ".join(gone) or "nothing", " ".join(come) or "nothing"


def _change(change: Change, paths: Sequence[str]) -> str:
    shown = f"{code(title(change.shown))} {_DONE[change.op]}"
    if not paths and change.op is Op.UPDATE and change.before and change.after:
        hashed = change.before.inputs != change.after.inputs
        why = "the hash of what its pods read" if hashed else "a secret, or something that the engine alone sees"
        return f"{shown}: {why}"
    if not paths:
        return shown
    more = f" and {len(paths) - _MOST_PATHS} more" if len(paths) > _MOST_PATHS else ""
    return f"{shown}: {', '.join(code(path) for path in paths[:_MOST_PATHS])}{more}"


def _runs(found: Effects, cap: int) -> Iterator[str]:
    yield "**What restarts**"
    yield ""
    if not found.restarts:
        yield "- nothing"
    for one in found.restarts[:cap]:
        yield f"- {code(one.what)}: {prose(one.how)}"
    yield from left_out(len(found.restarts) - cap, "restarts")
    yield ""
    if found.routes:
        yield "**Only routes change, nothing restarts**"
        yield ""
        yield from (f"- {code(name)}" for name in found.routes[:cap])
        yield from left_out(len(found.routes) - cap, "routes")
        yield ""


def _figures(plan: Plan) -> Iterator[str]:
    found = figures(plan)
    if found.pools:
        yield "**GPUs**"
        yield ""
        header = ("pool", "cards before", "cards after", "asked before", "asked after", "")
        yield from table(header, [_pool(name, *uses) for name, uses in sorted(found.pools.items())])
        yield ""
    yield "**Cost of GPU nodes**"
    yield ""
    yield f"- before: {_money(found.before)}"
    yield f"- after: {_money(found.after)}{_difference(found.before, found.after)}"
    if found.after:
        yield from (f"- not in these figures: {prose(one)}" for one in found.after.unpriced)
        if found.after.high:
            yield f"- {prose(found.after.note)}"
    yield ""


def _pool(name: str, before: PoolUse | None, after: PoolUse) -> tuple[str, ...]:
    old = ("not known", "not known") if before is None else (f"{before.cards}", _range(before.low, before.high))
    short = after.low is not None and after.low > after.cards
    tight = not short and after.high is not None and after.high > after.cards
    word = "**not enough: pods stay Pending**" if short else "not enough for the most replicas" if tight else ""
    return (code(name), old[0], f"{after.cards}", old[1], _range(after.low, after.high), word)


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "not known yet"
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _money(price: Price | None) -> str:
    if price is None:
        return "not known"
    if price.unpriced and not price.high:
        return "nothing that has a price"
    low, high = (f"USD {one:,.0f}" for one in (price.low, price.high))
    return f"{low} a month" if low == high else f"{low} to {high} a month"


def _difference(before: Price | None, after: Price | None) -> str:
    if before is None or after is None:
        return ""
    low, high = after.low - before.low, after.high - before.high
    if not round(low) and not round(high):
        return " (no change)"
    signed = [f"{'+' if one >= 0 else '-'}{abs(one):,.0f}" for one in (low, high)]
    return f" ({signed[0]})" if signed[0] == signed[1] else f" ({signed[0]} to {signed[1]})"


def _others(found: Sequence[tuple[Change, Sequence[str]]], cap: int) -> Iterator[str]:
    if not found:
        return
    yield f"<details><summary>{len(found)} more {'resource' if len(found) == 1 else 'resources'}</summary>"
    yield ""
    yield from (f"- {_change(*one)}" for one in found[:cap])
    yield from left_out(len(found) - cap, "resources")
    yield ""
    yield "</details>"
    yield ""
