"""Puts a review together: resources from a program or a preview, the plan, what the policies say."""

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path

from policies.catalog import POLICIES
from policies.judging.pack import Pack
from policies.judging.view import Resource
from review import changes, judging, preview, programs
from review.changes import Side
from review.comment import Review
from review.judging import Result
from spec.estate import EstateSpec
from spec.problems import Problem, SpecError
from spec.source import Source
from spec.stack_file import stack_settings
from spec.validation import validate


def stacks(project: Path) -> list[str]:
    """Every stack that has a file.

    Raises:
        SpecError: there is none.
    """
    found = sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in project.glob("Pulumi.*.yaml"))
    if not found:
        raise SpecError([Problem("", "no stack has a file", fix="add Pulumi.<stack>.yaml", file=str(project))])
    return found


def policies(project: Path, names: Sequence[str], today: dt.date) -> list[Result]:
    """The verdicts on some stacks, from their programs.

    A stack that its own program refuses is a result like any other.

    Raises:
        SpecError: a stack without a file, or a mistake in the files of the policies.
    """
    _check_names(project, names)
    pack = Pack.open(project, POLICIES)
    return [_judged(pack, project, name, today)[0] for name in dict.fromkeys(names)]


def of_programs(project: Path, stack: str, before: Path, today: dt.date) -> Review:
    """The review of a stack from two runs of the program: a checkout of the base branch, and this one.

    Raises:
        SpecError: a stack without a file, no such checkout, or a mistake in the files of the policies.
    """
    if not (before / "__main__.py").is_file():
        allowed, fix = "a folder with __main__.py", "give the folder of a checkout of the base branch"
        raise SpecError([Problem("--before", "no checkout of this project", str(before), allowed, fix)])
    _check_names(project, [stack])
    result, resources = _judged(Pack.open(project, POLICIES), project, stack, today)
    if result.refused:
        return Review(result)
    try:
        old = Side(spec_of(before, stack), programs.resources_elsewhere(before, stack))
    except (SpecError, programs.ProgramError) as error:
        why = " ".join(str(error).split())
        plan = changes.between(stack, None, Side(spec_of(project, stack), resources))
        return Review(result, plan, f"the base cannot be compared with, so that everything looks new; it says: {why}")
    note = "made from two runs of the program, without the state: what somebody changed by hand is not seen"
    if own := judges_changed(before, project):
        note += f". The change also changes what judges it, read that yourself: {', '.join(own)}"
    return Review(result, changes.between(stack, old, Side(spec_of(project, stack), resources)), note)


def judges_changed(before: Path, project: Path) -> list[str]:
    """Files of the policies and of the review that differ: waivers and levels are among them."""
    found = {path.relative_to(root) for root in (before, project) for path in _judges(root)}
    return [str(path) for path in sorted(found) if _content(before / path) != _content(project / path)]


def _judges(root: Path) -> Iterator[Path]:
    for folder in ("policies", "review", ".github/workflows"):
        yield from (path for path in (root / folder).rglob("*") if path.suffix in {".py", ".yaml", ".yml"})


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def of_preview(project: Path, stack: str, file: Path, today: dt.date) -> Review:
    """The review of a stack from a preview.

    Raises:
        SpecError: a mistake in a file, or a file that is no preview of this stack.
    """
    _check_names(project, [stack])
    pack = Pack.open(project, POLICIES)
    plan = preview.read_preview(file, stack, spec_of(project, stack))
    return Review(judging.judged(pack, stack, plan.after.resources, today), plan)


def _judged(pack: Pack, project: Path, stack: str, today: dt.date) -> tuple[Result, tuple[Resource, ...]]:
    try:
        resources = programs.resources(project, stack)
        return judging.judged(pack, stack, resources, today), resources
    except (SpecError, programs.ProgramError) as error:
        return Result(stack, refused=str(error)), ()


def spec_of(project: Path, stack: str) -> EstateSpec:
    """Settings of a stack.

    Raises:
        SpecError: with every mistake in its file.
    """
    settings = stack_settings(project, stack)
    spec, problems = validate(EstateSpec, settings, Source(f"Pulumi.{stack}.yaml", settings))
    if spec is None:
        raise SpecError(problems)
    return spec


def _check_names(project: Path, names: Sequence[str]) -> None:
    there = stacks(project)
    wrong = [name for name in names if name not in there]
    if wrong:
        fix = "name a stack that has a file, or add the file"
        raise SpecError(Problem("--stack", "no such stack", name, ", ".join(there), fix) for name in wrong)
