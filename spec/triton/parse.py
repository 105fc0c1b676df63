"""Triton's ModelConfig out of a YAML mapping, with every mistake reported and none passed over."""

import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from spec.problems import Problem
from spec.triton.proto import ROOT, ModelConfig, is_map, is_message

_INTEGERS: Final[dict[int, tuple[int, int]]] = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_LARGEST_FLOAT: Final[dict[int, float]] = {
    FieldDescriptor.CPPTYPE_FLOAT: float.fromhex("0x1.fffffep127"),
    FieldDescriptor.CPPTYPE_DOUBLE: float.fromhex("0x1.fffffffffffffp1023"),
}
_ZERO_MEANS_DEFAULT: Final = frozenset({"inference.ModelInstanceGroup.count"})


class _Refused:
    """What a value becomes that has been reported: it is left out of the message."""


_REFUSED: Final = _Refused()


def parse(fields: Mapping[str, object]) -> tuple[ModelConfig, list[Problem]]:
    """The message that a YAML mapping of Triton's field names describes, and every mistake in it.

    A field that is refused is left out of the message, so that the rest can still be checked.
    """
    walk = _Walk()
    tree = walk.message(fields, ROOT, "")
    config = ModelConfig()
    if isinstance(tree, dict):
        json_format.ParseDict(tree, config)
    return config, walk.problems


def closest(name: str, known: Sequence[str]) -> str:
    """The known name that was probably meant, or an empty string."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|-", "_", name).lower()
    found = difflib.get_close_matches(snake, known, n=1) or difflib.get_close_matches(name, known, n=1)
    return found[0] if found else ""


def unknown_field(name: str, path: str, message: Descriptor, value: object, line: int | None = None) -> Problem:
    """The problem of a field that a message does not have."""
    known = sorted(message.fields_by_name)
    meant = closest(name, known)
    fix = f"write {meant!r}" if meant else "take it out, or use one of the allowed names"
    return Problem(
        path,
        f"{message.name} has no field {name!r}",
        value,
        allowed=f"the fields of {message.name}: {', '.join(known)}",
        fix=fix,
        line=line,
    )


class _Walk:
    """One walk along the descriptor; turns accepted values into their JSON form."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def _refuse(self, path: str, message: str, value: object, allowed: str, fix: str) -> _Refused:
        self.problems.append(Problem(path, message, value, allowed=allowed, fix=fix))
        return _REFUSED

    def message(self, value: object, message: Descriptor, path: str) -> dict[str, Any] | _Refused:
        if not isinstance(value, Mapping):
            name = path.rpartition(".")[2]
            in_field = value is None and bool(name) and not name.endswith("]")
            fix = f"write `{name}: {{}}` for all defaults" if in_field else "write `field: value` lines under it"
            text = f"{_kind(value)} where {message.name} needs a mapping of field names"
            return self._refuse(path, text, value, f"a mapping ({message.name})", fix)
        tree: dict[str, Any] = {}
        chosen: dict[str, str] = {}
        for key, item in value.items():
            name = key if isinstance(key, str) else str(key)
            at = f"{path}.{name}" if path else name
            field = message.fields_by_name.get(name) if isinstance(key, str) else None
            if field is None:
                self.problems.append(unknown_field(name, at, message, item))
                continue
            if self._chosen_twice(field, at, item, chosen):
                continue
            accepted = self._field(item, field, at)
            if accepted is not _REFUSED:
                tree[name] = accepted
        return tree

    def _chosen_twice(self, field: FieldDescriptor, path: str, value: object, chosen: dict[str, str]) -> bool:
        choice = field.containing_oneof
        if choice is None:
            return False
        first = chosen.setdefault(choice.name, field.name)
        if first == field.name:
            return False
        names = ", ".join(other.name for other in choice.fields)
        message = f"{first!r} is set already and excludes {field.name!r}"
        self._refuse(path, message, value, f"one of {names}", f"keep {first!r} or {field.name!r}, not both")
        return True

    def _field(self, value: object, field: FieldDescriptor, path: str) -> object:
        if is_map(field):
            return self._map(value, field, path)
        if field.is_repeated:
            return self._list(value, field, path)
        return self._single(value, field, path)

    def _list(self, value: object, field: FieldDescriptor, path: str) -> object:
        if not isinstance(value, list | tuple):
            allowed = f"a list of {_wanted(field)}"
            fix = f"write `{field.name}: []`" if value is None else f"write a list: `{field.name}: [ … ]`"
            return self._refuse(path, f"{_kind(value)} where a list is needed", value, allowed, fix)
        items = [self._single(item, field, f"{path}[{index}]") for index, item in enumerate(value)]
        return [item for item in items if item is not _REFUSED]

    def _map(self, value: object, field: FieldDescriptor, path: str) -> object:
        entry = field.message_type.fields_by_name
        if not isinstance(value, Mapping):
            allowed = f"a mapping from {_wanted(entry['key'])} to {_wanted(entry['value'])}"
            text = f"{_kind(value)} where a mapping is needed"
            return self._refuse(path, text, value, allowed, "write `key: value` lines under it")
        tree: dict[str, object] = {}
        for key, item in value.items():
            name = self._key(key, entry["key"], path)
            if isinstance(name, _Refused):
                continue
            if name in tree:
                text = f"key {name} is given twice"
                self._refuse(f"{path}.{name}", text, item, "each key once", "keep one of them")
                continue
            accepted = self._single(item, entry["value"], f"{path}.{name}")
            if accepted is not _REFUSED:
                tree[name] = accepted
        return tree

    def _key(self, key: object, field: FieldDescriptor, path: str) -> str | _Refused:
        if field.cpp_type in _INTEGERS and isinstance(key, str) and key.isascii() and key.isdigit():
            key = int(key)  # a JSON object has no other way to write a number as a key
        at = f"{path}.{key}" if isinstance(key, str | int | float) else path
        accepted = self._single(key, field, at)
        return accepted if isinstance(accepted, _Refused) else str(accepted)

    def _single(self, value: object, field: FieldDescriptor, path: str) -> Any:  # noqa: ANN401 - any JSON value
        if is_message(field):
            return self.message(value, field.message_type, path)
        problem = next(_wrong(value, field), None)
        if problem is None:
            return value
        message, allowed, fix = problem
        return self._refuse(path, message, value, allowed, fix)


