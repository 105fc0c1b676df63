"""What Istio's policies demand of a request: whether one without a token gets through."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from policies.judging.view import Resource, View, dig
from policies.reading.mesh import istio
from policies.reading.pods import matches

# Policies of this namespace hold in all others.
_ROOT: Final = "istio-system"
_TOKEN: Final = "request.auth."  # noqa: S105  # how the keys of conditions about tokens begin
_ANY_PORT: Final = ":443"
_TEMPLATE: Final = re.compile(r"\\\{(?:\\\*){1,2}\\\}")  # {*} or {**} after re.escape


@dataclass(frozen=True)
class Request:
    """A request without a token.

    Attributes:
        host: whose it is, without a port.
        path: a path of the model that is not open to everybody.
    """

    host: str
    path: str


def about(view: View, kind: str, gateway: Resource) -> Iterator[Resource]:
    """Istio's policies of a kind that hold for the pods of a gateway.

    They stand beside the pods, and the Gateway mostly does too; where it does not, the labels have to do.
    """
    namespaces = {one.namespace for one in istio(view, "Gateway")}
    pods = gateway.at("spec", "selector", default={})
    for policy in istio(view, kind):
        selector = policy.at("spec", "selector", "matchLabels", default={})
        beside = policy.namespace in (gateway.namespace, _ROOT)
        if matches(selector, pods) and (beside or (selector and policy.namespace not in namespaces)):
            yield policy


def checks_tokens(view: View, gateway: Resource) -> bool:
    """Whether tokens are looked at, at a gateway."""
    return any(one.at("spec", "jwtRules", default=[]) for one in about(view, "RequestAuthentication", gateway))


@dataclass(frozen=True)
class Operation:
    """What requests a rule is about; a field that is empty is about all.

    Attributes:
        hosts, paths, methods: patterns, one of which has to fit.
        not_hosts, not_paths, not_methods: patterns, none of which may.
    """

    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    not_hosts: tuple[str, ...] = ()
    not_paths: tuple[str, ...] = ()
    not_methods: tuple[str, ...] = ()

    def holds(self, path: str, host: str) -> bool:
        """Whether a POST is one of them."""
        return (
            (not self.hosts or _one_fits(self.hosts, host))
            and (not self.paths or _one_fits(self.paths, path))
            and (not self.methods or _one_fits(self.methods, "POST"))
            and not _one_fits(self.not_hosts, host)
            and not _one_fits(self.not_paths, path)
            and not _one_fits(self.not_methods, "POST")
        )


@dataclass(frozen=True)
class Checks:
    """What the AuthorizationPolicies of a gateway say about requests without a token.

    Attributes:
        asked: operations of which something beside Istio decides.
        denied: operations that are denied.
        allowed: operations that are allowed, None where no policy allows, and so everything is.
    """

    asked: tuple[Operation, ...]
    denied: tuple[Operation, ...]
    allowed: tuple[Operation, ...] | None

    @classmethod
    def of(cls, policies: Iterable[Resource]) -> "Checks":
        """What some AuthorizationPolicies say together."""
        rules: dict[str, list[Mapping[str, Any]]] = {}
        for policy in policies:
            found = policy.at("spec", "rules", default=[])
            rules.setdefault(policy.at("spec", "action", default="ALLOW"), []).extend(found)
        allowing = rules.get("ALLOW")
        return cls(
            tuple(_operations(rules.get("CUSTOM", ()))),
            tuple(_operations(rule for rule in rules.get("DENY", ()) if _fits_without_token(rule))),
            None if allowing is None else tuple(_operations(rule for rule in allowing if not demands_token(rule))),
        )

    def lets_through(self, request: Request) -> str | None:
        """Why a request without a token gets through, None where it does not."""
        host, path = request.host.lower(), request.path
        # Whoever is asked beside Istio decides himself; nobody here knows what he says.
        if any(one.holds(path, host) for one in self.asked):
            return None
        if any(one.holds(path, host) for one in self.denied):
            # Routes ignore a port after the host, rules do not.
            if any(one.holds(path, host + _ANY_PORT) for one in self.denied):
                return None
            return f"is checked for {request.host}, but not where a port follows: add {request.host}:* to its hosts"
        if self.allowed is not None and not any(one.holds(path, host) for one in self.allowed):
            return None
        return "is not checked for a token"


def demands_token(rule: Mapping[str, Any]) -> bool:
    """Whether an allowing rule asks for a token."""
    if any(_about_tokens(one) and dig(one, "values") for one in dig(rule, "when", default=[])):
        return True
    sources = list(_sources(rule))
    return bool(sources) and all(dig(source, "requestPrincipals") for source in sources)


def refuses_strangers(rule: Mapping[str, Any]) -> bool:
    """Whether a denying rule is there for requests without a good token."""
    asked = any(_about_tokens(one) for one in dig(rule, "when", default=[]))
    return asked or any(dig(source, "notRequestPrincipals") for source in _sources(rule))


def _fits_without_token(rule: Mapping[str, Any]) -> bool:
    """Whether a denying rule holds for every caller without a token."""
    conditions = dig(rule, "when", default=[])
    if not all(_about_tokens(one) and dig(one, "notValues") and not dig(one, "values") for one in conditions):
        return False
    sources = list(_sources(rule))
    return not sources or any(set(source) == {"notRequestPrincipals"} for source in sources)


def _sources(rule: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (dig(one, "source", default={}) for one in dig(rule, "from", default=[]))


def _about_tokens(condition: Mapping[str, Any]) -> bool:
    return dig(condition, "key", default="").startswith(_TOKEN)


def _operations(rules: Iterable[Mapping[str, Any]]) -> Iterator[Operation]:
    """What some rules are about; a rule that names no operation is about all."""
    for rule in rules:
        for one in dig(rule, "to", default=[]) or [{}]:
            found = dig(one, "operation", default={})
            yield Operation(
                hosts=tuple(host.lower() for host in dig(found, "hosts", default=())),
                paths=tuple(dig(found, "paths", default=())),
                methods=tuple(dig(found, "methods", default=())),
                not_hosts=tuple(host.lower() for host in dig(found, "notHosts", default=())),
                not_paths=tuple(dig(found, "notPaths", default=())),
                not_methods=tuple(dig(found, "notMethods", default=())),
            )


def _one_fits(patterns: tuple[str, ...], value: str) -> bool:
    return any(_fits(pattern, value) for pattern in patterns)


def _fits(pattern: str, value: str) -> bool:
    """Istio's own patterns: a star at one end, or templates of path segments."""
    if "*" not in pattern:
        return pattern == value
    if pattern.endswith("*") and "{" not in pattern:
        return value.startswith(pattern[:-1])
    if pattern.startswith("*"):
        return value.endswith(pattern[1:])
    expression = _TEMPLATE.sub(lambda found: "[^/]+" if found[0].count("*") == 1 else ".*", re.escape(pattern))
    return re.fullmatch(expression, value) is not None
