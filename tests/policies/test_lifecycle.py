"""The life of a pod: what files of the corpus do not show."""

from typing import Any

import pytest

from policies import lifecycle
from policies.judging.judge import Outcome
from policies.judging.unknown import SEALED, UNKNOWN, CannotDecide
from policies.judging.view import Resource
from policies.reading import probes, triton
from policies.reading.images import branch_of
from policies.reading.replicas import share
from policies.reading.shutdown import broken_hook, wait_seconds
from tests.policies.conftest import case
from tests.policies.judging import deployment, made, messages, outcomes

LIVE = {"httpGet": {"path": "/v2/health/live", "port": 8000}}
READY = {"httpGet": {"path": "/v2/health/ready", "port": 8000}}
POLL = "--model-control-mode=poll"


def hook(*command: object) -> dict[str, Any]:
    return {"name": "server", "lifecycle": {"preStop": {"exec": {"command": list(command)}}}}


def budget(**spec: object) -> Resource:
    return made("policy/v1", "PodDisruptionBudget", "budget", {"selector": {"matchLabels": {"app": "triton"}}, **spec})


def scaled(kind: str, **spec: object) -> Resource:
    api = "autoscaling/v2" if kind == "HorizontalPodAutoscaler" else "keda.sh/v1alpha1"
    target = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "triton"}}
    return made(api, kind, "triton", {**target, **spec})


class TestWhoRunsTriton:
    @pytest.mark.parametrize(
        "container",
        [
            {"image": "nvcr.io/nvidia/tritonserver:25.08-py3"},
            {"image": "mirror:5000/a/tritonserver:25.08-py3", "args": ["--model-repository=/models"]},
            {"image": "acme/serving:1", "args": ["tritonserver", "--id=a"]},
            {"image": "acme/serving:1", "command": ["/opt/tritonserver/bin/tritonserver"]},
            {"image": "acme/serving:1", "command": ["sh", "-c"], "args": ["ulimit -l unlimited; tritonserver --id=a"]},
            {"image": UNKNOWN, "command": ["tritonserver"]},
        ],
    )
    def test_what_starts_it_does(self, container: dict[str, Any]) -> None:
        assert triton.is_server(container)

    @pytest.mark.parametrize(
        "container",
        [
            {},
            {"image": "acme/serving:1"},
            {"image": "nvcr.io/nvidia/tritonserver:25.08-py3", "command": ["sleep", "infinity"]},
            {"image": "nvcr.io/nvidia/tritonserver:25.08-py3-sdk"},
            {
                "image": "nvcr.io/nvidia/tritonserver:25.08-py3-sdk",
                "command": ["perf_analyzer", "-m", "tritonserver-a"],
            },
            {"image": "acme/tritonserver-exporter:1"},
        ],
    )
    def test_what_only_has_its_name_does_not(self, container: dict[str, Any]) -> None:
        assert not triton.is_server(container)

    @pytest.mark.parametrize("container", [{"image": UNKNOWN}, {"command": [UNKNOWN]}, {"args": SEALED}])
    def test_what_is_unknown_may(self, container: dict[str, Any]) -> None:
        with pytest.raises(CannotDecide):
            triton.is_server(container)


class TestOptions:
    @pytest.mark.parametrize(
        ("args", "mode"),
        [
            (["--model-control-mode=poll"], "poll"),
            (["--model-control-mode", "poll"], "poll"),
            (["tritonserver --id=a --model-control-mode poll; true"], "poll"),
            (["--model-control-mode=none", "--model-control-mode=poll"], "poll"),
            (["--model-control-mode-else=poll"], None),
            (["tritonserver 'unclosed --model-control-mode=none"], "none"),
            ([], None),
        ],
    )
    def test_they_are_read_as_triton_reads_them(self, args: list[str], mode: str | None) -> None:
        assert triton.option({"args": args}, "model-control-mode") == mode

    def test_the_value_of_a_variable_is_not_known(self) -> None:
        with pytest.raises(CannotDecide, match="exit-timeout-secs"):
            triton.exit_timeout({"args": ["--exit-timeout-secs=$(TIMEOUT)"]})

    @pytest.mark.parametrize(("value", "number"), [("0", 0), ("2", 2), ("true", 1), ("FALSE", 0), ("much", 7)])
    def test_numbers_may_be_words(self, value: str, number: int) -> None:
        assert triton.number({"args": [f"--log-verbose={value}"]}, "log-verbose", 7) == number


