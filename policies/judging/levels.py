"""How bad a violation is, and what it does."""

from enum import StrEnum


class Level(StrEnum):
    """What a violation does: nothing, a word in the review, or a refusal."""

    DISABLED = "disabled"
    ADVISORY = "advisory"
    MANDATORY = "mandatory"


class Severity(StrEnum):
    """How bad it would be, in Pulumi's terms."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"
