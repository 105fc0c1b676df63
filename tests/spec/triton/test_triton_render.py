"""The canonical text form, and the example configuration in it."""

import subprocess
import sys
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from spec.triton import (
    ModelConfig,
    check,
    check_ensemble,
    check_revisions,
    instance_count,
    parse,
    parse_text,
    render,
)
from spec.triton.proto import ROOT

INCEPTION: dict[str, object] = {
    "name": "inception_graphdef",
    "platform": "tensorflow_graphdef",
    "max_batch_size": 128,
    "input": [{"name": "input", "data_type": "TYPE_FP32", "format": "FORMAT_NHWC", "dims": [299, 299, 3]}],
    "output": [
        {
            "name": "InceptionV3/Predictions/Softmax",
            "data_type": "TYPE_FP32",
            "dims": [1001],
            "label_filename": "inception_labels.txt",
        }
    ],
}
GOLDEN = """\
name: "inception_graphdef"
platform: "tensorflow_graphdef"
max_batch_size: 128
input {
  name: "input"
  data_type: TYPE_FP32
  format: FORMAT_NHWC
  dims: [299, 299, 3]
}
output {
  name: "InceptionV3/Predictions/Softmax"
  data_type: TYPE_FP32
  dims: [1001]
  label_filename: "inception_labels.txt"
}
"""
UPSTREAM = """
name: "inception_graphdef"
platform: "tensorflow_graphdef"
max_batch_size: 128
input [
  {
    name: "input"
    data_type: TYPE_FP32
    format: FORMAT_NHWC
    dims: [ 299, 299, 3 ]
  }
]
output [
  {
    name: "InceptionV3/Predictions/Softmax"
    data_type: TYPE_FP32
    dims: [ 1001 ]
    label_filename: "inception_labels.txt"
  }
]
"""


def test_the_example_field_for_field() -> None:
    config, problems = parse(INCEPTION)
    assert problems == []
    assert check(config, gpu=True) == []
    assert check(config, gpu=False) == []
    assert render(config) == GOLDEN
    assert parse_text(GOLDEN) == (config, [])
    assert parse_text(UPSTREAM) == (config, [])


def test_the_order_of_writing_does_not_matter() -> None:
    maps = {"parameters": {key: {"string_value": key} for key in "bca"}, "metric_tags": {"z": "1", "y": "2"}}
    one, _ = parse(INCEPTION | maps)
    two, _ = parse(dict(reversed((INCEPTION | {"parameters": dict(reversed(maps["parameters"].items()))}).items())))
    two.metric_tags["y"] = "2"
    two.metric_tags["z"] = "1"
    assert render(one) == render(two)
    assert render(one).index('key: "a"') < render(one).index('key: "b"') < render(one).index('key: "c"')


def test_an_empty_configuration_is_an_empty_file() -> None:
    assert render(ModelConfig()) == ""


def test_numbers_are_written_in_their_shortest_form() -> None:
    config, _ = parse({"sequence_batching": {"direct": {"minimum_slot_utilization": 0.1}}})
    assert "minimum_slot_utilization: 0.1\n" in render(config)


TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=8)


def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.enum_type is not None:
        return st.sampled_from(list(field.enum_type.values_by_name))
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return TEXT
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if kind == FieldDescriptor.CPPTYPE_FLOAT:
        return st.floats(width=32, allow_nan=False, allow_infinity=False)
    if kind == FieldDescriptor.CPPTYPE_DOUBLE:
        return st.floats(allow_nan=False, allow_infinity=False)
    unsigned = kind in {FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64}
    small = kind in {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32}
    bits = 32 if small else 64
    least, most = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if field.full_name == "inference.ModelInstanceGroup.count":
        least = 1  # an explicit 0 is refused
    return st.integers(least, most)


def _values(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.message_type is None:
        single = _scalars(field)
    elif field.message_type.GetOptions().map_entry:
        key, value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
        return st.dictionaries(_scalars(key), _values(value), max_size=3)
    else:
        single = st.deferred(lambda: _messages(field.message_type))
    return st.lists(single, max_size=3) if field.is_repeated else single


@st.composite
def _messages(draw: st.DrawFn, descriptor: Descriptor) -> dict[str, Any]:
    """The YAML form of a message: some of its fields, one of each choice."""
    if not descriptor.fields:
        return {}
    known = st.sampled_from(list(descriptor.fields))
    fields = draw(st.lists(known, unique_by=lambda field: field.name, max_size=4))
    chosen: dict[str, Any] = {}
    choices: set[str] = set()
    for field in fields:
        if field.containing_oneof is not None:
            if field.containing_oneof.name in choices:
                continue
            choices.add(field.containing_oneof.name)
        chosen[field.name] = draw(_values(field))
    return chosen


@settings(max_examples=150, deadline=None)
@given(_messages(ROOT))
def test_round_trip(fields: dict[str, Any]) -> None:
    config, problems = parse(fields)
    assert problems == []
    text = render(config)
    assert text == "" or text.endswith("\n")
    assert parse_text(text) == (config, [])
    copy = ModelConfig.FromString(config.SerializeToString())
    assert render(copy) == text
    for gpu in (True, False):
        assert all(problem.field and problem.fix for problem in check(config, gpu=gpu))
    members = {config.name: config, "": None}
    members |= {step.model_name: config for step in config.ensemble_scheduling.step}
    assert all(problem.field and problem.fix for problem in check_ensemble(config, members))
    names = [[tensor.name for tensor in side] for side in (config.input, config.output)]
    if all(len(set(side)) == len(side) for side in names):
        assert check_revisions(config, copy) == []
    assert instance_count(config) >= 0
    assert render(config) == text  # looking at a message does not change it
    again = json_format.MessageToDict(config, preserving_proto_field_name=True)
    assert json_format.ParseDict(again, ModelConfig()) == config


def test_importing_stays_cheap_and_shares_the_message_classes() -> None:
    code = """
import sys
from spec.triton import ModelConfig
assert not {"numpy", "grpc", "tritonclient.grpc"} & set(sys.modules)
from tritonclient.grpc import model_config_pb2, service_pb2
assert model_config_pb2.ModelConfig is ModelConfig
assert service_pb2.ModelConfigResponse().config.__class__ is ModelConfig
"""
    subprocess.run([sys.executable, "-c", code], check=True)
