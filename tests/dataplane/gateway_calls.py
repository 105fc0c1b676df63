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
    """HTTP through a socket that leads to the gateway."""

    def __init__(self, door: Path) -> None:
        super().__init__("gateway", timeout=_SECONDS)
        self.door = door

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.door))


@dataclass(frozen=True)
class Caller:
    """Somebody outside, who knows names only."""

    door: Path
    _own: threading.local = field(default_factory=threading.local, repr=False)

    def http(
        self,
        host: str,
        path: str,
        body: bytes | None = b"{}",
        headers: Mapping[str, str] | None = None,
        method: str = "",
    ) -> Answer:
        """One request, on a connection that this thread keeps."""
        began = time.monotonic()
        if getattr(self._own, "connection", None) is None:
            self._own.connection = _Through(self.door)
        connection = self._own.connection
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

    def infer(self, host: str, model: str, **more: Any) -> Answer:
        return self.http(host, f"/v2/models/{model}/infer", **more)

    @contextmanager
    def channel(self, host: str) -> Generator[grpc.Channel]:
        """One gRPC connection."""
        options = [("grpc.default_authority", host), ("grpc.max_receive_message_length", -1)]
        with grpc.insecure_channel(f"unix:{self.door}", options) as channel:
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
