"""Policies about gateways and what they open: TLS, tokens, debug twins."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy
from policies.judging.view import Resource, View, dig
from policies.reading.authorization import (
    Checks,
    Request,
    about,
    checks_tokens,
    demands_token,
    refuses_strangers,
)
from policies.reading.matching import uri
from policies.reading.mesh import MESH, Services, bound_to, destinations, istio, rules
from policies.reading.pods import Pods, all_pods, matches
from spec import names
from spec.traffic import HEALTH_PATHS

_PLAIN: Final = frozenset({"HTTP", "HTTP2", "GRPC", "GRPC-WEB"})
_SECURE: Final = frozenset({"HTTPS", "TLS"})
_PASSED_ON: Final = frozenset({"PASSTHROUGH", "AUTO_PASSTHROUGH"})
_OLD: Final = frozenset({"TLSV1_0", "TLSV1_1"})
# How our own gateway for callers from inside the company is called; any other one is taken to be public.
_INTERNAL: Final = "internal-gateway"
_NAME: Final = "app.kubernetes.io/name"
_DEBUG: Final = f"triton-{names.DEBUG}"
_NOTEBOOK: Final = re.compile(r"\bjupyter")


@estate_policy(
    "gateway-tls",
    "Gateways in production end TLS 1.2 or newer, and answer plain HTTP with a redirect only",
    why="Requests, answers and whatever stands in their headers could be read and changed on the way.",
    fix="ingress: {tls: {issuer: …}} in the stack file, or tls: {mode: SIMPLE, credentialName: …} of the server and "
    "httpsRedirect: true of the one on port 80",
    severity=Severity.HIGH,
    dev=Level.DISABLED,
)
def gateway_tls(view: View) -> Iterator[Finding]:
    """Servers of gateways; those that also take tokens are the business of endpoint-clear-text."""
    for gateway in istio(view, "Gateway"):
        plain = [] if checks_tokens(view, gateway) else list(_plain_servers(gateway))
        for server in plain:
            yield Finding(gateway, f"{_listener(server)} takes requests without TLS")
        for server in gateway.at("spec", "servers", default=[]):
            if dig(server, "port", "protocol", default="").upper() not in _SECURE:
                continue
            mode, least = dig(server, "tls", "mode", default="PASSTHROUGH"), dig(server, "tls", "minProtocolVersion")
            if mode in _PASSED_ON:
                yield Finding(gateway, f"{_listener(server)} has TLS mode {mode}, so no route or check sees a request")
            if least in _OLD:
                yield Finding(gateway, f"{_listener(server)} takes {least}")


@estate_policy(
    "endpoint-clear-text",
    "Tokens are taken over TLS only",
    why="Whoever reads a token on its way may use it until it expires.",
    fix="ingress: {tls: {issuer: …}} in the stack file, or httpsRedirect: true of the server on port 80",
    severity=Severity.CRITICAL,
    dev=Level.DISABLED,
)
def endpoint_clear_text(view: View) -> Iterator[Finding]:
    """Plain servers of gateways that look at tokens."""
    for gateway in istio(view, "Gateway"):
        for server in _plain_servers(gateway):
            if checks_tokens(view, gateway):
                yield Finding(gateway, f"{_listener(server)} takes tokens without TLS")


@estate_policy(
    "endpoint-token",
    "Whoever calls a model through a public gateway needs a token",
    why="Anybody who finds the address could use the cards and ask the model whatever he likes.",
    fix="auth: {token: true} in the model file and tokens in the stack file; traffic: {gateways: [internal]} for a "
    "model that only callers from inside need; for one that is meant for everybody a waiver that says so",
    severity=Severity.CRITICAL,
    dev=Level.DISABLED,
)
def endpoint_token(view: View) -> Iterator[Finding]:
    """Routes of public gateways to serving pods."""
    services = Services(view)
    gateways = {f"{one.namespace}/{one.object_name}": one for one in istio(view, "Gateway")}
    checks = {name: Checks.of(about(view, "AuthorizationPolicy", one)) for name, one in gateways.items()}
    for routes in istio(view, "VirtualService"):
        for name in sorted(bound_to(routes) - {MESH}):
            gateway = gateways.get(name)
            if gateway is not None and _is_internal(gateway):
                continue
            seen = set()
            for model, request in _exposed(routes, services):
                reason = checks.get(name, Checks.of(())).lets_through(request)
                if reason and (model, reason) not in seen:
                    seen.add((model, reason))
                    yield Finding(routes, f"{model} at gateway {name} {reason}")


@estate_policy(
    "token-without-authorization",
    "Where tokens are checked they are also demanded",
    why="RequestAuthentication refuses bad tokens; a request without any passes.",
    fix="an AuthorizationPolicy with the same selector: DENY with notRequestPrincipals, or ALLOW with "
    "requestPrincipals; auth: {token: true} in the model file makes it",
    severity=Severity.CRITICAL,
    dev=Level.ADVISORY,
)
def token_without_authorization(view: View) -> Iterator[Finding]:
    """RequestAuthentications against AuthorizationPolicies for the same pods.

    Left alone is a gateway that demands no token of anybody, because it is internal or no model is behind it: there a
    check still keeps tokens from the models.
    """
    demanding: dict[str, list[Resource]] = {}
    for policy in istio(view, "AuthorizationPolicy"):
        found, denies = policy.at("spec", "rules", default=[]), policy.at("spec", "action", default="ALLOW") == "DENY"
        if any(refuses_strangers(rule) if denies else demands_token(rule) for rule in found):
            demanding.setdefault(policy.namespace, []).append(policy)
    idle = _idle_checks(view)
    for check in istio(view, "RequestAuthentication"):
        if id(check) in idle:
            continue
        labels = check.at("spec", "selector", "matchLabels", default={})
        for policy in demanding.get(check.namespace, ()):
            same = policy.at("spec", "targetRefs") == check.at("spec", "targetRefs")
            if same and matches(policy.at("spec", "selector", "matchLabels", default={}), labels):
                break
        else:
            where = ", ".join(f"{key}={value}" for key, value in labels.items()) or f"namespace {check.namespace}"
            yield Finding(check, f"no AuthorizationPolicy demands a token of {where}")


@estate_policy(
    "debug-exposed",
    "Nothing leads to a debug twin or a notebook",
    why="Whoever reaches one runs programs with the rights and the cards of the model.",
    fix="take the Service or the rule out; kubectl port-forward and kubectl exec reach the pod with the rights of the "
    "person",
    severity=Severity.CRITICAL,
    dev=Level.MANDATORY,
)
def debug_exposed(view: View) -> Iterator[Finding]:
    """Services and NetworkPolicies that select debug twins or notebooks."""
    debugged = {id(pods.made_by): pods for pods in all_pods(view) if _is_for_debugging(pods)}
    if not debugged:
        return
    services = Services(view)
    for service in services.by_name.values():
        for pods in services.pods(service):
            if id(pods.made_by) in debugged:
                yield Finding(service, f"leads to {pods.made_by.key}")
    for policy in view.of_kind("NetworkPolicy"):
        selector = policy.at("spec", "podSelector", default={})
        named = dig(selector, "matchLabels", _NAME) == _DEBUG
        opened = [rule for rule in policy.at("spec", "ingress", default=[]) if named or not dig(rule, "from")]
        for pods in debugged.values() if opened else ():
            if pods.made_by.namespace == policy.namespace and matches(selector, pods.labels):
                yield Finding(policy, f"opens {pods.made_by.key}")


def _is_internal(gateway: Resource) -> bool:
    return gateway.labels.get(_NAME) == _INTERNAL


def _idle_checks(view: View) -> set[int]:
    """The RequestAuthentications, by identity, that are only about gateways of which nobody has to demand a token."""
    services = Services(view)
    leading = {name for routes in istio(view, "VirtualService") if any(_exposed(routes, services))
               for name in bound_to(routes)}  # fmt: skip
    idle: set[int] = set()
    busy: set[int] = set()
    for gateway in istio(view, "Gateway"):
        demands = not _is_internal(gateway) and f"{gateway.namespace}/{gateway.object_name}" in leading
        (busy if demands else idle).update(id(check) for check in about(view, "RequestAuthentication", gateway))
    return idle - busy


def _plain_servers(gateway: Resource) -> Iterator[Mapping[str, Any]]:
    for server in gateway.at("spec", "servers", default=[]):
        plain = dig(server, "port", "protocol", default="").upper() in _PLAIN
        if plain and not dig(server, "tls", "httpsRedirect", default=False):
            yield server


def _listener(server: Mapping[str, Any]) -> str:
    return f"port {dig(server, 'port', 'number')} ({dig(server, 'port', 'protocol')})"


def _exposed(routes: Resource, services: Services) -> Iterator[tuple[str, Request]]:
    """The Services of models that routes lead to, each with a request that would arrive there."""
    for _, rule in rules(routes, "http"):
        models = [
            dig(one, "host", default="")
            for one, weight in destinations(rule)
            if weight != 0 and _is_model(dig(one, "host", default=""), routes, services)
        ]
        for path in _paths(rule) if models else ():
            for host in routes.at("spec", "hosts", default=[]):
                yield models[0], Request(host.replace("*", "any"), path)


def _is_model(host: str, routes: Resource, services: Services) -> bool:
    service = services.at(host, routes.namespace)
    return service is not None and bool(services.serving(service))


def _paths(rule: Mapping[str, Any]) -> Iterator[str]:
    """A path for each match of a rule, further than those that may be open to everybody."""
    for match in dig(rule, "match", default=[]) or [{}]:
        path = uri(match)
        if path.kind == "exact":
            if path.text not in HEALTH_PATHS:
                yield path.text
        else:
            yield f"{path.beginning.rstrip('/')}/models/any/infer"


def _is_for_debugging(pods: Pods) -> bool:
    if pods.labels.get(_NAME) == _DEBUG:
        return True
    return any(_NOTEBOOK.search(" ".join([dig(one, "image", default=""), *_words(one)])) for one in pods.containers)


def _words(container: Mapping[str, Any]) -> list[str]:
    return [str(word) for field in ("command", "args") for word in dig(container, field, default=[])]
