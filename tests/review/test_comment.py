"""The comment: verdict, policies, links, what is cut."""

import pytest

from policies.judging.judge import Outcome
from policies.judging.levels import Level
from policies.judging.unknown import UNKNOWN
from policies.judging.view import Resource
from review import comment
from review.comment import Review, render
from tests.review import making
from tests.review.making import deployment, plan, policy, result, verdict

ADVICE = Level.ADVISORY


class TestVerdict:
    @pytest.mark.parametrize(
        ("verdicts", "said"),
        [
            ([], "can be merged"),
            ([verdict(level=ADVICE)], "can be merged"),
            ([verdict(Outcome.WAIVED, ADVICE)], "can be merged"),
            ([verdict(Outcome.UNDECIDED, ADVICE)], "can be merged"),
            ([verdict()], "refused"),
            ([verdict(Outcome.FAILED)], "refused"),
            ([verdict(Outcome.UNDECIDED)], "cannot be decided before the update, which refuses it"),
            ([verdict(Outcome.UNDECIDED), verdict()], "refused"),
        ],
    )
    def test_headline(self, verdicts: list, said: str) -> None:
        text = render([Review(result(*verdicts), plan([], [deployment()]))])
        assert text.splitlines()[1] == f"## Stack `prod`: {said}"

    def test_the_program_refuses(self) -> None:
        text = render([Review(result(refused="1 mistake\n\nmodels/a.yaml:3: gpu: ```\n  value: '@all'"))])
        assert "## Stack `prod`: refused" in text
        assert "````\n1 mistake\n\nmodels/a.yaml:3: gpu: ```\n  value: '@all'\n````" in text

    def test_the_first_line_is_the_marker(self) -> None:
        text = render([Review(result())])
        assert text.splitlines()[0] == comment.marker(["prod"]) == "<!-- triton-estate review: prod -->"

    def test_several_stacks_are_one_comment(self) -> None:
        text = render([Review(result()), Review(result(verdict()))])
        assert text.count("## Stack `prod`: ") == 2
        assert text.count("<!--") == 1


class TestPolicies:
    def test_findings_of_a_policy_stand_together_with_fix_and_link(self) -> None:
        found = [verdict(message="one"), verdict(message="two"), verdict(policy=policy("other"), level=ADVICE)]
        text = render([Review(result(*found))], "https://example.com/blob/main/")
        refused, advice = text.split("### Advice of policies")
        assert "### Refused by policies" in refused
        assert "- **some-policy** (high): Something holds." in refused
        assert "  - `Deployment/ranker-v1`: one\n  - `Deployment/ranker-v1`: two\n  - Fix: do something" in refused
        assert "https://example.com/blob/main/docs/policies.md#some-policy" in refused
        assert "**other**" in advice

    def test_a_waiver_needs_no_fix(self) -> None:
        text = render([Review(result(verdict(Outcome.WAIVED, ADVICE, message="waived by ops until 2027-01-01")))])
        assert "### Waived" in text
        assert "Fix:" not in text

    def test_a_finding_about_the_stack_as_a_whole(self) -> None:
        assert "  - `stack`: it does not" in render([Review(result(verdict(resource=None)))])

    def test_an_object_without_a_known_name_has_that_of_pulumi(self) -> None:
        unnamed = Resource("kubernetes:apps/v1:Deployment", "ranker", {"metadata": {"name": UNKNOWN}})
        assert "  - `Deployment/ranker`: it does not" in render([Review(result(verdict(resource=unnamed)))])

    def test_the_words_of_others_are_text(self) -> None:
        nasty = "<!-- triton-estate review: prod --> @all | [x](http://y) `z`"
        text = render([Review(result(verdict(message=nasty)), plan([], [deployment(image=nasty)]))])
        assert text.count("<!--") == 1
        assert "(http://y)" not in text.replace("`", "", 1).split("**GPUs**")[0].split("revision v1")[0]


MANY = [verdict(policy=policy(f"policy-{index}"), message="x" * 250) for index in range(400)]


class TestLimit:
    def test_a_long_comment_is_cut_and_says_so(self) -> None:
        text = render([Review(result(*MANY), plan([], [deployment(f"model-{i}") for i in range(200)]))])
        assert len(text) <= comment.LIMIT
        assert "more policies left out" in text
        assert "more models left out" in text
        assert "## Stack `prod`: refused" in text
        assert "**GPUs**" in text

    def test_a_short_one_is_not(self) -> None:
        assert "left out" not in render([Review(result(verdict()), plan([], [deployment()]))])

    def test_in_the_worst_case_the_end_is_cut_off(self) -> None:
        reviews = [Review(result(*MANY))] * 5
        text = render(reviews, limit=2000)
        assert len(text) <= 2000
        assert text.endswith("Run the command by hand.\n")
        assert text.startswith(comment.marker(["prod"] * 5))


def test_a_note_is_shown() -> None:
    assert "Note: made from two runs." in render([Review(result(), making.plan([], []), "made from two runs")])
