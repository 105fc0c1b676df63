"""Checks of warm-up samples: requests that Triton makes itself before a model counts as ready.

Sources: Triton model configuration, section Model Warmup; the comments on ModelWarmup in Triton's proto file;
Triton core (backend_model_instance), which builds the samples.
"""

from collections.abc import Iterator

from spec.problems import ABSENT, Problem
from spec.triton.parse import closest
from spec.triton.proto import ModelConfig, Node, enum_name
from spec.triton.values import fits, is_ensemble, wrong_data_type, wrong_dims, wrong_file_name


def check_warmup(config: ModelConfig) -> Iterator[Problem]:
    """All samples. An ensemble must have none, which is checked with the ensemble."""
    if is_ensemble(config):
        return
    for index, sample in enumerate(config.model_warmup):
        path = f"model_warmup[{index}]"
        yield from _batch(sample, path, config.max_batch_size)
        yield from _names(config, sample, path)
        for name in sorted(sample.inputs):
            at = f"{path}.inputs.{name}"
            yield from _input(sample.inputs[name], at)
            declared = next((tensor for tensor in config.input if tensor.name == name), None)
            if declared is not None:
                yield from _against(declared, sample.inputs[name], at)


def _batch(sample: Node, path: str, most: int) -> Iterator[Problem]:
    size, largest = sample.batch_size, max(most, 1)
    if size == 0:
        message = "Triton skips a sample without a batch size"
        yield Problem(f"{path}.batch_size", message, 0, f"1 to {largest}", "write batch_size: 1")
    elif size > largest:
        message = f"the model takes batches of {largest} at most"
        yield Problem(f"{path}.batch_size", message, size, f"1 to {largest}", f"write {largest} or less")


def _names(config: ModelConfig, sample: Node, path: str) -> Iterator[Problem]:
    """A sample holds every input; what the sequence batcher adds itself may be held as well."""
    if not config.input:
        return  # left to Triton's auto-completion
    needed = [tensor.name for tensor in config.input if not tensor.optional]
    batching = config.sequence_batching
    added = [item.name for item in batching.control_input] + [item.input_name for item in batching.state]
    known = [tensor.name for tensor in config.input] + added
    for name in sorted(sample.inputs):
        if name not in known:
            meant = closest(name, known)
            fix = f"write {meant!r}" if meant else "name one of the model's inputs"
            message = f"the model has no input {name!r}"
            yield Problem(f"{path}.inputs.{name}", message, name, ", ".join(known), fix)
    for name in needed:
        if name not in sample.inputs:
            message = f"the sample lacks the input {name!r}, the request would fail"
            fix = f"add {name!r} with data_type, dims and zero_data: true"
            yield Problem(f"{path}.inputs", message, sorted(sample.inputs), ", ".join(needed), fix)


def _input(data: Node, path: str) -> Iterator[Problem]:
    yield from wrong_data_type(path, data)
    yield from wrong_dims(f"{path}.dims", data.dims, concrete=True)
    source = data.WhichOneof("input_data_type")
    if source is None:
        allowed = "zero_data, random_data, input_data_file"
        yield Problem(path, "the input has no data", ABSENT, allowed, "add zero_data: true")
    elif source == "input_data_file":
        folder = "the folder warmup of the model folder"
        yield from wrong_file_name(f"{path}.input_data_file", data.input_data_file, folder)
    elif not getattr(data, source):
        message = f"Triton makes the data whenever {source} is set, to false too"
        yield Problem(f"{path}.{source}", message, value=False, allowed="true", fix="write true")
    elif source == "random_data" and enum_name(data, "data_type") == "TYPE_STRING":
        message = "there is no random text, Triton would send empty texts"
        fix = "name an input_data_file, or write zero_data: true for empty texts"
        yield Problem(f"{path}.random_data", message, True, "input_data_file, zero_data", fix)  # noqa: FBT003


def _against(declared: Node, data: Node, path: str) -> Iterator[Problem]:
    """The sample fits the input that the configuration declares."""
    wanted, kind = enum_name(declared, "data_type"), enum_name(data, "data_type")
    if "TYPE_INVALID" not in (wanted, kind) and wanted != kind:
        message = f"the sample is {kind}, the input is {wanted}"
        yield Problem(f"{path}.data_type", message, kind, wanted, f"write {wanted}")
    dims, shape = list(data.dims), list(declared.dims)
    if shape and not declared.is_shape_tensor and not fits(dims, shape):
        message = f"the sample {dims} does not fit the input {shape}"
        fix = "write the input's dims with every -1 replaced by a size, without the batch dimension"
        yield Problem(f"{path}.dims", message, dims, str(shape), fix)
