"""Checks of an ensemble by itself: what it must not have, and how its steps hang together.

Sources: Triton ensemble models; Triton model configuration, section Ensemble Model Instance Groups; the
validation of Triton core (model_config_utils, ensemble_utils).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from spec.problems import ABSENT, Problem
from spec.triton.members import check_members
from spec.triton.parse import closest
from spec.triton.proto import ModelConfig, Node
from spec.triton.values import ENSEMBLE

STEPS: Final = "ensemble_scheduling.step"
_LATEST: Final = -1


def check_ensemble_settings(config: ModelConfig) -> Iterator[Problem]:
    """Platform and steps come together, and nothing that belongs to a running model comes with them."""
    if not config.HasField("ensemble_scheduling"):
        if config.platform == ENSEMBLE:
            fix = "add ensemble_scheduling: {step: [{model_name: …, input_map: …, output_map: …}]}"
            yield Problem("ensemble_scheduling", "an ensemble needs steps", ABSENT, "one step or more", fix)
        return
    if config.platform != ENSEMBLE:
        message = "a model with ensemble_scheduling is of platform ensemble"
        yield Problem("platform", message, config.platform, ENSEMBLE, "write platform: ensemble")
    if config.backend:
        message = "an ensemble has no backend"
        yield Problem("backend", message, config.backend, "absent", "take backend out")
    reasons = {
        "instance_group": "an ensemble has no instances: it only passes tensors on",
        "model_warmup": "an ensemble cannot be warmed up",
    }
    for name, message in reasons.items():
        if getattr(config, name):
            fix = f"take it out, and write {name} in the configuration of the member models"
            yield Problem(name, message, len(getattr(config, name)), "absent", fix)
    if config.HasField("optimization"):
        message = "an ensemble has nothing to optimize"
        fix = "take it out, and write optimization in the configuration of the member models"
        yield Problem("optimization", message, "set", "absent", fix)


def check_ensemble(config: ModelConfig, members: Mapping[str, ModelConfig | None]) -> list[Problem]:
    """The graph of an ensemble, and each step against its member model.

    Args:
        config: the ensemble's configuration; without ensemble_scheduling there is nothing to check.
        members: the models of the same server by name; None stands for one whose configuration is not known.
    """
    if not config.HasField("ensemble_scheduling"):
        return []
    graph = _Graph(config)
    return [*graph.problems(), *check_members(config, members)]


class _Graph:
    """Which step writes and reads which tensor."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._steps = list(config.ensemble_scheduling.step)
        self._inputs = [tensor.name for tensor in config.input]
        self._outputs = [tensor.name for tensor in config.output]
        self._writers: dict[str, int] = {}
        for index, step in enumerate(self._steps):
            for tensor in step.output_map.values():
                self._writers.setdefault(tensor, index)
        self._read = {tensor for step in self._steps for tensor in step.input_map.values()}

    def problems(self) -> Iterator[Problem]:
        if not self._steps:
            fix = "add step: [{model_name: …, model_version: -1, input_map: …, output_map: …}]"
            yield Problem(STEPS, "an ensemble needs steps", [], "one step or more", fix)
            return
        for side in ("input", "output"):
            if not getattr(self._config, side):
                fix = f"add {side}: [{{name: …, data_type: …, dims: […]}}]"
                message = f"an ensemble declares its {side}s, Triton cannot complete them"
                yield Problem(side, message, [], f"one {side} or more", fix)
        for index, step in enumerate(self._steps):
            yield from _step(step, f"{STEPS}[{index}]")
        yield from self._writes()
        yield from self._reads()
        yield from self._interface()
        yield from self._cycles()

    def _writes(self) -> Iterator[Problem]:
        by: dict[str, str] = dict.fromkeys(self._inputs, "the request")
        for index, step in enumerate(self._steps):
            for key in sorted(step.output_map):
                tensor, path = step.output_map[key], f"{STEPS}[{index}].output_map.{key}"
                if tensor in by:
                    message = f"tensor {tensor!r} is written twice: {by[tensor]} writes it already"
                    fix = "give this output a tensor name of its own"
                    yield Problem(path, message, tensor, "a name that nothing else writes", fix)
                elif tensor not in self._read and tensor not in self._outputs:
                    message = f"tensor {tensor!r} is not used: no step reads it and it is no output"
                    fix = "take the entry out, or name the tensor as an input of a step or as an output"
                    yield Problem(path, message, tensor, "a tensor that is read", fix)
                by.setdefault(tensor, f"step {index} ({step.model_name})")

    def _reads(self) -> Iterator[Problem]:
        known = [*self._inputs, *self._writers]
        for index, step in enumerate(self._steps):
            for key in sorted(step.input_map):
                tensor = step.input_map[key]
                if not tensor or tensor in known or not self._inputs:
                    continue
                meant = closest(tensor, known)
                fix = f"write {meant!r}" if meant else "name an ensemble input, or the output of a step"
                message = f"step {index} ({step.model_name}) reads {tensor!r}, which nothing writes"
                path = f"{STEPS}[{index}].input_map.{key}"
                yield Problem(path, message, tensor, ", ".join(known), fix)

    def _interface(self) -> Iterator[Problem]:
        for index, name in enumerate(self._inputs):
            if name and name not in self._read:
                message = f"no step reads the input {name!r}"
                fix = "map it in the input_map of a step, or take it out"
                yield Problem(f"input[{index}].name", message, name, ", ".join(sorted(self._read)), fix)
        for index, name in enumerate(self._outputs):
            if name and name not in self._writers:
                meant = closest(name, list(self._writers))
                hint = f" ({meant!r} is written)" if meant else ""
                message = f"output {name!r} is not written: no step maps an output to it{hint}"
                fix = "name it as a value in the output_map of a step"
                yield Problem(f"output[{index}].name", message, name, ", ".join(self._writers), fix)

    def _cycles(self) -> Iterator[Problem]:
        by = {name: index for name, index in self._writers.items() if name not in self._inputs}
        waits = {
            index: {by[name] for name in step.input_map.values() if name in by}
            for index, step in enumerate(self._steps)
        }
        settled: set[int] = set()
        for start in waits:
            circle = _circle(start, waits, settled)
            if circle:
                names = " -> ".join(f"step {index} ({self._steps[index].model_name})" for index in circle)
                message = f"the steps wait for each other: {names}"
                fix = "break the circle: let one of them read an ensemble input or an earlier step"
                allowed = "steps that read from earlier ones only"
                yield Problem(f"{STEPS}[{circle[0]}].input_map", message, ABSENT, allowed, fix)
            settled.add(start)


