"""What every alert of the estate looks like, about a model or about the platform."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from components.crds import Rule
from spec import names
from spec.monitoring import MonitoringSpec

# critical: a caller feels it now; warning: one will, or nobody could tell; info: it costs money;
# none: to be counted, not told to anybody.
Severity = Literal["critical", "warning", "info", "none"]


@dataclass(frozen=True)
class Alert:
    """One alert.

    Attributes:
        name: in CamelCase, also the name of its runbook.
        severity: how bad it is.
        expr: PromQL; the alert is pending for each series that it gives.
        seconds: how long it has to be pending before somebody is told.
        summary: one line; may hold Prometheus's templates.
        description: what was measured; may hold them as well.
    """

    name: str
    severity: Severity
    expr: str
    seconds: int
    summary: str
    description: str


def rule(alert: Alert, monitoring: MonitoringSpec, labels: Mapping[str, str], about: str = "") -> Rule:
    """The rule of an alert.

    Args:
        alert: the alert.
        monitoring: of the stack; tells where the runbooks are.
        labels: beside the severity, e.g. who is told. Prometheus lays them over those of the series.
        about: what the summary begins with.
    """
    return Rule(
        alert=alert.name,
        expr=alert.expr,
        for_=duration(alert.seconds),
        labels={"severity": alert.severity, **labels},
        annotations={
            "summary": f"{about}: {alert.summary}" if about else alert.summary,
            "description": alert.description,
            "runbook_url": f"{monitoring.runbooks or names.RUNBOOKS}/{alert.name}.md",
        },
    )


def number(value: float, factor: str) -> str:
    """A threshold in the unit of its series, without the noise of binary fractions."""
    return format((Decimal(str(value)) * Decimal(factor)).normalize(), "f")


def duration(seconds: int) -> str:
    """A duration as Prometheus writes it."""
    return f"{seconds}s" if seconds % 60 else f"{seconds // 60}m"