def _wrong(value: object, field: FieldDescriptor) -> Iterator[tuple[str, str, str]]:
    """What is wrong with a scalar: message, what is allowed, fix."""
    kind = field.cpp_type
    if value is None:
        wanted = _wanted(field, several=False)
        yield f"nothing where {wanted} is needed", wanted, "give it a value, or take it out"
    elif field.enum_type is not None:
        yield from _wrong_enum(value, field)
    elif kind == FieldDescriptor.CPPTYPE_BOOL:
        if not isinstance(value, bool):
            fix = "write true or false, without quotes"
            yield f"{_kind(value)} where true or false is needed", "true, false", fix
    elif kind in _INTEGERS:
        yield from _wrong_integer(value, field)
    elif kind in _LARGEST_FLOAT:
        yield from _wrong_float(value, field)
    elif not isinstance(value, str):
        scalar = isinstance(value, bool | int | float)
        quoted = str(value).lower() if isinstance(value, bool) else str(value)
        fix = f'put it in quotes: "{quoted}"' if scalar else "write a text"
        yield f"{_kind(value)} where a text is needed", "a text", fix
    elif any("\ud800" <= char <= "\udfff" for char in value):  # no UTF-8
        yield "half of a surrogate pair is not a character", "Unicode text", "write the character itself"


def _wrong_enum(value: object, field: FieldDescriptor) -> Iterator[tuple[str, str, str]]:
    names = list(field.enum_type.values_by_name)
    if isinstance(value, str) and value in names:
        return
    allowed = ", ".join(names)
    if isinstance(value, str):
        ending = [name for name in names if name.endswith(f"_{value.upper()}")]
        meant = ending[0] if ending else closest(value.upper(), names)
        fix = f"write {meant}" if meant else "write one of the allowed names"
        yield f"{field.enum_type.name} has no value {value!r}", allowed, fix
        return
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    named = field.enum_type.values_by_number.get(number) if number is not None else None
    fix = f"write {named.name}" if named else "write one of the allowed names"
    yield f"{_kind(value)} where the name of a {field.enum_type.name} is needed", allowed, fix


def _wrong_integer(value: object, field: FieldDescriptor) -> Iterator[tuple[str, str, str]]:
    least, most = _INTEGERS[field.cpp_type]
    allowed = f"a whole number from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, int):
        yield f"{_kind(value)} where a whole number is needed", allowed, "write digits, without quotes"
    elif not least <= value <= most:
        yield "is out of range", allowed, f"write a number from {least} to {most}"
    elif value == 0 and field.full_name in _ZERO_MEANS_DEFAULT:
        fix = "write 1 or more, or take it out"
        yield "0 reads as absent, Triton would use its default instead", "1 or more", fix


def _wrong_float(value: object, field: FieldDescriptor) -> Iterator[tuple[str, str, str]]:
    largest = _LARGEST_FLOAT[field.cpp_type]
    allowed = f"a number from -{largest:g} to {largest:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield f"{_kind(value)} where a number is needed", allowed, "write a number, without quotes"
    elif (isinstance(value, float) and not math.isfinite(value)) or not -largest <= value <= largest:
        yield "is out of range", allowed, "write a finite number within the range"


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return f"a {type(value).__name__}"


def _wanted(field: FieldDescriptor, *, several: bool | None = None) -> str:
    plural = field.is_repeated if several is None else several
    if field.message_type is not None:
        name = field.message_type.name
        return f"mappings ({name})" if plural else f"a mapping ({name})"
    if field.enum_type is not None:
        return f"{field.enum_type.name} names" if plural else f"a {field.enum_type.name} name"
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return "true or false"
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return "texts" if plural else "a text"
    return "numbers" if plural else "a number"
