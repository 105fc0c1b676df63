"""Checks of an ensemble's steps against the models that they run.

Sources: Triton ensemble models; Triton core (ensemble_utils), which compares types and full shapes, the batch
dimension included, so that a model without batching can take part with a leading -1 of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spec.problems import Problem
from spec.triton.parse import closest
from spec.triton.proto import ModelConfig, Node, enum_name
from spec.triton.values import fits

_STEPS: Final = "ensemble_scheduling.step"


@dataclass(frozen=True)
class _Tensor:
    """One end of a connection."""

    owner: str
    data_type: str
    dims: tuple[int, ...]
    batching: bool

    @property
    def full(self) -> tuple[int, ...]:
        return (-1, *self.dims) if self.batching else self.dims


def check_members(config: ModelConfig, members: Mapping[str, ModelConfig | None]) -> Iterator[Problem]:
    """Each step's model exists, has the tensors that are mapped, and fits the tensors that it is given."""
    steps: list[tuple[str, Node, ModelConfig]] = []
    for index, step in enumerate(config.ensemble_scheduling.step):
        path = f"{_STEPS}[{index}]"
        yield from _known(config, step, path, members)
        member = members.get(step.model_name)
        if member is not None and step.model_name != config.name:
            steps.append((path, step, member))
    for path, step, member in steps:
        yield from _batch(config, step, path, member)
        yield from _keys(step, path, member)
    yield from _connections(config, steps)
    if len(steps) == len(config.ensemble_scheduling.step):
        yield from _decoupled(config, steps)


def _known(config: ModelConfig, step: Node, path: str, members: Mapping[str, ModelConfig | None]) -> Iterator[Problem]:
    name, at = step.model_name, f"{path}.model_name"
    if not name:
        return
    others = sorted(members.keys() - {config.name})
    if name == config.name or (name in members and _reaches(name, config.name, members)):
        message = f"the ensemble {config.name!r} would run itself"
        yield Problem(at, message, name, ", ".join(others), "name another model")
    elif name not in members:
        meant = closest(name, others)
        fix = f"write {meant!r}" if meant else "add the model to the same service, or correct the name"
        yield Problem(at, f"the service has no model {name!r}", name, ", ".join(others), fix)


def _reaches(start: str, target: str, members: Mapping[str, ModelConfig | None]) -> bool:
    """Whether a member is an ensemble that leads, through its own members, to the target."""
    pending, seen = [start], {start}
    while pending:
        member = members.get(pending.pop())
        names = {step.model_name for step in member.ensemble_scheduling.step} if member else set()
        if target and target in names:
            return True
        pending.extend(names - seen)
        seen |= names
    return False


def _batch(config: ModelConfig, step: Node, path: str, member: ModelConfig) -> Iterator[Problem]:
    most = config.max_batch_size
    if 0 < member.max_batch_size < most:
        message = f"the ensemble takes batches of {most}, its member {step.model_name!r} of {member.max_batch_size}"
        allowed = f"max_batch_size of {member.max_batch_size} or less, or a member with {most} or more"
        fix = f"write max_batch_size: {member.max_batch_size} here, or {most} in {step.model_name!r}"
        yield Problem(f"{path}.model_name", message, step.model_name, allowed, fix)


def _keys(step: Node, path: str, member: ModelConfig) -> Iterator[Problem]:
    """The keys of both maps are tensors of the member. What it leaves to auto-completion is not checked."""
    for side in ("input", "output"):
        known = [tensor.name for tensor in getattr(member, side)]
        entries = getattr(step, f"{side}_map")
        for key in sorted(entries) if known else ():
            if key not in known:
                meant = closest(key, known)
                fix = f"write {meant!r}" if meant else f"name one of its {side}s as the key"
                message = f"the model {step.model_name!r} has no {side} {key!r}"
                yield Problem(f"{path}.{side}_map.{key}", message, key, ", ".join(known), fix)
    for tensor in member.input:
        if not tensor.optional and tensor.name not in step.input_map:
            message = f"the input {tensor.name!r} of {step.model_name!r} is not mapped"
            allowed = ", ".join(item.name for item in member.input)
            fix = f"add {tensor.name!r} with the tensor that it reads"
            yield Problem(f"{path}.input_map", message, sorted(step.input_map), allowed, fix)


