"""Models with alerts of every kind, and what the expressions of their alerts say and give."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import promql_parser as promql

from tests.components.conftest import Render

SUMMARIES = "server: {metrics-config: [summary_latencies=true]}\n"
LIMITS = "alerts: {owner: night-shift, errorRatioPercent: 0.5, queueToComputePercent: 50, p99Ms: 0.25}\n"
MODELS = {
    "plain": "",
    "beating": "heartbeat: {}\n",
    "twin": "",
    "fixed": "scaling: {min: 2, max: 2}\n",
    "slow": f"{SUMMARIES}{LIMITS}loadTime: 10m\nscaling: {{max: 4, cpu: 50, scaleDownStabilization: 1h}}\n",
    "many": "revisions: {v1: {}, v2: {alerts: {errorRatioPercent: 1}}}\ntraffic: {split: {v1: 90, v2: 10}}\n",
}


def rules(found: Render, name: str = "") -> list[dict[str, Any]]:
    """The alerts, all or those of one revision."""
    objects = [one for one in found.objects("PrometheusRule") if not name or one["metadata"]["name"] == name]
    return [rule for one in objects for group in one["spec"]["groups"] for rule in group["rules"]]


def alert(found: Render, name: str, revision: str, severity: str = "") -> dict[str, Any]:
    (rule,) = [
        rule
        for rule in rules(found, revision)
        if rule["alert"] == name and (not severity or rule["labels"]["severity"] == severity)
    ]
    return rule


def nodes(expression: str) -> Iterator[Any]:
    """Every part of an expression, in Prometheus's own grammar."""
    waiting: list[Any] = [promql.parse(expression)]
    while waiting:
        node = waiting.pop()
        yield node
        children = [getattr(node, name, None) for name in ("lhs", "rhs", "expr", "vector_selector")]
        waiting += [child for child in [*children, *getattr(node, "args", [])] if child is not None]


def selectors(expression: str) -> dict[str, list[dict[str, str]]]:
    """The series that an expression reads: metric -> what each selector of it asks for."""
    result: dict[str, list[dict[str, str]]] = {}
    for node in nodes(expression):
        if isinstance(node, promql.VectorSelector):
            asked = {one.name: one.value for one in node.matchers.matchers if one.op == promql.MatchOp.Equal}
            result.setdefault(node.name or "", []).append(asked)
    return result


def seconds(duration: str) -> float:
    return promql.parse_duration(duration).total_seconds()


def value(node: Any, rates: Mapping[str, Mapping[str, float]]) -> Any:
    """What an expression of rates gives: a number, or a number by model."""
    if isinstance(node, promql.NumberLiteral):
        return node.val
    if isinstance(node, promql.ParenExpr):
        return value(node.expr, rates)
    if isinstance(node, promql.AggregateExpr):
        return dict(rates[node.expr.args[0].vector_selector.name])
    left, right = value(node.lhs, rates), value(node.rhs, rates)
    pairs = [(key, one, right[key] if isinstance(right, dict) else right) for key, one in left.items()
             if not isinstance(right, dict) or key in right]  # fmt: skip
    if str(node.op) == ">":
        return {key: one for key, one, two in pairs if one > two}
    if str(node.op) == "/":
        return {key: one / two if two else math.nan if not one else math.inf for key, one, two in pairs}
    assert str(node.op) == "+"
    return {key: one + two for key, one, two in pairs}
