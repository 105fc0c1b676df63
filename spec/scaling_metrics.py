"""What is measured for the signals of a model, and the target in the metric's own unit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from spec import signals
from spec.gpu import GpuRequest
from spec.model import RevisionSpec
from spec.monitoring import has_queue_times
from spec.pool import GpuPoolSpec
from spec.problems import Problem
from spec.signals import Signal
from spec.triton import ModelConfig

# Kubernetes quantities have no finer steps.
_THOUSANDTH: Final = Decimal("0.001")
_ALTERNATIVE: Final = "qps, queueMs, pending, cpu or memory"
# What grows where requests wait.
_WAITING: Final = ("queue_ms", "pending")


@dataclass(frozen=True)
class Metric:
    """A signal, and the value of it that is wanted of each pod.

    Attributes:
        signal: where the value comes from.
        target: wanted value, in the unit of ``signal.metric``, in whole thousandths.
        models: names inside Triton whose series count; empty where the series know no model.
    """

    signal: Signal
    target: Decimal
    models: tuple[str, ...] = ()


def resolve_metrics(
    targets: Mapping[str, float],
    spec: RevisionSpec,
    pool: GpuPoolSpec | None,
    triton_name: str,
    configs: Mapping[str, ModelConfig],
) -> tuple[dict[str, Metric], list[Problem]]:
    """The metric of each signal but those that Kubernetes knows by itself, and what cannot be measured.

    Args:
        targets: wanted value of each signal, as the model file has it.
        spec: the revision.
        pool: the GPU pool that it runs on.
        triton_name: name of the served model inside Triton.
        configs: configurations that are known here, by name inside Triton.
    """
    metrics: dict[str, Metric] = {}
    problems: list[Problem] = []
    for name, target in targets.items():
        models = _queueing(triton_name, configs) if name in _WAITING else (triton_name,)
        found = _metric(name, target, spec, pool, models)
        if isinstance(found, Problem):
            problems.append(found)
        elif found:
            metrics[name] = found
    return metrics, problems


def _queueing(name: str, configs: Mapping[str, ModelConfig]) -> tuple[str, ...]:
    """Models whose queues the requests to a model stand in: those of its steps, for an ensemble has none of its own.

    Triton counts for an ensemble the time until its scheduler takes a request, which is at once.
    """
    config = configs.get(name)
    if config is None or not config.HasField("ensemble_scheduling"):
        return (name,)
    inner = {step.model_name: None for step in config.ensemble_scheduling.step if step.model_name != name}
    others = {key: value for key, value in configs.items() if key != name}
    return tuple(dict.fromkeys(model for step in inner for model in _queueing(step, others)))


def _metric(
    name: str, target: float, spec: RevisionSpec, pool: GpuPoolSpec | None, models: Sequence[str]
) -> Metric | Problem | None:
    """What is measured for a signal; None for one that Kubernetes knows by itself."""
    found = signals.signal(name, pool.sharing if pool else None)
    if found is None:
        return _no_gpu_signal(target, pool) if name == "gpu" else None
    share: Decimal | None = Decimal(1)
    if name == "gpu" and pool and pool.sharing == "hami" and spec.resources.gpu:
        share = _gpu_share(spec.resources.gpu)
        if share is None:
            return Problem(
                "gpu",
                f"the model has no share of its card of its own: on pool {pool.name} neighbours take what it leaves",
                int(target),
                f"{_ALTERNATIVE}, or a GPU request with cores or a fraction",
                "write resources: {gpu: {memory: …, cores: 50}}, or use qps or queueMs",
            )
    if name == "queue_ms" and not has_queue_times(spec.server):
        return Problem(
            "queueMs",
            "counter_latencies=false keeps Triton from counting queue time",
            target,
            "another signal, or the counters",
            "take it out of server.metrics-config, or write another signal such as qps",
        )
    wanted = (Decimal(str(target)) * found.target_unit * share).quantize(_THOUSANDTH)
    if wanted < _THOUSANDTH:
        message = f"{target:g} % of {share:%} of a card is less than an autoscaler can tell from nothing"
        return Problem(name, message, int(target), "0.1 % of a card or more", "write a larger target")
    return Metric(found, wanted, tuple(models) if found.model_label else ())


def _gpu_share(request: GpuRequest) -> Decimal | None:
    """Share of each card's compute that a request gets on a hami pool; None where nothing bounds it."""
    if request.cores:
        return Decimal(request.cores) / 100
    if request.fraction:
        return Decimal(round(request.fraction * 100)) / 100
    return None if request.memory else Decimal(1)


def _no_gpu_signal(target: float, pool: GpuPoolSpec | None) -> Problem:
    if pool is None:
        message, fix = "a CPU model has no GPU utilisation", "use one of those, or ask for a GPU"
        return Problem("gpu", message, int(target), _ALTERNATIVE, fix)
    return Problem(
        "gpu",
        f"pool {pool.name} shares a card ({pool.sharing}), so every pod would report the use of the whole card",
        int(target),
        _ALTERNATIVE,
        "write queueMs: 5 or qps: <requests per second and replica>, or use a pool in mode whole, mig or hami",
    )
