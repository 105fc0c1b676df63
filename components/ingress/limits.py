"""What Istio has no words for, as changes of Envoy's own configuration: rates, sizes, copies of large requests."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from components.ingress import routes, tokens
from components.ingress.envoy_crds import (
    ConfigPatch,
    EnvoyFilter,
    EnvoyFilterSelector,
    FilterChainMatch,
    FilterMatch,
    ListenerMatch,
    Patch,
    PatchMatch,
    RouteConfigurationMatch,
    RouteName,
    SubFilter,
    VirtualHostMatch,
)
from spec import names
from spec.fields import memory_bytes
from spec.ingress import Gateway
from spec.resolve import Model

# After what others change, who by default have 0: what is put before or merged into something finds it there.
_PRIORITY: Final = 10
_RATE_FILTER: Final = "envoy.filters.http.local_ratelimit"
_SIZE_FILTER: Final = "envoy.filters.http.buffer"
_EXTENSIONS: Final = "type.googleapis.com/envoy.extensions.filters.http"
_HTTP_CONNECTION: Final = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
# What the rate limit answers; no answer of a pod passes where this is changed.
_RATE_STATUS: Final = 429
_ROUTER: Final = "envoy.filters.http.router"
# Where Istio's check of tokens leaves what a token says.
_TOKEN_METADATA: Final = "envoy.filters.http.jwt_authn"  # noqa: S105  # a name
_CLAIMS: Final = ("payload", "sub")
# Keys of what is counted.
_SHARED: Final = "model"
_EACH: Final = "model-of-consumer"
_CONSUMER: Final = "consumer"
_UNLIMITED: Final = 2**32 - 1
_TOO_MANY: Final = "too many requests: this model's limit per second is reached, try again in a second"
# Consumers whose rates are remembered for one model; the one not seen for longest is forgotten first.
_CONSUMERS: Final = 10_000
# An Envoy that buffers before it copies drops the copy of a request that is larger than its buffer, by default the
# 1 MiB of a connection. Newer ones copy as they read; an Istio that is there may have either.
_COPIED_BYTES: Final = 64 * 2**20


def envoy_filter(gateway: Gateway, models: Sequence[Model], *, checks_tokens: bool) -> EnvoyFilter | None:
    """The changes at one gateway, None where nothing needs one.

    Args:
        gateway: where.
        models: all of the estate.
        checks_tokens: whether the gateway checks tokens.
    """
    patches = [tokens.takes_bare_tokens()] if checks_tokens else []
    there = [model for model in models if gateway.leads_to(model.spec.traffic)]
    patches += [*_rates(there), *_sizes(there), *_copies(there)]
    if not patches:
        return None
    selector = EnvoyFilterSelector(labels=dict(gateway.selector))
    return EnvoyFilter(workload_selector=selector, priority=_PRIORITY, config_patches=patches)


def _rates(models: Sequence[Model]) -> Iterator[ConfigPatch]:
    """One filter with a bucket for each model and consumer, whatever the address; each route says whose it is."""
    limited = [(model, rate) for model in models if (rate := _rate(model))]
    if not limited:
        return
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    config: dict[str, Any] = {
        "@type": f"{_EXTENSIONS}.local_ratelimit.v3.LocalRateLimit",
        "stat_prefix": "triton_estate",
        "filter_enabled": always,
        "filter_enforced": always,
        # Of what has no bucket of its own.
        "token_bucket": _bucket(_UNLIMITED),
        "always_consume_default_token_bucket": False,
        "rate_limited_as_resource_exhausted": True,
        "response_headers_to_add": [
            {"header": {"key": "retry-after", "value": "1"}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        ],
        "max_dynamic_descriptors": _CONSUMERS,
        "descriptors": [_descriptor(model, rate) for model, rate in limited],
        # A route that says nothing of a key gives no descriptor with it.
        "rate_limits": [{"actions": [_of_the_route(_SHARED)]}, {"actions": [_of_the_route(_EACH), _consumer()]}],
    }
    yield _before_the_router(_RATE_FILTER, config)
    yield _says_why()
    for model, _ in limited:
        value = {"metadata": {"filter_metadata": {names.PROJECT: {_key(model): model.name}}}}
        yield from (_route_patch(route, value) for route in _route_names(model))


def _says_why() -> ConfigPatch:
    """What is too much gets a text: Triton's own form over HTTP, where its clients look for it; the text over gRPC."""
    # Its flag comes too late, for the log only. Envoy insists on a key under which the number could be changed.
    number = {"default_value": _RATE_STATUS, "runtime_key": f"{names.PROJECT}.rate_status"}
    limited = {"status_code_filter": {"comparison": {"op": "EQ", "value": number}}}
    grpc = {"header_filter": {"header": {"name": "content-type", "string_match": {"prefix": "application/grpc"}}}}
    text = {"inline_string": _TOO_MANY}
    as_json = {"json_format": {"error": "%LOCAL_REPLY_BODY%"}}
    mappers: list[dict[str, Any]] = [
        {"filter": {"and_filter": {"filters": [limited, grpc]}}, "body": text},
        {"filter": limited, "body": text, "body_format_override": as_json},
    ]
    config = {"@type": f"type.googleapis.com/{_HTTP_CONNECTION}", "local_reply_config": {"mappers": mappers}}
    return ConfigPatch(
        apply_to="NETWORK_FILTER",
        match=PatchMatch(listener=ListenerMatch(filter_chain=FilterChainMatch(filter=FilterMatch()))),
        patch=Patch(operation="MERGE", value={"name": FilterMatch().name, "typed_config": config}),
    )


