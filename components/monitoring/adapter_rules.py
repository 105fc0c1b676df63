"""The rules of prometheus-adapter: one for each scaling signal, in any namespace."""

from collections.abc import Iterator
from typing import Final

import yaml
from pydantic import Field

from components.crds import Part
from spec.signals import SIGNALS, Signal, Windows

# What the adapter puts in: the pods that it was asked about, and the label that names a pod.
_MATCHERS: Final = "<<.LabelMatchers>>"
_GROUP_BY: Final = "<<.GroupBy>>"


class Resource(Part):
    """The Kubernetes resource that a label names."""

    resource: str


class Resources(Part):
    """Which labels name which resources."""

    overrides: dict[str, Resource]


class Name(Part):
    """The metric's name in the custom metrics API."""

    as_: str = Field(serialization_alias="as")


class Rule(Part):
    """How one metric is found and asked for."""

    series_query: str
    resources: Resources
    name: Name
    metrics_query: str


def rules(windows: Windows) -> list[Rule]:
    """A rule for each signal, and for what older exporters call it."""
    return [_rule(one, windows) for signal in SIGNALS for one in _spellings(signal)]


def config(windows: Windows) -> str:
    """The adapter's configuration file."""
    found = [rule.model_dump(by_alias=True) for rule in rules(windows)]
    return yaml.safe_dump({"rules": found}, sort_keys=False, width=1000)


def _spellings(signal: Signal) -> Iterator[Signal]:
    yield signal
    if signal.older:
        yield from _spellings(signal.older)


def _rule(signal: Signal, windows: Windows) -> Rule:
    namespace, pod = signal.namespace_label, signal.pod_label
    return Rule(
        # Of a namespace the adapter knows only what it finds here, so none is named.
        series_query=f'{signal.series}{{{namespace}!="",{pod}!=""}}',
        resources=Resources(overrides={namespace: Resource(resource="namespace"), pod: Resource(resource="pod")}),
        name=Name(as_=signal.metric),
        metrics_query=signal.query([_MATCHERS], [_GROUP_BY], windows),
    )
