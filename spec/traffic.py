"""How requests reach a model and are shared out, and who may send them (model file)."""

import re
from typing import Annotated, Final, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from spec.fields import Duration, Memory, ModelName, RevisionName, Spec, memory_bytes, refuse, refuse_all
from spec.problems import Problem

_HEADER: Final = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_COOKIE: Final = re.compile(r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
_VALUE: Final = re.compile(r"^[A-Za-z0-9!#$%&'()*+./:<=>?@\[\]^_`{|}~-]+$")
_HOST: Final = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_PREFIX: Final = re.compile(r"^(/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)+$")
# Headers that somebody else decides: HTTP itself, or the check of tokens.
_TAKEN_HEADERS: Final = ("authorization", "content-length", "cookie", "host", "transfer-encoding")
_LONGEST_PREFIX: Final = 128
# Envoy counts the bytes of a request in 32 bits.
_SIZES: Final = ("1Ki", "4095Mi")
GatewayName = Literal["public", "internal"]
HealthPath = Literal["/v2/health/live", "/v2/health/ready"]
HEALTH_PATHS: Final[tuple[HealthPath, ...]] = ("/v2/health/live", "/v2/health/ready")


def _check_header(value: str) -> str:
    if not _HEADER.fullmatch(value) or value in _TAKEN_HEADERS:
        refuse(
            "not the name of a header for testers",
            allowed=f"lower-case letters, digits and -; not {', '.join(_TAKEN_HEADERS)}",
            fix="write for example x-model-revision",
        )
    return value


def _check_cookie(value: str) -> str:
    if not _COOKIE.fullmatch(value):
        refuse("not the name of a cookie", allowed="letters, digits and -, _, .", fix="write for example tester")
    return value


def _check_value(value: str) -> str:
    if not _VALUE.fullmatch(value):
        refuse("not a value", allowed='letters, digits and signs; no space, comma, ;, " and \\',
               fix="write for example yes")  # fmt: skip
    return value


def _check_host(value: str) -> str:
    if not _HOST.fullmatch(value):
        refuse("not a host", allowed="a DNS label, or a whole name inside the domain", fix="write for example detect")
    return value


def _check_prefix(value: str) -> str:
    if not _PREFIX.fullmatch(value) or len(value) > _LONGEST_PREFIX:
        refuse(
            "not a prefix",
            allowed=f"1 to {_LONGEST_PREFIX} characters: / and a word, as often as wanted, without / at the end",
            fix="write for example /vision/detect",
        )
    if "v2" in value.split("/"):
        refuse("the protocol's own paths begin with v2", allowed="no part called v2", fix="choose another word")
    return value


def _check_size(value: str) -> str:
    smallest, largest = _SIZES
    if not memory_bytes(smallest) <= memory_bytes(value) <= memory_bytes(largest):
        refuse("not the size of a request", allowed=f"{smallest} to {largest}", fix="write for example 16Mi")
    return value


def _check_gateways(value: object) -> object:
    known = get_args(GatewayName)
    if value == []:
        refuse("nobody would reach the model", allowed=f"{', '.join(known)} or both",
               fix="name a gateway, or leave gateways out for all of them")  # fmt: skip
    if not isinstance(value, list):
        return value
    problems = []
    for index, name in enumerate(value):
        if name not in known:
            problems.append(Problem(f"[{index}]", "not a gateway", name, ", ".join(known), "write one of them"))
        elif name in value[:index]:
            problems.append(Problem(f"[{index}]", "is there already", name, "each gateway once", "leave it out"))
    if problems:
        refuse_all(problems)
    return value


def _one_of(*fields: str) -> ConfigDict:
    """Makes editors ask for exactly one of these fields, as the validators do."""
    return ConfigDict(json_schema_extra={"oneOf": [{"required": [field]} for field in fields]})


def _text(pattern: re.Pattern[str], **more: object) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern.pattern} | more)


HeaderName = Annotated[str, AfterValidator(_check_header), _text(_HEADER)]
CookieName = Annotated[str, AfterValidator(_check_cookie), _text(_COOKIE)]
MatchValue = Annotated[str, AfterValidator(_check_value), _text(_VALUE)]
HostName = Annotated[str, AfterValidator(_check_host), _text(_HOST)]
PathPrefix = Annotated[str, AfterValidator(_check_prefix), _text(_PREFIX, maxLength=_LONGEST_PREFIX)]
GatewayNames = Annotated[
    list[GatewayName],
    BeforeValidator(_check_gateways),
    WithJsonSchema({"type": "array", "items": {"enum": [*get_args(GatewayName)]}, "minItems": 1, "uniqueItems": True}),
]
RequestSize = Annotated[Memory, AfterValidator(_check_size)]


