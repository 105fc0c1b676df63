"""Queries that somebody reads: of alerts, recording rules, dashboards, adapters and KEDA's triggers."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from policies.judging.view import Resource, View, dig
from policies.reading import promql
from policies.reading.adapters import adapter_configs
from policies.reading.config_maps import files

# Grafana's variables: in a range, where only a time can stand, and anywhere else.
_RANGE: Final = re.compile(r"(?<=[\[:])\s*(?:\$\w+|\$\{[^}]*\})(?=\s*[\]:])")
_TIME: Final = re.compile(r"\$\{?__(?:rate_interval|interval|range)(?:_ms|_s)?\}?")
_VARIABLE: Final = re.compile(r"\$\{[^}]*\}|\$[A-Za-z_]\w*|\[\[\w+(?::\w+)?\]\]")
# Stands for a variable; where a metric is called so, nobody knows which it is.
CHOSEN: Final = "grafana_variable"
_VALUES_OF: Final = re.compile(r"\s*label_values\(\s*(.+?)\s*,\s*\w+\s*\)\s*", re.DOTALL)
_DATASOURCE: Final = "prometheus"


@dataclass(frozen=True)
class Query:
    """One query.

    Attributes:
        resource: where it stands.
        where: place in there.
        text: PromQL.
    """

    resource: Resource
    where: str
    text: str

    def metrics(self) -> set[str]:
        """Names of what it reads.

        Raises:
            ValueError: it is no PromQL.
        """
        return promql.metrics(promql.parse(self.text)) - {CHOSEN}


def of_rules(found: Resource) -> Iterator[Query]:
    """Queries of a PrometheusRule."""
    for group in found.at("spec", "groups", default=[]):
        for rule in dig(group, "rules", default=[]):
            name = dig(rule, "alert", default=dig(rule, "record", default="?"))
            yield Query(found, str(name), str(dig(rule, "expr", default="")))


def of_dashboards(found: Resource) -> Iterator[Query]:
    """Queries of the dashboards in a ConfigMap, with something in place of every variable."""
    for name, text in files(found):
        if not (name.endswith(".json") and '"panels"' in text):
            continue
        try:
            board = json.loads(text)
        except ValueError:
            continue
        if isinstance(board, dict):
            for where, query in _of_board(board):
                yield Query(found, f"{name}, {where}", _filled(query))


def _of_board(board: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for variable in board.get("templating", {}).get("list") or ():
        query = variable.get("query")
        text = query.get("query") if isinstance(query, dict) else query
        if isinstance(text, str) and (found := _VALUES_OF.fullmatch(text)):
            yield f"variable {variable.get('name')}", found[1]
    waiting = list(board.get("panels") or ())
    while waiting:
        panel = waiting.pop(0)
        waiting += panel.get("panels") or ()
        for target in panel.get("targets") or ():
            source = target.get("datasource") or panel.get("datasource") or {}
            kind = source.get("type", _DATASOURCE) if isinstance(source, dict) else _DATASOURCE
            if kind == _DATASOURCE and target.get("expr"):
                yield f"panel {panel.get('title')!r}", target["expr"]


def _filled(query: str) -> str:
    text = _TIME.sub("5m", _RANGE.sub("5m", query))
    filled = _VARIABLE.sub(CHOSEN, text)
    try:
        promql.parse(filled)
    except ValueError:
        return _VARIABLE.sub("1", text)  # where a number has to stand
    return filled


def of_triggers(found: Resource) -> Iterator[Query]:
    """Queries of a ScaledObject."""
    for index, trigger in enumerate(found.at("spec", "triggers", default=[])):
        if dig(trigger, "type") == _DATASOURCE:
            yield Query(found, f"triggers[{index}]", dig(trigger, "metadata", "query", default=""))


def of_adapters(view: View) -> Iterator[tuple[Resource, str, set[str]]]:
    """Metrics by which adapters find pods, with where that is said."""
    for config in adapter_configs(view):
        for rule in config.rules:
            try:
                yield config.resource, rule.where, promql.metrics(rule.found)
            except ValueError:
                continue  # said elsewhere
