"""Nothing that a fork writes becomes markup, a link, or a call for somebody."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.markdown import code, fenced, line, prose, table

NASTY = st.text(st.sampled_from("`|\\<>@#*_[]()!~$&:/.w \n\r\t\u202e\u200b-ab1"), max_size=40)


class TestProse:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("a|b", r"a\|b"),
            ("`x`", r"\`x\`"),
            ("<script>", "&lt;script&gt;"),
            ("<!-- triton-estate review: prod -->", r"&lt;!-- triton-estate review: prod --&gt;"),
            ("[text](address)", r"\[text\](address)"),
            ("http://a.b", r"http\://a.b"),
            ("www.a.b", r"www\.a.b"),
            ("two\nlines", "two lines"),
            ("a\u202eb", "ab"),
            ("&amp;", "&amp;amp;"),
        ],
    )
    def test_text_stays_text(self, text: str, shown: str) -> None:
        assert prose(text) == shown

    @pytest.mark.parametrize("text", ["@team/leads", "see #12", "a/b#12", "(@all)"])
    def test_nobody_is_called_and_nothing_is_linked(self, text: str) -> None:
        assert not re.search(r"@\w|#\w", prose(text))

    def test_an_image_can_be_copied(self) -> None:
        assert prose("nvcr.io/a/b@sha256:0123") == "nvcr.io/a/b@sha256:0123"

    def test_a_long_text_is_cut(self) -> None:
        assert len(line("x" * 1000)) == 300
        assert line("x" * 1000).endswith("…")

    @given(NASTY)
    def test_no_sign_of_markup_is_bare(self, text: str) -> None:
        shown = prose(text)
        assert not re.search(r"(?<!\\)(\\\\)*[`|*_\[\]~$]", re.sub(r"\\[^\w\s]", "", shown))
        assert "\n" not in shown
        assert not re.search(r"[<>]", shown)


class TestCode:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("plain", "`plain`"),
            ("a`b", "``a`b``"),
            ("`b", "`` `b ``"),
            ("@all", "`@all`"),
            ("a|b", "<code>a&#124;b</code>"),
            ("a\\|b", "<code>a&#92;&#124;b</code>"),
            ("<b>|", "<code>&#60;b&#62;&#124;</code>"),
            ("", "(empty)"),
            (" \n", "(empty)"),
        ],
    )
    def test_a_value_cannot_end_its_span(self, text: str, shown: str) -> None:
        assert code(text) == shown

    @given(NASTY)
    def test_no_value_ends_a_cell_or_a_line(self, text: str) -> None:
        (_, _, found) = table(("a", "b"), [(code(text), prose(text))])
        assert found.count("\n") == 0
        # As GFM takes a row apart: an escaped sign is a sign, every other bar ends a cell.
        assert len(re.findall(r"\|", re.sub(r"\\[!-/:-@\[-`{-~]", "", found))) == 3

    @given(NASTY)
    def test_a_span_ends_where_it_should(self, text: str) -> None:
        shown = code(text)
        if shown.startswith("`"):
            fence = re.match("`+", shown)
            assert fence
            runs = re.findall("`+", shown)
            assert [run for run in runs if len(run) == len(fence[0])] == [fence[0]] * 2


def test_a_block_cannot_be_ended_from_inside() -> None:
    found = list(fenced("a\n````\n  <b>@all"))
    assert found == ["`````", "a", "````", "  <b>@all", "`````"]


def test_a_long_block_is_cut() -> None:
    assert list(fenced("a\n" * 300))[-2:] == ["100 more lines left out", "```"]
