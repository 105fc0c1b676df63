"""Load a stack: its settings and every model file, with all mistakes of all files reported at once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from spec import source
from spec.estate import EstateSpec
from spec.model import ModelSpec
from spec.problems import Problem, SpecError
from spec.resolve import Model, resolve
from spec.source import Location, Source
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
    stack = Source(stack_file, settings)
    estate, problems = validate(EstateSpec, settings, stack)
    sources = list(_model_sources(models))
    specs: list[tuple[ModelSpec, Source]] = []
    overrides = estate.models if estate else {}
    for found in sources:
        problems += found.problems
        spec, more = _model(found, overrides, stack_file) if found.data else (None, [])
        problems += more
        if spec is not None:
            specs.append((spec, found))
    problems += _names(sources, overrides, stack_file)
    resolved: list[Model] = []
    for spec, found in specs:
        if estate is None:
            continue
        model, more = resolve(spec, estate, models)
        problems += [_placed(problem, found, overrides, stack_file) for problem in more]
        if model is not None:
            resolved.append(model)
    if problems:
        raise SpecError(problems)
    assert estate is not None  # noqa: S101  # no problems means that it was built
    return Estate(estate, tuple(resolved))


def _model_sources(models: Path) -> Iterator[Source]:
    if not models.is_dir():
        yield Source(models.name, {}, problems=(Problem("", "the folder of model files does not exist", str(models)),))
        return
    for path in sorted(models.iterdir()):
        shown = f"{models.name}/{path.name}"
        if path.suffix == ".yaml":
            yield source.read(path, shown)
        elif path.suffix in {".yml", ".json"}:
            problem = Problem(
                "", "model files end in .yaml", path.suffix, fix=f"rename it to {path.stem}.yaml", file=shown
            )
            yield Source(shown, {}, problems=(problem,))


def _model(
    found: Source, overrides: Mapping[str, Mapping[str, object]], stack_file: str
) -> tuple[ModelSpec | None, list[Problem]]:
    name = found.data.get("name")
    override = overrides.get(name, {}) if isinstance(name, str) else {}
    spec, problems = validate(ModelSpec, merge(found.data, override), found)
    return spec, [_placed(problem, found, overrides, stack_file) for problem in problems]


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


def _placed(problem: Problem, found: Source, overrides: Mapping[str, Mapping[str, object]], stack_file: str) -> Problem:
    """The problem with the file and line of whoever wrote the value: the model file or the stack's override."""
    if problem.file not in {"", found.file}:
        return problem
    location = source.location(problem.field)
    name = found.data.get("name")
    if isinstance(name, str) and location and _reaches(overrides.get(name, {}), location):
        return replace(problem.under(f"models.{name}"), file=stack_file, line=None)
    return replace(problem, file=found.file, line=found.line(location))


def _reaches(data: object, at: Location) -> bool:
    """Whether the override decides the value at a location: it holds it, or replaces something around it."""
    for part in at:
        if isinstance(data, list):
            return True  # a list is replaced as a whole
        if not isinstance(data, Mapping) or part not in data:
            return not isinstance(data, Mapping)
        data = data[part]
    return True


def _names(sources: list[Source], overrides: Mapping[str, Mapping[str, object]], stack_file: str) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for found in sources:
        name = found.data.get("name")
        if not isinstance(name, str):
            continue
        if name in seen:
            yield Problem("name", f"{seen[name]} has the same name", name, fix="give each model a name of its own",
                          file=found.file, line=found.line(("name",)))  # fmt: skip
        seen.setdefault(name, found.file)
    for name in overrides:
        if name not in seen:
            yield Problem(f"models.{name}", "no model file has this name", name, ", ".join(sorted(seen)),
                          closest(name, list(seen)) or "remove it", file=stack_file)  # fmt: skip
