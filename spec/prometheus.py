"""The Prometheus behind alerts and autoscaling: made by the stack, or one that the cluster has (stack file)."""

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from spec import names
from spec.fields import Cpu, DnsLabel, DnsName, Memory, Spec, memory_bytes, refuse, refuse_all
from spec.problems import Problem

if TYPE_CHECKING:
    from spec.monitoring import MonitoringSpec

# Name of the Service, and of the custom resource behind it.
PROMETHEUS: Final = "prometheus"
PORT: Final = 9090
# kube-prometheus-stack, templates/_helpers.tpl: the full name is cut to this length, and a dash at its end goes.
_CHART: Final = "kube-prometheus-stack"
_CHART_NAME_MAX: Final = 26
_URL: Final = re.compile(r"^https?://[^\s?#/@]+(/[^\s?#]*)?$")
_RETENTION: Final = re.compile(r"^([1-9][0-9]{0,4})(h|d|w)$")
_HOURS: Final = {"h": 1, "d": 24, "w": 168}
# Prometheus writes blocks of two hours, and deletes whole blocks.
_FEWEST_HOURS: Final = 2
_SMALLEST_DISK: Final = "1Gi"
_LABEL_NAME: Final = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")
# The operator tells replicas apart by these two.
_OPERATOR_LABELS: Final = ("prometheus", "prometheus_replica")
# Fields of one provider only, in Python's spelling.
_EXISTING: Final = ("url", "release", "namespace")


def _check_url(value: str) -> str:
    """The address as Prometheus's API clients take it: no query, no password, no slash at the end."""
    if not _URL.fullmatch(value) or not urlsplit(value).hostname:
        refuse(
            "not the address of a Prometheus",
            allowed="http:// or https://, without user, ? and #",
            fix="write for example http://prometheus.monitoring.svc:9090",
        )
    return value.rstrip("/")


def _check_retention(value: object) -> str:
    match = _RETENTION.fullmatch(value) if isinstance(value, str) else None
    if not match or int(match[1]) * _HOURS[match[2]] < _FEWEST_HOURS:
        refuse("not a retention", allowed="a whole number and h, d or w, at least 2h", fix="write for example 15d")
    return match[0]


def _check_disk(value: str) -> str:
    if memory_bytes(value) < memory_bytes(_SMALLEST_DISK):
        refuse("too small for Prometheus", allowed=f"at least {_SMALLEST_DISK}", fix="write for example 50Gi")
    return value


def _check_external_labels(labels: dict[str, str]) -> dict[str, str]:
    problems = []
    for name, value in labels.items():
        if "$" in value:
            problems.append(Problem(name, "Prometheus would put an environment variable there", value,
                                    "no $", "write the text itself"))  # fmt: skip
        if not _LABEL_NAME.fullmatch(name) or name.startswith("__"):
            message, allowed = "not the name of a Prometheus label", "letters, digits and _, no digit and no __ first"
            problems.append(Problem(name, message, name, allowed, "rename it"))
        elif name in _OPERATOR_LABELS:
            problems.append(Problem(name, "is decided by the Prometheus operator", fix=f"leave {name} out"))
    if problems:
        refuse_all(problems)
    return labels


PrometheusUrl = Annotated[
    str, AfterValidator(_check_url), WithJsonSchema({"type": "string", "format": "uri", "pattern": _URL.pattern})
]
Retention = Annotated[
    str, BeforeValidator(_check_retention), WithJsonSchema({"type": "string", "pattern": _RETENTION.pattern})
]
Disk = Annotated[Memory, AfterValidator(_check_disk)]
ExternalLabels = Annotated[dict[str, str], AfterValidator(_check_external_labels)]


class StorageSpec(Spec):
    """A volume that outlives the pod.

    Attributes:
        size: of the volume of each replica.
        storage_class: an existing StorageClass; by default the cluster's own default.
    """

    size: Disk
    storage_class: DnsName | None = None


class AlertmanagerSpec(Spec):
    """Who gets the alerts.

    Attributes:
        config_secret: an existing Secret in the namespace ``monitoring`` whose key ``alertmanager.yaml`` holds routes
            and receivers: those hold passwords and tokens, which have no place in a file of this project.
        replicas: Alertmanagers that share silences and send each alert once; by default 1.
        storage: volume for silences and for what was sent; by default both last as long as the pod.
    """

    config_secret: DnsName
    replicas: Annotated[int, Field(ge=1, le=5)] = 1
    storage: StorageSpec | None = None


