"""What can be wrong with a rule of a metrics adapter."""

from collections.abc import Iterator
from typing import Final

from policies.judging.view import dig
from policies.reading import promql
from policies.reading.adapters import GROUP_BY, MATCHERS, AdapterRule

# What makes a regular expression more than a list of names.
_OPEN: Final = frozenset(".*+[(")


def problems(rule: AdapterRule) -> Iterator[str]:
    """Everything that keeps a rule from working for each namespace and pod."""
    if rule.lacks(MATCHERS):
        yield "has no <<.LabelMatchers>> in metricsQuery: every pod gets the value of all"
    # Of an external metric the API gives one value, which names nobody.
    if rule.lacks(GROUP_BY) and not rule.external:
        yield "has no <<.GroupBy>> in metricsQuery: no value names its pod"
    yield from _labels(rule)
    yield from _expressions(rule)


def _labels(rule: AdapterRule) -> Iterator[str]:
    named, template = set(rule.overrides().values()), dig(rule.fields, "resources", "template")
    if template or rule.external:
        return
    if not named:
        yield "has neither overrides nor a template in resources: its metric belongs to nothing"
    elif "pod" in named and "namespace" not in named:
        yield "has an override for pod and none for namespace"
    elif named == {"namespace"}:
        yield "has an override for namespace and none for pod"


def _expressions(rule: AdapterRule) -> Iterator[str]:
    labels = {"namespace", *(label for label, resource in rule.overrides().items() if resource == "namespace")}
    for field in ("seriesQuery", "metricsQuery"):
        try:
            tree = rule.found if field == "seriesQuery" else rule.asked
        except ValueError as error:
            yield f"has a {field} that is no PromQL: {error}"
            if field == "seriesQuery":
                return  # the other holds what this one finds
            continue
        matchers = [one for selector in promql.selectors(tree) for one in promql.matchers(selector)]
        fixed = {
            value
            for label, op, value in matchers
            if label in labels and op in ("=", "=~") and value and not _OPEN & set(value)
        }
        if fixed:
            yield f"has the fixed namespace {', '.join(sorted(fixed))} in {field}"
