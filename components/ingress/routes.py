"""The routes of a host: one list, in the order in which a proxy tries them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from components.ingress.crds import (
    Body,
    Destination,
    DirectResponse,
    HttpMatch,
    HttpRoute,
    Percent,
    PortSelector,
    RegexRewrite,
    Retries,
    Rewrite,
    RouteDestination,
    StringMatch,
    VirtualService,
)
from components.ingress.numbers import larger_than
from components.serving import runtime
from spec import names
from spec.fields import duration_seconds, memory_bytes
from spec.ingress import prefix
from spec.resolve import Model
from spec.traffic import ForTestersSpec

# The sidecars' own routes, in Istio's words.
MESH: Final = "mesh"
# Both failed before Triton saw the request, and the third before its headers were sent: none runs an inference twice.
RETRY_ON: Final = "connect-failure,refused-stream,reset-before-request"
_ATTEMPTS: Final = 2
# What a caller may ask of a model. Left out: loading and unloading, shared memory, trace and log settings.
_NAME: Final = r"[A-Za-z0-9][-A-Za-z0-9_.]*"
_CALLS: Final = "infer|generate|generate_stream|ready|config|stats"
_HTTP: Final = rf"/v2(/health/(live|ready)|/models/{_NAME}(/versions/[0-9]+)?(/({_CALLS}))?)?"
GRPC_SERVICE: Final = "/inference.GRPCInferenceService"
_METHODS: Final = (
    "ServerLive|ServerReady|ServerMetadata|ModelReady|ModelMetadata|ModelConfig|ModelStatistics|ModelInfer"
)


@dataclass(frozen=True)
class Protocol:
    """A way to call a model.

    Attributes:
        name: ends the names of its routes.
        port: of the revisions' Services.
        path: how its paths look (RE2), at a gateway.
    """

    name: str
    port: int
    path: str

    def route(self, model: str, *, testers: bool = False) -> str:
        """Name of the route of a model, by which others change it."""
        return ".".join([model, *(["testers"] if testers else []), self.name])


GRPC_STREAM: Final = Protocol("grpc-stream", runtime.GRPC_PORT, rf"{GRPC_SERVICE}/ModelStreamInfer".replace(".", r"\."))
GRPC: Final = Protocol("grpc", runtime.GRPC_PORT, rf"{GRPC_SERVICE}/({_METHODS})".replace(".", r"\."))
HTTP: Final = Protocol("http", runtime.HTTP_PORT, _HTTP)
PROTOCOLS: Final = (GRPC_STREAM, GRPC, HTTP)


def shadow(model: Model, models: Mapping[str, Model]) -> str | None:
    """Name of the Service that gets copies of a model's requests."""
    mirror = model.spec.traffic.mirror
    if mirror is None:
        return None
    if mirror.to:
        return names.workload(model.name, mirror.to)
    other = models[mirror.model or ""]
    return names.workload(other.name, other.primary.name)


def host_routes(model: Model, namespace: str, copies: str | None) -> list[HttpRoute]:
    """Routes of a host that is one model's own, HTTP and gRPC.

    Args:
        model: whose requests they are.
        namespace: of the models.
        copies: the Service that gets copies, see :func:`shadow`.
    """
    return list(_routes(model, namespace, copies, PROTOCOLS, ""))


def prefix_routes(models: Iterable[Model], namespace: str, copies: Mapping[str, str | None]) -> list[HttpRoute]:
    """Routes of a host that models share, the longer prefix before the shorter; HTTP only.

    A path has to match as a whole, and none matches for two prefixes: the order is for whoever reads it.
    """
    found = sorted(((prefix(model.name, model.spec.traffic), model) for model in models), key=_longest_first)
    return [
        route for path, model in found for route in _routes(model, namespace, copies.get(model.name), (HTTP,), path)
    ]


def mesh_routes(model: Model, namespace: str, copies: str | None) -> list[HttpRoute]:
    """Routes of the model's Service for callers with a sidecar. They need no gateway, so every path is open."""
    matches = {protocol.name: HttpMatch(port=protocol.port) for protocol in (GRPC, HTTP)}
    routes = [
        *_shared_out(model, namespace, copies, (GRPC, HTTP), matches, rewrite=None),
        HttpRoute(
            name=f"{model.name}.metrics",
            match=[HttpMatch(port=runtime.METRICS_PORT)],
            route=[_to(model, model.primary.name, namespace, runtime.METRICS_PORT, None)],
        ),
    ]
    return list(routes)


def virtual_service(hosts: Sequence[str], gateways: Sequence[str], http: list[HttpRoute]) -> VirtualService:
    """The routes of some hosts at some gateways."""
    return VirtualService(hosts=list(hosts), gateways=list(gateways), http=http)


