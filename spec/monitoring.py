"""Monitoring: how Prometheus finds the models (stack file), and when somebody is told about one (model file)."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from spec.fields import Duration, LabelKey, LabelValue, Spec, duration_seconds, refuse, refuse_all
from spec.grafana import GrafanaSpec
from spec.names import LABEL_DOMAIN
from spec.problems import Problem
from spec.prometheus import PrometheusSpec
from spec.triton import ModelConfig

_URL: Final = re.compile(r"^https?://[^\s?#/]+(/[^\s?#]*)?$")
# An instant query looks back 5 minutes: of two scrapes in that time one may be lost.
_LONGEST_INTERVAL: Final = 120
_OWN_LABELS: Final = ("app.kubernetes.io/", f"{LABEL_DOMAIN}/")
P99: Final = "0.99"


def _check_url(value: str) -> str:
    if not _URL.fullmatch(value):
        refuse(
            "not the URL of a folder",
            allowed="http:// or https://, without ? and #",
            fix="write for example https://git.example.com/acme/triton-estate/blob/main/docs/runbooks",
        )
    return value.rstrip("/")


FolderUrl = Annotated[
    str, AfterValidator(_check_url), WithJsonSchema({"type": "string", "format": "uri", "pattern": _URL.pattern})
]


class MonitoringSpec(Spec):
    """How Prometheus finds the models.

    Attributes:
        operator: true makes a ServiceMonitor a model and a PrometheusRule a revision. Their kinds (CRDs) come with the
            Prometheus operator of the cluster, never from this stack: a cluster without it refuses them by name.
            false marks the Services with prometheus.io annotations instead, and makes no alerts.
        labels: labels by which the cluster's Prometheus selects monitors and rules; by default those of a Helm release
            named kube-prometheus-stack.
        scrape_interval: time between two scrapes.
        runbooks: URL of the folder that holds docs/runbooks for whoever gets an alert; by default an alert names the
            file in this repository.
        install_operator: installs the Prometheus operator with its kinds and kube-state-metrics, for a cluster that
            has neither.
        prometheus: the Prometheus that scrapes, alerts and answers for autoscaling; by default none is made, and
            nothing asks one. With the operator it comes with the alerts about the platform itself.
        owner: who is told about the platform; by default ``platform``.
        grafana: where the dashboards are shown; by default none are made.
    """

    operator: bool = True
    labels: dict[LabelKey, LabelValue] = Field(default_factory=lambda: {"release": "kube-prometheus-stack"})
    scrape_interval: Duration = "15s"
    runbooks: FolderUrl | None = None
    install_operator: bool = False
    prometheus: PrometheusSpec | None = None
    owner: LabelValue = "platform"
    grafana: GrafanaSpec | None = None

    @model_validator(mode="after")
    def _nothing_is_ignored_without_the_operator(self) -> "MonitoringSpec":
        attached = {"prometheus"} if self.prometheus and self.prometheus.provider == "existing" else set()
        unused = sorted(self.model_fields_set - {"operator", "grafana"} - attached)
        if not self.operator and unused:
            names = [MonitoringSpec.model_fields[name].alias or name for name in unused]
            refuse_all(
                [
                    Problem(name, "does nothing without the operator", fix=f"write operator: true, or leave {name} out")
                    for name in names
                ]
            )
        return self

    @model_validator(mode="after")
    def _owner_has_alerts(self) -> "MonitoringSpec":
        if "owner" in self.model_fields_set and self.prometheus is None and self.operator:
            refuse("no alert about the platform is made", allowed="absent without prometheus",
                   fix="add prometheus: {provider: existing, url: …}, or leave owner out", field="owner")  # fmt: skip
        return self

    @model_validator(mode="after")
    def _grafana_has_a_prometheus(self) -> "MonitoringSpec":
        if self.grafana and self.grafana.provider == "managed" and self.prometheus is None:
            refuse("a Grafana asks a Prometheus, and the stack names none",
                   fix="add prometheus: {provider: managed}, or the url of yours with provider: existing",
                   field="grafana")  # fmt: skip
        return self

    @model_validator(mode="after")
    def _labels_select_something(self) -> "MonitoringSpec":
        if not self.labels and self.prometheus and self.prometheus.provider == "managed":
            refuse("a Prometheus that selects no label selects every monitor of these namespaces",
                   allowed="at least one label", fix="leave labels out", field="labels")  # fmt: skip
        return self

    @model_validator(mode="after")
    def _labels_are_not_those_of_the_model(self) -> "MonitoringSpec":
        taken = [name for name in self.labels if name.startswith(_OWN_LABELS)]
        if taken:
            refuse_all(
                [Problem(f"labels.{name}", "is decided by the model", fix=f"leave {name} out") for name in taken]
            )
        return self

    @model_validator(mode="after")
    def _no_scrape_is_missed(self) -> "MonitoringSpec":
        if not 1 <= duration_seconds(self.scrape_interval) <= _LONGEST_INTERVAL:
            refuse("not a scrape interval", allowed="1s to 2m", fix="write for example 15s", field="scrapeInterval")
        return self


class AlertsSpec(Spec):
    """When somebody is told about a model.

    Attributes:
        owner: who is told; by default the model's owner.
        error_ratio_percent: failed requests in percent of all; by default 5.
        queue_to_compute_percent: time that requests wait in percent of the time that they are worked on; by default
            200.
        p99_ms: milliseconds within which 99 of 100 requests are answered; absent for no alert. Needs
            ``server: {metrics-config: [summary_latencies=true]}``.
    """

    owner: LabelValue | None = None
    error_ratio_percent: Annotated[float, Field(ge=0.01, lt=100)] | None = None
    queue_to_compute_percent: Annotated[float, Field(ge=1, le=100_000)] | None = None
    p99_ms: Annotated[float, Field(ge=0.001, le=1_000_000)] | None = None


def metrics_config(server: Mapping[str, object]) -> dict[str, str]:
    """Settings of the option ``metrics-config``; of several values Triton takes the last."""
    written = server.get("metrics-config")
    texts = [str(item) for item in written] if isinstance(written, list) else []
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def has_queue_times(server: Mapping[str, object]) -> bool:
    """Whether Triton counts the time that requests wait and are worked on."""
    return metrics_config(server).get("counter_latencies") != "false"


def check_alerts(
    alerts: AlertsSpec, server: Mapping[str, object], config: ModelConfig | None, monitoring: MonitoringSpec
) -> Iterator[Problem]:
    """Alerts that could never fire, fields relative to ``alerts``.

    Args:
        alerts: of the model file.
        server: options of tritonserver.
        config: configuration of the served model, None where it has none here.
        monitoring: of the stack.
    """
    written = {AlertsSpec.model_fields[name].alias or name: getattr(alerts, name) for name in alerts.model_fields_set}
    if not monitoring.operator:
        for name, value in sorted(written.items()):
            yield Problem(name, "this stack makes no alerts", value, "absent without the Prometheus operator",
                          "set monitoring: {operator: true} in the stack, or alerts: null for this model")  # fmt: skip
        return
    settings = metrics_config(server)
    if alerts.queue_to_compute_percent is not None and not has_queue_times(server):
        yield Problem("queueToComputePercent", "counter_latencies=false keeps Triton from counting queue time",
                      alerts.queue_to_compute_percent, fix="take it out of server.metrics-config")  # fmt: skip
    if alerts.p99_ms is None:
        return
    if settings.get("summary_latencies") != "true":
        yield Problem("p99Ms", "Triton reports no quantiles unless it is told to", alerts.p99_ms,
                      fix="add server: {metrics-config: [summary_latencies=true]}, or leave p99Ms out")  # fmt: skip
    quantiles = settings.get("summary_quantiles", f"{P99}:0.001")
    if P99 not in [item.partition(":")[0] for item in quantiles.split(",")]:
        yield Problem("p99Ms", f"summary_quantiles={quantiles} has no 0.99", alerts.p99_ms,
                      fix=f"write summary_quantiles={quantiles},{P99}:0.001")  # fmt: skip
    if config is not None and config.response_cache.enable:
        yield Problem("p99Ms", "Triton keeps no summary of a model with a response cache", alerts.p99_ms,
                      fix="leave p99Ms out, or response_cache")  # fmt: skip
