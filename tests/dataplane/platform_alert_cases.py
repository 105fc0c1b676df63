"""The same for the alerts about the platform: what measures and scales, and the GPUs."""

from typing import Final

from tests.dataplane.alert_cases import NAMESPACE, Case, Series, series


def up(namespace: str, values: str) -> Series:
    return {series("up", {"job": "a", "namespace": namespace, "instance": "10.0.0.1:8002"}): values}


def api(name: str, values: str) -> Series:
    labels = {"job": "kubernetes-apiservers", "instance": "10.0.0.1:6443", "name": name}
    return {series("aggregator_unavailable_apiservice", labels): values}


def inactive(replicas: int, failing: int = 1, condition: str = "ScalingActive") -> Series:
    name = {"namespace": NAMESPACE, "horizontalpodautoscaler": "plain-v1"}
    state = {**name, "condition": condition, "status": "false"}
    return {
        series("kube_horizontalpodautoscaler_status_condition", state): f"{failing}x120",
        series("kube_horizontalpodautoscaler_status_current_replicas", name): f"{replicas}x120",
    }


def keda(values: str, namespace: str = NAMESPACE) -> Series:
    labels = {"namespace": "monitoring", "exported_namespace": namespace, "scaledObject": "sleepy-v1", "scaler": "s0"}
    return {series("keda_scaler_detail_errors_total", labels): values}


def capacity(number: int, resource: str = "nvidia_com_gpu") -> Series:
    return {series("kube_node_status_capacity", {"node": "gpu-0", "resource": resource}): f"{number}x60"}


def dcgm(metric: str, values: str, **more: str) -> Series:
    labels = {**_CARD, "modelName": "NVIDIA A100-SXM4-80GB", "device": "nvidia3", **more}
    return {series(f"DCGM_FI_DEV_{metric}", labels): values}


def used(percent: float, pod: str = "plain-v1-x", namespace: str = NAMESPACE) -> Series:
    return dcgm("GPU_UTIL", f"{percent}x480", pod=pod, namespace=namespace)


_CARD: Final = {"Hostname": "gpu-0", "gpu": "3", "UUID": "GPU-1"}
_OLD_HAMI: Final = series("Device_utilization_desc_of_container", {"podnamespace": NAMESPACE, "podname": "share-x"})
_IDLE: Final = "It uses 0% of it, and has stayed below 1 % for 6 hours."

PLATFORM_CASES: Final = (
    Case("Watchdog", "none", "", minute=0, fires={}, quiet={}),
    Case(
        "TargetDown",
        "warning",
        "",
        minute=60,
        fires=up(NAMESPACE, "0x60"),
        quiet={"it answers": up(NAMESPACE, "1x60"), "not ours": up("elsewhere", "0x60")},
        labels={"job": "a", "namespace": NAMESPACE, "instance": "10.0.0.1:8002"},
    ),
    Case(
        "MetricsApiUnavailable",
        "warning",
        "",
        minute=20,
        fires=api("v1beta1.external.metrics.k8s.io", "1x60"),
        quiet={
            "it answers": api("v1beta1.external.metrics.k8s.io", "0x60"),
            "nobody scales by it": api("v1beta1.packages.example.com", "1x60"),
        },
        labels={"name": "v1beta1.external.metrics.k8s.io"},
    ),
    Case(
        "AutoscalerWithoutMetrics",
        "warning",
        "",
        minute=120,
        fires=inactive(replicas=2),
        quiet={
            "it has metrics": inactive(replicas=2, failing=0),
            "it sleeps": inactive(replicas=0),
            "another condition": inactive(replicas=2, condition="ScalingLimited"),
        },
        labels={"namespace": NAMESPACE, "horizontalpodautoscaler": "plain-v1"},
    ),
    Case(
        "ScalerFailing",
        "warning",
        "",
        minute=30,
        fires=keda("0+1x60"),
        quiet={"errors of long ago": keda("7x60"), "not ours": keda("0+1x60", "elsewhere")},
        labels={"scaledObject": "sleepy-v1", "scaler": "s0"},
    ),
    Case(
        "GpuExporterMissing",
        "warning",
        "",
        minute=30,
        fires=capacity(4),
        quiet={
            "it reports": {**capacity(4), **dcgm("GPU_TEMP", "50x60")},
            "the cards are gone": capacity(0),
            "a node without GPUs": capacity(4, "cpu"),
        },
        labels={"node": "gpu-0"},
    ),
    Case(
        "GpuXidError",
        "critical",
        "",
        minute=60,
        since=5,
        fires=dcgm("XID_ERRORS", "0x4 79x60"),
        quiet={"no error": dcgm("XID_ERRORS", "0x60"), "a program's mistake": dcgm("XID_ERRORS", "0x4 31x60")},
        labels=_CARD,
        value="79",
    ),
    Case(
        "GpuXidError",
        "warning",
        "",
        minute=60,
        since=5,
        fires=dcgm("XID_ERRORS", "0x4 31x60"),
        quiet={"told an hour ago": dcgm("XID_ERRORS", "31x60"), "the card itself": dcgm("XID_ERRORS", "0x4 79x60")},
        labels=_CARD,
        value="31",
    ),
    Case(
        "GpuIdle",
        "info",
        "",
        minute=400,
        fires=used(0),
        quiet={
            "one percent": used(1),
            "nobody holds it": used(0, pod=""),
            "not ours": used(0, namespace="elsewhere"),
            "work now and then": dcgm("GPU_UTIL", "0x200 80x5 0x200", pod="plain-v1-x", namespace=NAMESPACE),
        },
        labels={"pod": "plain-v1-x"},
        says=_IDLE,
    ),
    Case(
        "GpuIdle",
        "info",
        "",
        minute=400,
        fires={_OLD_HAMI: "0x480"},
        quiet={"one percent": {_OLD_HAMI: "1x480"}},
        labels={"pod": "share-x", "podname": "share-x"},
        says=_IDLE,
    ),
)
