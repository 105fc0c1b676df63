"""What a plane remembers between commands: its ports and its processes."""

import fcntl
import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from local.plane.commands import Ports
from local.plane.processes import Process


@dataclass(frozen=True)
class Folder:
    """Where the parts of one plane lie."""

    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", self.root.resolve())

    @property
    def state(self) -> Path:
        """Ports and processes."""
        return self.root / "plane.json"

    @property
    def credentials(self) -> Path:
        """Certificates and the kubeconfigs of the control plane's own parts."""
        return self.root / "credentials"

    @property
    def data(self) -> Path:
        """etcd's data."""
        return self.root / "etcd"

    @property
    def kubeconfig(self) -> Path:
        """The user's kubeconfig."""
        return self.root / "kubeconfig"

    @property
    def bin(self) -> Path:
        """Tools for the user's PATH."""
        return self.root / "bin"

    @property
    def pulumi_home(self) -> Path:
        """Plugins and the selected stack."""
        return self.root / "pulumi"

    @property
    def pulumi_state(self) -> Path:
        """State backend."""
        return self.root / "pulumi-state"

    def log(self, process: str) -> Path:
        """Log of a process."""
        return self.root / "logs" / f"{process}.log"


@dataclass
class State:
    """Ports and processes, as last written."""

    ports: Ports | None = None
    processes: dict[str, Process] = field(default_factory=dict)


def read(folder: Folder) -> State:
    """The remembered state; an unreadable file counts as none, its processes are found dead or alive by `down`."""
    try:
        raw = json.loads(folder.state.read_text(encoding="utf-8"))
        processes = {name: Process(name, entry["pid"], entry["started"]) for name, entry in raw["processes"].items()}
        return State(Ports(**raw["ports"]) if raw["ports"] else None, processes)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return State()


def write(folder: Folder, state: State) -> None:
    """Write the state in one step."""
    content = {
        "ports": asdict(state.ports) if state.ports else None,
        "processes": {
            name: {"pid": process.pid, "started": process.started} for name, process in state.processes.items()
        },
    }
    partial = folder.state.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=2), encoding="utf-8")
    partial.replace(folder.state)


@contextmanager
def locked(folder: Folder) -> Generator[None]:
    """One command at a time works on a plane; the second waits."""
    folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(folder.root / "lock", os.O_RDWR | os.O_CREAT, 0o600), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def free_ports(wanted: Ports | None) -> Ports:
    """Free ports, those of last time where nobody else has taken them, so that kubeconfigs stay right."""
    last = (wanted.api, wanted.etcd, wanted.etcd_peer) if wanted else (0, 0, 0)
    sockets = [_bind(port) for port in last]
    try:
        api, etcd, peer = (bound.getsockname()[1] for bound in sockets)
        return Ports(api, etcd, peer)
    finally:
        for bound in sockets:
            bound.close()


def _bind(port: int) -> socket.socket:
    candidate = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # As the servers themselves do: a port that only lingers after a stop is free.
    candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        candidate.bind(("127.0.0.1", port))
    except OSError:
        candidate.bind(("127.0.0.1", 0))
    return candidate
