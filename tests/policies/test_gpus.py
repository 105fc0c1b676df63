"""Policies about GPUs: what estates of the corpus do not show well."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.gpu import node_pool
from policies import gpus
from policies.judging.judge import Judge, Outcome, Verdict
from policies.judging.levels import Level
from policies.judging.policy import Policy
from policies.judging.settings import StackPolicies
from policies.judging.unknown import UNKNOWN, plain
from policies.judging.view import Resource, View
from policies.reading.cards import cards, quantity, whole_cards
from policies.reading.cards import gpus as cards_by_pool
from policies.reading.nodes import may_share_a_node, node_terms, pool_labels
from policies.reading.rollouts import Rollout
from spec import gpu, names
from spec.estate import EstateSpec
from spec.pool import GpuPoolSpec
from tests.components.conftest import run

A100: dict[str, Any] = {
    "name": "a100", "provider": "existing", "nodes": 2, "gpusPerNode": 2, "gpuModel": "A100", "gpuMemory": "80Gi",
}  # fmt: skip
POOLS: dict[str, dict[str, Any]] = {
    "whole": A100,
    "mig": A100 | {"sharing": "mig", "migProfile": "1g.10gb"},
    "timeSlicing": A100 | {"sharing": "timeSlicing", "slices": 4},
    "hami": A100 | {"sharing": "hami"},
    "qgpu": A100 | {"sharing": "qgpu"},
}
EVENING = {"from": "0 18 * * *", "to": "0 23 * * *", "replicas": 1}
ON_A100: dict[str, Any] = {
    "nodeSelector": {names.POOL_LABEL: "a100"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}],
}


def view(*resources: Resource, pools: tuple[dict[str, Any], ...] = (A100,), prod: bool = True, **policies: Any) -> View:
    settings = {
        "environment": "prod" if prod else "dev",
        "cluster": {"provider": "existing"},
        "gpuPools": list(pools),
    }
    spec = EstateSpec.model_validate(settings)
    return View("test", spec, StackPolicies.model_validate(policies), resources)


def judged(policy: Policy, found: View) -> list[Verdict]:
    judge = Judge([policy], found)
    each = [verdict for one in found.resources for verdict in judge.judge_object(one)]
    return [*each, *judge.judge_estate(found.resources)]


def said(policy: Policy, found: View) -> list[str]:
    return [verdict.message for verdict in judged(policy, found)]


def gpu_container(amount: Any = "1", name: str = "nvidia.com/gpu") -> dict[str, Any]:
    return {"name": "triton", "resources": {"limits": {name: amount}}}


def workload(kind: str = "Deployment", pod: Mapping[str, Any] | None = None, **spec: Any) -> Resource:
    pod = dict(ON_A100 | {"containers": [gpu_container()]} if pod is None else pod)
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod}
    inputs = {"spec": pod} if kind == "Pod" else {"spec": {"template": template} | spec}
    if kind == "CronJob":
        inputs = {"spec": {"jobTemplate": {"spec": {"template": template} | spec}}}
    metadata = {"name": "x", "namespace": "serving", "labels": {names.OWNER_LABEL: "vision"}}
    return Resource(f"kubernetes:apps/v1:{kind}", "x", {"metadata": metadata} | inputs)


def scaler(kind: str, **spec: Any) -> Resource:
    metadata = {"name": "x", "namespace": "serving"}
    inputs = {"metadata": metadata, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "x"}} | spec}
    return Resource(f"kubernetes:x/v1:{kind}", f"x-{kind}", inputs)


# --- cards


@pytest.mark.parametrize(
    ("written", "number"),
    [("1", 1), (2, 2), ("500m", 0.5), ("0.5", 0.5), ("1k", 1000), ("1Ki", 1024), ("2e3", 2000), ("1E", 10**18),
     ("-1", -1), ("one", None), ("", None), (True, None), ("1 Gi", None), ("1Gb", None)],
)  # fmt: skip
def test_quantities_are_read_as_kubernetes_writes_them(written: Any, number: float | None) -> None:
    found = quantity(written)
    assert found is None if number is None else float(found or 0) == number


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, gpu.GpuRequest]:
    """A mode and a request that it can serve."""
    mode = draw(st.sampled_from(list(POOLS)))
    count = draw(st.integers(1, 16))
    match mode:
        case "whole":
            return mode, gpu.GpuRequest(count=count)
        case "mig":
            return mode, gpu.GpuRequest(count=count, mig=draw(st.sampled_from(["1g.10gb", "2g.20gb", "7g.80gb"])))
        case "timeSlicing":
            return mode, gpu.GpuRequest(fraction=0.25)
    cores = draw(st.none() | st.integers(1, 100)) if mode == "hami" else draw(st.none() | st.integers(1, 99))
    if mode == "qgpu" and cores:
        count = 1
    memory = draw(st.none() | st.sampled_from(["1Gi", "8Gi"]))
    fraction = draw(st.none() | st.integers(1, 99))
    return mode, gpu.GpuRequest(fraction=fraction / 100) if fraction else gpu.GpuRequest(
        count=count, cores=cores, memory=memory
    )


@given(requests())
def test_cards_of_resources_are_those_of_the_request_they_came_from(drawn: tuple[str, gpu.GpuRequest]) -> None:
    mode, request = drawn
    pool = GpuPoolSpec.model_validate(POOLS[mode])
    limits = gpu.limits(request, pool.sharing, pool.slices or 1)
    held = {name: amount for name, value in limits.items() if (amount := quantity(value)) is not None}
    assert cards(held, pool) == pytest.approx(request.cards)
    assert whole_cards(held, pool) >= request.cards - 1e-9


def test_cards_are_those_of_the_outputs_of_the_stack(tmp_path: Path) -> None:
    """Every mode; autoscaled, fixed, from zero, several revisions, a debug twin."""
    models: dict[str, dict[str, Any]] = {
        "whole": {
            "resources": {"gpu": 2},
            "revisions": {"v1": {}, "v2": {}},
            "traffic": {"split": {"v1": 100, "v2": 0}},
            "scaling": {"min": 1, "max": 3},
        },
        "mig": {"resources": {"gpu": {"mig": "1g.10gb"}}, "scaling": {"min": 2, "max": 9}},
        "slice": {"resources": {"gpu": 0.25}, "scaling": {"min": 3, "max": 3}},
        "share": {"resources": {"gpu": {"memory": "4Gi", "cores": 30}}, "scaling": {"min": 1, "max": 4, "qps": 5}},
        "third": {"resources": {"gpu": 0.33}, "pool": "hami", "scaling": {"min": 0, "max": 4, "schedule": [EVENING]}},
        "tencent": {"resources": {"gpu": 0.5}, "pool": "qgpu", "debug": {"lifetime": "8h"}},
    }
    (tmp_path / "models").mkdir()
    for name, fields in models.items():
        model = {"name": name, "owner": "vision", "repository": f"s3://acme/{name}", **fields}
        model["resources"] = {"cpu": 1, "memory": "2Gi"} | model["resources"]
        (tmp_path / "models" / f"{name}.yaml").write_text(yaml.safe_dump(model))
    pools = tuple(pool | {"name": mode.lower()} for mode, pool in POOLS.items())
    settings = {
        "environment": "dev",
        "cluster": {"provider": "existing"},
        "gpuPools": list(pools),
        "monitoring": {"prometheus": {"provider": "managed"}},
        "autoscaler": {"backend": "keda", "provider": "managed"},
    }
    rendered = run(tmp_path, settings)
    resources = [Resource(kind, name, plain(inputs)) for (kind, name), inputs in rendered.resources.items()]
    expected = {
        name: (pool["gpusAskedAtLeast"], pool["gpusAskedAtMost"], pool["gpus"])
        for name, pool in rendered.outputs["gpuPools"].items()
    }
    found = {one.pool: (one.low, one.high, one.there) for one in cards_by_pool(view(*resources, pools=pools))}
    assert found == expected
    assert all(high > 0 for _, high, _ in found.values())


@pytest.mark.parametrize(
    ("resources", "low", "high"),
    [
        ([workload(replicas=3)], 3, 3),
        ([workload()], 1, 1),
        ([workload("StatefulSet", replicas=2)], 2, 2),
        ([workload("Pod")], 1, 1),
        ([workload("Job", parallelism=4)], 0, 4),
        ([workload("CronJob", parallelism=2)], 0, 2),
        ([workload("DaemonSet")], 2, 2),
        ([workload(replicas=9), scaler("HorizontalPodAutoscaler", minReplicas=2, maxReplicas=5)], 2, 5),
        ([workload(), scaler("HorizontalPodAutoscaler", maxReplicas=5)], 1, 5),
        ([workload(), scaler("ScaledObject")], 0, 100),
        ([workload(pod=ON_A100 | {"initContainers": [gpu_container("2")], "containers": [gpu_container()]})], 2, 2),
        ([workload(pod=ON_A100 | {"containers": [gpu_container(), gpu_container()]})], 2, 2),
        ([workload(pod=ON_A100 | {"containers": [{"name": "triton"}]})], 0, 0),
    ],
)
def test_what_counts_how_often(resources: list[Resource], low: float, high: float) -> None:
    (found,) = cards_by_pool(view(*resources))
    assert (found.low, found.high, found.there) == (low, high, 4)


# --- budgets


@pytest.mark.parametrize(("most", "broken"), [(4, False), (5, True)])
def test_the_pool_budget_begins_above_the_cards_of_the_pool(most: int, broken: bool) -> None:
    found = view(workload(), scaler("HorizontalPodAutoscaler", maxReplicas=most))
    expected = ["pool a100 has 4 cards, and the most replicas ask for 5: x 5"] if broken else []
    assert said(gpus.gpu_pool_budget, found) == expected


def test_slices_of_a_card_are_added_up_without_rounding() -> None:
    """28 slices of a seventh are four cards, however a computer adds them."""
    pod = ON_A100 | {"containers": [gpu_container(name="nvidia.com/mig-1g.10gb")]}
    assert said(gpus.gpu_pool_budget, view(workload(pod=pod, replicas=28), pools=(POOLS["mig"],))) == []
    assert said(gpus.gpu_pool_budget, view(workload(pod=pod, replicas=29), pools=(POOLS["mig"],))) != []


def test_a_waiver_of_a_budget_is_for_its_pool() -> None:
    pool = Resource("triton-estate:gpu:GpuNodePool", "a100", {})
    (verdict,) = judged(gpus.gpu_pool_budget, view(pool, workload(replicas=5)))
    assert verdict.where == "triton-estate:gpu:GpuNodePool/a100"


def test_an_unknown_number_of_replicas_is_no_small_one() -> None:
    (verdict,) = judged(gpus.gpu_pool_budget, view(workload(replicas=UNKNOWN)))
    assert (verdict.outcome, verdict.level) == (Outcome.UNDECIDED, Level.MANDATORY)
    assert "replicas" in verdict.message
    (verdict,) = judged(gpus.gpu_pool_budget, view(workload(replicas=UNKNOWN), prod=False))
    assert (verdict.outcome, verdict.level) == (Outcome.UNDECIDED, Level.ADVISORY)


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        ({}, []),
        ({"vision": 3}, []),
        ({"search": 0}, []),
        ({"vision": 2.5}, ["vision may hold 2.5 cards, and the most replicas of its models ask for 3: x 3"]),
    ],
)
def test_an_owner_is_limited_by_a_budget_only(budgets: dict[str, float], expected: list[str]) -> None:
    assert said(gpus.gpu_owner_budget, view(workload(replicas=3), gpuBudgets=budgets)) == expected


def test_only_the_largest_are_named() -> None:
    many = [Resource("kubernetes:apps/v1:Deployment", f"m{n}", workload(replicas=n).inputs) for n in range(1, 9)]
    many = [Resource(one.type, one.name, {**one.inputs, "metadata": {"name": one.name}}) for one in many]
    (message,) = said(gpus.gpu_pool_budget, view(*many))
    assert message.endswith("ask for 36: m8 8, m7 7, m6 6, m5 5, m4 4 and 3 more")


# --- rollouts


@pytest.mark.parametrize(
    ("strategy", "replicas", "waits"),
    [
        ({}, 1, True), ({}, 3, True), ({}, 4, False),
        ({"type": "Recreate"}, 1, False),
        ({"rollingUpdate": None}, 1, True),
        ({"rollingUpdate": {"maxSurge": 0}}, 1, False),  # both 0: Kubernetes takes one away
        ({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}, 1, False),
        ({"rollingUpdate": {"maxSurge": "1%", "maxUnavailable": "99%"}}, 1, True),
        ({"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": "100%"}}, 1, False),
        ({"rollingUpdate": {"maxUnavailable": 0}}, 100, True),
        ({"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": 0}}, 3, False),
    ],
)  # fmt: skip
def test_shares_round_as_kubernetes_rounds_them(strategy: dict[str, Any], replicas: int, waits: bool) -> None:
    rollout = Rollout.of(workload(strategy=strategy), replicas)
    assert (rollout is not None and rollout.waits) == waits


@pytest.mark.parametrize(
    ("resources", "spare", "broken"),
    [
        ([workload(replicas=1)], 0, True),
        ([workload(replicas=1)], 1, False),
        ([workload(replicas=0)], 0, False),
        ([workload(), scaler("HorizontalPodAutoscaler", minReplicas=4, maxReplicas=9)], 0, False),
        ([workload(), scaler("ScaledObject", minReplicaCount=0, maxReplicaCount=9)], 0, True),
        ([workload(pod={"containers": [{"name": "web"}]})], 0, False),
        ([workload("StatefulSet")], 0, False),
        # Nobody keeps cards free in a pool that nobody knows.
        ([workload(pod={"containers": [gpu_container()]})], 3, True),
    ],
)
def test_a_rollout_may_wait_for_a_card_that_is_kept_free(resources: list[Resource], spare: int, broken: bool) -> None:
    assert bool(said(gpus.gpu_rollout_deadlock, view(*resources, pools=(A100 | {"spareGpus": spare},)))) == broken


def test_an_unknown_strategy_hides_no_other_deployment() -> None:
    unknown = workload(strategy=UNKNOWN)
    known = Resource("kubernetes:apps/v1:Deployment", "y", {**workload().inputs, "metadata": {"name": "y"}})
    verdicts = judged(gpus.gpu_rollout_deadlock, view(unknown, known))
    assert [(one.outcome, one.where) for one in verdicts] == [
        (Outcome.VIOLATED, "Deployment/y"),
        (Outcome.UNDECIDED, "stack"),
    ]


# --- limits


def test_every_mistake_of_limits_is_said_at_once() -> None:
    resources = {
        "limits": {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "50.5", "nvidia.com/gpumem": "-1"},
        "requests": {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": "1", "cpu": "0.5"},
    }
    found = workload(pod={"containers": [{"name": "triton", "resources": resources}]})
    assert said(gpus.gpu_not_in_limits, view(found)) == [
        "container triton asks for nvidia.com/gpucores: 50.5, which is no whole number",
        "container triton asks for nvidia.com/gpumem: -1, which is no whole number",
        "container triton requests nvidia.com/gpu: 2 and has a limit of 1",
        "container triton requests nvidia.com/mig-1g.10gb: 1 and has no limit of it",
    ]


@pytest.mark.parametrize(
    "resources",
    [
        None,
        {},
        {"limits": None, "requests": None},
        {"limits": {"nvidia.com/gpu": 1}},
        {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": 1}},
        {"limits": {"nvidia.com/gpu": "0"}},
        {"limits": {"cpu": "0.5"}, "requests": {"cpu": "0.25"}},
    ],
)
def test_absent_and_equal_amounts_are_fine(resources: Any) -> None:
    found = workload("Pod", pod={"containers": [{"name": "triton", "resources": resources}]})
    assert said(gpus.gpu_not_in_limits, view(found)) == []


def test_an_unknown_amount_is_undecided() -> None:
    found = workload(pod={"containers": [gpu_container(UNKNOWN)]})
    assert [one.outcome for one in judged(gpus.gpu_not_in_limits, view(found))] == [Outcome.UNDECIDED]


# --- pools


@pytest.mark.parametrize(
    ("tolerations", "fine"),
    [
        ([{"operator": "Exists"}], True),
        ([{"key": "nvidia.com/gpu", "operator": "Exists"}], True),
        ([{"key": "nvidia.com/gpu", "value": "present"}], True),
        ([{"key": "a", "operator": "Exists"}, {"key": "nvidia.com/gpu", "value": "present"}], True),
        ([{"key": "nvidia.com/gpu", "value": "present", "effect": "NoExecute"}], False),
        ([{"key": "nvidia.com/gpu", "value": "absent"}], False),
        ([{"key": "nvidia.com/gpu"}], False),
        ([], False),
        (None, False),
    ],
)
def test_tolerations_are_matched_as_the_scheduler_does(tolerations: Any, fine: bool) -> None:
    found = workload(pod=ON_A100 | {"tolerations": tolerations, "containers": [gpu_container()]})
    assert (said(gpus.gpu_without_pool, view(found)) == []) == fine


def test_every_pool_that_pods_may_land_on_is_tolerated() -> None:
    other = A100 | {"name": "b200", "taint": "b200=true:NoSchedule"}
    wanted = [{"key": names.POOL_LABEL, "operator": "In", "values": ["a100", "b200"]}]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}
    pod = {
        "affinity": {"nodeAffinity": affinity},
        "tolerations": ON_A100["tolerations"],
        "containers": [gpu_container()],
    }
    assert said(gpus.gpu_without_pool, view(workload(pod=pod), pools=(A100, other))) == [
        "chooses pool b200 and does not tolerate its taint b200=true:NoSchedule"
    ]


def test_a_stack_without_pools_has_no_place_for_a_gpu() -> None:
    assert said(gpus.gpu_without_pool, view(workload(), pools=())) == [
        "asks for nvidia.com/gpu and chooses no GPU pool of the stack; pools: none"
    ]


def test_a_preference_for_a_pool_is_no_choice() -> None:
    rule = {"key": names.POOL_LABEL, "operator": "In", "values": ["a100"]}
    preferred = [{"weight": 1, "preference": {"matchExpressions": [rule]}}]
    pod = {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        "tolerations": ON_A100["tolerations"],
        "containers": [gpu_container()],
    }
    assert said(gpus.gpu_without_pool, view(workload(pod=pod))) != []


@pytest.mark.parametrize("mode", POOLS)
def test_pools_are_known_by_labels_that_their_nodes_have(mode: str) -> None:
    pool = GpuPoolSpec.model_validate(POOLS[mode])
    assert pool_labels(pool).items() <= node_pool.node_labels(pool).items()


# --- sharing


def terms(selector: dict[str, str] | None = None, *alternatives: list[dict[str, Any]]) -> Any:
    found = {"nodeSelectorTerms": [{"matchExpressions": one} for one in alternatives]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": found}} if alternatives else None
    return node_terms({"nodeSelector": selector, "affinity": affinity})


def rule(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (terms(), terms(), True),
        (terms({"gpu": "on"}), terms(), True),
        (terms({"gpu": "on"}), terms({"pool": "a"}), True),
        (terms({"gpu": "on"}), terms({"gpu": "off"}), False),
        (terms({"gpu": "on"}), terms(None, [rule("gpu", "NotIn", "on")]), False),
        (terms({"gpu": "on"}), terms(None, [rule("gpu", "DoesNotExist")]), False),
        (terms(None, [rule("gpu", "Exists")]), terms(None, [rule("gpu", "DoesNotExist")]), False),
        (terms(None, [rule("gpu", "Exists")]), terms(None, [rule("gpu", "NotIn", "on")]), True),
        (terms(None, [rule("gpu", "In", "a", "b")]), terms(None, [rule("gpu", "In", "b", "c")]), True),
        (terms(None, [rule("gpu", "In", "a", "b")]), terms(None, [rule("gpu", "NotIn", "b", "a")]), False),
        (terms({"gpu": "on"}), terms(None, [rule("gpu", "NotIn", "on")], [rule("pool", "Exists")]), True),
        (terms({"gpu": "on"}), terms({"gpu": "off"}, [rule("pool", "Exists")]), False),
        (terms(None, [rule("cores", "Gt", "4")]), terms(None, [rule("cores", "Lt", "4")]), True),  # not looked into
    ],
)
def test_selectors_that_exclude_each_other_share_no_node(one: Any, other: Any, shared: bool) -> None:
    assert may_share_a_node(one, other) == shared
    assert may_share_a_node(other, one) == shared


def chart(name: str, **values: Any) -> Resource:
    return Resource("kubernetes:helm.sh/v3:Release", name.rpartition("/")[2], {"chart": name, "values": values})


FAIL = {"scheduler": {"admissionWebhook": {"failurePolicy": "Fail"}}}


@pytest.mark.parametrize(
    ("resources", "conflict"),
    [
        ([chart("hami", **FAIL), chart("nvidia-device-plugin")], True),
        ([chart("oci://example.com/charts/hami", **FAIL), chart("./nvidia-device-plugin-0.17.1.tgz")], True),
        ([chart("hami", **FAIL), chart("nvidia-device-plugin", nodeSelector={"gpu": "off"})], False),
        ([chart("hami", **FAIL), chart("nvidia-device-plugin", devicePlugin={"enabled": False})], False),
        ([chart("hami", **FAIL, devicePlugin={"enabled": False}), chart("nvidia-device-plugin")], False),
        (
            [
                chart("hami", **FAIL, devicePlugin={"nvidiaNodeSelector": {"gpu": None, "share": "yes"}}),
                chart("nvidia-device-plugin", nodeSelector={"gpu": "off"}),
            ],
            True,
        ),
        ([chart("nvidia-device-plugin")], False),
        ([chart("hami", **FAIL)], False),
        ([chart("hami-webui"), chart("nvidia-device-plugin")], False),
    ],
)
def test_charts_are_known_by_their_names(resources: list[Resource], conflict: bool) -> None:
    assert bool(said(gpus.gpu_sharing_conflict, view(*resources))) == conflict


@pytest.mark.parametrize(
    ("image", "command", "conflict"),
    [
        ("docker.io/projecthami/hami:v2.7.0", ["nvidia-device-plugin"], True),
        ("docker.io/projecthami/hami:v2.7.0", ["vGPUmonitor"], False),
        ("docker.io/projecthami/hami-webui:v1", ["nvidia-device-plugin"], False),
    ],
)
def test_plugins_are_known_by_image_and_command(image: str, command: list[str], conflict: bool) -> None:
    nvidia = workload(
        "DaemonSet", pod={"containers": [{"name": "p", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17"}]}
    )
    hami = workload("DaemonSet", pod={"containers": [{"name": "p", "image": image, "command": command}]})
    assert bool(said(gpus.gpu_sharing_conflict, view(nvidia, hami))) == conflict


def test_a_pool_of_hami_counts_whoever_installs_hami() -> None:
    pod = ON_A100 | {"containers": [{"name": "p", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17"}]}
    assert said(gpus.gpu_sharing_conflict, view(workload("DaemonSet", pod=pod), pools=(POOLS["hami"],))) == [
        "NVIDIA's device plugin may run on the same nodes as HAMi on pool a100"
    ]


@pytest.mark.parametrize(("webhook", "broken"), [({}, False), ({"failurePolicy": "Ignore"}, True)])
def test_kubernetes_own_failure_policy_is_fail(webhook: dict[str, str], broken: bool) -> None:
    inputs = {"metadata": {"name": "x"}, "webhooks": [{"name": "vgpu.hami.io"} | webhook]}
    found = Resource("kubernetes:admissionregistration.k8s.io/v1:MutatingWebhookConfiguration", "x", inputs)
    assert bool(said(gpus.gpu_sharing_conflict, view(found))) == broken


@pytest.mark.parametrize(
    ("mode", "scheduler", "broken"),
    [
        ("hami", "volcano", True),
        ("hami", "default-scheduler", False),
        ("hami", None, False),
        ("whole", "volcano", False),
    ],
)
def test_other_schedulers_matter_on_pools_of_hami(mode: str, scheduler: str | None, broken: bool) -> None:
    pod = ON_A100 | {"containers": [gpu_container()], "schedulerName": scheduler}
    assert bool(said(gpus.gpu_sharing_conflict, view(workload(pod=pod), pools=(POOLS[mode],)))) == broken


# --- hosts and memory


def host_pod(namespace: str, kind: str) -> Resource:
    pod = {
        "hostNetwork": True, "hostPID": True, "hostIPC": True,
        "containers": [{"name": "a", "securityContext": {"privileged": True}}, {"name": "b", "securityContext": None}],
        "initContainers": [{"name": "c", "securityContext": {"privileged": True}}],
        "volumes": [{"name": "d", "hostPath": {"path": "/dev"}}, {"name": "e", "emptyDir": {}}],
    }  # fmt: skip
    found = workload(kind, pod=pod)
    return Resource(found.type, "x", {**found.inputs, "metadata": {"name": "x", "namespace": namespace}})


def test_every_way_into_the_node_is_said_at_once() -> None:
    assert said(gpus.host_access, view(host_pod("serving", "Deployment"))) == [
        "container c is privileged", "container a is privileged", "volume d is /dev of the node",
        "hostPID is true", "hostNetwork is true", "hostIPC is true",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("namespace", "kind", "fine"),
    [("gpu-system", "DaemonSet", True), ("gpu-system", "Deployment", False), ("kube-system", "DaemonSet", False)],
)
def test_only_daemon_sets_of_the_gpu_namespace_reach_into_the_node(namespace: str, kind: str, fine: bool) -> None:
    assert (said(gpus.host_access, view(host_pod(namespace, kind))) == []) == fine


@pytest.mark.parametrize(
    ("prod", "scaling", "expected"),
    [
        (True, 1.5, [("memoryScaling 1.5 hands out 120Gi of a card of 80Gi", Level.ADVISORY)]),
        (True, 1, []),
        (False, 1.5, []),
    ],
)
def test_too_much_memory_is_a_word_in_production(prod: bool, scaling: float, expected: list[Any]) -> None:
    found = view(pools=(POOLS["hami"] | {"memoryScaling": scaling},), prod=prod)
    judge = Judge([gpus.gpu_memory_overcommit], found)
    assert [(one.message, one.level) for one in judge.judge_estate(())] == expected
