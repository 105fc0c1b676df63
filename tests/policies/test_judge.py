"""What becomes of the findings of policies: levels, what is unknown, crashes, waivers."""

import datetime as dt
from collections.abc import Iterable, Iterator
from itertools import product

import pytest

from policies.judging.judge import WAIVERS, Judge, Outcome, Verdict
from policies.judging.levels import Level
from policies.judging.pack import judge_all
from policies.judging.policy import Finding, Policy
from policies.judging.settings import StackPolicies, Waiver
from policies.judging.unknown import UNKNOWN, CannotDecide
from policies.judging.view import Resource, View
from tests.policies.project import policy, spec_of, thing

TODAY = dt.date(2026, 12, 1)
ADVISORY, MANDATORY = Level.ADVISORY, Level.MANDATORY


def judge(
    *policies: Policy,
    environment: str = "prod",
    settings: dict[str, object] | None = None,
    waivers: tuple[Waiver, ...] = (),
    overrides: tuple[tuple[str, Level], ...] = (),
) -> Judge:
    """The policies on a stack."""
    view = View("test", spec_of(environment), StackPolicies.model_validate(settings or {}))
    return Judge(policies, view, waivers, TODAY, overrides)


def waiver(**fields: str) -> Waiver:
    """A waiver of the policy ``broken`` for the ConfigMap ``a``."""
    good = {"policy": "broken", "stack": "test", "resource": "ConfigMap/a", "reason": "trial", "owner": "vision",
            "expires": "2026-12-31"}  # fmt: skip
    return Waiver.model_validate(good | fields)


def says(*messages: str) -> Policy:
    """A policy that finds something in everything."""
    return policy("broken", lambda *_: messages)


def cannot(found: Resource, view: View) -> Iterator[str]:
    """A check that needs what is unknown."""
    del view
    yield found.at("data", "size")


def crashes(found: Resource, view: View) -> Iterable[str]:
    """A check with a mistake of its own."""
    del found, view
    raise KeyError("a\nb" * 1000)


class TestLevels:
    @pytest.mark.parametrize(("environment", "level"), [("dev", ADVISORY), ("prod", MANDATORY)])
    def test_the_environment_decides_first(self, environment: str, level: Level) -> None:
        (verdict,) = judge(says("wrong"), environment=environment).judge_object(thing())
        assert (verdict.level, verdict.outcome, verdict.message) == (level, Outcome.VIOLATED, "wrong")
        assert verdict.refuses == (level is MANDATORY)

    @pytest.mark.parametrize("level", [ADVISORY, MANDATORY])
    def test_settings_go_before_the_environment(self, level: Level) -> None:
        for environment in ("dev", "prod"):
            made = judge(says("wrong"), environment=environment, settings={"levels": {"broken": level.value}})
            assert [one.level for one in made.judge_object(thing())] == [level]

    def test_the_command_line_goes_before_settings(self) -> None:
        made = judge(says("wrong"), settings={"levels": {"broken": "disabled"}}, overrides=(("broken", ADVISORY),))
        assert [one.level for one in made.judge_object(thing())] == [ADVISORY]

    @pytest.mark.parametrize("estate", [False, True])
    def test_a_disabled_policy_is_not_asked(self, estate: bool) -> None:
        asked: list[str] = []
        made = policy(
            "broken",
            None if estate else lambda *_: asked.append("object") or (),
            estate=(lambda _: asked.append("estate") or ()) if estate else None,
        )
        judge_all(judge(made, settings={"levels": {"broken": "disabled"}}), [thing()])
        assert asked == []
        judge_all(judge(made), [thing()])
        assert asked == ["estate" if estate else "object"]

    def test_every_policy_is_asked_about_every_resource(self) -> None:
        one, two = (policy(name, lambda found, _: [found.object_name]) for name in ("one", "two"))
        said = judge_all(judge(one, two), [thing("a"), thing("b")])
        assert {(verdict.policy.name, verdict.message) for verdict in said} == set(product(("one", "two"), ("a", "b")))

    def test_a_policy_of_the_estate_sees_all_resources_and_names_one(self) -> None:
        def last(view: View) -> Iterator[Finding]:
            yield Finding(view.resources[-1], f"{len(view.resources)} of {view.stack}")
            yield Finding(None, "as a whole")

        said = list(judge(policy("joined", estate=last)).judge_estate([thing("a"), thing("b")]))
        assert [(one.where, one.message) for one in said] == [("ConfigMap/b", "2 of test"), ("stack", "as a whole")]

    def test_a_policy_of_objects_gets_no_others(self) -> None:
        made = policy("alone", lambda _, view: [str(len(view.resources))])
        assert {one.message for one in judge_all(judge(made), [thing("a"), thing("b")])} == {"0"}


