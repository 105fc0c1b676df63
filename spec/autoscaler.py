"""Who measures for the autoscalers, and how (stack file)."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final, Literal

from pydantic import model_validator

from spec.fields import DnsName, Duration, Spec, duration_seconds, refuse_all
from spec.monitoring import MonitoringSpec
from spec.problems import Problem
from spec.prometheus import prometheus_url
from spec.signals import Windows

# Two scrapes make a rate, and one of four may be lost.
_RATE_SCRAPES: Final = 4
_RATE_SECONDS: Final = 120
# A mean takes one, and one may be lost.
_GPU_SCRAPES: Final = 2
_RELIST_SECONDS: Final = 30
# Beyond these an autoscaler sees a new metric, or a change of one, too late to be of use.
_LONGEST_WINDOW: Final = 3600
_LONGEST_RELIST: Final = 600


class TlsSpec(Spec):
    """How the API server knows the metrics adapter.

    Attributes:
        issuer: an existing ClusterIssuer of cert-manager, which has to be in the cluster with its CA injector.
    """

    issuer: DnsName


class AutoscalerSpec(Spec):
    """Who tells the HorizontalPodAutoscalers their metrics.

    Attributes:
        backend: ``adapter`` (prometheus-adapter, the custom metrics API) or ``keda`` (a ScaledObject for each
            revision, which makes the HPA; also scales by the clock and to zero).
        provider: ``managed`` installs it; ``existing`` uses the one that the cluster has.
        gpu_window: over which GPU use is averaged, so that short bursts add no replica.
        rate_window: over which requests and queue time are averaged; by default 2m, or four scrapes where those take
            longer.
        relist_interval: how often the adapter looks for metrics; by default 30s, or one scrape where that takes
            longer.
        tls: certificate of the adapter; by default it makes one itself, which the API server does not check.
    """

    backend: Literal["adapter", "keda"] = "adapter"
    provider: Literal["existing", "managed"] = "existing"
    gpu_window: Duration = "5m"
    rate_window: Duration | None = None
    relist_interval: Duration | None = None
    tls: TlsSpec | None = None

    @model_validator(mode="after")
    def _nothing_is_ignored(self) -> "AutoscalerSpec":
        adapter, managed = self.backend == "adapter", self.provider == "managed"
        ignored: dict[str, str] = {}
        if not (adapter and managed):
            why = "without an adapter of this stack" if adapter else "with backend keda"
            ignored = dict.fromkeys(("relist_interval", "tls"), why)
        if adapter and not managed:
            why = "with an adapter that the cluster has, which has rules of its own"
            ignored |= dict.fromkeys(("gpu_window", "rate_window"), why)
        way_out = "set provider: managed" if adapter else "set backend: adapter and provider: managed"
        problems = [
            Problem(alias, f"does nothing {why}", allowed="absent", fix=f"leave {alias} out, or {way_out}")
            for name, why in ignored.items()
            if name in self.model_fields_set
            for alias in [AutoscalerSpec.model_fields[name].alias or name]
        ]
        if problems:
            refuse_all(problems)
        return self

    @property
    def installs_adapter(self) -> bool:
        """Whether the stack makes a prometheus-adapter."""
        return self.backend == "adapter" and self.provider == "managed"

    @property
    def installs_keda(self) -> bool:
        """Whether the stack installs KEDA."""
        return self.backend == "keda" and self.provider == "managed"


def check_autoscaler(autoscaler: AutoscalerSpec, monitoring: MonitoringSpec) -> Iterator[Problem]:
    """Settings that do not go together with how Prometheus scrapes, fields relative to the stack."""
    scrape = duration_seconds(monitoring.scrape_interval)
    shortest = {
        "relistInterval": (autoscaler.relist_interval, scrape, "one scrape", _LONGEST_RELIST),
        "rateWindow": (autoscaler.rate_window, _RATE_SCRAPES * scrape, "four scrapes", _LONGEST_WINDOW),
        "gpuWindow": (autoscaler.gpu_window, _GPU_SCRAPES * scrape, "two scrapes", _LONGEST_WINDOW),
    }
    for field, (value, fewest, what, most) in shortest.items():
        if value is None or fewest <= duration_seconds(value) <= most:
            continue
        short = duration_seconds(value) < fewest
        message = (
            f"shorter than {what} ({_seconds(fewest)}): the metric would come and go" if short else "longer than useful"
        )
        allowed = f"{_seconds(fewest)} to {_seconds(Decimal(most))}"
        fix = f"write {_seconds(fewest if short else Decimal(most))}, or leave it out"
        yield Problem(f"autoscaler.{field}", message, value, allowed, fix)
    if autoscaler.installs_adapter and prometheus_url(monitoring) is None:
        yield Problem(
            "autoscaler.provider",
            "the adapter asks a Prometheus, and the stack names none",
            autoscaler.provider,
            fix="add monitoring: {prometheus: {provider: managed}}, or the url of yours with provider: existing",
        )


def windows(autoscaler: AutoscalerSpec, monitoring: MonitoringSpec) -> Windows:
    """Ranges of the queries."""
    fewest = _RATE_SCRAPES * duration_seconds(monitoring.scrape_interval)
    rate = autoscaler.rate_window or _seconds(max(Decimal(_RATE_SECONDS), fewest))
    return Windows(gpu=autoscaler.gpu_window, rate=rate)


def relist_interval(autoscaler: AutoscalerSpec, monitoring: MonitoringSpec) -> str:
    """How often the adapter looks for metrics."""
    scrape = duration_seconds(monitoring.scrape_interval)
    return autoscaler.relist_interval or _seconds(max(Decimal(_RELIST_SECONDS), scrape))


def metrics_age(autoscaler: AutoscalerSpec, monitoring: MonitoringSpec) -> str:
    """How old the last sample of a metric may be for the adapter to know it: of four scrapes three may be lost."""
    relist = duration_seconds(relist_interval(autoscaler, monitoring))
    return _seconds(max(relist, _RATE_SCRAPES * duration_seconds(monitoring.scrape_interval)))


def _seconds(value: Decimal) -> str:
    """A duration as Prometheus and Go both read it."""
    for size, unit in ((3600, "h"), (60, "m")):
        if value % size == 0:
            return f"{int(value // size)}{unit}"
    return f"{int(value)}s" if value % 1 == 0 else f"{int(value * 1000)}ms"
