"""A plane in a network of its own, where every pod's address is an address of this machine.

KWOK's pods are ready and run nothing. In this network the whole of 10.0.0.0/8 is local, so one process that listens on
0.0.0.0 answers on the address of every pod, and what talks to pods, a Prometheus or a gateway, runs as it is.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from local.plane import processes, workspace
from local.plane.kubectl import Kubectl
from local.plane.state import Folder
from local.toolchain import ToolchainForTests
from tests.engine.project import SOURCE, Project

AUTOSCALER_SECONDS: Final = 2
_TOOLS: Final = {"unshare": "util-linux", "nsenter": "util-linux", "mount": "util-linux", "ip": "iproute2"}
_NETWORK: Final = "ip link set lo up && ip route add local 10.0.0.0/8 dev lo && echo ready && exec cat"
# What a kubelet mounts into a pod; /var/run is a link to /run.
_AS_POD: Final = """
set -eu
mount -t tmpfs tmpfs /run
mkdir -p /run/secrets/kubernetes.io
cp -r "$1" /run/secrets/kubernetes.io/serviceaccount
shift
exec "$@"
"""
_FETCH: Final = """
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=20)
except urllib.error.HTTPError as error:
    answer = error
except OSError:
    sys.exit(7)
print(answer.status)
sys.stdout.write(answer.read().decode())
"""
_NOBODY_LISTENS: Final = 7
_END_SECONDS: Final = 15.0


@dataclass(frozen=True)
class Running:
    """A process of the world."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def until(self, reached: Callable[[], object], seconds: float = 60) -> None:
        """Wait for something that this process brings about."""
        limit = time.monotonic() + seconds
        while not self._alive() or not reached():
            assert time.monotonic() < limit, f"{self.name}: not within {seconds:.0f} s:\n{processes.tail(self.log, 30)}"
            time.sleep(0.1)

    def _alive(self) -> bool:
        code = self.process.poll()
        assert code is None, f"{self.name} ended with {code}:\n{processes.tail(self.log, 30)}"
        return True

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class InWorld(Project):
    """A copy of the project, driven from inside a world."""

    def command(self, *arguments: str) -> list[str]:
        return [str(_enter(self.plane)), *super().command(*arguments)]

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(_kubectl(self.plane), self.plane.kubeconfig)


@dataclass(frozen=True)
class World:
    """The network, the plane in it, and what was started there."""

    folder: Path
    tools: ToolchainForTests
    _ending: ExitStack = field(repr=False)

    @property
    def plane(self) -> Folder:
        return Folder(self.folder / "plane")

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(_kubectl(self.plane), self.plane.kubeconfig)

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | workspace.environment(self.plane)

    def run(
        self, *command: str | Path, stdin: str | None = None, account: str | None = None, seconds: float = 300
    ) -> str:
        """What a command prints that must succeed, run inside the network; ``account`` as in :meth:`start`."""
        prefix, variables = self._inside(account)
        done = subprocess.run(
            [*prefix, *command],
            cwd=SOURCE,
            env=variables,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(
        self,
        name: str,
        *command: str | Path,
        account: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Running:
        """Start a process inside the network; it ends with the session.

        Args:
            name: of its log.
            command: what is run.
            account: ``namespace/name`` of a service account: the process finds its token where a pod does, and may do
                what that account may.
            environment: more variables.
        """
        log = self.folder / "logs" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        prefix, variables = self._inside(account)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*prefix, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=variables | dict(environment or {}),
                cwd=self.folder,
                start_new_session=True,
            )
        running = Running(name, process, log)
        self._ending.callback(running.end)
        return running

    def fetch(self, url: str) -> tuple[int, str]:
        """Status and text of an address inside the network; status 0 where nobody listens."""
        done = subprocess.run(
            [_enter(self.plane), sys.executable, "-ISc", _FETCH, url], capture_output=True, text=True, check=False
        )
        if done.returncode == _NOBODY_LISTENS:
            return 0, ""
        assert done.returncode == 0, done.stderr
        status, _, text = done.stdout.partition("\n")
        return int(status), text

    def project(self, stack: str) -> InWorld:
        """A copy of the project with a stack of its own."""
        folder = self.folder / "projects" / stack
        folder.mkdir(parents=True)
        copied = Project.copy(folder, self.plane, stack)
        return InWorld(copied.folder, copied.plane, copied.stack)

    def _inside(self, account: str | None) -> tuple[list[str | Path], dict[str, str]]:
        """What runs a command inside the network, and its variables."""
        if account is None:
            return [_enter(self.plane)], self.environment
        as_pod = ("unshare", "--mount", "sh", "-c", _AS_POD, "sh", self._mounted(account))
        return [_enter(self.plane), *as_pod], self.environment | self._in_cluster()

    def _mounted(self, account: str) -> Path:
        namespace, _, name = account.partition("/")
        folder = self.folder / "accounts" / f"{namespace}-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        token = self.kubectl.run("create", "token", name, f"--namespace={namespace}")
        (folder / "token").write_text(token.strip())
        (folder / "namespace").write_text(namespace)
        shutil.copyfile(self.plane.credentials / "ca.crt", folder / "ca.crt")
        return folder

    def _in_cluster(self) -> dict[str, str]:
        address = self.kubectl.run("config", "view", "--output=jsonpath={.clusters[0].cluster.server}")
        host, _, port = address.removeprefix("https://").partition(":")
        return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


@contextmanager
def made(folder: Path, tools: ToolchainForTests) -> Generator[World]:
    """A world with a running plane; everything in it ends with the block."""
    lacking = sorted({f"{tool} ({package})" for tool, package in _TOOLS.items() if not shutil.which(tool)})
    if lacking:
        pytest.fail(f"a network of their own needs programs that PATH lacks: {', '.join(lacking)}", pytrace=False)
    with ExitStack() as ending:
        world = World(folder, tools, ending)
        _make_network(world, ending)
        local = (sys.executable, "-m", "local")
        where = f"--dir={world.plane.root}"
        ending.callback(world.run, *local, "down", where, "--purge")
        world.run(*local, "up", where, f"--autoscaler-seconds={AUTOSCALER_SECONDS}")
        yield world


def _make_network(world: World, ending: ExitStack) -> None:
    """A network that lives as long as the process that holds it, which ends when this one does."""
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *rights, "--net", "sh", "-c", _NETWORK]
    holder = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    ending.callback(holder.communicate, "")
    assert holder.stdout is not None
    said = holder.stdout.readline()
    if said != "ready\n":
        pytest.fail(
            f"this machine does not allow a network of one's own: {said}{holder.communicate()[0]}", pytrace=False
        )
    enter = ["nsenter", *(["--user", "--preserve-credentials"] if rights else []), "--net", f"--target={holder.pid}"]
    _script(_enter(world.plane), f'exec {shlex.join(enter)} -- "$@"')
    _script(_kubectl(world.plane), f'exec {shlex.quote(str(_enter(world.plane)))} {world.tools.kubectl} "$@"')


def _script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def _enter(plane: Folder) -> Path:
    return plane.root.parent / "enter"


def _kubectl(plane: Folder) -> Path:
    return plane.root.parent / "kubectl"
