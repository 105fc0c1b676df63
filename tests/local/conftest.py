"""What the tests of the toolchain share."""

from pathlib import Path

import pytest

from local.toolchain import tools, versions
from tests.local.machine import FAKE_GO, Machine, python


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setenv("TRITON_ESTATE_CACHE", str(made.cache))
    monkeypatch.setenv("PATH", str(made.bin))
    monkeypatch.setenv("FAKE_GO", str(made.config))
    made.install("go", python(FAKE_GO))
    # A provider that serves its protocol takes long to start: here it answers like the others, but for one test.
    monkeypatch.setattr(versions, "_provider_version", lambda path: versions.version_of(path, tools.KWOK.tools[0]))
    return made
