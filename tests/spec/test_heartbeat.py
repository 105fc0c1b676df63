"""The heartbeat of a model file: periods, and the request that its owner may write."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spec import triton
from spec.heartbeat import Heartbeat, HeartbeatSpec, resolve_heartbeat
from spec.problems import Problem

TENSORS = {
    "backend": "onnxruntime",
    "max_batch_size": 8,
    "input": [
        {"name": "a", "data_type": "TYPE_FP32", "dims": [2]},
        {"name": "b", "data_type": "TYPE_STRING", "dims": [1], "optional": True},
    ],
    "output": [{"name": "c", "data_type": "TYPE_FP32", "dims": [1]}],
}
GOOD = {"inputs": [{"name": "a", "datatype": "FP32", "shape": [1, 2], "data": [[0.5, 1]]}]}
Resolve = Callable[..., tuple[Heartbeat | None, list[Problem]]]


def tensor(**changed: object) -> dict[str, object]:
    return {"inputs": [GOOD["inputs"][0] | changed]}


@pytest.fixture
def resolve(tmp_path: Path) -> Resolve:
    def _resolve(
        written: dict[str, object], request: object = None, config: dict[str, object] | None = None
    ) -> tuple[Heartbeat | None, list[Problem]]:
        if request is not None:
            text = request if isinstance(request, str) else json.dumps(request)
            (tmp_path / "m.request.json").write_text(text)
            written = written | {"request": "m.request.json"}
        parsed, wrong = triton.parse(TENSORS | (config or {}))
        assert not wrong
        problems: list[Problem] = []
        return resolve_heartbeat(HeartbeatSpec.model_validate(written), parsed, tmp_path, problems), problems

    return _resolve


def test_none_is_asked_for_unless_written(tmp_path: Path) -> None:
    assert resolve_heartbeat(None, None, tmp_path, []) is None


def test_defaults(resolve: Resolve) -> None:
    assert resolve({}) == (Heartbeat(60, 10, None), [])


def test_a_request_of_the_owner_is_sent_as_it_is(resolve: Resolve) -> None:
    heartbeat, problems = resolve({"every": "5s", "timeout": "500ms"}, GOOD)
    assert (heartbeat, problems) == (Heartbeat(5, 0.5, GOOD), [])


@pytest.mark.parametrize(
    ("written", "field", "allowed"),
    [
        ({"every": "4s", "timeout": "1s"}, "heartbeat.every", "5s to 1h"),
        ({"every": "2h"}, "heartbeat.every", "5s to 1h"),
        ({"every": "10s", "timeout": "11s"}, "heartbeat.timeout", "at most every (10s)"),
        ({"timeout": "0s"}, "heartbeat.timeout", "more than 0"),
        ({"request": "tagger.json"}, "heartbeat.request", ".request.json"),
        ({"request": "../m.request.json"}, "heartbeat.request", "a file name without folders"),
        ({"request": "none.request.json"}, "heartbeat.request", "a text file"),
    ],
)
def test_a_wrong_field_is_refused_with_what_is_allowed(
    written: dict[str, object], field: str, allowed: str, resolve: Resolve
) -> None:
    _, (problem,) = resolve(written)
    assert problem.field == field
    assert allowed in problem.allowed
    assert problem.fix


@pytest.mark.parametrize(
    ("request_", "field", "words"),
    [
        ("{", "", "not JSON"),
        ([], "inputs", "a list of inputs"),
        ({"inputs": []}, "inputs", "a list of inputs"),
        ({"inputs": ["a"]}, "inputs", "a list of inputs"),
        (tensor(name="z"), "inputs", "needs input a"),
        (tensor(datatype="FP16"), "inputs[0].datatype", "not the data type of a"),
        (tensor(shape=[1, 3]), "inputs[0].data", "2 elements for shape [1, 3]"),
        (tensor(shape=[1, -1]), "inputs[0].shape", "not a shape"),
        ({"inputs": [{"name": "a", "datatype": "FP32", "shape": [1, 2]}]}, "inputs[0].data", "is missing"),
    ],
)
def test_a_wrong_request_is_refused_in_its_own_file(
    request_: object, field: str, words: str, resolve: Resolve, tmp_path: Path
) -> None:
    _, problems = resolve({}, request_)
    assert {(problem.file, bool(problem.fix)) for problem in problems} == {(f"{tmp_path.name}/m.request.json", True)}
    assert [words in problem.message for problem in problems if problem.field == field] == [True]


def test_an_input_that_the_model_lacks_is_named_with_those_it_has(resolve: Resolve) -> None:
    _, problems = resolve({}, {"inputs": [*GOOD["inputs"], GOOD["inputs"][0] | {"name": "bb"}]})
    assert [(one.field, one.allowed, one.fix) for one in problems] == [("inputs[1].name", "a, b", "did you mean b?")]


def test_a_decoupled_model_has_no_heartbeat(resolve: Resolve) -> None:
    _, (problem,) = resolve({}, config={"model_transaction_policy": {"decoupled": True}})
    assert problem.field == "heartbeat"
    assert "decoupled" in problem.message
