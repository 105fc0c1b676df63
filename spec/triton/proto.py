"""Triton's ModelConfig as protobuf, imported once and cheaply for the whole project."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

_MODULE: Final = "tritonclient.grpc.model_config_pb2"


def _load() -> ModuleType:
    """The generated module without its package.

    ``tritonclient.grpc`` imports numpy and the asynchronous gRPC client, which take most of the import time
    and are of no use here. The module is entered in ``sys.modules`` under its real name, so that a later
    ``import tritonclient.grpc`` shares these message classes.
    """
    if _MODULE in sys.modules:
        return sys.modules[_MODULE]
    package = importlib.util.find_spec("tritonclient")  # its own __init__ is empty
    folder = next(iter(package.submodule_search_locations or ()), None) if package else None
    path = Path(folder or "", "grpc", "model_config_pb2.py")
    found = importlib.util.spec_from_file_location(_MODULE, path)
    if folder is None or found is None or found.loader is None:
        message = "tritonclient is not installed: install the packages of requirements.lock"
        raise ModuleNotFoundError(message, name="tritonclient")
    module = importlib.util.module_from_spec(found)
    sys.modules[_MODULE] = module
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[_MODULE]
        raise
    return module


if TYPE_CHECKING:

    class Node(Message):
        """Any message of the file. Its fields are known at run time only, from the descriptor."""

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401

    class ModelConfig(Node):
        """The message of one model's configuration."""

        name: str
else:
    Node = Message
    ModelConfig = _load().ModelConfig

ROOT: Final[Descriptor] = cast("Descriptor", ModelConfig.DESCRIPTOR)


def is_message(field: FieldDescriptor) -> bool:
    """Whether the field holds messages (a map does too: its entries)."""
    return field.message_type is not None


def is_map(field: FieldDescriptor) -> bool:
    """Whether the field is a protobuf map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def enum_name(message: Node, name: str) -> str:
    """The name of the value that an enum field holds; its number as text when the enum does not know it."""
    number = getattr(message, name)
    enum: EnumDescriptor = cast("Descriptor", message.DESCRIPTOR).fields_by_name[name].enum_type
    value = enum.values_by_number.get(number)
    return value.name if value else str(number)
