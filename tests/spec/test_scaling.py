"""Replicas and signals: the defaults of each environment and GPU mode, and signals that cannot be right."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec import triton
from spec.estate import Environment, EstateSpec
from spec.gpu import SharingMode
from spec.model import RevisionSpec
from spec.pool import GpuPoolSpec
from spec.problems import Problem
from spec.scaling import Scaling, resolve_scaling
from spec.triton import ModelConfig

SHARED: tuple[SharingMode, ...] = ("timeSlicing", "hami", "qgpu")
BLIND: tuple[SharingMode, ...] = ("timeSlicing", "qgpu")
OWN: tuple[SharingMode, ...] = ("whole", "mig")
PROMETHEUS = {"prometheus": {"provider": "existing", "url": "http://prometheus.obs.svc:9090"}}
KEDA = {"autoscaler": {"backend": "keda"}, "monitoring": PROMETHEUS}
DAY = {"from": "0 9 * * *", "to": "0 21 * * *", "replicas": 2}


def pool(sharing: SharingMode | None) -> GpuPoolSpec | None:
    if sharing is None:
        return None
    more: dict[SharingMode, dict[str, object]] = {"mig": {"migProfile": "1g.10gb"}, "timeSlicing": {"slices": 4}}
    fields = {"name": "gpus", "gpuModel": "A100", "gpuMemory": "80Gi", "sharing": sharing} | more.get(sharing, {})
    return GpuPoolSpec.model_validate(fields)


def both(
    environment: Environment = "dev",
    sharing: SharingMode | None = None,
    /,
    *,
    gpu_request: object = 1,
    stack: Mapping[str, object] | None = None,
    configs: Mapping[str, ModelConfig] | None = None,
    server: Mapping[str, object] | None = None,
    name: str = "resnet",
    **fields: Any,
) -> tuple[Scaling | None, list[Problem]]:
    resources = {"cpu": 1, "memory": "2Gi"} | ({"gpu": gpu_request} if sharing else {})
    document = {"repository": "s3://acme/resnet", "resources": resources, "scaling": fields, "server": server or {}}
    estate = EstateSpec.model_validate({"environment": environment} | dict(stack or {}))
    return resolve_scaling(RevisionSpec.model_validate(document), estate, pool(sharing), name, configs or {})


def resolve(environment: Environment = "dev", sharing: SharingMode | None = None, /, **more: Any) -> Scaling:
    scaling, problems = both(environment, sharing, **more)
    assert problems == []
    assert scaling is not None
    return scaling


def refusals(environment: Environment = "dev", sharing: SharingMode | None = None, /, **more: Any) -> list[Problem]:
    scaling, problems = both(environment, sharing, **more)
    assert scaling is None
    assert all(problem.fix for problem in problems)
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
        assert resolve("dev", "whole", qps=300, queueMs=5).targets == {"qps": 300, "queue_ms": 5}

    def test_signals_come_in_one_order(self) -> None:
        written: dict[str, Any] = {"memory": 80, "cpu": 50, "pending": 4, "queueMs": 5, "qps": 300, "gpu": 70}
        assert list(resolve("dev", "whole", **written).targets) == [
            "gpu",
            "qps",
            "queue_ms",
            "pending",
            "cpu",
            "memory",
        ]


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


class TestMetrics:
    """What is measured for a signal, and the target in the metric's own unit."""

    @pytest.mark.parametrize(
        ("sharing", "written", "metric", "target"),
        [
            ("whole", {"gpu": 60}, "container_gpu_usage", "0.6"),
            ("mig", {"gpu": 60}, "container_gpu_usage_mig", "0.6"),
            ("whole", {"gpu": 1}, "container_gpu_usage", "0.01"),
            (None, {"qps": 300}, "triton_requests_per_second", "300"),
            (None, {"qps": 0.5}, "triton_requests_per_second", "0.5"),
            (None, {"queueMs": 2.5}, "triton_queue_time_per_request_ms", "2.5"),
            (None, {"pending": 8}, "triton_pending_requests", "8"),
        ],
    )
    def test_a_target_is_converted(
        self, sharing: SharingMode | None, written: dict[str, float], metric: str, target: str
    ) -> None:
        (found,) = resolve("dev", sharing, **written).metrics.values()
        assert (found.signal.metric, found.target) == (metric, Decimal(target))

    @pytest.mark.parametrize(
        ("request_", "percent", "target"),
        [
            (0.5, 70, "0.35"),
            (0.33, 70, "0.231"),
            (0.333, 70, "0.231"),
            (1, 70, "0.7"),
            ({"count": 2}, 70, "0.7"),
            ({"count": 2, "cores": 50}, 60, "0.3"),
            ({"cores": 10, "memory": "8Gi"}, 5, "0.005"),
            ({"cores": 10, "memory": "8Gi"}, 1, "0.001"),
        ],
    )
    def test_on_hami_it_is_a_percent_of_the_models_own_share(self, request_: object, percent: int, target: str) -> None:
        (found,) = resolve("dev", "hami", gpu_request=request_, gpu=percent).metrics.values()
        assert (found.signal.metric, found.target) == ("container_gpu_usage_hami", Decimal(target))

    @given(st.integers(1, 100), st.integers(1, 100))
    def test_a_share_never_asks_for_more_than_there_is(self, cores: int, percent: int) -> None:
        scaling, problems = both("dev", "hami", gpu_request={"cores": cores}, gpu=percent)
        exact = Decimal(cores * percent) / 10000
        if scaling is None:
            assert exact < Decimal("0.001")
            assert [problem.field for problem in problems] == ["gpu"]
            return
        target = scaling.metrics["gpu"].target
        assert 0 < target <= 1
        assert abs(target - exact) <= Decimal("0.0005")

    @given(st.decimals("0.001", "1000000", places=3), st.sampled_from(["qps", "queueMs", "pending"]))
    def test_other_targets_stay_as_they_are(self, value: Decimal, name: str) -> None:
        (found,) = resolve(**{name: float(value)}).metrics.values()
        assert found.target == value

    def test_a_share_that_nobody_bounds_is_refused(self) -> None:
        (problem,) = refusals("dev", "hami", gpu_request={"memory": "8Gi"}, gpu=60)
        assert (problem.field, problem.value) == ("gpu", 60)
        assert "cores" in problem.fix
        assert "qps" in problem.allowed

    def test_a_target_below_what_kubernetes_can_write_is_refused(self) -> None:
        (problem,) = refusals("dev", "hami", gpu_request={"cores": 4}, gpu=1)
        assert problem.field == "gpu"
        assert "1 % of 4%" in problem.message

    @pytest.mark.parametrize("name", ["cpu", "memory"])
    def test_what_kubernetes_measures_itself_has_none(self, name: str) -> None:
        scaling = resolve(**{name: 50})
        assert (dict(scaling.targets), dict(scaling.metrics)) == ({name: 50}, {})


