"""Alerts about the platform itself: what measures and scales the models, and the GPUs under them.

A model's own alerts stand in :mod:`components.serving.alerts`, that about its autoscaler's maximum among them: the
estate makes no other autoscaler.

Sources of the series: Prometheus itself (``up``), kube-state-metrics (``kube_*``), the API server
(``aggregator_*``), KEDA (``keda_*``), dcgm-exporter (``DCGM_*``), and what :mod:`spec.signals` names.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pulumi_kubernetes as k8s

from components.crds import PrometheusRule, RuleGroup
from components.monitoring.alerting import Alert, duration, rule
from components.monitoring.scraping import APISERVER_JOB, APISERVER_METRIC
from components.serving import workload
from spec import names, signals
from spec.catalog import Estate
from spec.pool import GpuPoolSpec

# No model's rule has this name: a revision's name is shorter.
NAME: Final = "platform-monitoring"
# The APIs that autoscalers ask: resources, our signals, KEDA's.
_METRICS_APIS: Final = ("v1beta1.metrics.k8s.io", "v1beta[12].custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io")
# Every GPU reports it, in every sharing mode.
_ON_EVERY_GPU: Final = "DCGM_FI_DEV_GPU_TEMP"
_XID: Final = "DCGM_FI_DEV_XID_ERRORS"
# What a program does wrong; the card stays healthy (k8s-device-plugin, internal/rm/health.go).
_PROGRAM_XIDS: Final = (13, 31, 43, 45, 68, 109)
_XID_RANGE: Final = "1h"
_GPU_LABELS: Final = "Hostname, gpu, UUID"
_KEDA_NAMESPACE: Final = ("namespace", "exported_namespace")
# Longer than four scrapes of the longest interval.
_ERROR_RANGE: Final = "10m"
_SHORT_SECONDS: Final = 600
_DOWN_SECONDS: Final = 900
# A DaemonSet on a new node: image pull included.
_EXPORTER_SECONDS: Final = 900
_IDLE_SECONDS: Final = 6 * 3600
# One request in a quarter of an hour is no load, and shows above this.
_IDLE_WINDOW: Final = "15m"
_IDLE_RATIO: Final = "0.01"


def platform_rule(estate: Estate, namespaces: Sequence[str]) -> PrometheusRule:
    """All alerts about the platform.

    Args:
        estate: with a Prometheus.
        namespaces: where the estate's own parts run, models included.
    """
    monitoring = estate.spec.monitoring
    found = [
        _watchdog(),
        *_metrics(estate, namespaces),
        *_keda(estate),
        *_gpus(estate.spec.gpu_pools, estate.spec.namespace),
    ]
    labels = {"owner": monitoring.owner}
    return PrometheusRule(groups=[RuleGroup(name=NAME, rules=[rule(alert, monitoring, labels) for alert in found])])


def metadata(estate: Estate) -> k8s.meta.v1.ObjectMetaArgs:
    """Beside the models, whose alerts the same Prometheus has to find."""
    labels = names.estate_labels(NAME) | estate.spec.monitoring.labels
    return k8s.meta.v1.ObjectMetaArgs(name=NAME, namespace=estate.spec.namespace, labels=labels)


def _watchdog() -> Alert:
    return Alert(
        "Watchdog",
        "none",
        "vector(1)",
        0,
        "alerts reach whoever reads this",
        "Always there. Whoever stops getting it has lost Prometheus, Alertmanager or the way from there.",
    )


def _metrics(estate: Estate, namespaces: Sequence[str]) -> Iterator[Alert]:
    """Whether what autoscalers and alerts read is there."""
    starts = (workload.progress_seconds(revision) for model in estate.models for revision in model.revisions)
    # A replica that loads its model has neither metrics nor a reason for an alert.
    patience = max([_DOWN_SECONDS, *starts])
    within = "|".join(sorted(set(namespaces)))
    yield Alert(
        "TargetDown",
        "warning",
        f'up{{namespace=~"{within}"}} == 0 or up{{job="{APISERVER_JOB}"}} == 0',
        patience,
        "{{ $labels.job }} cannot be scraped at {{ $labels.instance }}",
        f"Its series have been missing for {duration(patience)}; alerts and autoscalers that read them are blind.",
    )
    apis = "|".join(name.replace(".", r"\\.") for name in _METRICS_APIS)
    yield Alert(
        "MetricsApiUnavailable",
        "warning",
        f'max by (name) ({APISERVER_METRIC}{{name=~"{apis}"}}) == 1',
        _SHORT_SECONDS,
        "{{ $labels.name }} does not answer",
        "The API server cannot reach what serves it; autoscalers that ask it keep the replicas they have.",
    )
    autoscaler = "kube_horizontalpodautoscaler_status"
    own = f'namespace="{estate.spec.namespace}"'
    failing = f'{autoscaler}_condition{{{own},condition="ScalingActive",status="false"}} == 1'
    yield Alert(
        "AutoscalerWithoutMetrics",
        "warning",
        # Without replicas nothing is measured, and nothing has to be. The number wanted would not do: it stays 0 where
        # no metric ever came.
        f"max by (namespace, horizontalpodautoscaler) ({failing})"
        f" and on (namespace, horizontalpodautoscaler) {autoscaler}_current_replicas{{{own}}} > 0",
        patience,
        "{{ $labels.horizontalpodautoscaler }} in {{ $labels.namespace }} gets no metrics",
        "It keeps the replicas it has, whatever the load is.",
    )


def _keda(estate: Estate) -> Iterator[Alert]:
    """Whether KEDA's triggers get their values."""
    if estate.spec.autoscaler.backend != "keda":
        return
    errors, namespace = "keda_scaler_detail_errors_total", estate.spec.namespace
    # KEDA names the namespace of the ScaledObject; where its labels are not honoured, under the second name.
    of_models = (f'rate({errors}{{{label}="{namespace}"}}[{_ERROR_RANGE}])' for label in _KEDA_NAMESPACE)
    yield Alert(
        "ScalerFailing",
        "warning",
        f"sum by (scaledObject, scaler) ({' or '.join(of_models)}) > 0",
        _SHORT_SECONDS,
        "KEDA fails to read {{ $labels.scaler }} for {{ $labels.scaledObject }}",
        "It keeps the replicas it has; a model at zero is not woken.",
    )


