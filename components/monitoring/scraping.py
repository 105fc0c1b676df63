"""What Prometheus scrapes besides ServiceMonitors, as its own configuration: typed parts, and the jobs made of them.

Sources: Prometheus's configuration page (``kubernetes_sd_config``, ``relabel_config``).
"""

from typing import Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from spec import names
from spec.fields import duration_seconds
from spec.monitoring import MonitoringSpec

ANNOTATION_JOB: Final = "kubernetes-service-endpoints"
APISERVER_JOB: Final = "kubernetes-apiservers"
# Of the API server's many thousand series, the one that tells whether an aggregated API answers.
APISERVER_METRIC: Final = "aggregator_unavailable_apiservice"
_APISERVER_INTERVAL: Final = "60s"
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_META: Final = "__meta_kubernetes"
_ANNOTATION: Final = f"{_META}_service_annotation_prometheus_io"
_SERVICE_LABEL: Final = f"{_META}_service_label"


class _Config(BaseModel):
    """Base of the parts; their fields are spelt as Prometheus spells them."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Relabel(_Config):
    """One step of relabelling; a field left out is Prometheus's default."""

    source_labels: list[str] | None = None
    action: Literal["replace", "keep", "drop", "labelmap"] = "replace"
    regex: str | None = None
    replacement: str | None = None
    target_label: str | None = None


class Namespaces(_Config):
    """Where to look."""

    names: list[str]


class KubernetesDiscovery(_Config):
    """Targets that the API server knows."""

    role: Literal["endpointslice"]
    namespaces: Namespaces | None = None


class TlsConfig(_Config):
    """Whom to trust."""

    ca_file: str
    server_name: str


class Authorization(_Config):
    """Whom to be."""

    credentials_file: str


class ScrapeJob(_Config):
    """One scrape job; interval and timeout are the global ones unless told otherwise."""

    job_name: str
    honor_labels: bool = False
    scrape_interval: str | None = None
    scheme: Literal["http", "https"] | None = None
    authorization: Authorization | None = None
    tls_config: TlsConfig | None = None
    kubernetes_sd_configs: list[KubernetesDiscovery]
    relabel_configs: list[Relabel]
    metric_relabel_configs: list[Relabel] | None = None


def annotation_job() -> ScrapeJob:
    """Scrapes the pods behind every Service annotated ``prometheus.io/scrape: "true"``.

    The slices of a Service carry its annotations and labels as its Endpoints object does. That API is deprecated since
    Kubernetes 1.33, and holds 1000 addresses at most: the others would be missed without a word. A Service with two
    address families has slices for both, and its pods are scraped once for each.

    Labels of a scraped series win over those of the target, because an exporter such as dcgm-exporter or
    kube-state-metrics names the pod that it speaks of. So whoever annotates a Service is trusted with the names of
    others. Models are not, since a Python backend writes any label it likes: their Services are no targets here, and
    their ServiceMonitors honour no label.
    """
    return ScrapeJob(
        job_name=ANNOTATION_JOB,
        honor_labels=True,
        kubernetes_sd_configs=[KubernetesDiscovery(role="endpointslice")],
        relabel_configs=[*_targets(), *_labels()],
    )


def _targets() -> list[Relabel]:
    """Which pods, and where each is scraped."""
    address = ["__address__", f"{_ANNOTATION}_port"]
    return [
        Relabel(source_labels=[f"{_ANNOTATION}_scrape"], action="keep", regex="true"),
        # Those of a model have a ServiceMonitor; a pod has one scrape path, whatever somebody annotates by hand.
        Relabel(
            source_labels=[_service_label(names.PART_OF_LABEL), _service_label("app.kubernetes.io/name")],
            action="drop",
            regex=f"{names.PROJECT};triton(-.+)?",
        ),
        Relabel(source_labels=[f"{_ANNOTATION}_scheme"], regex="(https?)", target_label="__scheme__"),
        Relabel(source_labels=[f"{_ANNOTATION}_path"], regex="(.+)", target_label="__metrics_path__"),
        Relabel(
            source_labels=address, regex=r"([^:]+)(?::\d+)?;(\d+)", replacement="$1:$2", target_label="__address__"
        ),
        # An IPv6 address is full of colons and stands in brackets, which the rule above does not match.
        Relabel(
            source_labels=address, regex=r"(\[.+\])(?::\d+)?;(\d+)", replacement="$1:$2", target_label="__address__"
        ),
    ]


def _labels() -> list[Relabel]:
    """What the series of a target are labelled with."""
    exporter = "(?:nvidia-)?dcgm-exporter"
    about_others = [_service_label("app.kubernetes.io/name"), _service_label("app")]
    return [
        Relabel(action="labelmap", regex=f"{_SERVICE_LABEL}_(.+)"),
        Relabel(source_labels=[f"{_META}_namespace"], target_label="kubernetes_namespace"),
        Relabel(source_labels=[f"{_META}_service_name"], target_label="kubernetes_name"),
        # After the labels of the Service, one of which may have the same name. An adapter finds a pod by these two.
        Relabel(source_labels=[f"{_META}_namespace"], target_label="namespace"),
        Relabel(source_labels=[f"{_META}_pod_name"], target_label="pod"),
        # A GPU that no pod holds has no pod label of its own; it must not pass for one that the exporter holds.
        *(
            Relabel(source_labels=about_others, regex=f"{exporter};.*|.*;{exporter}", replacement="", target_label=name)
            for name in ("namespace", "pod")
        ),
    ]


def _service_label(label: str) -> str:
    return f"{_SERVICE_LABEL}_{names.series_label(label)}"


def apiserver_job(monitoring: MonitoringSpec) -> ScrapeJob:
    """Scrapes from the API servers whether the metrics APIs behind the autoscalers answer."""
    found = [f"{_META}_namespace", f"{_META}_service_name", f"{_META}_endpointslice_port_name"]
    return ScrapeJob(
        job_name=APISERVER_JOB,
        # Some MiB to read each time.
        scrape_interval=max(monitoring.scrape_interval, _APISERVER_INTERVAL, key=duration_seconds),
        scheme="https",
        authorization=Authorization(credentials_file=f"{_ACCOUNT}/token"),
        tls_config=TlsConfig(ca_file=f"{_ACCOUNT}/ca.crt", server_name="kubernetes"),
        kubernetes_sd_configs=[KubernetesDiscovery(role="endpointslice", namespaces=Namespaces(names=["default"]))],
        relabel_configs=[Relabel(source_labels=found, action="keep", regex="default;kubernetes;https")],
        metric_relabel_configs=[Relabel(source_labels=["__name__"], action="keep", regex=APISERVER_METRIC)],
    )


def scrape_configs(monitoring: MonitoringSpec) -> str:
    """The jobs as YAML, the same text for the same settings."""
    jobs = [annotation_job(), apiserver_job(monitoring)]
    return yaml.safe_dump(
        [job.model_dump(exclude_none=True) for job in jobs], sort_keys=False, allow_unicode=True, width=1000
    )
