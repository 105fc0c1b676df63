"""The folder outside the checkout that keeps built tools: where it is, what is complete, who may write."""

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from local.toolchain.failures import ToolchainError
from local.toolchain.tools import GO_VERSION, Family

GO_MODULES: Final = Path(__file__).parent / "go"
# Debug information is stripped by the linker, so the compiler need not make it.
COMPILER_FLAGS: Final = ("all=-dwarf=false",)
# -modcacherw: the module cache is thrown away, which a read-only one resists.
GO_FLAGS: Final = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-modcacherw", "-pgo=off")
LINKER_FLAGS: Final = "-s -w"

_MANIFEST: Final = "manifest.json"
_PID: Final = re.compile(r"\.(\d+)\.tmp$")
_GOARCH: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_POLL_SECONDS: Final = 0.2


def cache_root() -> Path:
    """Where tools are kept: ``$TRITON_ESTATE_CACHE``, else below the user's cache folder."""
    if chosen := os.environ.get("TRITON_ESTATE_CACHE"):
        return Path(chosen).expanduser().absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).expanduser().absolute() / "triton-estate"
    home = Path.home()
    return (home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache") / "triton-estate"


def tools_folder() -> Path:
    """The part of the cache that holds finished families."""
    return cache_root() / "tools"


def host() -> tuple[str, str]:
    """GOOS and GOARCH of this machine."""
    machine = platform.machine().lower()
    return sys.platform, _GOARCH.get(machine, machine)


def folder_of(family: Family) -> Path:
    """Where a family lies once it is built; another input to the build is another folder."""
    module = GO_MODULES / family.go
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((module / name).read_bytes())
    # The Go release is the pinned one, also where a newer one on PATH does the work: a new Go on PATH is no
    # reason to build everything again.
    recipe = (
        [(tool.name, tool.package) for tool in family.tools],
        [(file.module, file.source, file.target) for file in family.files],
        sorted(family.stamps.items()),
        (family.gcflags, COMPILER_FLAGS, GO_FLAGS, LINKER_FLAGS, family.patched_module, family.patches),
        (host(), GO_VERSION),
        *((family.tags,) if family.tags else ()),
    )
    digest.update(repr(recipe).encode())
    return tools_folder() / f"{family.name}-{family.version}-{digest.hexdigest()[:12]}"


def finished(family: Family) -> Path | None:
    """The family's folder if it is complete: its manifest is written last, and every file has its size."""
    folder = folder_of(family)
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        whole = all((folder / name).stat().st_size == entry["size"] for name, entry in manifest["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return folder if whole else None


def publish(family: Family, building: Path, about: Mapping[str, str]) -> Path:
    """Makes a complete folder the family's folder, in one step.

    Args:
        family: what was built.
        building: the folder it was built into, a sibling of the final one.
        about: what else the manifest should tell, e.g. the Go release.
    """
    files = {
        str(path.relative_to(building)): {"size": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted(building.rglob("*"))
        if path.is_file()
    }
    manifest = {"family": family.name, "version": family.version, **about, "files": files}
    (building / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    target = folder_of(family)
    if target.exists():
        remove(target)  # damaged: `finished` has refused it
    building.rename(target)
    return target


def temporary(parent: Path, name: str) -> Path:
    """A new folder that is recognised as a leftover once this process is gone."""
    folder = parent / f".{name}.{os.getpid()}.tmp"
    try:
        remove(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        raise _not_writable(error) from error
    return folder


def _not_writable(error: OSError) -> ToolchainError:
    msg = (
        f"the cache of tools cannot be written: {error}\n"
        "  fix: make the folder yours, or set TRITON_ESTATE_CACHE to one that is"
    )
    return ToolchainError(msg, cause="permission")


def remove(folder: Path) -> None:
    """Removes a folder, whatever the modes of what is in it."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            for path in (folder, *folder.rglob("*")):
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o700)
            shutil.rmtree(folder)


def remove_leftovers() -> int:
    """Removes what killed builds left behind, and ends their orphaned compilers; says how many folders."""
    stale = [
        path
        for parent in (cache_root(), tools_folder())
        for path in (parent.glob(".*.tmp") if parent.is_dir() else ())
        if (match := _PID.search(path.name)) and not _running(int(match[1]), path)
    ]
    for folder in stale:
        _end_orphans(folder)
        remove(folder)
    return len(stale)


def _running(pid: int, folder: Path) -> bool:
    """Whether the process that made the folder still runs; a younger one with its number is another."""
    try:
        return psutil.Process(pid).create_time() <= folder.stat().st_ctime
    except (psutil.NoSuchProcess, FileNotFoundError):
        return False
    except psutil.AccessDenied:
        return True


def _end_orphans(folder: Path) -> None:
    orphans = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if Path(process.cwd()).is_relative_to(folder):
                process.terminate()
                orphans.append(process)
    for process in psutil.wait_procs(orphans, timeout=5)[1]:
        with suppress(psutil.Error):
            process.kill()


@contextmanager
def locked(report: Callable[[str], None], stop: threading.Event) -> Generator[None]:
    """Holds the cache for one writer; another process that builds is waited for, and named."""
    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = (root / "lock").open("a+")
    except OSError as error:
        raise _not_writable(error) from error
    with handle:
        waited = False
        while not _try_lock(handle.fileno()):
            if not waited:
                handle.seek(0)
                report(f"waiting for another build of the tools (process {handle.read().strip() or 'unknown'})")
                waited = True
            if stop.is_set():
                raise KeyboardInterrupt
            time.sleep(_POLL_SECONDS)
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
