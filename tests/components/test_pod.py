"""The pod: how Triton is started, probed, stopped, sized and locked down."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from spec.fields import mebibytes
from tests.components.conftest import PROD_MODELS, TENSORS, Render

Renderer = Callable[..., Render]
POOL = {"name": "a100", "gpuModel": "A100", "gpuMemory": "80Gi", "gpusPerNode": 4}


def python(groups: str) -> str:
    return f"config: {{backend: python, {TENSORS}, instance_group: {groups}}}\n"


def shm(pod: dict[str, Any]) -> str:
    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "shm"]
    assert volume["emptyDir"]["medium"] == "Memory"
    return volume["emptyDir"]["sizeLimit"]


class TestStart:
    def test_the_arguments_are_exactly_these(self, prod: Render) -> None:
        assert prod.triton("own-server-v1")["args"] == [
            "tritonserver",
            "--id=own-server",
            "--model-repository=s3://acme/own-server",
            "--model-control-mode=none",
            "--http-port=8000",
            "--grpc-port=8001",
            "--metrics-port=8002",
            "--exit-timeout-secs=300",
            "--log-verbose=1",
            "--metrics-config=a=1",
            "--metrics-config=b=2",
        ]

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_nobody_changes_a_server_by_writing_to_its_bucket(self, name: str, prod: Render) -> None:
        args = prod.triton(f"{name}-v1")["args"]
        assert [arg for arg in args if "control-mode" in arg] == ["--model-control-mode=none"]

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_no_argument_is_given_twice(self, name: str, prod: Render) -> None:
        flags = [arg.partition("=")[0] for arg in prod.triton(f"{name}-v1")["args"] if "metrics-config" not in arg]
        assert len(flags) == len(set(flags))

    def test_the_entry_point_of_the_image_is_kept(self, prod: Render) -> None:
        assert "command" not in prod.triton("five-lines-v1")

    def test_the_image_is_the_estates_or_the_models_own(self, prod: Render) -> None:
        assert prod.triton("five-lines-v1")["image"] == "nvcr.io/nvidia/tritonserver:25.08-py3"
        assert prod.triton("own-server-v1")["image"] == "registry.example.com/triton:2"

    def test_the_ports_are_those_of_the_arguments(self, prod: Render) -> None:
        ports = {port["name"]: port["containerPort"] for port in prod.triton("five-lines-v1")["ports"]}
        assert ports == {"http": 8000, "grpc": 8001, "http-metrics": 8002}


class TestProbes:
    @pytest.mark.parametrize(
        ("load", "seconds"), [("1s", 1), ("95s", 95), ("300s", 300), ("720s", 720), ("2h", 7200), ("24h", 86400)]
    )
    def test_the_startup_probe_waits_for_the_declared_load_time(
        self, load: str, seconds: int, render: Renderer
    ) -> None:
        probe = render({"m": f"loadTime: {load}\n"}).triton()["startupProbe"]
        budget = probe["periodSeconds"] * probe["failureThreshold"]
        assert seconds <= budget <= seconds + 10

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_liveness_never_looks_at_readiness(self, name: str, prod: Render) -> None:
        path = prod.triton(f"{name}-v1")["livenessProbe"]["httpGet"]["path"]
        assert path == "/v2/health/live"
        assert "ready" not in path

    def test_readiness_is_that_of_the_one_model_served(self, dev: Render) -> None:
        probe = dev.triton("inception-graphdef-v1")["readinessProbe"]
        assert probe["httpGet"] == {"path": "/v2/models/inception_graphdef/ready", "port": 8000}

    def test_readiness_of_several_models_is_that_of_the_server(self, dev: Render) -> None:
        assert dev.triton("photo-tagger-v1")["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_startup_ends_when_the_model_is_ready(self, name: str, prod: Render) -> None:
        container = prod.triton(f"{name}-v1")
        assert container["startupProbe"]["httpGet"] == container["readinessProbe"]["httpGet"]


class TestEnd:
    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_the_grace_period_exceeds_drain_and_exit_timeout(self, name: str, prod: Render) -> None:
        pod, container = prod.pod(f"{name}-v1"), prod.triton(f"{name}-v1")
        (exit_timeout,) = [
            int(arg.split("=")[1]) for arg in container["args"] if arg.startswith("--exit-timeout-secs=")
        ]
        drain = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert drain >= 15
        assert pod["terminationGracePeriodSeconds"] >= drain + exit_timeout + 5

    @pytest.mark.parametrize(("timeout", "seconds"), [("10s", 30), ("60s", 60), ("90500ms", 91), ("1h", 3600)])
    def test_the_longest_request_may_end(self, timeout: str, seconds: int, render: Callable[..., Render]) -> None:
        found = render({"m": f"traffic: {{timeout: {timeout}}}\n"})
        assert f"--exit-timeout-secs={seconds}" in found.triton()["args"]
        assert found.pod()["terminationGracePeriodSeconds"] == 15 + seconds + 15

    def test_the_drain_needs_no_shell_in_the_image(self, prod: Render) -> None:
        assert list(prod.triton("five-lines-v1")["lifecycle"]["preStop"]) == ["sleep"]


class TestResources:
    @pytest.mark.parametrize(
        ("name", "gpus"),
        [
            ("five-lines", {}),
            ("whole", {"nvidia.com/gpu": "2"}),
            ("mig", {"nvidia.com/mig-1g.10gb": "1"}),
            ("sliced", {"nvidia.com/gpu.shared": "1"}),
            ("hami", {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "50", "nvidia.com/gpumem": "8192"}),
            ("qgpu", {"tencent.com/vcuda-core": "50"}),
        ],
    )
    def test_gpus_stand_in_the_limits_and_equally_in_the_requests(
        self, name: str, gpus: dict[str, str], prod: Render
    ) -> None:
        resources = prod.triton(f"{name}-v1")["resources"]
        limits = {key: value for key, value in resources["limits"].items() if "/" in key}
        assert limits == gpus
        assert limits == {key: value for key, value in resources["requests"].items() if "/" in key}

    def test_cpu_is_requested_and_not_limited(self, prod: Render) -> None:
        resources = prod.triton("whole-v1")["resources"]
        assert resources["requests"]["cpu"] == "4"
        assert "cpu" not in resources["limits"]

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_all_requested_memory_may_be_used(self, name: str, prod: Render) -> None:
        resources = prod.triton(f"{name}-v1")["resources"]
        assert resources["requests"]["memory"] == resources["limits"]["memory"]


class TestSharedMemory:
    @pytest.mark.parametrize(
        ("more", "size"),
        [
            ("", "64Mi"),
            (f"config: {{backend: onnxruntime, {TENSORS}}}\n", "64Mi"),
            (python("[]"), "128Mi"),
            (python("[{count: 4, kind: KIND_CPU}]"), "320Mi"),
            (python("[{count: 1, kind: KIND_CPU}, {count: 2, kind: KIND_CPU}]"), "256Mi"),
            (python("[{count: 2, kind: KIND_GPU}]") + "resources: {cpu: 1, memory: 2Gi, gpu: 2}\n", "320Mi"),
            (f"members: {{helper: {{config: {{backend: python, {TENSORS}}}}}}}\n", "128Mi"),
        ],
    )
    def test_it_holds_a_region_for_each_python_instance(self, more: str, size: str, render: Renderer) -> None:
        found = render({"m": more}, gpuPools=[POOL])
        assert shm(found.pod()) == size
        assert mebibytes(found.triton()["resources"]["limits"]["memory"]) == 2048 + mebibytes(size)

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_it_is_mounted_where_triton_looks(self, name: str, prod: Render) -> None:
        mounts = {mount["name"]: mount["mountPath"] for mount in prod.triton(f"{name}-v1")["volumeMounts"]}
        assert mounts["shm"] == "/dev/shm"  # noqa: S108  # a volume

    def test_no_environment_variable_pretends_to_size_it(self, prod: Render) -> None:
        for name in PROD_MODELS:
            assert [env["name"] for env in prod.triton(f"{name}-v1")["env"]] == ["HOME"]


class TestLock:
    """The restricted Pod Security Standard, and a little more."""

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_no_container_may_become_more_than_it_is(self, name: str, prod: Render) -> None:
        pod = prod.pod(f"{name}-v1")
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_nothing_runs_as_root(self, name: str, prod: Render) -> None:
        context = prod.pod(f"{name}-v1")["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] > 0
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_the_node_is_out_of_reach(self, name: str, prod: Render) -> None:
        pod = prod.pod(f"{name}-v1")
        assert not any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
        assert not any("hostPath" in volume for volume in pod["volumes"])
        assert not any("hostPort" in port for port in prod.triton(f"{name}-v1")["ports"])

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_no_token_of_the_cluster_is_mounted(self, name: str, prod: Render) -> None:
        assert prod.pod(f"{name}-v1")["automountServiceAccountToken"] is False

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_what_is_written_goes_to_a_volume(self, name: str, prod: Render) -> None:
        mounts = prod.triton(f"{name}-v1")["volumeMounts"]
        writable = {mount["mountPath"] for mount in mounts if not mount.get("readOnly")}
        assert "/tmp" in writable  # noqa: S108  # a volume
        assert {"name": "HOME", "value": "/tmp"} in prod.triton(f"{name}-v1")["env"]  # noqa: S108

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_every_image_is_pinned(self, name: str, prod: Render) -> None:
        pod = prod.pod(f"{name}-v1")
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            assert re.search(r":[^:/]*[0-9][^:/]*$", container["image"])
            assert not container["image"].endswith(":latest")

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_every_mount_has_its_volume_and_every_volume_its_mount(self, name: str, prod: Render) -> None:
        pod = prod.pod(f"{name}-v1")
        containers = [*pod["containers"], *pod.get("initContainers", [])]
        mounted = {mount["name"] for container in containers for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_each_loaded_version_of_a_python_model_has_its_share_of_shared_memory(render: Callable[..., Render]) -> None:
    two = f"config: {{backend: python, {TENSORS}, version_policy: {{specific: {{versions: [1, 2]}}}}}}\n"
    sizes = []
    for config in (f"config: {{backend: python, {TENSORS}}}\n", two):
        (shm,) = [volume for volume in render({"m": config}).pod("m-v1")["volumes"] if volume["name"] == "shm"]
        sizes.append(int(shm["emptyDir"]["sizeLimit"].removesuffix("Mi")))
    assert sizes[1] - sizes[0] == 64
