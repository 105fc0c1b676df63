"""A real Triton behind the gateway, and in front of it Triton's own clients, which know a name and have a token."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from components.serving import repository, runtime
from local.triton import TritonServer
from spec.catalog import load
from spec.signing import KEYS_SETTING
from tests.dataplane.gateway import PORT, Gate
from tests.dataplane.serving import free_ports, placed, write_models
from tests.dataplane.world import InWorld, Running, World

# 1 * 299 * 299 * 3 numbers of four bytes.
BYTES: Final = 1_072_812
CONFIG: Final = {
    "backend": "python",
    "max_batch_size": 8,
    "input": [{"name": "input", "data_type": "TYPE_FP32", "dims": [299, 299, 3]}],
    "output": [{"name": "scores", "data_type": "TYPE_FP32", "dims": [1001]}],
}
_CLIENT: Final = """
import sys
import numpy, tritonclient.%(protocol)s as triton
target, model, *words = sys.argv[1:]
headers = {"%(header)s": words[0]} if words else {}
image = numpy.ones((1, 299, 299, 3), numpy.float32)
assert image.nbytes == %(bytes)d
tensor = triton.InferInput("input", list(image.shape), "FP32")
tensor.set_data_from_numpy(image)
client = triton.InferenceServerClient(target)
print(client.is_server_ready(headers=headers))
print(client.get_model_metadata(model, headers=headers))
print(client.infer(model, [tensor], headers=headers).as_numpy("scores").shape)
"""
_WITH_HOSTS: Final = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'


def start(gate: Gate, project: InWorld, server: TritonServer, model: str, address: str, folder: Path) -> Running:
    """Start the server of a model as its pod would, and let it answer for the pod.

    Args:
        gate: with the gateway.
        project: with the model's file.
        server: the program.
        model: its name.
        address: of its pod.
        folder: an empty one.
    """
    settings = {name: value for name, value in project.settings().items() if name != KEYS_SETTING}
    estate = load(project.folder / "models", settings, project.stack_file.name)
    (revision,) = [one.primary for one in estate.models if one.name == model]
    write_models(revision, folder / "models")
    ports = free_ports()
    arguments = placed(runtime.server_arguments(revision, repository.location(revision)), ports, folder / "models")
    command: Sequence[str] = server.command(arguments)
    running = gate.world.start(f"triton-{model}", *command, environment=server.environment())
    running.until(lambda: gate.world.fetch(f"http://127.0.0.1:{ports.http}/v2/health/ready")[0] == 200)
    gate.backends.lead(address, ports.http, ports.grpc)
    return running


def call(world: World, python: str | Path, folder: Path, protocol: str, host: str, model: str, *token: str) -> str:
    """What Triton's own client prints; it finds the host by its name.

    Args:
        world: where.
        python: one that has the client.
        folder: for the names that it knows.
        protocol: http or grpc.
        host: the model's.
        model: its name.
        token: what it sends along.
    """
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {host}\n")
    # gRPC wants metadata in lower case.
    header = {"http": "Authorization", "grpc": "authorization"}[protocol]
    code = _CLIENT % {"protocol": protocol, "header": header, "bytes": BYTES}
    as_known = ("unshare", "--mount", "sh", "-c", _WITH_HOSTS, "sh", hosts)
    return world.run(*as_known, python, "-c", code, f"{host}:{PORT}", model, *token)
