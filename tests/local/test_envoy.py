"""The Envoy of a wheel: where it cannot be had, that is said plainly, and nothing half-installed stays."""

from pathlib import Path

import pytest

from local import envoy
from local.toolchain import ToolchainError, cache


def test_the_wheel_is_the_version_that_is_named() -> None:
    assert f"\nenvoy-server=={envoy.VERSION} " in envoy.REQUIREMENTS.read_text()


def test_another_platform_is_told_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "host", lambda: ("darwin", "arm64"))
    with pytest.raises(ToolchainError, match=r"Linux on x86_64, this machine is darwin/arm64\n  fix: "):
        envoy.ensure(pytest.fail)


def test_a_failed_installation_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "host", lambda: ("linux", "amd64"))
    monkeypatch.setenv("TRITON_ESTATE_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    said: list[str] = []
    with pytest.raises(ToolchainError, match=f"installing Envoy {envoy.VERSION} failed") as caught:
        envoy.ensure(said.append)
    assert caught.value.cause == "network"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "logs"]
    assert str(tmp_path) in said[0]