def _circle(start: int, waits: Mapping[int, set[int]], settled: set[int]) -> list[int]:
    """A way from a step along what it waits for back to itself; steps in ``settled`` have been reported."""
    ways = [[start]]
    seen: set[int] = set()
    while ways:
        way = ways.pop()
        for other in sorted(waits[way[-1]]):
            if other == start:
                return [*way, start]
            if other not in seen and other not in settled:
                seen.add(other)
                ways.append([*way, other])
    return []


def _step(step: Node, path: str) -> Iterator[Problem]:
    if not step.model_name:
        allowed = "the name of a model of the same server"
        yield Problem(f"{path}.model_name", "a step needs a model", ABSENT, allowed, "add model_name")
    if step.model_version < 1 and step.model_version != _LATEST:
        said = "is absent, which Triton reads as version 0" if step.model_version == 0 else "does not exist"
        fix = "write model_version: -1 for the latest"
        path_to = f"{path}.model_version"
        yield Problem(path_to, f"the version {said}", step.model_version, "-1, or a version from 1", fix)
    if step.model_namespace:
        message = "model_namespace is reserved for Triton itself"
        yield Problem(f"{path}.model_namespace", message, step.model_namespace, "absent", "take it out")
    for name in ("input_map", "output_map"):
        entries = getattr(step, name)
        if not entries:
            fix = f"add {name}: {{tensor of the model: tensor of the ensemble}}"
            yield Problem(f"{path}.{name}", f"{name} is missing", {}, "one entry or more", fix)
        for key in sorted(entries):
            if not key or not entries[key]:
                message = "an entry maps a tensor of the model to a tensor of the ensemble"
                allowed = "two names"
                yield Problem(f"{path}.{name}.{key}", message, entries[key], allowed, "write both names")
