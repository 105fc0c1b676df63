"""Start, stop and look at a control plane: etcd, API server, controller manager, scheduler, KWOK."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local import crds
from local.plane import credentials, nodes, processes, state
from local.plane.commands import NAMES, Commands, Options, Ports
from local.plane.errors import PlaneError
from local.plane.kubectl import Kubectl
from local.plane.state import Folder, State
from local.toolchain import Toolchain

_READY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.2
# Another program may take a port between choosing and binding it.
_ATTEMPTS: Final = 3

_DEFAULTS: Final = Options()

Report = Callable[[str], None]


@dataclass(frozen=True)
class Status:
    """One process of the plane.

    Attributes:
        name: e.g. ``etcd``.
        pid: its pid while it runs, None when it does not.
        memory: resident bytes.
        log: its log file.
        expected: whether it was started and not stopped since.
    """

    name: str
    pid: int | None
    memory: int
    log: Path
    expected: bool


def up(folder: Folder, tools: Toolchain, report: Report, options: Options = _DEFAULTS) -> None:
    """Start whatever of the plane does not run yet, and wait until it is ready.

    Args:
        folder: the plane.
        tools: the tools.
        report: receives what is done.
        options: what it does otherwise than usual; of no effect where it runs already.

    Raises:
        PlaneError: a process ends or does not become ready; everything started here is stopped again.
    """
    with state.locked(folder):
        before = state.read(folder)
        if all(name in before.processes and before.processes[name].find() for name in NAMES):
            report(f"the control plane runs already, {_address(before.ports)}")
            return
        # A part that survived the death of another is restarted with it: it holds that one's old port.
        _stop(before)
        files = credentials.ensure(folder.credentials)
        folder.log("etcd").parent.mkdir(exist_ok=True)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                ports = state.free_ports(before.ports)
                _start(folder, Commands(tools, files, ports, folder.data, options), report)
            except _PortTakenError:
                if attempt == _ATTEMPTS:
                    raise PlaneError("other programs keep taking the chosen ports\n  fix: run it again") from None
            else:
                return


class _PortTakenError(Exception):
    pass


def _start(folder: Folder, commands: Commands, report: Report) -> None:
    tools, files, ports = commands.tools, commands.credentials, commands.ports
    server = f"https://127.0.0.1:{ports.api}"
    for name in credentials.KUBECONFIGS:
        credentials.write_kubeconfig(files, name, server, files.kubeconfig(name))
    credentials.write_kubeconfig(files, "admin", server, folder.kubeconfig)
    kubectl = Kubectl(tools.kubectl, folder.kubeconfig)
    running = State(ports)
    began = time.monotonic()
    try:
        for name in NAMES:
            with processes.uninterrupted():  # a process that nobody remembers would stay for ever
                running.processes[name] = processes.start(name, commands.command(name), folder.log(name))
                state.write(folder, running)
            if name == "kube-apiserver":
                _wait(lambda: kubectl.succeeds("get", "--raw=/readyz"), running, folder, "the API server")
        nodes.ensure_general_node(kubectl)
        crds.install(kubectl, tools.prometheus_crds)
        _wait(lambda: nodes.is_ready(kubectl), running, folder, "the controllers")
        _wait(lambda: crds.are_served(kubectl, tools.prometheus_crds), running, folder, "the custom resources")
    except BaseException:
        _stop(running)
        state.write(folder, State(ports))
        raise
    report(f"the control plane is ready after {time.monotonic() - began:.1f} s, {_address(ports)}")


def _wait(ready: Callable[[], bool], running: State, folder: Folder, what: str) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while not ready():
        for name, process in running.processes.items():
            if process.find() is None:
                log = processes.tail(folder.log(name))
                if "address already in use" in log:
                    raise _PortTakenError
                raise PlaneError(f"{name} ended while the plane started\n\n{log}\n\n  log: {folder.log(name)}")
        if time.monotonic() > deadline:
            logs = folder.log("etcd").parent
            raise PlaneError(
                f"{what} did not become ready within {_READY_SECONDS:.0f} s\n  fix: see the logs in {logs}"
            )
        time.sleep(_POLL_SECONDS)


def down(folder: Folder, report: Report, *, purge: bool = False) -> None:
    """Stop the plane; with ``purge`` also remove its data, credentials and Pulumi state."""
    if not folder.root.exists():
        report("the control plane does not run")
        return
    with state.locked(folder):
        known = state.read(folder)
        running = [process for process in known.processes.values() if process.find() is not None]
        for name in _stop(known):
            report(f"{name} did not end by itself and was killed")
        state.write(folder, State(known.ports))
        report("the control plane is stopped" if running else "the control plane does not run")
        if purge:
            shutil.rmtree(folder.root)
            report(f"removed {folder.root}")


def _stop(known: State) -> list[str]:
    """Clients before servers: an API server without its etcd takes a minute to give up."""
    killed: list[str] = []
    for group in (("kube-scheduler", "kube-controller-manager", "kwok"), ("kube-apiserver",), ("etcd",)):
        killed += processes.stop(process for process in known.processes.values() if process.name in group)
    return killed


def status(folder: Folder) -> list[Status]:
    """Every process of the plane, running or not."""
    known = state.read(folder)
    result = []
    for name in NAMES:
        process = known.processes.get(name)
        found = process.find() if process else None
        memory = found.memory_info().rss if found else 0
        result.append(Status(name, found.pid if found else None, memory, folder.log(name), process is not None))
    return result


def _address(ports: Ports | None) -> str:
    return f"https://127.0.0.1:{ports.api}" if ports else "address unknown"
