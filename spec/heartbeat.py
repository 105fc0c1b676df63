"""The heartbeat of a model: how often a real request is sent to every replica, and which one."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from spec import triton
from spec.beside import read_beside
from spec.fields import Duration, Spec, duration_seconds
from spec.problems import Problem
from spec.triton import ModelConfig
from spec.validation import closest

_SHORTEST: Final = 5
_LONGEST: Final = 3600
# Tells a request from a model file that somebody wrote in JSON.
REQUEST_SUFFIX: Final = ".request.json"


class HeartbeatSpec(Spec):
    """Real requests to every replica, whether anybody else asks or not.

    Attributes:
        every: time between two rounds.
        timeout: time that a replica has for an answer.
        request: name of a file beside the model file, ending in ``.request.json``, that holds an inference request of
            the v2 protocol; by default zeros and empty texts in the shapes of the model's configuration.
    """

    every: Duration = "60s"
    timeout: Duration = "10s"
    request: str | None = None


@dataclass(frozen=True)
class Heartbeat:
    """A resolved heartbeat.

    Attributes:
        every: seconds between two rounds.
        timeout: seconds that a replica has for an answer.
        request: body of the inference request, None for one made from the model's configuration.
    """

    every: float
    timeout: float
    request: Mapping[str, Any] | None


def resolve_heartbeat(
    spec: HeartbeatSpec | None, config: ModelConfig | None, folder: Path, problems: list[Problem]
) -> Heartbeat | None:
    """The heartbeat of a revision; mistakes go to ``problems``, fields relative to the model file.

    Args:
        spec: as written, None for none.
        config: of the served model, None where only the repository has it.
        folder: folder of the model files.
        problems: receives the mistakes.
    """
    if spec is None:
        return None
    every, timeout = duration_seconds(spec.every), duration_seconds(spec.timeout)
    found: list[Problem] = []
    if not _SHORTEST <= every <= _LONGEST:
        found.append(Problem("every", "not a heartbeat", spec.every, "5s to 1h", "write for example 60s"))
    if not 0 < timeout <= every:
        allowed = f"more than 0, at most every ({spec.every})"
        found.append(Problem("timeout", "a round would end after the next one begins", spec.timeout, allowed,
                             "write for example 10s"))  # fmt: skip
    if config is not None and config.model_transaction_policy.decoupled:
        message = "a decoupled model answers over gRPC streams only, which the heartbeat does not speak"
        found.append(Problem("", message, fix="leave heartbeat out"))
    request = _request(spec.request, config, folder, found) if spec.request is not None else None
    problems += [problem if problem.file else problem.under("heartbeat") for problem in found]
    return Heartbeat(float(every), float(timeout), request)


def _request(file: str, config: ModelConfig | None, folder: Path, problems: list[Problem]) -> Mapping[str, Any] | None:
    if not file.endswith(REQUEST_SUFFIX):
        allowed = f"a name ending in {REQUEST_SUFFIX}"
        problems.append(Problem("request", "not the name of a request", file, allowed, "rename the file"))
        return None
    text, problem = read_beside(file, folder)
    if text is None:
        problems += [problem.under("request")] if problem else []
        return None
    shown = f"{folder.name}/{file}"
    try:
        request = json.loads(text)
    except json.JSONDecodeError as error:
        fix = 'see the v2 inference protocol: {"inputs": [{"name": …, "datatype": …, "shape": […], "data": […]}]}'
        problems.append(Problem("", f"not JSON: {error.msg}", fix=fix, file=shown, line=error.lineno))
        return None
    found = list(_check_request(request, config))
    problems += [replace(one, file=shown) for one in found]
    return None if found else request


def _check_request(request: object, config: ModelConfig | None) -> Iterator[Problem]:
    inputs = request.get("inputs") if isinstance(request, Mapping) else None
    if not isinstance(inputs, list) or not inputs or not all(isinstance(one, Mapping) for one in inputs):
        fix = 'write {"inputs": [{"name": …, "datatype": …, "shape": […], "data": […]}]}'
        yield Problem("inputs", "a request holds a list of inputs", inputs, "one input or more", fix)
        return
    for index, tensor in enumerate(inputs):
        for problem in _check_tensor(tensor):
            yield problem.under(f"inputs[{index}]")
    if config is None:
        return
    declared = {tensor.name: tensor for tensor in config.input}
    given = {str(tensor.get("name")): (index, tensor) for index, tensor in enumerate(inputs)}
    for name, tensor in declared.items():
        if name not in given and not tensor.optional:
            yield Problem("inputs", f"the model needs input {name}", ", ".join(given), fix=f"add {name}")
    for name, (index, tensor) in given.items():
        if name not in declared:
            known = ", ".join(declared)
            hint = closest(name, list(declared)) or "name one of them"
            yield Problem(f"inputs[{index}].name", "the model has no such input", name, known, hint)
        elif tensor.get("datatype") != (wanted := triton.protocol_type(declared[name])):
            message = f"is not the data type of {name}"
            yield Problem(f"inputs[{index}].datatype", message, tensor.get("datatype"), wanted, f"write {wanted}")


def _check_tensor(tensor: Mapping[str, Any]) -> Iterator[Problem]:
    for name in ("name", "datatype", "shape", "data"):
        if name not in tensor:
            yield Problem(name, "is missing", fix=f"add {name}")
    shape, data = tensor.get("shape"), tensor.get("data")
    if not isinstance(shape, list) or not isinstance(data, list):
        return
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        yield Problem("shape", "not a shape", shape, "whole numbers", "write the sizes of this request, batch first")
    elif (count := _count(data)) != math.prod(shape):
        yield Problem("data", f"{count} elements for shape {shape}", allowed=f"{math.prod(shape)} elements",
                      fix="correct the shape or the data")  # fmt: skip


def _count(data: object) -> int:
    return sum(_count(item) for item in data) if isinstance(data, list) else 1
