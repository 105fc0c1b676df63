"""Field types: quantities, durations, names and images, read exactly or refused with the way out."""

from decimal import Decimal
from typing import Annotated, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from spec.fields import (
    Cpu,
    DnsLabel,
    Duration,
    Image,
    LabelValue,
    Memory,
    ModelName,
    PoolName,
    Spec,
    TritonName,
    cpu_millis,
    duration_seconds,
    mebibytes,
    memory_bytes,
)
from spec.problems import Problem
from spec.source import Source
from spec.validation import validate


def refusal(kind: Any, value: object) -> Problem:
    class Holder(Spec):
        field: Annotated[kind, ...]

    _, (problem,) = validate(Holder, {"field": value}, Source("m.yaml", {}))
    return problem


GOOD: list[tuple[Any, object]] = [
    (Memory, "8Gi"), (Memory, "512Mi"), (Memory, "1.5Gi"), (Memory, "10G"), (Memory, "1Ti"), (Memory, "64Ki"),
    (Cpu, "4"), (Cpu, "0.5"), (Cpu, "500m"), (Cpu, 4), (Cpu, 0.5), (Cpu, "1.25"),
    (Duration, "300s"), (Duration, "5m"), (Duration, "1h"), (Duration, "500ms"), (Duration, "0s"),
    (DnsLabel, "a"), (DnsLabel, "a-1"), (DnsLabel, "a" * 63), (ModelName, "m" * 36), (PoolName, "p" * 59),
    (LabelValue, "team.vision_2-A"), (LabelValue, "7"), (LabelValue, "a" * 63),
    (TritonName, "inception_graphdef"), (TritonName, "v2.1-x"), (TritonName, "t" * 247),
    (Image, "nvcr.io/nvidia/tritonserver:25.08-py3"), (Image, "triton:1"), (Image, "host:5000/a/b:tag"),
    (Image, f"nvcr.io/nvidia/tritonserver@sha256:{'0' * 64}"), (Image, f"host:5000/a:1@sha256:{'f' * 64}"),
    (Image, f"triton:{'t' * 128}"),
]  # fmt: skip
BAD: list[tuple[Any, object]] = [
    (Memory, 10000), (Memory, "10000"), (Memory, "8gi"), (Memory, "8 Gi"), (Memory, "-1Gi"), (Memory, "0Gi"),
    (Memory, "8Gi\n"), (Memory, True), (Memory, None), (Memory, "1e3Mi"), (Memory, "Gi"), (Memory, ["8Gi"]),
    (Cpu, "0"), (Cpu, 0), (Cpu, -1), (Cpu, "4 "), (Cpu, "4\n"), (Cpu, "1.2345"), (Cpu, True), (Cpu, "four"), (Cpu, {}),
    (Duration, 60), (Duration, "60"), (Duration, "1.5h"), (Duration, "-5s"), (Duration, "5s\n"), (Duration, "5 s"),
    (Duration, "5d"), (Duration, None),
    (DnsLabel, ""), (DnsLabel, "A"), (DnsLabel, "1a"), (DnsLabel, "a_b"), (DnsLabel, "a-"), (DnsLabel, "a.b"),
    (DnsLabel, "a\n"), (DnsLabel, "a" * 64), (DnsLabel, 7), (ModelName, "m" * 37), (PoolName, "p" * 60),
    (LabelValue, ""), (LabelValue, "a b"), (LabelValue, "-a"), (LabelValue, "a" * 64), (LabelValue, "a\n"),
    (LabelValue, 5), (LabelValue, "é"),
    (TritonName, ""), (TritonName, "a/b"), (TritonName, ".."), (TritonName, "a b"), (TritonName, "a\n"),
    (TritonName, "t" * 248),
    (Image, "tritonserver"), (Image, "nvcr.io/nvidia/tritonserver"), (Image, "a:b\n"), (Image, "UPPER:1"),
    (Image, "a@sha256:123"), (Image, "https://x/y:1"), (Image, ""), (Image, 5), (Image, "a:1@sha256:123"),
    (Image, f"a:@sha256:{'0' * 64}"), (Image, f"a@sha256:{'0' * 64}:1"), (Image, f"a:1@sha256:{'0' * 64}\n"),
    (Image, f"a:{'t' * 129}"), (Image, f"a:1@sha512:{'0' * 64}"),
]  # fmt: skip