class TestProbes:
    def test_a_server_of_others_without_a_startup_probe_is_killed_while_it_loads(self) -> None:
        (message,) = messages(lifecycle.startup_budget, deployment({"livenessProbe": LIVE}))
        assert (
            message
            == "container server has no startup probe, and liveness kills it after 30 s of 300 s, the usual load time"
        )

    @pytest.mark.parametrize(
        "container",
        [
            {},
            {"readinessProbe": READY},
            {"livenessProbe": {**LIVE, "initialDelaySeconds": 270}},
            {"livenessProbe": {**LIVE, "periodSeconds": 30, "failureThreshold": 10}},
            {"livenessProbe": LIVE, "startupProbe": READY},
            {"livenessProbe": LIVE, "image": "acme/other:1"},
        ],
    )
    def test_what_leaves_it_time_is_good(self, container: dict[str, Any]) -> None:
        assert messages(lifecycle.startup_budget, deployment(container)) == []

    @pytest.mark.parametrize(("failures", "found"), [(29, 1), (30, 0)])
    def test_the_budget_may_be_the_load_time_itself(self, failures: int, found: int) -> None:
        ours = deployment({"startupProbe": {**READY, "failureThreshold": failures}})
        ours.inputs["spec"]["progressDeadlineSeconds"] = 900
        assert messages(lifecycle.startup_budget, ours) == []
        ours.inputs["metadata"]["labels"] = {"app.kubernetes.io/part-of": "triton-estate"}
        assert len(messages(lifecycle.startup_budget, ours)) == found

    @pytest.mark.parametrize("seconds", [300, 720])
    def test_the_load_time_is_read_as_our_component_writes_it(self, seconds: int) -> None:
        found = case({"models": {"gamma": {"loadTime": f"{seconds}s"}}}).resources
        (ours,) = [one for one in found if one.key == "Deployment/gamma-v1"]
        assert probes.declared_load(ours) == seconds

    @pytest.mark.parametrize(
        "path", ["/v2/health/ready", "/v2/models/a/versions/1/ready", "/-/ready", "/readyz?verbose"]
    )
    def test_liveness_does_not_ask_for_readiness_in_any_container(self, path: str) -> None:
        other = {"image": "acme/other:1", "livenessProbe": {"httpGet": {"path": path, "port": 80}}}
        assert messages(lifecycle.liveness_on_readiness, deployment(other)) == [
            f"liveness of container server asks for {path}"
        ]

    @pytest.mark.parametrize("path", ["/v2/health/live", "/already", "/ready-to-rumble", "/healthz"])
    def test_other_paths_are_none_of_its_business(self, path: str) -> None:
        probe = {"httpGet": {"path": path, "port": 80}}
        other = {"image": "acme/other:1", "livenessProbe": probe, "readinessProbe": probe}
        assert messages(lifecycle.liveness_on_readiness, deployment(other)) == []

    def test_a_socket_that_answers_twice_says_the_same_twice(self) -> None:
        probe = {"tcpSocket": {"port": 8000}}
        found = deployment({"livenessProbe": {**probe, "periodSeconds": 5}, "readinessProbe": probe})
        assert messages(lifecycle.liveness_on_readiness, found) == [
            "liveness and readiness of container server ask the same: tcpSocket"
        ]


