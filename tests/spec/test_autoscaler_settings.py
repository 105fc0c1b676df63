"""Who measures for the autoscalers: windows, relist and scrapes fit together, and nothing is set in vain."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec import autoscaler
from spec.autoscaler import AutoscalerSpec
from spec.estate import EstateSpec
from spec.fields import duration_seconds
from spec.problems import Problem
from spec.source import Source
from spec.validation import validate

PROMETHEUS = {"prometheus": {"provider": "existing", "url": "http://prometheus.obs.svc:9090"}}
ADAPTER = {"provider": "managed"}


def settings(interval: str = "15s", **written: Any) -> tuple[EstateSpec | None, list[Problem]]:
    document = {"environment": "dev", "monitoring": PROMETHEUS | {"scrapeInterval": interval}, "autoscaler": written}
    return validate(EstateSpec, document, Source("Pulumi.dev.yaml", document))


def accepted(interval: str = "15s", **written: Any) -> EstateSpec:
    estate, problems = settings(interval, **written)
    assert problems == []
    assert estate is not None
    return estate


def refused(interval: str = "15s", **written: Any) -> list[Problem]:
    estate, problems = settings(interval, **written)
    assert estate is None
    assert all(problem.fix for problem in problems)
    return problems


class TestRelist:
    def test_one_shorter_than_a_scrape_is_refused(self) -> None:
        (problem,) = refused("30s", relistInterval="10s", **ADAPTER)
        assert (problem.field, problem.value, problem.allowed) == ("autoscaler.relistInterval", "10s", "30s to 10m")
        assert "one scrape (30s)" in problem.message
        assert problem.fix == "write 30s, or leave it out"

    @pytest.mark.parametrize(("interval", "relist"), [("15s", "30s"), ("30s", "30s"), ("1s", "1s"), ("2m", "10m")])
    def test_one_that_takes_a_scrape_is_accepted(self, interval: str, relist: str) -> None:
        estate = accepted(interval, relistInterval=relist, **ADAPTER)
        assert autoscaler.relist_interval(estate.autoscaler, estate.monitoring) == relist

    def test_a_lazy_one_is_refused(self) -> None:
        (problem,) = refused(relistInterval="11m", **ADAPTER)
        assert problem.message == "longer than useful"

    @pytest.mark.parametrize(("interval", "relist"), [("15s", "30s"), ("30s", "30s"), ("45s", "45s"), ("2m", "2m")])
    def test_by_default_it_follows_the_scrapes(self, interval: str, relist: str) -> None:
        estate = accepted(interval, **ADAPTER)
        assert autoscaler.relist_interval(estate.autoscaler, estate.monitoring) == relist

    @given(st.integers(1, 120), st.integers(1, 600))
    def test_it_is_accepted_exactly_where_no_metric_comes_and_goes(self, scrape: int, relist: int) -> None:
        estate, problems = settings(f"{scrape}s", relistInterval=f"{relist}s", **ADAPTER)
        assert (estate is not None) == (relist >= scrape)
        if estate is None:
            assert [problem.field for problem in problems] == ["autoscaler.relistInterval"]
            return
        age = duration_seconds(autoscaler.metrics_age(estate.autoscaler, estate.monitoring))
        # The adapter does not start with an age below its relist interval.
        assert age >= max(relist, 4 * scrape)


class TestWindows:
    @pytest.mark.parametrize(
        ("interval", "written", "gpu", "rate"),
        [
            ("15s", {}, "5m", "2m"),
            ("30s", {}, "5m", "2m"),
            ("31s", {}, "5m", "124s"),
            ("2m", {}, "5m", "8m"),
            ("15s", {"rateWindow": "1m", "gpuWindow": "30s"}, "30s", "1m"),
            ("15s", {"rateWindow": "1h", "gpuWindow": "1h"}, "1h", "1h"),
        ],
    )
    def test_they_hold_enough_scrapes(self, interval: str, written: dict[str, str], gpu: str, rate: str) -> None:
        estate = accepted(interval, **written, **ADAPTER)
        found = autoscaler.windows(estate.autoscaler, estate.monitoring)
        assert (found.gpu, found.rate) == (gpu, rate)

    @pytest.mark.parametrize("backend", [ADAPTER, {"backend": "keda"}])
    @pytest.mark.parametrize(
        ("interval", "written", "field", "allowed"),
        [
            ("30s", {"rateWindow": "119s"}, "autoscaler.rateWindow", "2m to 1h"),
            ("15s", {"rateWindow": "61m"}, "autoscaler.rateWindow", "1m to 1h"),
            ("15s", {"gpuWindow": "29s"}, "autoscaler.gpuWindow", "30s to 1h"),
            ("2m", {"gpuWindow": "3m"}, "autoscaler.gpuWindow", "4m to 1h"),
        ],
    )
    def test_one_that_cannot_be_right_is_refused(
        self, backend: dict[str, str], interval: str, written: dict[str, str], field: str, allowed: str
    ) -> None:
        (problem,) = refused(interval, **written, **backend)
        assert (problem.field, problem.value, problem.allowed) == (field, *written.values(), allowed)

    @pytest.mark.parametrize("interval", ["1s", "15s", "30s", "1m", "2m"])
    def test_a_stack_that_names_none_is_accepted_whatever_its_scrapes(self, interval: str) -> None:
        assert accepted(interval).autoscaler == AutoscalerSpec()

    def test_all_of_it_is_told_at_once(self) -> None:
        problems = refused("1m", rateWindow="2m", gpuWindow="1m", relistInterval="30s", **ADAPTER)
        assert len(problems) == 3


class TestNothingIsIgnored:
    @pytest.mark.parametrize(
        ("written", "fields"),
        [
            ({"relistInterval": "1m"}, {"relistInterval"}),
            ({"tls": {"issuer": "internal"}}, {"tls"}),
            ({"gpuWindow": "5m", "rateWindow": "2m"}, {"gpuWindow", "rateWindow"}),
            ({"backend": "keda", "relistInterval": "1m"}, {"relistInterval"}),
            ({"backend": "keda", "provider": "managed", "tls": {"issuer": "a"}}, {"tls"}),
        ],
    )
    def test_what_does_nothing_under_a_backend_is_refused(self, written: dict[str, Any], fields: set[str]) -> None:
        problems = refused(**written)
        assert {problem.field for problem in problems} == {f"autoscaler.{field}" for field in fields}
        assert all("does nothing" in problem.message for problem in problems)
        assert all("managed" in problem.fix for problem in problems)

    @pytest.mark.parametrize(
        "written",
        [
            {},
            {"backend": "keda"},
            {"backend": "keda", "gpuWindow": "10m", "rateWindow": "5m"},
            {"provider": "managed", "relistInterval": "1m", "tls": {"issuer": "a"}, "gpuWindow": "1m"},
        ],
    )
    def test_what_does_something_is_accepted(self, written: dict[str, Any]) -> None:
        assert accepted(**written)


class TestPrometheus:
    def test_an_adapter_of_this_stack_needs_one(self) -> None:
        document: dict[str, Any] = {"environment": "dev", "autoscaler": ADAPTER}
        _, (problem,) = validate(EstateSpec, document, Source("Pulumi.dev.yaml", document))
        assert (problem.field, problem.value) == ("autoscaler.provider", "managed")
        assert "prometheus" in problem.fix

    @pytest.mark.parametrize("written", [{}, {"backend": "keda"}, {"backend": "keda", "provider": "managed"}])
    def test_others_do_not(self, written: dict[str, str]) -> None:
        document = {"environment": "dev", "autoscaler": written}
        assert validate(EstateSpec, document, Source("Pulumi.dev.yaml", document))[1] == []
