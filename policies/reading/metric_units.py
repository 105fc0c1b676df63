"""Whether the targets of an autoscaler are in the unit of their metric, and in the form that the API takes."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from policies.judging.view import Resource, dig
from policies.reading import promql
from policies.reading.autoscalers import Autoscaler
from policies.reading.cards import quantity
from spec.signals import SIGNALS

# Type of a metric -> the field that describes it, and the kinds of target that it knows (autoscaling/v2).
_SOURCES: Final = {
    "Resource": ("resource", ("Utilization", "AverageValue")),
    "ContainerResource": ("containerResource", ("Utilization", "AverageValue")),
    "Pods": ("pods", ("AverageValue",)),
    "Object": ("object", ("Value", "AverageValue")),
    "External": ("external", ("Value", "AverageValue")),
}
_TARGETS: Final = {"Utilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}
# Of autoscaling/v2beta1; a current API server drops them without a word.
_OLD_FIELDS: Final = (
    *("metricName", "metricSelector", "targetAverageUtilization", "targetAverageValue", "targetValue", "averageValue"),
    "container_name",
)
_OWN_RATIOS: Final = frozenset(
    one.metric for found in SIGNALS for one in (found, found.older) if one and one.unit == "ratio"
)
# Series from 0 to 1: Triton's own, and those of DCGM's family PROF that tell how long something was busy.
_RATIO: Final = re.compile(r"nv_(gpu|cpu)_utilization|DCGM_FI_PROF_\w+_(ACTIVE|OCCUPANCY)", re.IGNORECASE)
_PERCENT: Final = re.compile(r"DCGM_FI_DEV_\w+_UTIL", re.IGNORECASE)
# More than the cards of one pod add up to.
_SURELY_PERCENT: Final = 10
_CONTAINER_TRIGGERS: Final = ("cpu", "memory")


def hpa(found: Resource) -> Iterator[str]:
    """What is wrong with the metrics of a HorizontalPodAutoscaler."""
    if found.api.startswith("autoscaling/v2beta"):
        yield f"apiVersion {found.api} is gone since Kubernetes 1.26"
        return
    for index, metric in enumerate(found.at("spec", "metrics", default=[])):
        for message in _metric(metric):
            yield f"metrics[{index}] {message}"


def _metric(metric: Mapping[str, Any]) -> Iterator[str]:
    kind = dig(metric, "type", default="")
    if kind not in _SOURCES:
        yield f"has type {kind!r}, which autoscaling/v2 does not know"
        return
    field, allowed = _SOURCES[kind]
    source = dig(metric, field)
    if source is None:
        yield f"has type {kind} and no field {field}"
        return
    old = [name for name in _OLD_FIELDS if name in source]
    if old:
        yield f"has the fields {', '.join(old)} of autoscaling/v2beta1, which a server of today drops"
        return
    name = dig(source, "metric", "name", default="") or dig(source, "name", default="")
    yield from _target(kind, name, dig(source, "target", default={}), allowed)
    selector = dig(source, "metric", "selector", default={})
    if kind == "External" and not (dig(selector, "matchLabels") or dig(selector, "matchExpressions")):
        yield f"asks for the external metric {name} without a selector: its value belongs to all who report it"


def _target(kind: str, name: str, target: Mapping[str, Any], allowed: tuple[str, ...]) -> Iterator[str]:
    form = dig(target, "type", default="")
    if form not in allowed:
        yield f"is a {kind} metric with target type {form!r}; it knows {' and '.join(allowed)}"
        return
    value = dig(target, _TARGETS[form])
    if value is None:
        yield f"has target type {form} and no {_TARGETS[form]}"
    elif form != "Utilization":
        yield from _unit(name, value)


def _unit(name: str, value: object) -> Iterator[str]:
    wanted = quantity(value)
    if wanted is None:
        yield f"has the target {value!r} for {name}, which is no quantity"
    elif (name in _OWN_RATIOS or _RATIO.fullmatch(name)) and wanted > 1:
        yield f"wants {value} of {name}, a ratio from 0 to 1; {_hint(wanted)}"
    elif _PERCENT.fullmatch(name) and wanted <= 1:
        yield f"wants {value} of {name}, which goes from 0 to 100"


def _hint(wanted: Decimal) -> str:
    return f"{wanted:g} % is {int(wanted * 10)}m" if wanted <= 100 else "all of it is 1"


def keda(found: Autoscaler) -> Iterator[str]:
    """What is wrong with the triggers of a ScaledObject."""
    for index, trigger in enumerate(found.triggers):
        for message in _trigger(trigger):
            yield f"triggers[{index}] {message}"


def _trigger(trigger: Mapping[str, Any]) -> Iterator[str]:
    kind, form = dig(trigger, "type", default=""), dig(trigger, "metricType", default="")
    if kind in _CONTAINER_TRIGGERS and form == "Value":
        yield f"is a {kind} trigger with metricType Value; it knows Utilization and AverageValue"
    if kind not in _CONTAINER_TRIGGERS and form == "Utilization":
        yield f"is a {kind} trigger with metricType Utilization, which is for cpu and memory only"
    if kind == "prometheus":
        yield from _prometheus(trigger, average=form != "Value")


def _prometheus(trigger: Mapping[str, Any], *, average: bool) -> Iterator[str]:
    threshold = dig(trigger, "metadata", "threshold")
    wanted = quantity(threshold) if threshold is not None else None
    if wanted is None:
        yield f"has the threshold {threshold!r}, which is no number"
        return
    try:
        asked = promql.parse(dig(trigger, "metadata", "query", default=""))
    except ValueError as error:
        yield f"has a query that is no PromQL: {error}"
        return
    found = list(promql.selectors(asked))
    if found and not any(op != "!=" for one in found for label, op, _ in promql.matchers(one) if label != "__name__"):
        yield "asks for the series of everybody: no matcher of its query names the workload or its namespace"
    name = dig(trigger, "name", default="")
    if name in _OWN_RATIOS and average and wanted > 1:
        yield f"wants {threshold} of {name}, a ratio from 0 to 1; {_hint(wanted)}"
    elif _only_ratios(asked) and average and wanted >= _SURELY_PERCENT:
        yield f"wants {threshold} of {', '.join(sorted(promql.metrics(asked)))}, a ratio from 0 to 1; {_hint(wanted)}"


def _only_ratios(asked: Any) -> bool:  # noqa: ANN401  # the parser's
    """Whether an expression reads ratios, and makes no percents of them."""
    metrics = promql.metrics(asked)
    return bool(metrics) and all(_RATIO.fullmatch(one) for one in metrics) and 100 not in promql.numbers(asked)
