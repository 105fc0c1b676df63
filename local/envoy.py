"""A real Envoy, for tests: the program of a wheel."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from local.wheels import Wheels, base_python, only_on_linux

REQUIREMENTS: Final = Path(__file__).parent / "envoy.txt"
VERSION: Final = "1.40.0"


def ensure(report: Callable[[str], None] = print, *, stop: threading.Event | None = None) -> Path:
    """Finds the program in the cache of tools, or installs it there.

    Args:
        report: receives what is done, line by line.
        stop: set by the caller to end the wait for another process that installs.

    Raises:
        ToolchainError: it cannot be had here.
    """
    only_on_linux("Envoy's wheel", "run what needs a real Envoy on such a machine, or in a container of one")
    size = "a wheel of 37 MB, 0.1 GB on disk"
    wheels = Wheels("envoy", f"Envoy {VERSION}", VERSION, size, REQUIREMENTS, base_python(), (base_python(),))

    def program() -> Path | None:
        return next(wheels.folder.glob("lib/python*/site-packages/envoy/_bin/envoy"), None)

    def place(folder: Path) -> None:
        for found in folder.glob("lib/python*/site-packages/envoy/_bin/envoy"):
            found.chmod(0o755)

    def is_complete() -> bool:
        return (found := program()) is not None and os.access(found, os.X_OK)

    wheels.ensure(is_complete, report, finish=place, stop=stop)
    found = program()
    assert found is not None  # noqa: S101 - complete
    return found
