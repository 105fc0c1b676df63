"""What the policies add to a preview of many models."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import grpc
import yaml
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from bench.figure import Figure
from local.plane import workspace
from local.plane.state import Folder
from local.recorder import Recorded, record_stack
from policies.judging.settings import SETTINGS_FILE
from spec.stack_file import stack_settings

_MODELS: Final = 100
_STACK: Final = "dev"
_MODEL: Final = {
    "owner": "bench",
    "repository": "s3://acme/many",
    "resources": {"cpu": 1, "memory": "2Gi", "gpu": 1},
    "scaling": {"min": 1, "max": 2},
    "heartbeat": {},
    "config": {
        "backend": "onnxruntime",
        "input": [{"name": "a", "data_type": "TYPE_FP32", "dims": [3]}],
        "output": [{"name": "b", "data_type": "TYPE_FP32", "dims": [3]}],
    },
}
_POOL: Final = {
    "name": "a100",
    "nodes": 26,
    "gpusPerNode": 8,
    "gpuModel": "NVIDIA-A100-SXM4-80GB",
    "gpuMemory": "80Gi",
}


def policies(checkout: Path, runs: int, report: Callable[[str], None]) -> Iterator[Figure]:
    """Measure the pack alone, as the engine starts and asks it, one resource after the other.

    Two previews of so many models differ by more than that, and the engine asks while it does other things, so this is
    the most that it can add. The share is of one preview without policies.

    Args:
        checkout: a copy of the project to change at will.
        runs: of the pack.
        report: told of each run.
    """
    _write(checkout)
    asked = record_stack(checkout, _STACK, stack_settings(checkout, _STACK)).resources
    times = []
    for run in range(runs):
        times.append(_asked(checkout, asked))
        report(f"  run {run + 1}: {times[-1]:.1f} s for {len(asked)} resources")
    seconds = statistics.median(times)
    note = f"start, {len(asked)} resources of {_MODELS} models one by one, and all together"
    yield Figure("policies add to a preview", seconds, 5, "s", note)
    whole = _preview(checkout)
    yield Figure("the same as a share", 100 * seconds / whole, 20, "%", f"of {whole:.0f} s, one preview without them")


def _asked(checkout: Path, resources: list[Recorded]) -> float:
    """Seconds from the start of the pack to its last answer, of which none may refuse."""
    requests = [_request(one) for one in resources]
    together = [
        analyzer_pb2.AnalyzerResource(type=one.type, name=one.name, urn=one.urn, properties=one.properties)
        for one in requests
    ]
    began = time.monotonic()
    pack = subprocess.Popen([sys.executable, checkout / "policies"], stdout=subprocess.PIPE, text=True)
    try:
        port = next(iter(pack.stdout or ())).strip()
        with grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.max_send_message_length", -1)]) as channel:
            stub = analyzer_pb2_grpc.AnalyzerStub(channel)
            stub.ConfigureStack(analyzer_pb2.AnalyzerStackConfigureRequest(stack=_STACK))
            answers = [stub.Analyze(request) for request in requests]
            answers.append(stub.AnalyzeStack(analyzer_pb2.AnalyzeStackRequest(resources=together)))
        took = time.monotonic() - began
    finally:
        pack.terminate()
        pack.wait()
    if said := [found.message for answer in answers for found in answer.diagnostics]:
        sys.exit(f"error: the policies refuse the models of this measurement: {said[0]}")
    return took


def _request(found: Recorded) -> analyzer_pb2.AnalyzeRequest:
    urn = f"urn:pulumi:{_STACK}::triton-estate::{found.type}::{found.name}"
    request = analyzer_pb2.AnalyzeRequest(type=found.type, name=found.name, urn=urn)
    request.properties.update(json.loads(json.dumps(dict(found.inputs))))
    return request


def _write(checkout: Path) -> None:
    for file in (checkout / "models").iterdir():
        file.unlink()
    for number in range(_MODELS):
        content = yaml.safe_dump({"name": f"model-{number}", **_MODEL})
        (checkout / "models" / f"model-{number}.yaml").write_text(content)
    file = checkout / f"Pulumi.{_STACK}.yaml"
    content = yaml.safe_load(file.read_text())
    content["config"] |= {"triton-estate:gpuPools": [_POOL], "triton-estate:models": {}}
    file.write_text(yaml.safe_dump(content))
    (checkout / SETTINGS_FILE).write_text("stacks: {}\n")


def _preview(checkout: Path) -> float:
    command = [sys.executable, "-m", "local", "up", "--stack", _STACK]
    subprocess.run(command, cwd=checkout, check=True, stdout=sys.stderr)
    began = time.monotonic()
    failure = f"a preview of {_MODELS} models failed"
    plane = Folder(checkout / ".plane")
    workspace.pulumi(plane, checkout, "preview", "--stack", _STACK, "--suppress-outputs", failure=failure)
    return time.monotonic() - began
