"""The reviewer's own commands: judge the stacks, and write the comment on a pull request."""

import argparse
import datetime as dt
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from spec.problems import Problem, SpecError

PROJECT: Final = Path(__file__).resolve().parent.parent
_REFUSED, _BAD_INPUT, _INTERRUPTED = 1, 2, 130


def _policies(arguments: argparse.Namespace) -> int:
    # Only here, as below: the Pulumi SDK takes longer to import than `--help` takes to run.
    from review import judging, reviewing  # noqa: PLC0415

    results = reviewing.policies(PROJECT, arguments.stack or reviewing.stacks(PROJECT), _today())
    print(judging.report(results))
    if arguments.json:
        _write(arguments.json, json.dumps(judging.as_json(results), indent=1) + "\n")
    return 0 if all(result.passes for result in results) else _REFUSED


def _comment(arguments: argparse.Namespace) -> int:
    from review import comment, reviewing  # noqa: PLC0415

    stacks = arguments.stack or reviewing.stacks(PROJECT)
    if arguments.preview and len(stacks) > 1:
        problem = Problem("--preview", "a preview is of one stack", stacks, "one --stack", "name the stack of the file")
        raise SpecError([problem])
    if arguments.preview:
        reviews = [reviewing.of_preview(PROJECT, stacks[0], arguments.preview, _today())]
    else:
        reviews = [reviewing.of_programs(PROJECT, stack, arguments.before, _today()) for stack in stacks]
    text = comment.render(reviews, arguments.link or "")
    if arguments.out:
        _write(arguments.out, text)
    else:
        print(text, end="")
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from review import programs  # noqa: PLC0415

    try:
        print(programs.as_json(programs.resources(arguments.project, arguments.stack)))
    except programs.ProgramError as error:
        _say(f"error: {error}")
        return programs.REFUSED
    return 0


_COMMANDS: Final[dict[str, tuple[Callable[[argparse.Namespace], int], str]]] = {
    "policies": (_policies, "judge what the stacks would be, with neither engine nor cluster nor credentials"),
    "comment": (_comment, "write the comment on a pull request: plan in words, figures, policies"),
    "record": (_record, "print what a program registers as JSON; `comment --before` runs this in the other checkout"),
}
_CODES: Final = (
    "Exit codes: 0 done, and for `policies` nothing refuses the change; 1 a policy refuses it, or cannot decide where "
    "that refuses, or the program refuses its own input; 2 bad input: a file or an option."
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m review", description=__doc__, epilog=_CODES)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (run, text) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text, epilog=_CODES)
        command.set_defaults(run=run)
        _add_options(command, name)
    return parser


def _add_options(command: argparse.ArgumentParser, name: str) -> None:
    if name in {"policies", "comment"}:
        text = "stack, may be given several times (default: every Pulumi.<stack>.yaml)"
        command.add_argument("--stack", action="append", help=text)
    if name == "policies":
        command.add_argument("--json", type=Path, metavar="FILE", help="also write the results for programs")
    if name == "comment":
        source = command.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "--preview", type=Path, metavar="FILE", help="what `pulumi preview --json --show-sames` printed"
        )
        source.add_argument(
            "--before", type=Path, metavar="DIR", help="checkout of the base branch, where there is no engine"
        )
        command.add_argument("--out", type=Path, metavar="FILE", help="file to write (default: standard output)")
        text = "address of the project's files, for links, for example https://github.com/OWNER/REPO/blob/SHA"
        command.add_argument("--link", metavar="URL", type=_address, help=text)
    if name == "record":
        command.add_argument("--project", type=Path, required=True, help="folder of the program")
        command.add_argument("--stack", required=True, help="stack")


def _address(text: str) -> str:
    if not text.startswith(("https://", "http://")) or any(one in text for one in "()<> \n"):
        raise argparse.ArgumentTypeError(
            f"{text} is not an address, for example https://github.com/OWNER/REPO/blob/SHA"
        )
    return text


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        message, fix = f"cannot be written: {error.strerror}", "name a file in a folder that is there"
        raise SpecError([Problem("", message, fix=fix, file=str(path))]) from None


def _today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Run one command; a user's mistake ends in a message, not in a traceback."""
    arguments = _parser().parse_args()
    try:
        return arguments.run(arguments)
    except SpecError as error:
        _say(f"error: {error}")
        return _BAD_INPUT
    except KeyboardInterrupt:
        _say("interrupted")
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
