"""Istio's resources of security and telemetry, typed: as far as the estate uses them, in the API's own names."""

from typing import ClassVar, Literal

from pydantic import Field

from components.crds import CustomSpec, Part

_SECURITY: str = "security.istio.io/v1"


class WorkloadSelector(Part):
    """Pods by their labels."""

    match_labels: dict[str, str]


class JwtHeader(Part):
    """A header that holds a token after a prefix."""

    name: str
    prefix: str


class JwtRule(Part):
    """Whose tokens are good."""

    issuer: str
    audiences: list[str]
    jwks: str | None = None
    jwks_uri: str | None = None
    from_headers: list[JwtHeader]
    forward_original_token: bool


class RequestAuthentication(CustomSpec):
    """Refuses bad tokens; requests without one pass, see ``AuthorizationPolicy``."""

    API_VERSION: ClassVar[str] = _SECURITY
    KIND: ClassVar[str] = "RequestAuthentication"

    selector: WorkloadSelector
    jwt_rules: list[JwtRule]


class Source(Part):
    """Who calls; all that is given has to hold."""

    namespaces: list[str] | None = None
    not_request_principals: list[str] | None = None


class From(Part):
    """Who calls."""

    source: Source


class Operation(Part):
    """What is called; all that is given has to hold."""

    hosts: list[str] | None = None
    ports: list[str] | None = None
    methods: list[str] | None = None
    paths: list[str] | None = None
    not_paths: list[str] | None = None


class To(Part):
    """What is called."""

    operation: Operation


class Condition(Part):
    """What else has to hold."""

    key: str
    not_values: list[str]


class AuthorizationRule(Part):
    """One of the sources does one of the operations under all conditions."""

    from_: list[From] | None = Field(default=None, serialization_alias="from")
    to: list[To] | None = None
    when: list[Condition] | None = None


class AuthorizationPolicy(CustomSpec):
    """Who may do what with these pods."""

    API_VERSION: ClassVar[str] = _SECURITY
    KIND: ClassVar[str] = "AuthorizationPolicy"

    selector: WorkloadSelector
    action: Literal["ALLOW", "DENY"]
    rules: list[AuthorizationRule]


class LogProvider(Part):
    """Who writes the log; ``envoy`` is the proxy's standard output."""

    name: Literal["envoy"] = "envoy"


class AccessLogging(Part):
    """A line a request."""

    providers: list[LogProvider]


class Telemetry(CustomSpec):
    """What proxies report."""

    API_VERSION: ClassVar[str] = "telemetry.istio.io/v1"
    KIND: ClassVar[str] = "Telemetry"

    selector: WorkloadSelector
    access_logging: list[AccessLogging]
