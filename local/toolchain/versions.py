"""Which version a program on PATH is, and whether it fits."""

import mmap
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.toolchain.tools import Tool, parse_version

# A file beside the tools of a plane: some of them are copies or hard links, which do not lead back to the cache.
PLANE_MARKER: Final = ".tools-of-a-plane"
_ANSWER_SECONDS: Final = 5.0
# Neither a look for updates nor a toolchain download may happen while a version is asked for.
_QUIET: Final = {"PULUMI_SKIP_UPDATE_CHECK": "true", "GOTOOLCHAIN": "local"}


@dataclass(frozen=True)
class Candidate:
    """A program found on PATH.

    Attributes:
        path: where it is.
        version: what it says it is; empty when it does not say.
        problem: why it is not used; empty when it fits.
    """

    path: Path
    version: str
    problem: str


def on_path(name: str, *, outside: Path) -> Iterator[Path]:
    """Every program of that name on PATH, except those that lie in ``outside`` or in the folder of a plane's tools.

    A shell that has the plane's tools on its PATH must not make a tool of the cache, perhaps of another
    version, look like an installed one.
    """
    for folder in dict.fromkeys(os.environ.get("PATH", os.defpath).split(os.pathsep)):
        hit = shutil.which(name, path=folder) if folder else None
        if hit and not _is_ours(Path(hit), outside):
            yield Path(hit).absolute()


def _is_ours(hit: Path, outside: Path) -> bool:
    return hit.resolve().is_relative_to(outside.resolve()) or hit.with_name(PLANE_MARKER).exists()


def version_of(path: Path, tool: Tool) -> str:
    """The version a program reports; empty when it reports none."""
    if tool.version_module:
        return _module_version(path, tool.version_module)
    if not tool.version_command:
        return _provider_version(path)
    try:
        answer = subprocess.run(
            (path, *tool.version_command),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
            env=os.environ | _QUIET,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(tool.version_pattern, answer.stdout + answer.stderr)
    return match[1] if match and answer.returncode == 0 else ""


def judge(path: Path, tool: Tool) -> Candidate:
    """The program and whether its version is in the tool's range."""
    version = version_of(path, tool)
    if not version:
        return Candidate(path, "", f"{path} does not say its version, needed: {tool.fits}")
    found, minimum = parse_version(version), parse_version(tool.minimum)
    fits = found >= minimum and found[0] == minimum[0]
    return Candidate(path, version, "" if fits else f"{path} is {version}, needed: {tool.fits}")


def candidates(tools: tuple[Tool, ...], *, outside: Path) -> dict[str, Candidate]:
    """For each tool that is on PATH at all: the first that fits, else the first."""

    def best(tool: Tool) -> Candidate | None:
        judged: list[Candidate] = []
        for path in on_path(tool.name, outside=outside):
            judged.append(judge(path, tool))
            if not judged[-1].problem:
                return judged[-1]
        return judged[0] if judged else None

    with ThreadPoolExecutor(max(len(tools), 1)) as pool:
        pairs = zip(tools, pool.map(best, tools), strict=True)
        return {tool.name: candidate for tool, candidate in pairs if candidate}


def _module_version(path: Path, module: str) -> str:
    """The version of a module that a Go program is made of; empty where that is no release."""
    wanted = rb"\t%s\tv(\d+\.\d+\.\d+)[\t\n]" % re.escape(module).encode()
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            match = re.search(wanted, content)
            return match[1].decode() if match else ""
    except (OSError, ValueError):
        return ""


def _provider_version(path: Path) -> str:
    """Asks a resource provider over its protocol, as the engine does: it has no flag for it."""
    try:
        program = subprocess.Popen(
            (path,), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except OSError:
        return ""
    with program, ThreadPoolExecutor(1) as pool:
        try:
            assert program.stdout is not None  # noqa: S101 - PIPE above
            port = pool.submit(program.stdout.readline).result(_ANSWER_SECONDS)
            return _plugin_info(int(port))
        except (TimeoutError, ValueError):
            return ""
        finally:
            program.kill()


def _plugin_info(port: int) -> str:
    import grpc  # noqa: PLC0415 - slow, and needed only where a provider is on PATH

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        # The answer is one message with one string, the version, in field 1.
        ask = channel.unary_unary("/pulumirpc.ResourceProvider/GetPluginInfo", lambda _: b"", bytes)
        try:
            answer = ask(None, timeout=_ANSWER_SECONDS)
        except grpc.RpcError:
            return ""
    match = re.search(rb"^\n.v?(\d+\.\d+\.\d+)", answer, re.DOTALL)
    return match[1].decode() if match else ""
