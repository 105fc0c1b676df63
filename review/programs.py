"""Runs programs under mocks: the one of this folder, and that of another checkout in a process of its own."""

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, Final

import pulumi
from pulumi.runtime import rpc

from local.recorder import record_stack
from policies.judging.unknown import SEALED, UNKNOWN
from policies.judging.view import Resource
from review.words import BLINDED, read
from spec.stack_file import stack_settings

_HERE: Final = Path(__file__).resolve().parents[1]
REFUSED: Final = 3  # exit code of `record` where the program refuses
_SECONDS: Final = 300


class ProgramError(Exception):
    """A program refused its input, or failed; the message is for its author."""


def resources(project: Path, stack: str) -> tuple[Resource, ...]:
    """What the program of a folder registers, run in this process.

    Raises:
        SpecError: the stack file is missing or no YAML.
        ProgramError: the program refuses its input, or has a mistake of its own.
    """
    settings = stack_settings(project, stack)
    try:
        found = record_stack(project, stack, settings).resources
    except pulumi.RunError as error:
        raise ProgramError(str(error)) from None
    except Exception as error:
        raise ProgramError(f"the program failed: {_line(error)}") from error
    return tuple(Resource(one.type, one.name, read(dict(one.inputs))) for one in found)


def as_json(found: tuple[Resource, ...]) -> str:
    """Resources as text that keeps no secret."""
    return json.dumps([{"type": one.type, "name": one.name, "inputs": _blinded(one.inputs)} for one in found])


def resources_elsewhere(project: Path, stack: str) -> tuple[Resource, ...]:
    """What the program of another checkout registers, with its own code, in a process of its own.

    Raises:
        ProgramError: the program refuses its input, or has a mistake of its own.
    """
    folder = project.resolve()
    # Its own modules first; what reads and prints comes from here where it has none yet.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(folder), str(_HERE)))}
    command = [sys.executable, "-m", "review", "record", "--project", str(folder), "--stack", stack]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProgramError(f"the program did not end within {_SECONDS} s") from None
    if done.returncode:
        said = done.stderr.strip().removeprefix("error: ")
        raise ProgramError(said if done.returncode in {2, REFUSED} else said.rpartition("\n")[2])
    return _read(done.stdout)


def _read(text: str) -> tuple[Resource, ...]:
    # A program may print as well; the resources are the last line.
    last = text.strip().rpartition("\n")[2]
    try:
        return tuple(Resource(one["type"], one["name"], read(one["inputs"])) for one in json.loads(last))
    except (json.JSONDecodeError, KeyError, TypeError):
        raise ProgramError("its own `review record` prints something else than this one reads") from None


def _blinded(value: Any) -> Any:  # noqa: ANN401  # JSON
    if isinstance(value, dict):
        return {key: _blinded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_blinded(item) for item in value]
    return BLINDED if value is SEALED else rpc.UNKNOWN if value is UNKNOWN else value


def _line(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return " ".join(f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})".split())
