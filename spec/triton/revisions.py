"""What must hold between the versions and revisions of one model."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from spec.problems import Problem
from spec.triton.proto import ModelConfig, Node, enum_name

_VERSION: Final = re.compile(r"[1-9][0-9]*")
_DIGITS: Final = 18  # fewer than the largest 64-bit number has
_MEANT: Final = re.compile(r"[A-Za-z_-]*0*([1-9][0-9]{0,17})")
# "Model repository": sub-folders of a model folder that hold something else than a version.
_OTHER_FOLDERS: Final = frozenset({"configs", "initial_state", "warmup"})


def check_version_directories(names: Iterable[str]) -> list[Problem]:
    """The sub-folders of a model folder: Triton skips one that is no number or starts with 0, silently.

    Source: Triton model repository, section Model Versions.
    """
    problems = []
    allowed = "a whole number from 1, without leading zeros"
    versions = [name.rstrip("/") for name in names]
    versions = [name for name in versions if name not in _OTHER_FOLDERS]
    for name in versions:
        if _VERSION.fullmatch(name) and len(name) <= _DIGITS:
            continue
        meant = _MEANT.fullmatch(name)
        fix = f"rename the folder to {meant[1]}" if meant else "rename the folder to a number, e.g. 1"
        message = f"Triton skips the version folder {name!r} without an error"
        problems.append(Problem("", message, name, allowed, fix))
    if not versions:
        fix = "put the model file in a folder named 1"
        message = "the model folder has no version folder, nothing would load"
        problems.append(Problem("", message, [], allowed, fix))
    return problems


def check_revisions(old: ModelConfig, new: ModelConfig) -> list[Problem]:
    """Revisions that share traffic take and give the same tensors: a client cannot tell which it reached.

    Compared are names, data types, full shapes (the batch dimension included) and what a request must hold.
    The order of the tensors does not matter, and a side that leaves its tensors to Triton's auto-completion
    is not compared.
    """
    problems: list[Problem] = []
    for side in ("input", "output"):
        before, after = getattr(old, side), getattr(new, side)
        if before and after:
            problems += _compare(side, before, after, (old.max_batch_size > 0, new.max_batch_size > 0))
    if old.model_transaction_policy.decoupled != new.model_transaction_policy.decoupled:
        value = new.model_transaction_policy.decoupled
        path = "model_transaction_policy.decoupled"
        message = "one revision is decoupled and the other is not: clients call them over different RPCs"
        problems.append(Problem(path, message, value, f"{not value}".lower(), _fix(f"{not value}".lower())))
    return problems


def _fix(what: str) -> str:
    return f"write {what} as the other revision does, or take this revision out of the shared traffic"


def _compare(side: str, old: Sequence[Node], new: Sequence[Node], batched: tuple[bool, bool]) -> Iterator[Problem]:
    before = {tensor.name: tensor for tensor in old}
    names = {tensor.name for tensor in new}
    for index, tensor in enumerate(new):
        path = f"{side}[{index}]"
        other = before.get(tensor.name)
        if other is None:
            if side == "input" and not tensor.optional:
                message = f"input {tensor.name!r} is required here and unknown to the other revision"
                fix = _fix("optional: true or the same inputs")
                yield Problem(f"{path}.name", message, tensor.name, ", ".join(before), fix)
            elif side == "output":
                message = f"output {tensor.name!r} is missing from the other revision"
                fix = _fix("the same outputs")
                yield Problem(f"{path}.name", message, tensor.name, ", ".join(before), fix)
            continue
        yield from _compare_tensor(path, other, tensor, batched)
    for name in sorted(before.keys() - names):
        message = f"{side} {name!r} of the other revision is missing"
        yield Problem(side, message, sorted(names), ", ".join(before), _fix(f"the {side} {name!r}"))


def _compare_tensor(path: str, old: Node, new: Node, batched: tuple[bool, bool]) -> Iterator[Problem]:
    before, after = enum_name(old, "data_type"), enum_name(new, "data_type")
    if before != after:
        message = f"{new.name!r} is {after} here and {before} in the other revision"
        yield Problem(f"{path}.data_type", message, after, before, _fix(before))
    first = [*([-1] if batched[0] else []), *old.dims]
    second = [*([-1] if batched[1] else []), *new.dims]
    if first != second:
        message = f"{new.name!r} has the full shape {second} here and {first} in the other revision"
        fix = _fix(f"dims and max_batch_size that make the full shape {first}")
        yield Problem(f"{path}.dims", message, list(new.dims), str(list(old.dims)), fix)
    if getattr(old, "optional", False) and not new.optional:
        message = f"input {new.name!r} is required here and optional in the other revision"
        yield Problem(f"{path}.optional", message, value=False, allowed="true", fix=_fix("optional: true"))
