"""What is unknown or secret in Pulumi's wire format, and that nobody takes it for a value."""

import copy
import json
import operator
from collections.abc import Callable

import pytest
from google.protobuf.struct_pb2 import Struct  # ty: ignore[missing-module-member]  # made when it is imported
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime import rpc

from policies.judging.unknown import SEALED, UNKNOWN, CannotDecide, Sealed, from_struct, known, plain

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = {SIGNATURE: "1b47061264138c4ac30d75fd1eb44270"}
OUTPUT = {SIGNATURE: "d0e6a833031e9bbcd3f4e8bde6ca49a4"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (rpc.UNKNOWN, UNKNOWN),
        ("1c4a061d-8072-4f0a-a4cb-0ff528b18fe7", UNKNOWN),
        (SECRET | {"value": "k3y"}, SEALED),
        (SECRET | {"value": rpc.UNKNOWN}, SEALED),
        (OUTPUT, UNKNOWN),
        (OUTPUT | {"secret": True}, SEALED),
        (OUTPUT | {"secret": True, "value": "k3y"}, SEALED),
        (OUTPUT | {"value": rpc.UNKNOWN}, UNKNOWN),
        ({SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": "x"}, UNKNOWN),  # an asset
        ({SIGNATURE: "0def7320c3a5731c473e5ecbe6d01bc7", "assets": {}}, UNKNOWN),  # an archive
        ({SIGNATURE: "5cf8f73096256a8f31e491e813e4eb8e", "urn": "u"}, UNKNOWN),  # a resource
        ({SIGNATURE: "of the future"}, UNKNOWN),
    ],
)  # fmt: skip
def test_marks(given_: object, expected: object) -> None:
    for found in (plain(given_), plain({"a": [given_]})["a"][0]):
        assert found is expected


def test_a_known_output_is_its_value() -> None:
    assert plain(OUTPUT | {"value": {"a": [1.0, 1.5]}, "dependencies": ["u"]}) == {"a": [1, 1.5]}


def test_the_constants_are_those_of_the_sdk() -> None:
    # The marks stand in policies.judging.unknown as texts: the engine's own protocol has them, not the SDK alone.
    assert rpc._special_sig_key == SIGNATURE
    assert {rpc._special_sig_key: rpc._special_secret_sig} == SECRET
    assert plain({rpc._special_sig_key: rpc._special_asset_sig}) is UNKNOWN
    assert plain(rpc.UNKNOWN) is UNKNOWN


def test_whole_numbers_are_whole() -> None:
    found = plain({"a": 3.0, "b": 2.5, "c": True, "d": None, "e": (1.0,)})
    assert json.dumps(found) == '{"a": 3, "b": 2.5, "c": true, "d": null, "e": [1]}'


@given(JSON)
def test_everything_else_stays_what_it_is(value: object) -> None:
    assert plain(value) == value


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_a_struct_says_the_same(value: dict[str, object]) -> None:
    struct = Struct()
    struct.update(value)
    assert from_struct(struct) == value


def test_marks_inside_a_struct() -> None:
    struct = Struct()
    struct.update({"image": rpc.UNKNOWN, "key": SECRET | {"value": "k3y"}, "list": [OUTPUT], "none": None})
    found = from_struct(struct)
    assert found["image"] is UNKNOWN
    assert found["key"] is SEALED
    assert found["list"][0] is UNKNOWN
    assert found["none"] is None


USES: list[Callable[..., object]] = [
    bool, len, iter, str, int, float, hash, lambda value: f"{value}", lambda value: value == 1,
    lambda value: value != 1, lambda value: value < 1, lambda value: value <= 1, lambda value: "a" in value,
    lambda value: value["a"], lambda value: value + 1, lambda value: 1 + value, lambda value: value * 2,
    lambda value: value.items(), lambda value: value.startswith("a"), lambda value: value in {1, 2},
    lambda value: {value: 1}, lambda value: [value].index(1), operator.not_,
]  # fmt: skip


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("mark", [UNKNOWN, SEALED], ids=repr)
def test_whoever_looks_cannot_decide(mark: object, use: Callable[..., object]) -> None:
    with pytest.raises(CannotDecide, match="secret" if isinstance(mark, Sealed) else "not known before the update"):
        use(mark)


@pytest.mark.parametrize("mark", [UNKNOWN, SEALED], ids=repr)
def test_it_can_be_told_apart_shown_and_copied(mark: object) -> None:
    assert not known(mark)
    assert known([mark])
    assert repr(mark) in {"<unknown>", "<secret>"}
    assert copy.deepcopy({"a": mark})["a"] is mark
    with pytest.raises(TypeError):
        json.dumps(mark)