class TestEveryType:
    @pytest.mark.parametrize(("kind", "value"), GOOD)
    def test_a_good_value_is_kept_as_written(self, kind: Any, value: object) -> None:
        assert TypeAdapter(kind).validate_python(value) == str(value)

    @pytest.mark.parametrize(("kind", "value"), BAD)
    def test_a_bad_value_is_refused_with_what_is_allowed_and_what_to_write(self, kind: Any, value: object) -> None:
        problem = refusal(kind, value)
        assert problem.field == "field"
        assert problem.value == value
        assert problem.allowed
        assert problem.fix

    @pytest.mark.parametrize(("kind", "value"), GOOD)
    def test_its_schema_takes_what_the_parser_takes(self, kind: Any, value: object) -> None:
        jsonschema.validate(value, TypeAdapter(kind).json_schema())


class TestMemory:
    def test_a_bare_number_is_refused_with_the_units(self) -> None:
        assert refusal(Memory, 10000).fix == "write 10000Mi for mebibytes or 10000Gi for gibibytes"

    def test_true_is_not_taken_for_a_number(self) -> None:
        assert "True" not in refusal(Memory, value=True).fix

    @pytest.mark.parametrize(
        ("text", "size"),
        [("1Ki", 2**10), ("1Mi", 2**20), ("1.5Gi", 3 * 2**29), ("1Ti", 2**40), ("1k", 10**3), ("1M", 10**6),
         ("2G", 2 * 10**9), ("1T", 10**12)],
    )  # fmt: skip
    def test_binary_and_decimal_units_differ(self, text: str, size: int) -> None:
        assert memory_bytes(text) == size

    @given(st.integers(min_value=1, max_value=10**6), st.sampled_from(["Mi", "Gi"]))
    def test_mebibytes_come_back(self, number: int, unit: str) -> None:
        assert mebibytes(f"{number}{unit}") == number * (1024 if unit == "Gi" else 1)

    @given(st.integers(min_value=1, max_value=10**9))
    def test_units_agree_with_each_other(self, number: int) -> None:
        assert memory_bytes(f"{number * 1024}Ki") == memory_bytes(f"{number}Mi")
        assert memory_bytes(f"{number * 1000}k") == memory_bytes(f"{number}M")

    def test_what_is_no_quantity_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="8 Gi"):
            memory_bytes("8 Gi")


class TestCpu:
    @given(st.integers(min_value=1, max_value=10**6))
    def test_thousandths_come_back(self, millis: int) -> None:
        assert cpu_millis(f"{millis}m") == millis
        assert cpu_millis(str(Decimal(millis) / 1000)) == millis


class TestDuration:
    @given(st.integers(min_value=0, max_value=10**6))
    def test_seconds_come_back_in_every_unit(self, number: int) -> None:
        assert duration_seconds(f"{number}s") == number
        assert duration_seconds(f"{number}m") == 60 * number
        assert duration_seconds(f"{number}h") == 3600 * number
        assert duration_seconds(f"{number * 1000}ms") == number

    def test_what_is_no_duration_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="soon"):
            duration_seconds("soon")


class TestNames:
    def test_an_underscore_is_refused_with_the_dash_form(self) -> None:
        assert refusal(ModelName, "triton_test").fix == "write triton-test"

    def test_a_name_that_is_too_long_says_by_how_much(self) -> None:
        problem = refusal(ModelName, "m" * 40)
        assert problem.message == "longer than 36 characters"
        assert problem.fix == f"write {'m' * 36}"

    def test_a_name_of_digits_only_has_no_close_form(self) -> None:
        assert refusal(ModelName, "42").fix == "choose a name of letters"