def _connections(config: ModelConfig, steps: Sequence[tuple[str, Node, ModelConfig]]) -> Iterator[Problem]:
    """What a tensor is where it is written, against what it must be where it is read."""
    batching = config.max_batch_size > 0
    written = {tensor.name: _end(tensor, "the ensemble's input", batching) for tensor in config.input}
    for _, step, member in steps:
        for tensor in member.output:
            name = step.output_map.get(tensor.name)
            if name:
                owner = f"{step.model_name}'s output {tensor.name!r}"
                written.setdefault(name, _end(tensor, owner, member.max_batch_size > 0))
    lenient = config.max_batch_size <= 1
    for path, step, member in steps:
        for tensor in member.input:
            name = step.input_map.get(tensor.name)
            if name in written:
                read = _end(tensor, f"{step.model_name}'s input", member.max_batch_size > 0)
                at = f"{path}.input_map.{tensor.name}"
                yield from _compare(at, name, written[name], read, lenient=lenient)
    inputs = {tensor.name for tensor in config.input}
    for index, tensor in enumerate(config.output):
        if tensor.name in written and tensor.name not in inputs:
            read = _end(tensor, "the ensemble's output", batching)
            yield from _compare(f"output[{index}]", tensor.name, written[tensor.name], read, lenient=lenient)


def _end(tensor: Node, owner: str, batching: bool) -> _Tensor:  # noqa: FBT001 - private, always named by its place
    ensemble = owner.startswith("the ensemble")
    dims = tensor.reshape.shape if ensemble and tensor.HasField("reshape") else tensor.dims
    return _Tensor(owner, enum_name(tensor, "data_type"), tuple(dims), batching)


def _compare(path: str, name: str, written: _Tensor, read: _Tensor, *, lenient: bool) -> Iterator[Problem]:
    """Types are equal and full shapes agree.

    Between a model with batching and one without, Triton adds or removes a batch of exactly one, which is
    enough only for an ensemble that takes no larger batch (``lenient``).
    """
    kinds = (written.data_type, read.data_type)
    if "TYPE_INVALID" not in kinds and kinds[0] != kinds[1]:
        message = f"tensor {name!r} is {kinds[0]} as {written.owner} and {kinds[1]} as {read.owner}"
        fix = f"make both {kinds[0]}, or put a model that converts it between them"
        yield Problem(path, message, kinds[1], kinds[0], fix)
    if not written.dims or not read.dims or fits(written.full, read.full):
        return
    if lenient and fits(written.dims, read.dims):
        return
    message = (
        f"tensor {name!r} has the full shape {list(written.full)} as {written.owner} and "
        f"{list(read.full)} as {read.owner}"
    )
    fix = "make the full shapes equal: dims, with -1 in front where max_batch_size is 1 or more"
    if written.batching != read.batching:
        alone = read if written.batching else written
        fix = (
            f"one side has max_batch_size 0: set it for {alone.owner}, or write its dims with the batch "
            "dimension -1 in front"
        )
    yield Problem(path, message, list(read.dims), str(list(written.full)), fix)


def _decoupled(config: ModelConfig, steps: Sequence[tuple[str, Node, ModelConfig]]) -> Iterator[Problem]:
    """Triton core follows each stream of responses: those of different decoupled models cannot be joined.

    The policy of the ensemble itself is set by its members, whatever the ensemble says.
    """
    claimed = config.model_transaction_policy.decoupled
    if claimed and not any(member.model_transaction_policy.decoupled for _, _, member in steps):
        path = "model_transaction_policy.decoupled"
        message = "no member is decoupled, so the ensemble is not either"
        fix = "take it out, or write it in the member that is"
        yield Problem(path, message, value=True, allowed="absent", fix=fix)
    stream = dict.fromkeys((tensor.name for tensor in config.input), "")
    waiting = list(steps)
    while ready := [item for item in waiting if all(name in stream for name in item[1].input_map.values())]:
        waiting = [item for item in waiting if item not in ready]
        for path, step, member in ready:
            origins = sorted({stream[name] for name in step.input_map.values()})
            if len(origins) > 1:
                yield _joined(f"{path}.input_map", f"step {step.model_name!r}", origins)
            own = path if member.model_transaction_policy.decoupled else origins[0] if origins else ""
            stream.update(dict.fromkeys(step.output_map.values(), own))
    origins = sorted({stream[tensor.name] for tensor in config.output if tensor.name in stream})
    if len(origins) > 1:
        yield _joined("output", "the ensemble's response", origins)


def _joined(path: str, who: str, origins: Sequence[str]) -> Problem:
    names = ", ".join(origin or "the request" for origin in origins)
    message = f"{who} joins tensors of different numbers of responses: {names}"
    fix = "lead all of them through the same decoupled step"
    return Problem(path, message, list(origins), "tensors of one decoupled step, or of none", fix)
