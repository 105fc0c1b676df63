#!/usr/bin/env python3
"""The Python language host for a Pulumi engine that came without one.

The official host is not published as a Go module. This one serves the part of the protocol that `pulumi preview`, `up`,
`refresh`, `destroy` and policy packs use, and leaves running the program to the official `pulumi-language-python-exec`,
and running a pack to the SDK's own `pulumi.policy`. It is copied as `pulumi-language-python` beside the engine, so it
imports nothing of this project.
"""

import json
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import IO

try:
    import grpc
    from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2
except ImportError:
    sys.exit("pulumi-language-python: this Python has no Pulumi SDK; put the project's .venv/bin first on PATH")

# pulumi-language-python-exec has already shown the user what went wrong.
_MESSAGE_SHOWN = 32
_EXECUTOR = Path(__file__).resolve().parent / "pulumi-language-python-exec"


def _python(info: language_pb2.ProgramInfo) -> str:
    """The interpreter of the project's virtual environment, or the one that runs this host."""
    options = dict(info.options)
    virtualenv = options.get("virtualenv")
    if isinstance(virtualenv, str) and virtualenv:
        python = Path(info.root_directory, virtualenv, "bin", "python")
        if python.exists():
            return str(python)
    return sys.executable


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Answers the engine; one program at a time."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._children: set[subprocess.Popen[bytes]] = set()

    def stop(self) -> None:
        """End whatever still runs."""
        for child in tuple(self._children):
            child.terminate()

    def Handshake(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802  # the names are the protocol's
        """Take the engine's address."""
        self._engine = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802
        """The version of this host: that of the SDK."""
        return plugin_pb2.PluginInfo(version=metadata.version("pulumi"))

    def GetRequiredPackages(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802
        """The provider plugins that installed SDK packages name."""
        packages = []
        for distribution in metadata.distributions():
            for file in distribution.files or ():
                if file.name == "pulumi-plugin.json":
                    plugin = json.loads(Path(str(file.locate())).read_text(encoding="utf-8"))
                    if plugin.get("resource"):
                        packages.append(
                            plugin_pb2.PackageDependency(
                                name=plugin["name"], kind="resource", version=plugin.get("version", "")
                            )
                        )
        return language_pb2.GetRequiredPackagesResponse(packages=packages)

    def About(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802
        """For `pulumi about`."""
        return language_pb2.AboutResponse(executable=_python(request.info), version=platform.python_version())

    def GetProgramDependencies(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802
        """For `pulumi about`: what is installed."""
        dependencies = [
            language_pb2.DependencyInfo(name=found.name, version=found.version) for found in metadata.distributions()
        ]
        return language_pb2.GetProgramDependenciesResponse(dependencies=dependencies)

    def Run(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802
        """Run the program and wait for it."""
        options = {
            "monitor": request.monitor_address, "engine": self._engine, "project": request.project,
            "stack": request.stack, "organization": request.organization, "pwd": request.pwd,
            "root_directory": request.info.root_directory, "dry_run": "true" if request.dryRun else "false",
            "parallel": str(request.parallel),
        }  # fmt: skip
        command = [_python(request.info), "-u", str(_EXECUTOR)]
        command += [word for name, value in options.items() if value for word in (f"--{name}", value)]
        # A folder lets the program import the packages beside it.
        command += [str(Path(request.info.program_directory, request.info.entry_point)), *request.args]
        environment = os.environ | {
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        code = self._wait(self._start(command, request.pwd, environment))
        if code == _MESSAGE_SHOWN:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error="" if code == 0 else f"the program ended with exit code {code}")

    def RunPlugin(self, request, context):  # noqa: ANN001, ANN201, N802
        """Run a policy pack until the engine hangs up, and hand on what it prints."""
        if request.kind != "analyzer":
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"this host runs policy packs, and no {request.kind} plugins")
        command = [_python(request.info), "-u", "-m", "pulumi.policy", *request.args, request.info.program_directory]
        environment = os.environ | dict(variable.split("=", 1) for variable in request.env)
        child = self._start(command, request.pwd, environment, output=subprocess.PIPE)
        context.add_callback(child.terminate)
        try:
            for name, data in _printed(child):
                piece = language_pb2.RunPluginResponse
                yield piece(stdout=data) if name == "stdout" else piece(stderr=data)
            yield language_pb2.RunPluginResponse(exitcode=self._wait(child))
        finally:
            child.terminate()
            self._wait(child)

    def _start(
        self, command: list[str], folder: str, environment: dict[str, str], output: int | None = None
    ) -> "subprocess.Popen[bytes]":
        # The engine interrupts this host's whole process group. A Python that is interrupted while it ends says so at
        # length, so children are in groups of their own, and end when this host ends them.
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output, process_group=0)
        self._children.add(child)
        return child

    def _wait(self, child: "subprocess.Popen[bytes]") -> int:
        try:
            return child.wait()
        finally:
            self._children.discard(child)


def _printed(child: "subprocess.Popen[bytes]") -> Iterator[tuple[str, bytes]]:
    """What a process prints, piece by piece, until it has closed both of its outputs."""
    pieces: SimpleQueue[tuple[str, bytes]] = SimpleQueue()

    def read(name: str, pipe: IO[bytes]) -> None:
        for line in pipe:
            pieces.put((name, line))
        pieces.put((name, b""))

    streams = {"stdout": child.stdout, "stderr": child.stderr}
    for name, pipe in streams.items():
        threading.Thread(target=read, args=(name, pipe), daemon=True).start()
    while streams:
        name, data = pieces.get()
        if data:
            yield name, data
        else:
            streams.pop(name)


def main() -> None:
    """Serve until the engine goes away."""
    engine = next((word for word in reversed(sys.argv[1:]) if not word.startswith("-")), "")
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    host = LanguageHost(engine)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        host.stop()
        server.stop(grace=None)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    print(port, flush=True)  # the engine reads the port from the first line
    server.wait_for_termination()


if __name__ == "__main__":
    main()
