"""What a proxy would make of the rendered objects: first match of the routes, tokens, policies. In small."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.components.conftest import Render

GATEWAY = "istio-ingress/triton-estate"


@dataclass(frozen=True)
class Request:
    """A request as a proxy sees it; ``port`` is that of the listener."""

    host: str
    path: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    port: int = 443


@dataclass(frozen=True)
class Answer:
    """Where a request goes, and what becomes of its path; or what the proxy says itself."""

    shares: Mapping[str, int] = field(default_factory=dict)
    path: str = ""
    status: int = 0
    route: Mapping[str, Any] = field(default_factory=dict)

    @property
    def to(self) -> str:
        """The only Service and port that gets it."""
        (found,) = self.shares
        return found


def services(found: Render, gateway: str = GATEWAY) -> dict[str, list[dict[str, Any]]]:
    """The rules of each host at a gateway; a host may stand in one VirtualService only."""
    rules: dict[str, list[dict[str, Any]]] = {}
    for service in found.objects("VirtualService"):
        if gateway in service["spec"]["gateways"]:
            for host in service["spec"]["hosts"]:
                assert host not in rules, f"two VirtualServices for {host}"
                rules[host] = service["spec"]["http"]
    return rules


def answer(found: Render, request: Request, gateway: str = GATEWAY) -> Answer | None:
    """What happens to a request, None for 404. As Istio has it, a port after the host does not count."""
    rules = services(found, gateway).get(request.host.partition(":")[0].lower(), [])
    return first(rules, request)


def first(rules: Iterable[Mapping[str, Any]], request: Request) -> Answer | None:
    """The first rule that matches."""
    for rule in rules:
        if any(_matches(match, request) for match in rule["match"]):
            return _answer(rule, request)
    return None


def _matches(match: Mapping[str, Any], request: Request) -> bool:
    path = request.path.partition("?")[0]
    uri, method = match.get("uri"), match.get("method")
    headers, without = match.get("headers", {}), match.get("withoutHeaders", {})
    return (
        (uri is None or _text(uri, path))
        and (method is None or _text(method, request.method))
        and match.get("port", request.port) == request.port
        and all(name in request.headers and _text(one, request.headers[name]) for name, one in headers.items())
        # An empty match asks whether the header is there.
        and not any(name in request.headers and (not one or _text(one, request.headers[name]))
                    for name, one in without.items())
    )  # fmt: skip


def _text(match: Mapping[str, str], value: str) -> bool:
    ((kind, wanted),) = match.items()
    kinds = {"exact": value == wanted, "prefix": value.startswith(wanted)}
    return bool(re.fullmatch(wanted, value)) if kind == "regex" else kinds[kind]


def _answer(rule: Mapping[str, Any], request: Request) -> Answer:
    if "directResponse" in rule:
        return Answer(status=rule["directResponse"]["status"], route=rule)
    shares = {
        f"{one['destination']['host'].partition('.')[0]}:{one['destination']['port']['number']}": one.get("weight", 100)
        for one in rule["route"]
    }
    path, query, more = request.path.partition("?")
    if rewrite := rule.get("rewrite", {}).get("uriRegexRewrite"):
        path = re.sub(rewrite["match"], rewrite["rewrite"], path)
    return Answer(shares=shares, path=path + query + more, route=rule)


def denied(policies: Sequence[Mapping[str, Any]], request: Request, claims: Mapping[str, Any] | None) -> bool:
    """Whether a policy refuses a request: one of its rules holds."""
    assert {policy["action"] for policy in policies} <= {"DENY"}
    return any(_holds(rule, request, claims) for policy in policies for rule in policy["rules"])


def _holds(rule: Mapping[str, Any], request: Request, claims: Mapping[str, Any] | None) -> bool:
    principal = f"{claims['iss']}/{claims['sub']}" if claims else None
    sources = [source["source"]["notRequestPrincipals"] for source in rule.get("from", [])]
    strangers = not sources or any(not any(_like(one, principal) for one in wanted) for wanted in sources)
    conditions = all(not _claim(condition, claims) for condition in rule.get("when", []))
    operations = any(_operation(to["operation"], request) for to in rule["to"])
    return strangers and conditions and operations


def _claim(condition: Mapping[str, Any], claims: Mapping[str, Any] | None) -> bool:
    name = re.fullmatch(r"request\.auth\.claims\[(.+)\]", condition["key"])
    assert name
    values = (claims or {}).get(name[1], [])
    return any(value in condition["notValues"] for value in ([values] if isinstance(values, str) else values))


def _operation(operation: Mapping[str, Any], request: Request) -> bool:
    path = request.path.partition("?")[0]
    hosts, paths = operation["hosts"], operation.get("paths", ["*"])
    excluded = any(_like(one, path) for one in operation.get("notPaths", []))
    on_host = any(_like(one.lower(), request.host.lower()) for one in hosts)
    return on_host and any(_like(one, path) for one in paths) and not excluded


def _like(pattern: str, value: str | None) -> bool:
    if value is None:
        return False
    return value.startswith(pattern[:-1]) if pattern.endswith("*") else value == pattern
