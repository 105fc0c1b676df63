"""What the policies add to a preview of many models."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import yaml

from bench.figure import Figure
from local.plane import workspace
from local.plane.state import Folder

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
    """Measure previews with and without the pack in turn, so that both see the same machine.

    Args:
        checkout: a copy of the project to change at will.
        runs: of each kind.
        report: told of each run.
    """
    _write(checkout)
    plane = Folder(checkout / ".plane")
    subprocess.run(
        [sys.executable, "-m", "local", "up", "--stack", _STACK], cwd=checkout, check=True, stdout=sys.stderr
    )
    without: list[float] = []
    added: list[float] = []
    for run in range(runs):
        without.append(_preview(checkout, plane))
        added.append(_preview(checkout, plane, "--policy-pack", "policies") - without[-1])
        report(f"  run {run + 1}: {without[-1]:.1f} s without, {added[-1]:+.1f} s with the policies")
    seconds = statistics.median(added)
    note = f"preview of {_MODELS} new models, {statistics.median(without):.1f} s without policies"
    yield Figure("policies add to a preview", seconds, 5, "s", note)
    yield Figure("the same as a share", 100 * seconds / statistics.median(without), 20, "%", note)


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


def _preview(checkout: Path, plane: Folder, *options: str) -> float:
    began = time.monotonic()
    failure = f"a preview of {_MODELS} models failed"
    workspace.pulumi(plane, checkout, "preview", "--stack", _STACK, "--suppress-outputs", *options, failure=failure)
    return time.monotonic() - began
