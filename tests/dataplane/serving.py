"""Services as their pods would run them: rendered arguments, rendered files, a real server on free ports."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from components.serving import model_config, repository, runtime
from local.triton import TritonServer, end
from spec.resolve import Revision
from tests.dataplane.sources import OWN_CONFIG, PYTHON_MODEL

_READY_SECONDS: Final = 60.0


class Ports(NamedTuple):
    """Where one server listens."""

    http: int
    grpc: int
    metrics: int


def placed(arguments: Sequence[str], ports: Ports, repository: Path) -> list[str]:
    """Rendered arguments with the only values that this machine decides: the ports and the repository's folder."""
    here = {
        "--http-port": ports.http,
        "--grpc-port": ports.grpc,
        "--metrics-port": ports.metrics,
        "--model-repository": repository,
    }
    names = [argument.partition("=")[0] for argument in arguments]
    if missing := [name for name in here if name not in names]:
        raise ValueError(f"the arguments lack {', '.join(missing)}")
    return [
        f"{name}={here[name]}" if name in here else argument for name, argument in zip(names, arguments, strict=True)
    ]


def fetch(url: str, body: object = None) -> tuple[int, str]:
    """Status and text; status 0 where nothing listens."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(url, data=data, timeout=60) as answer:  # noqa: S310  # always http
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def free_ports() -> Ports:
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in Ports._fields]
        for one in found:
            one.bind(("", 0))
        return Ports(*(one.getsockname()[1] for one in found))


def write_models(revision: Revision, folder: Path, *more: str) -> None:
    """The repository as the pod sees it: what the store holds, and the rendered files mounted over it."""
    for name in {revision.triton_name, *revision.spec.members, *revision.configs, *more}:
        (folder / name).mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(OWN_CONFIG)
        config = revision.configs.get(name)
        ensemble = config is not None and config.HasField("ensemble_scheduling")
        for version in ("1", "2", "3"):
            (folder / name / version).mkdir()
            if not ensemble:
                (folder / name / version / "model.py").write_text(PYTHON_MODEL)
    for name, config in revision.configs.items():
        for label in {output.label_filename for output in config.output if output.label_filename}:
            (folder / name / label).write_text("cat\ndog\n")
    data = model_config.data(revision)
    for mount in model_config.mounts(revision):
        path = Path(str(mount.mount_path)).relative_to(runtime.MODELS_PATH)
        (folder / path).write_text(data[str(mount.sub_path)])


@dataclass(frozen=True)
class Service:
    """One server, started as the container of a revision."""

    revision: Revision
    ports: Ports
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls, triton: TritonServer, revision: Revision, folder: Path, *, more: tuple[str, ...] = (), broken: str = ""
    ) -> "Service":
        models = folder / "models"
        write_models(revision, models, *more)
        if broken:
            (models / revision.triton_name / "config.pbtxt").write_text(broken)
        ports = free_ports()
        rendered = runtime.server_arguments(revision, repository.location(revision))
        log = folder / "log"
        process = triton.start(placed(rendered, ports, models), log, revision.spec.environment)
        return cls(revision, ports, process, log)

    @property
    def readiness_path(self) -> str:
        return _path(runtime.readiness_probe(self.revision))

    @property
    def startup_path(self) -> str:
        return _path(runtime.startup_probe(self.revision))

    @property
    def liveness_path(self) -> str:
        return _path(runtime.liveness_probe())

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.metrics}/metrics"

    @property
    def term_seconds(self) -> int:
        """What a pod has from SIGTERM to SIGKILL: preStop runs before SIGTERM."""
        return runtime.grace_seconds(self.revision) - runtime.DRAIN_SECONDS

    def http(self, path: str, body: object = None) -> tuple[int, str]:
        return fetch(f"http://127.0.0.1:{self.ports.http}{path}", body)

    def json(self, path: str, body: object = None) -> Any:
        status, text = self.http(path, body)
        assert status == 200, f"{path}: {status} {text}"
        return json.loads(text) if text else None

    def metrics(self) -> str:
        status, text = fetch(self.metrics_url)
        assert status == 200
        return text

    def here(self, text: str, entry: Mapping[str, Any]) -> str:
        """A text of the contract with the model's cluster addresses replaced by those of this server."""
        host = str(entry["httpTarget"]).partition(":")[0]
        ports = ((runtime.HTTP_PORT, self.ports.http), (runtime.GRPC_PORT, self.ports.grpc))
        for port, own in (*ports, (runtime.METRICS_PORT, self.ports.metrics)):
            text = text.replace(f"{host}:{port}", f"127.0.0.1:{own}")
        return text

    def until_ready(self) -> "Service":
        """Triton opens its metrics port a moment after it answers on the others."""
        wait(lambda: self.process.poll() is not None or self.http(self.startup_path)[0] == 200, self)
        wait(lambda: self.process.poll() is not None or fetch(self.metrics_url)[0] == 200, self)
        assert self.process.poll() is None, f"the server ended:\n{self.tail()}"
        return self

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-6000:]

    def end(self) -> int | None:
        return end(self.process, self.term_seconds)


def wait(reached: Any, service: Service, seconds: float = _READY_SECONDS) -> None:
    limit = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < limit, f"not within {seconds:.0f} s:\n{service.tail()}"
        time.sleep(0.02)


def _path(probe: Any) -> str:
    assert probe.http_get.port == runtime.HTTP_PORT
    return str(probe.http_get.path)
