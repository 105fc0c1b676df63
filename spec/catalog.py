"""Load a stack: its settings and every model file, with all mistakes of all files reported at once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from spec import source
from spec.estate import EstateSpec
from spec.model import ModelSpec
from spec.problems import Problem, SpecError
from spec.resolve import Model, resolve
from spec.source import Source
from spec.validation import closest, validate


@dataclass(frozen=True)
class Estate:
    """Everything that a stack describes."""

    spec: EstateSpec
    models: tuple[Model, ...]


def load(models: Path, settings: Mapping[str, object], stack_file: str) -> Estate:
    """Read and check a whole stack.

    Args:
        models: folder of the model files.
        settings: the stack's own settings, keys as in ``EstateSpec``.
        stack_file: name of the stack file in messages.

    Raises:
        SpecError: with every mistake of the stack file and of all model files.
    """
    estate, problems = validate(EstateSpec, settings, Source(stack_file, settings))
    sources = list(_model_sources(models))
    resolved: list[Model] = []
    for found in sources:
        problems += found.problems
        if found.data:
            model, more = _model(found, estate, models, stack_file)
            problems += more
            resolved += [model] if model else []
    problems += _names(sources, estate.models if estate else {}, stack_file)
    if problems or estate is None:
        raise SpecError(problems)
    return Estate(estate, tuple(resolved))


def _model_sources(models: Path) -> Iterator[Source]:
    if not models.is_dir():
        problem = Problem("", "the folder of model files does not exist", fix=f"create {models}", file=models.name)
        yield Source(models.name, {}, problems=(problem,))
        return
    for path in sorted(models.iterdir()):
        shown = f"{models.name}/{path.name}"
        if path.suffix == ".yaml":
            yield source.read(path, shown)
        elif path.suffix.lower() in {".yml", ".yaml", ".json"}:
            fix = f"rename it to {path.stem}.yaml"
            problem = Problem("", "model files end in .yaml", path.suffix, ".yaml", fix, file=shown)
            yield Source(shown, {}, problems=(problem,))
        elif path.is_dir() and any(path.rglob("*.yaml")):
            message, fix = (
                "model files lie side by side, not in folders",
                f"move the files of {shown} to {models.name}/",
            )
            yield Source(shown, {}, problems=(Problem("", message, fix=fix, file=shown),))


def _model(
    found: Source, estate: EstateSpec | None, models: Path, stack_file: str
) -> tuple[Model | None, list[Problem]]:
    """The model of one file with the stack's override, and its problems under the file that they come from."""
    name = str(found.data.get("name"))
    override = estate.models.get(name, {}) if estate else {}
    model, problems = _check(found, merge(found.data, override), estate, models)
    if not problems or not override:
        return model, problems
    alone, own = _check(found, found.data, estate, models)
    blame = partial(_by_override, override=override, own=own, valid_alone=alone is not None)
    at = f"models.{name}"
    return None, [
        replace(problem.under(at), file=stack_file, line=None)
        if problem.file == found.file and blame(problem)
        else problem
        for problem in problems
    ]


def _by_override(problem: Problem, override: Mapping[str, object], own: list[Problem], *, valid_alone: bool) -> bool:
    """Whether the stack's override is to blame: not where the model file has the same problem without it."""
    return problem not in own and (valid_alone or _reaches(override, problem.field))


def _check(
    found: Source, data: Mapping[str, object], estate: EstateSpec | None, models: Path
) -> tuple[Model | None, list[Problem]]:
    spec, problems = validate(ModelSpec, data, found)
    if spec is None or estate is None:
        return None, problems
    model, problems = resolve(spec, estate, models)
    return model, [
        problem if problem.file else replace(problem, file=found.file, line=found.line(problem.field))
        for problem in problems
    ]


def merge(base: Mapping[str, object], patch: Mapping[str, object]) -> dict[str, object]:
    """JSON merge patch (RFC 7396): mappings merge, null removes, everything else replaces."""
    result = dict(base)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            old = result.get(key)
            result[key] = merge(old if isinstance(old, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def _reaches(override: Mapping[str, object], field: str) -> bool:
    """Whether an override decides the value of a field: it holds it, or replaces something around it."""

    def inside(data: Mapping[str, object], at: str) -> bool:
        for key, value in data.items():
            path = f"{at}.{key}" if at else key
            below = field.startswith((f"{path}.", f"{path}["))
            if field == path or (below and (not isinstance(value, Mapping) or inside(value, path))):
                return True
        return False

    return inside(override, "")


def _names(sources: list[Source], overrides: Mapping[str, Mapping[str, object]], stack_file: str) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for found in sources:
        name = found.data.get("name")
        if not isinstance(name, str):
            continue
        if name in seen:
            yield Problem("name", f"{seen[name]} has the same name", name, fix="give each model a name of its own",
                          file=found.file, line=found.line("name"))  # fmt: skip
        seen.setdefault(name, found.file)
    for name, override in overrides.items():
        if "name" in override:
            yield Problem(f"models.{name}.name", "a stack cannot rename a model", override["name"], "absent",
                          "leave it out; rename the model in its own file", file=stack_file)  # fmt: skip
        if name not in seen:
            yield Problem(f"models.{name}", "no model file has this name", name, ", ".join(sorted(seen)),
                          closest(name, list(seen)) or "remove it", file=stack_file)  # fmt: skip
