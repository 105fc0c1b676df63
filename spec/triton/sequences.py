"""Checks of the sequence batcher: its strategy, its control tensors and the state it keeps.

Sources: Triton batchers, section Sequence Batcher; Triton architecture, section Stateful Models; the
validation of Triton core (model_config_utils, sequence_batch_scheduler).
"""

from collections.abc import Iterator
from typing import Final

from spec.problems import ABSENT, Problem
from spec.triton.batching import preferred_sizes
from spec.triton.proto import ModelConfig, Node, enum_name
from spec.triton.values import given_twice, wrong_data_type, wrong_dims, wrong_file_name

_ROOT: Final = "sequence_batching"
_CORRELATION_TYPES: Final = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")
_PAIRS: Final = ("int32_false_true", "fp32_false_true", "bool_false_true")
_PAIR: Final = 2


def check_sequences(config: ModelConfig, *, gpu: bool) -> Iterator[Problem]:
    """The sequence batcher."""
    if not config.HasField("sequence_batching"):
        return
    batching = config.sequence_batching
    yield from _strategy(batching, config.max_batch_size)
    yield from _controls(batching)
    for index, state in enumerate(batching.state):
        yield from _state(state, f"{_ROOT}.state[{index}]", gpu=gpu)
    for name in ("input_name", "output_name"):
        names = (getattr(state, name) for state in batching.state)
        yield from given_twice(f"{_ROOT}.state", names, "state tensor", name)


def _strategy(batching: Node, most: int) -> Iterator[Problem]:
    if batching.HasField("oldest"):
        path = f"{_ROOT}.oldest"
        yield from preferred_sizes(f"{path}.preferred_batch_size", batching.oldest.preferred_batch_size, most)
        count = batching.oldest.max_candidate_sequences
        if count < 0:
            fix = "write how many sequences may be in work at once"
            message = "a number of sequences cannot be negative"
            yield Problem(f"{path}.max_candidate_sequences", message, count, "1 or more", fix)
    if batching.HasField("direct"):
        path = f"{_ROOT}.direct"
        share = batching.direct.minimum_slot_utilization
        if not 0 <= share <= 1:
            message = "a share of the slots lies between 0 and 1"
            fix = "write e.g. 0.5 to wait for half of the slots"
            yield Problem(f"{path}.minimum_slot_utilization", message, share, "0.0 to 1.0", fix)
        delay = batching.direct.max_queue_delay_microseconds
        if delay and share == 0:
            message = "the delay is ignored while minimum_slot_utilization is 0"
            fix = "set minimum_slot_utilization above 0, or take the delay out"
            yield Problem(f"{path}.max_queue_delay_microseconds", message, delay, "absent", fix)


def _controls(batching: Node) -> Iterator[Problem]:
    path = f"{_ROOT}.control_input"
    yield from given_twice(path, (item.name for item in batching.control_input), "control tensor")
    seen: dict[str, str] = {}
    for index, item in enumerate(batching.control_input):
        at = f"{path}[{index}]"
        if not item.name:
            allowed = "the name of the model's input"
            yield Problem(f"{at}.name", "a control tensor needs a name", ABSENT, allowed, "add name")
        if not item.control:
            fix = "add control: [{kind: …}]"
            yield Problem(f"{at}.control", "the tensor carries no control", [], "one control or more", fix)
        for number, control in enumerate(item.control):
            here = f"{at}.control[{number}]"
            kind = enum_name(control, "kind")
            if kind in seen:
                message = f"{kind} is carried by {seen[kind]!r} already"
                yield Problem(f"{here}.kind", message, kind, "each kind once", "keep one of the two")
            seen.setdefault(kind, item.name)
            yield from _correlation(control, here) if kind.endswith("CORRID") else _flag(control, here, kind)


