"""What answers for the models' pods: KServe's protocol over HTTP and gRPC, by one process on the address of every pod.

As a program, ``python backends.py FOLDER [PORT...]`` listens on 0.0.0.0:8000 and :8001. An answer says which pod gave
it; every request is counted. :class:`Backends` steers it through a socket in the folder, from any network. Also in the
folder is a socket ``door-<port>`` for each port named, which leads to that port of 127.0.0.1.
"""

import asyncio
import json
import socket
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

HTTP, GRPC = 8000, 8001
_PORTS: Final = {HTTP: "http", GRPC: "grpc"}
_CHUNK: Final = 2**16
# Callers have an address of their own, so that a pod whose address is gone can still end its connections.
_CALLER: Final = "10.255.255.2"
_PODS: Final = "10.128.0.0/9"


@dataclass(frozen=True)
class Backends:
    """The running process, seen by a test."""

    folder: Path

    def do(self, **what: object) -> Any:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(str(self.folder / "control"))
            connection.sendall(json.dumps(what).encode() + b"\n")
            with connection.makefile() as answer:
                return json.loads(answer.readline())

    def behave(self, *addresses: str, **how: float) -> None:
        """From now on these pods wait for ``delay`` seconds, or answer with ``status``; nothing for as usual."""
        self.do(behave=dict.fromkeys(addresses, how))

    def take(self) -> Counter[tuple[str, str, str]]:
        """Requests since the last call, by pod, protocol and path."""
        return Counter({tuple(key.split(" ", 2)): number for key, number in self.do(take=True).items()})

    def lead(self, address: str, http: int, grpc: int) -> None:
        """What comes to this pod goes to a server on these ports instead."""
        self.do(lead={address: {str(HTTP): http, str(GRPC): grpc}})

    def kill(self, address: str) -> None:
        """The pod is gone: its connections end, and its address is nowhere."""
        self.do(kill=address)

    def revive(self, address: str) -> None:
        """Another pod has the address now."""
        self.do(revive=address)

    def door(self, port: int) -> Path:
        """A socket that leads to a port of the network."""
        return self.folder / f"door-{port}"


@dataclass
class State:
    """What the process knows."""

    folder: Path
    counts: Counter[str] = field(default_factory=Counter)
    how: dict[str, Mapping[str, float]] = field(default_factory=dict)
    ends: dict[str, Mapping[str, int]] = field(default_factory=dict)
    open: dict[str, set[asyncio.StreamWriter]] = field(default_factory=lambda: defaultdict(set))
    servers: dict[str, Any] = field(default_factory=dict)

    async def asked(self, address: str, protocol: str, path: str) -> int:
        """Count a request, take the time that the pod takes, and say what it answers."""
        self.counts[f"{address} {protocol} {path}"] += 1
        how = self.how.get(address, {})
        await asyncio.sleep(how.get("delay", 0))
        return int(how.get("status", 200))

    async def control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        what, answer = json.loads(await reader.readline()), {}
        self.how |= what.get("behave", {})
        self.ends |= what.get("lead", {})
        if "take" in what:
            answer, self.counts = dict(self.counts), Counter()
        if address := what.get("kill"):
            # First nobody comes any more, then those who are there are told.
            _ip("rule", "add", "pref", "1", "to", address, "unreachable")
            for one in list(self.open[address]):
                one.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        if address := what.get("revive"):
            _ip("rule", "delete", "pref", "1", "to", address)
        writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection to a pod."""
        address, port = writer.get_extra_info("sockname")
        self.open[address].add(writer)
        try:
            if address in self.ends:
                await piped(reader, writer, *await asyncio.open_connection("127.0.0.1", self.ends[address][str(port)]))
            elif port == HTTP:
                await self.http(address, reader, writer)
            else:
                await piped(reader, writer, *await asyncio.open_unix_connection(await self.grpc(address)))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open[address].discard(writer)
            writer.close()

    async def http(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            method, path, _ = line.decode().split(" ")
            headers: dict[str, str] = {}
            while (line := await reader.readline()).strip():
                name, _, value = line.decode().partition(":")
                headers[name.lower()] = value.strip()
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            status = await self.asked(address, "http", path)
            said = {"pod": address, "method": method, "path": path, "headers": headers, "length": len(body)}
            text = json.dumps(said).encode()
            head = f"HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
            writer.write(head.encode() + text)
            await writer.drain()

    async def grpc(self, address: str) -> Path:
        """The socket of the gRPC server of one pod: a server does not say which address it was asked on."""
        path = self.folder / f"{address}.sock"
        if address not in self.servers:
            self.servers[address] = await _grpc_server(self, address, path)
        return path


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


async def _grpc_server(state: State, address: str, path: Path) -> Any:
    import grpc  # noqa: PLC0415  # only the process needs them
    from tritonclient.grpc import service_pb2 as messages  # noqa: PLC0415

    service_pb2: Any = messages

    class Handler(grpc.GenericRpcHandler):
        def service(self, handler_call_details: Any) -> Any:
            method = handler_call_details.method

            async def answer(request: bytes, context: Any) -> Any:
                status = await state.asked(address, "grpc", method)
                if status != 200:
                    await context.abort(grpc.StatusCode.UNAVAILABLE, f"{status} of {address}")
                if not method.endswith("Infer"):
                    return b""
                asked = service_pb2.ModelInferRequest.FromString(request)
                return service_pb2.ModelInferResponse(model_name=asked.model_name, id=address).SerializeToString()

            async def stream(requests: Any, context: Any) -> Any:
                async for request in requests:
                    answered = service_pb2.ModelInferResponse.FromString(await answer(request, context))
                    yield service_pb2.ModelStreamInferResponse(infer_response=answered).SerializeToString()

            if method.endswith("ModelStreamInfer"):
                return grpc.stream_stream_rpc_method_handler(stream)
            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers([Handler()])
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    return server


async def piped(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    other_reader: asyncio.StreamReader,
    other_writer: asyncio.StreamWriter,
) -> None:
    """Carry bytes both ways until one side ends."""

    async def carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(_CHUNK):
                target.write(data)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()

    await asyncio.gather(carry(reader, other_writer), carry(other_reader, writer))


async def main(folder: Path, doors: list[int]) -> None:
    """Serve until the process is ended."""
    _ip("route", "add", "local", _PODS, "dev", "lo", "src", _CALLER, "table", "local")
    # Something may come before the rule that makes addresses local.
    _ip("rule", "add", "pref", "2", "lookup", "local")
    _ip("rule", "delete", "pref", "0")
    state = State(folder)

    def leads(port: int) -> Any:
        async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                other = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.close()
                return
            await piped(reader, writer, *other)

        return lead

    for port in doors:
        await asyncio.start_unix_server(leads(port), folder / f"door-{port}")
    for port in _PORTS:
        await asyncio.start_server(state.connection, "0.0.0.0", port, backlog=512)  # noqa: S104  # every pod's
    await asyncio.start_unix_server(state.control, folder / "control")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), [int(port) for port in sys.argv[2:]]))
