"""Replicas and signals: the defaults of each environment and GPU mode, and signals that cannot be right."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.estate import Environment, GpuPoolSpec
from spec.gpu import SharingMode
from spec.model import ScalingSpec
from spec.problems import Problem
from spec.scaling import Scaling, resolve_scaling

SHARED: tuple[SharingMode, ...] = ("timeSlicing", "hami", "qgpu")
OWN: tuple[SharingMode, ...] = ("whole", "mig")


def pool(sharing: SharingMode | None) -> GpuPoolSpec | None:
    if sharing is None:
        return None
    more: dict[SharingMode, dict[str, object]] = {"mig": {"migProfile": "1g.10gb"}, "timeSlicing": {"slices": 4}}
    fields = {"name": "gpus", "gpuModel": "A100", "gpuMemory": "80Gi", "sharing": sharing} | more.get(sharing, {})
    return GpuPoolSpec.model_validate(fields)


def resolve(environment: Environment = "dev", sharing: SharingMode | None = None, **fields: Any) -> Scaling:
    scaling, problems = resolve_scaling(ScalingSpec.model_validate(fields), environment, pool(sharing))
    assert problems == []
    assert scaling is not None
    return scaling


def refusals(environment: Environment = "dev", sharing: SharingMode | None = None, **fields: Any) -> list[Problem]:
    scaling, problems = resolve_scaling(ScalingSpec.model_validate(fields), environment, pool(sharing))
    assert scaling is None
    assert all(problem.fix and problem.allowed for problem in problems)
    return problems


class TestReplicas:
    @pytest.mark.parametrize(
        ("environment", "fields", "low", "high"),
        [
            ("dev", {}, 1, 2), ("prod", {}, 3, 9),
            ("dev", {"min": 2}, 2, 4), ("prod", {"min": 2}, 2, 6), ("prod", {"min": 5}, 5, 15),
            ("dev", {"max": 5}, 1, 5), ("prod", {"max": 5}, 3, 5), ("prod", {"max": 2}, 2, 2),
            ("dev", {"min": 1, "max": 1}, 1, 1), ("prod", {"min": 4, "max": 7}, 4, 7),
        ],
    )  # fmt: skip
    def test_what_is_left_out_comes_from_the_environment(
        self, environment: Environment, fields: dict[str, Any], low: int, high: int
    ) -> None:
        scaling = resolve(environment, **fields)
        assert (scaling.min, scaling.max) == (low, high)

    @given(st.sampled_from(["dev", "prod"]), st.integers(1, 1000) | st.none(), st.integers(1, 1000) | st.none())
    def test_there_are_never_more_at_least_than_at_most(
        self, environment: Environment, low: int | None, high: int | None
    ) -> None:
        if low is not None and high is not None and low > high:
            low, high = high, low
        scaling = resolve(environment, min=low, max=high)
        assert 1 <= scaling.min <= scaling.max
        assert low in {None, scaling.min}
        assert high in {None, scaling.max}

    def test_the_same_number_twice_is_fixed_and_has_no_signal(self) -> None:
        scaling = resolve(min=2, max=2)
        assert scaling.fixed
        assert scaling.targets == {}

    def test_a_range_always_has_a_signal(self) -> None:
        assert not resolve().fixed
        assert resolve().targets


class TestDefaultSignal:
    @pytest.mark.parametrize("environment", ["dev", "prod"])
    @pytest.mark.parametrize(
        ("sharing", "targets"),
        [(None, {"cpu": 70}), ("whole", {"gpu": 70}), ("mig", {"gpu": 70}), ("timeSlicing", {"queue_ms": 10}),
         ("hami", {"queue_ms": 10}), ("qgpu", {"queue_ms": 10})],
    )  # fmt: skip
    def test_it_is_one_that_can_be_right_for_the_mode(
        self, environment: Environment, sharing: SharingMode | None, targets: dict[str, float]
    ) -> None:
        assert resolve(environment, sharing).targets == targets

    def test_written_signals_replace_it(self) -> None:
        assert resolve(sharing="whole", qps=300, queueMs=5).targets == {"qps": 300, "queue_ms": 5}

    def test_signals_come_in_one_order(self) -> None:
        written: dict[str, Any] = {"memory": 80, "cpu": 50, "queueMs": 5, "qps": 300, "gpu": 70}
        assert list(resolve(sharing="whole", **written).targets) == ["gpu", "qps", "queue_ms", "cpu", "memory"]


class TestWindows:
    def test_by_default_up_at_once_and_down_slowly(self) -> None:
        assert (resolve().up_seconds, resolve().down_seconds) == (0, 300)

    @pytest.mark.parametrize(
        ("written", "seconds"), [("600s", 600), ("10m", 600), ("1h", 3600), ("0s", 0), ("2000ms", 2)]
    )
    def test_a_written_one_is_taken(self, written: str, seconds: int) -> None:
        assert resolve(scaleUpStabilization=written).up_seconds == seconds
        assert resolve(scaleDownStabilization=written).down_seconds == seconds

    @pytest.mark.parametrize("name", ["scaleUpStabilization", "scaleDownStabilization"])
    @pytest.mark.parametrize("written", ["1500ms", "3601s", "2h"])
    def test_what_kubernetes_does_not_take_is_refused(self, name: str, written: str) -> None:
        window: dict[str, Any] = {name: written}
        (problem,) = refusals(**window)
        assert (problem.field, problem.value, problem.allowed) == (name, written, "whole seconds, 0s to 1h")


class TestSignalsThatCannotBeRight:
    @pytest.mark.parametrize("sharing", SHARED)
    def test_gpu_use_of_a_shared_card_is_refused_with_the_alternatives(self, sharing: SharingMode) -> None:
        (problem,) = refusals(sharing=sharing, gpu=60)
        assert (problem.field, problem.value) == ("gpu", 60)
        assert problem.allowed == "qps, queueMs, cpu or memory"
        assert sharing in problem.message
        assert "queueMs: 5" in problem.fix
        assert "qps" in problem.fix

    @pytest.mark.parametrize("sharing", OWN)
    def test_gpu_use_of_an_own_card_or_slice_is_fine(self, sharing: SharingMode) -> None:
        assert resolve(sharing=sharing, gpu=60).targets == {"gpu": 60}

    def test_a_cpu_model_has_no_gpu_use(self) -> None:
        (problem,) = refusals(gpu=60)
        assert problem.field == "gpu"
        assert problem.message == "a CPU model has no GPU utilisation"

    @pytest.mark.parametrize("sharing", [None, *OWN, *SHARED])
    def test_every_other_signal_works_everywhere(self, sharing: SharingMode | None) -> None:
        assert len(resolve(sharing=sharing, qps=1, queueMs=1, cpu=1, memory=1).targets) == 4

    @pytest.mark.parametrize(
        ("written", "shown"),
        [({"qps": 5}, "qps"), ({"queueMs": 5}, "queueMs"), ({"cpu": 50}, "cpu"),
         ({"scaleUpStabilization": "0s"}, "scaleUpStabilization"),
         ({"scaleDownStabilization": "5s"}, "scaleDownStabilization")],
    )  # fmt: skip
    def test_nothing_is_accepted_that_a_fixed_number_would_ignore(self, written: dict[str, Any], shown: str) -> None:
        (problem,) = refusals(min=2, max=2, **written)
        assert problem.message == f"min and max are both 2, so {shown} would do nothing"

    def test_a_number_that_the_environment_fixes_is_named(self) -> None:
        (problem,) = refusals("prod", max=3, qps=100)
        assert problem.message == "min and max are both 3, so qps would do nothing"

    def test_all_of_it_is_told_at_once(self) -> None:
        problems = refusals(sharing="hami", min=1, max=1, gpu=60, scaleUpStabilization="2h")
        assert [problem.field for problem in problems] == ["gpu", "", "scaleUpStabilization"]