def _longest_first(found: tuple[str, Model]) -> tuple[int, str]:
    return -len(found[0]), found[0]


def _routes(
    model: Model, namespace: str, copies: str | None, protocols: Sequence[Protocol], path: str
) -> Iterator[HttpRoute]:
    escaped = path.replace(".", r"\.")
    matches = {one.name: HttpMatch(uri=StringMatch(regex=f"{escaped}{one.path}")) for one in protocols}
    rewrite = Rewrite(uri_regex_rewrite=RegexRewrite(match=f"^{escaped}/", rewrite="/")) if path else None
    limits = model.spec.traffic.limits
    if limits and limits.max_request_size:
        yield from _refused_sizes(model.name, matches[HTTP.name], memory_bytes(limits.max_request_size))
    yield from _shared_out(model, namespace, copies, protocols, matches, rewrite=rewrite)


def _refused_sizes(model: str, match: HttpMatch, size: int) -> Iterator[HttpRoute]:
    """Answers requests that are too long, or that do not say how long they are, without reading them."""
    too_long = match.model_copy(update={"headers": {"content-length": StringMatch(regex=larger_than(size))}})
    # Without a text the match asks whether the header is there at all.
    unknown = match.model_copy(
        update={"method": StringMatch(exact="POST"), "without_headers": {"content-length": StringMatch()}}
    )
    yield _answer(f"{model}.too-long", too_long, 413, f"the request is longer than {size} bytes")
    yield _answer(f"{model}.unknown-length", unknown, 411, "the request has to say its length (Content-Length)")


def _answer(name: str, match: HttpMatch, status: int, text: str) -> HttpRoute:
    body = Body(string=f'{{"error":"{text}"}}')
    return HttpRoute(name=name, match=[match], direct_response=DirectResponse(status=status, body=body))


def _shared_out(
    model: Model,
    namespace: str,
    copies: str | None,
    protocols: Sequence[Protocol],
    matches: Mapping[str, HttpMatch],
    *,
    rewrite: Rewrite | None,
) -> Iterator[HttpRoute]:
    traffic = model.spec.traffic
    for protocol in protocols if traffic.testers else ():
        match = matches[protocol.name].model_copy(update={"headers": _sign(traffic.testers)})
        route = [_to(model, traffic.testers.to, namespace, protocol.port, None)] if traffic.testers else []
        yield _route(protocol.route(model.name, testers=True), match, route, rewrite, traffic.timeout)
    for protocol in protocols:
        shares = {name: weight for name, weight in model.weights.items() if weight}
        route = [
            _to(model, name, namespace, protocol.port, weight if len(shares) > 1 else None)
            for name, weight in shares.items()
        ]
        found = _route(protocol.route(model.name), matches[protocol.name], route, rewrite, traffic.timeout)
        if copies and traffic.mirror:
            mirror, percent = _destination(copies, namespace, protocol.port), Percent(value=traffic.mirror.percent)
            found = found.model_copy(update={"mirror": mirror, "mirror_percentage": percent})
        yield found


def _route(
    name: str, match: HttpMatch, route: list[RouteDestination], rewrite: Rewrite | None, timeout: str
) -> HttpRoute:
    return HttpRoute(
        name=name,
        match=[match],
        route=route,
        rewrite=rewrite,
        timeout=seconds(timeout),
        retries=Retries(attempts=_ATTEMPTS, retry_on=RETRY_ON),
    )


def _sign(testers: ForTestersSpec | None) -> dict[str, StringMatch]:
    """The header by which testers are known; a cookie is a part of one."""
    if testers and testers.cookie:
        name, value = (_literal(text) for text in (testers.cookie.name, testers.cookie.value))
        return {"cookie": StringMatch(regex=f"(.*; ?)?{name}={value}(;.*)?")}
    return {testers.header.name: StringMatch(exact=testers.header.value)} if testers and testers.header else {}


def _literal(text: str) -> str:
    """The text itself as a regular expression."""
    return "".join(character if character.isalnum() or character == "_" else f"\\{character}" for character in text)


def _to(model: Model, revision: str, namespace: str, port: int, weight: int | None) -> RouteDestination:
    service = names.workload(model.name, revision)
    return RouteDestination(destination=_destination(service, namespace, port), weight=weight)


def _destination(service: str, namespace: str, port: int) -> Destination:
    return Destination(host=names.service_host(service, namespace), port=PortSelector(number=port))


def seconds(duration: str) -> str:
    """A duration as the API writes it."""
    return f"{format(duration_seconds(duration).normalize(), 'f')}s"
