"""How requests come in: Istio's gateways and the names of the models at them (stack file)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from spec import names
from spec.charts import ChartName
from spec.fields import DnsLabel, DnsName, LabelKey, LabelValue, Spec, refuse, refuse_all
from spec.problems import Problem
from spec.traffic import GatewayName, TrafficSpec

# Where Istio's own installation guide puts them.
CONTROL_NAMESPACE: Final = "istio-system"
GATEWAY_NAMESPACE: Final = "istio-ingress"
PUBLIC: Final = "public"
INTERNAL: Final = "internal"
# Releases of the gateway chart, which labels the pods with the name less "istio-" and calls their account by it.
RELEASES: Final = {PUBLIC: "istio-ingressgateway", INTERNAL: "istio-internalgateway"}
HTTP_PORT: Final = 80
HTTPS_PORT: Final = 443
_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"^{_LABEL}(\.{_LABEL})+$")
# The longest name of a model, a dot and the domain are one DNS name.
_LONGEST_DOMAIN: Final = 253 - 1 - names.MODEL_NAME_MAX
# Fields of one provider only, in Python's spelling.
_MANAGED: Final = ("service", "replicas", "node_selector")
_EXISTING: Final = ("selector", "namespace")


def _check_domain(value: str) -> str:
    if not _DOMAIN.fullmatch(value) or len(value) > _LONGEST_DOMAIN:
        refuse(
            "not a domain",
            allowed=f"two or more DNS labels, {_LONGEST_DOMAIN} characters at most, without *",
            fix="write for example models.example.com",
        )
    return value


Domain = Annotated[str, AfterValidator(_check_domain), WithJsonSchema({"type": "string", "pattern": _DOMAIN.pattern})]


class IngressTlsSpec(Spec):
    """Where the certificate of a gateway comes from; it has to hold for ``*.<domain>``.

    Attributes:
        secret: an existing Secret of type kubernetes.io/tls in the gateway's namespace.
        issuer: an existing ClusterIssuer of cert-manager; for a wildcard an ACME issuer has to prove itself by DNS.
    """

    secret: DnsName | None = None
    issuer: DnsName | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> "IngressTlsSpec":
        if (self.secret is None) == (self.issuer is None):
            refuse("a certificate comes from one place", allowed="secret, or issuer",
                   fix="write issuer: <ClusterIssuer>, or secret: <name>", field="secret")  # fmt: skip
        return self


class GatewayServiceSpec(Spec):
    """The Service in front of a managed gateway.

    Attributes:
        type: how it is reached from outside; ``ClusterIP`` for a gateway behind something else.
        annotations: what the cloud's load balancer and external-dns look at.
    """

    type: Literal["LoadBalancer", "NodePort", "ClusterIP"] = "LoadBalancer"
    annotations: dict[LabelKey, str] = Field(default_factory=dict)


class GatewayReplicasSpec(Spec):
    """How many pods a managed gateway has; their CPU use decides in between.

    Attributes:
        min: fewest, on different nodes where there are several; one at a time leaves for a drained node.
        max: most.
    """

    min: Annotated[int, Field(ge=1, le=100)] = 2
    max: Annotated[int, Field(ge=1, le=100)] = 5

    @model_validator(mode="after")
    def _max_is_not_below_min(self) -> "GatewayReplicasSpec":
        if self.max < self.min:
            refuse(f"max {self.max} is below min {self.min}", fix="swap them", field="max")
        return self


class GatewaySpec(Spec):
    """One gateway: a name space for models and where it ends.

    Attributes:
        domain: models are ``<model>.<domain>``; DNS has to lead ``*.<domain>`` to the gateway.
        prefix_host: a host in the domain on which each model is a path, ``/<model>/v2/…``; the prefix is taken away
            before Triton sees it. HTTP only: gRPC knows no prefix. By default there is none.
        tls: the certificate; plain HTTP then leads to HTTPS. By default there is plain HTTP only, not in prod.
        service: the Service in front of a managed gateway.
        selector: labels of the pods of an existing gateway.
        namespace: namespace of the pods of an existing gateway.
    """

    domain: Domain
    prefix_host: Domain | None = None
    tls: IngressTlsSpec | None = None
    service: GatewayServiceSpec = GatewayServiceSpec()
    selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    namespace: DnsLabel | None = None

    @model_validator(mode="after")
    def _prefix_host_is_inside_the_domain(self) -> "GatewaySpec":
        if self.prefix_host and self.prefix_host != self.domain and label_in(self.prefix_host, self.domain) is None:
            refuse(
                "outside the gateway's domain",
                allowed=f"{self.domain}, or one label and .{self.domain}",
                fix=f"write {self.prefix_host.partition('.')[0]}.{self.domain}",
                field="prefixHost",
            )
        return self


class IngressSpec(GatewaySpec):
    """How requests come in.

    Attributes:
        provider: ``managed`` installs Istio and its gateways from their own charts; ``existing`` configures an Istio
            (1.28 or newer) that is there. Token checks and limits act on a whole gateway: give the estate its own.
        replicas: pods of each managed gateway.
        node_selector: labels of the nodes of managed gateways; by default any node without a taint.
        internal: a second gateway with a domain of its own, for callers who need not come from outside.
        access_logs: whether the gateways write a line a request; it holds no token.
        sidecars: whether Istio's sidecar runs beside Triton. Needs Istio's CNI plugin, because the namespace admits
            restricted pods only; a managed Istio brings it.
        callers: further namespaces whose pods may call models by their Services, past the gateway. Models with a token
            are closed to them.
    """

    provider: Literal["managed", "existing"] = "managed"
    replicas: GatewayReplicasSpec = GatewayReplicasSpec()
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    internal: GatewaySpec | None = None
    access_logs: bool = True
    sidecars: bool = False
    callers: list[DnsLabel] = Field(default_factory=list)

    @model_validator(mode="after")
    def _every_field_belongs_to_the_provider(self) -> "IngressSpec":
        problems = [*_fields_of(self, self.provider)]
        if self.internal:
            problems += [problem.under("internal") for problem in _fields_of(self.internal, self.provider)]
        if problems:
            refuse_all(problems)
        return self

    @model_validator(mode="after")
    def _gateways_differ(self) -> "IngressSpec":
        if self.internal is None:
            return self
        if self.internal.domain == self.domain:
            refuse("both gateways would have the same hosts", allowed="a domain of its own",
                   fix=f"write for example internal.{self.domain}", field="internal.domain")  # fmt: skip
        one, two = ((found.namespace, found.selector) for found in (self, self.internal))
        if self.provider == "existing" and one == two:
            refuse("both gateways are the same pods", allowed="another selector or namespace",
                   fix="name the pods of the internal gateway", field="internal.selector")  # fmt: skip
        return self


@dataclass(frozen=True)
class Gateway:
    """A gateway as the stack has it.

    Attributes:
        name: ``public`` or ``internal``.
        spec: as written.
        namespace: of its pods, and of everything that acts on them.
        selector: labels of its pods.
    """

    name: GatewayName
    spec: GatewaySpec
    namespace: str
    selector: Mapping[str, str]

    @property
    def resource(self) -> str:
        """Name of the Gateway object, and of all others that there are once for it: Istio wants a DNS label."""
        return names.PROJECT if self.name == PUBLIC else f"{names.PROJECT}-{self.name}"

    @property
    def shared_routes(self) -> str:
        """Name of the routes of the host that models share; a dot is in no model's name."""
        return f"{names.PROJECT}.{self.name}"

    @property
    def scheme(self) -> Literal["http", "https"]:
        """What its addresses begin with."""
        return "https" if self.spec.tls else "http"

    @property
    def port(self) -> int:
        """Where it answers."""
        return HTTPS_PORT if self.spec.tls else HTTP_PORT

    def object_name(self, model: str) -> str:
        """Name of a model's objects for this gateway; a dot is in no model's name, so none is another model's."""
        return model if self.name == PUBLIC else f"{model}.{self.name}"

    def leads_to(self, traffic: TrafficSpec) -> bool:
        """Whether a model is at this gateway."""
        return traffic.gateways is None or self.name in traffic.gateways

    def host(self, model: str, traffic: TrafficSpec) -> str:
        """Name of a model at this gateway."""
        return f"{host_label(model, traffic)}.{self.spec.domain}"