def ensemble(*steps: str) -> ModelConfig:
    tensors = {"input": [{"name": "a", "data_type": "TYPE_FP32", "dims": [1]}],
               "output": [{"name": "b", "data_type": "TYPE_FP32", "dims": [1]}]}  # fmt: skip
    step = [{"model_name": name, "model_version": -1, "input_map": {"x": "a"}, "output_map": {"y": "b"}}
            for name in steps]  # fmt: skip
    config, problems = triton.parse({"platform": "ensemble", "ensemble_scheduling": {"step": step}} | tensors)
    assert problems == []
    return config


class TestModelsInsideTriton:
    @pytest.mark.parametrize("name", ["qps", "queueMs", "pending"])
    def test_only_the_served_model_counts(self, name: str) -> None:
        (metric,) = resolve(name="resnet_v2", **{name: 5}).metrics.values()
        assert metric.models == ("resnet_v2",)

    def test_gpu_use_knows_no_model(self) -> None:
        (metric,) = resolve("dev", "whole", gpu=70).metrics.values()
        assert metric.models == ()

    @pytest.mark.parametrize(
        ("configs", "waiting"),
        [
            ({"resnet": ensemble("decode", "classify")}, ("decode", "classify")),
            ({"resnet": ensemble("decode", "decode")}, ("decode",)),
            ({"resnet": ensemble("decode", "inner"), "inner": ensemble("a", "b")}, ("decode", "a", "b")),
            ({"resnet": ensemble("decode", "resnet")}, ("decode",)),
            ({"resnet": ensemble("inner"), "inner": ensemble("resnet", "a")}, ("resnet", "a")),
        ],
    )
    def test_requests_to_an_ensemble_wait_in_its_steps(
        self, configs: dict[str, ModelConfig], waiting: tuple[str, ...]
    ) -> None:
        scaling = resolve(configs=configs, qps=5, queueMs=5, pending=5)
        assert {name: metric.models for name, metric in scaling.metrics.items()} == {
            "qps": ("resnet",), "queue_ms": waiting, "pending": waiting,
        }  # fmt: skip

    @pytest.mark.parametrize("name", ["m" * 64, "model_", "model."])
    @pytest.mark.parametrize("written", [{"qps": 5}, {"queueMs": 5}, {"pending": 5}])
    def test_a_name_that_no_label_can_have_is_refused_for_an_hpa(self, name: str, written: dict[str, float]) -> None:
        (problem,) = refusals(name=name, **written)
        assert name in problem.message
        assert all(word in problem.fix for word in ("rename", "cpu", "keda"))
        assert resolve(name=name, stack=KEDA, **written)

    def test_such_a_name_is_no_trouble_for_signals_that_know_no_model(self) -> None:
        assert resolve("dev", "whole", name="model_", gpu=70, cpu=50)

    @pytest.mark.parametrize(
        "options", [["counter_latencies=false"], ["summary_latencies=true,x", "counter_latencies=false"]]
    )
    def test_queue_time_that_triton_does_not_count_is_refused(self, options: list[str]) -> None:
        server = {"metrics-config": options}
        (problem,) = refusals(server=server, queueMs=5)
        assert problem.field == "queueMs"
        assert refusals("dev", "qgpu", server=server)[0].field == "queueMs"
        assert resolve(server=server, qps=5, pending=5)


