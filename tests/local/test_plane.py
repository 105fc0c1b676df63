"""The control plane as its user meets it: real processes, own folder, free ports."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from local.plane import plane, processes, state
from local.plane.commands import NAMES
from local.plane.kubectl import Kubectl
from local.plane.processes import Process
from local.plane.state import Folder, State
from local.toolchain import Toolchain

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """A plane's folder; whatever runs in it at the end is stopped."""
    folder = Folder(tmp_path / "plane")
    yield folder
    plane.down(folder, print)


@pytest.fixture
def running(folder: Folder, tools: Toolchain) -> Folder:
    """A running plane."""
    plane.up(folder, tools, print)
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, tools: Toolchain) -> Iterator[Folder]:
    """A running plane for tests that leave it as it was."""
    folder = Folder(tmp_path_factory.mktemp("shared") / "plane")
    plane.up(folder, tools, print)
    yield folder
    plane.down(folder, print)


def kubectl(tools: Toolchain, folder: Folder) -> Kubectl:
    return Kubectl(tools.kubectl, folder.kubeconfig)


def pids(folder: Folder) -> dict[str, int | None]:
    return {found.name: found.pid for found in plane.status(folder)}


class TestUp:
    def test_every_process_runs_and_a_pod_can_be_scheduled_and_becomes_ready(
        self, shared: Folder, tools: Toolchain
    ) -> None:
        assert all(pids(shared).values())
        client = kubectl(tools, shared)
        client.run("create", "deployment", "web", "--image=example.org/web:1", "--replicas=2")
        client.run("rollout", "status", "deployment/web", "--timeout=30s")
        assert client.get("deployment/web")["status"]["readyReplicas"] == 2

    def test_a_second_start_changes_nothing(self, shared: Folder, tools: Toolchain) -> None:
        before, lines = pids(shared), list[str]()
        plane.up(shared, tools, lines.append)
        assert pids(shared) == before
        assert "runs already" in lines[0]

    def test_data_and_ports_survive_a_stop(self, running: Folder, tools: Toolchain) -> None:
        kubectl(tools, running).run("create", "namespace", "kept")
        server = yaml.safe_load(running.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        plane.down(running, print)
        plane.up(running, tools, print)
        assert kubectl(tools, running).succeeds("get", "namespace/kept")
        assert yaml.safe_load(running.kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == server

    def test_a_port_that_somebody_took_meanwhile_is_replaced(self, running: Folder, tools: Toolchain) -> None:
        plane.down(running, print)
        ports = state.read(running).ports
        assert ports is not None
        with socket.create_server(("127.0.0.1", ports.api)):
            plane.up(running, tools, print)
            assert kubectl(tools, running).succeeds("get", "nodes")
        again = state.read(running).ports
        assert again is not None
        assert again.api != ports.api

    def test_two_planes_side_by_side_do_not_see_each_other(
        self, shared: Folder, tools: Toolchain, tmp_path: Path
    ) -> None:
        other = Folder(tmp_path / "other")
        try:
            plane.up(other, tools, print)
            kubectl(tools, other).run("create", "namespace", "elsewhere")
            assert not kubectl(tools, shared).succeeds("get", "namespace/elsewhere")
            # Nor do the credentials of one open the other.
            config = yaml.safe_load(other.kubeconfig.read_text())
            config["clusters"] = yaml.safe_load(shared.kubeconfig.read_text())["clusters"]
            mixed = other.root / "mixed"
            mixed.write_text(yaml.safe_dump(config))
            assert not Kubectl(tools.kubectl, mixed).succeeds("get", "nodes")
        finally:
            plane.down(other, print)
        assert all(pids(shared).values())

    def test_a_process_that_cannot_start_is_named_with_the_end_of_its_log(
        self, folder: Folder, tools: Toolchain
    ) -> None:
        broken = Toolchain(**{**vars(tools), "kube_apiserver": tools.kwok})
        with pytest.raises(plane.PlaneError, match="kube-apiserver ended") as caught:
            plane.up(folder, broken, print)
        assert "unknown flag" in str(caught.value)
        assert not any(pids(folder).values())


class TestDown:
    def test_everything_ends_and_a_second_stop_is_no_mistake(self, running: Folder) -> None:
        alive = [pid for pid in pids(running).values() if pid]
        plane.down(running, print)
        assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in alive)
        lines: list[str] = []
        plane.down(running, lines.append)
        assert lines == ["the control plane does not run"]

    def test_purge_leaves_nothing(self, running: Folder) -> None:
        plane.down(running, print, purge=True)
        assert not running.root.exists()

    def test_a_stop_without_a_plane_makes_no_folder(self, folder: Folder) -> None:
        plane.down(folder, print)
        assert not folder.root.exists()


class TestTrouble:
    def test_a_killed_process_is_named_and_the_next_start_recovers_with_the_data(
        self, running: Folder, tools: Toolchain
    ) -> None:
        kubectl(tools, running).run("create", "namespace", "kept")
        pid = pids(running)["kube-apiserver"]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        _wait(lambda: pids(running)["kube-apiserver"] is None)
        dead = [found.name for found in plane.status(running) if found.expected and not found.pid]
        assert dead == ["kube-apiserver"]
        plane.up(running, tools, print)
        assert kubectl(tools, running).succeeds("get", "namespace/kept")

    def test_after_a_reboot_a_pid_that_now_belongs_to_somebody_else_is_left_alone(
        self, folder: Folder, tools: Toolchain
    ) -> None:
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as bystander:
            try:
                folder.root.mkdir()
                stale = {name: Process(name, bystander.pid, 1.0) for name in NAMES}
                state.write(folder, State(None, stale))
                plane.up(folder, tools, print)
                plane.down(folder, print)
                assert bystander.poll() is None
            finally:
                bystander.kill()

    def test_an_unreadable_state_file_counts_as_none(self, folder: Folder) -> None:
        folder.root.mkdir()
        folder.state.write_text("{not json")
        assert state.read(folder) == State()

    @pytest.mark.usefixtures("tools")
    def test_ctrl_c_during_the_start_leaves_no_process(self, folder: Folder) -> None:
        command = [sys.executable, "-m", "local", "up", "--dir", str(folder.root)]
        with subprocess.Popen(command, cwd=PROJECT, stderr=subprocess.PIPE, text=True) as starting:
            _wait(lambda: state.read(folder).processes.get("etcd") is not None)
            starting.send_signal(signal.SIGINT)
            _, errors = starting.communicate(timeout=60)
        assert starting.returncode == 130, errors
        assert "Traceback" not in errors
        assert not any(pids(folder).values())
        # A kubectl that was just asking something ends by itself.
        _wait(lambda: not [one for one in psutil.process_iter(["cmdline"]) if str(folder.root) in str(one.info)])


class TestCredentials:
    def test_the_server_is_verified_by_the_planes_own_authority(self, shared: Folder, tools: Toolchain) -> None:
        config = yaml.safe_load(shared.kubeconfig.read_text())
        del config["clusters"][0]["cluster"]["certificate-authority"]
        unverified = shared.root / "unverified"
        unverified.write_text(yaml.safe_dump(config))
        assert not Kubectl(tools.kubectl, unverified).succeeds("get", "nodes")

    def test_nobody_gets_in_without_a_certificate(self, shared: Folder, tools: Toolchain) -> None:
        config = yaml.safe_load(shared.kubeconfig.read_text())
        config["users"][0]["user"] = {}
        anonymous = shared.root / "anonymous"
        anonymous.write_text(yaml.safe_dump(config))
        assert not Kubectl(tools.kubectl, anonymous).succeeds("get", "nodes")

    def test_private_files_are_private(self, shared: Folder) -> None:
        private = [shared.kubeconfig, *shared.credentials.iterdir()]
        assert len(private) > 15
        assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
        assert stat.S_IMODE(shared.root.stat().st_mode) == 0o700


class TestCommands:
    def test_status_says_who_died_and_shows_the_end_of_its_log(self, running: Folder) -> None:
        pid = pids(running)["kube-scheduler"]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        _wait(lambda: pids(running)["kube-scheduler"] is None)
        done = local("status", "--dir", str(running.root))
        assert done.returncode == 1
        assert "kube-scheduler ended; the end of" in done.stdout
        assert "fix: run `python -m local up`" in done.stdout

    def test_env_is_nothing_but_shell_code(self, shared: Folder) -> None:
        done = local("env", "--dir", str(shared.root))
        assert done.returncode == 0
        assert all(line.startswith("export ") for line in done.stdout.splitlines())
        shell = subprocess.run(
            ["bash", "-euc", f"{done.stdout}\nkubectl get nodes --output=name"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert shell.stdout == "node/general-0\n"

    def test_env_without_a_plane_says_what_to_do(self, tmp_path: Path) -> None:
        done = local("env", "--dir", str(tmp_path / "none"))
        assert done.returncode == 1
        assert "fix: run `python -m local up`" in done.stderr
        assert done.stdout == ""

    @pytest.mark.parametrize("command", ["", "toolchain", "up", "down", "status", "env", "plan", "models", "logs"])
    def test_help_exists(self, command: str) -> None:
        done = local(*command.split(), "--help")
        assert done.returncode == 0
        assert "usage: python -m local" in done.stdout


def local(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)


def _wait(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


class TestProcesses:
    def test_ctrl_c_waits_until_a_started_process_is_remembered(self) -> None:
        steps: list[str] = []

        def start() -> None:
            with processes.uninterrupted():
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.05)
                steps.append("remembered")
            steps.append("not reached")

        with pytest.raises(KeyboardInterrupt):
            start()
        assert steps == ["remembered"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_one_that_ignores_the_polite_signal_is_killed_and_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(processes, "_TERM_SECONDS", 0.3)
        ignore = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        code = ignore + "print('up', flush=True); time.sleep(60)"
        log = tmp_path / "stubborn.log"
        stubborn = processes.start("stubborn", [sys.executable, "-c", code], log)
        _wait(lambda: log.read_text() == "up\n")
        assert processes.stop([stubborn]) == ["stubborn"]
        assert stubborn.find() is None

    def test_the_tail_of_a_log_is_its_last_lines(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_text("\n".join(str(number) for number in range(100)))
        assert processes.tail(log, 3) == "97\n98\n99"
        assert processes.tail(tmp_path / "missing") == "(no log)"

    def test_state_is_written_in_one_step(self, tmp_path: Path) -> None:
        folder = Folder(tmp_path)
        state.write(folder, State(None, {"etcd": Process("etcd", 1, 2.5)}))
        assert json.loads(folder.state.read_text())["processes"] == {"etcd": {"pid": 1, "started": 2.5}}
        assert [path.name for path in tmp_path.iterdir()] == ["plane.json"]
