"""What a policy is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from policies.judging.levels import Level, Severity
from policies.judging.view import Resource, View

DOCUMENTATION: Final = "docs/policies.md"


@dataclass(frozen=True)
class Finding:
    """One thing that breaks a policy.

    Attributes:
        resource: where; None for the stack as a whole.
        message: what is wrong, with the values that are, as a sentence without a full stop.
    """

    resource: Resource | None
    message: str


@dataclass(frozen=True)
class Policy:
    """One rule with all that a reader of its refusal needs.

    Attributes:
        name: lower case words with dashes; the name in settings, waivers and documentation.
        rule: what has to hold, as a sentence without a full stop.
        why: what happens otherwise, one or two sentences.
        fix: what to do.
        severity: how bad a violation would be.
        dev: level in a dev environment.
        prod: level in a prod environment.
        check_object: looks at one resource; called as soon as the program registers it.
        check_estate: looks at all resources together, after the program has ended.
    """

    name: str
    rule: str
    why: str
    fix: str
    severity: Severity
    dev: Level
    prod: Level
    check_object: Callable[[Resource, View], Iterable[str]] | None = None
    check_estate: Callable[[View], Iterable[Finding]] | None = None

    @property
    def url(self) -> str:
        """Where its documentation is."""
        return f"{DOCUMENTATION}#{self.name}"


def object_policy(
    name: str, rule: str, *, why: str, fix: str, severity: Severity, dev: Level, prod: Level = Level.MANDATORY
) -> Callable[[Callable[[Resource, View], Iterable[str]]], Policy]:
    """Makes a policy of a function that yields what is wrong with one resource.

    The function gets the resource and a view without resources: a policy that needs the others is an
    :func:`estate_policy`.
    """
    return lambda check: Policy(name, rule, why, fix, severity, dev, prod, check_object=check)


def estate_policy(
    name: str, rule: str, *, why: str, fix: str, severity: Severity, dev: Level, prod: Level = Level.MANDATORY
) -> Callable[[Callable[[View], Iterable[Finding]]], Policy]:
    """Makes a policy of a function that yields what is wrong with the estate as a whole."""
    return lambda check: Policy(name, rule, why, fix, severity, dev, prod, check_estate=check)