def _key(model: Model) -> str:
    """What a route calls its model: for a bucket of its own, or for one of each consumer."""
    return _EACH if model.needs_token else _SHARED


def _descriptor(model: Model, rate: int) -> dict[str, Any]:
    entries = [{"key": _key(model), "value": model.name}]
    # Without a value there is a bucket for each that comes.
    entries += [{"key": _CONSUMER}] if model.needs_token else []
    return {"entries": entries, "token_bucket": _bucket(rate)}


def _of_the_route(key: str) -> dict[str, Any]:
    path = {"key": names.PROJECT, "path": [{"key": key}]}
    return {"metadata": {"descriptor_key": key, "metadata_key": path, "source": "ROUTE_ENTRY"}}


def _consumer() -> dict[str, Any]:
    path = {"key": _TOKEN_METADATA, "path": [{"key": claim} for claim in _CLAIMS]}
    # Health paths that need no token have no consumer.
    return {"metadata": {"descriptor_key": _CONSUMER, "metadata_key": path, "default_value": "nobody"}}


def _bucket(rate: int) -> dict[str, Any]:
    return {"max_tokens": rate, "tokens_per_fill": rate, "fill_interval": "1s"}


def _rate(model: Model) -> int | None:
    limits = model.spec.traffic.limits
    return limits.requests_per_second if limits else None


def _sizes(models: Sequence[Model]) -> Iterator[ConfigPatch]:
    """gRPC says no length, so a unary request is held until it is complete; a stream never is, and passes."""
    limited = [(model, size) for model in models if (size := _size(model))]
    if not limited:
        return
    buffer = f"{_EXTENSIONS}.buffer.v3"
    default = {"@type": f"{buffer}.Buffer", "max_request_bytes": _UNLIMITED}
    yield _before_the_router(_SIZE_FILTER, default, disabled=True)
    for model, size in limited:
        config = {"@type": f"{buffer}.BufferPerRoute", "buffer": {"max_request_bytes": size}}
        for testers in (False, True) if model.spec.traffic.testers else (False,):
            route = routes.GRPC.route(model.name, testers=testers)
            yield _route_patch(route, {"typed_per_filter_config": {_SIZE_FILTER: config}})


def _size(model: Model) -> int | None:
    limits = model.spec.traffic.limits
    return memory_bytes(limits.max_request_size) if limits and limits.max_request_size else None


def _copies(models: Sequence[Model]) -> Iterator[ConfigPatch]:
    for model in models:
        if model.spec.traffic.mirror:
            value = {"request_body_buffer_limit": _size(model) or _COPIED_BYTES}
            yield from (_route_patch(protocol.route(model.name), value) for protocol in routes.PROTOCOLS)


def _route_names(model: Model) -> list[str]:
    testers = (False, True) if model.spec.traffic.testers else (False,)
    return [protocol.route(model.name, testers=which) for which in testers for protocol in routes.PROTOCOLS]


def _before_the_router(name: str, config: dict[str, Any], *, disabled: bool = False) -> ConfigPatch:
    # After the checks of tokens, so that a refused request counts for nobody.
    chain = FilterChainMatch(filter=FilterMatch(sub_filter=SubFilter(name=_ROUTER)))
    value: dict[str, Any] = {"name": name, "typed_config": config} | ({"disabled": True} if disabled else {})
    return ConfigPatch(
        apply_to="HTTP_FILTER",
        match=PatchMatch(listener=ListenerMatch(filter_chain=chain)),
        patch=Patch(operation="INSERT_BEFORE", value=value),
    )


def _route_patch(route: str, value: dict[str, Any]) -> ConfigPatch:
    vhost = VirtualHostMatch(route=RouteName(name=route))
    return ConfigPatch(
        apply_to="HTTP_ROUTE",
        match=PatchMatch(route_configuration=RouteConfigurationMatch(vhost=vhost)),
        patch=Patch(operation="MERGE", value=value),
    )
