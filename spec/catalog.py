"""Load a stack: its settings and every model file, with all mistakes of all files reported at once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from spec import names, source
from spec.estate import EstateSpec
from spec.exposure import check_addresses, check_mirrors
from spec.heartbeat import REQUEST_SUFFIX
from spec.merge import lay_over, merge, reaches
from spec.model import ModelSpec
from spec.problems import Problem, SpecError
from spec.resolve import Model, resolve
from spec.revisions import revision_specs, written
from spec.source import Source
from spec.tokens import check_consumers
from spec.validation import closest, validate


@dataclass(frozen=True)
class Estate:
    """Everything that a stack describes."""

    spec: EstateSpec
    models: tuple[Model, ...]

    def model(self, name: str) -> Model:
        """The model of this name.

        Raises:
            SpecError: the stack has none.
        """
        known = {found.name: found for found in self.models}
        if name not in known:
            hint = closest(name, list(known)) or "name one of them"
            raise SpecError([Problem("", "the stack has no such model", name, ", ".join(sorted(known)), hint)])
        return known[name]


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
    overrides = estate.models if estate else {}
    problems += _names(sources, overrides, stack_file)
    problems += _clashes(sources, overrides, stack_file)
    if estate and len(resolved) == len(sources):
        problems += _together(estate, resolved, sources, stack_file)
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
        elif path.suffix.lower() in {".yml", ".yaml", ".json"} and not path.name.endswith(REQUEST_SUFFIX):
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
    model, problems = _check(found, lay_over(found.data, override), estate, models)
    if estate and estate.environment == "prod" and found.data.get("debug") is not None and "debug" not in override:
        fix = f"take it out here; for as long as it is needed, write models: {{{name}: {{debug: …}}}} in {stack_file}"
        problem = Problem("debug", "would hold a GPU in prod for a twin that serves nobody", found.data["debug"],
                          "absent in a model file", fix, file=found.file, line=found.line("debug"))  # fmt: skip
        return None, [*problems, problem]
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
    return problem not in own and (valid_alone or reaches(override, problem.field))


def _check(
    found: Source, data: Mapping[str, object], estate: EstateSpec | None, models: Path
) -> tuple[Model | None, list[Problem]]:
    spec, problems = validate(ModelSpec, data, found)
    revisions, more = revision_specs(data, found, problems)
    problems += more
    if problems or spec is None or estate is None:
        return None, problems
    model, problems = resolve(spec, revisions, estate, models)
    return model, [
        problem if problem.file else replace(problem, file=found.file, line=found.line(problem.field))
        for problem in problems
    ]


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


def _together(estate: EstateSpec, models: list[Model], sources: list[Source], stack_file: str) -> Iterator[Problem]:
    """What is wrong with models only beside each other, where each of them is right."""
    files = {str(found.data.get("name")): found for found in sources}
    traffic = {model.name: model.spec.traffic for model in models}
    for name, problem in (*check_addresses(traffic, estate.ingress), *check_mirrors(models)):
        if reaches(estate.models.get(name, {}), problem.field):
            yield replace(problem.under(f"models.{name}"), file=stack_file)
        else:
            yield replace(problem, file=files[name].file, line=files[name].line(problem.field))
    if estate.tokens:
        asked = {model.name: model.needs_token for model in models}
        for problem in check_consumers(estate.tokens, asked):
            yield replace(problem.under("tokens"), file=stack_file)


def _clashes(
    sources: list[Source], overrides: Mapping[str, Mapping[str, object]], stack_file: str
) -> Iterator[Problem]:
    """Models and revisions whose objects would have the same name: ``a`` with ``b-v1``, and ``a-b`` with ``v1``."""
    files: dict[str, Source] = {}
    for found in sources:
        if isinstance(name := found.data.get("name"), str):
            files.setdefault(name, found)
    makers = {model: (found, f"model {model}") for model, found in files.items()}
    for model, found in files.items():
        for revision in written(merge(found.data, overrides.get(model, {}))):
            name = names.workload(model, revision)
            other, what = makers.setdefault(name, (found, f"revision {revision} of {model}"))
            if other is found:
                continue
            in_file = revision in written(found.data)
            field = f"revisions.{revision}" if isinstance(found.data.get("revisions"), Mapping) else "name"
            field = field if in_file else f"models.{model}.revisions.{revision}"
            message = f"revision {revision} of {model} in {found.file} and {what} in {other.file} are both named {name}"
            fix = "rename the revision or one of the models"
            file, line = (found.file, found.line(field)) if in_file else (stack_file, None)
            yield Problem(field, message, revision if field != "name" else model, fix=fix, file=file, line=line)
