"""What a wrong input looks like to its author: every mistake of a file at once, each with its way out."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = _Absent()
_LONGEST_VALUE: Final = 80


@dataclass(frozen=True)
class Problem:
    """One mistake.

    Attributes:
        field: dotted path inside the file, e.g. ``config.input[0].dims``; empty for the file as a whole.
        message: what is wrong, as a sentence without a full stop.
        value: what the author wrote, or ``ABSENT``.
        allowed: what would be accepted.
        fix: the next thing to do.
        file: path as the author knows it.
        line: 1-based line of the field, when known.
    """

    field: str
    message: str
    value: object = ABSENT
    allowed: str = ""
    fix: str = ""
    file: str = ""
    line: int | None = None

    def under(self, prefix: str) -> "Problem":
        """The same problem seen from an enclosing field."""
        dot = "." if prefix and self.field and not self.field.startswith("[") else ""
        joined = f"{prefix}{dot}{self.field}"
        return replace(self, field=joined)

    def __str__(self) -> str:
        where = self.file + (f":{self.line}" if self.file and self.line else "")
        head = ": ".join(part for part in (where, self.field, self.message) if part)
        lines = [head]
        if self.value is not ABSENT:
            shown = repr(self.value)
            lines.append(f"  value:   {shown if len(shown) <= _LONGEST_VALUE else shown[:_LONGEST_VALUE] + '…'}")
        if self.allowed:
            lines.append(f"  allowed: {self.allowed}")
        if self.fix:
            lines.append(f"  fix:     {self.fix}")
        return "\n".join(lines)


class SpecError(Exception):
    """The input is refused; ``problems`` holds every mistake that was found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __str__(self) -> str:
        count = len(self.problems)
        noun = "mistake" if count == 1 else "mistakes"
        return f"{count} {noun} in the input, nothing was applied\n\n" + "\n\n".join(map(str, self.problems))
