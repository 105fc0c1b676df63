"""The revisions of a model: the file with each one's differences laid over it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from spec import names, triton
from spec.fields import duration_seconds
from spec.merge import lay_over, removed_in_vain
from spec.model import ModelSpec, RevisionSpec
from spec.problems import Problem
from spec.source import Source
from spec.traffic import TrafficSpec
from spec.triton import ModelConfig
from spec.validation import closest, validate

_LONGEST_TIMEOUT: Final = 24 * 3600
_FIELDS: Final = frozenset(field.alias or name for name, field in RevisionSpec.model_fields.items())
_OF_THE_MODEL: Final = frozenset(field.alias or name for name, field in ModelSpec.model_fields.items()) - _FIELDS


def revision_specs(
    data: Mapping[str, object], source: Source, known: Sequence[Problem]
) -> tuple[dict[str, RevisionSpec], list[Problem]]:
    """Each revision by name, in the order of the file.

    Args:
        data: the plain data of the model file.
        source: the file, for lines in messages.
        known: mistakes of the file itself, which its revisions need not repeat.

    Returns:
        The revisions and the problems of their differences.
    """
    base = {key: value for key, value in data.items() if key in _FIELDS}
    revisions: dict[str, RevisionSpec] = {}
    problems: list[Problem] = []
    for name, differences in written(data).items():
        found = list(_without_effect(base, differences))
        own = {key: value for key, value in differences.items() if key not in _OF_THE_MODEL}
        revision, wrong = validate(RevisionSpec, lay_over(base, own), source)
        found += [problem for problem in wrong if problem not in known]
        for problem in found:
            placed = problem.under(f"revisions.{name}")
            problems.append(replace(placed, file=source.file, line=source.line(placed.field)))
        if revision is not None:
            revisions[name] = revision
    return revisions, problems


def written(data: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Differences of each revision, by name, as far as plain data has them; without any, the default revision."""
    found = data.get("revisions")
    named = found if isinstance(found, Mapping) and found else {names.DEFAULT_REVISION: {}}
    return {str(name): differences for name, differences in named.items() if isinstance(differences, Mapping)}


def _without_effect(base: Mapping[str, object], differences: Mapping[str, object]) -> Iterator[Problem]:
    """What a revision cannot have, and what it removes although it is not there."""
    for key in differences.keys() & _OF_THE_MODEL:
        fix = "leave it out here; it stands at the top of the file"
        yield Problem(key, "belongs to the model as a whole", differences[key], "absent", fix)
    for field in removed_in_vain(base, differences):
        if field not in _OF_THE_MODEL:
            hint = closest(field, list(base)) or "leave it out"
            yield Problem(field, "null removes a field, and the file has no such field", None, fix=hint)


def weights(traffic: TrafficSpec, revisions: Sequence[str]) -> dict[str, int]:
    """Weight of each revision in percent."""
    if not traffic.split:
        return dict.fromkeys(revisions, 100)
    return {name: traffic.split.get(name, 0) for name in revisions}


def check_traffic(traffic: TrafficSpec, revisions: Sequence[str]) -> Iterator[Problem]:
    """Mistakes in ``traffic``, fields relative to it."""
    known = ", ".join(revisions)
    unknown_weights = not traffic.split and len(revisions) > 1
    if unknown_weights:
        example = ", ".join(f"{name}: {100 if name == revisions[0] else 0}" for name in revisions)
        yield Problem("split", "several revisions need weights", allowed="weights of 0 to 100 that add up to 100",
                      fix=f"write traffic: {{split: {{{example}}}}}")  # fmt: skip
    for name in traffic.split:
        if name not in revisions:
            hint = closest(name, list(revisions)) or "name one of them, or add it under revisions"
            yield Problem(f"split.{name}", "the model has no such revision", name, known, hint)
    testers, copied = traffic.testers, traffic.mirror.to if traffic.mirror else None
    for field, name in (("testers.to", testers.to if testers else None), ("mirror.to", copied)):
        if name is not None and name not in revisions:
            hint = closest(name, list(revisions)) or "name one of them, or add it under revisions"
            yield Problem(field, "the model has no such revision", name, known, hint)
    if copied is not None and copied in revisions and not unknown_weights and weights(traffic, revisions)[copied] > 0:
        message = "gets requests of its own already, a copy of each would reach it twice"
        yield Problem("mirror.to", message, copied, "a revision of weight 0", f"set traffic.split.{copied} to 0")
    if not 1 <= duration_seconds(traffic.timeout) <= _LONGEST_TIMEOUT:
        yield Problem("timeout", "not a timeout", traffic.timeout, "1s to 24h", "write for example 300s")


def check_interfaces(serving: Mapping[str, tuple[str, ModelConfig | None]]) -> Iterator[Problem]:
    """Revisions that get the same requests must take them: same name inside Triton, same tensors.

    Args:
        serving: name inside Triton and configuration of each revision that gets requests or copies of them.
    """
    (first, (first_name, _)), *others = serving.items()
    for name, (triton_name, _) in others:
        if triton_name != first_name:
            message = f"requests name the model inside Triton, and revision {first} calls it {first_name}"
            yield Problem(f"revisions.{name}.config.name", message, triton_name, first_name, f"write {first_name}")
    # One that takes its configuration from the repository cannot be compared with.
    configs = [(name, config) for name, (_, config) in serving.items() if config is not None]
    for name, config in configs[1:]:
        for problem in triton.check_revisions(configs[0][1], config):
            yield problem.under(f"revisions.{name}.config")
