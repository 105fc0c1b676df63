"""JSON Schema of Triton's ModelConfig, from its protobuf descriptor: editors complete and check every field."""

from typing import Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from spec.triton.proto import ModelConfig, is_map

Schema = dict[str, object]

_INTEGERS: Final = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)
_NUMBERS: Final = frozenset({FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT})


def definitions() -> dict[str, Schema]:
    """A schema for ModelConfig and for every message and enum inside it, by their protobuf names."""
    found: dict[str, Schema] = {}
    _message(ModelConfig.DESCRIPTOR, found)
    return dict(sorted(found.items()))


def reference() -> Schema:
    """What a schema that embeds ``definitions`` under ``$defs`` writes for a ModelConfig."""
    return _to(ModelConfig.DESCRIPTOR)


def _message(descriptor: Descriptor | None, found: dict[str, Schema]) -> None:
    if descriptor is None or descriptor.full_name in found:
        return
    properties: dict[str, Schema] = {}
    found[descriptor.full_name] = {"type": "object", "additionalProperties": False, "properties": properties}
    for field in descriptor.fields:
        properties[field.name] = _field(field, found)


def _field(field: FieldDescriptor, found: dict[str, Schema]) -> Schema:
    if is_map(field):
        return {"type": "object", "additionalProperties": _value(field.message_type.fields_by_name["value"], found)}
    value = _value(field, found)
    return {"type": "array", "items": value} if field.is_repeated else value


def _value(field: FieldDescriptor, found: dict[str, Schema]) -> Schema:
    if field.message_type is not None:
        _message(field.message_type, found)
        return _to(field.message_type)
    if field.enum_type is not None:
        found[field.enum_type.full_name] = {"enum": [value.name for value in field.enum_type.values]}
        return _to(field.enum_type)
    if field.cpp_type in _INTEGERS:
        return {"type": "integer"}
    if field.cpp_type in _NUMBERS:
        return {"type": "number"}
    return {"type": "boolean" if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else "string"}


def _to(descriptor: Descriptor | EnumDescriptor | None) -> Schema:
    if descriptor is None:
        raise TypeError("not a message or an enum")
    return {"$ref": f"#/$defs/{descriptor.full_name}"}
