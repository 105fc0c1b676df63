"""For each alert about a model: series that set it off, and series near the line that do not.

Values are Prometheus's test notation, a sample a minute: ``5x60`` stands still, ``0+60x60`` grows by one a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.components.conftest import ONNX, POOLS

NAMESPACE: Final = "models"
# With KEDA, for the alert about it and for a model that may have no replica.
SETTINGS: Final[dict[str, object]] = {
    "namespace": NAMESPACE,
    "gpuPools": [pool for pool in POOLS if pool["name"] in {"whole", "hami"}],
    "monitoring": {"prometheus": {"provider": "managed"}},
    "autoscaler": {"backend": "keda"},
}
MODELS: Final = {
    "plain": "scaling: {max: 4}\n",
    "exact": "server: {metrics-config: [summary_latencies=true]}\nalerts: {errorRatioPercent: 0.5, p99Ms: 0.25}\n",
    "beating": f"{ONNX}heartbeat: {{every: 60s}}\n",
    "sleepy": 'scaling: {min: 0, max: 2, qps: 5, schedule: [{from: "0 9 * * *", to: "0 21 * * *", replicas: 1}]}\n',
}

Series = Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """One alert of one severity.

    Attributes:
        alert: its name.
        severity: its severity.
        revision: the Deployment that it is about; empty for an alert about the platform.
        minute: when it must have fired.
        fires: series that set it off.
        quiet: by what it shows, series near the line.
        labels: labels of the alert beside those of its rule.
        says: the description that somebody reads, where something measured stands in it.
        value: what is measured, where it stands in the summary.
        since: minute at which the trouble begins.
    """

    alert: str
    severity: str
    revision: str
    minute: int
    fires: Series
    quiet: Mapping[str, Series]
    labels: Mapping[str, str] = field(default_factory=dict)
    says: str = ""
    value: str = ""
    since: int = 0


def series(metric: str, labels: Mapping[str, str]) -> str:
    """A series as Prometheus writes it."""
    matchers = [f'{key}="{value}"' for key, value in labels.items()]
    return f"{metric}{{{', '.join(matchers)}}}"


def target(model: str) -> dict[str, str]:
    """Labels of what is scraped through the Service of a revision."""
    return {"namespace": NAMESPACE, "app_kubernetes_io_instance": model, "app_kubernetes_io_version": "v1"}


def triton(metric: str, model: str = "plain", pod: str = "a", **more: str) -> str:
    return series(f"nv_inference_{metric}", {**target(model), "pod": pod, "model": model, "version": "1", **more})


def heartbeat(metric: str, values: str, **more: str) -> Series:
    return {series(f"triton_heartbeat_{metric}", {**target("beating"), **more}): values}


def kube(metric: str, name: str = "plain-v1", kind: str = "deployment") -> str:
    """A series of kube-state-metrics."""
    return series(f"kube_{kind}_{metric}", {"namespace": NAMESPACE, kind: name})


def requests(good: float, failed: float, model: str = "plain", reason: str = "BACKEND") -> Series:
    """So many requests a minute."""
    return {
        triton("request_success", model): f"0+{good}x60",
        triton("request_failure", model, reason=reason): f"0+{failed}x60",
    }


def waiting(queue: float, *computes: float) -> Series:
    """Microseconds a minute that requests wait and are worked on."""
    parts = zip(("input", "infer", "output"), computes, strict=True)
    worked = {triton(f"compute_{part}_duration_us"): f"0+{value}x60" for part, value in parts}
    return {triton("queue_duration_us"): f"0+{queue}x60", **worked}


def quantile(micros: float, pod: str = "a", which: str = "0.99") -> Series:
    return {triton("request_summary_us", "exact", pod, quantile=which): f"{micros}x60"}


def replicas(available: int, wanted: int, *, created: int = 0, updated: str = "2x60") -> Series:
    return {
        kube("status_replicas_available"): f"{available}x60",
        kube("spec_replicas"): f"{wanted}x60",
        kube("created"): f"{created}x60",
        kube("status_replicas_updated"): updated,
    }


def autoscaler(desired: str, most: int) -> Series:
    kind = "horizontalpodautoscaler"
    return {kube("status_desired_replicas", kind=kind): desired, kube("spec_max_replicas", kind=kind): f"{most}x60"}


def reported(model: str, wanted: int = 1) -> Series:
    """What is known about a revision that works."""
    name = f"{model}-v1"
    return {
        triton("request_success", model): "5x60",
        kube("status_replicas_available", name): "0x60",
        kube("spec_replicas", name): f"{wanted}x60",
    }


def without(metric: str, found: Series) -> Series:
    return {name: values for name, values in found.items() if metric not in name}


MODEL_CASES: Final = (
    Case(
        "TritonErrorRatio",
        "critical",
        "plain-v1",
        minute=12,
        fires=requests(94, 6),
        quiet={
            "just below 5 %": requests(95.1, 4.9),
            "callers hung up": requests(50, 50, reason="CANCELED"),
            "no request at all": requests(0, 0),
            "a model whose name begins so": requests(0, 100, "plainer"),
        },
        labels={"model": "plain"},
        says="6% of the requests of the last 5m failed.",
    ),
    Case(
        "TritonErrorRatio",
        "critical",
        "exact-v1",
        minute=12,
        # Few requests are requests as well.
        fires=requests(0, 0.5, "exact"),
        quiet={"the line that the model file draws": requests(995, 5, "exact")},
        labels={"model": "exact"},
        says="100% of the requests of the last 5m failed.",
    ),
    Case(
        "TritonQueueTimeHigh",
        "warning",
        "plain-v1",
        minute=20,
        fires=waiting(2_100, 200, 700, 100),
        quiet={"just below twice the work": waiting(1_990, 200, 700, 100), "no work": waiting(0, 0, 0, 0)},
        labels={"model": "plain"},
        says="Requests wait 210% of the time that they are worked on.",
    ),
    Case(
        "TritonLatencyP99High",
        "warning",
        "exact-v1",
        minute=12,
        # The slowest of two pods counts.
        fires={**quantile(251), **quantile(100, "b")},
        quiet={"on the line": quantile(250), "another quantile": {**quantile(9_999, which="0.9"), **quantile(1)}},
        labels={"model": "exact"},
        says="One request in a hundred takes 251 us or more on a pod; 0.25 ms are wanted.",
    ),
    Case(
        "TritonAtMaxReplicas",
        "warning",
        "plain-v1",
        minute=30,
        fires=autoscaler("4x60", 4),
        quiet={"one replica is left": autoscaler("3x60", 4), "only now and then": autoscaler("4x8 3 4x8 3 4x8", 4)},
    ),
    Case(
        "TritonNotReady",
        "critical",
        "plain-v1",
        minute=60,
        fires=replicas(0, 2),
        quiet={
            "one answers": replicas(1, 2),
            "none is wanted": replicas(0, 0),
            "the Deployment is new": replicas(0, 2, created=3_500),
        },
    ),
    Case(
        "TritonNotReady",
        "warning",
        "plain-v1",
        minute=60,
        fires=replicas(1, 2),
        quiet={"all answer": replicas(2, 2), "a rollout goes on": replicas(1, 2, updated="0+1x60")},
        says="Only 1 replicas are ready, fewer than asked for.",
    ),
    Case(
        "TritonHeartbeatFailing",
        "critical",
        "beating-v1",
        minute=12,
        fires=heartbeat("up", "0x60", replica="10.0.0.1"),
        quiet={
            "it answers": heartbeat("up", "1x60", replica="10.0.0.1"),
            "one round of many": heartbeat("up", "1x4 0 1x5 0 1x40", replica="10.0.0.1"),
        },
        labels={**target("beating"), "replica": "10.0.0.1"},
    ),
    Case(
        "TritonMetricsMissing",
        "warning",
        "plain-v1",
        minute=60,
        fires=without("request_success", reported("plain")),
        quiet={"all are there": reported("plain")},
        labels=target("plain"),
    ),
    Case(
        "TritonMetricsMissing",
        "warning",
        "beating-v1",
        minute=60,
        fires=reported("beating"),
        quiet={"the heartbeat's are there": {**reported("beating"), **heartbeat("replicas", "1x60")}},
        labels=target("beating"),
    ),
    Case(
        "TritonMetricsMissing",
        "warning",
        "sleepy-v1",
        minute=60,
        fires=without("request_success", reported("sleepy")),
        quiet={"it sleeps": without("request_success", reported("sleepy", wanted=0))},
        labels=target("sleepy"),
    ),
)
