"""Checks of inputs and outputs: names, types, dims, formats, reshapes, label files, batch tensors.

Sources: Triton model configuration, sections Inputs and Outputs, Reshape, Shape Tensors and Non-Linear I/O
Formats; Triton ragged batching; the validation of Triton core (model_config_utils).
"""

from collections.abc import Iterator
from typing import Final

from spec.problems import ABSENT, Problem
from spec.triton.proto import ModelConfig, Node, enum_name
from spec.triton.values import (
    backend_of,
    elements,
    given_twice,
    is_ensemble,
    only_for,
    wrong_data_type,
    wrong_dims,
    wrong_file_name,
)

_IMAGE_FORMATS: Final = frozenset({"FORMAT_NHWC", "FORMAT_NCHW"})
_IMAGE_RANK: Final = 3
# Section Datatypes: TensorRT has no counterpart of these.
_NOT_IN_TENSORRT: Final = frozenset(
    {"TYPE_UINT16", "TYPE_UINT32", "TYPE_UINT64", "TYPE_INT16", "TYPE_FP64", "TYPE_STRING"}
)


def check_tensors(config: ModelConfig) -> Iterator[Problem]:
    """All inputs and outputs."""
    for side in ("input", "output"):
        tensors = getattr(config, side)
        yield from given_twice(side, (tensor.name for tensor in tensors), side)
        for index, tensor in enumerate(tensors):
            yield from _tensor(config, tensor, f"{side}[{index}]")
    for index, tensor in enumerate(config.input):
        yield from _input(config, tensor, f"input[{index}]")
    for index, tensor in enumerate(config.output):
        if tensor.label_filename:
            path = f"output[{index}].label_filename"
            yield from wrong_file_name(path, tensor.label_filename, "the model folder")
    yield from _repeated_batch(config)


def check_batch_tensors(config: ModelConfig) -> Iterator[Problem]:
    """The tensors that a backend makes out of a whole batch. Triton ragged batching, section Batch Input."""
    inputs = {tensor.name for tensor in config.input}
    outputs = {tensor.name for tensor in config.output}
    for index, item in enumerate(config.batch_input):
        path = f"batch_input[{index}]"
        kind = enum_name(item, "data_type")
        if kind not in {"TYPE_INT32", "TYPE_FP32"}:
            message = f"a batch input cannot be {kind}"
            yield Problem(f"{path}.data_type", message, kind, "TYPE_INT32, TYPE_FP32", "write TYPE_FP32")
        yield from _source(item, path, inputs)
    for index, item in enumerate(config.batch_output):
        path = f"batch_output[{index}]"
        yield from _source(item, path, inputs)
        for at, name in enumerate(item.target_name):
            if outputs and name not in outputs:
                message = f"the model has no output {name!r}"
                allowed = ", ".join(sorted(outputs))
                yield Problem(f"{path}.target_name[{at}]", message, name, allowed, "name one of its outputs")


def _source(item: Node, path: str, inputs: set[str]) -> Iterator[Problem]:
    sources = list(item.source_input)
    allowed = ", ".join(sorted(inputs)) or "the name of one input"
    if len(sources) != 1:
        message = f"exactly one source input is needed, {len(sources)} are given"
        yield Problem(f"{path}.source_input", message, sources, allowed, "name one input")
    for at, name in enumerate(sources):
        if inputs and name not in inputs:
            message = f"the model has no input {name!r}"
            yield Problem(f"{path}.source_input[{at}]", message, name, allowed, "name one of its inputs")


def _tensor(config: ModelConfig, tensor: Node, path: str) -> Iterator[Problem]:
    if not tensor.name:
        yield Problem(f"{path}.name", "name is missing", ABSENT, "the tensor's name in the model", "add name")
    yield from wrong_data_type(path, tensor)
    kind = enum_name(tensor, "data_type")
    if backend_of(config) == "tensorrt" and kind in _NOT_IN_TENSORRT:
        allowed = "TYPE_BOOL, TYPE_UINT8, TYPE_INT8, TYPE_INT32, TYPE_INT64, TYPE_FP16, TYPE_FP32, TYPE_BF16"
        message = f"TensorRT has no tensors of {kind}"
        yield Problem(f"{path}.data_type", message, kind, allowed, "write the type that the plan has")
    dims = list(tensor.dims)
    if not dims:
        allowed = "one size or more, without the batch dimension"
        fix = "add dims; for one value per request write dims: [1] with reshape: {shape: []}"
        yield Problem(f"{path}.dims", "dims is missing", dims, allowed, fix)
    yield from wrong_dims(f"{path}.dims", dims)
    if tensor.HasField("reshape"):
        yield from _reshape(tensor, path, batching=config.max_batch_size > 0)
    if tensor.is_shape_tensor:
        yield from only_for(config, "tensorrt", f"{path}.is_shape_tensor", value=True)
    if tensor.is_non_linear_format_io:
        yield from only_for(config, "tensorrt", f"{path}.is_non_linear_format_io", value=True)
        if dims and len(dims) != _IMAGE_RANK:
            message = "a tensor of non-linear format has 3 dims"
            yield Problem(f"{path}.dims", message, dims, "3 sizes", "write 3 sizes, or take the flag out")


