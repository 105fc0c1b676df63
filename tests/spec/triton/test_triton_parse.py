"""YAML to message: everything that is valid comes through, every mistake is told."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spec.problems import ABSENT
from spec.triton import ModelConfig, parse, parse_text

VALID: dict[str, object] = {
    "name": "everything",
    "max_batch_size": 2**31 - 1,
    "backend": "python",
    "version_policy": {"specific": {"versions": [1, 2**63 - 1]}},
    "input": [{"name": "a/b", "data_type": "TYPE_BF16", "dims": [-1, 3], "optional": True}],
    "dynamic_batching": {"priority_queue_policy": {1: {"timeout_action": "DELAY"}, "2": {}}},
    "instance_group": [{"kind": "KIND_CPU", "count": 4}],
    "parameters": {"KEY": {"string_value": "value"}},
    "metric_tags": {"team": "vision"},
    "optimization": {"graph": {"level": -1}},
    "model_metrics": {"metric_control": [{"histogram_options": {"buckets": [1, 2.5]}}]},
}


def test_every_kind_of_value() -> None:
    config, problems = parse(VALID)
    assert problems == []
    assert config.version_policy.specific.versions == [1, 2**63 - 1]
    assert config.input[0].name == "a/b"
    assert sorted(config.dynamic_batching.priority_queue_policy) == [1, 2]
    assert config.parameters["KEY"].string_value == "value"
    assert config.model_metrics.metric_control[0].histogram_options.buckets == [1, 2.5]
    assert not config.HasField("sequence_batching")


def test_an_empty_mapping_is_present() -> None:
    config, problems = parse({"dynamic_batching": {}})
    assert problems == []
    assert config.HasField("dynamic_batching")


MISTAKES: dict[str, tuple[dict[str, object], str, str, str]] = {
    "a wrong case": ({"maxBatchSize": 4}, "maxBatchSize", "has no field", "write 'max_batch_size'"),
    "a typo": ({"dynamic_batchin": {}}, "dynamic_batchin", "has no field", "write 'dynamic_batching'"),
    "a typo below": ({"input": [{"dim": [1]}]}, "input[0].dim", "ModelInput has no field", "write 'dims'"),
    "nothing alike": ({"zzz": 1}, "zzz", "has no field", "take it out"),
    "nothing for a message": (
        {"dynamic_batching": None},
        "dynamic_batching",
        "nothing",
        "dynamic_batching: {}",
    ),
    "nothing for a list": ({"input": None}, "input", "a list is needed", "input: []"),
    "nothing for a value": ({"name": None}, "name", "nothing", "give it a value"),
    "nothing in a list": ({"input": [None]}, "input[0]", "nothing", "under it"),
    "one where a list is needed": (
        {"input": {"name": "x"}},
        "input",
        "a mapping where a list",
        "write a list",
    ),
    "a list for a message": ({"dynamic_batching": []}, "dynamic_batching", "a list where", "field: value"),
    "a number as text": ({"max_batch_size": "8"}, "max_batch_size", "a text where", "without quotes"),
    "a fraction": ({"max_batch_size": 8.0}, "max_batch_size", "a whole number is needed", "digits"),
    "true as a number": ({"max_batch_size": True}, "max_batch_size", "a whole number is needed", "digits"),
    "too large": ({"max_batch_size": 2**31}, "max_batch_size", "out of range", "2147483647"),
    "below zero": (
        {"dynamic_batching": {"max_queue_delay_microseconds": -1}},
        "dynamic_batching.max_queue_delay_microseconds",
        "out of range",
        "from 0 to 18446744073709551615",
    ),
    "yes": (
        {"response_cache": {"enable": "yes"}},
        "response_cache.enable",
        "true or false",
        "without quotes",
    ),
    "one": (
        {"response_cache": {"enable": 1}},
        "response_cache.enable",
        "a number where true or false",
        "true",
    ),
    "a text that is a number": (
        {"parameters": {"A": {"string_value": 8}}},
        "parameters.A.string_value",
        "a number where a text",
        'put it in quotes: "8"',
    ),
    "a text that is true": (
        {"parameters": {"A": {"string_value": True}}},
        "parameters.A.string_value",
        "where a text",
        'put it in quotes: "true"',
    ),
    "a bare parameter": (
        {"parameters": {"A": "b"}},
        "parameters.A",
        "a text where ModelParameter",
        "field: value",
    ),
    "a key that is a number": ({"cc_model_filenames": {7.5: "x"}}, "cc_model_filenames.7.5", "text", '"7.5"'),
    "a list for a map": ({"metric_tags": ["a"]}, "metric_tags", "a mapping is needed", "key: value"),
    "a key that is no number": (
        {"dynamic_batching": {"priority_queue_policy": {"high": {}}}},
        "dynamic_batching.priority_queue_policy.high",
        "a whole number is needed",
        "digits",
    ),
    "a key twice": (
        {"dynamic_batching": {"priority_queue_policy": {1: {}, "1": {}}}},
        "dynamic_batching.priority_queue_policy.1",
        "given twice",
        "keep one",
    ),
    "an enum typo": (
        {"input": [{"data_type": "TYPE_FP23"}]},
        "input[0].data_type",
        "no value",
        "write TYPE_FP",
    ),
    "an enum without its prefix": (
        {"input": [{"data_type": "fp32"}]},
        "input[0].data_type",
        "no value",
        "TYPE_FP32",
    ),
    "an enum as number": (
        {"input": [{"data_type": 11}]},
        "input[0].data_type",
        "a number where",
        "TYPE_FP32",
    ),
    "an enum as list": (
        {"input": [{"format": []}]},
        "input[0].format",
        "a list where the name",
        "allowed names",
    ),
    "two of a choice": (
        {"version_policy": {"all": {}, "latest": {}}},
        "version_policy.latest",
        "excludes",
        "keep",
    ),
    "a count of zero": (
        {"instance_group": [{"count": 0}]},
        "instance_group[0].count",
        "0 reads as absent",
        "1 or more",
    ),
    "no number": (
        {"model_metrics": {"metric_control": [{"histogram_options": {"buckets": [math.nan]}}]}},
        "model_metrics.metric_control[0].histogram_options.buckets[0]",
        "out of range",
        "finite",
    ),
    "a number too large for its type": (
        {"sequence_batching": {"direct": {"minimum_slot_utilization": 1e39}}},
        "sequence_batching.direct.minimum_slot_utilization",
        "out of range",
        "finite",
    ),
    "half a character": ({"name": "\ud800"}, "name", "surrogate", "the character itself"),
    "bytes": ({"name": b"x"}, "name", "a bytes where a text", "write a text"),
    "a share as text": (
        {"sequence_batching": {"direct": {"minimum_slot_utilization": "0.5"}}},
        "sequence_batching.direct.minimum_slot_utilization",
        "a text where a number",
        "without quotes",
    ),
}


@pytest.mark.parametrize(("fields", "path", "words", "fix"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told(fields: dict[str, object], path: str, words: str, fix: str) -> None:
    _, (problem,) = parse(fields)
    assert problem.field == path
    assert words in problem.message
    assert fix in problem.fix
    assert problem.allowed
    assert problem.value is not ABSENT


def test_all_mistakes_at_once_and_the_rest_is_kept() -> None:
    fields = {
        "nmae": "x",
        "max_batch_size": "4",
        "input": [{"name": 1, "dims": [3, "x"]}],
        "platform": "ensemble",
    }
    config, problems = parse(fields)
    assert [problem.field for problem in problems] == [
        "nmae",
        "max_batch_size",
        "input[0].name",
        "input[0].dims[1]",
    ]
    assert config.platform == "ensemble"
    assert config.input[0].dims == [3]


def test_text_syntax_is_told_with_its_place() -> None:
    config, (problem,) = parse_text('name: "x"\nmax_batch_size: many\n')
    assert config == ModelConfig()
    assert problem.line == 2
    assert "column 17" in problem.message


def test_text_field_and_enum_typos_are_suggested() -> None:
    _, (problem,) = parse_text("max_batchsize: 4")
    assert (problem.fix, problem.line) == ("write 'max_batch_size'", 1)
    _, (problem,) = parse_text("input {\n data_type: TYPE_FP23\n}")
    assert problem.line == 2
    assert problem.value == "TYPE_FP23"
    assert "TYPE_FP" in problem.fix


def test_what_protobuf_passes_over_in_a_text() -> None:
    _, problems = parse_text("""
        input { data_type: 99 }
        parameters { key: "a" value { string_value: "1" } }
        parameters { key: "a" value { string_value: "2" } }
        ensemble_scheduling { step {
          output_map { key: "OUT" value: "a" }
          output_map { key: "OUT" value: "b" }
        } }
        """)
    assert {problem.field: problem.value for problem in problems} == {
        "input[0].data_type": 99,
        "ensemble_scheduling.step[0].output_map.OUT": "b",
        "parameters.a": ABSENT,
    }
    assert all(problem.fix and problem.allowed for problem in problems)


NAMES = st.sampled_from(
    [
        *(field for field in ("name", "input", "output", "dims", "data_type", "step", "parameters", "kind")),
        *(field for field in ("dynamic_batching", "version_policy", "all", "latest", "instance_group", "count")),
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.dates(),
    st.just("TYPE_FP32"),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(NAMES | st.text() | st.integers() | st.none() | st.floats(), inner, max_size=4)
    ),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None)
@given(ANYTHING)
def test_parse_never_raises(data: object) -> None:
    config, problems = parse(data)  # ty: ignore[invalid-argument-type] that is the point
    assert isinstance(config, ModelConfig)
    assert isinstance(data, Mapping) or problems
    assert all(str(problem) and problem.fix for problem in problems)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8")) | st.text(alphabet='{}[]<>:;,"\\ \nnameip_t0129'))
def test_parse_text_never_raises(text: str) -> None:
    config, problems = parse_text(text)
    assert problems == [] or all(problem.message for problem in problems)
    assert isinstance(config, ModelConfig)
