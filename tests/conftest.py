"""What every room's tests share."""

import signal
from pathlib import Path

import pytest

from local import toolchain
from local.toolchain import Toolchain

PROJECT = Path(__file__).resolve().parent.parent
# A shell starts what it puts into the background with interrupts ignored, and the programs under test would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tools() -> Toolchain:
    """The real tools; built if need be, which `make test` does before with progress shown."""
    return toolchain.ensure()
