"""The alerts about one revision: when, how bad, who is told, and what to read."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from components.crds import Rule
from components.monitoring.alerting import Alert, duration, number, rule
from components.serving import workload
from spec import names
from spec.fields import duration_seconds
from spec.monitoring import P99, MonitoringSpec, has_queue_times
from spec.resolve import Revision

# A retry hides one failure in twenty from the caller, more it does not.
_ERROR_PERCENT: Final = 5.0
# A full server that keeps up lets requests wait for about one execution (100 %); beyond two, work comes in faster than
# it gets done.
_QUEUE_PERCENT: Final = 200.0
# Two scrapes make a rate, and one of four may be lost.
_SCRAPES: Final = 4
_RANGE_SECONDS: Final = 300
_OUTAGE_SECONDS: Final = 300
_AT_MAX_SECONDS: Final = 900
# After the stabilisation window one replica goes each minute.
_SCALE_DOWN_SLACK: Final = 300


@dataclass(frozen=True)
class _Series:
    """Selectors of a revision's series, and the range that a rate needs."""

    revision: Revision
    namespace: str
    range: int

    def triton(self, metric: str, *more: str) -> str:
        """Series that Triton reports."""
        own = names.selector(self.revision.model, self.revision.name)
        labels = {names.series_label(key): own[key] for key in (names.MODEL_LABEL, names.REVISION_LABEL)}
        return self._select(metric, labels, *more)

    def rate(self, metric: str, *more: str) -> str:
        """Growth of a counter in a second, for each model of the server."""
        return f"sum by (model) (rate({self.triton(metric, *more)}[{duration(self.range)}]))"

    def kubernetes(self, kind: str, metric: str) -> str:
        """Series of kube-state-metrics, of which the cluster may run several."""
        return f"max({self.one(kind, metric)})"

    def one(self, kind: str, metric: str) -> str:
        """The same, of each kube-state-metrics."""
        name = names.workload(self.revision.model, self.revision.name)
        return self._select(f"kube_{kind}_{metric}", {kind: name})

    def _select(self, metric: str, labels: dict[str, str], *more: str) -> str:
        matchers = [f'{key}="{value}"' for key, value in ({"namespace": self.namespace} | labels).items()]
        return f"{metric}{{{','.join([*matchers, *more])}}}"


def rules(revision: Revision, namespace: str, monitoring: MonitoringSpec) -> list[Rule]:
    """All alerts of a revision."""
    fewest = math.ceil(_SCRAPES * duration_seconds(monitoring.scrape_interval))
    series = _Series(revision, namespace, max(_RANGE_SECONDS, fewest))
    found = [*_requests(series), *_replicas(series), *_heartbeat(series), _missing(series)]
    return [_rule(alert, series, monitoring) for alert in found]


def _rule(alert: Alert, series: _Series, monitoring: MonitoringSpec) -> Rule:
    revision = series.revision
    labels = {
        "owner": revision.spec.alerts.owner or revision.owner,
        "namespace": series.namespace,
        "service": revision.model,
        "revision": revision.name,
    }
    return rule(alert, monitoring, labels, f"{names.workload(revision.model, revision.name)} in {series.namespace}")


