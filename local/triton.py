"""A real Triton without a GPU, for tests and laptops: the server and Python backend of a wheel, started as rendered."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from local.toolchain.failures import ToolchainError
from local.wheels import Wheels, only_on_linux

REQUIREMENTS: Final = Path(__file__).parent / "triton.txt"
# The server that the wheel carries; it says so when it starts.
SERVER_VERSION: Final = "2.51.0"
# Those for which the wheel has a stub and numpy 1 has a wheel.
PYTHON_VERSIONS: Final = ("3.12", "3.11")

_STUB: Final = "triton_python_backend_stub"
# Fails where the library is not there.
_PROBE: Final = """
import ctypes, os, sys, sysconfig
version = "%d.%d" % sys.version_info[:2]
folder = sysconfig.get_config_var("LIBDIR")
library = "libpython" + version + ".so.1.0"
path = os.path.join(folder, library)
ctypes.CDLL(path if os.path.exists(path) else library)
print(os.path.realpath(getattr(sys, "_base_executable", sys.executable)), version, folder, sep="\\n")
"""
_REGION: Final = re.compile(r"/\S+/triton_python_backend_shm_region_\S+")
_OPTION: Final = re.compile(r"^  --([a-z][a-z0-9-]*)", re.MULTILINE)


class Python(NamedTuple):
    """A Python that Triton's backend can embed.

    Attributes:
        executable: it, outside any virtual environment.
        version: e.g. ``3.12``.
        libraries: folder of its shared library.
    """

    executable: Path
    version: str
    libraries: Path


@dataclass(frozen=True)
class TritonServer:
    """An installed server.

    Attributes:
        folder: the virtual environment that holds it.
        base: the Python of that environment.
    """

    folder: Path
    base: Python

    @property
    def python(self) -> Path:
        """Python with ``tritonclient.http``."""
        return self.folder / "bin" / "python"

    @property
    def binary(self) -> Path:
        """The server."""
        return self._server / "bin" / "tritonserver"

    @property
    def backends(self) -> Path:
        """What ``--backend-directory`` says."""
        return self._server / "backends"

    @property
    def stub(self) -> Path:
        """The program that runs a Python model."""
        return self.backends / "python" / _STUB

    @property
    def _server(self) -> Path:
        return self.folder / "lib" / f"python{self.base.version}" / "site-packages" / "pytriton" / "tritonserver"

    def finish(self) -> None:
        """Lays the stub of this Python beside its backend, from where it finds the wheel's libraries."""
        shutil.copy2(self._server / "python_backend_stubs" / self.base.version / _STUB, self.stub)

    def is_complete(self) -> bool:
        """Whether the folder holds all that a server needs."""
        return all(os.access(program, os.X_OK) for program in (self.binary, self.stub, self.python))

    def environment(self) -> dict[str, str]:
        """The whole environment of a server: nothing of this shell but PATH."""
        return {
            # The stub embeds Python's library and takes its modules from the first python3; it heeds no PYTHONPATH.
            "PATH": f"{self.python.parent}:{os.environ.get('PATH', os.defpath)}",
            "LD_LIBRARY_PATH": str(self.base.libraries),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command for rendered arguments; in the image, backends and caches lie where the server looks."""
        program, *options = arguments
        if program != "tritonserver":
            raise ValueError(f"the arguments start with {program}, not with tritonserver")
        folders = (f"--backend-directory={self.backends}", f"--cache-directory={self._server / 'caches'}")
        return [str(self.binary), *folders, *options]

    def start(
        self, arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Starts a server; the caller ends it, see :func:`end`.

        Args:
            arguments: as rendered for the container, see :func:`placed`.
            log: file for its output.
            environment: further environment variables, as those of the container.
        """
        with log.open("wb") as output:
            return subprocess.Popen(
                self.command(arguments),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment() | dict(environment or {}),
                cwd=log.parent,
                process_group=0,
            )

    def options(self) -> frozenset[str]:
        """Every option that the server's own help names."""
        # The status is 1 although the help was asked for.
        done = subprocess.run(
            (self.binary, "--help"), env=self.environment(), capture_output=True, text=True, check=False
        )
        return frozenset(_OPTION.findall(done.stdout + done.stderr))


def regions(process: subprocess.Popen[bytes]) -> frozenset[Path]:
    """The shared memory of a server's Python models: a region for each instance of each loaded version."""
    try:
        maps = Path(f"/proc/{process.pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return frozenset()
    return frozenset(Path(name) for name in _REGION.findall(maps))


def end(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Ends a server as a kubelet does: SIGTERM to it alone, and a kill of all that is left after the grace period.

    Returns:
        Its exit status, or None where it had to be killed.
    """
    shared = regions(process)
    process.terminate()
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for region in shared:  # a killed server leaves them
            region.unlink(missing_ok=True)


def ensure(report: Callable[[str], None] = print, *, stop: threading.Event | None = None) -> TritonServer:
    """Finds the server in the cache of tools, or installs it there.

    Args:
        report: receives what is done, line by line.
        stop: set by the caller to end the wait for another process that installs.

    Raises:
        ToolchainError: it cannot be had here.
    """
    base = _python()
    size = "a wheel of 55 MB, 0.3 GB on disk"
    title = f"Triton {SERVER_VERSION} for CPU"
    wheels = Wheels("triton", title, SERVER_VERSION, size, REQUIREMENTS, base.executable, (base,))
    found = TritonServer(wheels.folder, base)
    wheels.ensure(found.is_complete, report, finish=lambda folder: TritonServer(folder, base).finish(), stop=stop)
    return found


def _python() -> Python:
    only_on_linux("Triton's wheel", "run what needs a real Triton on such a machine, or in a container of one")
    for name in (sys.executable, *(f"python{version}" for version in PYTHON_VERSIONS)):
        with suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run((name, "-c", _PROBE), capture_output=True, text=True, check=True, timeout=30)
            executable, version, libraries = done.stdout.splitlines()
            if version in PYTHON_VERSIONS:
                return Python(Path(executable), version, Path(libraries))
    msg = (
        f"Triton's Python backend needs Python {' or '.join(PYTHON_VERSIONS)} with its shared library; "
        "this Python and those on PATH are no such\n"
        f"  fix: install one, on Debian and Ubuntu with: apt install python{PYTHON_VERSIONS[0]}-dev"
    )
    raise ToolchainError(msg)
