"""Sends a real request to every replica of a model, again and again, and says in metrics which of them answer.

Runs inside the cluster on nothing but Python's standard library: ``heartbeat.py SETTINGS.json``. What it asks for
comes from the model's own configuration, read from the server, or from a request written by the model's owner.
"""

import http.client
import json
import math
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

# Bytes of one element (KServe v2 protocol, tensor data types); a text is its length in four bytes and itself.
_SIZES: Final = {
    "BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
    "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8, "BYTES": 4,
}  # fmt: skip
_SEQUENCE_ID: Final = 1
_HEADER_LENGTH: Final = "Inference-Header-Content-Length"


class FailedError(Exception):
    """A replica did not answer as it should; the message says how."""


@dataclass(frozen=True)
class Settings:
    """What the heartbeat is told.

    Attributes:
        host: name whose addresses are the replicas that take requests.
        port: Triton's HTTP port.
        model: name inside Triton.
        every: seconds between two rounds.
        timeout: seconds that a replica has for an answer.
        metrics_port: where the metrics are served.
        request: body of an inference request in JSON, absent for one made from the model's configuration.
    """

    host: str
    port: int
    model: str
    every: float
    timeout: float
    metrics_port: int
    request: Mapping[str, Any] | None = None


@dataclass
class Beats:
    """What is known of the replicas.

    Attributes:
        up: 1 for a replica that answered last time, else 0.
        seconds: how long the last request took.
        successes: requests answered since the start.
        failures: requests not answered since the start.
    """

    up: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    successes: int = 0
    failures: int = 0

    def text(self) -> str:
        """Prometheus' text format."""
        families = [
            ("up", "gauge", "Whether the replica answered the last real request.", _per_replica(self.up)),
            ("duration_seconds", "gauge", "How long the last request took.", _per_replica(self.seconds)),
            ("replicas", "gauge", "Replicas that take requests.", [("", len(self.up))]),
            (
                "requests_total",
                "counter",
                "Requests sent.",
                [('{outcome="success"}', self.successes), ('{outcome="failure"}', self.failures)],
            ),
        ]
        lines = []
        for name, kind, about, samples in families:
            full = f"triton_heartbeat_{name}"
            lines += [f"# HELP {full} {about}", f"# TYPE {full} {kind}"]
            lines += [f"{full}{labels} {value:g}" for labels, value in samples]
        return "\n".join(lines) + "\n"


def _per_replica(values: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    return [(f'{{replica="{address}"}}', value) for address, value in sorted(values.items())]


def request_body(config: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a request of zeros and empty texts that fits a model's configuration.

    Args:
        config: ModelConfig as Triton's ``/v2/models/<model>/config`` gives it.
    """
    batch = [1] if config.get("max_batch_size", 0) > 0 else []
    inputs, data = [], b""
    for tensor in config.get("input", []):
        if tensor.get("optional"):
            continue
        kind = tensor["data_type"].removeprefix("TYPE_").replace("STRING", "BYTES")
        # A dimension that the model leaves open is one long.
        shape = [*batch, *(max(int(size), 1) for size in tensor["dims"])]
        content = bytes(math.prod(shape) * _SIZES[kind])
        parameters = {"binary_data_size": len(content)}
        inputs.append({"name": tensor["name"], "datatype": kind, "shape": shape, "parameters": parameters})
        data += content
    # Half floats have no form in JSON: everything travels as bytes.
    asked: dict[str, Any] = {"binary_data_output": True}
    if "sequence_batching" in config:
        asked |= {"sequence_id": _SEQUENCE_ID, "sequence_start": True, "sequence_end": True}
    header = json.dumps({"parameters": asked, "inputs": inputs}).encode()
    return header + data, {_HEADER_LENGTH: str(len(header)), "Content-Type": "application/octet-stream"}


def _exchange(
    settings: Settings, address: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """One request on a connection of its own: a connection that is kept would miss what new ones run into."""
    connection = http.client.HTTPConnection(address, settings.port, timeout=settings.timeout)
    try:
        connection.request("POST" if body else "GET", path, body, dict(headers or {}))
        answer = connection.getresponse()
        content = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise FailedError(f"{path}: {error or type(error).__name__}") from None
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise FailedError(f"{path}: {answer.status} {content[:300].decode(errors='replace')}")
    return content


def beat(settings: Settings, address: str) -> float:
    """Send one request to a replica and give back the seconds that it took.

    Raises:
        FailedError: no answer in time, or one that is no success.
    """
    path = f"/v2/models/{settings.model}"
    if settings.request is not None:
        body, headers = json.dumps(settings.request).encode(), {"Content-Type": "application/json"}
    else:
        body, headers = request_body(json.loads(_exchange(settings, address, f"{path}/config")))
    began = time.monotonic()
    _exchange(settings, address, f"{path}/infer", body, headers)
    return time.monotonic() - began


def addresses(host: str, port: int) -> list[str]:
    """Addresses behind a name; none where it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return []
    return sorted({str(entry[4][0]) for entry in found})


def round_trip(settings: Settings, beats: Beats) -> None:
    """One request to each replica, one after the other, so that the probe is never load."""
    replicas = addresses(settings.host, settings.port)
    up: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for address in replicas:
        try:
            seconds[address] = beat(settings, address)
            up[address] = 1
            beats.successes += 1
        except FailedError as failure:
            up[address] = 0
            beats.failures += 1
            _say(f"no answer from {address}: {failure}")
        if up[address] and not beats.up.get(address):
            _say(f"{address} answers, {seconds[address] * 1000:.1f} ms")
    if not replicas:
        _say(f"no replica behind {settings.host}")
    beats.up, beats.seconds = up, seconds


def _say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
    sys.stdout.flush()


def _serve(settings: Settings, beats: Beats) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = beats.text().encode()
            self.send_response(http.client.OK)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Scrapes are no news."""

    server = ThreadingHTTPServer(("", settings.metrics_port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(path: str) -> None:
    """Run until told to end."""
    settings = Settings(**json.loads(Path(path).read_text(encoding="utf-8")))
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    beats = Beats()
    server = _serve(settings, beats)
    while not ended.is_set():
        began = time.monotonic()
        round_trip(settings, beats)
        ended.wait(max(settings.every - (time.monotonic() - began), 0))
    server.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
