"""Where the requests of a model go, in words."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from policies.judging.view import Resource
from review.words import items, mapping, text
from spec import names

LEADS: Final = "its Service leads to"


def traffic(name: str, resources: Iterable[Resource]) -> Iterator[tuple[str, str]]:
    """What the routes and the Service of a model say, each with its name in words."""
    for found in resources:
        if found.kind == "VirtualService":
            hosts = ", ".join(map(text, items(found.at("spec", "hosts"))))
            for route in map(mapping, items(found.at("spec", "http"))):
                if route.get("name") == f"{name}.http":
                    yield from _route(name, route)
                if route.get("name") == f"{name}.testers.http":
                    yield "testers go to", ", ".join(revision for revision, _ in _shares(name, route))
            if not text(found.object_name).endswith(".mesh"):
                yield f"host of {text(found.object_name)}", hosts
        if found.kind == "Service" and text(found.object_name) == name:
            revision = mapping(found.at("spec", "selector")).get(names.REVISION_LABEL)
            if revision:
                yield LEADS, text(revision)


def _route(name: str, route: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for revision, weight in _shares(name, route):
        yield f"weight of {revision}", f"{weight} %"
    copies = mapping(route.get("mirror")).get("host")
    if copies:
        percent = mapping(route.get("mirrorPercentage")).get("value", 100)
        yield "copies go to", f"{_revision_of(name, copies)}, {text(percent)} %"
    if "timeout" in route:
        yield "timeout", text(route["timeout"])


def _shares(name: str, route: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in map(mapping, items(route.get("route"))):
        host = mapping(one.get("destination")).get("host", "")
        yield _revision_of(name, host), text(one.get("weight", 100))


def _revision_of(name: str, host: object) -> str:
    """The revision behind the host of a Service, or the Service of another model."""
    service = text(host).partition(".")[0]
    return service.removeprefix(f"{name}-")
