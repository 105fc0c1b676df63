"""Callers of a gateway, and what may be concluded from how many of their requests went where."""

import http.client
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

from tests.dataplane.gateway_certificates import context

# Made when it is loaded, so no type checker knows what is in it.
_MESSAGES: Final[Any] = service_pb2
# One run in about 100 000 is further from the mean than this many standard deviations.
_DEVIATIONS: Final = 4.4
_THREADS: Final = 6
_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        status: of HTTP; of gRPC the number of its code, 0 for a good one; -1 where the connection broke.
        text: the body, or the details.
        pod: address of the pod that gave the answer, empty where none did.
        seconds: how long it took.
        headers: in lower case.
    """

    status: int
    text: str
    pod: str = ""
    seconds: float = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> Any:
        return json.loads(self.text)


class _Through(http.client.HTTPConnection):
    """HTTP through a socket that leads to the gateway, over TLS where there is a name to ask for."""

    def __init__(self, door: Path, name: str, trust: str) -> None:
        super().__init__("gateway", timeout=_SECONDS)
        self.door, self.name = door, name
        self.tls = context(trust, "http/1.1") if name else None

    def connect(self) -> None:
        found = socket.socket(socket.AF_UNIX)
        found.settimeout(self.timeout)
        found.connect(str(self.door))
        self.sock = self.tls.wrap_socket(found, server_hostname=self.name) if self.tls else found

    def __del__(self) -> None:
        # With the thread whose own it is.
        self.close()


@dataclass(frozen=True)
class Caller:
    """Somebody outside, who knows names only.

    Attributes:
        door: a socket that leads to the gateway.
        trust: PEM of the authority that has signed the gateway's certificate; empty for plain HTTP.
        name: that is asked for over TLS; by default the host's.
    """

    door: Path
    trust: str = ""
    name: str = ""
    _own: threading.local = field(default_factory=threading.local, init=False, repr=False)

    def http(
        self,
        host: str,
        path: str,
        body: bytes | None = b"{}",
        headers: Mapping[str, str] | None = None,
        method: str = "",
    ) -> Answer:
        """One request, on a connection that this thread keeps for this name, or for all without TLS."""
        began = time.monotonic()
        connection = self._connection(host)
        try:
            asked = {"host": host, "content-type": "application/json", **(headers or {})}
            connection.request(method or ("GET" if body is None else "POST"), path, body, asked)
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return Answer(-1, repr(error), seconds=time.monotonic() - began)
        found = {name.lower(): value for name, value in answer.getheaders()}
        pod = ""
        with suppress(ValueError, TypeError, AttributeError):
            pod = json.loads(text).get("pod", "")
        return Answer(answer.status, text, pod, time.monotonic() - began, found)

    def _connection(self, host: str) -> _Through:
        name = (self.name or host.partition(":")[0]) if self.trust else ""
        kept: dict[str, _Through] = self._own.__dict__
        if name not in kept:
            kept[name] = _Through(self.door, name, self.trust)
        return kept[name]

    def infer(self, host: str, model: str, **more: Any) -> Answer:
        return self.http(host, f"/v2/models/{model}/infer", **more)

    @contextmanager
    def channel(self, host: str) -> Generator[grpc.Channel]:
        """One gRPC connection."""
        target = f"unix:{self.door}"
        options: list[tuple[str, Any]] = [("grpc.default_authority", host), ("grpc.max_receive_message_length", -1)]
        if not self.trust:
            with grpc.insecure_channel(target, options) as channel:
                yield channel
            return
        options.append(("grpc.ssl_target_name_override", self.name or host.partition(":")[0]))
        with grpc.secure_channel(target, grpc.ssl_channel_credentials(self.trust.encode()), options) as channel:
            yield channel


def ask(
    channel: grpc.Channel,
    model: str,
    metadata: Sequence[tuple[str, str]] = (),
    seconds: float = _SECONDS,
    size: int = 0,
) -> Answer:
    """One inference over gRPC."""
    stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
    request = _MESSAGES.ModelInferRequest(model_name=model, raw_input_contents=[b"x" * size] if size else [])
    began = time.monotonic()
    try:
        answer = stub.ModelInfer(request, metadata=metadata, timeout=seconds)
    except grpc.RpcError as error:
        code: Any = error
        return Answer(code.code().value[0], code.details() or "", seconds=time.monotonic() - began)
    assert answer.model_name == model
    return Answer(0, "", answer.id, time.monotonic() - began)


def stream(channel: grpc.Channel, model: str, number: int) -> list[str]:
    """The pods that answer so many inferences of one stream."""
    stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
    requests = (_MESSAGES.ModelInferRequest(model_name=model) for _ in range(number))
    return [answer.infer_response.id for answer in stub.ModelStreamInfer(requests, timeout=_SECONDS)]


def many(number: int, one: Callable[[], Answer], threads: int = _THREADS) -> list[Answer]:
    """The answers to so many requests, some at a time."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda _: one(), range(number)))


@contextmanager
def load(one: Callable[[], Answer], threads: int = _THREADS) -> Generator[list[Answer]]:
    """Requests all the time, while the block runs; the list has all answers when it has ended."""
    answers: list[Answer] = []
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            answers.append(one())
            time.sleep(0.005)

    running = [threading.Thread(target=go_on) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield answers
    finally:
        ended.set()
        for thread in running:
            thread.join()


def fits(count: int, of: int, share: float) -> bool:
    """Whether so many of some requests can have come from this share, each on its own."""
    return abs(count - of * share) <= _DEVIATIONS * math.sqrt(of * share * (1 - share)) + 0.5
