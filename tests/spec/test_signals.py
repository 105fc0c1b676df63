"""Each scaling signal: what its query reads, its unit, and the modes of sharing in which it is right."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, get_args

import promql_parser as promql
import pytest

from spec import signals
from spec.gpu import SharingMode
from spec.model import SIGNALS as FIELDS
from spec.signals import Signal, Windows

WINDOWS = Windows(gpu="5m", rate="2m")
EVERY = [one for signal in signals.SIGNALS for one in (signal, signal.older) if one]
GAUGES = {
    "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "hami_container_device_utilization_ratio",
    "Device_utilization_desc_of_container", "nv_inference_pending_request_count",
}  # fmt: skip
COUNTERS = {"nv_inference_request_success", "nv_inference_queue_duration_us"}


def parsed(signal: Signal, *matchers: str) -> list[Any]:
    """Every part of the signal's query."""
    return list(nodes(promql.parse(signal.query(matchers, [signal.pod_label], WINDOWS))))


def nodes(node: Any) -> Iterator[Any]:
    yield node
    children = [getattr(node, name, None) for name in ("lhs", "rhs", "expr", "vector_selector")]
    for child in [*children, *getattr(node, "args", [])]:
        if child is not None:
            yield from nodes(child)


def called(found: list[Any], name: str) -> list[Any]:
    return [one for one in found if isinstance(one, promql.Call) and one.func.name == name]


def selectors(found: list[Any]) -> list[Any]:
    return [one for one in found if isinstance(one, promql.VectorSelector)]


@pytest.mark.parametrize("signal", EVERY, ids=lambda one: one.series)
class TestQuery:
    def test_it_reads_series_that_exist_and_the_one_that_finds_it(self, signal: Signal) -> None:
        read = {one.name for one in selectors(parsed(signal))}
        assert signal.series in read
        assert read <= GAUGES | COUNTERS

    def test_every_counter_stands_in_a_rate_with_its_range_and_no_gauge_does(self, signal: Signal) -> None:
        found = parsed(signal)
        rates = [one.args[0] for one in called(found, "rate")]
        assert {one.vector_selector.name for one in rates} == {one.name for one in selectors(found)} & COUNTERS
        assert len(rates) == len([one for one in selectors(found) if one.name in COUNTERS])
        assert all(one.range.total_seconds() == 120 for one in rates)

    def test_gpu_use_is_a_mean_over_the_window(self, signal: Signal) -> None:
        means = called(parsed(signal), "avg_over_time")
        assert len(means) == (1 if signal.field == "gpu" else 0)
        assert all(one.args[0].range.total_seconds() == 300 for one in means)

    def test_every_selector_carries_every_matcher_and_asks_for_a_pod(self, signal: Signal) -> None:
        matchers = (f'{signal.namespace_label}="vision"', 'x="1"')
        for one in selectors(parsed(signal, *matchers)):
            asked = [(each.name, each.op, each.value) for each in one.matchers.matchers]
            equal, unequal = promql.MatchOp.Equal, promql.MatchOp.NotEqual
            wanted = [(signal.namespace_label, equal, "vision"), ("x", equal, "1"), (signal.pod_label, unequal, "")]
            assert len(asked) == 3
            assert all(each in asked for each in wanted)

    def test_no_namespace_is_in_it(self, signal: Signal) -> None:
        assert not re.search(r'namespace\w*="', signal.template)

    def test_no_divisor_has_a_floor(self, signal: Signal) -> None:
        found = parsed(signal)
        assert not [one for one in found if isinstance(one, promql.Call) and one.func.name.startswith("clamp")]
        for one in found:
            if isinstance(one, promql.BinaryExpr) and str(one.op) == "/":
                divisor = one.rhs
                guarded = isinstance(divisor, promql.ParenExpr) and str(divisor.expr.op) == ">"
                assert guarded or divisor.val in {100, 1000}

    def test_braces_and_parentheses_are_balanced(self, signal: Signal) -> None:
        query = signal.query([], [], WINDOWS)
        assert all(query.count(one) == query.count(other) for one, other in ("()", "{}", "[]"))


class TestUnits:
    @pytest.mark.parametrize("signal", EVERY, ids=lambda one: one.series)
    def test_only_percents_are_divided_by_a_hundred(self, signal: Signal) -> None:
        assert signal.template.endswith("/ 100") == (
            signal.series in GAUGES - {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "nv_inference_pending_request_count"}
        )

    def test_microseconds_become_milliseconds_where_the_name_says_so(self) -> None:
        for signal in EVERY:
            assert ("/ 1000" in signal.template) == signal.metric.endswith("_ms") == (signal.unit == "ms")

    @pytest.mark.parametrize("signal", EVERY, ids=lambda one: one.series)
    def test_a_target_is_in_percent_only_where_the_metric_is_a_ratio(self, signal: Signal) -> None:
        assert signal.target_unit == (Decimal("0.01") if signal.unit == "ratio" else 1)


class TestModes:
    @pytest.mark.parametrize(
        ("mode", "series"),
        [("whole", "DCGM_FI_DEV_GPU_UTIL"), ("mig", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
         ("hami", "hami_container_device_utilization_ratio"), ("timeSlicing", None), ("qgpu", None), (None, None)],
    )  # fmt: skip
    def test_gpu_use_comes_from_the_series_that_is_right_for_the_mode(
        self, mode: SharingMode | None, series: str | None
    ) -> None:
        found = signals.signal("gpu", mode)
        assert (found.series if found else None) == series

    @pytest.mark.parametrize("mode", [None, *get_args(SharingMode)])
    def test_what_triton_counts_is_right_in_every_mode(self, mode: SharingMode | None) -> None:
        for name in ("qps", "queue_ms", "pending"):
            found = signals.signal(name, mode)
            assert found is not None
            assert (found.field, found.model_label) == (name, "model")

    @pytest.mark.parametrize("name", ["cpu", "memory"])
    def test_what_kubernetes_measures_has_none(self, name: str) -> None:
        assert signals.signal(name, "whole") is None

    def test_every_signal_is_behind_a_field_of_the_model_file(self) -> None:
        assert {one.field for one in EVERY} == set(FIELDS) - {"cpu", "memory"}

    def test_metrics_have_names_of_their_own_except_for_an_older_exporter(self) -> None:
        metrics = [one.metric for one in signals.SIGNALS]
        assert len(set(metrics)) == len(metrics)
        assert all(one.older is None or one.older.metric == one.metric for one in EVERY)
