"""The estate: what its cards do and cost, and which models are asked most."""

from collections.abc import Sequence
from typing import Final

from components.monitoring.dashboards.panels import (
    MILLISECONDS,
    NUMBER,
    PERCENT,
    REQUESTS,
    Column,
    Panel,
    Query,
    choice,
    graph,
    number,
    ranking,
)
from components.monitoring.dashboards.panels import render as dashboard
from components.monitoring.dashboards.queries import CARDS, MODEL, OWNER, Cards, Triton, cards_at_work
from spec.grafana import dashboard_uid
from spec.signals import Windows

_SERVICE: Final = ("namespace", MODEL, OWNER)
_LINK: Final = (
    f"/d/{dashboard_uid('model')}/model?var-model=${{__data.fields.Model}}&var-namespace=${{__data.fields.Namespace}}"
)
_TOP: Final = 10


def render(windows: Windows, slices: int) -> str:
    """The dashboard as JSON; a time-sliced card has so many slices."""
    triton = Triton(('namespace=~"$namespace"',), windows)
    cards = Cards('=~"$namespace"', windows, slices=slices)
    return dashboard(
        "estate",
        "Estate",
        "What the GPUs of the estate do and cost, and which models are asked most.",
        [choice("namespace", "Namespace", "nv_inference_request_success", "namespace", many=True)],
        [
            ("GPUs", _cards(windows, cards)),
            ("Models", _models(triton, cards)),
        ],
    )


def _cards(windows: Windows, cards: Cards) -> list[Panel]:
    asked, work = f"sum({cards.asked()})", cards_at_work(windows)
    return [
        number("In the pools", NUMBER, "Cards that dcgm-exporter reports, whoever uses them.", CARDS),
        number("Asked for", NUMBER, "Cards, or shares of them, that the models' pods ask for.", asked),
        number("At work", NUMBER, "Use of all cards, added up.", work),
        number("Free", NUMBER, "Cards in the pools that no model asks for.", f"{CARDS} - {asked}"),
        number("Asked for and idle", NUMBER, "Cards that are paid for and kept from others.", f"{asked} - {work}"),
        number("Worked out", PERCENT, "Share of what is asked for that is at work.", f"{work} / ({asked} > 0)"),
        graph(
            "Cards",
            NUMBER,
            "The gap between asked for and at work is what sharing, fewer replicas or smaller slices could save.",
            Query(CARDS, "in the pools"),
            Query(asked, "asked for"),
            Query(work, "at work"),
            span=12,
        ),
        graph(
            "Cards asked for by model",
            NUMBER,
            f"The {_TOP} models with most cards.",
            Query(f"topk({_TOP}, {_by_service(cards.asked())})", f"{{{{{MODEL}}}}}"),
            span=12,
            stacked=True,
        ),
    ]


def _models(triton: Triton, cards: Cards) -> Sequence[Panel]:
    # Of the models in one server the one that is asked most: the steps of an ensemble are asked with it.
    busiest = f"max by ({', '.join(_SERVICE)}) ({triton.requests((*_SERVICE, 'model'))})"
    asked = _by_service(cards.asked())
    tenth = f"sum(topk(scalar(ceil(count({busiest}) / 10)), {busiest}))"
    return [
        number("Requests", REQUESTS, "Answered requests, of all models.", f"sum({busiest})"),
        number("Models", NUMBER, "Services that answered in this time.", f"count({busiest} > 0)"),
        number(
            "To the busiest tenth",
            PERCENT,
            "Share of the requests that go to the busiest tenth of the models: tuning these pays most.",
            f"{tenth} / (sum({busiest}) > 0)",
        ),
        graph(
            "Requests by model",
            REQUESTS,
            f"The {_TOP} busiest models.",
            Query(f"topk({_TOP}, {busiest})", f"{{{{{MODEL}}}}}"),
            span=12,
            stacked=True,
        ),
        ranking(
            "Models by traffic",
            "Of several models in a server, requests are those to the most asked one. Cards at work are known where a "
            "pod has cards or slices of its own, or HAMi tells; cost is the share of all cards asked for.",
            {MODEL: "Model", "namespace": "Namespace", OWNER: "Owner"},
            [
                Column("Requests", REQUESTS, busiest),
                Column("Failed", PERCENT, triton.failures(_SERVICE)),
                Column("Mean latency", MILLISECONDS, triton.milliseconds("request", _SERVICE)),
                Column("Cards asked for", NUMBER, asked),
                Column("Cards at work", NUMBER, _by_service(cards.at_work())),
                Column("Share of the cost", PERCENT, f"{asked} / on () group_left () (sum({asked}) > 0)"),
            ],
            _LINK,
        ),
    ]


def _by_service(by_pod: str) -> str:
    owners = Triton(('namespace=~"$namespace"',), Windows("", "")).pods(MODEL, OWNER)
    return f"sum by ({', '.join(_SERVICE)}) ({by_pod} * on (namespace, pod) group_left ({MODEL}, {OWNER}) {owners})"
