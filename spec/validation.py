"""Turn what pydantic finds into problems that an author understands."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from spec.problems import ABSENT, Problem
from spec.source import Location, Source, field_path

M = TypeVar("M", bound=BaseModel)

_WANTED: Final = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping of fields",
    "model_type": "a mapping of fields",
    "list_type": "a list",
}
_BOUNDS: Final = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def validate(model: type[M], data: Mapping[str, object], source: Source) -> tuple[M | None, list[Problem]]:
    """Build a spec from plain data.

    Returns:
        The spec and no problems, or None and every problem found.
    """
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        found = [problem for details in error.errors() for problem in _problems(model, details)]
        return None, [replace(problem, file=source.file, line=source.line(problem.field)) for problem in found]


def closest(word: str, names: list[str]) -> str:
    """A ``did you mean`` hint, or ``""``."""
    lowered = {name.lower(): name for name in names}
    matches = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return f"did you mean {lowered[matches[0]]}?" if matches else ""


def _problems(model: type[BaseModel], details: ErrorDetails) -> Iterator[Problem]:
    # pydantic adds "[key]" where the name itself is wrong; its author sees the name.
    location: Location = tuple(part for part in details["loc"] if part != "[key]")
    path, value, context = field_path(location), details["input"], details.get("ctx", {})
    if details["type"] != "refused":
        yield _problem(model, details, location)
        return
    for problem in context["problems"]:
        inside = value.get(problem.field, ABSENT) if isinstance(value, Mapping) and problem.field else value
        yield replace(problem, value=inside if problem.value is ABSENT else problem.value).under(path)


def _problem(model: type[BaseModel], details: ErrorDetails, location: Location) -> Problem:
    path, value, context = field_path(location), details["input"], details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden":
            names = field_names(model, location[:-1])
            hint = closest(str(location[-1]), names) or "remove it"
            return Problem(path, "unknown field", value, ", ".join(names), hint)
        case "missing":
            return Problem(path, "is missing", fix=f"add `{location[-1]}:`")
        case "literal_error":
            allowed = str(context["expected"]).replace("'", "").replace(" or ", ", ")
            hint = closest(str(value), allowed.split(", ")) or "write one of the allowed values"
            return Problem(path, "not one of the allowed values", value, allowed, hint)
        case kind if kind in _WANTED:
            return Problem(path, f"must be {_WANTED[kind]}", value, _WANTED[kind], f"write {_WANTED[kind]}")
        case kind if kind in _BOUNDS:
            key, words = _BOUNDS[kind]
            bound = context[key]
            allowed = f"{words} {int(bound) if bound == int(bound) else bound}"
            return Problem(path, f"must be {allowed}", value, allowed, f"write a number of {allowed}")
    return Problem(path, details["msg"], value)


def field_names(model: type[BaseModel], location: Location) -> list[str]:
    """Names that an author may write at a location of a spec."""
    current: object = model
    for part in location:
        if isinstance(current, type) and issubclass(current, BaseModel):
            field = next((f for n, f in current.model_fields.items() if part in (n, f.alias)), None)
            current = _without_words(field.annotation) if field else None
        elif get_origin(current) in {list, dict}:
            current = _without_words(get_args(current)[-1])
        else:
            return []
    if isinstance(current, type) and issubclass(current, BaseModel):
        return [field.alias or name for name, field in current.model_fields.items()]
    return []


def _without_words(annotation: object) -> object:
    """The type inside ``Annotated[…]`` and ``… | None``."""
    while get_args(annotation) and get_origin(annotation) not in {list, dict}:
        annotation = get_args(annotation)[0]
    return annotation
