"""What this stack installs on GPU nodes: nothing unless told so, and nothing that would serve nobody."""

from typing import Any

import pytest

from spec.estate import EstateSpec
from spec.gpu_software import GpuSoftwareSpec, pod_labels
from spec.pool import GpuPoolSpec
from spec.problems import Problem
from spec.source import Source
from spec.validation import validate

CARDS: dict[str, Any] = {"gpuModel": "NVIDIA-A100-SXM4-80GB", "gpuMemory": "80Gi", "gpusPerNode": 4}
POOLS: dict[str, dict[str, Any]] = {
    "whole": {"name": "whole"} | CARDS,
    "mig": {"name": "mig", "sharing": "mig", "migProfile": "1g.10gb"} | CARDS,
    "timeSlicing": {"name": "sliced", "sharing": "timeSlicing", "slices": 4} | CARDS,
    "hami": {"name": "hami", "sharing": "hami"} | CARDS,
    "qgpu": {"name": "qgpu", "sharing": "qgpu"} | CARDS,
}
PARTS = ("devicePlugin", "dcgmExporter", "hami")


def check(*pools: dict[str, Any], software: dict[str, str], **settings: object) -> list[Problem]:
    stack: dict[str, object] = {"environment": "dev", "cluster": {"provider": "existing"}, "gpuPools": list(pools)}
    stack |= {"gpuSoftware": software} | settings
    return validate(EstateSpec, stack, Source("Pulumi.test.yaml", stack))[1]


class TestServed:
    def test_nothing_is_installed_unless_told_so(self) -> None:
        assert set(dict(GpuSoftwareSpec()).values()) == {"existing"}

    @pytest.mark.parametrize("mode", POOLS)
    @pytest.mark.parametrize("part", PARTS)
    def test_a_part_is_accepted_exactly_where_it_serves_a_pool(self, part: str, mode: str) -> None:
        serves = {"devicePlugin": {"whole", "mig", "timeSlicing"}, "dcgmExporter": set(POOLS), "hami": {"hami"}}
        found = check(POOLS[mode], software={part: "managed"})
        assert [problem.field for problem in found] == ([] if mode in serves[part] else [f"gpuSoftware.{part}"])

    def test_without_pools_every_part_is_refused_at_once(self) -> None:
        found = check(software=dict.fromkeys(PARTS, "managed"))
        assert [problem.field for problem in found] == [f"gpuSoftware.{part}" for part in PARTS]
        assert all(problem.fix for problem in found)

    def test_another_owner_is_refused(self) -> None:
        (problem,) = check(POOLS["whole"], software={"devicePlugin": "operator"})
        assert (problem.field, problem.allowed) == ("gpuSoftware.devicePlugin", "managed, existing")

    def test_models_do_not_live_where_pods_get_at_the_node(self) -> None:
        (problem,) = check(POOLS["whole"], software={"devicePlugin": "managed"}, namespace="gpu-system")
        assert problem.field == "namespace"
        assert not check(POOLS["whole"], software={}, namespace="gpu-system")


class TestHami:
    SECOND = POOLS["hami"] | {"name": "other"}

    @pytest.mark.parametrize("differs", [{"split": 5}, {"memoryScaling": 2.0}])
    def test_two_pools_that_split_cards_differently_are_refused(self, differs: dict[str, Any]) -> None:
        (problem,) = check(POOLS["hami"], self.SECOND | differs, software={"hami": "managed"})
        assert problem.field == "gpuPools"
        assert next(iter(differs)) in problem.message
        assert not check(POOLS["hami"], self.SECOND | differs, software={})

    def test_two_pools_that_split_them_alike_are_accepted(self) -> None:
        alike = {"split": 5, "memoryScaling": 2.0}
        assert not check(POOLS["hami"] | alike, self.SECOND | alike, software={"hami": "managed"})

    def test_the_embedded_plane_has_nobody_to_answer_its_webhook(self) -> None:
        (problem,) = check(POOLS["hami"], software={"hami": "managed"}, cluster={"provider": "embedded"})
        assert problem.field == "gpuSoftware.hami"
        assert "provider: existing" in problem.fix

    @pytest.mark.parametrize("mode", POOLS)
    @pytest.mark.parametrize("owner", ["managed", "existing"])
    def test_only_pods_of_its_pools_are_for_its_webhook(self, owner: str, mode: str) -> None:
        software = GpuSoftwareSpec.model_validate({"hami": owner})
        found = pod_labels(software, GpuPoolSpec.model_validate(POOLS[mode]))
        wanted = (owner, mode) == ("managed", "hami")
        assert found == ({"triton-estate.io/gpu-sharing": "hami"} if wanted else {})
        assert pod_labels(software, None) == {}


class TestCharts:
    def test_a_chart_that_is_not_installed_has_no_source(self) -> None:
        (problem,) = check(POOLS["hami"], software={}, charts={"hami": "./hami"})
        assert problem.field == "charts.hami"
        assert "gpuSoftware: {hami: managed}" in problem.fix

    def test_one_that_is_installed_may_come_from_here(self) -> None:
        assert not check(POOLS["hami"], software={"hami": "managed"}, charts={"hami": "./hami-2.10.0.tgz"})

    @pytest.mark.parametrize("source", ["hami", "https://example.com/hami.tgz", "", "/"])
    def test_a_source_that_is_no_path_is_refused(self, source: str) -> None:
        (problem,) = check(POOLS["hami"], software={"hami": "managed"}, charts={"hami": source})
        assert (problem.field, bool(problem.fix)) == ("charts.hami", True)

    def test_an_unknown_chart_is_refused(self) -> None:
        (problem,) = check(POOLS["hami"], software={"hami": "managed"}, charts={"hamii": "./hami"})
        assert problem.field == "charts.hamii"
