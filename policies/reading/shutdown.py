"""What a container does between being told to stop and its end."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.judging.unknown import CannotDecide, known
from policies.judging.view import dig

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_SLEEP: Final = re.compile(r"\bsleep\s+(\S+)")
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
# What only a shell understands.
_OPERATORS: Final = frozenset({"&&", "||", ";", "|", ">", ">>", "&"})
# $0, $1, ${2}, $@, $*
_PARAMETER: Final = re.compile(r"\$\{?[0-9@*]")


def wait_seconds(container: Mapping[str, Any]) -> float:
    """How long the preStop hook of a container waits; what a call by HTTP takes is not known, and counts as nothing.

    Raises:
        CannotDecide: it sleeps for what a variable says.
    """
    hook = _hook(container)
    slept = dig(hook, "sleep", "seconds", default=0)
    command = _command(hook)
    if _shell_script(command) is None and command and _program(command[0]) == "sleep":
        return slept + sum(_seconds(word) for word in command[1:])
    script = _shell_script(command) or ""
    return slept + sum(_seconds(match[1]) for match in _SLEEP.finditer(script))


def broken_hook(container: Mapping[str, Any]) -> Iterator[str]:
    """Why the preStop command of a container cannot do what it says."""
    command = _command(_hook(container))
    script = _shell_script(command)
    if script is not None:
        ignored = command[command.index(script) + 1 :]
        if ignored and not _PARAMETER.search(script):
            listed = " ".join(repr(word) for word in ignored)
            yield f"the shell runs {script!r} only; {listed} is handed to it as parameters, and nothing runs it"
        return
    if len(command) == 1 and " " in command[0].strip():
        yield f"{command[0]!r} is taken for the name of a program, because no shell takes it apart"
    elif operators := [word for word in command if word in _OPERATORS]:
        yield f"no shell is there that would understand {' '.join(operators)} in {' '.join(command)!r}"


def _hook(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return dig(container, "lifecycle", "preStop", default={})


def _command(hook: Mapping[str, Any]) -> Sequence[str]:
    words = dig(hook, "exec", "command", default=[])
    if not all(known(word) for word in words):
        raise CannotDecide("a word of the preStop command is unknown")
    return [str(word) for word in words]


def _program(word: str) -> str:
    return word.rpartition("/")[2]


def _shell_script(command: Sequence[str]) -> str | None:
    """The script of ``sh -c <script>``, None where no shell is called in this way."""
    if not command or _program(command[0]) not in _SHELLS:
        return None
    for index, word in enumerate(command[1:], start=1):
        if not word.startswith("-"):
            return None
        if word.endswith("c") and not word.startswith("--"):
            return command[index + 1] if index + 1 < len(command) else None
    return None


def _seconds(text: str) -> float:
    text = text.strip("'\";&|)")
    if "$" in text:
        raise CannotDecide(f"preStop sleeps for {text}")
    match = _TIME.fullmatch(text)
    return float(match[1]) * _UNITS[match[2]] if match else 0