class TestUndecided:
    FOUND = thing(inputs={"data": {"size": UNKNOWN}})

    @pytest.mark.parametrize(
        ("environment", "settings", "level"),
        [
            ("prod", {}, MANDATORY),
            ("dev", {}, ADVISORY),
            ("prod", {"undecided": "advisory"}, ADVISORY),
            ("prod", {"levels": {"unsure": "advisory"}}, ADVISORY),
            ("prod", {"levels": {"unsure": "advisory"}, "undecided": "mandatory"}, ADVISORY),
            ("dev", {"undecided": "mandatory"}, ADVISORY),
            ("dev", {"undecided": "mandatory", "levels": {"unsure": "mandatory"}}, MANDATORY),
        ],
    )
    def test_its_level_is_that_of_the_settings_and_never_above_the_policy(
        self, environment: str, settings: dict[str, object], level: Level
    ) -> None:
        said = list(
            judge(policy("unsure", cannot), environment=environment, settings=settings).judge_object(self.FOUND)
        )
        assert [(one.outcome, one.level) for one in said] == [(Outcome.UNDECIDED, level)]
        assert said[0].message == "cannot decide: data.size is unknown"

    def test_nothing_is_said_where_the_settings_want_nothing_of_it(self) -> None:
        assert list(judge(policy("unsure", cannot), settings={"undecided": "disabled"}).judge_object(self.FOUND)) == []

    def test_what_was_found_before_stays(self) -> None:
        def check(found: Resource, view: View) -> Iterator[str]:
            yield "wrong"
            yield from cannot(found, view)

        said = judge(policy("unsure", check)).judge_object(self.FOUND)
        assert [one.outcome for one in said] == [Outcome.VIOLATED, Outcome.UNDECIDED]

    def test_a_policy_of_the_estate_cannot_decide_either(self) -> None:
        def check(view: View) -> Iterator[Finding]:
            raise CannotDecide(f"{len(view.resources)} are unknown")

        (said,) = judge(policy("unsure", estate=check)).judge_estate([self.FOUND])
        assert (said.outcome, said.where, said.refuses) == (Outcome.UNDECIDED, "stack", True)

    def test_it_can_be_waived(self) -> None:
        made = judge(policy("broken", cannot), waivers=(waiver(),))
        assert [one.outcome for one in made.judge_object(self.FOUND)] == [Outcome.WAIVED]


class TestCrashes:
    @pytest.mark.parametrize("environment", ["dev", "prod"])
    def test_it_refuses_under_the_name_of_the_policy_and_the_others_are_asked(self, environment: str) -> None:
        made = judge(policy("crashing", crashes), says("wrong"), environment=environment)
        failed, other = made.judge_object(thing())
        assert (failed.policy.name, failed.outcome, failed.level) == ("crashing", Outcome.FAILED, MANDATORY)
        assert other.message == "wrong"

    def test_it_is_one_short_line_with_the_place(self) -> None:
        (failed,) = judge(policy("crashing", crashes)).judge_object(thing())
        assert failed.message.startswith("the policy itself failed: KeyError: ")
        assert "\n" not in failed.message
        assert "Traceback" not in failed.message
        assert len(failed.message) < 700

    def test_a_policy_of_the_estate_that_crashes_is_no_other(self) -> None:
        def check(view: View) -> Iterator[Finding]:
            raise ZeroDivisionError(view.stack)

        (failed,) = judge(policy("crashing", estate=check)).judge_estate([])
        assert (failed.outcome, failed.level, failed.where) == (Outcome.FAILED, MANDATORY, "stack")
        assert "ZeroDivisionError: test (test_judge.py, line " in failed.message

    def test_it_cannot_be_waived(self) -> None:
        made = judge(policy("broken", crashes), waivers=(waiver(),))
        assert [one.outcome for one in made.judge_object(thing())] == [Outcome.FAILED]


class TestWaivers:
    def verdicts(self, *waivers: Waiver, found: Resource | None = None) -> list[Verdict]:
        return judge_all(judge(says("wrong"), waivers=waivers), [found or thing()])

    def test_it_takes_the_refusal_away_and_says_who_gave_it(self) -> None:
        (said,) = self.verdicts(waiver())
        assert (said.outcome, said.refuses) == (Outcome.WAIVED, False)
        assert said.message == "wrong; waived by vision until 2026-12-31: trial"

    @pytest.mark.parametrize("field", [{"policy": "other"}, {"resource": "ConfigMap/b"}, {"resource": "Secret/a"}])
    def test_it_is_for_one_policy_and_one_resource(self, field: dict[str, str]) -> None:
        said = self.verdicts(waiver(**field))
        assert [one.outcome for one in said if one.policy is not WAIVERS] == [Outcome.VIOLATED]

    def test_its_last_day_counts(self) -> None:
        assert [one.outcome for one in self.verdicts(waiver(expires="2026-12-01"))] == [Outcome.WAIVED]

    def test_an_expired_one_brings_the_violation_back_and_fails_itself(self) -> None:
        broken, expired = self.verdicts(waiver(expires="2026-11-30"))
        assert (broken.outcome, broken.level) == (Outcome.VIOLATED, MANDATORY)
        assert (expired.policy, expired.level) == (WAIVERS, MANDATORY)
        assert expired.message == (
            "the waiver of broken for ConfigMap/a expired on 2026-11-30; vision has to mend it, or to ask again"
        )

    def test_a_second_one_goes_on_where_the_first_ended(self) -> None:
        said = self.verdicts(waiver(expires="2026-11-30"), waiver(owner="search"))
        assert [one.outcome for one in said] == [Outcome.WAIVED, Outcome.VIOLATED]
        assert "waived by search" in said[0].message

    def test_one_that_waives_nothing_is_a_word(self) -> None:
        (unused,) = judge_all(judge(waivers=(waiver(),)), [thing()])
        assert (unused.policy, unused.level, unused.refuses) == (WAIVERS, ADVISORY, False)
        assert unused.message == "the waiver of broken for ConfigMap/a waives nothing"

    def test_it_may_be_for_the_stack_as_a_whole(self) -> None:
        made = policy("broken", estate=lambda _: [Finding(None, "wrong")])
        said = judge_all(judge(made, waivers=(waiver(resource="stack"),)), [])
        assert [one.outcome for one in said] == [Outcome.WAIVED]
