"""YAML files: what the author sees is what is read, and every mistake has its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.problems import Problem
from spec.source import Source, field_path, parse, read


def read_value(text: str) -> object:
    source = parse(f"a: {text}\n", "m.yaml")
    assert source.problems == ()
    return source.data["a"]


def only_problem(text: str) -> Problem:
    (problem,) = parse(text, "m.yaml").problems
    assert problem.file == "m.yaml"
    assert problem.fix
    return problem


class TestScalars:
    @pytest.mark.parametrize(
        "text",
        ["on", "off", "yes", "no", "010", "007", "0x1F", "0o7", "1_000", "12:30:00", "2020-01-01", "True", "NULL",
         ".inf", ".nan", "1e", "1.2.3", "4Gi", "00.5", "0e", "<<"],
    )  # fmt: skip
    def test_everything_that_has_no_plain_meaning_stays_text(self, text: str) -> None:
        assert read_value(text) == text

    @pytest.mark.parametrize(
        ("text", "value"),
        [("true", True), ("false", False), ("0", 0), ("12", 12), ("-3", -3), ("+3", 3), ("0.5", 0.5), (".5", 0.5),
         ("1.", 1.0), ("1e3", 1000.0), ("-2.5E-1", -0.25), ("null", None), ("~", None), ("", None)],
    )  # fmt: skip
    def test_numbers_booleans_and_nothing_have_their_own_type(self, text: str, value: object) -> None:
        found = read_value(text)
        assert found == value
        assert type(found) is type(value)

    @pytest.mark.parametrize("text", ["'12'", '"true"', "'null'", "!!str 12"])
    def test_quotes_make_text(self, text: str) -> None:
        assert isinstance(read_value(text), str)

    @given(st.integers(min_value=-(10**18), max_value=10**18))
    def test_whole_numbers_come_back(self, number: int) -> None:
        assert read_value(str(number)) == number

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_fractions_come_back(self, number: float) -> None:
        assert read_value(repr(number)) == number

    @pytest.mark.parametrize("text", ["1e999", "-1e999", "9" * 5000])
    def test_a_number_beyond_all_measure_is_refused(self, text: str) -> None:
        problem = only_problem(f"name: x\na: {text}\n")
        assert (problem.field, problem.line, problem.message) == ("a", 2, "is too large a number")

    @pytest.mark.parametrize(
        "text",
        ["!!int abc", "!!float x", "!!bool yes", "!!null foo", "!!binary aGk=", "!!timestamp 2020-01-01", "!own x"],
    )
    def test_a_tag_that_would_change_the_value_is_refused(self, text: str) -> None:
        problem = only_problem(f"a: {text}\n")
        assert problem.field == "a"
        assert "tag" in problem.message

    @pytest.mark.parametrize("text", ["!!set {b}", "!own {b: 1}", "!own [1]", "!!omap [b: 1]"])
    def test_a_tag_on_a_mapping_or_a_list_is_refused(self, text: str) -> None:
        assert "tag" in only_problem(f"a: {text}\n").message


class TestLines:
    TEXT = "name: x\n\nresources:\n  cpu: 1\nscaling: {min: 1,\n  max: 2}\nlist:\n  - a\n  - b: 1\n"

    @pytest.mark.parametrize(
        ("path", "line"),
        [("name", 1), ("resources", 3), ("resources.cpu", 4), ("scaling.min", 5), ("scaling.max", 6), ("list[0]", 8),
         ("list[1]", 9), ("list[1].b", 9)],
    )  # fmt: skip
    def test_every_field_knows_its_line(self, path: str, line: int) -> None:
        assert parse(self.TEXT, "m.yaml").line(path) == line

    def test_a_location_is_as_good_as_a_path(self) -> None:
        assert parse(self.TEXT, "m.yaml").line(("list", 1, "b")) == 9

    @pytest.mark.parametrize(("path", "line"), [("resources.gpu.count", 3), ("list[7].x", 7), ("scaling.min.a[0]", 5)])
    def test_a_missing_field_has_the_line_of_what_is_around_it(self, path: str, line: int) -> None:
        assert parse(self.TEXT, "m.yaml").line(path) == line

    def test_a_field_missing_at_the_top_has_the_line_where_the_fields_begin(self) -> None:
        assert parse("# comment\nname: x\n", "m.yaml").line("owner") == 2

    def test_a_dot_in_a_key_does_not_hide_the_line(self) -> None:
        assert parse("members:\n  a.b:\n    config: 1\n", "m.yaml").line("members.a.b.config") == 3

    def test_without_lines_there_is_none(self) -> None:
        assert Source("Pulumi.dev.yaml", {}).line("environment") is None

    @pytest.mark.parametrize(
        ("location", "path"),
        [((), ""), (("a",), "a"), (("a", 0), "a[0]"), (("a", 0, "b"), "a[0].b"), (("a", 0, 1), "a[0][1]")],
    )
    def test_a_path_is_written_as_authors_write_it(self, location: tuple[str | int, ...], path: str) -> None:
        assert field_path(location) == path


class TestDuplicateKeys:
    def test_the_second_one_is_named_with_both_lines(self) -> None:
        problem = only_problem("name: a\nowner: b\nname: c\n")
        assert (problem.field, problem.line) == ("name", 3)
        assert problem.message == "given twice, first on line 1"

    def test_they_are_found_at_every_depth(self) -> None:
        problems = parse("a: {b: 1, b: 2}\nc:\n  - {d: 1, d: 2}\n", "m.yaml").problems
        assert [problem.field for problem in problems] == ["a.b", "c[0].d"]

    def test_a_number_and_its_text_are_the_same_key(self) -> None:
        assert only_problem("1: a\n'1': b\n").field == "1"


class TestFiles:
    def test_a_missing_file_says_so(self, tmp_path: Path) -> None:
        (problem,) = read(tmp_path / "m.yaml", "models/m.yaml").problems
        assert (problem.file, problem.message) == ("models/m.yaml", "the file does not exist")
        assert str(tmp_path) in problem.fix

    def test_a_folder_cannot_be_read(self, tmp_path: Path) -> None:
        (problem,) = read(tmp_path, "models/m.yaml").problems
        assert problem.message.startswith("cannot be read")

    def test_latin_1_is_not_utf_8(self, tmp_path: Path) -> None:
        (tmp_path / "m.yaml").write_bytes("name: müller".encode("latin-1"))
        (problem,) = read(tmp_path / "m.yaml", "m.yaml").problems
        assert problem.message.startswith("is not UTF-8 text")

    @pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n"])
    def test_an_empty_file_is_no_model(self, text: str) -> None:
        assert only_problem(text).message in {"the file is empty", "must hold a mapping of fields"}

    @pytest.mark.parametrize("text", ["- a\n- b\n", "just text\n", "12\n"])
    def test_anything_but_a_mapping_is_refused(self, text: str) -> None:
        assert only_problem(text).message == "must hold a mapping of fields"

    def test_a_byte_order_mark_and_carriage_returns_do_no_harm(self) -> None:
        assert parse("\ufeffa: 1\r\nb: 2\r\n", "m.yaml").data == {"a": 1, "b": 2}

    def test_a_yaml_1_1_directive_does_not_bring_its_booleans_back(self) -> None:
        assert parse("%YAML 1.1\n---\na: on\n", "m.yaml").data == {"a": "on"}


class TestSyntax:
    @pytest.mark.parametrize(
        ("text", "line"),
        [("a: 1\nb: [1, 2\nc: 3\n", 3), ("a:\n\tb: 1\n", 2), ("a: 'x\n", 2), ("a: 1\n b: 2\n", 2), ("a: *x\n", 1),
         ("a: 1\n---\nb: 2\n", 2), ("a: 1\nb: \x07\n", 2), ("a: 1\n\nb: \x00\n", 3)],
    )  # fmt: skip
    def test_the_line_is_named(self, text: str, line: int) -> None:
        problem = only_problem(text)
        assert problem.line == line
        assert problem.message.startswith("not valid YAML")

    def test_a_tab_is_named_as_such(self) -> None:
        assert "'\\t'" in only_problem("a:\n\tb: 1\n").message

    def test_a_file_that_cannot_be_parsed_holds_nothing(self) -> None:
        assert parse("a: 1\nb: [\n", "m.yaml").data == {}

    @pytest.mark.parametrize("text", ["a: " + "[" * 5000, "a: " + "[" * 900 + "]" * 900])
    def test_endless_nesting_is_refused(self, text: str) -> None:
        assert only_problem(text).message == "is nested too deeply"

    @pytest.mark.parametrize("key", ["[a, b]", "{a: 1}"])
    def test_only_text_names_a_field(self, key: str) -> None:
        assert "name of a field" in only_problem(f"? {key}\n: 1\n").message


class TestAliases:
    def test_an_alias_stands_for_its_value(self) -> None:
        assert parse("a: &x {b: 1}\nc: *x\n", "m.yaml").data == {"a": {"b": 1}, "c": {"b": 1}}

    @pytest.mark.parametrize("text", ["a: &x {b: *x}\n", "a: &x [1, *x]\n"])
    def test_one_around_itself_is_refused(self, text: str) -> None:
        assert "around itself" in only_problem(text).message

    def test_few_lines_cannot_unfold_without_end(self) -> None:
        lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
        assert "values" in only_problem("\n".join(lines)).message

    def test_a_merge_key_is_refused_with_the_way_out(self) -> None:
        problem = only_problem("a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n")
        assert (problem.field, problem.line) == ("c.<<", 3)
        assert "merge" in problem.message
        assert "alias" in problem.fix
