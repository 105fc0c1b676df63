"""What every room's tests share."""

from pathlib import Path

import pytest

from local import toolchain
from local.toolchain import Toolchain

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def tools() -> Toolchain:
    """The real tools; built if need be, which `make test` does before with progress shown."""
    return toolchain.ensure()
