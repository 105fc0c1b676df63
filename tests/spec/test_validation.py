"""What an author is told: words instead of types, names that exist, and the whole message as it is printed."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from spec.fields import Spec, refuse
from spec.problems import ABSENT, Problem, SpecError
from spec.source import Source, parse
from spec.validation import closest, field_names, validate


class Inner(Spec):
    depth: int = 0
    colour: Literal["red", "green"] = "red"


class Outer(Spec):
    number: int = 0
    ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5
    percent: Annotated[int, Field(ge=1, le=100)] = 50
    text: str = ""
    switch: bool = False
    inner: Inner | None = None
    many: list[Inner] = Field(default_factory=list)
    named: dict[str, Annotated[Inner, "words"]] = Field(default_factory=dict)
    lists: list[str] = Field(default_factory=list)


def refusal(text: str) -> Problem:
    source = parse(text, "m.yaml")
    spec, (problem,) = validate(Outer, source.data, source)
    assert spec is None
    return problem


class TestMessages:
    @pytest.mark.parametrize(
        ("text", "field", "message"),
        [
            ("number: x", "number", "must be a whole number"), ("number: 1.5", "number", "must be a whole number"),
            ("number: true", "number", "must be a whole number"), ("ratio: x", "ratio", "must be a number"),
            ("ratio: 1", "ratio", "must be less than 1"), ("ratio: 0", "ratio", "must be more than 0"),
            ("percent: 0", "percent", "must be at least 1"), ("percent: 101", "percent", "must be at most 100"),
            ("text: 5", "text", "must be text"), ("switch: on", "switch", "must be true or false"),
            ("inner: 5", "inner", "must be a mapping of fields"), ("named: []", "named", "must be a mapping of fields"),
            ("many: {}", "many", "must be a list"), ("many: [{depth: x}]", "many[0].depth", "must be a whole number"),
            ("named: {a: {depth: x}}", "named.a.depth", "must be a whole number"),
            ("lists: [a, 5]", "lists[1]", "must be text"),
        ],
    )  # fmt: skip
    def test_a_wrong_type_is_named_in_words(self, text: str, field: str, message: str) -> None:
        problem = refusal(text)
        assert (problem.field, problem.message) == (field, message)
        assert problem.allowed in message
        assert problem.fix.startswith("write ")

    def test_one_of_few_values_is_suggested(self) -> None:
        problem = refusal("inner: {colour: gren}")
        assert (problem.allowed, problem.fix) == ("red, green", "did you mean green?")

    def test_a_value_that_is_close_to_none_still_has_a_fix(self) -> None:
        assert refusal("inner: {colour: 5}").fix == "write one of the allowed values"

    @pytest.mark.parametrize(
        ("text", "hint"),
        [("numbr: 1", "number"), ("inner: {dept: 1}", "depth"), ("many: [{dept: 1}]", "depth"),
         ("named: {a: {dept: 1}}", "depth")],
    )  # fmt: skip
    def test_an_unknown_field_suggests_one_of_its_own_level(self, text: str, hint: str) -> None:
        assert refusal(text).fix == f"did you mean {hint}?"

    def test_an_unknown_field_like_no_other_is_to_be_removed(self) -> None:
        assert refusal("zzz: 1").fix == "remove it"

    def test_a_refusal_names_the_field_that_is_to_blame(self) -> None:
        class Checked(Spec):
            pair: Annotated[dict[str, int], Field(strict=True)]

            def model_post_init(self, context: object, /) -> None:
                del context
                refuse("left and right differ", fix="write the same", field="pair")

        spec, (problem,) = validate(Checked, {"pair": {"left": 1}}, Source("m.yaml", {}))
        assert spec is None
        assert (problem.field, problem.value, problem.fix) == ("pair", {"left": 1}, "write the same")


class TestNames:
    @pytest.mark.parametrize(
        ("location", "names"),
        [((), ["number", "ratio", "percent", "text", "switch", "inner", "many", "named", "lists"]),
         (("inner",), ["depth", "colour"]), (("many", 0), ["depth", "colour"]), (("named", "x"), ["depth", "colour"]),
         (("number",), []), (("nothing", "here"), []), (("lists", 0), [])],
    )  # fmt: skip
    def test_those_that_may_be_written_there(self, location: tuple[str | int, ...], names: list[str]) -> None:
        assert field_names(Outer, location) == names

    def test_nothing_is_suggested_for_a_word_like_no_other(self) -> None:
        assert closest("banana", ["number", "ratio"]) == ""


class TestProblem:
    FULL = Problem("a.b", "is wrong", 5, "6, 7", "write 6", "models/m.yaml", 3)

    def test_it_is_printed_with_file_line_field_value_allowed_and_fix(self) -> None:
        assert str(self.FULL) == (
            "models/m.yaml:3: a.b: is wrong\n  value:   5\n  allowed: 6, 7\n  fix:     write 6"
        )  # fmt: skip

    def test_what_it_does_not_know_is_left_out(self) -> None:
        assert str(Problem("", "is wrong", file="m.yaml")) == "m.yaml: is wrong"
        assert str(Problem("a", "is wrong", line=3)) == "a: is wrong"

    def test_nothing_at_all_is_a_value_of_its_own(self) -> None:
        assert "value:   None" in str(Problem("a", "is wrong", None))
        assert "value" not in str(Problem("a", "is wrong", ABSENT))

    def test_a_long_value_is_cut(self) -> None:
        assert max(map(len, str(Problem("a", "is wrong", "x" * 500)).splitlines())) < 100

    @pytest.mark.parametrize(
        ("prefix", "field", "joined"),
        [
            ("a", "b", "a.b"),
            ("a", "[0]", "a[0]"),
            ("a", "", "a"),
            ("", "b", "b"),
            ("", "", ""),
            ("a[0]", "b", "a[0].b"),
        ],
    )
    def test_seen_from_outside_it_has_a_longer_path(self, prefix: str, field: str, joined: str) -> None:
        assert Problem(field, "is wrong").under(prefix).field == joined

    def test_an_error_counts_its_problems_and_says_that_nothing_happened(self) -> None:
        assert str(SpecError([self.FULL])).startswith("1 mistake in the input, nothing was applied\n\nmodels/m.yaml:3")
        assert str(SpecError([self.FULL, self.FULL])).startswith("2 mistakes in the input")
