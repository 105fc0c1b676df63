"""Real servers for the models of an estate that is loaded as the program loads it."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from components import outputs
from local import toolchain, triton
from local.toolchain import ToolchainForTests
from local.triton import TritonServer
from spec.catalog import Estate, load
from spec.resolve import Model, Revision
from tests.dataplane.chain import start_exporters
from tests.dataplane.exporters import Exporters
from tests.dataplane.gateway_scene import authority, infer, routed  # noqa: F401  # fixtures
from tests.dataplane.gateway_sealed import sealed  # noqa: F401  # a fixture
from tests.dataplane.metrics import samples
from tests.dataplane.serving import Service
from tests.dataplane.sources import MORE, OVERRIDES, SAMPLES
from tests.dataplane.world import World, made

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tritonserver() -> TritonServer:
    return triton.ensure()


@pytest.fixture(scope="session")
def tools_for_tests() -> ToolchainForTests:
    return toolchain.ensure_for_tests()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, tools_for_tests: ToolchainForTests) -> Iterator[World]:
    """A plane in a network of its own, where something can answer for the pods."""
    with made(tmp_path_factory.mktemp("world"), tools_for_tests) as running:
        yield running


@pytest.fixture(scope="session")
def exporters(world: World, tmp_path_factory: pytest.TempPathFactory) -> Exporters:
    """What answers on the metrics ports of the world's pods."""
    return start_exporters(world, tmp_path_factory.mktemp("pods"))


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the files that steer the model ``gated``."""
    return tmp_path_factory.mktemp("gate")


@pytest.fixture(scope="session")
def estate(tmp_path_factory: pytest.TempPathFactory, gate: Path) -> Estate:
    models = tmp_path_factory.mktemp("estate") / "models"
    shutil.copytree(ROOT / "models", models)
    for name, text in MORE.items():
        (models / f"{name}.yaml").write_text(f"name: {name}\n{text % {'folder': gate} if '%' in text else text}")
    return load(models, {"environment": "dev", "models": OVERRIDES}, "Pulumi.test.yaml")


@pytest.fixture(scope="session")
def model(estate: Estate) -> Callable[[str], Model]:
    found = {one.name: one for one in estate.models}
    return found.__getitem__


@pytest.fixture(scope="session")
def contract(estate: Estate) -> Mapping[str, Any]:
    """The models' part of the stack's outputs."""
    return outputs.contract(estate)["models"]


@pytest.fixture(scope="session")
def start(tritonserver: TritonServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Service]]:
    """Starts servers and ends those that still run."""
    started: list[Service] = []

    def _start(revision: Revision, **options: Any) -> Service:
        service = Service.start(tritonserver, revision, tmp_path_factory.mktemp(revision.model), **options)
        started.append(service)
        return service

    yield _start
    running = [service for service in started if service.process.poll() is None]
    with ThreadPoolExecutor() as threads:
        assert [code for code in threads.map(Service.end, running) if code != 0] == []


@pytest.fixture(scope="session")
def services(start: Callable[..., Service], model: Callable[[str], Model]) -> Mapping[str, Service]:
    """A ready server for each model that only answers."""
    starting = {name: start(model(name).primary) for name in (*SAMPLES, "corners", "halves")}
    return {name: service.until_ready() for name, service in starting.items()}


@pytest.fixture(scope="session")
def template(start: Callable[..., Service], model: Callable[[str], Model]) -> str:
    """What a real Triton says about itself."""
    service = start(model("fraud-score").primary).until_ready()
    text = service.metrics()
    service.end()
    return text


@pytest.fixture(scope="session")
def metric_names(services: Mapping[str, Service]) -> frozenset[str]:
    """Every metric that these servers expose."""
    return frozenset(name for service in services.values() for name, _, _ in samples(service.metrics()))
