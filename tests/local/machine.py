"""A machine whose `go` only pretends: fast, and able to fail in every way a real one does."""

import json
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from local.toolchain import assemble as toolchain
from local.toolchain import metric_chain, tools

FAKE_GO = """
    import json, os, pathlib, sys, time
    config = json.loads(pathlib.Path(os.environ["FAKE_GO"]).read_text())
    command, arguments = sys.argv[1], sys.argv[2:]
    with pathlib.Path(os.environ["FAKE_GO"] + ".calls").open("a") as calls:
        calls.write(json.dumps(sys.argv[1:]) + "\\n")
    if command == "version":
        print(f"go version go{config['go']} linux/amd64")
        sys.exit()
    family = pathlib.Path.cwd().name
    if failure := config.get("fail", {}).get(f"{command} {family}"):
        print(failure)
        sys.exit(1)
    if command == "mod":
        folder = pathlib.Path(os.environ["GOMODCACHE"]) / arguments[-1].replace("/", "_")
        for name, text in config["files"].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        print(json.dumps({"Path": arguments[-1], "Dir": str(folder)}, indent="\\t"))
    if command == "list":
        print("go: downloading example.test/x v1.0.0")
        packages = [argument for argument in arguments if "/" in argument and "{" not in argument]
        print("unsafe@", "fmt@", *(f"{package}@v1" for package in packages), sep="\\n")
    if command == "build":
        if config.get("hang") == family:
            child = os.fork()
            pathlib.Path(os.environ["FAKE_GO"] + ".hanging").touch()
            time.sleep(600)
        output = arguments[arguments.index("-o") + 1]
        for package in arguments[arguments.index("-o") + 2 :]:
            print(package)
            name = package.rpartition("/")[2] if output.endswith("/") else ""
            target = pathlib.Path(output) / name
            target.write_text(config["programs"][target.name])
            target.chmod(0o755)
"""

FAKE_PROVIDER = """
    from concurrent.futures import ThreadPoolExecutor
    import grpc
    class Any(grpc.GenericRpcHandler):
        def service(self, details):
            if details.method == "/pulumirpc.ResourceProvider/GetPluginInfo":
                return grpc.unary_unary_rpc_method_handler(lambda *_: b"\\n\\x06" + b"VERSION")
    server = grpc.server(ThreadPoolExecutor(1), handlers=[Any()])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()
"""


def python(source: str) -> str:
    return f"#!{sys.executable}\n{textwrap.dedent(source)}"


def shell(says: str, status: int = 0) -> str:
    return f"#!/bin/sh\necho '{says}'\nexit {status}\n"


def program(tool: tools.Tool, version: str) -> str:
    """A built tool, which says its version and what it was made of."""
    return shell(f"v{version}") + f"#\t{tool.version_module}\tv{version}\th1:x=\n"


def provider(version: str) -> str:
    assert len(version) == 6
    return python(FAKE_PROVIDER.replace("VERSION", version))


class Machine:
    """A machine with a PATH and a cache of its own, and a Go that pretends."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.cache = folder / "cache"
        self.config = folder / "go.json"
        self.said: list[str] = []
        self.bin.mkdir()
        stages = {f"kustomize/stage/{path}": "kind: Stage\n" for path in tools._KWOK_STAGES}
        kinds = [family for family in metric_chain.WITH_TESTS if family.name.endswith("-crds")]
        stages |= {file.source: "kind: CustomResourceDefinition\n" for family in kinds for file in family.files}
        # Folders are named without an ending.
        of_istio = [file.source for file in metric_chain.ISTIO_FILES.files]
        stages |= {path if Path(path).suffix else f"{path}/Chart.yaml": "name: chart\n" for path in of_istio}
        schema = "cmd/pulumi-resource-kubernetes/schema.json"
        mapping = "cmd/pulumi-resource-kubernetes/terraform-mapping.json"
        exec_script = f"python/cmd/{tools.LANGUAGE_EXEC}"
        sources = {
            patch.file: "".join(each.before for each in tools.PROVIDER.patches) for patch in tools.PROVIDER.patches
        }
        self.settings: dict[str, Any] = {
            "go": tools.GO_VERSION,
            "files": {**sources, **stages, schema: '{"name": "kubernetes"}', mapping: "{}", exec_script: "# exec\n"},
            "programs": {
                tool.name: program(tool, family.version) for family in metric_chain.WITH_TESTS for tool in family.tools
            },
        }
        self.change()

    def change(self, **settings: Any) -> None:
        self.settings |= settings
        self.config.write_text(json.dumps(self.settings))

    def install(self, name: str, content: str, folder: str = "bin") -> Path:
        path = self.bin.parent / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)
        return path

    def ensure_for_tests(self) -> toolchain.ToolchainForTests:
        return toolchain.ensure_for_tests(self.said.append)

    def ensure(self, **options: Any) -> toolchain.Toolchain:
        return toolchain.ensure(self.said.append, **options)

    @property
    def text(self) -> str:
        return "\n".join(self.said)

    @property
    def calls(self) -> list[list[str]]:
        calls = Path(f"{self.config}.calls")
        lines = calls.read_text().splitlines() if calls.exists() else []
        return [call for line in lines if (call := json.loads(line))[0] != "version"]

    def leftovers(self) -> list[Path]:
        return [path for path in self.cache.rglob("*") if path.name.endswith(".tmp")]


def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "did not happen in time"
        time.sleep(0.02)


def fakes(machine: Machine) -> list[list[str]]:
    """The pretended Go's processes that still run."""
    running = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
        except psutil.Error:
            continue
        if str(machine.bin / "go") in command:
            running.append(command)
    return running
