"""Print the project's figures beside their targets, on this machine."""

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from bench.figure import Figure
from bench.policies import policies
from bench.reaction import reaction
from local import toolchain
from local.plane import plane
from local.plane.state import Folder
from local.table import table
from local.toolchain import cache_root

PROJECT: Final = Path(__file__).resolve().parent.parent
_RUNS: Final = 3
_GIB: Final = 2**30
_MIB: Final = 2**20


def main() -> int:
    """Measure; exit code 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--cold", action="store_true", help="also build the whole toolchain without a cache (minutes)")
    parser.add_argument("--reaction", action="store_true", help="also the time from load to replicas (Linux, minutes)")
    parser.add_argument("--policies", action="store_true", help="also what policies add to a preview (minutes)")
    arguments = parser.parse_args()
    steps: list[Callable[[], Iterator[Figure]]] = [_plane, _make_up, _unit_tests, _disk]
    if arguments.cold:
        steps.insert(0, _cold_toolchain)
    if arguments.reaction:
        steps.append(_reaction)
    if arguments.policies:
        steps.append(_policies)
    figures = []
    for step in steps:
        _say(f"measuring: {(step.__doc__ or '').strip()}")
        figures += step()
    memory = psutil.virtual_memory().total / _GIB
    print(
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, medians of {_RUNS} runs\n"
    )
    print(table(["FIGURE", "MEASURED", "TARGET", "", "HOW"], [figure.row() for figure in figures]))
    return 0 if all(figure.value <= figure.target for figure in figures) else 1


def _cold_toolchain() -> Iterator[Figure]:
    """cold toolchain"""
    with tempfile.TemporaryDirectory() as folder:
        seconds = _seconds([sys.executable, "-m", "local", "toolchain"], TRITON_ESTATE_CACHE=folder, PATH=_plain_path())
    yield Figure("cold toolchain", seconds / 60, 12, "min", "every tool built, downloads included, one run")


def _plane() -> Iterator[Figure]:
    """plane ready, memory of the plane"""
    tools = toolchain.ensure(_say)
    times: list[float] = []
    memory = 0.0
    with tempfile.TemporaryDirectory() as root:
        for run in range(_RUNS):
            folder = Folder(Path(root) / str(run))
            try:
                began = time.monotonic()
                plane.up(folder, tools, _quiet)
                times.append(time.monotonic() - began)
                memory = sum(one.memory for one in plane.status(folder)) / _MIB
            finally:
                plane.down(folder, _quiet)
    yield Figure("plane ready", statistics.median(times), 10, "s", "first start in an empty folder")
    yield Figure("memory of the idle plane", memory, 1024, "MiB", "resident, all five processes")


def _make_up() -> Iterator[Figure]:
    """make up, make plan, memory of the plane with the dev stack on it"""
    with _checkout() as folder:
        _seconds(["make", "up"], folder)
        times = [_seconds(["make", "up"], folder) for _ in range(_RUNS)]
        plans = [_seconds(["make", "plan"], folder) for _ in range(_RUNS)]
        memory = sum(one.memory for one in plane.status(Folder(folder / ".plane"))) / _MIB
        _seconds(["make", "down"], folder)
    yield Figure("second make up", statistics.median(times), 30, "s", "nothing changed")
    yield Figure("make plan", statistics.median(plans), 5, "s", "neither engine nor cluster")
    yield Figure("memory of the plane in use", memory, 1024, "MiB", "with the dev stack deployed")


def _unit_tests() -> Iterator[Figure]:
    """unit tests"""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "auto",
        "--dist",
        "loadfile",
        "tests/spec",
        "tests/components",
        "tests/policies",
    ]
    yield Figure("unit tests", _seconds(command), 60, "s", "tests/spec, tests/components, tests/policies; one run")


def _reaction() -> Iterator[Figure]:
    """load to changed replicas"""
    yield reaction(_RUNS, _say)


def _policies() -> Iterator[Figure]:
    """what policies add to a preview"""
    with _checkout() as folder:
        yield from policies(folder, _RUNS, _say)


def _disk() -> Iterator[Figure]:
    """disk"""
    size = _bytes(cache_root()) + _bytes(PROJECT / ".venv")
    yield Figure("disk left behind", size / _GIB, 2, "GiB", "tool cache and .venv")


@contextmanager
def _checkout() -> Generator[Path]:
    """A copy of the project with a plane of its own, so that the user's is left alone."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "checkout"
        ignore = shutil.ignore_patterns(".git", ".venv", ".plane", "__pycache__", ".hypothesis")
        shutil.copytree(PROJECT, folder, ignore=ignore)
        (folder / ".venv").symlink_to(PROJECT / ".venv")
        try:
            yield folder
        finally:
            plane.down(Folder(folder / ".plane"), _quiet)


def _seconds(command: list[str], folder: Path = PROJECT, **environment: str) -> float:
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"error: {' '.join(command)} failed\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return time.monotonic() - began


def _plain_path() -> str:
    """PATH without any tool that would save a build."""
    names = ("pulumi", "etcd", "kube-apiserver", "kwok")
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not any(Path(folder, name).exists() for name in names))


def _bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def _quiet(line: str) -> None:
    del line


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