class TestEnd:
    @pytest.mark.parametrize(
        ("command", "seconds"),
        [
            (["sleep", "15"], 15),
            (["/bin/sleep", "1m", "5"], 65),
            (["sh", "-c", "touch /tmp/a; sleep 10 && sleep 0.5"], 10.5),
            (["bash", "-ec", 'sleep "20"'], 20),
            (["/bin/sh", "-c", "kill -TERM 1"], 0),
            (["sh", "-c", "touch", "a;", "sleep 60"], 0),
            (["sh", "drain.sh"], 0),
            ([], 0),
        ],
    )
    def test_a_hook_waits_for_what_it_really_sleeps(self, command: list[str], seconds: float) -> None:
        assert wait_seconds(hook(*command)) == seconds

    @pytest.mark.parametrize(
        "container", [hook("sh", "-c", "sleep $DRAIN"), hook("sleep", UNKNOWN), {"lifecycle": UNKNOWN}]
    )
    def test_a_wait_that_is_not_known_is_not_guessed(self, container: dict[str, Any]) -> None:
        with pytest.raises(CannotDecide):
            wait_seconds(container)

    @pytest.mark.parametrize(
        "command",
        [["sh", "-c", "touch", "a;", "sleep 60"], ["/bin/bash", "-xc", "sleep", "60"], ["sleep 5"],
         ["touch", "a", "&&", "sleep", "5"]],
    )  # fmt: skip
    def test_a_command_that_cannot_work_is_found(self, command: list[str]) -> None:
        assert len(list(broken_hook(hook(*command)))) == 1

    @pytest.mark.parametrize(
        "command",
        [["sh", "-c", "sleep 60"], ["sh", "-c", 'sleep "$1"', "drain", "60"], ["sh", "-c", 'a "$@"; b', "_", "c"],
         ["sh", "/drain.sh", "60"], ["sleep", "5"], ["python", "-c", "import time; time.sleep(5)"],
         ["timeout", "9", "sh", "-c", "a; b"], ["sh"]],
    )  # fmt: skip
    def test_one_that_can_is_left_alone(self, command: list[str]) -> None:
        assert list(broken_hook(hook(*command))) == []

    @pytest.mark.parametrize(
        ("grace", "seconds", "found"), [(None, 0, 0), (None, 1, 1), (45, 15, 0), (44, 15, 1), (300, 15, 0)]
    )
    def test_the_defaults_are_those_of_kubernetes_and_triton(self, grace: int | None, seconds: int, found: int) -> None:
        pod: dict[str, Any] = {} if grace is None else {"terminationGracePeriodSeconds": grace}
        server = {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}}
        assert len(messages(lifecycle.grace_period, deployment(server, **pod))) == found

    def test_the_hook_of_another_container_needs_its_time_too(self) -> None:
        sidecar = hook("sleep", "40") | {"name": "proxy", "image": "acme/proxy:1"}
        found = deployment({}, containers=[sidecar])
        assert messages(lifecycle.grace_period, found) == [
            "container proxy is killed after 30 s, but preStop waits 40 s"
        ]

    def test_an_unknown_grace_period_is_not_thirty_seconds(self) -> None:
        found = deployment({}, terminationGracePeriodSeconds=UNKNOWN)
        assert outcomes(lifecycle.grace_period, found) == [Outcome.UNDECIDED]


class TestBudgets:
    @pytest.mark.parametrize(
        "scaler",
        [
            scaled("HorizontalPodAutoscaler", maxReplicas=2),
            scaled("ScaledObject", minReplicaCount=0, maxReplicaCount=2),
            scaled("ScaledObject"),
        ],
    )
    def test_whatever_may_have_several_replicas_needs_one(self, scaler: Resource) -> None:
        assert messages(lifecycle.disruption_budget_missing, deployment({})) == []
        assert len(messages(lifecycle.disruption_budget_missing, deployment({}), scaler)) == 1
        assert messages(lifecycle.disruption_budget_missing, deployment({}), scaler, budget(maxUnavailable=1)) == []

    def test_one_in_another_namespace_or_without_a_selector_is_none(self) -> None:
        scaler, empty = scaled("HorizontalPodAutoscaler", maxReplicas=2), budget(maxUnavailable=1)
        empty.inputs["spec"]["selector"] = None
        other = made("policy/v1", "PodDisruptionBudget", "other", {"maxUnavailable": 1, "selector": {}}, "elsewhere")
        assert len(messages(lifecycle.disruption_budget_missing, deployment({}), scaler, empty, other)) == 1

    def test_what_serves_no_model_is_left_alone(self) -> None:
        other = deployment({"image": "acme/other:1"})
        other.inputs["spec"]["replicas"] = 5
        assert messages(lifecycle.disruption_budget_missing, other) == []

    @pytest.mark.parametrize(
        ("spec", "found"),
        [
            ({"maxUnavailable": 1}, 0), ({"maxUnavailable": "1%"}, 0), ({"maxUnavailable": 0}, 1),
            ({"maxUnavailable": "0%"}, 1), ({"minAvailable": 0}, 0), ({"minAvailable": 2}, 0),
            ({"minAvailable": 3}, 1), ({"minAvailable": "66%"}, 0), ({"minAvailable": "67%"}, 1),
            ({"minAvailable": "100%"}, 1), ({}, 0),
        ],
    )  # fmt: skip
    def test_one_of_three_pods_may_go(self, spec: dict[str, object], found: int) -> None:
        scaler = scaled("HorizontalPodAutoscaler", minReplicas=3, maxReplicas=9)
        assert len(messages(lifecycle.disruption_budget_blocks, deployment({}), scaler, budget(**spec))) == found

    def test_a_single_replica_that_has_to_stay_stays_for_ever(self) -> None:
        (message,) = messages(lifecycle.disruption_budget_blocks, deployment({}), budget(minAvailable=1))
        assert message == "minAvailable is 1 of 1 replicas"

    def test_a_budget_of_pods_that_are_not_here_is_judged_by_itself(self) -> None:
        assert messages(lifecycle.disruption_budget_blocks, budget(minAvailable=1)) == []
        assert messages(lifecycle.disruption_budget_blocks, budget(minAvailable="100%")) == ["minAvailable is 100%"]

    @pytest.mark.parametrize("policy", [lifecycle.disruption_budget_missing, lifecycle.disruption_budget_blocks])
    def test_unknown_replicas_are_not_one(self, policy: Any) -> None:
        found = deployment({})
        found.inputs["spec"]["replicas"] = UNKNOWN
        assert outcomes(policy, found, budget(minAvailable=1)) == [Outcome.UNDECIDED]

    @pytest.mark.parametrize(("value", "pods"), [(2, 2), ("50%", 2), ("34%", 2), ("0%", 0)])
    def test_shares_are_rounded_up(self, value: int | str, pods: int) -> None:
        assert share(value, 3) == pods