class TestKeda:
    def test_it_asks_a_prometheus(self) -> None:
        stack = {"autoscaler": {"backend": "keda"}}
        (problem,) = refusals(stack=stack, qps=5, queueMs=5, cpu=50)
        assert "qps, queueMs" in problem.message
        assert "prometheus" in problem.fix
        assert resolve(stack=stack, cpu=50)

    def test_a_schedule_needs_it(self) -> None:
        (problem,) = refusals(schedule=[DAY])
        assert (problem.field, problem.allowed) == ("schedule", "absent with backend adapter")
        assert "backend: keda" in problem.fix
        (entry,) = resolve(stack=KEDA, schedule=[DAY]).schedule
        assert (entry.start, entry.end, entry.replicas) == ("0 9 * * *", "0 21 * * *", 2)

    @pytest.mark.parametrize("replicas", [1, 2, 6, 7])
    def test_a_schedule_adds_replicas_within_the_bounds(self, replicas: int) -> None:
        (problem,) = refusals(stack=KEDA, min=2, max=5, schedule=[DAY | {"replicas": replicas}])
        assert (problem.field, problem.allowed) == ("schedule[0].replicas", "3 to 5")

    @pytest.mark.parametrize(
        ("stack", "schedule", "fixes"),
        [
            ({}, [], ["min: 1", "backend: keda", "schedule"]),
            (KEDA, [], ["schedule:", "min: 1"]),
        ],
    )
    def test_none_at_all_needs_something_to_wake_it_up(
        self, stack: dict[str, object], schedule: list[object], fixes: list[str]
    ) -> None:
        (problem,) = refusals(stack=stack, min=0, schedule=schedule)
        assert (problem.field, problem.value) == ("min", 0)
        assert all(fix in problem.fix for fix in fixes)

    @pytest.mark.parametrize(("environment", "high"), [("dev", 2), ("prod", 3)])
    def test_with_a_schedule_it_may_be_none(self, environment: Environment, high: int) -> None:
        scaling = resolve(environment, stack=KEDA, min=0, schedule=[DAY])
        assert (scaling.min, scaling.max, scaling.fixed) == (0, high, False)

    @pytest.mark.parametrize("sharing", [None, *get_args(SharingMode)])
    def test_a_model_file_means_the_same_with_either_backend(self, sharing: SharingMode | None) -> None:
        written = {"min": 2, "max": 8, "qps": 10, "queueMs": 5, "pending": 4, "cpu": 50, "scaleUpStabilization": "10s"}
        assert resolve("prod", sharing, **written) == resolve("prod", sharing, stack=KEDA, **written)


class TestSignalsThatCannotBeRight:
    @pytest.mark.parametrize("sharing", BLIND)
    def test_gpu_use_of_a_shared_card_is_refused_with_the_alternatives(self, sharing: SharingMode) -> None:
        (problem,) = refusals("dev", sharing, gpu=60)
        assert (problem.field, problem.value) == ("gpu", 60)
        assert problem.allowed == "qps, queueMs, pending, cpu or memory"
        assert sharing in problem.message
        assert "queueMs: 5" in problem.fix
        assert "qps" in problem.fix

    @pytest.mark.parametrize("sharing", OWN)
    def test_gpu_use_of_an_own_card_or_slice_is_fine(self, sharing: SharingMode) -> None:
        assert resolve("dev", sharing, gpu=60).targets == {"gpu": 60}

    def test_a_cpu_model_has_no_gpu_use(self) -> None:
        (problem,) = refusals(gpu=60)
        assert problem.field == "gpu"
        assert problem.message == "a CPU model has no GPU utilisation"

    @pytest.mark.parametrize("sharing", [None, *OWN, *SHARED])
    def test_every_other_signal_works_everywhere(self, sharing: SharingMode | None) -> None:
        assert len(resolve("dev", sharing, qps=1, queueMs=1, pending=1, cpu=1, memory=1).targets) == 5

    @pytest.mark.parametrize(
        ("written", "shown"),
        [({"qps": 5}, "qps"), ({"queueMs": 5}, "queueMs"), ({"pending": 5}, "pending"),
         ({"schedule": [DAY]}, "schedule"), ({"cpu": 50}, "cpu"),
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
        problems = refusals("dev", "qgpu", min=1, max=1, gpu=60, scaleUpStabilization="2h")
        assert [problem.field for problem in problems] == ["", "scaleUpStabilization", "gpu"]