def gateways(ingress: IngressSpec) -> list[Gateway]:
    """The gateways of a stack, the public one first."""
    found: list[tuple[GatewayName, GatewaySpec]] = [(PUBLIC, ingress)]
    found += [(INTERNAL, ingress.internal)] if ingress.internal else []
    if ingress.provider == "existing":
        return [Gateway(name, spec, spec.namespace or "", spec.selector) for name, spec in found]
    labels = {name: {"istio": release.removeprefix("istio-")} for name, release in RELEASES.items()}
    return [Gateway(name, spec, GATEWAY_NAMESPACE, labels[name]) for name, spec in found]


def gateways_of(ingress: IngressSpec, traffic: TrafficSpec) -> list[Gateway]:
    """The gateways that lead to a model, the public one first."""
    return [gateway for gateway in gateways(ingress) if gateway.leads_to(traffic)]


def host_label(model: str, traffic: TrafficSpec) -> str:
    """First part of a model's host: what ``traffic.host`` begins with, or the model's name."""
    return traffic.host.partition(".")[0] if traffic.host else model


def prefix(model: str, traffic: TrafficSpec) -> str:
    """Path of a model on a shared host, without a slash at its end."""
    return traffic.prefix or f"/{model}"


def label_in(host: str, domain: str) -> str | None:
    """The one label that a host has before a domain, None where it is not directly inside it."""
    label, _, rest = host.partition(".")
    return label if rest == domain else None


