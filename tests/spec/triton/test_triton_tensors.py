"""Inputs and outputs."""

from collections.abc import Callable

import pytest

from spec.problems import Problem

Judge = Callable[..., list[Problem]]

X = "{name: x, data_type: TYPE_FP32, dims: [3]}"

CASES = {
    "no data type": (
        f"input: [{X}]",
        "input: [{name: x, dims: [3]}]",
        ["input[0].data_type"],
    ),
    "no name": (f"output: [{X}]", "output: [{data_type: TYPE_FP32, dims: [3]}]", ["output[0].name"]),
    "no dims": (f"output: [{X}]", "output: [{name: x, data_type: TYPE_FP32}]", ["output[0].dims"]),
    "dims of zero and below -1": (
        "input: [{name: x, data_type: TYPE_FP32, dims: [-1, 4]}]",
        "input: [{name: x, data_type: TYPE_FP32, dims: [0, 4, -2]}]",
        ["input[0].dims[0]", "input[0].dims[2]"],
    ),
    "a name twice": (
        f"{{input: [{X}], output: [{X}]}}",
        f"{{input: [{X}, {X}], output: [{X}, {X}]}}",
        ["input[1].name", "output[1].name"],
    ),
    "the batch dimension repeated": (
        "{max_batch_size: 16, input: [{name: x, data_type: TYPE_FP32, dims: [3, 512, 864]}]}",
        "{max_batch_size: 16, input: [{name: x, data_type: TYPE_FP32, dims: [-1, 3, 512, 864]}]}",
        ["input[0].dims"],
    ),
    "the batch dimension repeated in an image format": (
        """
        {max_batch_size: 4, input: [{name: x, data_type: TYPE_UINT8,
          format: FORMAT_NHWC, dims: [-1, -1, 3]}]}
        """,
        """
        {max_batch_size: 4, input: [{name: x, data_type: TYPE_UINT8,
          format: FORMAT_NHWC, dims: [8, 9, 9, 3]}]}
        """,
        ["input[0].dims"],
    ),
    "the batch dimension repeated in the output too": (
        """
        max_batch_size: 4
        input: [{name: x, data_type: TYPE_FP32, dims: [3, 8, 8]}]
        output: [{name: y, data_type: TYPE_FP32, dims: [-1, 1, 28, 28]}]
        """,
        """
        max_batch_size: 4
        input: [{name: x, data_type: TYPE_FP32, dims: [-1, 3, 8, 8]}]
        output: [{name: y, data_type: TYPE_FP32, dims: [-1, 10]}]
        """,
        ["input[0].dims", "output[0].dims"],
    ),
    "a full shape without batching": (
        "input: [{name: x, data_type: TYPE_FP32, dims: [-1, 3, 512, 864]}]",
        "{max_batch_size: 1, input: [{name: x, data_type: TYPE_FP32, dims: [-1, 3, 512, 864]}]}",
        ["input[0].dims"],
    ),
    "frames that vary within a request": (
        """
        max_batch_size: 4
        input: [{name: x, data_type: TYPE_FP32, dims: [-1, 3, 224, 224], allow_ragged_batch: true}]
        """,
        "{max_batch_size: 4, input: [{name: x, data_type: TYPE_FP32, dims: [-1, 3, 224, 224]}]}",
        ["input[0].dims"],
    ),
    "an image format of two dims": (
        "input: [{name: x, data_type: TYPE_FP32, format: FORMAT_NCHW, dims: [3, 224, 224]}]",
        "input: [{name: x, data_type: TYPE_FP32, format: FORMAT_NCHW, dims: [224, 224]}]",
        ["input[0].dims"],
    ),
    "a reshape of another size": (
        """
        input: [{name: x, data_type: TYPE_FP32, format: FORMAT_NCHW, dims: [3, 224, 224],
                 reshape: {shape: [1, 3, 224, 224]}}]
        """,
        "input: [{name: x, data_type: TYPE_FP32, dims: [3, 224], reshape: {shape: [1, 3, 225]}}]",
        ["input[0].reshape.shape"],
    ),
    "a reshape around a variable size": (
        "input: [{name: x, data_type: TYPE_FP32, dims: [2, 4, -1, 6], reshape: {shape: [8, -1, 1, 6]}}]",
        "input: [{name: x, data_type: TYPE_FP32, dims: [2, 4, -1, 6], reshape: {shape: [-1, 8, 6]}}]",
        ["input[0].reshape.shape"],
    ),
    "a reshape to no dims": (
        "{max_batch_size: 2, output: [{name: y, data_type: TYPE_FP32, dims: [1], reshape: {shape: []}}]}",
        "output: [{name: y, data_type: TYPE_FP32, dims: [1], reshape: {shape: []}}]",
        ["output[0].reshape.shape"],
    ),
    "a reshape of zero": (
        "input: [{name: x, data_type: TYPE_FP32, dims: [4], reshape: {shape: [2, 2]}}]",
        "input: [{name: x, data_type: TYPE_FP32, dims: [4], reshape: {shape: [0, 2]}}]",
        ["input[0].reshape.shape[0]"],
    ),
    "a label file elsewhere": (
        "output: [{name: y, data_type: TYPE_FP32, dims: [9], label_filename: labels/imagenet.txt}]",
        """
        output:
          - {name: a, data_type: TYPE_FP32, dims: [9], label_filename: ../labels.txt}
          - {name: b, data_type: TYPE_FP32, dims: [9], label_filename: /etc/labels.txt}
          - {name: c, data_type: TYPE_FP32, dims: [9], label_filename: "s3://bucket/labels.txt"}
        """,
        ["output[0].label_filename", "output[1].label_filename", "output[2].label_filename"],
    ),
    "ragged without batching": (
        "{max_batch_size: 8, input: [{name: x, data_type: TYPE_FP32, dims: [-1], allow_ragged_batch: true}]}",
        "input: [{name: x, data_type: TYPE_FP32, dims: [-1], allow_ragged_batch: true}]",
        ["input[0].allow_ragged_batch"],
    ),
    "a shape tensor elsewhere than in TensorRT": (
        """
        {platform: tensorrt_plan, input: [{name: x, data_type: TYPE_INT32,
          dims: [2], is_shape_tensor: true}]}
        """,
        "{backend: onnxruntime, input: [{name: x, data_type: TYPE_INT32, dims: [2], is_shape_tensor: true}]}",
        ["input[0].is_shape_tensor"],
    ),
    "a non-linear format elsewhere than in TensorRT": (
        """
        backend: tensorrt
        input: [{name: x, data_type: TYPE_FP16, dims: [3, 8, 8], is_non_linear_format_io: true}]
        """,
        """
        backend: python
        input: [{name: x, data_type: TYPE_FP16, dims: [8], is_non_linear_format_io: true}]
        """,
        ["input[0].is_non_linear_format_io", "input[0].dims"],
    ),
    "texts in TensorRT": (
        "{backend: python, input: [{name: x, data_type: TYPE_STRING, dims: [1]}]}",
        "{backend: tensorrt, input: [{name: x, data_type: TYPE_STRING, dims: [1]}]}",
        ["input[0].data_type"],
    ),
    "a batch input of unknown source": (
        f"""
        input: [{X}]
        batch_input: [{{kind: BATCH_ELEMENT_COUNT, data_type: TYPE_FP32, target_name: [n],
            source_input: [x]}}]
        """,
        f"""
        input: [{X}]
        batch_input: [{{kind: BATCH_ELEMENT_COUNT, data_type: TYPE_FP16, target_name: [n],
            source_input: [q]}}]
        """,
        ["batch_input[0].data_type", "batch_input[0].source_input[0]"],
    ),
    "a batch output of no source": (
        f"""
        input: [{X}]
        output: [{{name: y, data_type: TYPE_FP32, dims: [-1]}}]
        batch_output: [{{target_name: [y], source_input: [x]}}]
        """,
        f"""
        input: [{X}]
        output: [{{name: y, data_type: TYPE_FP32, dims: [-1]}}]
        batch_output: [{{target_name: [z]}}]
        """,
        ["batch_output[0].source_input", "batch_output[0].target_name[0]"],
    ),
}


