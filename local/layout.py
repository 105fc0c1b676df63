"""Check a model repository on this machine before it is uploaded."""

from dataclasses import replace
from pathlib import Path

from spec import triton
from spec.catalog import load
from spec.problems import Problem, SpecError
from spec.stack_file import stack_settings


def check(project: Path, stack: str, model: str, folder: Path) -> str:
    """Say that a repository holds what a model of a stack needs.

    Args:
        project: folder of the project.
        stack: name of the stack.
        model: name of the model.
        folder: the repository on this machine.

    Raises:
        SpecError: with everything that is missing or would be skipped, or with what is wrong in the stack.
    """
    name = f"Pulumi.{stack}.yaml"
    estate = load(project / "models", stack_settings(project, stack), name)
    revision = estate.model(model).primary
    if not folder.is_dir():
        raise SpecError([Problem("", "not a folder", str(folder), fix="name the folder that holds the model folders")])
    names = [revision.triton_name, *revision.spec.members]
    problems = [
        replace(problem, file=f"{folder}/{problem.file}")
        for one in names
        for problem in triton.check_layout(folder, one, revision.configs.get(one))
    ]
    if problems:
        raise SpecError(problems)
    return f"{folder} holds what {model} needs: {', '.join(names)}"
