"""Projects to review."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import PROJECT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the program and its files; modules are those of this project."""
    return copied(tmp_path / "project")


def copied(folder: Path) -> Path:
    """A copy of the program and its files in a folder."""
    (folder / "policies").mkdir(parents=True)
    for name in ("__main__.py", "Pulumi.dev.yaml", "Pulumi.prod.yaml", "models"):
        source = PROJECT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / name)
    for name in ("settings.yaml", "waivers.yaml", "prices.yaml"):
        shutil.copy2(PROJECT / "policies" / name, folder / "policies" / name)
    return folder
