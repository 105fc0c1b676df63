"""config.pbtxt: read with the mistakes that protobuf lets pass, and written in its canonical form."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from google.protobuf import descriptor_pool, message_factory, text_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto  # ty: ignore[missing-module-member] made at run time
from google.protobuf.message import Message

from spec.problems import ABSENT, Problem
from spec.triton.parse import closest, unknown_field
from spec.triton.proto import ROOT, ModelConfig, is_map, is_message

_NO_FIELD: Final = re.compile(r'Message type "([\w.]+)" has no field named "(.+?)"\.')
_NO_VALUE: Final = re.compile(r'Enum type "([\w.]+)" has no value named (.+?)\.$')
_POSITION: Final = re.compile(r"^\d+:\d+ : ")
_FORM: Final = "the protobuf text form of Triton's ModelConfig"


def parse_text(text: str) -> tuple[ModelConfig, list[Problem]]:
    """The message in a config.pbtxt, and its mistakes.

    Protobuf stops at the first syntax error. What it reads without complaint and Triton would then see
    otherwise than written (a map key given twice, an enum number without a name) is reported all at once.
    """
    config = ModelConfig()
    try:
        twin = text_format.Parse(text, _twin()())
        text_format.Parse(text, config)
    except text_format.ParseError as error:
        return ModelConfig(), [_syntax_problem(error)]
    except (ValueError, RecursionError) as error:
        problem = Problem("", f"cannot be read: {error}", allowed=_FORM, fix="write plain UTF-8 text")
        return ModelConfig(), [problem]
    return config, list(_passed_over(twin, ROOT, ""))


def render(config: ModelConfig) -> str:
    """The canonical config.pbtxt of a message: the same message always gives the same bytes.

    Fields come in the order of Triton's proto file, map entries sorted by key, numbers in their shortest form
    that reads back as the same value.
    """
    return text_format.MessageToString(config, use_short_repeated_primitives=True, use_index_order=True)


@cache
def _twin() -> type[Message]:
    """ModelConfig with its maps read as plain lists of entries, which keeps a key that is given twice."""
    file = FileDescriptorProto.FromString(ROOT.file.serialized_pb)
    pending = list(file.message_type)
    while pending:
        message = pending.pop()
        message.options.ClearField("map_entry")
        pending.extend(message.nested_type)
    pool = descriptor_pool.DescriptorPool()  # ty: ignore[possibly-missing-implicit-call] C type
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(ROOT.full_name))


def _passed_over(twin: Message, real: Descriptor, path: str) -> Iterator[Problem]:
    for field, value in twin.ListFields():
        at = f"{path}.{field.name}" if path else field.name
        known = real.fields_by_name[field.name]
        if is_map(known):
            yield from _entries(value, known, at)
        elif not field.is_repeated:
            yield from _value(value, field, known, at)
        else:
            for index, item in enumerate(value):
                yield from _value(item, field, known, f"{at}[{index}]")


def _entries(entries: list[Message], known: FieldDescriptor, path: str) -> Iterator[Problem]:
    seen: set[object] = set()
    holds_messages = known.message_type.fields_by_name["value"].message_type
    for entry in entries:
        key, value = (getattr(entry, part) for part in ("key", "value"))
        at = f"{path}.{key}"
        if key in seen:
            message = f"key {key!r} is given twice, Triton keeps the last and drops the other"
            shown = ABSENT if holds_messages else value
            fix = "keep one entry, or give the other its own key"
            yield Problem(at, message, shown, allowed="each key once", fix=fix)
        seen.add(key)
        if holds_messages:
            yield from _passed_over(value, holds_messages, at)


def _value(value: object, field: FieldDescriptor, known: FieldDescriptor, path: str) -> Iterator[Problem]:
    if is_message(field) and isinstance(value, Message):
        yield from _passed_over(value, known.message_type, path)
    elif field.enum_type is not None and value not in field.enum_type.values_by_number:
        allowed = ", ".join(field.enum_type.values_by_name)
        message = f"{field.enum_type.name} has no value {value}"
        yield Problem(path, message, value, allowed, "write one of the names")


def _syntax_problem(error: text_format.ParseError) -> Problem:
    line, column = error.GetLine(), error.GetColumn()
    message = _POSITION.sub("", str(error)).removesuffix(".")
    if found := _NO_FIELD.search(str(error)):
        owner = _find(found[1])
        if isinstance(owner, Descriptor):
            return unknown_field(found[2], "", owner, ABSENT, line)
    if found := _NO_VALUE.search(str(error)):
        owner = ROOT.file.pool.FindEnumTypeByName(found[1])
        names = list(owner.values_by_name)
        meant = closest(found[2], names)
        fix = f"write {meant}" if meant else "write one of the allowed names"
        message = f"{owner.name} has no value {found[2]}"
        return Problem("", message, found[2], ", ".join(names), fix, line=line)
    where = f" (line {line}, column {column})" if line else ""
    fix = "correct the text there" if line else "correct the text"
    return Problem("", message + where, allowed=_FORM, fix=fix, line=line)


def _find(full_name: str) -> Descriptor | None:
    try:
        return ROOT.file.pool.FindMessageTypeByName(full_name)
    except KeyError:
        return None
