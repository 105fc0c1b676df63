"""GPU pools: what a node offers in each mode, what a node group looks like, and what does not go together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.eks import GPU_AMIS, EksSpec
from spec.estate import EstateSpec
from spec.pool import GpuPoolSpec
from spec.problems import Problem
from spec.source import Source
from spec.validation import validate

POOL: dict[str, Any] = {
    "name": "a100", "nodes": 3, "gpusPerNode": 4, "gpuModel": "NVIDIA-A100-SXM4-80GB", "gpuMemory": "80Gi",
}  # fmt: skip
GROUP: dict[str, Any] = {
    "cluster": "serving-prod",
    "nodeRoleArn": "arn:aws:iam::123456789012:role/gpu-nodes",
    "subnets": ["subnet-0a1b2c3d4e5f67890"],
    "instanceType": "g5.12xlarge",
    "max": 3,
}
EKS: dict[str, Any] = {
    "name": "a10g", "provider": "eks", "gpusPerNode": 4, "gpuModel": "NVIDIA-A10G", "gpuMemory": "24Gi", "eks": GROUP,
}  # fmt: skip


def pool(**fields: object) -> GpuPoolSpec:
    return GpuPoolSpec.model_validate(POOL | fields)


def refusals(written: dict[str, object]) -> list[Problem]:
    settings: dict[str, object] = {"environment": "dev", "cluster": {"provider": "existing"}, "gpuPools": [written]}
    spec, problems = validate(EstateSpec, settings, Source("Pulumi.test.yaml", settings))
    assert spec is None
    assert all(problem.fix for problem in problems)
    return problems


def pool_refusal(**fields: object) -> Problem:
    (problem,) = refusals(POOL | fields)
    return problem


def group_refusal(**fields: object) -> Problem:
    (problem,) = refusals(EKS | {"eks": GROUP | fields})
    return problem


class TestCapacity:
    @pytest.mark.parametrize(
        ("fields", "capacity"),
        [
            ({}, {"nvidia.com/gpu": "4"}),
            ({"sharing": "mig", "migProfile": "1g.10gb"}, {"nvidia.com/mig-1g.10gb": "28"}),
            ({"sharing": "mig", "migProfile": "1g.20gb"}, {"nvidia.com/mig-1g.20gb": "16"}),
            ({"sharing": "mig", "migProfile": "3g.40gb"}, {"nvidia.com/mig-3g.40gb": "8"}),
            ({"sharing": "timeSlicing", "slices": 5}, {"nvidia.com/gpu.shared": "20"}),
            (
                {"sharing": "hami"},
                {
                    "nvidia.com/gpu": "40",
                    "nvidia.com/gpucores": "400",
                    "nvidia.com/gpumem": str(4 * 80 * 1024),
                    "nvidia.com/gpumem-percentage": "400",
                },
            ),
            ({"sharing": "qgpu"}, {"tencent.com/vcuda-core": "400", "tencent.com/vcuda-memory": str(4 * 80 * 4)}),
        ],
    )
    def test_a_node_offers_exactly_this_in_each_mode(self, fields: dict[str, object], capacity: dict[str, str]) -> None:
        assert pool(**fields).node_capacity() == capacity

    def test_the_cards_of_a_pool_are_those_of_all_nodes(self) -> None:
        assert pool().cards == 12


class TestPools:
    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"sharing": "timeSlicing"}, "slices"),
            ({"slices": 4}, "slices"),
            ({"sharing": "hami", "slices": 4}, "slices"),
            ({"sharing": "mig"}, "migProfile"),
            ({"migProfile": "1g.10gb"}, "migProfile"),
            ({"sharing": "mig", "migProfile": "banana"}, "migProfile"),
            ({"sharing": "mig", "migProfile": ""}, "migProfile"),
            ({"sharing": "mig", "migProfile": "7g.80gb", "gpuMemory": "24Gi"}, "migProfile"),
            ({"sharing": "timeSlicing", "slices": 1}, "slices"),
            ({"sharing": "vgpu"}, "sharing"),
            ({"provider": "gke"}, "provider"),
            ({"provider": "eks"}, "eks"),
            ({"provider": "existing", "cpu": 64}, "cpu"),
            ({"provider": "existing", "memory": "1Ti"}, "memory"),
            ({"nodes": 0}, "nodes"),
            ({"nodes": 1001}, "nodes"),
            ({"nodes": True}, "nodes"),
            ({"gpusPerNode": 17}, "gpusPerNode"),
            ({"spareGpus": -1}, "spareGpus"),
            ({"spareGpus": 17}, "spareGpus"),
            ({"spareGpus": 0.5}, "spareGpus"),
            ({"spareGpus": 12}, "spareGpus"),
            ({"sparegpus": 1}, "sparegpus"),
            ({"gpuModel": "two words"}, "gpuModel"),
            ({"gpuMemory": 80}, "gpuMemory"),
            ({"name": "A100"}, "name"),
            ({"name": "p" * 60}, "name"),
            ({"gpu_model": "x"}, "gpu_model"),
        ],
    )
    def test_a_pool_that_cannot_be_is_refused_at_its_field(self, fields: dict[str, object], field: str) -> None:
        assert pool_refusal(**fields).field == f"gpuPools[0].{field}"

    def test_a_field_in_snake_case_suggests_the_right_one(self) -> None:
        assert pool_refusal(gpus_per_node=4).fix == "did you mean gpusPerNode?"

    def test_a_mode_in_the_wrong_case_suggests_the_right_one(self) -> None:
        assert pool_refusal(sharing="timeslicing").fix == "did you mean timeSlicing?"

    @pytest.mark.parametrize(("spare", "nodes", "cards"), [(0, 1, 1), (1, 1, 2), (3, 1, 4), (11, 3, 4)])
    def test_cards_may_stay_free_as_long_as_one_is_left(self, spare: int, nodes: int, cards: int) -> None:
        assert pool(spareGpus=spare, nodes=nodes, gpusPerNode=cards).spare_gpus == spare

    def test_no_card_stays_free_unless_told_so(self) -> None:
        assert pool().spare_gpus == 0

    def test_a_pool_of_spare_cards_only_is_refused_with_its_size(self) -> None:
        # The only card would be promised to a rollout that waits for it for ever.
        problem = pool_refusal(nodes=1, gpusPerNode=1, spareGpus=1)
        assert (problem.value, problem.allowed) == (1, "0 to 0")

    def test_existing_nodes_need_no_size(self) -> None:
        assert pool(provider="existing").provider == "existing"


class TestHami:
    def test_a_card_is_split_in_ten_and_hands_out_what_it_has(self) -> None:
        found = pool(sharing="hami")
        assert (found.split, found.memory_scaling, found.card_mebibytes) == (10, 1, 80 * 1024)

    @given(st.integers(1, 100), st.integers(1, 16))
    def test_each_card_offers_its_split(self, split: int, cards: int) -> None:
        found = pool(sharing="hami", split=split, gpusPerNode=cards).node_capacity()
        assert found["nvidia.com/gpu"] == str(split * cards)
        assert found["nvidia.com/gpucores"] == str(100 * cards)

    def test_more_memory_than_there_is_has_to_be_asked_for(self) -> None:
        found = pool(sharing="hami", memoryScaling=1.5)
        assert found.node_capacity()["nvidia.com/gpumem"] == str(4 * 80 * 1024 * 3 // 2)
        assert found.node_capacity()["nvidia.com/gpumem-percentage"] == "400"

    @pytest.mark.parametrize(("field", "value"), [("memoryScaling", 0.5), ("memoryScaling", 11.0), ("split", 0)])
    def test_a_share_that_hami_cannot_make_is_refused(self, field: str, value: float) -> None:
        assert pool_refusal(sharing="hami", **{field: value}).field == f"gpuPools[0].{field}"

    @pytest.mark.parametrize(
        "mode",
        [{}, {"sharing": "mig", "migProfile": "1g.10gb"}, {"sharing": "timeSlicing", "slices": 2}, {"sharing": "qgpu"}],
    )
    def test_both_fields_are_refused_at_once_where_hami_is_not(self, mode: dict[str, object]) -> None:
        found = refusals(POOL | mode | {"split": 5, "memoryScaling": 2.0})
        assert [problem.field for problem in found] == ["gpuPools[0].split", "gpuPools[0].memoryScaling"]


class TestTaint:
    def test_it_is_that_of_gpu_nodes_by_default(self) -> None:
        assert pool().taint_parts == ("nvidia.com/gpu", "present", "NoSchedule")

    def test_any_that_keeps_pods_off_will_do(self) -> None:
        assert pool(taint="dedicated=gpu:NoExecute").taint_parts == ("dedicated", "gpu", "NoExecute")

    @pytest.mark.parametrize(
        "taint",
        ["gpu", "gpu:NoSchedule", "gpu=:NoSchedule", "a=b:PreferNoSchedule", "a=b:NoSchedule\n", "-a=b:NoExecute"],
    )
    def test_one_that_lets_others_in_is_refused(self, taint: str) -> None:
        assert pool_refusal(taint=taint).field == "gpuPools[0].taint"


class TestNodeGroup:
    def test_the_shortest_has_an_ami_with_the_driver_and_no_node_until_it_is_needed(self) -> None:
        found = GpuPoolSpec.model_validate(EKS)
        assert found.eks == EksSpec.model_validate(GROUP | {"min": 0, "ami": "AL2023_x86_64_NVIDIA", "diskGib": 200})
        assert (found.most_nodes, found.cards) == (3, 12)

    @pytest.mark.parametrize("ami", GPU_AMIS)
    def test_amis_with_the_driver_and_without_a_plugin_are_accepted(self, ami: str) -> None:
        assert EksSpec.model_validate(GROUP | {"ami": ami}).ami == ami

    @pytest.mark.parametrize(
        ("ami", "reason"),
        [
            ("AL2023_x86_64_STANDARD", "no NVIDIA driver"),
            ("AL2023_x86_64_NEURON", "no NVIDIA driver"),
            ("BOTTLEROCKET_x86_64", "no NVIDIA driver"),
            ("BOTTLEROCKET_x86_64_NVIDIA", "device plugin of its own"),
            ("AL2_x86_64_GPU", "no longer made"),
        ],
    )
    def test_any_other_ami_is_refused_with_what_would_go_wrong(self, ami: str, reason: str) -> None:
        problem = group_refusal(ami=ami)
        assert (problem.field, problem.allowed) == ("gpuPools[0].eks.ami", " or ".join(GPU_AMIS))
        assert reason in problem.message

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("cluster", "-a"),
            ("nodeRoleArn", "arn:aws:iam::1:role/x"),
            ("nodeRoleArn", "gpu-nodes"),
            ("instanceType", "g5"),
            ("min", 4),
            ("min", -1),
            ("max", 0),
            ("diskGib", 20),
            ("region", "europe"),
            ("subnets", []),
        ],
    )
    def test_a_group_that_cannot_be_is_refused_at_its_field(self, field: str, value: object) -> None:
        problems = refusals(EKS | {"eks": GROUP | {field: value}})
        assert {problem.field for problem in problems} == {f"gpuPools[0].eks.{field}"}

    def test_a_subnet_is_refused_at_its_place(self) -> None:
        assert group_refusal(subnets=["subnet-0a1b2c3d", "vpc-1"]).field == "gpuPools[0].eks.subnets[1]"

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"provider": "simulated"}, "eks"),
            ({"nodes": 3}, "nodes"),
            ({"cpu": 8}, "cpu"),
            ({"memory": "64Gi"}, "memory"),
            ({"gpusPerNode": 1}, "gpusPerNode"),
            ({"sharing": "qgpu"}, "sharing"),
            ({"sharing": "mig", "migProfile": "1g.6gb"}, "sharing"),
            ({"spareGpus": 12}, "spareGpus"),
        ],
    )
    def test_what_the_group_decides_or_cannot_do_is_refused(self, fields: dict[str, object], field: str) -> None:
        (problem,) = refusals(EKS | fields)
        assert problem.field == f"gpuPools[0].{field}"

    @pytest.mark.parametrize(
        ("instance", "cards"),
        [("g4dn.xlarge", 1), ("g4dn.metal", 8), ("g5.48xlarge", 8), ("p4d.24xlarge", 8), ("p5.4xlarge", 1),
         ("g99.xlarge", None)],
    )  # fmt: skip
    def test_the_cards_of_a_known_instance_are_known(self, instance: str, cards: int | None) -> None:
        assert EksSpec.model_validate(GROUP | {"instanceType": instance}).cards == cards

    def test_those_of_an_unknown_one_are_what_the_pool_says(self) -> None:
        found = GpuPoolSpec.model_validate(EKS | {"gpusPerNode": 7, "eks": GROUP | {"instanceType": "g99.xlarge"}})
        assert found.cards == 21
