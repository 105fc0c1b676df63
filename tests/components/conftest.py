"""The real program under mocks: what it registers, as plain objects."""

import gc
import importlib
import json
import runpy
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pulumi.runtime import mocks

from local.recorder import Recorded, plain, record
from spec.stack_file import stack_settings

ROOT = Path(__file__).parents[2]

FIVE_LINES = "name: {name}\nowner: vision\nrepository: s3://acme/{name}\nresources: {{cpu: 1, memory: 2Gi}}\n"
TENSORS = "input: [{name: a, data_type: TYPE_FP32, dims: [3]}], output: [{name: b, data_type: TYPE_FP32, dims: [3]}]"
ONNX = f"config: {{backend: onnxruntime, {TENSORS}}}\n"
# A request that fits a model with one input named a of three numbers.
REQUEST_FILE = "a.request.json"
REQUEST = {"inputs": [{"name": "a", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}
# The key under which the SDK wraps what it keeps secret.
SEALED = "4dabf18193072939515e22adb298388d"


def unsealed(value: Any) -> Any:
    """The same data without the wrapping of secrets, as the provider gets it."""
    if isinstance(value, dict):
        return unsealed(value["value"]) if SEALED in value else {k: unsealed(v) for k, v in value.items()}
    return [unsealed(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Render:
    """What one run of the program registered and exported.

    Attributes:
        resources: type and name -> inputs, Kubernetes objects and all others.
        requests: type and name -> the registration as the engine gets it, with its options.
        outputs: what the stack exports.
    """

    resources: Mapping[tuple[str, str], dict[str, Any]]
    requests: Mapping[tuple[str, str], Any]
    outputs: dict[str, Any] = field(default_factory=dict)

    def objects(self, kind: str = "", model: str = "") -> list[dict[str, Any]]:
        """The Kubernetes objects, all or those of one kind or model."""
        return [
            found
            for (token, _), found in self.resources.items()
            if token.startswith("kubernetes:")
            and not token.startswith("kubernetes:helm.sh/")  # a chart, whose objects nobody knows here
            and (not kind or found["kind"] == kind)
            and (not model or found["metadata"].get("labels", {}).get("app.kubernetes.io/instance") == model)
        ]

    def one(self, kind: str, name: str = "") -> dict[str, Any]:
        """The only object of a kind, or the only one of that name."""
        (found,) = [found for found in self.objects(kind) if not name or found["metadata"]["name"] == name]
        return found

    def pod(self, name: str = "") -> dict[str, Any]:
        """The pod that a Deployment makes."""
        return self.one("Deployment", name)["spec"]["template"]["spec"]

    def triton(self, name: str = "") -> dict[str, Any]:
        """The container of Triton in it."""
        (container,) = self.pod(name)["containers"]
        return container

    def request(self, kind: str, name: str) -> Any:
        """The registration of an object."""
        (found,) = [request for key, request in self.requests.items() if key[0].endswith(f":{kind}") and key[1] == name]
        return found


@contextmanager
def kept_requests() -> Generator[list[Any]]:
    """Also keep the options of each registration, which mocks are not shown."""
    original, kept = mocks.MockMonitor.RegisterResource, []

    def register(self: mocks.MockMonitor, request: Any) -> Any:
        kept.append(request)
        return original(self, request)

    with mock.patch.object(mocks.MockMonitor, "RegisterResource", register):
        yield kept


def run(folder: Path, settings: Mapping[str, object], stack: str = "test") -> Render:
    """Run ``__main__.py`` on the model files of a folder."""

    def program() -> None:
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")

    # In a thread, because the SDK walks the whole stack for each resource, and that of pytest is long.
    with chdir(folder), kept_requests() as requests, ThreadPoolExecutor(1) as thread:
        recording = thread.submit(record, program, stack=stack, settings=settings).result()
    resources: Sequence[Recorded] = recording.resources
    found = {(resource.type, resource.name): plain(dict(resource.inputs)) for resource in resources}
    assert len(found) == len(resources), "two resources of one type share a name"
    return Render(found, {(r.type, r.name): r for r in requests}, plain(recording.outputs))


@pytest.fixture(scope="session", autouse=True)
def sdk() -> None:
    """Load the SDK once, and keep the garbage collector from walking it again and again: it never goes away."""
    importlib.import_module("pulumi_kubernetes.core.v1")
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def render(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Render]:
    """Run the program on model files (model name -> further lines of the file) and settings; the same run once only."""
    known: dict[str, Render] = {}

    def _render(models: Mapping[str, str], /, **settings: object) -> Render:
        key = json.dumps([models, settings], sort_keys=True)
        known[key] = known.get(key) or _run(models, settings)
        return known[key]

    def _run(models: Mapping[str, str], settings: Mapping[str, object]) -> Render:
        folder = tmp_path_factory.mktemp("estate")
        (folder / "models").mkdir()
        (folder / "models" / REQUEST_FILE).write_text(json.dumps(REQUEST), encoding="utf-8")
        for name, more in models.items():
            text = FIVE_LINES.format(name=name)
            for line in more.splitlines():  # a line replaces that of the same field
                if (key := line.partition(":")[0]) and not key.startswith(" "):
                    text = "".join(old for old in text.splitlines(keepends=True) if not old.startswith(f"{key}:"))
            (folder / "models" / f"{name}.yaml").write_text(text + more, encoding="utf-8")
        return run(folder, {"environment": "dev"} | dict(settings))

    return _render


@pytest.fixture(scope="session")
def dev() -> Render:
    """The stack ``dev`` of this project."""
    return run(ROOT, stack_settings(ROOT, "dev"), "dev")


A100 = {"gpuModel": "NVIDIA-A100-SXM4-80GB", "gpuMemory": "80Gi", "gpusPerNode": 4}
POOLS: list[dict[str, object]] = [
    {"name": "whole", "nodes": 2} | A100,
    {"name": "mig", "sharing": "mig", "migProfile": "1g.10gb"} | A100,
    {"name": "sliced", "sharing": "timeSlicing", "slices": 4} | A100,
    {"name": "hami", "sharing": "hami"} | A100,
    {"name": "qgpu", "sharing": "qgpu", "provider": "existing"} | A100,
]
# One model of every kind.
PROD_MODELS = {
    "five-lines": "",
    "whole": "resources: {cpu: 4, memory: 8Gi, gpu: 2}\n",
    "mig": "resources: {cpu: 4, memory: 8Gi, gpu: {mig: 1g.10gb}}\nscaling: {gpu: 60, qps: 300}\n",
    "sliced": "resources: {cpu: 4, memory: 8Gi, gpu: 0.25}\npool: sliced\n",
    "hami": "resources: {cpu: 4, memory: 8Gi, gpu: {memory: 8Gi, cores: 50}}\nscaling: {qps: 0.5, queueMs: 5}\n",
    "qgpu": "resources: {cpu: 4, memory: 8Gi, gpu: 0.5}\npool: qgpu\n",
    "fixed": "scaling: {min: 2, max: 2}\n",
    "own-server": "server: {log-verbose: 1, metrics-config: [a=1, b=2]}\nimage: registry.example.com/triton:2\n",
    "python": f"config: {{backend: python, {TENSORS}, instance_group: [{{count: 4, kind: KIND_CPU}}]}}\n",
    "minio": f"repository: s3://https://minio.example.com:9000/acme/minio\n{ONNX}",
    "gcs": f"repository: gs://acme/gcs\n{ONNX}",
    "azure": f"repository: as://account/container/azure\n{ONNX}",
    "claim": "repository: pvc://claim/models\nmembers: {helper: {}}\n",
}


@pytest.fixture(scope="session")
def prod(render: Callable[..., Render]) -> Render:
    """A stack of environment prod with a pool of every mode and a model of every kind."""
    return render(PROD_MODELS, environment="prod", namespace="models", gpuPools=POOLS)
