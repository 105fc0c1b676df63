"""What a build says while it runs."""

import re
from dataclasses import replace
from io import StringIO

import pytest

from local.toolchain import progress, tools


class TestProgress:
    def made(self, *families: tools.Family, terminal: StringIO | None = None) -> progress.Progress:
        self.said: list[str] = []
        made = progress.Progress(self.said.append, terminal)
        made.plan(families)
        return made

    def test_packages_count_for_every_family_that_has_them(self) -> None:
        one, two = replace(tools.KWOK, name="one", seconds=100), replace(tools.KWOK, name="two", seconds=300)
        made = self.made(one, two)
        made.pause(one, ["a@v1", "b@v1"])
        made.pause(two, ["b@v1", "b@v2", "c@v1", "d@v1"])
        assert made.fraction == 0
        made.compiled("b@v1")
        assert made.fraction_of(made.steps["one"]) == pytest.approx(0.97 / 2)
        assert made.fraction_of(made.steps["two"]) == pytest.approx(0.97 / 4)
        assert made.fraction == pytest.approx(0.97 * (100 / 2 + 300 / 4) / 400)
        made.start(one, "compiling")
        made.done(one)
        assert made.fraction == pytest.approx((100 + 0.97 * 300 / 4) / 400)
        assert re.fullmatch(r"one 0\.8\.0: done in 0 s \(43% of all\)", self.said[-1])

    def test_a_line_every_twenty_seconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [1000.0]
        monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
        made = self.made(tools.KWOK)
        made._began = made._last = now[0]
        made.pause(tools.KWOK, ["a@v1", "b@v1"])
        made.start(tools.KWOK, "compiling")
        made.compiled("a@v1")
        for _ in range(62):
            made.tick()
            now[0] += 1
        assert self.said[1:] == [
            f" 48%, {clock} | kwok 0.8.0 compiling 1/2 packages, {seconds} s"
            for clock, seconds in (("0:20", 20), ("0:40", 40), ("1:00", 60))
        ]

    def test_one_line_on_a_terminal(self) -> None:
        terminal = StringIO()
        made = self.made(tools.KWOK, terminal=terminal)
        made.start(tools.KWOK, "compiling")
        made.tick()
        made.tick()
        assert len(self.said) == 1
        assert "\n" not in terminal.getvalue()
        assert terminal.getvalue().count("\r\x1b[K  0%, 0:00 | kwok 0.8.0 compiling, 0 s") == 2
