"""GPU node pools: simulated nodes carry all that a pod asks for, existing ones are left alone."""

import pytest

from components.gpu import node_pool
from tests.components.conftest import POOLS, Render
from tests.components.gpu_nodes import pool

NAMES = [str(pool["name"]) for pool in POOLS]
SIMULATED = ["whole", "mig", "sliced", "hami"]


class TestNodes:
    def test_a_pool_has_as_many_as_it_says(self, prod: Render) -> None:
        names = [found["metadata"]["name"] for found in prod.objects("Node")]
        assert sorted(names) == ["hami-0", "mig-0", "sliced-0", "whole-0", "whole-1"]

    def test_an_existing_pool_makes_none(self, prod: Render) -> None:
        assert ("triton-estate:gpu:GpuNodePool", "qgpu") in prod.resources
        assert not any("qgpu" in found["metadata"]["name"] for found in prod.objects("Node"))

    @pytest.mark.parametrize("name", SIMULATED)
    def test_one_is_labelled_as_gpu_feature_discovery_would(self, name: str, prod: Render) -> None:
        labels = prod.one("Node", f"{name}-0")["metadata"]["labels"]
        expected = {
            "triton-estate.io/node-pool": name,
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
            "nvidia.com/gpu.memory": "81920",
            "kubernetes.io/hostname": f"{name}-0",
        }
        assert expected.items() <= labels.items()

    @pytest.mark.parametrize("name", SIMULATED)
    def test_one_of_hami_says_so_and_no_other(self, name: str, prod: Render) -> None:
        labels = prod.one("Node", f"{name}-0")["metadata"]["labels"]
        assert labels.get("gpu") == ("on" if name == "hami" else None)

    @pytest.mark.parametrize("name", SIMULATED)
    def test_one_is_tainted_for_gpu_pods_only(self, name: str, prod: Render) -> None:
        taints = prod.one("Node", f"{name}-0")["spec"]["taints"]
        assert taints == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]

    @pytest.mark.parametrize(
        ("name", "gpus"),
        [
            ("whole", {"nvidia.com/gpu": "4"}),
            ("mig", {"nvidia.com/mig-1g.10gb": "28"}),
            ("sliced", {"nvidia.com/gpu.shared": "16"}),
            (
                "hami",
                {
                    "nvidia.com/gpu": "40",
                    "nvidia.com/gpucores": "400",
                    "nvidia.com/gpumem": "327680",
                    "nvidia.com/gpumem-percentage": "400",
                },
            ),
        ],
    )
    def test_one_offers_what_its_mode_offers(self, name: str, gpus: dict[str, str], prod: Render) -> None:
        status = prod.one("Node", f"{name}-0")["status"]
        assert status["capacity"] == {"cpu": "32", "memory": "256Gi", "pods": "110"} | gpus
        assert status["allocatable"] == status["capacity"]

    @pytest.mark.parametrize("name", SIMULATED)
    def test_kwok_plays_its_kubelet(self, name: str, prod: Render) -> None:
        metadata = prod.one("Node", f"{name}-0")["metadata"]
        assert metadata["annotations"]["kwok.x-k8s.io/node"] == "fake"
        assert metadata["labels"]["type"] == "kwok"

    def test_a_changed_capacity_makes_a_new_node_after_the_old_one_went(self, prod: Render) -> None:
        # The API server takes the status of a node only when the node is created, and both have the same name.
        request = prod.request("Node", "whole-0")
        assert list(request.replaceOnChanges) == ["status"]
        assert request.deleteBeforeReplace


class TestTaint:
    def test_every_taint_is_tolerated_once(self) -> None:
        pools = [pool("whole"), pool("mig"), pool("hami", taint="dedicated=gpu:NoExecute")]
        found = [(one.key, one.operator, one.value, one.effect) for one in node_pool.tolerations(pools)]
        assert found == [
            ("nvidia.com/gpu", "Equal", "present", "NoSchedule"),
            ("dedicated", "Equal", "gpu", "NoExecute"),
        ]

    def test_a_pod_tolerates_what_its_nodes_are_tainted_with(self) -> None:
        dedicated = pool("whole", taint="dedicated=gpu:NoSchedule")
        taint, toleration = node_pool.taint(dedicated), node_pool.toleration(dedicated)
        assert (taint.key, taint.value, taint.effect) == (toleration.key, toleration.value, toleration.effect)
