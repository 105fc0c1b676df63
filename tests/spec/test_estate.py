"""Stack files: what does not go together."""

from pathlib import Path
from typing import Any

import pytest

from spec import source
from spec.estate import ClusterSpec, EstateSpec
from spec.problems import Problem
from spec.source import Source
from spec.validation import validate

ROOT = Path(__file__).parents[2]
POOL: dict[str, Any] = {
    "name": "a100", "nodes": 3, "gpusPerNode": 4, "gpuModel": "NVIDIA-A100-SXM4-80GB", "gpuMemory": "80Gi",
}  # fmt: skip


def refusals(settings: dict[str, object]) -> list[Problem]:
    spec, problems = validate(EstateSpec, settings, Source("Pulumi.test.yaml", settings))
    assert spec is None
    assert all(problem.fix and problem.file == "Pulumi.test.yaml" for problem in problems)
    return problems


class TestPools:
    def test_a_node_group_joins_the_cluster_of_its_stack(self) -> None:
        group = {
            "cluster": "a", "nodeRoleArn": "arn:aws:iam::123456789012:role/a", "subnets": ["subnet-00000000"],
            "instanceType": "g99.xlarge", "max": 3,
        }  # fmt: skip
        pools = [
            POOL,
            {key: value for key, value in POOL.items() if key != "nodes"}
            | {"name": "b", "provider": "eks", "eks": group},
        ]
        (problem,) = refusals({"environment": "dev", "gpuPools": pools})
        assert (problem.field, problem.value) == ("gpuPools[1].provider", "eks")
        assert EstateSpec.model_validate({"environment": "dev", "cluster": {"provider": "existing"}, "gpuPools": pools})

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
