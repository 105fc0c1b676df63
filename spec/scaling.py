"""Replicas and signals of a model with the environment's defaults filled in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from spec.estate import Environment, GpuPoolSpec
from spec.fields import duration_seconds
from spec.gpu import utilisation_is_per_pod
from spec.model import SIGNALS, ScalingSpec
from spec.problems import Problem

# Three replicas take one lost node without losing the service; a laptop wants to be small.
_MIN: Final[dict[Environment, int]] = {"dev": 1, "prod": 3}
_MAX_FACTOR: Final[dict[Environment, int]] = {"dev": 2, "prod": 3}
# Only signals that need no knowledge of the model: a utilisation, or the time that requests wait.
_DEFAULT_GPU_PERCENT: Final = 70
_DEFAULT_CPU_PERCENT: Final = 70
_DEFAULT_QUEUE_MS: Final = 10.0
# A GPU replica takes minutes to come back, so it is given up slowly and asked for at once.
_SCALE_UP_SECONDS: Final = 0
_SCALE_DOWN_SECONDS: Final = 300


@dataclass(frozen=True)
class Scaling:
    """Resolved scaling.

    Attributes:
        min: fewest replicas.
        max: most replicas; equal to ``min`` when the number is fixed.
        targets: wanted value of each signal: percent for gpu, cpu and memory, requests per second for qps,
            milliseconds for queue_ms.
        up_seconds: stabilisation window of scaling up.
        down_seconds: stabilisation window of scaling down.
    """

    min: int
    max: int
    targets: Mapping[str, float]
    up_seconds: int = _SCALE_UP_SECONDS
    down_seconds: int = _SCALE_DOWN_SECONDS

    @property
    def fixed(self) -> bool:
        """Whether the number of replicas never changes, so that no autoscaler is needed."""
        return self.min == self.max


def resolve_scaling(
    spec: ScalingSpec, environment: Environment, pool: GpuPoolSpec | None
) -> tuple[Scaling | None, list[Problem]]:
    """Fill in defaults and check the signals against the GPU mode.

    Returns:
        The scaling and no problems, or None and the problems; fields are relative to ``scaling``.
    """
    low = spec.min if spec.min is not None else min(_MIN[environment], spec.max or _MIN[environment])
    high = spec.max if spec.max is not None else low * _MAX_FACTOR[environment]
    targets = {name: float(value) for name in SIGNALS if (value := getattr(spec, name)) is not None}
    problems = list(_check(spec, targets, pool, low, high))
    if problems:
        return None, problems
    if low != high and not targets:
        targets = _default_targets(pool)
    up, down = spec.scale_up_stabilization, spec.scale_down_stabilization
    return (
        Scaling(
            low,
            high,
            targets,
            _SCALE_UP_SECONDS if up is None else int(duration_seconds(up)),
            _SCALE_DOWN_SECONDS if down is None else int(duration_seconds(down)),
        ),
        [],
    )


def _default_targets(pool: GpuPoolSpec | None) -> dict[str, float]:
    if pool is None:
        return {"cpu": _DEFAULT_CPU_PERCENT}
    if utilisation_is_per_pod(pool.sharing):
        return {"gpu": _DEFAULT_GPU_PERCENT}
    return {"queue_ms": _DEFAULT_QUEUE_MS}


def _check(
    spec: ScalingSpec, targets: Mapping[str, float], pool: GpuPoolSpec | None, low: int, high: int
) -> Iterable[Problem]:
    alternative = "qps, queueMs, cpu or memory"
    if "gpu" in targets and pool is None:
        yield Problem(
            "gpu",
            "a CPU model has no GPU utilisation",
            spec.gpu,
            alternative,
            "use one of those, or ask for a GPU",
        )
    elif "gpu" in targets and pool is not None and not utilisation_is_per_pod(pool.sharing):
        yield Problem(
            "gpu",
            f"pool {pool.name} shares a card ({pool.sharing}), so every pod would report the use of the whole card",
            spec.gpu,
            alternative,
            "write queueMs: 5 or qps: <requests per second and replica>, or use a pool in mode whole or mig",
        )
    unused = [*targets]
    unused += ["scaleUpStabilization"] if spec.scale_up_stabilization else []
    unused += ["scaleDownStabilization"] if spec.scale_down_stabilization else []
    if low == high and unused:
        shown = ", ".join("queueMs" if name == "queue_ms" else name for name in unused)
        yield Problem("", f"min and max are both {low}, so {shown} would do nothing",
                      allowed="max above min", fix="raise max, or leave them out")  # fmt: skip
    for name in ("scale_up_stabilization", "scale_down_stabilization"):
        value = getattr(spec, name)
        # autoscaling/v2 takes whole seconds up to one hour.
        if value is not None and not (duration_seconds(value) % 1 == 0 and duration_seconds(value) <= 3600):
            field = "scaleUpStabilization" if "up" in name else "scaleDownStabilization"
            fix = "write for example 300s"
            yield Problem(field, "not a stabilisation window", value, "whole seconds, 0s to 1h", fix)
