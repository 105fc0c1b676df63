"""Which tools are there, on PATH or in the cache, and which lack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.toolchain.cache import finished, tools_folder
from local.toolchain.tools import FAMILIES, KUBERNETES, LANGUAGE_EXEC, SERVERS, Family, parse_version
from local.toolchain.versions import Candidate, candidates

_LANGUAGE_HOST: Final = "pulumi-language-python"


@dataclass(frozen=True)
class Found:
    """A tool that is there.

    Attributes:
        path: the executable or folder.
        version: its version.
        origin: ``PATH`` or ``cache``.
    """

    path: Path
    version: str
    origin: str


@dataclass(frozen=True)
class Missing:
    """A tool that has to be built.

    Attributes:
        family: what it is built with.
        reason: what PATH has instead.
    """

    family: Family
    reason: str


def find(families: Sequence[Family] = FAMILIES) -> tuple[dict[str, Found], dict[str, Missing]]:
    """Looks for every tool of these families, builds nothing.

    Returns:
        By tool name, what is there and what lacks. ``pulumi-language-python-exec`` is in neither where the
        official language host is installed.
    """
    tools = tuple(tool for family in families for tool in family.tools)
    on_path = _together(candidates(tools, outside=tools_folder()))
    found: dict[str, Found] = {}
    missing: dict[str, Missing] = {}
    for family in families:
        folder = finished(family)
        for name in _names(family):
            candidate = on_path.get(name)
            if candidate and not candidate.problem:
                found[name] = Found(candidate.path, candidate.version, "PATH")
            elif folder:
                found[name] = Found(folder / name, family.version, "cache")
            else:
                lack = "not on PATH" if family.tools else "a file the tools need"
                missing[name] = Missing(family, candidate.problem if candidate else lack)
    if _has_language_host(found.get("pulumi")):
        for answers in (found, missing):
            answers.pop(LANGUAGE_EXEC, None)
    return found, missing


_TRIO: Final = ", ".join(SERVERS)


def _names(family: Family) -> list[str]:
    """What a family gives: its tools, or the first part of its files' paths."""
    return [tool.name for tool in family.tools] or list({file.target.partition("/")[0] for file in family.files})


def _together(on_path: Mapping[str, Candidate]) -> dict[str, Candidate]:
    """Takes back what fits alone but not beside the others.

    A controller manager or scheduler must not be newer than the API server, and kubectl not more than one
    minor version away from it.
    """
    result = dict(on_path)
    servers = [result[name] for name in SERVERS if name in result and not result[name].problem]
    minors = {parse_version(server.version)[:2] for server in servers}
    server_minor = parse_version(KUBERNETES.version)[:2]
    if len(servers) == len(SERVERS) and len(minors) == 1:
        server_minor = minors.pop()
    else:
        for server in servers:
            name = server.path.name
            why = f"{server.path} is {server.version}, but {_TRIO} are used only together, of one version"
            result[name] = Candidate(server.path, server.version, why)
    kubectl = result.get("kubectl")
    if kubectl and not kubectl.problem:
        minor = parse_version(kubectl.version)[1]
        if abs(minor - server_minor[1]) > 1:
            needed = f"{server_minor[0]}.{server_minor[1] - 1} to {server_minor[0]}.{server_minor[1] + 1}"
            why = f"{kubectl.path} is {kubectl.version}, needed beside this API server: {needed}"
            result["kubectl"] = Candidate(kubectl.path, kubectl.version, why)
    return result


def _has_language_host(pulumi: Found | None) -> bool:
    """Whether the official Python language host lies beside an installed ``pulumi``, complete."""
    if pulumi is None or pulumi.origin != "PATH":
        return False
    return any(
        all((folder / name).exists() for name in (_LANGUAGE_HOST, LANGUAGE_EXEC))
        for folder in (pulumi.path.parent, pulumi.path.resolve().parent)
    )
