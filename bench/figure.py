"""One measured figure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured figure, smaller is better.

    Attributes:
        name: what was measured.
        value: the median of the runs.
        target: the value not to exceed.
        unit: of both.
        note: how it was measured.
    """

    name: str
    value: float
    target: float
    unit: str
    note: str

    def row(self) -> list[str]:
        """A line of the table."""
        verdict = "ok" if self.value <= self.target else "MISSED"
        return [self.name, f"{self.value:.1f} {self.unit}", f"<= {self.target:g} {self.unit}", verdict, self.note]
