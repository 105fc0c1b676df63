"""Istio's resources of traffic, typed: as far as the estate uses them, in the API's own names (istio.io/api 1.31)."""

from typing import ClassVar, Literal

from pydantic import Field

from components.crds import CustomSpec, Part

_NETWORKING: str = "networking.istio.io/v1"


class PortSelector(Part):
    """A port of a Service."""

    number: int


class StringMatch(Part):
    """How a text has to look; exactly one of them. A regular expression (RE2) has to match all of it."""

    exact: str | None = None
    prefix: str | None = None
    regex: str | None = None


class ServerPort(Part):
    """A port of the gateway's Service."""

    number: int
    name: str
    protocol: Literal["HTTP", "HTTPS"]


class ServerTls(Part):
    """How a server ends TLS, or that it leads to one that does."""

    https_redirect: bool | None = None
    mode: Literal["SIMPLE"] | None = None
    credential_name: str | None = None
    min_protocol_version: Literal["TLSV1_2"] | None = None


class Server(Part):
    """One port of a gateway; a host is ``<namespace of its routes>/<host>``."""

    port: ServerPort
    hosts: list[str]
    tls: ServerTls | None = None


class Gateway(CustomSpec):
    """What the pods of a gateway listen to."""

    API_VERSION: ClassVar[str] = _NETWORKING
    KIND: ClassVar[str] = "Gateway"

    selector: dict[str, str]
    servers: list[Server]


class HttpMatch(Part):
    """What a request has to be like."""

    uri: StringMatch | None = None
    method: StringMatch | None = None
    headers: dict[str, StringMatch] | None = None
    without_headers: dict[str, StringMatch] | None = None
    port: int | None = None


class Destination(Part):
    """Where a request goes."""

    host: str
    port: PortSelector


class RouteDestination(Part):
    """A share of the requests in percent; absent for all of them."""

    destination: Destination
    weight: int | None = None


class RegexRewrite(Part):
    """Replaces what the expression matches."""

    match: str
    rewrite: str


class Rewrite(Part):
    """What becomes of the path."""

    uri_regex_rewrite: RegexRewrite


class Retries(Part):
    """When a request is sent again."""

    attempts: int
    retry_on: str


class Percent(Part):
    """0 to 100."""

    value: float


class Body(Part):
    """What an answer of the gateway itself says."""

    string: str


class DirectResponse(Part):
    """An answer of the gateway itself."""

    status: int
    body: Body


class HttpRoute(Part):
    """A rule; of the rules of a host the first one that matches counts."""

    name: str
    match: list[HttpMatch]
    route: list[RouteDestination] | None = None
    rewrite: Rewrite | None = None
    direct_response: DirectResponse | None = None
    timeout: str | None = None
    retries: Retries | None = None
    mirror: Destination | None = None
    mirror_percentage: Percent | None = None


class VirtualService(CustomSpec):
    """The routes of a host."""

    API_VERSION: ClassVar[str] = _NETWORKING
    KIND: ClassVar[str] = "VirtualService"

    hosts: list[str]
    gateways: list[str]
    http: list[HttpRoute]


class Keepalive(Part):
    """When an idle connection is asked whether it is still there."""

    time: str
    interval: str


class TcpPool(Part):
    """Connections to a Service."""

    max_connections: int
    connect_timeout: str
    tcp_keepalive: Keepalive


class HttpPool(Part):
    """Requests to a Service."""

    http1_max_pending_requests: int = Field(serialization_alias="http1MaxPendingRequests")
    http2_max_requests: int = Field(serialization_alias="http2MaxRequests")
    h2_upgrade_policy: Literal["DO_NOT_UPGRADE"] = Field(serialization_alias="h2UpgradePolicy")


class ConnectionPool(Part):
    """What one proxy may have open to one Service at a time."""

    tcp: TcpPool
    http: HttpPool


class LocalityLoadBalancing(Part):
    """Whether pods in the proxy's own zone come first."""

    enabled: bool


class LoadBalancer(Part):
    """Which pod gets the next request."""

    simple: Literal["LEAST_REQUEST"]
    locality_lb_setting: LocalityLoadBalancing


class OutlierDetection(Part):
    """When a pod gets no requests for a while."""

    split_external_local_origin_errors: bool
    consecutive_local_origin_failures: int
    consecutive_gateway_errors: int
    consecutive_5xx_errors: int = Field(serialization_alias="consecutive5xxErrors")
    interval: str
    base_ejection_time: str
    max_ejection_percent: int


class TrafficPolicy(Part):
    """How a Service is called."""

    load_balancer: LoadBalancer
    connection_pool: ConnectionPool
    outlier_detection: OutlierDetection


class DestinationRule(CustomSpec):
    """How proxies call one Service."""

    API_VERSION: ClassVar[str] = _NETWORKING
    KIND: ClassVar[str] = "DestinationRule"

    host: str
    traffic_policy: TrafficPolicy
