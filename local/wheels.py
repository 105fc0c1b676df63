"""Programs that come in Python wheels: each kind in a virtual environment of its own in the cache of tools."""

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from local.toolchain import cache
from local.toolchain.children import Children
from local.toolchain.failures import ToolchainError, failed


@dataclass(frozen=True)
class Wheels:
    """Pinned wheels.

    Attributes:
        name: of the folder in the cache, without version, and of the log.
        title: what it is called in messages.
        version: of the program.
        size: what a message says of the download and of the disk.
        requirements: a file of pip's requirements with hashes; dependencies that are not in it are not installed.
        python: the Python of the environment.
        recipe: what else makes another folder of it.
    """

    name: str
    title: str
    version: str
    size: str
    requirements: Path
    python: Path
    recipe: tuple[object, ...]

    @property
    def folder(self) -> Path:
        """Where the environment lies, or will lie; other wheels are another folder."""
        digest = hashlib.sha256(repr((self.requirements.read_text(), *self.recipe)).encode()).hexdigest()
        return cache.cache_root() / f"{self.name}-{self.version}-{digest[:12]}"

    def ensure(
        self,
        is_complete: Callable[[], bool],
        report: Callable[[str], None] = print,
        *,
        finish: Callable[[Path], None] = lambda _: None,
        stop: threading.Event | None = None,
    ) -> None:
        """Installs the wheels where they are not there yet.

        Args:
            is_complete: whether :attr:`folder` holds all that is needed.
            report: receives what is done, line by line.
            finish: completes a folder that the wheels have been installed to.
            stop: set by the caller to end the wait for another process that installs.

        Raises:
            ToolchainError: they cannot be had here.
        """
        if is_complete():
            return
        with cache.locked(report, stop or threading.Event()):
            cache.remove_leftovers()
            # Another process may have installed them while this one waited for the lock.
            if not is_complete():
                self._install(report, finish)

    def _install(self, report: Callable[[str], None], finish: Callable[[Path], None]) -> None:
        target, what = self.folder, f"installing {self.title}"
        report(f"{what} (once, {self.size}) in {target}")
        children = Children()
        log = cache.cache_root() / "logs" / f"{self.name}.log"
        log.parent.mkdir(exist_ok=True)
        building = cache.temporary(target.parent, target.name)
        pip = ("-m", "pip", "install", "--require-hashes", "--only-binary=:all:", "--no-deps", "--quiet")
        steps = (
            (self.python, "-m", "venv", building),
            (building / "bin" / "python", *pip, "--no-cache-dir", "-r", self.requirements),
        )
        env = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0"}
        try:
            for step in steps:
                status, output = children.run(step, cwd=building, env=env, log=log)
                if status:
                    raise failed(what, output, log=log)
            finish(building)
            cache.remove(target)  # damaged: `is_complete` has refused it
            building.rename(target)
        except OSError as error:
            raise failed(what, str(error), log=log) from error
        finally:
            cache.remove(building)


def only_on_linux(what: str, fix: str) -> None:
    """Refuses other machines than those that a wheel is made for.

    Raises:
        ToolchainError: this is no Linux on x86_64.
    """
    if cache.host() != ("linux", "amd64"):
        msg = f"{what} is for Linux on x86_64, this machine is {'/'.join(cache.host())}\n  fix: {fix}"
        raise ToolchainError(msg)


def base_python() -> Path:
    """The Python that this one is a virtual environment of, or itself."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
