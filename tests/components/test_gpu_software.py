"""GPU software in the whole estate: made where it is asked for, after its namespace, before the pods that need it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.components.conftest import PROD_MODELS, Render
from tests.components.gpu_nodes import check

CARDS: dict[str, Any] = {"gpuModel": "NVIDIA-A100-SXM4-80GB", "gpuMemory": "80Gi", "gpusPerNode": 4}
SETTINGS: dict[str, Any] = {
    "cluster": {"provider": "existing"},
    "namespace": "models",
    "gpuPools": [
        {"name": "whole", "nodes": 2, "provider": "existing"} | CARDS,
        {"name": "mig", "sharing": "mig", "migProfile": "1g.10gb", "taint": "dedicated=gpu:NoSchedule"} | CARDS,
        {"name": "hami", "sharing": "hami"} | CARDS,
    ],
}
ALL = {"devicePlugin": "managed", "dcgmExporter": "managed", "hami": "managed"}
MODELS = {name: PROD_MODELS[name] for name in ("five-lines", "whole", "mig", "hami")}
LABEL = "triton-estate.io/gpu-sharing"
Renderer = Callable[..., Render]


@pytest.fixture(scope="module")
def estate(render: Renderer) -> Render:
    return render(MODELS, **SETTINGS, gpuSoftware=ALL)


@pytest.fixture(scope="module")
def bare(render: Renderer) -> Render:
    return render(MODELS, **SETTINGS)


def pod_labels(found: Render, name: str) -> dict[str, str]:
    return found.one("Deployment", f"{name}-v1")["spec"]["template"]["metadata"]["labels"]


class TestWhatIsMade:
    def test_nothing_without_being_told(self, bare: Render) -> None:
        assert not bare.objects("DaemonSet")
        assert not any("helm.sh" in kind for kind, _ in bare.resources)
        assert {found["metadata"]["name"] for found in bare.objects("Namespace")} == {"models"}

    @pytest.mark.parametrize(
        ("part", "made"),
        [("devicePlugin", {"NvidiaDevicePlugin"}), ("dcgmExporter", {"DcgmExporter"}), ("hami", {"HamiVgpu"})],
    )
    def test_exactly_what_was_asked_for(self, part: str, made: set[str], render: Renderer) -> None:
        found = render(MODELS, **SETTINGS, gpuSoftware={part: "managed"})
        parts = {kind.rpartition(":")[2] for kind, _ in found.resources if kind.startswith("triton-estate:gpu:")}
        assert parts - {"GpuNodePool"} == made

    def test_its_namespace_lets_it_get_at_the_node_and_that_of_the_models_does_not(self, estate: Render) -> None:
        levels = {
            found["metadata"]["name"]: found["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
            for found in estate.objects("Namespace")
        }
        assert levels == {"models": "restricted", "gpu-system": "privileged"}

    def test_each_object_is_valid(self, estate: Render) -> None:
        ours = [found for found in estate.objects() if found["metadata"].get("namespace") == "gpu-system"]
        assert {found["kind"] for found in ours} == {"ConfigMap", "DaemonSet", "Service", "ServiceMonitor"}
        for found in ours:
            if found["kind"] != "ServiceMonitor":
                check(found)


class TestPods:
    @pytest.mark.parametrize("name", MODELS)
    def test_those_of_hami_are_labelled_for_its_webhook_and_no_others(self, name: str, estate: Render) -> None:
        assert pod_labels(estate, name).get(LABEL) == ("hami" if name == "hami" else None)

    @pytest.mark.parametrize("name", MODELS)
    def test_without_our_hami_none_is(self, name: str, bare: Render) -> None:
        assert LABEL not in pod_labels(bare, name)

    def test_no_selector_knows_the_label(self, estate: Render) -> None:
        assert LABEL not in estate.one("Deployment", "hami-v1")["spec"]["selector"]["matchLabels"]

    def test_the_debug_twin_is_placed_as_its_model_is(self, render: Renderer) -> None:
        found = render({"hami": MODELS["hami"] + "debug: {}\n"}, **SETTINGS, gpuSoftware=ALL)
        assert found.one("Pod", "hami-debug")["metadata"]["labels"][LABEL] == "hami"

    @pytest.mark.parametrize("name", MODELS)
    def test_none_chooses_a_scheduler_or_asks_for_privileges(self, name: str, estate: Render) -> None:
        # HAMi leaves a pod that chooses one alone, and refuses a privileged one.
        assert "schedulerName" not in estate.pod(f"{name}-v1")
        assert "privileged" not in str(estate.pod(f"{name}-v1"))

    def test_every_model_with_a_gpu_has_it_in_its_limits(self, estate: Render) -> None:
        # Only so does a pod hold a device, and only so does the exporter know whose it is.
        for name, resource in (("whole", "gpu"), ("mig", "mig-1g.10gb"), ("hami", "gpu")):
            assert f"nvidia.com/{resource}" in estate.triton(f"{name}-v1")["resources"]["limits"]

    def test_a_pod_tolerates_the_taint_of_its_own_pool_only(self, estate: Render) -> None:
        assert estate.pod("mig-v1")["tolerations"] == [
            {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
        ]
        assert estate.pod("whole-v1")["tolerations"][0]["key"] == "nvidia.com/gpu"
        assert "tolerations" not in estate.pod("five-lines-v1")


class TestOrder:
    def needed(self, found: Render, kind: str, name: str) -> set[str]:
        return {urn.rpartition("::")[2] for urn in found.request(kind, name).dependencies}

    @pytest.mark.parametrize("name", MODELS)
    def test_only_pods_of_hami_wait_for_it(self, name: str, estate: Render) -> None:
        # One that exists before the webhook does would not be limited.
        assert ("hami" in self.needed(estate, "TritonService", name)) == (name == "hami")

    @pytest.mark.parametrize(
        ("kind", "name"),
        [("NvidiaDevicePlugin", "nvidia-device-plugin"), ("DcgmExporter", "dcgm-exporter"), ("HamiVgpu", "hami")],
    )
    def test_all_of_it_comes_after_its_namespace(self, kind: str, name: str, estate: Render) -> None:
        assert self.needed(estate, kind, name) == {"gpu-system"}
