"""Rules of a prometheus-adapter, wherever they stand: in a ConfigMap or in the values of its chart."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import yaml

from policies.judging.unknown import CannotDecide
from policies.judging.view import Resource, View, dig
from policies.reading import promql
from policies.reading.config_maps import files, is_known

CHART: Final = "prometheus-adapter"
# What stands in an expression for what the adapter puts in when it is asked.
MATCHERS: Final = "adapter_label_matchers"
GROUP_BY: Final = "adapter_group_by"
_SERIES: Final = re.compile(r"<<\s*\.Series\s*>>")
_MATCHERS: Final = re.compile(r"<<\s*\.LabelMatchers\s*>>")
_GROUP_BY: Final = re.compile(r"<<\s*\.GroupBy\s*>>")
_PLACEHOLDER: Final = re.compile(r"<<.*?>>")
# Go templates that go through the parts of the two instead.
_PARTS: Final = {MATCHERS: ".LabelValuesByName", GROUP_BY: ".GroupBySlice"}
_SERIES_QUERY: Final = "seriesQuery"


@dataclass(frozen=True)
class AdapterRule:
    """One rule.

    Attributes:
        where: its place, e.g. ``rules[3]``.
        external: whether it serves the external metrics API.
        fields: as written.
    """

    where: str
    external: bool
    fields: Mapping[str, Any]

    @property
    def series_query(self) -> str:
        """How it finds series."""
        return str(dig(self.fields, _SERIES_QUERY, default=""))

    @property
    def metrics_query(self) -> str:
        """How it asks for values."""
        return str(dig(self.fields, "metricsQuery", default=""))

    @cached_property
    def found(self) -> Any:  # noqa: ANN401  # the parser's
        """What it finds, as a tree.

        Raises:
            ValueError: it is no PromQL.
        """
        return promql.parse(self.series_query)

    @cached_property
    def series(self) -> str:
        """The metric that it finds; where it finds several by a pattern, the pattern as far as it can be a name."""
        first = next(promql.selectors(self.found), None)
        if first is None:
            return ""
        return promql.metric(first) or re.sub(r"\W", "", promql.pattern(first))

    @cached_property
    def asked(self) -> Any:  # noqa: ANN401
        """What it asks for, as a tree.

        Raises:
            ValueError: it is no PromQL, whatever is put in.
        """
        text = _SERIES.sub(self.series or "series", self.metrics_query)
        text = _GROUP_BY.sub(GROUP_BY, _MATCHERS.sub(f'{MATCHERS}="1"', text))
        return promql.parse(_PLACEHOLDER.sub("x", text))

    def lacks(self, placeholder: str) -> bool:
        """Whether the adapter has nowhere to put its matchers or labels."""
        pattern = {MATCHERS: _MATCHERS, GROUP_BY: _GROUP_BY}[placeholder]
        return not pattern.search(self.metrics_query) and _PARTS[placeholder] not in self.metrics_query

    def overrides(self) -> Mapping[str, str]:
        """Label -> the Kubernetes resource that it names."""
        written = dig(self.fields, "resources", "overrides", default={})
        return {label: str(dig(one, "resource", default="")) for label, one in written.items()}

    def serves(self, metric: str) -> bool:
        """Whether it may give a metric this name."""
        name = str(dig(self.fields, "name", "as", default=""))
        if name and "$" not in name:
            return name == metric
        shape = re.sub(r"\\\$\\\{?\w+\\?\}?", "(.+)", re.escape(name))
        if name and shape != "(.+)":
            return re.fullmatch(shape, metric) is not None
        if dig(self.fields, "name", "matches"):
            return True  # a part of the series' name, whichever
        return any(
            promql.metric(one) == metric or (promql.pattern(one) and re.search(promql.pattern(one), metric))
            for one in promql.selectors(self.found)
        )


@dataclass(frozen=True)
class AdapterConfig:
    """All rules of one adapter.

    Attributes:
        resource: where they stand.
        rules: all of them.
        complete: whether the adapter has no others.
        broken: why they cannot be read, empty if they can.
    """

    resource: Resource
    rules: tuple[AdapterRule, ...] = ()
    complete: bool = True
    broken: str = ""


def adapter_configs(view: View) -> Iterator[AdapterConfig]:
    """The rules of every adapter of an estate."""
    for found in (*view.of_kind("ConfigMap"), *view.of_kind("Release", "Chart")):
        if config := adapter_config(found):
            yield config


def adapter_config(found: Resource) -> AdapterConfig | None:
    """The rules that stand in an object, or None if it holds none.

    Raises:
        CannotDecide: it belongs to an adapter and is not known yet.
    """
    if found.kind in ("Release", "Chart") and found.type.startswith("kubernetes:helm.sh/"):
        return _of_chart(found)
    return _of_config_map(found) if found.kind == "ConfigMap" else None


def _of_chart(found: Resource) -> AdapterConfig | None:
    if not str(found.at("chart", default="")).endswith(CHART):
        return None
    written = found.at("values", "rules", default={})
    rules = [
        *_rules("values.rules.custom", dig(written, "custom", default=[])),
        *_rules("values.rules.external", dig(written, "external", default=[]), external=True),
    ]
    complete = dig(written, "default", default=True) is False and dig(written, "existing") is None
    return AdapterConfig(found, tuple(rules), complete)


def _of_config_map(found: Resource) -> AdapterConfig | None:
    if CHART in found.object_name and not is_known(found):
        raise CannotDecide(f"the rules in {found.key} are unknown")
    return next((_of_text(found, text) for _, text in files(found) if _SERIES_QUERY in text), None)


def _of_text(found: Resource, text: str) -> AdapterConfig | None:
    try:
        written = _read(text)
    except yaml.YAMLError as error:
        return AdapterConfig(found, broken=" ".join(str(error).split()))
    if not isinstance(written, dict):
        return None
    rules = _rules("rules", written.get("rules") or [])
    external = _rules("externalRules", written.get("externalRules") or [], external=True)
    return AdapterConfig(found, (*rules, *external))


@lru_cache(maxsize=64)
def _read(text: str) -> Any:  # noqa: ANN401
    return yaml.safe_load(text)


def _rules(where: str, written: list[Any], *, external: bool = False) -> Iterator[AdapterRule]:
    for index, fields in enumerate(written):
        yield AdapterRule(f"{where}[{index}]", external, fields)