def _gpus(pools: Sequence[GpuPoolSpec], namespace: str) -> Iterator[Alert]:
    """Whether GPUs are seen, healthy and used."""
    if not pools:
        return
    resources = sorted({names.series_label(name) for pool in pools for name in pool.node_capacity()})
    there = f'kube_node_status_capacity{{resource=~"{"|".join(resources)}"}} > 0'
    yield Alert(
        "GpuExporterMissing",
        "warning",
        f'max by (node) ({there}) unless on (node) label_replace({_ON_EVERY_GPU}, "node", "$1", "Hostname", "(.+)")',
        _EXPORTER_SECONDS,
        "no GPU metrics of node {{ $labels.node }}",
        "The node offers GPUs and dcgm-exporter reports none of them; autoscalers on GPU use and GPU alerts are blind.",
    )
    yield from _xid_errors()
    found = [signals.GPU[mode] for mode in sorted({pool.sharing for pool in pools}) if mode in signals.GPU]
    if found:
        yield _idle([one for signal in found for one in (signal, signal.older) if one], namespace)


def _xid_errors() -> Iterator[Alert]:
    of_program = " or ".join(f"{_XID} == {code}" for code in _PROGRAM_XIDS)
    what = "GPU {{ $labels.gpu }} of node {{ $labels.Hostname }} reports XID {{ $value }}"
    yield Alert(
        "GpuXidError",
        "critical",
        # The series keeps the last code until the card is reset: so long it stays suspect.
        f"max by ({_GPU_LABELS}) ({_XID} > 0 unless ({of_program}))",
        0,
        what,
        "The driver blames the card or its connection; what runs on it may hang, fail or compute nonsense.",
    )
    yield Alert(
        "GpuXidError",
        "warning",
        # The same program may do it again and is told apart only while the code is new.
        f"max by ({_GPU_LABELS}) (({of_program}) and changes({_XID}[{_XID_RANGE}]) > 0)",
        0,
        what,
        f"A program on the card did something wrong within the last {_XID_RANGE}, and was ended for it.",
    )


def _idle(found: Sequence[signals.Signal], namespace: str) -> Alert:
    """One alert for all signals of GPU use: two with the same labels would be one to whoever gets them."""
    return Alert(
        "GpuIdle",
        "info",
        " or ".join(f"{_used(signal, namespace)} < {_IDLE_RATIO}" for signal in found),
        _IDLE_SECONDS,
        f"{{{{ $labels.pod }}}} in {namespace} holds a GPU and leaves it idle",
        f"It uses {{{{ $value | humanizePercentage }}}} of it, and has stayed below 1 % for"
        f" {_IDLE_SECONDS // 3600} hours.",
    )


def _used(signal: signals.Signal, namespace: str) -> str:
    """GPU use by pod, whatever the exporter calls a pod."""
    windows = signals.Windows(gpu=_IDLE_WINDOW, rate=_IDLE_WINDOW)
    used = signal.query([f'{signal.namespace_label}="{namespace}"'], [signal.pod_label], windows)
    if signal.pod_label == "pod":
        return used
    return f'label_replace({used}, "pod", "$1", "{signal.pod_label}", "(.+)")'
