"""A server that is told to end finishes what it has begun, within the pod's grace period."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from components.serving import runtime
from local.triton import end
from spec.resolve import Model
from tests.dataplane.serving import Service, wait

SECONDS = 3.0


@pytest.fixture
def slow(start: Callable[..., Service], model: Callable[[str], Model], gate: Path) -> Service:
    (gate / "gate").touch()
    (gate / "started").unlink(missing_ok=True)
    return start(model("gated").primary).until_ready()


def ask(service: Service) -> tuple[int, str]:
    tensor = {"name": "seconds", "datatype": "FP32", "shape": [1], "data": [SECONDS]}
    return service.http("/v2/models/gated/infer", {"inputs": [tensor]})


def test_a_request_in_flight_is_answered_before_the_server_ends(slow: Service, gate: Path) -> None:
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(ask, slow)
        wait((gate / "started").exists, slow)
        told = time.monotonic()
        assert slow.end() == 0, "the server had to be killed"
        took = time.monotonic() - told
        status, text = answer.result()
    assert status == 200, text
    # It does not wait for the whole of its exit timeout once nothing is in flight.
    assert SECONDS - 1 < took < 30 < runtime.exit_timeout_seconds(slow.revision)


def test_a_server_that_is_killed_answers_nothing(slow: Service, gate: Path) -> None:
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(ask, slow)
        wait((gate / "started").exists, slow)
        assert end(slow.process, 0) is None
        assert answer.result()[0] == 0


def test_the_exit_timeout_is_the_one_that_is_rendered(slow: Service) -> None:
    assert slow.end() == 0
    assert f"Timeout {runtime.exit_timeout_seconds(slow.revision)}: Found" in slow.log.read_text()