class PrometheusSpec(Spec):
    """Where the series are.

    Attributes:
        provider: ``managed`` makes one through the Prometheus operator; ``existing`` attaches to one that is there.
        retention: how long samples are kept; by default 15 days, Prometheus's own default.
        storage: volume of each replica; by default an emptyDir of at most 10 GiB, lost with the pod.
        cpu: CPU request of each replica.
        memory: memory of each replica. Prometheus takes a few KiB for each active series.
        replicas: Prometheuses that scrape the same targets; by default 1. Readers stay with one of them.
        alertmanager: who gets the alerts; by default nobody.
        external_labels: labels of every alert and of what is sent elsewhere, e.g. ``{cluster: prod-eu}``.
        url: address of an existing Prometheus, as seen from inside the cluster.
        release: Helm release of kube-prometheus-stack whose Prometheus it is; the address follows from its name.
        namespace: namespace of that release.
    """

    provider: Literal["managed", "existing"] = "managed"
    retention: Retention = "15d"
    storage: StorageSpec | None = None
    cpu: Cpu = "500m"
    memory: Memory = "2Gi"
    replicas: Annotated[int, Field(ge=1, le=5)] = 1
    alertmanager: AlertmanagerSpec | None = None
    external_labels: ExternalLabels = Field(default_factory=dict)
    url: PrometheusUrl | None = None
    release: DnsLabel | None = None
    namespace: DnsLabel | None = None

    @model_validator(mode="after")
    def _every_field_belongs_to_the_provider(self) -> "PrometheusSpec":
        written = sorted(self.model_fields_set - {"provider"})
        managed = self.provider == "managed"
        foreign = [name for name in written if (name in _EXISTING) == managed]
        other = "existing" if managed else "managed"
        problems = [Problem(alias, f"does nothing with provider: {self.provider}", allowed="absent",
                            fix=f"write provider: {other}, or leave {alias} out")
                    for alias in (_alias(name) for name in foreign)]  # fmt: skip
        if problems:
            refuse_all(problems)
        return self

    @model_validator(mode="after")
    def _an_existing_one_has_one_address(self) -> "PrometheusSpec":
        if self.provider == "managed":
            return self
        by_release = self.release is not None or self.namespace is not None
        if by_release == (self.url is not None):
            refuse(
                "an existing Prometheus has one address",
                allowed="url, or release and namespace",
                fix="write url: http://prometheus.monitoring.svc:9090" if not by_release else "leave url out",
                field="url",
            )
        if by_release and not (self.release and self.namespace):
            missing = "namespace" if self.release else "release"
            refuse("release and namespace belong together", fix=f"add `{missing}:`", field=missing)
        return self

    @property
    def address(self) -> str:
        """URL of the HTTP API, as seen from inside the cluster."""
        if self.provider == "managed":
            return f"http://{PROMETHEUS}.{names.MONITORING_NAMESPACE}.svc:{PORT}"
        if self.release and self.namespace:
            return f"http://{chart_service(self.release)}.{self.namespace}.svc:{PORT}"
        return self.url or ""


def chart_service(release: str) -> str:
    """Name of the Service that kube-prometheus-stack puts in front of its Prometheus.

    The chart's full name is ``<release>-kube-prometheus-stack``, or the release's name alone where that contains the
    chart's, cut to 26 characters (templates/_helpers.tpl and templates/prometheus/service.yaml of the chart).
    """
    full = release if _CHART in release else f"{release}-{_CHART}"
    return f"{full[:_CHART_NAME_MAX].removesuffix('-')}-prometheus"


def prometheus_url(monitoring: "MonitoringSpec") -> str | None:
    """URL of the Prometheus that holds the estate's series, without a slash at its end; None where the stack has none.

    The URL is the one to use inside the cluster: ``http://prometheus.monitoring.svc:9090`` of the managed one.
    """
    return monitoring.prometheus.address if monitoring.prometheus else None


def retention_mebibytes(disk: str) -> int:
    """MiB of a volume that blocks may fill: 80 %, which leaves room for the write-ahead log and for compaction."""
    return int(Decimal(memory_bytes(disk)) * 8 / 10 / 2**20)


def _alias(name: str) -> str:
    return PrometheusSpec.model_fields[name].alias or name
