"""What a Deployment does when its pods change."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from policies.judging.view import Resource

# Kubernetes' own for both.
_DEFAULT_SHARE: Final = "25%"


@dataclass(frozen=True)
class Rollout:
    """A rolling update of some replicas.

    Attributes:
        replicas: how many there are.
        max_surge: more than these at once, as a number or a share.
        max_unavailable: fewer than these at once, as a number or a share.
    """

    replicas: int
    max_surge: int | str
    max_unavailable: int | str

    @classmethod
    def of(cls, deployment: Resource, replicas: int) -> "Rollout | None":
        """That of a Deployment, or None where pods are replaced in another way."""
        if deployment.kind != "Deployment" or deployment.at("spec", "strategy", "type") == "Recreate":
            return None
        surge, unavailable = (
            deployment.at("spec", "strategy", "rollingUpdate", name, default=_DEFAULT_SHARE)
            for name in ("maxSurge", "maxUnavailable")
        )
        return cls(replicas, surge, unavailable)

    @property
    def waits(self) -> bool:
        """Whether no old pod goes before a new one is ready.

        Kubernetes rounds the one share up and the other down. Where both come out at 0 it takes one pod away.
        """
        return self._pods(self.max_surge, math.ceil) > 0 and self._pods(self.max_unavailable, math.floor) == 0

    def _pods(self, value: int | str, rounded: Callable[[float], int]) -> int:
        text = f"{value}"
        return rounded(int(text[:-1]) * self.replicas / 100) if text.endswith("%") else int(text)

    def __str__(self) -> str:
        noun = "replica" if self.replicas == 1 else "replicas"
        return f"maxSurge {self.max_surge} and maxUnavailable {self.max_unavailable} at {self.replicas} {noun}"
