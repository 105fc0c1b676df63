"""Every query of every dashboard, evaluated by Prometheus itself over an estate whose values are worked out by hand.

The estate has five models of ten requests a second together and nine cards, one of every sharing mode and one idle.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from local.toolchain import ToolchainForTests
from spec.pool import GpuPoolSpec
from tests.components.conftest import POOLS
from tests.components.dashboarding import PanelQuery, queries
from tests.dataplane.alert_cases import series

NAMESPACE: Final = "serving"
QUERIES: Final = queries(pools=[GpuPoolSpec.model_validate(pool) for pool in POOLS])
MINUTES: Final = 20
Samples = Mapping[tuple[tuple[str, str], ...], float]


def steady(value: float) -> str:
    return f"{value}x{MINUTES}"


def growing(per_second: float) -> str:
    return f"0+{per_second * 60:g}x{MINUTES}"


def triton(
    model: str,
    revision: str,
    pod: str,
    rate: float,
    *,
    failed: float = 0,
    parts: tuple[float, ...] = (5, 1, 12, 2),
    batch: float = 4,
) -> Iterator[tuple[str, str]]:
    """Requests a second, failures, milliseconds of a request in queue, input, compute and output, inferences a run."""
    target = {"namespace": NAMESPACE, "pod": pod, "app_kubernetes_io_instance": model,
              "app_kubernetes_io_version": revision, "triton_estate_io_owner": "vision", "model": model}  # fmt: skip

    def one(metric: str, **more: str) -> str:
        return series(f"nv_inference_{metric}", {**target, **more})

    names = ("queue", "compute_input", "compute_infer", "compute_output")
    yield one("request_success"), growing(rate)
    yield one("request_failure", reason="BACKEND"), growing(failed)
    yield one("request_failure", reason="CANCELED"), growing(1)
    yield one("request_duration_us"), growing(rate * sum(parts) * 1000)
    yield from (
        (one(f"{name}_duration_us"), growing(rate * part * 1000)) for name, part in zip(names, parts, strict=True)
    )
    yield one("count"), growing(rate * batch)
    yield one("exec_count"), growing(rate)
    yield one("pending_request_count"), steady(3)


def limits(pod: str, phase: str = "Running", **resources: float) -> Iterator[tuple[str, str]]:
    labels = {"namespace": NAMESPACE, "pod": pod}
    yield series("kube_pod_status_phase", {**labels, "phase": phase}), steady(1)
    for resource, value in resources.items():
        limit = {**labels, "container": "triton", "resource": resource}
        yield series("kube_pod_container_resource_limits", limit), steady(value)


def card(index: int, use: float, pod: str = "") -> Iterator[tuple[str, str]]:
    holder = {"namespace": NAMESPACE, "pod": pod} if pod else {"namespace": "gpu-system", "pod": "dcgm-exporter-x"}
    labels = {"UUID": f"GPU-{index}", "gpu": str(index), "Hostname": f"node-{index % 2}", **holder}
    yield series("DCGM_FI_DEV_GPU_UTIL", labels), steady(use)
    yield from common(labels)


def common(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    values = {"DEV_GPU_TEMP": 50, "DEV_FB_USED": 1000, "DEV_FB_FREE": 3000, "DEV_POWER_USAGE": 200, "DEV_XID_ERRORS": 0,
              "PROF_SM_ACTIVE": 0.5, "PROF_PIPE_TENSOR_ACTIVE": 0.25}  # fmt: skip
    yield from ((series(f"DCGM_FI_{name}", labels), steady(value)) for name, value in values.items())


def mig_slice(instance: int, use: float, pod: str) -> Iterator[tuple[str, str]]:
    labels = {"UUID": "GPU-4", "gpu": "4", "Hostname": "node-0", "GPU_I_ID": str(instance), "GPU_I_PROFILE": "1g.10gb",
              "namespace": NAMESPACE, "pod": pod}  # fmt: skip
    yield series("DCGM_FI_PROF_GR_ENGINE_ACTIVE", labels), steady(use)
    yield from common(labels)


def autoscaler(name: str, desired: float) -> Iterator[tuple[str, str]]:
    hpa, kind = {"namespace": NAMESPACE, "horizontalpodautoscaler": name}, "kube_horizontalpodautoscaler"
    metric = {**hpa, "metric_name": "container_gpu_usage", "metric_target_type": "average"}
    yield series(f"{kind}_status_desired_replicas", hpa), steady(desired)
    yield series(f"{kind}_spec_min_replicas", hpa), steady(1)
    yield series(f"{kind}_spec_max_replicas", hpa), steady(4)
    yield series(f"{kind}_status_target_metric", metric), steady(0.35)
    yield series(f"{kind}_spec_target_metric", metric), steady(0.7)
    deployment = {"namespace": NAMESPACE, "deployment": name}
    yield series("kube_deployment_status_replicas_available", deployment), steady(desired)


def heartbeat(replica: str, up: float) -> Iterator[tuple[str, str]]:
    labels = {"namespace": NAMESPACE, "app_kubernetes_io_instance": "m", "app_kubernetes_io_version": "v1",
              "replica": replica}  # fmt: skip
    yield series("triton_heartbeat_up", labels), steady(up)
    yield series("triton_heartbeat_duration_seconds", labels), steady(0.02)


SERIES: Final = dict(
    [
        *triton("m", "v1", "m-v1-a", 3, failed=1),
        *triton("m", "v1", "m-v1-b", 3),
        *triton("m", "v2", "m-v2-a", 2, parts=(1, 1, 7, 1), batch=1),
        *triton("mig", "v1", "mig-v1-a", 1),
        *triton("hami", "v1", "hami-v1-a", 0.5),
        *triton("sliced", "v1", "sliced-v1-a", 0.25),
        *triton("qgpu", "v1", "qgpu-v1-a", 0.25),
        *limits("m-v1-a", nvidia_com_gpu=1),
        *limits("m-v1-b", nvidia_com_gpu=1),
        *limits("m-v2-a", nvidia_com_gpu=2),
        *limits("m-v1-gone", "Failed", nvidia_com_gpu=1),
        *limits("mig-v1-a", nvidia_com_mig_1g_10gb=2),
        *limits("hami-v1-a", nvidia_com_gpu=1, nvidia_com_gpucores=50),
        *limits("sliced-v1-a", nvidia_com_gpu_shared=1),
        *limits("qgpu-v1-a", tencent_com_vcuda_core=50),
        *card(0, 80, "m-v1-a"),
        *card(1, 40, "m-v1-b"),
        *card(2, 50, "m-v2-a"),
        *card(3, 30, "m-v2-a"),
        *mig_slice(1, 0.5, "mig-v1-a"),
        *mig_slice(2, 0.25, "mig-v1-a"),
        *card(5, 60, "hami-v1-a"),
        *card(6, 20, "sliced-v1-a"),
        *card(7, 10, "qgpu-v1-a"),
        *card(8, 0),
        (
            series(
                "hami_container_device_utilization_ratio",
                {"namespace": NAMESPACE, "pod": "hami-v1-a", "container": "triton", "deviceuuid": "GPU-5"},
            ),
            steady(30),
        ),
        *autoscaler("m-v1", 2),
        *autoscaler("m-v2", 1),
        *heartbeat("10.0.0.1", 1),
        *heartbeat("10.0.0.2", 0),
    ]
)

ASKED: Final = 1 + 1 + 2 + 2 / 7 + 0.5 + 0.25 + 0.5
WORK: Final = 0.8 + 0.4 + 0.5 + 0.3 + 0.75 / 7 + 0.6 + 0.2 + 0.1


def total(value: float) -> Samples:
    return {(): value}


def each(label: str, **values: float) -> Samples:
    return {((label, name.replace("_", "-")),): value for name, value in values.items()}


def service(**values: float) -> Samples:
    labels = (("app_kubernetes_io_instance", "{}"), ("namespace", NAMESPACE), ("triton_estate_io_owner", "vision"))
    return {tuple((key, one.format(name)) for key, one in labels): value for name, value in values.items()}


def pod(**values: float) -> Samples:
    return {(("namespace", NAMESPACE), ("pod", name.replace("_", "-"))): value for name, value in values.items()}


VERSION: Final = "app_kubernetes_io_version"
GPU_TARGET: Final = (("metric_name", "container_gpu_usage"), ("metric_target_type", "average"))
# By dashboard, panel and legend: what it has to show.
EXPECTED: Final[Mapping[tuple[str, str, str], Samples]] = {
    ("estate", "In the pools", "In the pools"): total(9),
    ("estate", "Asked for", "Asked for"): total(ASKED),
    ("estate", "At work", "At work"): total(WORK),
    ("estate", "Free", "Free"): total(9 - ASKED),
    ("estate", "Asked for and idle", "Asked for and idle"): total(ASKED - WORK),
    ("estate", "Worked out", "Worked out"): total(WORK / ASKED),
    ("estate", "To the busiest tenth", "To the busiest tenth"): total(0.8),
    ("estate", "Models by traffic", "Requests"): service(m=8, mig=1, hami=0.5, sliced=0.25, qgpu=0.25),
    ("estate", "Models by traffic", "Failed"): service(m=1 / 9, mig=0, hami=0, sliced=0, qgpu=0),
    ("estate", "Models by traffic", "Mean latency"): service(m=17.5, mig=20, hami=20, sliced=20, qgpu=20),
    ("estate", "Models by traffic", "Cards asked for"): service(m=4, mig=2 / 7, hami=0.5, sliced=0.25, qgpu=0.5),
    ("estate", "Models by traffic", "Cards at work"): service(m=2, mig=0.75 / 7, hami=0.3),
    ("estate", "Models by traffic", "Share of the cost"): service(
        m=4 / ASKED, mig=2 / 7 / ASKED, hami=0.5 / ASKED, sliced=0.25 / ASKED, qgpu=0.5 / ASKED
    ),
    ("model", "Requests", "{{model}}"): each("model", m=8),
    ("model", "Failed requests", "{{model}}"): each("model", m=1 / 9),
    ("model", "Where the time of a request goes", "queue"): total(4),
    ("model", "Where the time of a request goes", "compute"): total(10.75),
    ("model", "Latency", "{{model}}"): each("model", m=17.5),
    ("model", "Mean batch", "{{model}}"): each("model", m=3.25),
    ("model", "Pending requests", "{{pod}}"): each("pod", m_v1_a=3, m_v1_b=3, m_v2_a=3),
    ("model", "GPU use by pod", "{{pod}} cards"): pod(m_v1_a=0.8, m_v1_b=0.4, m_v2_a=0.4),
    ("model", "GPU memory by pod", "{{pod}}"): pod(m_v1_a=1000, m_v1_b=1000, m_v2_a=2000),
    ("model", "Cards asked for", "Cards asked for"): total(4),
    ("model", "Replicas", "{{deployment}} ready"): each("deployment", m_v1=2, m_v2=1),
    ("model", "Signals against their targets", "{{horizontalpodautoscaler}} {{metric_name}}"): {
        (("horizontalpodautoscaler", name), *GPU_TARGET): 0.5 for name in ("m-v1", "m-v2")
    },
    ("model", "Replicas that answer", "{{replica}}"): {(("replica", "10.0.0.1"),): 1, (("replica", "10.0.0.2"),): 0},
    ("gpu-nodes", "Nodes", "Nodes"): total(2),
    ("gpu-nodes", "Cards", "Cards"): total(9),
    ("gpu-nodes", "Power of all", "Power of all"): total(9 * 200),
    ("traffic", "Share of the requests", f"{{{{{VERSION}}}}}"): each(VERSION, v1=0.75, v2=0.25),
    ("traffic", "Failed requests", f"{{{{{VERSION}}}}}"): each(VERSION, v1=1 / 7, v2=0),
    ("traffic", "GPU use", f"{{{{{VERSION}}}}}"): each(VERSION, v1=0.6, v2=0.4),
    ("traffic", "Shadow's latency", "Shadow's latency"): total(0.5),
    ("traffic", "Shadow's compute", "Shadow's compute"): total(7 / 12),
    ("traffic", "Shadow's additional failures", "Shadow's additional failures"): total(-1 / 7),
    ("traffic", "Shadow's requests", "Shadow's requests"): total(2 / 6),
}  # fmt: skip
# Forms in which the chosen model has no GPU, and an exporter that this estate does not run.
SILENT: Final = {
    ("model", "GPU use by pod", "{{pod}} MIG"),
    ("model", "GPU use by pod", "{{pod}} HAMi"),
}


def key(query: PanelQuery) -> tuple[str, str, str]:
    return query.dashboard, query.panel, query.legend


def evaluate(promtool: Path, folder: Path, expr: str, samples: Samples) -> str:
    """What promtool says against an expression having these samples, nothing if it has."""
    expected = [
        {"labels": "{" + ", ".join(f'{name}="{value}"' for name, value in labels) + "}", "value": value}
        for labels, value in samples.items()
    ]
    test: dict[str, Any] = {
        "fuzzy_compare": True,
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in SERIES.items()],
                "promql_expr_test": [{"expr": expr, "eval_time": f"{MINUTES}m", "exp_samples": expected}],
            }
        ],
    }
    file = folder / "tests.yaml"
    file.write_text(json.dumps(test))
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("query", [query for query in QUERIES if key(query) in EXPECTED], ids=str)
def test_it_shows_what_is_worked_out_by_hand(
    query: PanelQuery, tools_for_tests: ToolchainForTests, tmp_path: Path
) -> None:
    assert evaluate(tools_for_tests.promtool, tmp_path, query.expr, EXPECTED[key(query)]) == ""


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_it_shows_something(query: PanelQuery, tools_for_tests: ToolchainForTests, tmp_path: Path) -> None:
    some = {} if key(query) in SILENT else total(1)
    assert evaluate(tools_for_tests.promtool, tmp_path, f"group({query.expr})", some) == ""


def test_every_value_worked_out_is_that_of_a_query() -> None:
    assert set(EXPECTED) | SILENT <= {key(query) for query in QUERIES}
