"""Turn what pydantic finds into problems that an author understands."""

import difflib
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from spec.problems import ABSENT, Problem
from spec.source import Location, Source, field_path

M = TypeVar("M", bound=BaseModel)


def validate(model: type[M], data: Mapping[str, object], source: Source) -> tuple[M | None, list[Problem]]:
    """Build a spec from plain data.

    Returns:
        The spec and no problems, or None and every problem found.
    """
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        return None, [_problem(model, details, source) for details in error.errors()]


def closest(word: str, names: list[str]) -> str:
    """A ``did you mean`` hint, or ``""``."""
    matches = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean {matches[0]}?" if matches else ""


def _problem(model: type[BaseModel], details: ErrorDetails, source: Source) -> Problem:
    location: Location = tuple(details["loc"])
    context = details.get("ctx", {})
    message, allowed, fix = details["msg"], str(context.get("allowed", "")), str(context.get("fix", ""))
    value: object = details["input"]
    match details["type"]:
        case "extra_forbidden":
            names = field_names(model, location[:-1])
            message, allowed, value = "unknown field", ", ".join(names), ABSENT
            fix = closest(str(location[-1]), names) or "remove it"
        case "missing":
            message, value, fix = "is missing", ABSENT, f"add `{location[-1]}:`"
        case "refused":
            message = str(context["message"])
        case "literal_error":
            message, allowed = "not one of the allowed values", str(context["expected"])
            fix = closest(str(value), [name.strip("'") for name in allowed.replace(" or ", ", ").split(", ")])
        case kind if kind.endswith("_type"):
            message = message.removeprefix("Input ").replace("a valid ", "a ")
            allowed = kind.removesuffix("_type")
        case "greater_than_equal" | "less_than_equal" | "greater_than" | "less_than":
            message = message.removeprefix("Input ")
    return Problem(
        field_path(location),
        message,
        value,
        allowed=allowed,
        fix=fix,
        file=source.file,
        line=source.line(location),
    )


def field_names(model: type[BaseModel], location: Location) -> list[str]:
    """Names that an author may write at a location of a spec."""
    current: object = model
    for part in location:
        if isinstance(part, int) or not (isinstance(current, type) and issubclass(current, BaseModel)):
            continue
        field = next((f for n, f in current.model_fields.items() if part in (n, f.alias)), None)
        current = _spec_inside(field.annotation) if field else None
    if isinstance(current, type) and issubclass(current, BaseModel):
        return [field.alias or name for name, field in current.model_fields.items()]
    return []


def _spec_inside(annotation: object) -> object:
    if isinstance(annotation, type) and not getattr(annotation, "__args__", None):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        inside = _spec_inside(argument)
        if isinstance(inside, type) and issubclass(inside, BaseModel):
            return inside
    return None
