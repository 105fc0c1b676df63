"""Reads what ``pulumi preview --json --show-sames`` prints."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from policies.judging.view import Resource
from review.changes import Change, Op, Plan, Side
from review.words import mapping, read
from spec import names
from spec.estate import EstateSpec
from spec.pool import GpuPoolSpec
from spec.problems import ABSENT, Problem, SpecError

_HOW: Final = "pulumi preview --json --show-sames"
_URN: Final = "urn:pulumi:<stack>::<project>::<type>::<name>"
_ROOT: Final = "pulumi:pulumi:Stack"
_OPS: Final[Mapping[str, Op]] = {
    "same": Op.SAME,
    "read": Op.SAME,
    "refresh": Op.SAME,
    "create": Op.CREATE,
    "import": Op.CREATE,
    "update": Op.UPDATE,
    "delete": Op.DELETE,
    "discard": Op.DELETE,
    **dict.fromkeys(
        (
            *("replace", "create-replacement", "delete-replaced", "import-replacement"),
            *("read-replacement", "discard-replaced", "remove-pending-replace"),
        ),
        Op.REPLACE,
    ),
}
_GOES: Final = frozenset({"delete", "delete-replaced", "discard", "discard-replaced"})


def read_preview(path: Path, stack: str, spec: EstateSpec) -> Plan:
    """The plan in a file.

    Args:
        path: what the command printed.
        stack: the stack that it must be of.
        spec: settings of the stack, after the change.

    Raises:
        SpecError: no such file, not a preview, one of another stack, or one that failed.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        _refuse(path, "", f"cannot be read: {why}")
    try:
        document = json.loads(content)
    except (json.JSONDecodeError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        _refuse(path, "", f"not JSON{where}")
    return _plan(path, document, stack, spec)


def _plan(path: Path, document: object, stack: str, spec: EstateSpec) -> Plan:
    if not isinstance(document, dict) or not ({"steps", "diagnostics"} & set(document)):
        _refuse(path, "", "not a preview")
    _check_diagnostics(path, document.get("diagnostics") or [])
    steps = document.get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        _refuse(path, "steps", "not a list of steps")
    counted = mapping(document.get("changeSummary")).get("same", 0)
    if counted and not any(step.get("op") == "same" for step in steps):
        _refuse(path, "steps", f"{counted} resources that stay as they are were left out", "a preview with all of them")
    changes = tuple(_changes(path, steps, stack))
    old = tuple(change.old for change in changes if change.old)
    new = tuple(change.new for change in changes if change.new)
    if not new:
        _refuse(path, "steps", "no resource is left: this is the preview of something else", "a preview of an update")
    pools = _pools_before(steps, spec.gpu_pools) if any(one.type != _ROOT for one in old) else []
    before = Side(spec.model_copy(update={"gpu_pools": pools}) if pools is not None else spec, old)
    return Plan(stack, before, Side(spec, new), changes)


def _check_diagnostics(path: Path, diagnostics: object) -> None:
    found = diagnostics if isinstance(diagnostics, list) else []
    said = [str(one.get("message", "")).strip() for one in found if mapping(one).get("severity") == "error"]
    if said:
        message = "the preview failed, and says only half of what would change"
        problem = Problem("diagnostics", message, "; ".join(said), "a preview without errors", "mend that", str(path))
        raise SpecError([problem])


def _changes(path: Path, steps: Iterable[Mapping[str, Any]], stack: str) -> Iterator[Change]:
    by_urn: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for index, step in enumerate(steps):
        _check_step(path, index, step, stack)
        by_urn.setdefault(step["urn"], []).append((index, step))
    for urn, found in by_urn.items():
        yield _change(path, urn, found)


def _check_step(path: Path, index: int, step: Mapping[str, Any], stack: str) -> None:
    field = f"steps[{index}]"
    urn, op = step.get("urn"), step.get("op")
    parts = urn.split("::") if isinstance(urn, str) else []
    if len(parts) < 4 or not parts[0].startswith("urn:pulumi:"):
        _refuse(path, f"{field}.urn", "not the name of a resource", _URN, urn)
    if parts[1] != names.PROJECT:
        _refuse(path, f"{field}.urn", "of another project", names.PROJECT, parts[1])
    if parts[0].removeprefix("urn:pulumi:") != stack:
        _refuse(path, f"{field}.urn", "of another stack", stack, parts[0].removeprefix("urn:pulumi:"))
    if op not in _OPS:
        _refuse(path, f"{field}.op", "not a step of a preview", ", ".join(_OPS), op)


def _change(path: Path, urn: str, found: Iterable[tuple[int, Mapping[str, Any]]]) -> Change:
    """One change of all steps of a resource: a replacement has up to three."""
    old: Resource | None = None
    new: Resource | None = None
    ops = []
    for index, step in found:
        ops.append(_OPS[step["op"]])
        old = _state(path, f"steps[{index}].oldState", urn, step.get("oldState")) or old
        if step["op"] not in _GOES:
            new = _state(path, f"steps[{index}].newState", urn, step.get("newState")) or new
    if set(ops) == {Op.SAME}:
        old, new = old or new, new or old
    if old is None and new is None:
        _refuse(path, f"steps[{index}]", "neither an old state nor a new one")
    if Op.REPLACE in ops and old and new:
        return Change(Op.REPLACE, old, new)
    if old is None or new is None:
        return Change(Op.DELETE if new is None else Op.CREATE, old, new)
    return Change(Op.SAME if set(ops) == {Op.SAME} else Op.UPDATE, old, new)


def _state(path: Path, field: str, urn: str, state: object) -> Resource | None:
    if state is None:
        return None
    if not isinstance(state, dict) or not isinstance(state.get("inputs", {}), dict):
        _refuse(path, field, "not the state of a resource")
    kind = urn.split("::")[2].rpartition("$")[2]
    return Resource(kind, urn.split("::", 3)[3], read(state.get("inputs", {})), urn)


def _pools_before(steps: Iterable[Mapping[str, Any]], pools: Iterable[GpuPoolSpec]) -> list[GpuPoolSpec] | None:
    """The pools as the stack exported them last; None where it exported none."""
    root = next((step for step in steps if f"::{_ROOT}::" in step["urn"]), {})
    exported = mapping(mapping(mapping(root.get("oldState")).get("outputs")).get("gpuPools"))
    if not exported:
        return None
    known = {pool.name: pool for pool in pools}
    return [_pool_before(name, mapping(one), known.get(name)) for name, one in exported.items()]


def _pool_before(name: str, exported: Mapping[str, Any], now: GpuPoolSpec | None) -> GpuPoolSpec:
    cards = int(exported.get("gpus") or 0)
    if now is None:
        # What it was like in detail is not said; only its cards are counted.
        card = {"gpu_model": exported.get("gpuModel"), "gpu_memory": exported.get("gpuMemory")}
        return GpuPoolSpec.model_construct(name=name, provider="existing", nodes=cards, gpus_per_node=1, **card)
    nodes = max(1, cards // now.gpus_per_node)
    if now.eks:
        return now.model_copy(update={"eks": now.eks.model_copy(update={"max": nodes})})
    return now.model_copy(update={"nodes": nodes})


def _refuse(path: Path, field: str, message: str, allowed: str = "", value: object = ABSENT) -> NoReturn:
    allowed = allowed or "JSON of a preview"
    raise SpecError([Problem(field, message, value, allowed, f"write the file with `{_HOW}`", str(path))])
