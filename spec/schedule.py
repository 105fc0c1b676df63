"""Replicas by the clock (part of a model file)."""

import re
from functools import cache
from typing import Annotated, Final
from zoneinfo import available_timezones

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from spec.fields import Spec, refuse

_FORM: Final = "five fields: minute, hour, day of the month, month, day of the week"
_NAMES: Final = {
    "month": ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    "weekday": ("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
}
# Of each field: what it is, its smallest and its largest value. KEDA's parser knows no 7 for Sunday.
_FIELDS: Final = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 6))
_PART: Final = re.compile(r"^(\*|\?|([a-z0-9]+)(?:-([a-z0-9]+))?)(?:/([0-9]+))?$")


def _check_cron(value: object) -> str:
    """A time as KEDA's cron trigger takes it (github.com/robfig/cron, without seconds and without ``@daily``)."""
    fields = value.split() if isinstance(value, str) else []
    if len(fields) != len(_FIELDS):
        refuse("not a time in cron's form", allowed=_FORM, fix='write for example "0 9 * * mon-fri"')
    for text, (what, low, high) in zip(fields, _FIELDS, strict=True):
        for part in text.lower().split(","):
            if not _is_part(part, what, low, high):
                allowed = f"*, a number of {low} to {high}, a range, a list, or a step such as */2"
                refuse(f"{text!r} is no {what}", allowed=allowed, fix='write for example "0 9 * * mon-fri"')
    return " ".join(fields)


def _is_part(part: str, what: str, low: int, high: int) -> bool:
    match = _PART.fullmatch(part)
    if not match:
        return False
    _, first, last, step = match.groups()
    numbers = [_number(word, what) for word in (first, last) if word is not None]
    inside = all(number is not None and low <= number <= high for number in numbers)
    return inside and numbers == sorted(numbers, key=lambda number: number or 0) and step != "0"


def _number(word: str, what: str) -> int | None:
    """The number that a word stands for; None where it stands for none."""
    if word.isdigit():
        return int(word)
    known = _NAMES.get(what, ())
    return known.index(word) + (what == "month") if word in known else None


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _check_timezone(value: object) -> str:
    if not _zones():
        refuse(
            "cannot be checked: this machine has no time zone database",
            allowed="a name of the IANA database",
            fix="install the package tzdata, of the system or of Python",
        )
    if not isinstance(value, str) or value not in _zones():
        refuse("not a time zone", allowed="a name of the IANA database", fix="write for example Asia/Shanghai")
    return value


CronTime = Annotated[
    str, BeforeValidator(_check_cron), WithJsonSchema({"type": "string", "pattern": r"^\S+( +\S+){4}$"})
]
TimeZone = Annotated[str, BeforeValidator(_check_timezone), WithJsonSchema({"type": "string"})]


class ScheduleSpec(Spec):
    """A time with more replicas.

    Attributes:
        from: when it begins, in cron's form, e.g. ``"0 9 * * mon-fri"``.
        to: when it ends, in the same form.
        timezone: name of the time zone that both are in; by default UTC.
        replicas: replicas that are there at least in this time.
    """

    start: CronTime = Field(alias="from")
    end: CronTime = Field(alias="to")
    timezone: TimeZone = "UTC"
    replicas: Annotated[int, Field(ge=1, le=1000)]

    @model_validator(mode="after")
    def _has_a_length(self) -> "ScheduleSpec":
        if self.start == self.end:
            refuse("ends when it begins", allowed="another time than from", fix="write when it ends", field="to")
        return self