def _reshape(tensor: Node, path: str, *, batching: bool) -> Iterator[Problem]:
    """Section Reshape: both shapes hold the same number of elements, around each variable dimension too."""
    dims, shape = list(tensor.dims), list(tensor.reshape.shape)
    at = f"{path}.reshape.shape"
    if not shape and not batching:
        fix = "write the shape that the model has, e.g. [1], or set max_batch_size"
        message = "an empty shape needs batching: a tensor without dimensions is not supported"
        yield Problem(at, message, shape, "one size or more", fix)
    yield from wrong_dims(at, shape)
    if dims and all(size > 0 or size == -1 for size in dims + shape) and elements(dims) != elements(shape):
        message = f"dims {dims} and reshape {shape} do not hold the same number of elements"
        allowed = "a shape with as many elements and as many variable sizes as dims, in the same places"
        fix = "make the products equal: dims is what clients send, shape what the model gets"
        yield Problem(at, message, shape, allowed, fix)


def _input(config: ModelConfig, tensor: Node, path: str) -> Iterator[Problem]:
    dims = list(tensor.dims)
    style = enum_name(tensor, "format")
    if style in _IMAGE_FORMATS and len(dims) != _IMAGE_RANK and not _image_with_batch(config, tensor):
        order = "height, width, channels" if style == "FORMAT_NHWC" else "channels, height, width"
        message = f"{style} needs 3 dims, {len(dims)} are given"
        fix = f"write dims as [{order}], without the batch dimension"
        yield Problem(f"{path}.dims", message, dims, f"[{order}]", fix)
    if tensor.allow_ragged_batch and is_ensemble(config):
        message = "an ensemble ignores allow_ragged_batch: it forms no batches"
        fix = "set it on the member model that batches, and take it out here"
        yield Problem(f"{path}.allow_ragged_batch", message, value=True, allowed="absent", fix=fix)
    elif tensor.allow_ragged_batch and config.max_batch_size <= 0:
        message = "a ragged batch needs batching, and max_batch_size is 0"
        fix = "set max_batch_size to 1 or more, or take it out"
        yield Problem(f"{path}.allow_ragged_batch", message, value=True, allowed="absent", fix=fix)


def _image_with_batch(config: ModelConfig, tensor: Node) -> bool:
    """Whether an input's dims are those of an image with the batch dimension in front.

    Four dims are one too many for an image when the format says that it is one, or when only the first of
    them is variable: exported models carry their batch dimension that way. A first dimension that varies
    within one request (the frames of a clip) is told apart by ``allow_ragged_batch``.
    """
    dims = list(tensor.dims)
    if config.max_batch_size <= 0 or len(dims) != _IMAGE_RANK + 1:
        return False
    if enum_name(tensor, "format") in _IMAGE_FORMATS:
        return True
    return dims[0] == -1 and min(dims[1:]) > 0 and not tensor.allow_ragged_batch


def _repeated_batch(config: ModelConfig) -> Iterator[Problem]:
    """Section Maximum Batch Size: the full shape is [-1] + dims, so dims must not hold the batch again."""
    found = [index for index, tensor in enumerate(config.input) if _image_with_batch(config, tensor)]
    for index in found:
        dims = list(config.input[index].dims)
        yield _repeated(f"input[{index}].dims", dims, config.max_batch_size)
    for index, tensor in enumerate(config.output if found else []):
        dims = list(tensor.dims)
        if len(dims) > 1 and dims[0] == -1 and min(dims[1:]) > 0:
            yield _repeated(f"output[{index}].dims", dims, config.max_batch_size)


def _repeated(path: str, dims: list[int], most: int) -> Problem:
    message = f"the batch dimension is given twice: max_batch_size is {most}, so the full shape is {[-1, *dims]}"
    fix = f"write dims: {dims[1:]}"
    if path.startswith("input"):
        fix += "; if the first dimension varies within one request, say so with allow_ragged_batch: true"
    return Problem(path, message, dims, f"{dims[1:]}, or the full shape with max_batch_size: 0", fix)
