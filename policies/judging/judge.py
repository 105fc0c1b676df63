"""Runs policies over resources, and says what comes of it on this stack."""

import datetime as dt
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, Policy
from policies.judging.settings import Waiver
from policies.judging.unknown import CannotDecide
from policies.judging.view import Resource, View

STACK: Final = "stack"  # where a waiver is for the stack as a whole
_ORDER: Final = (Level.DISABLED, Level.ADVISORY, Level.MANDATORY)
_LONGEST: Final = 600  # characters of an error that a reader gets
# Judged here and not by a function of its own: it is about what the others found.
WAIVERS: Final = Policy(
    "waivers-hold",
    "Every waiver is still good for something",
    why="A waiver that is over, or that nobody needs, hides the next violation.",
    fix="mend what it waives and take it out of policies/waivers.yaml, or ask the reviewer for a later date",
    severity=Severity.MEDIUM,
    dev=Level.MANDATORY,
    prod=Level.MANDATORY,
)


class Outcome(StrEnum):
    """What became of a policy at a resource that does not simply pass."""

    VIOLATED = "violated"
    UNDECIDED = "undecided"
    FAILED = "failed"
    WAIVED = "waived"


@dataclass(frozen=True)
class Verdict:
    """One thing that the review has to say.

    Attributes:
        policy: which rule.
        outcome: what became of it.
        level: whether that refuses the change.
        resource: where; None for the stack as a whole.
        message: what is wrong, a sentence without a full stop.
    """

    policy: Policy
    outcome: Outcome
    level: Level
    resource: Resource | None
    message: str

    @property
    def where(self) -> str:
        """The resource as waivers name it."""
        return self.resource.key if self.resource else STACK

    @property
    def refuses(self) -> bool:
        """Whether the change must not be merged."""
        return self.level is Level.MANDATORY


@dataclass(frozen=True)
class Judge:
    """The policies as they hold on one stack.

    Attributes:
        policies: all of them.
        view: settings of the stack; its resources are not looked at.
        waivers: those for this stack.
        today: against which waivers expire.
        overrides: levels from the command line of Pulumi, which go before everything else.
    """

    policies: Sequence[Policy]
    view: View
    waivers: tuple[Waiver, ...] = ()
    today: dt.date = dt.date.max
    overrides: tuple[tuple[str, Level], ...] = ()

    def level(self, policy: Policy) -> Level:
        """Level of a policy on this stack."""
        own = policy.prod if self.view.prod else policy.dev
        return dict(self.overrides).get(policy.name) or Level(self.view.policies.levels.get(policy.name, own))

    def judge_object(self, resource: Resource) -> Iterator[Verdict]:
        """Ask every policy that looks at single resources."""
        for policy in self._enabled:
            if check := policy.check_object:
                yield from self._run(policy, resource, lambda check=check: _at(resource, check(resource, self.view)))

    def judge_estate(self, resources: Iterable[Resource]) -> Iterator[Verdict]:
        """Ask every policy that looks at all resources together."""
        view = View(self.view.stack, self.view.spec, self.view.policies, tuple(resources))
        for policy in self._enabled:
            if check := policy.check_estate:
                yield from self._run(policy, None, lambda check=check: check(view))

    def judge_waivers(self, verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
        """Say which waivers are over, and which waive nothing, after everything else has been judged."""
        used = {(one.policy.name, one.where) for one in verdicts}
        for waiver in self.waivers:
            what = f"the waiver of {waiver.policy} for {waiver.resource}"
            if waiver.expired(self.today):
                message = f"{what} expired on {waiver.expires}; {waiver.owner} has to mend it, or to ask again"
                yield Verdict(WAIVERS, Outcome.VIOLATED, Level.MANDATORY, None, message)
            elif (waiver.policy, waiver.resource) not in used:
                yield Verdict(WAIVERS, Outcome.VIOLATED, Level.ADVISORY, None, f"{what} waives nothing")

    @cached_property
    def _enabled(self) -> tuple[Policy, ...]:
        return tuple(policy for policy in self.policies if self.level(policy) is not Level.DISABLED)

    def _run(
        self, policy: Policy, resource: Resource | None, findings: Callable[[], Iterable[Finding]]
    ) -> Iterator[Verdict]:
        try:
            for found in findings():
                level, message = self.level(policy), found.message
                yield self._unless_waived(Verdict(policy, Outcome.VIOLATED, level, found.resource, message))
        except CannotDecide as unknown:
            default = Level.MANDATORY if self.view.prod else Level.ADVISORY
            level = min(Level(self.view.policies.undecided or default), self.level(policy), key=_ORDER.index)
            message = f"cannot decide: {unknown}"
            if level is not Level.DISABLED:
                yield self._unless_waived(Verdict(policy, Outcome.UNDECIDED, level, resource, message))
        except Exception as error:  # noqa: BLE001  # a policy's own mistake must not pass, nor take the others along
            message = f"the policy itself failed: {_line(error)}"
            yield Verdict(policy, Outcome.FAILED, Level.MANDATORY, resource, message)

    def _unless_waived(self, verdict: Verdict) -> Verdict:
        for waiver in self.waivers:
            if (waiver.policy, waiver.resource) == (verdict.policy.name, verdict.where):
                if waiver.expired(self.today):
                    continue
                text = f"{verdict.message}; waived by {waiver.owner} until {waiver.expires}: {waiver.reason}"
                return replace(verdict, outcome=Outcome.WAIVED, level=Level.ADVISORY, message=text)
        return verdict


def _at(resource: Resource, messages: Iterable[str]) -> Iterator[Finding]:
    return (Finding(resource, message) for message in messages)


def _line(error: Exception) -> str:
    """An error and where it arose, in one line."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"
    return " ".join(text.split())[:_LONGEST]
