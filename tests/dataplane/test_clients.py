"""Triton's stock clients are answered over HTTP and gRPC, with the tensors that the contract declares."""

import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from tritonclient import grpc
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from local.triton import TritonServer
from tests.dataplane.serving import Service, fetch
from tests.dataplane.sources import SAMPLES

SERVED = (*SAMPLES, "corners")
CONFIGURED = tuple(name for name in SERVED if name != "fraud-score")
BATCH = 2


@pytest.fixture(params=CONFIGURED)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def client(service: Service, entry: Mapping[str, Any]) -> Any:
    return closing(grpc.InferenceServerClient(service.here(entry["grpcTarget"], entry)))


def tensors(entry: Mapping[str, Any]) -> Iterator[Any]:
    """An input for each that the contract declares."""
    for declared in entry["inputs"]:
        batch, *rest = declared["shape"]
        shape = [BATCH if batch == -1 else batch, *(max(size, 1) for size in rest)]
        tensor = grpc.InferInput(declared["name"], shape, declared["dataType"])
        kind = triton_to_np_dtype(declared["dataType"])
        tensor.set_data_from_numpy(np.full(shape, b"text", object) if kind is np.object_ else np.ones(shape, kind))
        yield tensor


def test_the_contract_declares_the_tensors_that_the_server_has(
    name: str, services: Mapping[str, Service], contract: Mapping[str, Any]
) -> None:
    entry = contract[name]
    metadata = services[name].json(f"/v2/models/{entry['tritonModel']}")
    for kind in ("inputs", "outputs"):
        declared = [{"name": t["name"], "datatype": t["dataType"], "shape": t["shape"]} for t in entry[kind]]
        assert declared == metadata[kind]


def test_grpc_answers_with_the_declared_outputs(
    name: str, services: Mapping[str, Service], contract: Mapping[str, Any]
) -> None:
    entry = contract[name]
    with client(services[name], entry) as connection:
        answer = connection.infer(entry["tritonModel"], list(tensors(entry)))
    for declared in entry["outputs"]:
        values = answer.as_numpy(declared["name"])
        expected = [BATCH if size == -1 and i == 0 else max(size, 1) for i, size in enumerate(declared["shape"])]
        assert list(values.shape) == expected
        assert values.dtype == triton_to_np_dtype(declared["dataType"])


def test_http_answers_with_the_declared_outputs(services: Mapping[str, Service], contract: Mapping[str, Any]) -> None:
    entry, service = contract["photo-tagger"], services["photo-tagger"]
    (declared,) = entry["inputs"]
    tensor = {"name": declared["name"], "datatype": declared["dataType"], "shape": [1, 1], "data": ["picture"]}
    status, text = fetch(service.here(entry["inferUrl"], entry), {"inputs": [tensor]})
    assert status == 200, text
    assert '"name":"TAGS","datatype":"FP32","shape":[1,1000]' in text


def test_an_optional_input_may_be_left_out(services: Mapping[str, Service], contract: Mapping[str, Any]) -> None:
    entry = contract["corners"]
    both = list(tensors(entry))
    with client(services["corners"], entry) as connection:
        alone = connection.infer("corners", both[:1])
        given = connection.infer("corners", both)
    assert alone.as_numpy("sum").tolist() == [[1, 1]] * BATCH
    assert given.as_numpy("sum").tolist() == [[2, 2]] * BATCH
    assert (alone.as_numpy("said")[0][0], given.as_numpy("said")[0][0]) == (b"1 inputs", b"2 inputs")


def test_a_tensor_of_another_shape_is_refused(services: Mapping[str, Service], contract: Mapping[str, Any]) -> None:
    entry = contract["mobilenet"]
    wrong = grpc.InferInput("input", [1, 3, 224, 225], "FP32")
    wrong.set_data_from_numpy(np.ones((1, 3, 224, 225), np.float32))
    with client(services["mobilenet"], entry) as connection, pytest.raises(InferenceServerException, match="shape"):
        connection.infer("mobilenet", [wrong])


@pytest.mark.parametrize("served", SERVED)
def test_the_python_snippet_runs_as_it_is(
    served: str, tritonserver: TritonServer, services: Mapping[str, Service], contract: Mapping[str, Any]
) -> None:
    entry = contract[served]
    code = services[served].here(entry["snippets"]["python"], entry)
    done = subprocess.run((tritonserver.python, "-c", code), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"'name': '{entry['tritonModel']}'" in done.stdout


@pytest.mark.parametrize("served", SERVED)
def test_every_address_of_the_contract_answers(
    served: str, services: Mapping[str, Service], contract: Mapping[str, Any]
) -> None:
    entry, service = contract[served], services[served]
    program, *_, curled = shlex.split(entry["snippets"]["curl"])
    assert program == "curl"
    for address in (f"{entry['httpUrl']}/v2", entry["readyUrl"], entry["metricsUrl"], curled):
        assert fetch(service.here(address, entry))[0] == 200, address
    assert fetch(service.here(entry["inferUrl"], entry), {"inputs": []})[0] == 400
