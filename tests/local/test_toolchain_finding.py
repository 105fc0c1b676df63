"""Which tools are used: those on PATH that fit, then those of the cache."""

import os
import re
from pathlib import Path

import pytest

from local.toolchain import assemble as toolchain
from local.toolchain import metric_chain, tools, versions
from tests.local.machine import Machine, program, provider, shell

ASK_PROVIDER = versions._provider_version


class TestFinding:
    def test_nothing_is_there(self, machine: Machine) -> None:
        found, missing = toolchain.find()
        assert not found
        assert {lack.reason for lack in missing.values()} == {"not on PATH", "a file the tools need"}
        assert missing["kube-scheduler"].family is tools.KUBERNETES
        assert list(missing)[-1] == "pulumi-language-python-exec"
        assert not machine.cache.exists()

    def test_a_fitting_tool_on_path_wins_over_the_cache(self, machine: Machine) -> None:
        machine.ensure()
        path = machine.install("etcd", shell("etcd Version: 3.6.20\nGit SHA: x"))
        found, missing = toolchain.find()
        assert found["etcd"] == toolchain.Found(path, "3.6.20", "PATH")
        assert found["kwok"].origin == "cache"
        assert not missing

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (shell("etcd Version: 3.4.0"), r"bin/etcd is 3\.4\.0, needed: 3\.5\.13 or newer, below 4\.0"),
            (shell("etcd Version: 4.0.0"), r"bin/etcd is 4\.0\.0, needed"),
            (shell("no idea"), "bin/etcd does not say its version"),
            (shell("etcd Version: 3.6.0", status=1), "bin/etcd does not say its version"),
            ("not a program", "bin/etcd does not say its version"),
        ],
    )
    def test_what_does_not_fit_is_reported(self, machine: Machine, content: str, reason: str) -> None:
        machine.install("etcd", content)
        found, missing = toolchain.find()
        assert "etcd" not in found
        assert re.search(reason, missing["etcd"].reason)

    def test_a_later_fitting_one_on_path_is_used(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        machine.install("kwok", shell("kwok version 0.1.0"))
        second = machine.install("kwok", shell("kwok version 0.7.1"), folder="bin2")
        monkeypatch.setenv("PATH", f"{machine.bin}{os.pathsep}{second.parent}")
        assert toolchain.find()[0]["kwok"].path == second

    def test_a_tool_of_the_cache_on_path_is_not_an_installed_one(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stray = machine.install("kwok", shell("kwok version 0.9.0"), folder="stray")
        old = machine.cache / "tools" / "kwok-0.9.0-x"
        old.parent.mkdir(parents=True)
        stray.parent.rename(old)
        monkeypatch.setenv("PATH", str(old))
        assert "kwok" in toolchain.find()[1]

    def test_a_copy_in_the_folder_of_a_plane_is_not_an_installed_one(self, machine: Machine) -> None:
        copy = machine.install("kwok", shell("kwok version 0.7.1"))
        assert "kwok" in toolchain.find()[0]
        (copy.parent / versions.PLANE_MARKER).touch()
        assert "kwok" in toolchain.find()[1]

    def test_servers_are_used_only_together(self, machine: Machine) -> None:
        for name in tools.SERVERS:
            machine.install(name, shell("Kubernetes v1.35.2"))
        assert {toolchain.find()[0][name].origin for name in tools.SERVERS} == {"PATH"}
        machine.install("kube-scheduler", shell("Kubernetes v1.36.0"))
        found, missing = toolchain.find()
        assert not found.keys() & set(tools.SERVERS)
        assert "only together" in missing["kube-apiserver"].reason

    @pytest.mark.parametrize(("kubectl", "fits"), [("1.35.0", True), ("1.34.9", False)])
    def test_kubectl_is_near_the_server(self, machine: Machine, kubectl: str, fits: bool) -> None:
        machine.install("kubectl", shell(f"Client Version: v{kubectl}"))
        found, missing = toolchain.find()
        assert ("kubectl" in found) is fits
        assert fits or "1.35 to 1.37" in missing["kubectl"].reason

    def test_kubectl_is_near_an_installed_server(self, machine: Machine) -> None:
        for name in tools.SERVERS:
            machine.install(name, shell("Kubernetes v1.34.2"))
        machine.install("kubectl", shell("Client Version: v1.34.9"))
        assert toolchain.find()[0]["kubectl"].version == "1.34.9"

    def test_an_official_language_host_needs_no_script(self, machine: Machine) -> None:
        machine.install("pulumi", shell("v3.280.0"))
        assert tools.LANGUAGE_EXEC in toolchain.find()[1]
        machine.install("pulumi-language-python", shell(""))
        assert tools.LANGUAGE_EXEC in toolchain.find()[1]
        machine.install(tools.LANGUAGE_EXEC, "")
        found, missing = toolchain.find()
        assert tools.LANGUAGE_EXEC not in found.keys() | missing.keys()
        machine.install("pulumi", shell("v3.1.0"))
        assert tools.LANGUAGE_EXEC in toolchain.find()[1]

    def test_a_provider_is_asked_over_its_protocol(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(versions, "_provider_version", ASK_PROVIDER)
        path = machine.install("pulumi-resource-kubernetes", provider("4.25.7"))
        assert toolchain.find()[0]["pulumi-resource-kubernetes"] == toolchain.Found(path, "4.25.7", "PATH")
        machine.install("pulumi-resource-kubernetes", provider("4.24.0"))
        assert "is 4.24.0" in toolchain.find()[1]["pulumi-resource-kubernetes"].reason
        machine.install("pulumi-resource-kubernetes", shell("no port"))
        assert "does not say" in toolchain.find()[1]["pulumi-resource-kubernetes"].reason

    def test_a_program_without_a_flag_for_it_is_known_by_its_modules(self, machine: Machine) -> None:
        tool = metric_chain.KEDA.tools[0]
        path = machine.install(tool.name, program(tool, "2.19.1"))
        assert toolchain.find(metric_chain.WITH_TESTS)[0][tool.name] == toolchain.Found(path, "2.19.1", "PATH")
        # A checkout's own build has no release.
        machine.install(tool.name, shell("v2.21.0") + f"#\t{tool.version_module}\t(devel)\t\n")
        assert "does not say" in toolchain.find(metric_chain.WITH_TESTS)[1][tool.name].reason
        machine.install(tool.name, "")
        assert "does not say" in toolchain.find(metric_chain.WITH_TESTS)[1][tool.name].reason


def test_a_version_compares_by_number() -> None:
    assert tools.parse_version("1.10.0") > tools.parse_version("1.9.9")
    assert versions.judge(Path("/nowhere"), tools.KWOK.tools[0]).problem.startswith("/nowhere does not say")