def _requests(series: _Series) -> Iterator[Alert]:
    revision, alerts = series.revision, series.revision.spec.alerts
    # A caller that hangs up is no failure of the server. An older Triton writes no reason, which matches as well.
    failed = series.rate("nv_inference_request_failure", 'reason!="CANCELED"')
    limit = number(alerts.error_ratio_percent or _ERROR_PERCENT, "0.01")
    yield Alert(
        "TritonErrorRatio",
        "critical",
        # An idle model has no ratio: the filter drops it, where a floor under the divisor would make it look healthy.
        f"{failed} / ({series.rate('nv_inference_request_success')} + {failed} > 0) > {limit}",
        # As long as the range: a lone failure has left the range by then.
        series.range,
        "requests to {{ $labels.model }} fail",
        f"{{{{ $value | humanizePercentage }}}} of the requests of the last {duration(series.range)} failed.",
    )
    if has_queue_times(revision.spec.server):
        parts = ("input", "infer", "output")
        computed = " + ".join(series.rate(f"nv_inference_compute_{part}_duration_us") for part in parts)
        limit = number(alerts.queue_to_compute_percent or _QUEUE_PERCENT, "0.01")
        yield Alert(
            "TritonQueueTimeHigh",
            "warning",
            f"{series.rate('nv_inference_queue_duration_us')} / ({computed} > 0) > {limit}",
            2 * series.range,
            "requests to {{ $labels.model }} wait",
            "Requests wait {{ $value | humanizePercentage }} of the time that they are worked on.",
        )
    if alerts.p99_ms is not None:
        summary = series.triton(
            "nv_inference_request_summary_us", f'model="{revision.triton_name}"', f'quantile="{P99}"'
        )
        yield Alert(
            "TritonLatencyP99High",
            "warning",
            # Quantiles of several pods have no mean: the slowest pod counts.
            f"max by (model) ({summary}) > {number(alerts.p99_ms, '1000')}",
            series.range,
            "{{ $labels.model }} answers slowly",
            f"One request in a hundred takes {{{{ $value }}}} us or more on a pod; {alerts.p99_ms:g} ms are wanted.",
        )


def _replicas(series: _Series) -> Iterator[Alert]:
    revision = series.revision
    scaling, start = revision.scaling, workload.progress_seconds(revision)
    if not scaling.fixed:
        kind = "horizontalpodautoscaler"
        wanted, most = (series.kubernetes(kind, f) for f in ("status_desired_replicas", "spec_max_replicas"))
        yield Alert(
            "TritonAtMaxReplicas",
            "warning",
            f"{wanted} >= {most}",
            max(_AT_MAX_SECONDS, scaling.down_seconds + _SCALE_DOWN_SLACK),
            "the autoscaler is at its maximum",
            f"All {scaling.max} replicas are asked for; more load has nowhere to go.",
        )
    available = series.kubernetes("deployment", "status_replicas_available")
    wanted = series.kubernetes("deployment", "spec_replicas")
    created = series.kubernetes("deployment", "created")
    updated = series.one("deployment", "status_replicas_updated")
    yield Alert(
        "TritonNotReady",
        "critical",
        # A new Deployment may take its time; one replica that is replaced in place takes its load time.
        f"{available} == 0 and {wanted} > 0 and time() - {created} > {start}",
        max(_OUTAGE_SECONDS, math.ceil(duration_seconds(revision.spec.load_time))),
        "no replica is ready",
        "Nothing answers requests to this revision.",
    )
    yield Alert(
        "TritonNotReady",
        "warning",
        # A rollout that goes on is no trouble: it may lack a replica for as long as it lasts.
        f"{available} < {wanted} and max(changes({updated}[{duration(start)}])) == 0",
        start,
        "replicas are missing",
        "Only {{ $value }} replicas are ready, fewer than asked for.",
    )


def _heartbeat(series: _Series) -> Iterator[Alert]:
    if heartbeat := series.revision.heartbeat:
        yield Alert(
            "TritonHeartbeatFailing",
            "critical",
            f"{series.triton('triton_heartbeat_up')} == 0",
            # Two rounds in a row: one may meet a replica that is just going.
            max(math.ceil(2 * heartbeat.every), series.range),
            "replica {{ $labels.replica }} answers no real request",
            "It calls itself ready, and the heartbeat gets no answer from it, or an error.",
        )


def _while_wanted(series: _Series, expr: str) -> str:
    """Where a model may have no replica at all, only what is missing while it should have one."""
    if series.revision.scaling.min > 0:
        return expr
    return f"({expr} and on () {series.kubernetes('deployment', 'spec_replicas')} > 0)"


def _missing(series: _Series) -> Alert:
    reported = series.triton("nv_inference_request_success")
    known = series.one("deployment", "status_replicas_available")
    beating = f" or absent({series.triton('triton_heartbeat_replicas')})" if series.revision.heartbeat else ""
    return Alert(
        "TritonMetricsMissing",
        "warning",
        # Without series every other alert stays silent.
        f"{_while_wanted(series, f'absent({reported})')} or absent({known}){beating}",
        workload.progress_seconds(series.revision),
        "metrics are missing",
        "Prometheus lacks series of this revision from Triton, kube-state-metrics or the heartbeat; alerts are blind.",
    )
