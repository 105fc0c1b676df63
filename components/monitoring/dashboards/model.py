"""One model, chosen in the dashboard: requests, where their time goes, replicas, GPUs."""

from typing import Final

from components.monitoring.dashboards.panels import (
    MEBIBYTES,
    MILLISECONDS,
    NUMBER,
    PERCENT,
    REQUESTS,
    SECONDS,
    Panel,
    Query,
    Variable,
    choice,
    graph,
    number,
)
from components.monitoring.dashboards.panels import render as dashboard
from components.monitoring.dashboards.queries import MODEL, REVISION, Cards, Triton
from spec.signals import PENDING, QUEUE_TIME, Windows

_SERVED: Final = "nv_inference_request_success"
_NAMESPACE: Final = 'namespace="$namespace"'
SERVICE: Final = (_NAMESPACE, f'{MODEL}="$model"')
_REVISIONS: Final = f'{REVISION}=~"$revision"'


def render(windows: Windows) -> str:
    """The dashboard as JSON."""
    triton = Triton((*SERVICE, _REVISIONS, 'model=~"$triton_model"'), windows)
    return dashboard(
        "model",
        "Model",
        "Requests to one model, where their time goes, its replicas and what they make of their GPUs.",
        [
            *service_variables(),
            choice("triton_model", "Model in Triton", _selector(*SERVICE), "model", many=True),
            choice("revision", "Revision", _selector(*SERVICE), REVISION, many=True),
            choice("pod", "Pod", _selector(*SERVICE, _REVISIONS), "pod", many=True),
        ],
        [
            ("Requests", _requests(triton)),
            ("Latency", _latency(triton)),
            ("Replicas", _replicas()),
            ("GPU", _gpu(Cards('="$namespace"', windows, '=~"$pod"'))),
            ("Heartbeat", _heartbeat()),
        ],
    )


def service_variables() -> list[Variable]:
    """Namespace and model."""
    return [
        choice("namespace", "Namespace", _SERVED, "namespace"),
        choice("model", "Model", _selector(_NAMESPACE), MODEL),
    ]


def _selector(*matchers: str) -> str:
    return f"{_SERVED}{{{','.join(matchers)}}}"


def _requests(triton: Triton) -> list[Panel]:
    return [
        graph(
            "Requests",
            REQUESTS,
            "Answered requests by the name of the model inside Triton.",
            Query(triton.requests(["model"]), "{{model}}"),
        ),
        graph(
            "Failed requests",
            PERCENT,
            "Of all requests, those that failed; a caller that hung up is no failure.",
            Query(triton.failures(["model"]), "{{model}}"),
        ),
        graph(
            "Pending requests",
            NUMBER,
            "Requests that wait for an execution, by pod.",
            Query(PENDING.query(triton.matchers, ["pod"], triton.windows), "{{pod}}"),
        ),
    ]


def _latency(triton: Triton) -> list[Panel]:
    queue = QUEUE_TIME.query(triton.matchers, [], triton.windows)
    parts = {"input": "copy in", "infer": "compute", "output": "copy out"}
    computed = [Query(triton.milliseconds(f"compute_{part}", []), label) for part, label in parts.items()]
    slowest = "Mean time of a request of each model in the server, queueing included."
    return [
        graph(
            "Where the time of a request goes",
            MILLISECONDS,
            "Mean times of a request, one on the other. Much queueing asks for replicas or larger batches, much "
            "compute for a faster model. Several models in the server are averaged: choose one.",
            Query(queue, "queue"),
            *computed,
            stacked=True,
        ),
        graph("Latency", MILLISECONDS, slowest, Query(triton.milliseconds("request", ["model"]), "{{model}}")),
        graph(
            "Mean batch",
            NUMBER,
            "Inferences in an execution: what dynamic batching makes of single requests.",
            Query(triton.batch(["model"]), "{{model}}"),
        ),
    ]


def _replicas() -> list[Panel]:
    hpa = f'{_NAMESPACE},horizontalpodautoscaler=~"$model-($revision)"'
    name, keep = "{{horizontalpodautoscaler}}", "max by (horizontalpodautoscaler)"
    deployment = f'{_NAMESPACE},deployment=~"$model-($revision)"'
    ready = f"max by (deployment) (kube_deployment_status_replicas_available{{{deployment}}})"
    metric = "max by (horizontalpodautoscaler, metric_name, metric_target_type)"
    current, target = (f"{metric} (kube_horizontalpodautoscaler_{one}_target_metric{{{hpa}}})"
                       for one in ("status", "spec"))  # fmt: skip
    return [
        graph(
            "Replicas",
            NUMBER,
            "Replicas that are ready, those that the autoscaler wants, and its limits. A model with a fixed number has "
            "no autoscaler.",
            Query(ready, "{{deployment}} ready"),
            Query(f"{keep} (kube_horizontalpodautoscaler_status_desired_replicas{{{hpa}}})", f"{name} wanted"),
            Query(f"{keep} (kube_horizontalpodautoscaler_spec_min_replicas{{{hpa}}})", f"{name} fewest"),
            Query(f"{keep} (kube_horizontalpodautoscaler_spec_max_replicas{{{hpa}}})", f"{name} most"),
            span=12,
        ),
        graph(
            "Signals against their targets",
            PERCENT,
            "What the autoscaler sees, in parts of its target: above 100 % it adds replicas. No line is no metric.",
            Query(f"{current} / ({target} > 0)", "{{horizontalpodautoscaler}} {{metric_name}}"),
            span=12,
        ),
    ]


def _gpu(cards: Cards) -> list[Panel]:
    return [
        graph(
            "GPU use by pod",
            PERCENT,
            "Mean use of a pod's own cards or MIG slices; of a card shared by HAMi the pod's part of the whole card. "
            "Time slices and qGPU cannot be told apart by pod.",
            Query(cards.whole(), "{{pod}} cards"),
            Query(cards.mig(), "{{pod}} MIG"),
            Query(cards.hami(), "{{pod}} HAMi"),
            top=1,
        ),
        graph(
            "GPU memory by pod",
            MEBIBYTES,
            "Memory used on a pod's own cards and MIG slices.",
            Query(cards.memory(), "{{pod}}"),
        ),
        number("Cards asked for", NUMBER, "Cards, or shares of them, of these pods.", f"sum({cards.asked()})", span=8),
    ]


def _heartbeat() -> list[Panel]:
    matchers = ",".join((*SERVICE, _REVISIONS))
    return [
        graph(
            "Replicas that answer",
            NUMBER,
            "1 for a replica that answered the last real request of the heartbeat. Nothing without a heartbeat.",
            Query(f"min by (replica) (triton_heartbeat_up{{{matchers}}})", "{{replica}}"),
            span=12,
            top=1,
        ),
        graph(
            "Answer to the heartbeat",
            SECONDS,
            "How long the last real request of the heartbeat took, by replica.",
            Query(f"max by (replica) (triton_heartbeat_duration_seconds{{{matchers}}})", "{{replica}}"),
            span=12,
        ),
    ]
