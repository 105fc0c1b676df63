"""How far a build is: one refreshed line on a terminal, a line now and then elsewhere."""

import shutil
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TextIO

from local.toolchain.tools import Family

_EVERY_SECONDS: Final = 20.0
_LINKING: Final = 0.97


@dataclass
class Step:
    """One family while it is built."""

    family: Family
    doing: str = "waiting"
    packages: frozenset[str] = frozenset()
    started: float | None = None
    seconds: float | None = None

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.family.name} {self.family.version}"


@dataclass
class Progress:
    """What is built, how far, for how long.

    A package that one family has compiled is in the shared cache for the next, so packages are counted over
    all families, by import path and version.

    Attributes:
        report: receives a line at every event.
        terminal: receives the refreshed line instead of a line now and then; None where there is none.
    """

    report: Callable[[str], None]
    terminal: TextIO | None = None
    steps: dict[str, Step] = field(default_factory=dict)
    _compiled: set[str] = field(default_factory=set)
    _guard: threading.RLock = field(default_factory=threading.RLock)
    _began: float = field(default_factory=time.monotonic)
    _last: float = field(default_factory=time.monotonic)

    def plan(self, families: Iterable[Family]) -> None:
        """Says what is going to be built."""
        self.steps = {family.name: Step(family) for family in families}

    def start(self, family: Family, doing: str) -> None:
        """The family is begun."""
        with self._guard:
            step = self.steps[family.name]
            step.started = time.monotonic()
            step.doing = doing
            self._say(f"{step.title}: {doing}")

    def pause(self, family: Family, packages: Iterable[str]) -> None:
        """The family waits to be built, and is made of these packages."""
        with self._guard:
            self.steps[family.name].packages = frozenset(packages)
            self.steps[family.name].started = None

    def compiled(self, package: str) -> None:
        """A package is being compiled."""
        with self._guard:
            self._compiled.add(package)

    def done(self, family: Family) -> None:
        """The family is in the cache."""
        with self._guard:
            step = self.steps[family.name]
            step.seconds = time.monotonic() - (step.started or time.monotonic())
            self._say(f"{step.title}: done in {step.seconds:.0f} s ({self.fraction:.0%} of all)")

    def fraction_of(self, step: Step) -> float:
        """How much of a family is done, 0 to 1."""
        if step.seconds is not None:
            return 1.0
        with self._guard:
            here = len(step.packages & self._compiled)
        return _LINKING * here / len(step.packages) if step.packages else 0.0

    @property
    def fraction(self) -> float:
        """How much of everything is done, weighed by how long each family takes."""
        total = sum(step.family.seconds for step in self.steps.values())
        return sum(self.fraction_of(step) * step.family.seconds for step in self.steps.values()) / max(total, 1)

    def line(self) -> str:
        """Everything in one line."""
        parts = [f"{self.fraction:4.0%}, {_clock(time.monotonic() - self._began)}"]
        for step in self.steps.values():
            if step.started is None or step.seconds is not None:
                continue
            with self._guard:
                here = len(step.packages & self._compiled)
            count = f" {here}/{len(step.packages)} packages" if step.packages else ""
            parts.append(f"{step.title} {step.doing}{count}, {time.monotonic() - step.started:.0f} s")
        return " | ".join(parts)

    def tick(self) -> None:
        """Called about once a second: refreshes the line, or says it when it is time."""
        now = time.monotonic()
        with self._guard:
            if self.terminal is not None:
                width = shutil.get_terminal_size().columns - 1
                self.terminal.write(f"\r\x1b[K{self.line()[:width]}")
                self.terminal.flush()
            elif now - self._last >= _EVERY_SECONDS:
                self._last = now
                self.report(self.line())

    def clear(self) -> None:
        """Takes the refreshed line off the terminal."""
        if self.terminal is not None:
            self.terminal.write("\r\x1b[K")
            self.terminal.flush()

    def _say(self, text: str) -> None:
        self.clear()
        self.report(text)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
