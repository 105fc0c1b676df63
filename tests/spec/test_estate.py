"""Stack files: what a pool offers in each mode, and what does not go together."""

from pathlib import Path
from typing import Any

import pytest

from spec import source
from spec.estate import ClusterSpec, EstateSpec, GpuPoolSpec
from spec.problems import Problem
from spec.source import Source
from spec.validation import validate

ROOT = Path(__file__).parents[2]
POOL: dict[str, Any] = {
    "name": "a100", "nodes": 3, "gpusPerNode": 4, "gpuModel": "NVIDIA-A100-SXM4-80GB", "gpuMemory": "80Gi",
}  # fmt: skip


def pool(**fields: object) -> GpuPoolSpec:
    return GpuPoolSpec.model_validate(POOL | fields)


def refusals(settings: dict[str, object]) -> list[Problem]:
    spec, problems = validate(EstateSpec, settings, Source("Pulumi.test.yaml", settings))
    assert spec is None
    assert all(problem.fix and problem.file == "Pulumi.test.yaml" for problem in problems)
    return problems


def pool_refusal(**fields: object) -> Problem:
    (problem,) = refusals({"environment": "dev", "gpuPools": [POOL | fields]})
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
            ({"provider": "eks"}, "provider"),
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

    def test_two_pools_of_one_name_are_refused(self) -> None:
        (problem,) = refusals({"environment": "dev", "gpuPools": [POOL, POOL]})
        assert problem.field == "gpuPools"
        assert problem.message == "two GPU pools are named a100"


class TestCluster:
    @pytest.mark.parametrize("field", ["kubeconfig", "context"])
    def test_the_embedded_plane_takes_no_cluster_of_yours(self, field: str) -> None:
        (problem,) = refusals({"environment": "dev", "cluster": {field: "x"}})
        assert problem.field == f"cluster.{field}"
        assert "provider: existing" in problem.fix

    def test_an_existing_cluster_takes_both_or_neither(self) -> None:
        for fields in ({}, {"kubeconfig": "~/.kube/config", "context": "prod"}):
            assert ClusterSpec.model_validate({"provider": "existing"} | fields).provider == "existing"


class TestSettings:
    def test_the_environment_must_be_chosen(self) -> None:
        (problem,) = refusals({})
        assert (problem.field, problem.message) == ("environment", "is missing")

    def test_all_mistakes_are_told_at_once(self) -> None:
        settings: dict[str, object] = {
            "environment": "production", "cluster": {"provider": "eks"}, "namespace": "My_Space", "image": "triton",
            "gpuPools": [POOL | {"nodes": "two", "sharing": "half"}], "models": {"a": 3}, "colour": "red",
        }  # fmt: skip
        assert sorted(problem.field for problem in refusals(settings)) == [
            "cluster.provider", "colour", "environment", "gpuPools[0].nodes", "gpuPools[0].sharing", "image",
            "models.a", "namespace",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("key", "meant"), [("namespce", "namespace"), ("gpu_pools", "gpuPools"), ("model", "models"), ("img", "image")]
    )
    def test_an_unknown_key_suggests_a_known_one(self, key: str, meant: str) -> None:
        (problem,) = refusals({"environment": "dev", key: "x"})
        assert problem.fix == f"did you mean {meant}?"

    def test_nothing_can_be_changed_afterwards(self) -> None:
        with pytest.raises(ValueError, match="frozen"):
            EstateSpec(environment="dev").namespace = "other"  # ty: ignore[invalid-assignment]


class TestDefaults:
    """The engine needs a default for each optional key, and the spec has the same: two places that must agree."""

    DECLARED = source.read(ROOT / "Pulumi.yaml", "Pulumi.yaml").data["config"]

    def test_the_project_file_declares_exactly_the_keys_of_the_spec(self) -> None:
        assert isinstance(self.DECLARED, dict)
        assert set(self.DECLARED) == {field.alias for field in EstateSpec.model_fields.values()}

    def test_the_project_file_has_the_defaults_of_the_spec(self) -> None:
        assert isinstance(self.DECLARED, dict)
        defaults = {key: value["default"] for key, value in self.DECLARED.items() if "default" in value}
        assert EstateSpec.model_validate(defaults | {"environment": "dev"}) == EstateSpec(environment="dev")

    def test_only_keys_without_a_default_have_to_be_set(self) -> None:
        assert isinstance(self.DECLARED, dict)
        required = {field.alias for field in EstateSpec.model_fields.values() if field.is_required()}
        assert {key for key, value in self.DECLARED.items() if "default" not in value} == required
