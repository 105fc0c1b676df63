"""What the policies say of a stack."""

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from local.table import table
from policies.judging.judge import Outcome, Verdict
from policies.judging.pack import Pack, judge_all
from policies.judging.view import Resource
from review.markdown import plain

_ORDER: Final = (Outcome.VIOLATED, Outcome.FAILED, Outcome.UNDECIDED, Outcome.WAIVED)


@dataclass(frozen=True)
class Result:
    """The review of one stack.

    Attributes:
        stack: its name.
        verdicts: what the policies say, refusals first.
        refused: the words of the program where it refused its own input: then no policy has seen anything.
        resources: how many the policies have seen.
        policies: how many there are.
    """

    stack: str
    verdicts: tuple[Verdict, ...] = ()
    refused: str = ""
    resources: int = 0
    policies: int = 0

    @property
    def passes(self) -> bool:
        """Whether nothing refuses the change."""
        return not self.refused and not any(verdict.refuses for verdict in self.verdicts)

    @property
    def headline(self) -> str:
        """What comes of it: ``refused``, ``cannot be decided`` or ``passes``."""
        if self.passes:
            return "passes"
        certain = self.refused or any(one.refuses and one.outcome is not Outcome.UNDECIDED for one in self.verdicts)
        return "refused" if certain else "cannot be decided"

    def count(self, outcome: Outcome) -> int:
        """Verdicts of one kind."""
        return sum(verdict.outcome is outcome for verdict in self.verdicts)


def judged(pack: Pack, stack: str, resources: Iterable[Resource], today: dt.date) -> Result:
    """Judge the resources of a stack.

    Raises:
        SpecError: a mistake in the stack's own file.
    """
    listed = tuple(resources)
    found = judge_all(pack.judge(stack, today), listed)
    verdicts = sorted(found, key=lambda one: (not one.refuses, _ORDER.index(one.outcome), one.policy.name))
    return Result(stack, tuple(verdicts), "", len(listed), len(pack.policies))


def report(results: Iterable[Result]) -> str:
    """Everything that the policies say of some stacks, for a terminal."""
    listed = list(results)
    return "\n\n".join([*(_stack(result) for result in listed), _summary(listed)])


def _stack(result: Result) -> str:
    head = f"Stack {result.stack}: {result.headline}"
    if result.refused:
        return f"{head} by its own program\n\n{result.refused}"
    head += f" ({result.policies} policies, {result.resources} resources)"
    return "\n\n".join([head, *_details(result.verdicts)])


def _details(verdicts: tuple[Verdict, ...]) -> Iterator[str]:
    if not verdicts:
        return
    rows = [
        [one.outcome, "refuses" if one.refuses else "advice", one.policy.name, plain(one.where), plain(one.message)]
        for one in verdicts
    ]
    yield table(["RESULT", "LEVEL", "POLICY", "RESOURCE", "WHAT"], rows)
    for policy in dict.fromkeys(one.policy for one in verdicts if one.outcome is not Outcome.WAIVED):
        yield f"{policy.name}: {policy.rule}.\n  fix:  {policy.fix}\n  docs: {policy.url}"


def _summary(results: list[Result]) -> str:
    said = [one.headline for one in results]
    stacks = ", ".join(f"{said.count(word)} {word}" for word in dict.fromkeys(said))
    counts = ", ".join(f"{sum(one.count(outcome) for one in results)} {outcome}" for outcome in _ORDER)
    return f"{len(results)} {'stack' if len(results) == 1 else 'stacks'}: {stacks}; {counts}"


def as_json(results: Iterable[Result]) -> dict[str, Any]:
    """The same for programs."""
    return {
        "stacks": {
            one.stack: {
                "result": one.headline,
                "refused": one.refused or None,
                "policies": one.policies,
                "resources": one.resources,
                "verdicts": [_verdict(verdict) for verdict in one.verdicts],
            }
            for one in results
        }
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "policy": verdict.policy.name,
        "outcome": verdict.outcome,
        "level": verdict.level,
        "severity": verdict.policy.severity,
        "resource": verdict.where,
        "message": verdict.message,
        "fix": verdict.policy.fix,
        "docs": verdict.policy.url,
    }
