"""One comment on a pull request: verdict, plan in words, figures, policies."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from policies.judging.judge import Outcome, Verdict
from policies.judging.policy import Policy
from review import plan_text
from review.changes import Plan
from review.judging import Result
from review.markdown import code, fenced, left_out, prose

LIMIT: Final = 65_536  # characters of a comment on GitHub
# Items of each list, from the most to the fewest, until the comment is short enough.
_CAPS: Final = (100_000, 200, 100, 50, 25, 12, 6, 3, 1)
_OUT: Final = "\n\nThe rest was left out: the comment would be longer than GitHub takes. Run the command by hand.\n"
_SAID: Final = {
    "refused": "refused",
    "cannot be decided": "cannot be decided before the update, which refuses it",
    "passes": "can be merged",
}
_GROUPS: Final = (
    (Outcome.VIOLATED, True, "Refused by policies"),
    (Outcome.FAILED, True, "Policies that failed themselves"),
    (Outcome.UNDECIDED, True, "Policies that cannot decide, which refuses here"),
    (Outcome.VIOLATED, False, "Advice of policies"),
    (Outcome.UNDECIDED, False, "Policies that cannot decide"),
    (Outcome.WAIVED, False, "Waived"),
)
Link = Callable[[str], str]


@dataclass(frozen=True)
class Review:
    """What is to be said of one stack.

    Attributes:
        result: what the policies say.
        plan: what changes; None where the program refused its input.
        note: what a reader has to know about how the plan was made, in words of our own or of a program.
    """

    result: Result
    plan: Plan | None = None
    note: str = ""


def marker(stacks: Iterable[str]) -> str:
    """The first line, by which the next run finds the comment to replace; a reader does not see it."""
    return f"<!-- triton-estate review: {' '.join(stacks)} -->"


def render(reviews: Sequence[Review], link: str = "", limit: int = LIMIT) -> str:
    """The comment as Markdown.

    Args:
        reviews: one for each stack.
        link: address of the project's files, to which their paths are added; without it paths are shown as they are.
        limit: most characters; lists are cut to it, and say so.
    """
    for cap in _CAPS:
        text = "\n".join(_lines(reviews, link, cap)).rstrip() + "\n"
        if len(text) <= limit:
            return text
    kept = text[: limit - len(_OUT)]
    return kept[: kept.rfind("\n")] + _OUT


def _lines(reviews: Sequence[Review], link: str, cap: int) -> Iterator[str]:
    def to(path: str) -> str:
        return f"[{code(path)}]({link.rstrip('/')}/{path})" if link else code(path)

    yield marker(review.result.stack for review in reviews)
    for review in reviews:
        yield from _stack(review, to, cap)
    yield "How to read this, levels, waivers: " + to("docs/review.md") + "."


def _stack(review: Review, to: Link, cap: int) -> Iterator[str]:
    result, plan = review.result, review.plan
    yield f"## Stack {code(result.stack)}: {_SAID[result.headline]}"
    yield ""
    if result.refused:
        yield "The program refuses its own input, so no plan was made:"
        yield ""
        yield from fenced(result.refused)
        yield ""
        return
    yield _counts(result)
    yield ""
    if review.note:
        yield f"Note: {prose(review.note, 2000)}."
        yield ""
    yield from _policies(result.verdicts, to, cap, refusing=True)
    if plan:
        yield from plan_text.lines(plan, cap)
    yield from _policies(result.verdicts, to, cap, refusing=False)


def _counts(result: Result) -> str:
    found = [one for one in result.verdicts if one.refuses]
    advice = sum(not one.refuses and one.outcome is not Outcome.WAIVED for one in result.verdicts)
    parts = [f"{result.policies} policies looked at {result.resources} resources"]
    parts.append(f"{len(found)} {'finding refuses' if len(found) == 1 else 'findings refuse'} this change")
    parts.append(f"{advice} {'is' if advice == 1 else 'are'} advice")
    if waived := result.count(Outcome.WAIVED):
        parts.append(f"{waived} {'is' if waived == 1 else 'are'} waived")
    return "; ".join(parts) + "."


def _policies(verdicts: Sequence[Verdict], to: Link, cap: int, *, refusing: bool) -> Iterator[str]:
    for outcome, refuses, heading in _GROUPS:
        found = [one for one in verdicts if one.outcome is outcome and one.refuses is refuses]
        if refuses is refusing and found:
            yield f"### {heading}"
            yield ""
            policies = list(dict.fromkeys(one.policy for one in found))
            for policy in policies[:cap]:
                yield from _policy(policy, [one for one in found if one.policy == policy], to, cap)
            yield from left_out(len(policies) - cap, "policies")
            yield ""


def _policy(policy: Policy, verdicts: Sequence[Verdict], to: Link, cap: int) -> Iterator[str]:
    yield f"- **{policy.name}** ({policy.severity}): {prose(policy.rule)}."
    for one in verdicts[:cap]:
        yield f"  - {code(one.where)}: {prose(one.message, 600)}"
    yield from left_out(len(verdicts) - cap, "findings", "  ")
    if verdicts[0].outcome is not Outcome.WAIVED:
        yield f"  - Fix: {prose(policy.fix, 600)} ({to(policy.url)})"