class MirrorSpec(Spec):
    """Copies of requests to another revision or another model, whose answers nobody sees.

    Attributes:
        to: the revision that gets the copies.
        model: another model of the estate whose largest revision gets them. It is called the same inside Triton and
            takes the same tensors, because a copy is not changed.
        percent: share of the requests that is copied.
    """

    model_config = _one_of("to", "model")

    to: RevisionName | None = None
    model: ModelName | None = None
    percent: Annotated[float, Field(ge=0.01, le=100)] = 100

    @model_validator(mode="after")
    def _one_target(self) -> "MirrorSpec":
        if (self.to is None) == (self.model is None):
            refuse("copies go to one place", allowed="to, or model", fix="write to: <revision>, or model: <model>",
                   field="to")  # fmt: skip
        return self


class HeaderMatchSpec(Spec):
    """Asks for a header; of gRPC for the metadata of this name.

    Attributes:
        name: of the header, in lower case.
        value: exactly this.
    """

    name: HeaderName
    value: MatchValue


class CookieMatchSpec(Spec):
    """Asks for a cookie.

    Attributes:
        name: of the cookie.
        value: exactly this.
    """

    name: CookieName
    value: MatchValue


class ForTestersSpec(Spec):
    """Whose requests all go to one revision, whatever the split says. A gateway or a sidecar has to see them.

    Attributes:
        header: a header by which testers are known.
        cookie: a cookie by which testers are known.
        to: the revision that they get.
    """

    model_config = _one_of("header", "cookie")

    header: HeaderMatchSpec | None = None
    cookie: CookieMatchSpec | None = None
    to: RevisionName

    @model_validator(mode="after")
    def _one_sign(self) -> "ForTestersSpec":
        if (self.header is None) == (self.cookie is None):
            refuse("testers are known by one sign", allowed="header, or cookie",
                   fix="write header: {name: x-model-revision, value: v2}", field="header")  # fmt: skip
        return self


class LimitsSpec(Spec):
    """How much one caller may ask for. The gateway enforces it.

    Attributes:
        requests_per_second: of each consumer to this model, where the model asks for a token; else of all callers
            together. Each replica of the gateway counts for itself, so several let that many times more pass.
            Above it the answer is 429, over gRPC RESOURCE_EXHAUSTED.
        max_request_size: bytes of a request; above it the answer is 413. Over HTTP a request has to say its length
            (else 411); over gRPC the gateway holds a unary request in memory until it is complete, and streams are not
            limited. By default any size passes.
    """

    requests_per_second: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_request_size: RequestSize | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> "LimitsSpec":
        if self.requests_per_second is None and self.max_request_size is None:
            refuse("limits nothing", allowed="requestsPerSecond, maxRequestSize or both",
                   fix="write requestsPerSecond: 100, or leave limits out")  # fmt: skip
        return self


class TrafficSpec(Spec):
    """How requests reach the model and are shared out between revisions.

    Attributes:
        split: weight of each revision in percent; by default all to the only revision.
        testers: whose requests all go to one revision.
        mirror: copies of requests to one more revision or model.
        timeout: longest time that a request may take.
        limits: how much a caller may ask for; absent for no limit.
        gateways: which of the stack's gateways lead to the model, ``public``, ``internal`` or both; by default all
            that the stack has.
        host: name at the gateways: a label, or the whole name inside the domain of the first of them; by default the
            model's name.
        prefix: path on the gateway's shared host; by default ``/<model>``.
    """

    split: dict[RevisionName, Annotated[int, Field(ge=0, le=100)]] = Field(default_factory=dict)
    testers: ForTestersSpec | None = None
    mirror: MirrorSpec | None = None
    timeout: Duration = "300s"
    limits: LimitsSpec | None = None
    gateways: GatewayNames | None = None
    host: HostName | None = None
    prefix: PathPrefix | None = None

    @model_validator(mode="after")
    def _weights_add_up(self) -> "TrafficSpec":
        total = sum(self.split.values())
        if self.split and total != 100:
            shown = " + ".join(str(weight) for weight in self.split.values())
            refuse(f"the weights add up to {total}", allowed=f"100 ({shown})", fix="change one of them", field="split")
        return self


class AuthSpec(Spec):
    """Who may send requests. The gateway checks it.

    Attributes:
        token: whether a request needs a token for this model, see the stack's ``tokens``.
        open_paths: health paths that need none, over gRPC ServerLive and ServerReady.
    """

    token: bool
    open_paths: list[HealthPath] = Field(default_factory=lambda: list(HEALTH_PATHS))

    @model_validator(mode="after")
    def _open_paths_need_a_check(self) -> "AuthSpec":
        if not self.token and "open_paths" in self.model_fields_set:
            refuse("every path is open without a token", fix="write token: true, or leave openPaths out",
                   field="openPaths")  # fmt: skip
        return self
