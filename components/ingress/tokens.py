"""Tokens at a gateway: which are good, and which models ask for one. Nothing of it is secret."""

from collections.abc import Iterator
from typing import Any, Final

import pulumi
import pulumi_kubernetes as k8s

from components.ingress.envoy_crds import ConfigPatch, FilterChainMatch, FilterMatch, ListenerMatch, Patch, PatchMatch
from components.ingress.policy_crds import (
    AuthorizationPolicy,
    AuthorizationRule,
    Condition,
    From,
    JwtHeader,
    JwtRule,
    Operation,
    RequestAuthentication,
    Source,
    To,
    WorkloadSelector,
)
from components.ingress.routes import GRPC_SERVICE
from spec import names
from spec.ingress import Gateway, IngressSpec, prefix
from spec.resolve import Model
from spec.signing import jwks, mint, private_keys
from spec.tokens import TokensSpec
from spec.traffic import HEALTH_PATHS

HEADER: Final = "authorization"
_SCHEME: Final = "Bearer "
# The gRPC method that answers what a health path answers.
_METHODS: Final = dict(zip(HEALTH_PATHS, ("ServerLive", "ServerReady"), strict=True))
_FILTER_NAME: Final = f"{names.PROJECT}.bare-token"
# Three parts of base64 with a dot between them, and nothing else: a token without the word before it.
_ADDS_THE_SCHEME: Final = f"""\
function envoy_on_request(handle)
  local value = handle:headers():get("{HEADER}")
  if value and string.match(value, "^[%w_-]+%.[%w_-]+%.[%w_-]+$") then
    handle:headers():replace("{HEADER}", "{_SCHEME}" .. value)
  end
end
"""


def audience(tokens: TokensSpec, ingress: IngressSpec) -> str:
    """Who tokens are for."""
    return tokens.audience or ingress.domain


def request_authentication(tokens: TokensSpec, ingress: IngressSpec, gateway: Gateway) -> RequestAuthentication:
    """Refuses tokens that are bad, at one gateway.

    Only ``Bearer <token>`` is looked for. A second place, the header without the word, would find ``Bearer <token>``
    too, as a bad token: Envoy wants all that it finds to be good. What a gateway does about bare tokens is in
    :func:`takes_bare_tokens`.
    """
    rule = JwtRule(
        issuer=tokens.issuer,
        audiences=[audience(tokens, ingress)],
        jwks=jwks(tuple(tokens.keys)) if tokens.keys else None,
        jwks_uri=tokens.jwks_uri,
        from_headers=[JwtHeader(name=HEADER, prefix=_SCHEME)],
        # Neither Triton nor its log has a use for it.
        forward_original_token=False,
    )
    return RequestAuthentication(selector=WorkloadSelector(match_labels=dict(gateway.selector)), jwt_rules=[rule])


def takes_bare_tokens() -> ConfigPatch:
    """Makes ``Authorization: <token>`` the same as ``Authorization: Bearer <token>``, before anything looks at it."""
    value: dict[str, Any] = {
        "name": _FILTER_NAME,
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
            "default_source_code": {"inline_string": _ADDS_THE_SCHEME},
        },
    }
    listener = ListenerMatch(filter_chain=FilterChainMatch(filter=FilterMatch()))
    return ConfigPatch(
        apply_to="HTTP_FILTER",
        match=PatchMatch(listener=listener),
        patch=Patch(operation="INSERT_FIRST", value=value),
    )


def policy(model: Model, tokens: TokensSpec, gateway: Gateway) -> AuthorizationPolicy:
    """Refuses requests to one model without a token for it, at one gateway.

    It denies instead of allowing, because what is allowed somewhere closes the gateway to everything else. Both rules
    also hold where there is no token at all.
    """
    to = [To(operation=operation) for operation in _operations(model, gateway)]
    stranger = From(source=Source(not_request_principals=[f"{tokens.issuer}/*"]))
    other = Condition(key=f"request.auth.claims[{tokens.claim}]", not_values=[model.name])
    return AuthorizationPolicy(
        selector=WorkloadSelector(match_labels=dict(gateway.selector)),
        action="DENY",
        rules=[AuthorizationRule(from_=[stranger], to=to), AuthorizationRule(to=to, when=[other])],
    )


def policy_metadata(model: Model, gateway: Gateway) -> k8s.meta.v1.ObjectMetaArgs:
    """Beside the gateway's pods, under a name that says whose it is."""
    return k8s.meta.v1.ObjectMetaArgs(
        name=f"{names.PROJECT}.{gateway.object_name(model.name)}",
        namespace=gateway.namespace,
        labels=names.labels(model.name, model.spec.owner),
    )


def _operations(model: Model, gateway: Gateway) -> Iterator[Operation]:
    opened = model.spec.auth.open_paths if model.spec.auth else []
    methods = [f"{GRPC_SERVICE}/{_METHODS[path]}" for path in opened]
    own = [*opened, *methods]
    yield Operation(hosts=_with_port(gateway.host(model.name, model.spec.traffic)), not_paths=own or None)
    if shared := gateway.spec.prefix_host:
        path = prefix(model.name, model.spec.traffic)
        healthy = [f"{path}{one}" for one in opened]
        yield Operation(hosts=_with_port(shared), paths=[f"{path}/*"], not_paths=healthy or None)


def _with_port(host: str) -> list[str]:
    """A host as it stands in requests: routes do not look at a port after it, rules do."""
    return [host, f"{host}:*"]


def minted(tokens: TokensSpec, ingress: IngressSpec, keys: pulumi.Output[str]) -> pulumi.Output[dict[str, str]]:
    """The token of each consumer, secret as the keys are; empty where the keys are still encrypted."""

    def make(text: str) -> dict[str, str]:
        found = private_keys(text)
        return mint(tokens, audience(tokens, ingress), found) if found is not None else {}

    return keys.apply(make)
