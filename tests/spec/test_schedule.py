"""Replicas by the clock: times as KEDA's cron parser takes them, and time zones that exist."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec import schedule
from spec.problems import Problem
from spec.schedule import ScheduleSpec
from spec.source import Source
from spec.validation import validate

DAY = {"from": "0 9 * * *", "to": "0 21 * * *", "timezone": "Asia/Shanghai", "replicas": 3}


def problems(**changes: object) -> list[Problem]:
    document = DAY | {"from" if key == "start" else key: value for key, value in changes.items()}
    return validate(ScheduleSpec, document, Source("m.yaml", document))[1]


class TestTimes:
    @pytest.mark.parametrize(
        "time",
        ["0 9 * * *", "*/15 * * * *", "0 9 * * mon-fri", "0 9 * * MON-FRI", "30 8,20 1-15/2 jan,jul ?", "59 23 31 12 6",
         "5/10 * * * *", "0  9 * * *"],
    )  # fmt: skip
    def test_what_cron_knows_is_accepted(self, time: str) -> None:
        assert problems(start=time) == []

    @pytest.mark.parametrize(
        ("time", "what"),
        [("60 * * * *", "minute"), ("0 24 * * *", "hour"), ("0 0 0 * *", "day"), ("0 0 * 13 *", "month"),
         ("0 0 * * 7", "weekday"), ("0 0 * * fri-mon", "weekday"), ("0 9-8 * * *", "hour"), ("*/0 * * * *", "minute"),
         ("0 9 * * funday", "weekday"), ("-1 * * * *", "minute"), ("1,, * * * *", "minute"), ("0 mon * * *", "hour")],
    )  # fmt: skip
    def test_what_cron_refuses_is_refused_and_named(self, time: str, what: str) -> None:
        (problem,) = problems(start=time)
        assert (problem.field, problem.value) == ("from", time)
        assert problem.message.endswith(f"is no {what}")
        assert problem.fix

    @pytest.mark.parametrize("time", ["", "9:00", "0 9 * *", "0 0 9 * * *", "@daily", 900, None, "TZ=UTC 0 9 * * *"])
    def test_what_has_not_five_fields_is_refused(self, time: object) -> None:
        (problem,) = problems(to=time)
        assert problem.field == "to"
        assert "five fields" in problem.allowed or "is no minute" in problem.message

    def test_one_that_ends_when_it_begins_is_refused(self) -> None:
        (problem,) = problems(to="0  9 * * *")
        assert (problem.field, problem.message) == ("to", "ends when it begins")

    @given(st.tuples(st.integers(0, 59), st.integers(0, 23), st.integers(1, 31), st.integers(1, 12), st.integers(0, 6)))
    def test_every_moment_can_be_written(self, numbers: tuple[int, ...]) -> None:
        assert problems(start=" ".join(map(str, numbers)), to="1 1 1 1 */6") == []


class TestTimeZone:
    @pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/Argentina/Buenos_Aires"])
    def test_one_that_exists_is_accepted(self, zone: str) -> None:
        assert problems(timezone=zone) == []

    @pytest.mark.parametrize("zone", ["Asia/Shangai", "CST+8", "", 8, "../etc/passwd"])
    def test_another_is_refused(self, zone: object) -> None:
        (problem,) = problems(timezone=zone)
        assert (problem.field, problem.value, problem.message) == ("timezone", zone, "not a time zone")

    def test_without_one_it_is_utc(self) -> None:
        document = {key: value for key, value in DAY.items() if key != "timezone"}
        found, _ = validate(ScheduleSpec, document, Source("m.yaml", document))
        assert found is not None
        assert found.timezone == "UTC"

    def test_what_cannot_be_checked_does_not_pass(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(schedule, "_zones", frozenset)
        (problem,) = problems()
        assert "no time zone database" in problem.message
        assert "tzdata" in problem.fix


@pytest.mark.parametrize("replicas", [0, -1, 1001, 1.5, "3"])
def test_a_number_of_replicas_is_one_that_a_deployment_can_have(replicas: Any) -> None:
    (problem,) = problems(replicas=replicas)
    assert problem.field == "replicas"