def installed_charts(ingress: IngressSpec | None) -> dict[ChartName, tuple[bool, str]]:
    """For each of Istio's charts whether the stack installs it, and the setting that would make it."""
    managed = ingress is not None and ingress.provider == "managed"
    found: dict[ChartName, tuple[bool, str]] = dict.fromkeys(
        ("base", "istiod", "gateway"), (managed, "ingress: {provider: managed}")
    )
    sidecars = managed and ingress is not None and ingress.sidecars
    return found | {"cni": (sidecars, "ingress: {provider: managed, sidecars: true}")}


def check_tls(ingress: IngressSpec) -> Iterator[Problem]:
    """Gateways that would answer in clear text in prod, fields relative to ``ingress``."""
    for gateway in gateways(ingress):
        if gateway.spec.tls is None:
            field = "tls" if gateway.name == PUBLIC else f"{gateway.name}.tls"
            yield Problem(field, "requests and tokens would cross the network in clear text", allowed="needed in prod",
                          fix="write tls: {issuer: <ClusterIssuer>}, or tls: {secret: <name>}")  # fmt: skip


def _fields_of(spec: GatewaySpec, provider: Literal["managed", "existing"]) -> Iterator[Problem]:
    foreign, other = (_EXISTING, "existing") if provider == "managed" else (_MANAGED, "managed")
    for name in foreign:
        if name in spec.model_fields_set:
            alias = type(spec).model_fields[name].alias or name
            yield Problem(alias, f"does nothing with provider: {provider}", allowed="absent",
                          fix=f"write provider: {other}, or leave {alias} out")  # fmt: skip
    if provider == "existing":
        for name in _EXISTING:
            if not getattr(spec, name):
                yield Problem(name, "the stack cannot know the pods of an existing gateway",
                              fix="write namespace: <its namespace> and selector: {istio: ingressgateway}")  # fmt: skip
