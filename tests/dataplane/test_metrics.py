"""A real server exposes each metric that rules may use, with the labels that they match on."""

import time
from collections.abc import Mapping

import pytest

from tests.dataplane.metrics import COUNTERS, GAUGES, METRICS, SUMMARIES, Samples, samples, total
from tests.dataplane.serving import Service

REQUESTS = 5
# What the model does on these values.
REFUSE, RAISE = -1, -2


def ask(service: Service, value: int) -> int:
    tensor = {"name": "needed", "datatype": "INT32", "shape": [2, 2], "data": [value] * 4}
    return service.http("/v2/models/corners/infer", {"inputs": [tensor]})[0]


def settled(service: Service) -> Samples:
    """Metrics that stand still: Triton counts a request a moment after it has answered."""
    before, now = None, [one for one in samples(service.metrics()) if one[0] in METRICS]
    # As text: the quantiles of a model without recent requests are NaN, which is equal to nothing.
    limit = time.monotonic() + 30
    while repr(before) != repr(now):
        assert time.monotonic() < limit, "the metrics never stand still"
        time.sleep(0.3)
        before, now = now, [one for one in samples(service.metrics()) if one[0] in METRICS]
    return now


@pytest.fixture(scope="module")
def grown(services: Mapping[str, Service]) -> tuple[Samples, Samples]:
    """Metrics before and after some good requests of two items each, and one that raises."""
    service = services["corners"]
    before = settled(service)
    assert [ask(service, 1) for _ in range(REQUESTS)] == [200] * REQUESTS
    assert ask(service, RAISE) == 500
    return before, settled(service)


def growth(grown: tuple[Samples, Samples], name: str, **labels: str) -> float:
    before, after = (total(found, name, model="corners", **labels) for found in grown)
    return after - before


def test_every_metric_is_exposed(metric_names: frozenset[str]) -> None:
    assert sorted(METRICS - metric_names) == []


def test_every_metric_tells_model_and_version(grown: tuple[Samples, Samples]) -> None:
    found = [(name, labels) for name, labels, _ in grown[1] if name in METRICS]
    assert {name for name, _ in found} == METRICS
    assert [(name, labels) for name, labels in found if not {"model", "version"} <= labels.keys()] == []


def test_requests_are_counted_as_requests_and_as_items(grown: tuple[Samples, Samples]) -> None:
    assert growth(grown, "nv_inference_request_success") == REQUESTS
    assert growth(grown, "nv_inference_count") == 2 * REQUESTS
    # Executions also count where they failed; one after the other, nothing was batched.
    assert growth(grown, "nv_inference_exec_count") == REQUESTS + 1


def test_failures_tell_their_reason(grown: tuple[Samples, Samples]) -> None:
    assert growth(grown, "nv_inference_request_failure") == 1
    assert growth(grown, "nv_inference_request_failure", reason="BACKEND") == 1


def test_an_error_that_a_python_model_returns_counts_as_a_success(services: Mapping[str, Service]) -> None:
    # Only exceptions are failures to the Python backend: an alert on failures cannot see what a model refuses.
    before = settled(services["corners"])
    assert ask(services["corners"], REFUSE) == 500
    grown = (before, settled(services["corners"]))
    assert growth(grown, "nv_inference_request_failure") == 0
    assert growth(grown, "nv_inference_request_success") == 1


@pytest.mark.parametrize("name", sorted(name for name in COUNTERS if name.endswith("_us")))
def test_every_duration_grows(name: str, grown: tuple[Samples, Samples]) -> None:
    assert growth(grown, name) > 0


def test_nothing_waits_when_all_is_answered(grown: tuple[Samples, Samples]) -> None:
    (gauge,) = GAUGES
    assert total(grown[1], gauge, model="corners") == 0


def test_summaries_count_requests_and_give_a_99th_percentile(grown: tuple[Samples, Samples]) -> None:
    assert growth(grown, "nv_inference_request_summary_us_count") == REQUESTS
    # Of the version that answered: a version without recent requests has NaN.
    found = total(grown[1], "nv_inference_request_summary_us", model="corners", version="3", quantile="0.99")
    assert found > 0


def test_summaries_are_there_only_where_they_are_asked_for(services: Mapping[str, Service]) -> None:
    found = {name for name, _, _ in samples(services["mobilenet"].metrics())}
    assert not found & SUMMARIES


def test_the_version_label_is_the_version_that_answered(grown: tuple[Samples, Samples]) -> None:
    assert growth(grown, "nv_inference_request_success", version="3") == REQUESTS
    assert growth(grown, "nv_inference_request_success", version="1") == 0
