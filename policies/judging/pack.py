"""The policies and the files that say how they hold on a stack."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from policies.judging.judge import Judge, Verdict
from policies.judging.levels import Level
from policies.judging.policy import Policy
from policies.judging.settings import Settings, load_settings
from policies.judging.view import Resource, View
from spec.estate import EstateSpec
from spec.problems import SpecError
from spec.source import Source
from spec.stack_file import stack_settings
from spec.validation import validate


@dataclass(frozen=True)
class Pack:
    """All policies of a project.

    Attributes:
        project: folder of the project, which holds the stack files.
        policies: in the order of their documentation.
        settings: what ``policies/settings.yaml`` and ``policies/waivers.yaml`` say.
    """

    project: Path
    policies: tuple[Policy, ...]
    settings: Settings

    @classmethod
    def open(cls, project: Path, policies: Iterable[Policy]) -> "Pack":
        """Read the files of a project.

        Raises:
            SpecError: with every mistake in them.
        """
        listed = tuple(policies)
        return cls(project, listed, load_settings(project, [policy.name for policy in listed]))

    def judge(self, stack: str, today: dt.date, overrides: tuple[tuple[str, Level], ...] = ()) -> Judge:
        """The policies as they hold on a stack.

        Raises:
            SpecError: a mistake in the stack's own file.
        """
        file = f"Pulumi.{stack}.yaml"
        settings = stack_settings(self.project, stack)
        spec, problems = validate(EstateSpec, settings, Source(file, settings))
        if spec is None:
            raise SpecError(problems)
        view = View(stack, spec, self.settings.of(stack))
        return Judge(self.policies, view, self.settings.waivers_of(stack), today, overrides)


def judge_all(judge: Judge, resources: Iterable[Resource]) -> list[Verdict]:
    """Everything that the policies have to say of some resources, in order."""
    listed = tuple(resources)
    verdicts = [verdict for resource in listed for verdict in judge.judge_object(resource)]
    verdicts += judge.judge_estate(listed)
    return verdicts + list(judge.judge_waivers(verdicts))
