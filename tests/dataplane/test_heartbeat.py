"""The heartbeat as its pod runs it, against real servers."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from components.serving import heartbeat
from probes.heartbeat import addresses
from spec.heartbeat import Heartbeat
from spec.resolve import Model
from tests.dataplane.metrics import samples
from tests.dataplane.serving import Service, fetch, free_ports
from tests.dataplane.sources import SAMPLES

SECONDS = 20.0


@dataclass(frozen=True)
class Beating:
    """One running heartbeat."""

    process: subprocess.Popen[str]
    port: int

    def metric(self, name: str) -> dict[str, float]:
        """Value by replica (or outcome)."""
        status, text = fetch(f"http://127.0.0.1:{self.port}/metrics")
        found = samples(text) if status == 200 else []
        return {
            next(iter(labels.values()), ""): value for one, labels, value in found if one == f"triton_heartbeat_{name}"
        }

    def until(self, reached: Callable[["Beating"], bool]) -> "Beating":
        limit = time.monotonic() + SECONDS
        while not reached(self):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < limit, f"not within {SECONDS:.0f} s: {self.metric('up')}"
            time.sleep(0.05)
        return self

    def end(self) -> tuple[int, str]:
        self.process.terminate()
        output, _ = self.process.communicate(timeout=10)
        return self.process.returncode, output


@pytest.fixture
def start_beating(tmp_path: Path) -> Iterator[Callable[..., Beating]]:
    """Starts the rendered program with the rendered settings; this machine decides ports and host only."""
    started: list[Beating] = []

    def _start(service: Service, *, every: float = 1, timeout: float = 1, request: Any = None) -> Beating:
        told = json.loads(heartbeat.settings(service.revision, Heartbeat(every, timeout, request), "serving"))
        port = free_ports().http
        here = {"host": "127.0.0.1", "port": service.ports.http, "metrics_port": port}
        (tmp_path / "settings.json").write_text(json.dumps(told | here))
        (tmp_path / "heartbeat.py").write_text(heartbeat.code())
        command = [sys.executable, "-I", "-B", str(tmp_path / "heartbeat.py"), str(tmp_path / "settings.json")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(Beating(process, port))
        return started[-1]

    yield _start
    for one in started:
        if one.process.poll() is None:
            one.end()


@pytest.mark.parametrize("name", [*SAMPLES, "corners", "halves"])
def test_a_model_that_works_is_up(
    name: str, services: Mapping[str, Service], start_beating: Callable[..., Beating]
) -> None:
    beating = start_beating(services[name]).until(lambda one: one.metric("up") == {"127.0.0.1": 1})
    assert 0 < beating.metric("duration_seconds")["127.0.0.1"] < 1
    assert beating.metric("replicas") == {"": 1}
    before = beating.metric("requests_total")["success"]
    beating.until(lambda one: one.metric("requests_total")["success"] > before)
    assert beating.metric("requests_total")["failure"] == 0
    code, output = beating.end()
    assert code == 0, output
    assert "127.0.0.1 answers" in output


def test_it_counts_in_the_model_as_a_real_request(
    services: Mapping[str, Service], start_beating: Callable[..., Beating]
) -> None:
    def answered() -> float:
        found = samples(services["halves"].metrics())
        return sum(value for name, labels, value in found if name == "nv_inference_request_success")

    before = answered()
    start_beating(services["halves"], every=0.2).until(lambda one: one.metric("requests_total").get("success", 0) >= 3)
    assert answered() >= before + 3


def test_a_request_of_the_owner_is_what_the_model_gets(
    services: Mapping[str, Service], start_beating: Callable[..., Beating]
) -> None:
    def asking(*values: int) -> Beating:
        tensor = {"name": "needed", "datatype": "INT32", "shape": [1, 2], "data": list(values)}
        return start_beating(services["corners"], request={"inputs": [tensor]})

    asking(1, 2).until(lambda one: one.metric("up") == {"127.0.0.1": 1})
    refused = asking(-1, 2).until(lambda one: one.metric("up") == {"127.0.0.1": 0})
    _, output = refused.end()
    assert "refused by the model" in output


def test_a_model_that_hangs_is_down(
    start: Callable[..., Service], model: Callable[[str], Model], gate: Path, start_beating: Callable[..., Beating]
) -> None:
    (gate / "gate").touch()
    service = start(model("gated").primary).until_ready()
    tensor = {"name": "seconds", "datatype": "FP32", "shape": [1], "data": [4]}
    beating = start_beating(service, every=2, timeout=0.5, request={"inputs": [tensor]})
    beating.until(lambda one: one.metric("up") == {"127.0.0.1": 0})
    assert service.http(service.readiness_path)[0] == 200, "what the probes of Kubernetes cannot see"
    assert "timed out" in beating.end()[1]


def test_it_sees_a_server_end(
    start: Callable[..., Service], model: Callable[[str], Model], start_beating: Callable[..., Beating]
) -> None:
    service = start(model("fraud-score").primary).until_ready()
    beating = start_beating(service, every=0.2).until(lambda one: one.metric("up") == {"127.0.0.1": 1})
    service.end()
    beating.until(lambda one: one.metric("up") == {"127.0.0.1": 0})


def test_a_name_without_addresses_has_no_replicas() -> None:
    assert addresses("replicas.invalid", 8000) == []