@pytest.mark.parametrize(("good", "bad", "fields"), CASES.values(), ids=CASES)
def test_rule(judge: Judge, good: str, bad: str, fields: list[str]) -> None:
    assert judge(good) == []
    assert [problem.field for problem in judge(bad)] == fields


@pytest.mark.parametrize(
    "dims", ["[-1]", "[-1, 300]", "[-1, 8, 64]", "[-1, -1, 3, 224]", "[1, 3, 224, 224]", "[-1, 2, 2, 2, 2]"]
)
def test_a_variable_first_dimension_is_not_taken_for_the_batch(judge: Judge, dims: str) -> None:
    assert judge(f"{{max_batch_size: 8, input: [{{name: x, data_type: TYPE_STRING, dims: {dims}}}]}}") == []


def test_the_fix_says_what_to_write(judge: Judge) -> None:
    text = "{max_batch_size: 16, input: [{name: x, data_type: TYPE_FP32, dims: [-1, 3, 512, 864]}]}"
    (problem,) = judge(text)
    assert "write dims: [3, 512, 864]" in problem.fix
    assert problem.value == [-1, 3, 512, 864]


def test_ragged_batch_of_an_ensemble_belongs_to_its_member(judge: Judge) -> None:
    (problem,) = judge("""
    platform: ensemble
    max_batch_size: 5
    input: [{name: x, data_type: TYPE_UINT8, dims: [-1], allow_ragged_batch: true}]
    ensemble_scheduling: {step: [{model_name: m, model_version: -1, input_map: {a: x}, output_map: {b: y}}]}
    """)
    assert problem.field == "input[0].allow_ragged_batch"
    assert "member" in problem.fix
