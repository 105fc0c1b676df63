"""How the requests of a model are shared out, and how a shadow revision does beside the primary one.

Answers of a shadow revision reach nobody, so the two are compared by Triton's own counters, in the same way for both.
"""

from typing import Final

from components.monitoring.dashboards.model import SERVICE, service_variables
from components.monitoring.dashboards.panels import (
    MILLISECONDS,
    NUMBER,
    PERCENT,
    REQUESTS,
    Panel,
    Query,
    choice,
    graph,
    number,
)
from components.monitoring.dashboards.panels import render as dashboard
from components.monitoring.dashboards.queries import REVISION, Cards, Triton
from spec.signals import Windows

_SELECTOR: Final = f"nv_inference_request_success{{{','.join(SERVICE)}}}"
_LEGEND: Final = f"{{{{{REVISION}}}}}"


def render(windows: Windows) -> str:
    """The dashboard as JSON."""
    triton = Triton((*SERVICE, 'model="$triton_model"'), windows)
    return dashboard(
        "traffic",
        "Traffic split and mirror",
        "How the requests of a model are shared out between its revisions, and how a shadow does beside the primary.",
        [
            *service_variables(),
            choice("triton_model", "Model in Triton", _SELECTOR, "model"),
            choice("primary", "Primary revision", _SELECTOR, REVISION),
            choice("shadow", "Shadow revision", _SELECTOR, REVISION, last=True),
        ],
        [
            ("Split", _split(triton)),
            ("Revisions", _revisions(triton)),
            ("Shadow beside primary", _shadow(triton)),
        ],
    )


def _split(triton: Triton) -> list[Panel]:
    each = triton.requests([REVISION])
    return [
        graph(
            "Share of the requests",
            PERCENT,
            "Answered requests of each revision in all of them, copies for a shadow included.",
            Query(f"{each} / on () group_left () (sum({each}) > 0)", _LEGEND),
            span=12,
            top=1,
            stacked=True,
        ),
        graph("Requests", REQUESTS, "Answered requests of each revision.", Query(each, _LEGEND), span=12),
    ]


def _revisions(triton: Triton) -> list[Panel]:
    return [
        graph(
            "Failed requests",
            PERCENT,
            "Of the requests to each revision, those that failed.",
            Query(triton.failures([REVISION]), _LEGEND),
        ),
        graph(
            "Latency",
            MILLISECONDS,
            "Mean time of a request, queueing included.",
            Query(triton.milliseconds("request", [REVISION]), _LEGEND),
        ),
        graph(
            "Time in the queue",
            MILLISECONDS,
            "The part of it in which a request waits.",
            Query(triton.milliseconds("queue", [REVISION]), _LEGEND),
        ),
        graph(
            "Compute",
            MILLISECONDS,
            "The part of it in which the model works.",
            Query(triton.milliseconds("compute_infer", [REVISION]), _LEGEND),
        ),
        graph("Mean batch", NUMBER, "Inferences in an execution.", Query(triton.batch([REVISION]), _LEGEND)),
        graph(
            "GPU use",
            PERCENT,
            "Mean over the pods of each revision, in the same measure as that of the model's dashboard.",
            Query(_gpu(triton), _LEGEND),
            top=1,
        ),
    ]


def _gpu(triton: Triton) -> str:
    use = Cards('="$namespace"', triton.windows).use()
    return f"avg by ({REVISION}) ({use} * on (namespace, pod) group_left ({REVISION}) {triton.pods(REVISION)})"


def _shadow(triton: Triton) -> list[Panel]:
    primary, shadow = (triton.only(f'{REVISION}="${one}"') for one in ("primary", "shadow"))
    latency = _relative(shadow.milliseconds("request", []), primary.milliseconds("request", []))
    compute = _relative(shadow.milliseconds("compute_infer", []), primary.milliseconds("compute_infer", []))
    more = f"({shadow.failures([])}) - ({primary.failures([])})"
    copied = f"{shadow.requests([])} / ({primary.requests([])} > 0)"
    return [
        number("Shadow's latency", PERCENT, "Of the shadow, in parts of the primary's.", latency, span=6),
        number("Shadow's compute", PERCENT, "Of the shadow, in parts of the primary's.", compute, span=6),
        number(
            "Shadow's additional failures",
            PERCENT,
            "Failed share of the shadow's requests less that of the primary's.",
            more,
            span=6,
        ),
        number("Shadow's requests", PERCENT, "Requests of the shadow, in parts of the primary's.", copied, span=6),
        graph(
            "Latency of both",
            MILLISECONDS,
            "Mean time of a request.",
            Query(primary.milliseconds("request", []), "$primary"),
            Query(shadow.milliseconds("request", []), "$shadow (shadow)"),
            span=12,
        ),
        graph(
            "Failed requests of both",
            PERCENT,
            "Of the requests to each.",
            Query(primary.failures([]), "$primary"),
            Query(shadow.failures([]), "$shadow (shadow)"),
            span=12,
        ),
    ]


def _relative(shadow: str, primary: str) -> str:
    return f"({shadow}) / ({primary} > 0)"
