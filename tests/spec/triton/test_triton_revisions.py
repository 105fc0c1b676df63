"""Version folders, and revisions that share traffic."""

from collections.abc import Callable

import pytest

from spec.triton import ModelConfig, check_revisions
from spec.triton.revisions import check_version_directories

Configure = Callable[[str], ModelConfig]

OLD = """
max_batch_size: 8
input:
  - {name: a, data_type: TYPE_FP32, dims: [3, -1]}
  - {name: b, data_type: TYPE_STRING, dims: [1], optional: true}
output: [{name: y, data_type: TYPE_FP32, dims: [10], label_filename: a.txt}]
"""

CHANGES = {
    "nothing": ("{name: a", "{name: a", []),
    "labels": ("a.txt", "b.txt", []),
    "a larger batch": ("max_batch_size: 8", "max_batch_size: 16", []),
    "no batch": (
        "max_batch_size: 8",
        "max_batch_size: 0",
        ["input[0].dims", "input[1].dims", "output[0].dims"],
    ),
    "a type": ("TYPE_STRING", "TYPE_UINT8", ["input[1].data_type"]),
    "dims": ("[3, -1]", "[3, 224]", ["input[0].dims"]),
    "an input's name": ("{name: a", "{name: c", ["input[0].name", "input"]),
    "an output's name": ("{name: y", "{name: z", ["output[0].name", "output"]),
    "an optional input that becomes required": (", optional: true", "", ["input[1].optional"]),
    "the policy": (
        "max_batch_size: 8",
        "model_transaction_policy: {decoupled: true}\nmax_batch_size: 8",
        ["model_transaction_policy.decoupled"],
    ),
}


@pytest.mark.parametrize(("old", "new", "fields"), CHANGES.values(), ids=CHANGES)
def test_a_change_between_revisions(configure: Configure, old: str, new: str, fields: list[str]) -> None:
    assert OLD.count(old) == 1
    problems = check_revisions(configure(OLD), configure(OLD.replace(old, new)))
    assert [problem.field for problem in problems] == fields
    assert all(problem.fix and problem.allowed for problem in problems)


def test_order_and_a_new_optional_input_do_not_matter(configure: Configure) -> None:
    new = """
    max_batch_size: 8
    input:
      - {name: c, data_type: TYPE_INT8, dims: [1], optional: true}
      - {name: b, data_type: TYPE_STRING, dims: [1], optional: true}
      - {name: a, data_type: TYPE_FP32, dims: [3, -1]}
    output: [{name: y, data_type: TYPE_FP32, dims: [10]}]
    """
    assert check_revisions(configure(OLD), configure(new)) == []


def test_what_auto_completion_fills_in_is_not_compared(configure: Configure) -> None:
    assert check_revisions(configure(OLD), configure("{backend: onnxruntime, max_batch_size: 8}")) == []


@pytest.mark.parametrize("names", [["1"], ["1", "20", "3/"], ["1", "configs", "warmup", "initial_state"]])
def test_version_folders(names: list[str]) -> None:
    assert check_version_directories(names) == []


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("v1", "rename the folder to 1"),
        ("01", "rename the folder to 1"),
        ("0", "rename the folder to a number, e.g. 1"),
        ("latest", "rename the folder to a number, e.g. 1"),
        ("1.0", "rename the folder to a number, e.g. 1"),
        ("-1", "rename the folder to 1"),
        ("\N{ARABIC-INDIC DIGIT ONE}", "rename the folder to a number, e.g. 1"),
        ("99999999999999999999", "rename the folder to a number, e.g. 1"),
    ],
)
def test_a_folder_that_triton_skips(name: str, fix: str) -> None:
    (problem,) = check_version_directories(["7", name])
    assert problem.value == name
    assert problem.fix == fix


def test_no_version_folder() -> None:
    (problem,) = check_version_directories(["warmup"])
    assert "nothing would load" in problem.message
