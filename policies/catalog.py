"""All policies, in the order of their documentation."""

from types import ModuleType
from typing import Final

from policies import cost, gpus, lifecycle, observability, scaling, security, traffic
from policies.judging.policy import Policy

THEMES: Final[dict[str, ModuleType]] = {
    "GPUs": gpus,
    "Scaling": scaling,
    "Lifecycle": lifecycle,
    "Traffic": traffic,
    "Observability": observability,
    "Security": security,
    "Cost and order": cost,
}


def policies_of(theme: ModuleType) -> tuple[Policy, ...]:
    """The policies of a module, as they stand in it."""
    return tuple(found for found in vars(theme).values() if isinstance(found, Policy))


POLICIES: Final = tuple(policy for theme in THEMES.values() for policy in policies_of(theme))