def _flag(control: Node, path: str, kind: str) -> Iterator[Problem]:
    """Start, end and ready are told by a pair of values: the one for false, then the one for true."""
    given = [name for name in _PAIRS if getattr(control, name)]
    if len(given) != 1:
        said = ", ".join(given) or "none"
        message = f"{kind} needs one pair of values, {said} given"
        fix = "write e.g. fp32_false_true: [0, 1]"
        yield Problem(path, message, given, f"one of {', '.join(_PAIRS)}", fix)
    for name in given:
        values = list(getattr(control, name))
        if len(values) != _PAIR:
            message = f"{kind} needs the value for false and the value for true"
            yield Problem(f"{path}.{name}", message, values, "exactly 2 values", "write e.g. [0, 1]")


def _correlation(control: Node, path: str) -> Iterator[Problem]:
    """The correlation id comes with its own type and no pair of values."""
    kind = enum_name(control, "data_type")
    allowed = ", ".join(_CORRELATION_TYPES)
    if kind not in _CORRELATION_TYPES:
        message = f"a correlation id cannot be {kind}"
        yield Problem(f"{path}.data_type", message, kind, allowed, "write TYPE_UINT64")
    for name in _PAIRS:
        if getattr(control, name):
            message = "a correlation id has no false and true value"
            yield Problem(f"{path}.{name}", message, list(getattr(control, name)), "absent", "take it out")


def _state(state: Node, path: str, *, gpu: bool) -> Iterator[Problem]:
    for name in ("input_name", "output_name"):
        if not getattr(state, name):
            message = f"{name} is missing"
            yield Problem(f"{path}.{name}", message, ABSENT, "the tensor's name in the model", f"add {name}")
    yield from wrong_data_type(path, state)
    yield from wrong_dims(f"{path}.dims", state.dims)
    if not state.dims:
        yield Problem(f"{path}.dims", "dims is missing", [], "one size or more", "add dims")
    if len(state.initial_state) > 1:
        message = "a state has one initial value"
        count = len(state.initial_state)
        yield Problem(f"{path}.initial_state", message, count, "one item at most", "keep one of them")
    for index, initial in enumerate(state.initial_state):
        yield from _initial(state, initial, f"{path}.initial_state[{index}]")
    if state.use_growable_memory and not (state.use_same_buffer_for_input_output and gpu):
        message = "growable memory needs use_same_buffer_for_input_output and a GPU"
        fix = "set use_same_buffer_for_input_output: true and ask for a GPU, or take it out"
        yield Problem(f"{path}.use_growable_memory", message, value=True, allowed="absent", fix=fix)


def _initial(state: Node, initial: Node, path: str) -> Iterator[Problem]:
    if not initial.name:
        yield Problem(f"{path}.name", "name is missing", ABSENT, "any text", "add name")
    wanted, kind = enum_name(state, "data_type"), enum_name(initial, "data_type")
    if kind != wanted:
        message = f"the initial value is {kind}, the state is {wanted}"
        yield Problem(f"{path}.data_type", message, kind, wanted, f"write {wanted}")
    dims, shape = list(initial.dims), list(state.dims)
    yield from wrong_dims(f"{path}.dims", dims, concrete=True)
    same = len(dims) == len(shape) and all(two in (-1, one) for one, two in zip(dims, shape, strict=True))
    if not same:
        message = f"the initial value {dims} does not fit the state {shape}"
        fix = "write the state's dims with every -1 replaced by a size"
        yield Problem(f"{path}.dims", message, dims, str(shape), fix)
    if initial.WhichOneof("state_data") is None:
        message = "the initial value has no source"
        yield Problem(path, message, ABSENT, "zero_data, data_file", "add zero_data: true or data_file")
    if initial.HasField("zero_data") and not initial.zero_data:
        message = "Triton fills the state with zeros whenever zero_data is set, to false too"
        fix = "write true, or name a data_file"
        yield Problem(f"{path}.zero_data", message, value=False, allowed="true", fix=fix)
    if initial.HasField("data_file"):
        folder = "the folder initial_state of the model folder"
        yield from wrong_file_name(f"{path}.data_file", initial.data_file, folder)
