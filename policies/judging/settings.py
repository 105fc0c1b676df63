"""Settings of the policies for each stack, and their waivers: files of this folder, reviewed like code."""

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, Field

from spec import source
from spec.fields import DnsLabel, Spec, refuse
from spec.problems import Problem, SpecError
from spec.source import Source
from spec.validation import closest, validate

SETTINGS_FILE: Final = "policies/settings.yaml"
WAIVERS_FILE: Final = "policies/waivers.yaml"
LevelName = Literal["disabled", "advisory", "mandatory"]
S = TypeVar("S", bound=Spec)


class StackPolicies(Spec):
    """Settings of one stack.

    Attributes:
        levels: level of a policy by its name, where it is not the policy's own.
        undecided: level where a policy cannot decide, because a preview does not know a value yet; by default mandatory
            in prod and advisory in dev. A policy whose own level is lower keeps that.
        gpu_budgets: most cards that the models of an owner may come to hold together, by owner.
        monthly_budget: most USD that the nodes of the stack may come to cost in a month; by default nobody looks.
        registries: what the name of every image has to begin with, e.g. ``nvcr.io/nvidia/``; by default anything.
    """

    levels: dict[str, LevelName] = Field(default_factory=dict)
    undecided: LevelName | None = None
    gpu_budgets: dict[DnsLabel, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    monthly_budget: Annotated[float, Field(gt=0)] | None = None
    registries: list[str] = Field(default_factory=list)


def check_date(value: str) -> str:
    """Validator of a day, ``2027-06-30``."""
    try:
        return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        refuse("not a date", allowed="year-month-day", fix="write for example 2027-06-30")


def check_text(value: str) -> str:
    """Validator of words for a reader."""
    if not value.strip():
        refuse("says nothing", allowed="words", fix="write it out for the reader of the review")
    return value


class Waiver(Spec):
    """Leave for one resource to break one policy for a while.

    Attributes:
        policy: its name.
        stack: the stack it is for.
        resource: what breaks it, ``<kind>/<name>`` as the violation says it; ``stack`` for the stack as a whole.
        reason: why that is right for now.
        owner: who mends it.
        expires: the last day on which it holds.
    """

    policy: str
    stack: str
    resource: str
    reason: Annotated[str, AfterValidator(check_text)]
    owner: DnsLabel
    expires: Annotated[str, AfterValidator(check_date)]

    def expired(self, today: dt.date) -> bool:
        """Whether its last day is over."""
        return dt.date.fromisoformat(self.expires) < today


class _Stacks(Spec):
    stacks: dict[str, StackPolicies] = Field(default_factory=dict)


class _Waivers(Spec):
    waivers: list[Waiver] = Field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """What the two files say.

    Attributes:
        stacks: settings by stack; a stack that is not there has the defaults.
        waivers: all of them, expired ones too.
    """

    stacks: Mapping[str, StackPolicies] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()

    def of(self, stack: str) -> StackPolicies:
        """The settings of a stack."""
        return self.stacks.get(stack, StackPolicies())

    def waivers_of(self, stack: str) -> tuple[Waiver, ...]:
        """The waivers for a stack."""
        return tuple(waiver for waiver in self.waivers if waiver.stack == stack)


def load_settings(project: Path, policies: Collection[str]) -> Settings:
    """Read and check both files.

    Args:
        project: folder of the project.
        policies: names of all policies.

    Raises:
        SpecError: with every mistake of both files.
    """
    stacks = [path.name.split(".")[1] for path in project.glob("Pulumi.*.yaml")]
    found, settings, problems = _read(project, SETTINGS_FILE, _Stacks)
    if settings:
        for stack, one in settings.stacks.items():
            problems += _unknown(found, f"stacks.{stack}", stack, stacks, "stack")
            for name in one.levels:
                problems += _unknown(found, f"stacks.{stack}.levels.{name}", name, policies, "policy")
    found, listed, more = _read(project, WAIVERS_FILE, _Waivers)
    problems += more
    if listed:
        for index, waiver in enumerate(listed.waivers):
            problems += _unknown(found, f"waivers[{index}].policy", waiver.policy, policies, "policy")
            problems += _unknown(found, f"waivers[{index}].stack", waiver.stack, stacks, "stack")
    if problems or settings is None or listed is None:
        raise SpecError(problems)
    return Settings(settings.stacks, tuple(listed.waivers))


def _read(project: Path, name: str, model: type[S]) -> tuple[Source, S | None, list[Problem]]:
    found = source.read(project / name, name)
    if found.problems:
        return found, None, list(found.problems)
    return found, *validate(model, found.data, found)


def _unknown(found: Source, where: str, name: str, known: Collection[str], what: str) -> Iterator[Problem]:
    if name not in known:
        hint = closest(name, list(known)) or f"name a {what} that there is"
        shown = ", ".join(sorted(known))
        yield Problem(where, f"there is no such {what}", name, shown, hint, found.file, found.line(where))
