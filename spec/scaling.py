"""Replicas and signals of a model with the environment's defaults filled in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from spec.estate import Environment, EstateSpec
from spec.fields import duration_seconds
from spec.gpu import utilisation_is_per_pod
from spec.model import SIGNALS, RevisionSpec
from spec.pool import GpuPoolSpec
from spec.problems import Problem
from spec.scaling_metrics import Metric, resolve_metrics
from spec.schedule import ScheduleSpec
from spec.triton import ModelConfig

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
# Names of fields as their author writes them.
_WRITTEN: Final = {"queue_ms": "queueMs", "scale_up_stabilization": "scaleUpStabilization",
                   "scale_down_stabilization": "scaleDownStabilization"}  # fmt: skip
_WINDOWS: Final = ("scale_up_stabilization", "scale_down_stabilization")


@dataclass(frozen=True)
class Scaling:
    """Resolved scaling.

    Attributes:
        min: fewest replicas.
        max: most replicas; equal to ``min`` when the number is fixed.
        targets: wanted value of each signal as the model file has it: percent for gpu, cpu and memory, requests per
            second for qps, milliseconds for queue_ms, requests for pending.
        metrics: what is measured for each of them; cpu and memory are not here, Kubernetes itself knows them.
        schedule: times with more replicas.
        up_seconds: stabilisation window of scaling up.
        down_seconds: stabilisation window of scaling down.
    """

    min: int
    max: int
    targets: Mapping[str, float]
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    schedule: tuple[ScheduleSpec, ...] = ()
    up_seconds: int = _SCALE_UP_SECONDS
    down_seconds: int = _SCALE_DOWN_SECONDS

    @property
    def fixed(self) -> bool:
        """Whether the number of replicas never changes, so that no autoscaler is needed."""
        return self.min == self.max


def resolve_scaling(
    spec: RevisionSpec,
    estate: EstateSpec,
    pool: GpuPoolSpec | None,
    triton_name: str,
    configs: Mapping[str, ModelConfig],
) -> tuple[Scaling | None, list[Problem]]:
    """Fill in defaults, and check the signals against the GPU mode and the stack's autoscaler.

    Args:
        spec: the revision.
        estate: the stack.
        pool: the GPU pool that it runs on.
        triton_name: name of the served model inside Triton.
        configs: configurations that are known here, by name inside Triton.

    Returns:
        The scaling and no problems, or None and the problems; fields are relative to ``scaling``.
    """
    written = spec.scaling
    least = _MIN[estate.environment]
    low = written.min if written.min is not None else min(least, written.max or least)
    high = written.max if written.max is not None else max(low, 1) * _MAX_FACTOR[estate.environment]
    targets = {name: float(value) for name in SIGNALS if (value := getattr(written, name)) is not None}
    problems = [*_check_range(spec, targets, low, high), *_check_windows(spec)]
    if low != high and not targets:
        targets = _default_targets(pool)
    metrics, more = resolve_metrics(targets, spec, pool, triton_name, configs)
    problems += more
    if low != high:
        problems += _check_backend(spec, estate, metrics, low)
    if problems:
        return None, problems
    up, down = (getattr(written, name) for name in _WINDOWS)
    return (
        Scaling(
            low,
            high,
            targets,
            metrics,
            tuple(written.schedule),
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


def _check_range(spec: RevisionSpec, targets: Mapping[str, float], low: int, high: int) -> Iterator[Problem]:
    written = spec.scaling
    unused = [*targets, *(name for name in _WINDOWS if getattr(written, name))]
    unused += ["schedule"] if written.schedule else []
    if low == high and unused:
        shown = ", ".join(_WRITTEN.get(name, name) for name in unused)
        yield Problem("", f"min and max are both {low}, so {shown} would do nothing",
                      allowed="max above min", fix="raise max, or leave them out")  # fmt: skip
        return
    for index, entry in enumerate(written.schedule):
        if not low < entry.replicas <= high:
            message = f"at least {low} are always there, and never more than {high}"
            fix = "write a number in this range, or change min or max"
            yield Problem(f"schedule[{index}].replicas", message, entry.replicas, f"{low + 1} to {high}", fix)


def _check_windows(spec: RevisionSpec) -> Iterator[Problem]:
    for name in _WINDOWS:
        value = getattr(spec.scaling, name)
        # autoscaling/v2 takes whole seconds up to one hour.
        if value is not None and not (duration_seconds(value) % 1 == 0 and duration_seconds(value) <= 3600):
            fix = "write for example 300s"
            yield Problem(_WRITTEN[name], "not a stabilisation window", value, "whole seconds, 0s to 1h", fix)


def _check_backend(
    spec: RevisionSpec, estate: EstateSpec, metrics: Mapping[str, Metric], low: int
) -> Iterator[Problem]:
    """What the stack's autoscaler cannot do."""
    written, keda = spec.scaling, estate.autoscaler.backend == "keda"
    if written.schedule and not keda:
        fix = "set autoscaler: {backend: keda} in the stack, or leave schedule out"
        yield Problem("schedule", "an HPA knows no times of day", allowed="absent with backend adapter", fix=fix)
    if low == 0 and not keda:
        fix = "write min: 1, or set autoscaler: {backend: keda} in the stack and add a schedule here"
        yield Problem("min", "an HPA keeps at least one replica", low, "1 or more with backend adapter", fix)
    elif low == 0 and not written.schedule:
        message = "nothing would start the model again: without a replica there is nothing to measure"
        fix = 'add schedule: [{from: "0 9 * * *", to: "0 21 * * *", replicas: 1}], or write min: 1'
        yield Problem("min", message, low, "1 or more, or 0 with a schedule", fix)
    if keda and metrics and not estate.prometheus_url:
        names = ", ".join(_WRITTEN.get(name, name) for name in metrics)
        fix = "add monitoring: {prometheus: …} to the stack, or scale on cpu or memory"
        yield Problem("", f"KEDA asks a Prometheus for {names}, and the stack names none", fix=fix)
    for name in {model: None for one in metrics.values() for model in one.models}:
        if not keda and not _is_label_value(name):
            yield Problem(
                "",
                f"an HPA names the model by a label value, which the name {name} inside Triton cannot be",
                allowed="at most 63 characters, the last a letter or digit",
                fix="rename the model inside Triton, scale on gpu, cpu or memory, or set autoscaler: {backend: keda} "
                "in the stack",
            )


def _is_label_value(triton_name: str) -> bool:
    """Whether a name inside Triton, which is made of the right characters, has the right length and end."""
    return len(triton_name) <= 63 and triton_name[-1].isalnum()
