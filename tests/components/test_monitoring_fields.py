"""Every field about monitoring does something, and a mistake in one is refused."""

from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pytest

from spec.monitoring import AlertsSpec, MonitoringSpec
from tests.components.alerting import SUMMARIES, rules
from tests.components.conftest import TENSORS, Render

Renderer = Callable[..., Render]
NO_P99 = "server: {metrics-config: [summary_latencies=true, 'summary_quantiles=0.5:0.05']}\n"
CACHED = f"config: {{backend: python, response_cache: {{enable: true}}, {TENSORS}}}\n"


class TestEveryField:
    BEFORE: Mapping[str, Any] = {"owner": "a", "errorRatioPercent": 1, "queueToComputePercent": 100, "p99Ms": 10}

    @pytest.mark.parametrize("field", [field.alias for field in AlertsSpec.model_fields.values()])
    def test_of_a_model_changes_a_rule(self, field: str, render: Renderer) -> None:
        after = {**self.BEFORE, field: "b" if field == "owner" else self.BEFORE[field] + 0.5}
        one, two = (render({"a": f"{SUMMARIES}alerts: {alerts}\n"}) for alerts in (dict(self.BEFORE), after))
        assert rules(one) != rules(two)

    def test_of_a_stack_changes_an_object(self, render: Renderer) -> None:
        values = {"operator": False, "labels": {}, "scrapeInterval": "30s", "runbooks": "https://a.example"}
        # The others change objects of their own, see test_every_input.
        assert values.keys() <= {field.alias for field in MonitoringSpec.model_fields.values()}
        before = render({"a": ""}).objects()
        for field, changed in values.items():
            assert render({"a": ""}, monitoring={field: changed}).objects() != before


class TestBadInput:
    @pytest.mark.parametrize(
        ("monitoring", "says"),
        [
            ({"operator": False, "labels": {"a": "b"}}, "monitoring.labels: does nothing without the operator"),
            ({"operator": False, "scrapeInterval": "15s"}, "monitoring.scrapeInterval: does nothing without"),
            ({"operator": False, "runbooks": "https://a.example"}, "monitoring.runbooks: does nothing without"),
            ({"labels": {"app.kubernetes.io/instance": "x"}}, "is decided by the model"),
            ({"labels": {"triton-estate.io/owner": "x"}}, "is decided by the model"),
            ({"scrapeInterval": "0s"}, "monitoring.scrapeInterval: not a scrape interval"),
            ({"scrapeInterval": "3m"}, "allowed: 1s to 2m"),
            ({"scrapeInterval": 15}, "monitoring.scrapeInterval: not a duration"),
            ({"runbooks": "git.example.com/runbooks"}, "monitoring.runbooks: not the URL of a folder"),
            ({"runbooks": "https://a.example/?at=main"}, "monitoring.runbooks: not the URL of a folder"),
            ({"operator": "yes"}, "monitoring.operator"),
            ({"scrapeIntervall": "15s"}, "did you mean scrapeInterval?"),
        ],
    )
    def test_of_a_stack(self, monitoring: dict[str, Any], says: str, render: Renderer) -> None:
        assert says in self.refusal(render, "", monitoring=monitoring)

    @pytest.mark.parametrize(
        ("more", "says"),
        [
            ("alerts: {p99Ms: 10}\n", "alerts.p99Ms: Triton reports no quantiles unless it is told to"),
            (
                f"{NO_P99}alerts: {{p99Ms: 9}}\n",
                "fix:     write summary_quantiles=0.5:0.05,0.99:0.001",
            ),
            (
                f"{SUMMARIES}{CACHED}alerts: {{p99Ms: 9}}\n",
                "no summary of a model with a response cache",
            ),
            (
                "server: {metrics-config: [counter_latencies=false]}\nalerts: {queueToComputePercent: 9}\n",
                "alerts.queueToComputePercent: counter_latencies=false keeps",
            ),
            ("alerts: {errorRatioPercent: 0}\n", "alerts.errorRatioPercent"),
            ("alerts: {errorRatioPercent: 100}\n", "alerts.errorRatioPercent"),
            ("alerts: {owner: night shift}\n", "alerts.owner: not a Kubernetes label value"),
            ("alerts: {p95Ms: 10}\n", "did you mean p99Ms?"),
        ],
    )
    def test_of_a_model(self, more: str, says: str, render: Renderer) -> None:
        assert says in self.refusal(render, more)

    def test_alerts_in_a_stack_that_makes_none(self, render: Renderer) -> None:
        text = self.refusal(render, "alerts: {errorRatioPercent: 1}\n", monitoring={"operator": False})
        assert "alerts.errorRatioPercent: this stack makes no alerts" in text
        without = {"a": {"alerts": None}}
        assert render({"a": "alerts: {errorRatioPercent: 1}\n"}, monitoring={"operator": False}, models=without)

    def refusal(self, render: Renderer, more: str, **settings: object) -> str:
        with pytest.raises(pulumi.RunError) as refused:
            render({"a": more}, **settings)
        return str(refused.value)
