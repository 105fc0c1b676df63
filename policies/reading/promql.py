"""PromQL expressions, taken apart by Prometheus's own grammar."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import promql_parser as promql

# What makes of a counter something that falls again, or asks when it moved rather than how far it is.
_OF_COUNTERS: Final = frozenset({"rate", "irate", "increase", "resets", "changes", "delta", "idelta", "deriv"})
# What asks whether a series is there, and not what it says.
_OF_PRESENCE: Final = frozenset(
    {"absent", "absent_over_time", "present_over_time", "count_over_time", "timestamp", "group", "count"}
)
_FILTERS: Final = ("and", "unless")
_NAME: Final = "__name__"
# The parser's own are neither hashable nor spelt.
_OPERATORS: Final = (
    ("=", promql.MatchOp.Equal),
    ("!=", promql.MatchOp.NotEqual),
    ("=~", promql.MatchOp.Re),
    ("!~", promql.MatchOp.NotRe),
)


@lru_cache(maxsize=4096)
def parse(text: str) -> Any:  # noqa: ANN401  # the parser has one class for each form
    """An expression as a tree.

    Raises:
        ValueError: it is none; the message is the parser's.
    """
    return promql.parse(text)


def selectors(node: Any) -> Iterator[promql.VectorSelector]:  # noqa: ANN401
    """Every selector of series in an expression."""
    if isinstance(node, promql.VectorSelector):
        yield node
    for child in _children(node):
        yield from selectors(child)


def numbers(node: Any) -> Iterator[float]:  # noqa: ANN401
    """Every number that an expression spells out."""
    if isinstance(node, promql.NumberLiteral):
        yield node.val
    for child in _children(node):
        yield from numbers(child)


def metric(selector: promql.VectorSelector) -> str:
    """The metric that a selector names, empty where it has a pattern or labels only."""
    if selector.name:
        return selector.name
    return next((value for _, op, value in matchers(selector, _NAME) if op == "="), "")


def pattern(selector: promql.VectorSelector) -> str:
    """The regular expression for the names of metrics that a selector has, empty where it has none."""
    return next((value for _, op, value in matchers(selector, _NAME) if op == "=~"), "")


def matchers(selector: promql.VectorSelector, label: str = "") -> list[tuple[str, str, str]]:
    """Label, operator and value of each matcher of a selector, all or those of one label."""
    found = [*selector.matchers.matchers, *(one for group in selector.matchers.or_matchers for one in group)]
    return [(one.name, _operator(one.op), one.value) for one in found if label in ("", one.name)]


def _operator(found: promql.MatchOp) -> str:
    return next(spelt for spelt, one in _OPERATORS if one == found)


def metrics(node: Any) -> set[str]:  # noqa: ANN401
    """Names of all metrics that an expression reads."""
    return {name for selector in selectors(node) if (name := metric(selector))}


def raw(node: Any) -> Iterator[promql.VectorSelector]:  # noqa: ANN401
    """Selectors whose values are used as they are: in no rate, and not only to see whether they are there."""
    if isinstance(node, promql.VectorSelector):
        yield node
        return
    name = node.func.name if isinstance(node, promql.Call) else ""
    if isinstance(node, promql.AggregateExpr):
        name = str(node.op)
    if name in _OF_COUNTERS | _OF_PRESENCE:
        return
    if isinstance(node, promql.BinaryExpr) and str(node.op) in _FILTERS:
        yield from raw(node.lhs)
        return
    for child in _children(node):
        yield from raw(child)


def _children(node: Any) -> Iterator[Any]:  # noqa: ANN401
    for name in ("lhs", "rhs", "expr", "vector_selector", "param"):
        child = getattr(node, name, None)
        if child is not None:
            yield child
    yield from getattr(node, "args", None) or ()
