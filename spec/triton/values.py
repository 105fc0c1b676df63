"""Values that appear in many places of a configuration: dims, file names, tensor names, the backend."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from spec.problems import ABSENT, Problem
from spec.triton.proto import ModelConfig, Node, enum_name

DATA_TYPES: Final = (
    "TYPE_BOOL, TYPE_UINT8, TYPE_UINT16, TYPE_UINT32, TYPE_UINT64, TYPE_INT8, TYPE_INT16, TYPE_INT32, "
    "TYPE_INT64, TYPE_FP16, TYPE_FP32, TYPE_FP64, TYPE_STRING, TYPE_BF16"
)
# Platforms that Triton itself knows, each with its only backend. Triton core, model configuration.
PLATFORMS: Final = {
    "tensorrt_plan": "tensorrt",
    "tensorflow_graphdef": "tensorflow",
    "tensorflow_savedmodel": "tensorflow",
    "onnxruntime_onnx": "onnxruntime",
    "pytorch_libtorch": "pytorch",
    "libtorch": "pytorch",
    "torch_aoti": "pytorch",
}
ENSEMBLE: Final = "ensemble"


def backend_of(config: ModelConfig) -> str:
    """The backend that runs the model, empty when Triton finds it by the model file."""
    return config.backend or PLATFORMS.get(config.platform, "")


def protocol_type(tensor: Node) -> str:
    """A tensor's type as KServe's v2 protocol writes it."""
    name = enum_name(tensor, "data_type").removeprefix("TYPE_")
    return "BYTES" if name == "STRING" else name


def is_ensemble(config: ModelConfig) -> bool:
    """Whether the configuration is, or is meant to be, an ensemble."""
    return config.platform == ENSEMBLE or config.HasField("ensemble_scheduling")


def only_for(config: ModelConfig, backend: str, path: str, value: object) -> Iterator[Problem]:
    """A setting that only one backend knows; nothing is said when the backend is not known."""
    actual = ENSEMBLE if is_ensemble(config) else backend_of(config)
    if actual and actual != backend:
        message = f"only the {backend} backend knows this setting, the model runs on {actual}"
        yield Problem(path, message, value, f"absent, or backend: {backend}", "take it out")


def wrong_dims(path: str, dims: Sequence[int], *, concrete: bool = False) -> Iterator[Problem]:
    """Dims hold sizes from 1, or -1 for a variable one where that is possible."""
    least = 1 if concrete else -1
    allowed = "sizes of 1 or more" if concrete else "sizes of 1 or more, or -1 for a variable size"
    for index, size in enumerate(dims):
        if size == 0 or size < least:
            message = f"{size} is not the size of a dimension"
            fix = "write the exact size" if concrete else "write the size, or -1 when it varies"
            yield Problem(f"{path}[{index}]", message, size, allowed, fix)


def wrong_data_type(path: str, message: Node) -> Iterator[Problem]:
    """A tensor needs a data type; a number without a name is reported by the parser."""
    if enum_name(message, "data_type") == "TYPE_INVALID":
        yield Problem(f"{path}.data_type", "data_type is missing", ABSENT, DATA_TYPES, "add data_type")


def wrong_file_name(path: str, name: str, where: str) -> Iterator[Problem]:
    """A file that Triton looks up in a folder of the model must not lead out of it."""
    parts = PurePosixPath(name).parts
    if not name or name.startswith("/") or ".." in parts or "\\" in name or "://" in name:
        message = f"{name!r} is not a file inside {where}"
        fix = f"put the file into {where} and write its name only"
        yield Problem(path, message, name, f"a relative file name inside {where}", fix)


def given_twice(path: str, names: Iterable[str], what: str, key: str = "name") -> Iterator[Problem]:
    """The same name on two items of a list."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name and name in first:
            message = f"{what} {name!r} is there already, as item {first[name]}"
            yield Problem(f"{path}[{index}].{key}", message, name, f"each {what} once", "rename or remove one")
        first.setdefault(name, index)


def elements(dims: Sequence[int]) -> list[int]:
    """The element counts of the stretches between variable dimensions, e.g. [2, 4, -1, 6] gives [8, 6]."""
    counts = [1]
    for size in dims:
        if size == -1:
            counts.append(1)
        else:
            counts[-1] *= size
    return counts


def fits(left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether two shapes agree, a variable dimension agreeing with any size."""
    return len(left) == len(right) and all(
        one == other or -1 in (one, other) for one, other in zip(left, right, strict=True)
    )
