"""A server becomes ready on the probe paths that are rendered, when its models are loaded and not before."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from spec.resolve import Model
from tests.dataplane.serving import Service, wait
from tests.dataplane.sources import SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_every_probe_of_a_loaded_service_is_answered(name: str, services: Mapping[str, Service]) -> None:
    service = services[name]
    paths = {service.startup_path, service.readiness_path, service.liveness_path}
    assert {path: service.http(path)[0] for path in paths} == dict.fromkeys(paths, 200)


def test_one_model_is_asked_for_itself_and_several_for_the_server(services: Mapping[str, Service]) -> None:
    assert services["inception-graphdef"].readiness_path == "/v2/models/inception_graphdef/ready"
    assert services["photo-tagger"].readiness_path == "/v2/health/ready"


def test_no_probe_succeeds_before_the_model_is_loaded(
    start: Callable[..., Service], model: Callable[[str], Model], gate: Path
) -> None:
    (gate / "gate").unlink(missing_ok=True)
    service = start(model("gated").primary)
    wait(lambda: "loading: gated:3" in service.log.read_text(), service)
    wait(lambda: "TRITONBACKEND_ModelInstanceInitialize: gated" in service.log.read_text(), service)
    paths = (service.startup_path, service.readiness_path, service.liveness_path)
    # Nothing listens while models load at the start: without a startup probe, liveness would kill the pod.
    assert [service.http(path)[0] for path in paths] == [0, 0, 0]
    (gate / "gate").touch()
    service.until_ready()
    assert [service.http(path)[0] for path in paths] == [200, 200, 200]
    assert service.end() == 0


def test_only_the_path_of_the_model_notices_that_it_is_gone(
    start: Callable[..., Service], model: Callable[[str], Model]
) -> None:
    service = start(model("explicit").primary).until_ready()
    assert service.json("/v2/repository/models/explicit/unload", {}) is None
    wait(lambda: '"reason":"unloaded"' in service.http("/v2/repository/index", {})[1], service)
    assert service.http("/v2/models/explicit/ready")[0] == 400
    assert service.http("/v2/health/ready")[0] == 200
    assert service.http(service.liveness_path)[0] == 200
    assert service.end() == 0
