"""Where a real Triton cannot be had, that is said plainly, and nothing half-installed stays."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from local import triton
from local.toolchain import cache
from local.toolchain.failures import ToolchainError
from local.triton import TritonServer
from tests.dataplane.serving import Service


def test_another_platform_is_told_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "host", lambda: ("darwin", "arm64"))
    with pytest.raises(ToolchainError, match=r"Linux on x86_64, this machine is darwin/arm64\n  fix: "):
        triton.ensure(pytest.fail)


def test_a_machine_without_a_fitting_python_is_told_which_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "PYTHON_VERSIONS", ("3.2",))
    with pytest.raises(ToolchainError, match=r"needs Python 3\.2 with its shared library.*\n  fix: "):
        triton.ensure(pytest.fail)


def test_a_failed_installation_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_ESTATE_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    said: list[str] = []
    with pytest.raises(ToolchainError, match=f"installing Triton {triton.SERVER_VERSION} for CPU failed") as caught:
        triton.ensure(said.append)
    assert caught.value.cause == "network"
    assert [path.name for path in tmp_path.iterdir() if "triton" in path.name] == []
    assert str(tmp_path) in said[0]


def test_a_damaged_installation_is_not_taken_for_one(tritonserver: TritonServer, tmp_path: Path) -> None:
    assert tritonserver.is_complete()
    damaged = TritonServer(tmp_path, tritonserver.base)
    damaged.binary.parent.mkdir(parents=True)
    damaged.binary.touch(0o755)
    assert not damaged.is_complete()


def test_the_server_is_the_version_that_is_named(services: Mapping[str, Service]) -> None:
    assert {service.json("/v2")["version"] for service in services.values()} == {triton.SERVER_VERSION}


def test_only_arguments_of_the_server_are_taken(tritonserver: TritonServer) -> None:
    with pytest.raises(ValueError, match="start with sh, not with tritonserver"):
        tritonserver.command(["sh", "-c", "tritonserver"])
