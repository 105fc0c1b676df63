"""Tokens and limits at a real gateway, and Triton itself behind it."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from local.triton import TritonServer
from tests.dataplane import gateway_triton
from tests.dataplane.gateway_calls import Answer, ask, many
from tests.dataplane.gateway_scene import API, LIMIT, RATE, Scene, host, token

# HTTP status and gRPC code by what the caller brings.
REFUSED: Final[dict[str, tuple[str | None, int, int]]] = {
    "none": (None, 403, 7),
    "no token": ("Bearer something", 401, 16),
    "another model": (token("guarded-too"), 403, 7),
    "expired": (token("guarded", expires="2026-01-01"), 401, 16),
    "another audience": (token("guarded", audience="elsewhere"), 403, 7),
    "another issuer": (token("guarded", issuer="https://else.example.com"), 401, 16),
    "a foreign key": (token("guarded", key="k3"), 401, 16),
    "another word": (f"Basic {token('guarded')}", 403, 7),
}


class TestTokens:
    @pytest.mark.parametrize("what", REFUSED)
    def test_refused(self, what: str, routed: Scene) -> None:
        value, status, code = REFUSED[what]
        headers = {"authorization": value} if value else {}
        routed.gate.backends.take()
        assert routed.caller.infer(host("guarded"), "guarded", headers=headers).status == status
        assert routed.caller.infer(f"{host('guarded')}:80", "guarded", headers=headers).status == status
        shared = routed.caller.http(API, "/guarded/v2/models/guarded/infer", headers=headers)
        assert shared.status == status
        with routed.caller.channel(host("guarded")) as channel:
            assert ask(channel, "guarded", list(headers.items())).status == code
        assert not routed.gate.backends.take()

    @pytest.mark.parametrize("scheme", ["Bearer ", ""])
    @pytest.mark.parametrize("key", ["k1", "k2"])
    def test_good(self, key: str, scheme: str, routed: Scene) -> None:
        headers = {"authorization": scheme + token("model-1", "guarded", key=key)}
        answer = routed.caller.infer(host("guarded"), "guarded", headers=headers)
        assert answer.status == 200, answer
        assert answer.pod in routed.addresses("guarded-v1")
        assert "authorization" not in answer.body["headers"]
        assert routed.caller.http(API, "/guarded/v2/models/guarded/infer", headers=headers).status == 200
        with routed.caller.channel(host("guarded")) as channel:
            assert ask(channel, "guarded", list(headers.items())).status == 0
        assert routed.caller.infer(host("guarded-too"), "guarded-too", headers=headers).status == 403

    @pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready"])
    def test_health_needs_none(self, path: str, routed: Scene) -> None:
        assert routed.caller.http(host("guarded"), path, body=None).status == 200
        assert routed.caller.http(API, f"/guarded{path}", body=None).status == 200

    @pytest.mark.parametrize(
        "path",
        [
            "/model-1/../guarded/v2/models/guarded/infer",
            "/model-1/%2e%2e/guarded/v2/models/guarded/infer",
            "//guarded/v2/models/guarded/infer",
            "/guarded//v2/models/guarded/infer",
            "/%67uarded/v2/models/guarded/infer",
            "/GUARDED/v2/models/guarded/infer",
            "/guarded/v2/health/live/../../models/guarded/infer",
        ],
    )
    def test_no_way_around(self, path: str, routed: Scene) -> None:
        routed.gate.backends.take()
        assert routed.caller.http(API, path).status in {403, 404}
        assert not routed.gate.backends.take()


@pytest.fixture(scope="module")
def picture(routed: Scene, tritonserver: TritonServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder of a real server, while it runs."""
    (pod,) = routed.addresses("picture-v1")
    found = tmp_path_factory.mktemp("picture")
    running = gateway_triton.start(routed.gate, routed.project, tritonserver, "picture", pod, found)
    yield found
    running.end()


class TestTriton:
    """A real server, and Triton's own clients as they are."""

    @pytest.fixture(params=["http", "grpc"])
    def call(
        self, request: pytest.FixtureRequest, routed: Scene, tritonserver: TritonServer, picture: Path
    ) -> Callable[..., str]:
        """Runs a client with what it sends along."""
        python = {"http": tritonserver.python, "grpc": sys.executable}[request.param]
        world, where = routed.gate.world, host("picture")
        return lambda *word: gateway_triton.call(world, python, picture, request.param, where, "picture", *word)

    @pytest.mark.parametrize("scheme", ["Bearer ", ""])
    def test_it_answers_who_has_a_token(self, scheme: str, call: Callable[..., str]) -> None:
        said = call(scheme + token("picture"))
        assert said.startswith("True\n")
        assert said.endswith("(1, 1001)\n")
        assert "299" in said

    def test_and_nobody_else(self, call: Callable[..., str]) -> None:
        with pytest.raises(AssertionError, match=r"(?s)True\n.*(\[403\]|PERMISSION_DENIED).*RBAC"):
            call()


class TestLimits:
    def test_rate(self, infer: Callable[..., Answer]) -> None:
        time.sleep(1.5)
        began = time.monotonic()
        answers = many(80, lambda: infer("limited"))
        seconds = time.monotonic() - began
        found = Counter(one.status for one in answers)
        good, refused = (found[200], found[429]) if found[429] else (found[0], found[8])
        assert good + refused == 80, found
        assert RATE <= good <= RATE * (seconds + 1.5)
        assert refused > 0

    def test_a_refused_caller_is_told_when_to_come_back(self, routed: Scene) -> None:
        answers = many(30, lambda: routed.caller.infer(host("limited"), "limited"))
        assert {one.headers.get("retry-after") for one in answers if one.status == 429} == {"1"}

    @pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413), (40 * LIMIT, 413)])
    def test_size(self, size: int, status: int, routed: Scene) -> None:
        assert routed.caller.infer(host("small"), "small", body=b"x" * size).status == status
        path = "/small/v2/models/small/infer"
        assert routed.caller.http(API, path, body=b"x" * size).status == status

    def test_a_size_that_is_not_said(self, routed: Scene) -> None:
        answer = routed.caller.infer(host("small"), "small", body=iter([b"{", b"}"]))
        assert answer.status == 411, answer
        assert "Content-Length" in answer.body["error"]

    @pytest.mark.parametrize(("size", "good"), [(LIMIT - 100, True), (2 * LIMIT, False)])
    def test_size_over_grpc(self, size: int, good: bool, routed: Scene) -> None:
        routed.gate.backends.take()
        with routed.caller.channel(host("small")) as channel:
            answer = ask(channel, "small", size=size)
        assert (answer.status == 0) is good, answer
        assert sum(routed.gate.backends.take().values()) == good