class TestImages:
    @pytest.mark.parametrize(
        "tag",
        ["latest", "latest-py3", "1.2-latest", "main", "master", "Nightly", "edge", "dev", "stable", "stable-slim",
         "main-py3", "nightly-cuda12.4", "develop", "beta"],
    )  # fmt: skip
    def test_the_newest_of_something_floats(self, tag: str) -> None:
        assert branch_of(tag) is not None

    @pytest.mark.parametrize(
        "tag",
        ["25.08-py3", "v1.2.3-dev", "nightly-2026-03-01", "main-20260301", "main-1a2b3c4", "r25.08", "4.5.3-distroless",
         "py3", "3.13.5-slim", "stable-2026.1", "device", "mainline"],
    )  # fmt: skip
    def test_a_release_does_not(self, tag: str) -> None:
        assert branch_of(tag) is None

    @pytest.mark.parametrize("policy", [lifecycle.image_tag_floats, lifecycle.image_without_digest])
    def test_every_container_and_the_kinds_of_operators_are_looked_at(self, policy: Any) -> None:
        pods = deployment({"image": "a:main"}, initContainers=[{"name": "init", "image": "b"}])
        operated = made("monitoring.coreos.com/v1", "Prometheus", "main", {"image": "quay.io/c:latest"})
        assert len(messages(policy, pods, operated)) == 3

    @pytest.mark.parametrize("policy", [lifecycle.image_tag_floats, lifecycle.image_without_digest])
    def test_a_digest_is_enough(self, policy: Any) -> None:
        assert messages(policy, deployment({"image": f"a:latest@sha256:{'0' * 64}"})) == []

    @pytest.mark.parametrize("policy", [lifecycle.image_tag_floats, lifecycle.image_without_digest])
    @pytest.mark.parametrize("container", [{"image": UNKNOWN}, UNKNOWN])
    def test_an_unknown_image_is_not_known_to_be_good(self, policy: Any, container: Any) -> None:
        found = made("v1", "Pod", "a", {"containers": [container]})
        assert outcomes(policy, found) == [Outcome.UNDECIDED]


@pytest.mark.parametrize(
    "policy",
    [lifecycle.liveness_on_readiness, lifecycle.startup_budget, lifecycle.grace_period, lifecycle.image_tag_floats,
     lifecycle.image_without_digest, lifecycle.model_control_poll, lifecycle.verbose_log_in_prod,
     lifecycle.debug_in_prod, lifecycle.disruption_budget_missing, lifecycle.disruption_budget_blocks],
)  # fmt: skip
@pytest.mark.parametrize(
    "found",
    [
        made("apps/v1", "Deployment", "empty", None),
        made("apps/v1", "Deployment", "null", {"template": {"spec": {"containers": None, "initContainers": None}}}),
        made("v1", "Pod", "nameless", {"containers": [{}]}),
        made("batch/v1", "CronJob", "none", {"jobTemplate": None}),
        made("policy/v1", "PodDisruptionBudget", "none", None),
        made("autoscaling/v2", "HorizontalPodAutoscaler", "none", {}),
        Resource("aws:s3/bucket:Bucket", "models", {"spec": "text"}),
    ],
    ids=lambda found: found.name,
)  # fmt: skip
def test_what_says_nothing_breaks_nothing(policy: Any, found: Resource) -> None:
    assert outcomes(policy, found) == []


def test_several_containers_are_told_apart() -> None:
    one, two = ({"name": name, "image": "a:1", "args": ["tritonserver", POLL]} for name in ("one", "two"))
    found = deployment({}, containers=[one, two])
    assert messages(lifecycle.model_control_poll, found) == [f"container {name} has {POLL}" for name in ("one", "two")]
