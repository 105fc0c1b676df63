"""The embedded control plane as a tool of its own."""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from local import layout, models, toolchain
from local.plane import plane, processes, workspace
from local.plane.commands import Options
from local.plane.errors import PlaneError
from local.plane.kubectl import Kubectl
from local.plane.state import Folder
from local.table import table
from spec.problems import SpecError

PROJECT: Final = Path(__file__).resolve().parent.parent
_INTERRUPTED: Final = 130
_MIB: Final = 2**20


def _toolchain(arguments: argparse.Namespace) -> int:
    tools = toolchain.ensure_for_tests(_say) if arguments.tests else toolchain.ensure(_say)
    for name, path in vars(tools).items():
        print(f"{name.replace('_', '-'):24} {path or 'comes with pulumi'}")
    return 0


def _up(arguments: argparse.Namespace) -> int:
    folder = Folder(arguments.dir)
    tools = toolchain.ensure(_say)
    plane.up(folder, tools, _say, Options(arguments.autoscaler_seconds))
    workspace.prepare(folder, tools)
    workspace.select_stack(folder, PROJECT, arguments.stack)
    return 0


def _down(arguments: argparse.Namespace) -> int:
    plane.down(Folder(arguments.dir), _say, purge=arguments.purge)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    found = plane.status(Folder(arguments.dir))
    rows = [
        [
            one.name,
            f"running, pid {one.pid}" if one.pid else "not running",
            f"{one.memory // _MIB} MiB" if one.pid else "-",
        ]
        for one in found
    ]
    total = sum(one.memory for one in found) // _MIB
    print(table(["PROCESS", "STATE", "MEMORY"], [*rows, ["total", "", f"{total} MiB"]]))
    dead = [one for one in found if one.expected and not one.pid]
    for one in dead:
        print(f"\n{one.name} ended; the end of {one.log}:\n{processes.tail(one.log)}")
    if dead:
        print("\nfix: run `python -m local up`, which starts the control plane again; its data is kept")
    return 0 if all(one.pid for one in found) else 1


def _logs(arguments: argparse.Namespace) -> int:
    for one in plane.status(Folder(arguments.dir)):
        print(f"==> {one.log}\n{processes.tail(one.log, arguments.lines)}\n")
    return 0


def _env(arguments: argparse.Namespace) -> int:
    print(workspace.shell(_existing(arguments)))
    return 0


def _plan(arguments: argparse.Namespace) -> int:
    # Only here: the Pulumi SDK takes longer to import than every other command takes to run.
    from local import plan  # noqa: PLC0415

    try:
        print(plan.plan(PROJECT, arguments.stack))
    except plan.PlanError as error:
        _say(f"error: {error}")
        return 1
    return 0


def _layout(arguments: argparse.Namespace) -> int:
    print(layout.check(PROJECT, arguments.stack, arguments.model, arguments.repository))
    return 0


def _load_test(arguments: argparse.Namespace) -> int:
    from local import load_test  # noqa: PLC0415 - as above

    manifest = load_test.manifest(
        PROJECT,
        arguments.stack,
        arguments.model,
        revision=arguments.revision,
        image=arguments.image,
        concurrency=arguments.concurrency,
    )
    print(manifest, end="")
    return 0


def _models(arguments: argparse.Namespace) -> int:
    folder = _existing(arguments)
    print(models.models(Kubectl(folder.bin / "kubectl", folder.kubeconfig), folder, PROJECT, arguments.stack))
    return 0


def _existing(arguments: argparse.Namespace) -> Folder:
    folder = Folder(arguments.dir)
    if not folder.kubeconfig.exists():
        raise PlaneError("there is no control plane yet\n  fix: run `python -m local up`")
    return folder


_COMMANDS: Final[dict[str, tuple[Callable[[argparse.Namespace], int], str]]] = {
    "toolchain": (_toolchain, "find the tools on PATH or in the cache, and build what lacks"),
    "up": (_up, "start the control plane and select the stack; does nothing where it runs already"),
    "down": (_down, "stop the control plane; its data stays unless --purge"),
    "status": (_status, "show each process, and the end of its log if it died; exit code 1 unless all run"),
    "logs": (_logs, "show the end of each log"),
    "env": (_env, 'print the environment for a shell: eval "$(python -m local env)"'),
    "plan": (_plan, "show what a stack would create, with neither engine nor cluster"),
    "layout": (_layout, "check a model repository on this machine before it is uploaded"),
    "loadtest": (_load_test, "print a load test of a model: a Job for kubectl apply -f -"),
    "models": (_models, "show the models of the running stack"),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (run, text) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        _add_options(command, name)
    return parser


def _add_options(command: argparse.ArgumentParser, name: str) -> None:
    if name not in {"toolchain", "plan", "layout", "loadtest"}:
        default = PROJECT / ".plane"
        command.add_argument("--dir", type=Path, default=default, help="folder of the plane (default: .plane)")
    if name == "up":
        command.add_argument(
            "--autoscaler-seconds",
            type=_seconds,
            metavar="SECONDS",
            help="time between two looks of the autoscalers at their metrics (default: Kubernetes' own, 15)",
        )
    if name == "toolchain":
        command.add_argument(
            "--tests",
            action="store_true",
            help="also the tools that only the tests need: Prometheus, its operator, KEDA, Istio",
        )
    if name in {"layout", "loadtest"}:
        command.add_argument("model", help="name of the model")
    if name == "loadtest":
        command.add_argument("--revision", help="revision (default: the one with the largest weight)")
        command.add_argument(
            "--image", help="image with perf_analyzer (default: the SDK image of the server's release)"
        )
        command.add_argument(
            "--concurrency",
            default="1:33:8",
            type=_range,
            metavar="FIRST:LAST:STEP",
            help="requests in flight (default: 1:33:8)",
        )
    if name == "layout":
        command.add_argument("repository", type=Path, help="folder that holds the model's folder")
    if name in {"up", "plan", "models", "layout", "loadtest"}:
        command.add_argument("--stack", default="dev", help="stack (default: dev)")
    if name == "down":
        command.add_argument("--purge", action="store_true", help="also remove data, credentials and Pulumi state")
    if name == "logs":
        command.add_argument("--lines", type=int, default=15, help="lines of each log (default: 15)")


def _seconds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of seconds, 1 or more")
    return int(text)


def _range(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*(:[1-9]\d*){0,2}", text):
        raise argparse.ArgumentTypeError(f"{text} is not FIRST:LAST:STEP, for example 1:33:8")
    return text


def _say(line: str) -> None:
    # Standard output belongs to results: `eval "$(python -m local env)"` must see nothing else.
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Run one command; a user's mistake ends in a message, not in a traceback."""
    arguments = _parser().parse_args()
    try:
        return arguments.run(arguments)
    except (SpecError, PlaneError, toolchain.ToolchainError) as error:
        _say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        _say("interrupted")
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
