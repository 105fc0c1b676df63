"""Panels and dashboards of one look, through Grafana's own SDK; loaded only where a stack has a Grafana.

The SDK's types name each field of Grafana's JSON, so that a misspelt one is an error here and not an empty panel
there. It takes about 70 ms to import.
"""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spec import names
from spec.grafana import dashboard_uid

with warnings.catch_warnings():
    # The SDK would rather have the second form of dashboards, which Grafana before 12 cannot read.
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.builders import common as common_builders
    from grafana_foundation_sdk.builders import dashboard as builders
    from grafana_foundation_sdk.builders import prometheus, stat, table, timeseries
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import common, dashboard, units
    from grafana_foundation_sdk.models.prometheus import PromQueryFormat

PERCENT: Final = units.PercentUnit
REQUESTS: Final = units.RequestsPerSecond
MILLISECONDS: Final = units.Milliseconds
SECONDS: Final = units.Seconds
NUMBER: Final = units.Short
WATT: Final = units.Watt
CELSIUS: Final = units.Celsius
MEBIBYTES: Final = "mbytes"  # of which Grafana means the binary ones; the SDK has no name for it

_SOURCE: Final = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT: Final = 8
_NUMBER_HEIGHT: Final = 4
_FILL: Final = 10
_FILL_STACKED: Final = 40
Panel = timeseries.Panel | stat.Panel | table.Panel
Variable = builders.DatasourceVariable | builders.QueryVariable


@dataclass(frozen=True)
class Query:
    """A query of a panel.

    Attributes:
        expr: PromQL.
        legend: what its series are called; ``{{label}}`` is the value of a label.
    """

    expr: str
    legend: str


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: its head.
        unit: of its values.
        expr: PromQL; rows with the same labels are one row.
    """

    title: str
    unit: str
    expr: str


def graph(
    title: str,
    unit: str,
    about: str,
    *queries: Query,
    span: int = 8,
    top: float | None = None,
    stacked: bool = False,
) -> timeseries.Panel:
    """Values over time.

    Args:
        title: of the panel.
        unit: of all values, as Grafana calls it.
        about: what one sees, for whoever asks.
        queries: what is drawn.
        span: width, in 24ths of the screen.
        top: upper end of the scale, by default that of the values.
        stacked: whether values add up.
    """
    panel = timeseries.Panel().title(title).description(about).unit(unit).datasource(_SOURCE).span(span).height(_HEIGHT)
    for ref_id, query in zip(_ref_ids(), queries, strict=False):
        panel.with_target(prometheus.Dataquery().expr(query.expr).legend_format(query.legend).range().ref_id(ref_id))
    panel.min(0).fill_opacity(_FILL_STACKED if stacked else _FILL)
    if top is not None:
        panel.max(top)
    if stacked:
        panel.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))
    panel.tooltip(
        common_builders.VizTooltipOptions()
        .mode(common.TooltipDisplayMode.MULTI)
        .sort(common.SortOrder.DESCENDING)
    )  # fmt: skip
    return panel.legend(
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
    )


def number(title: str, unit: str, about: str, expr: str, *, span: int = 4) -> stat.Panel:
    """The value of now, and behind it how it came there."""
    return (
        stat.Panel()
        .title(title)
        .description(about)
        .unit(unit)
        .decimals(1)
        .datasource(_SOURCE)
        .span(span)
        .height(_NUMBER_HEIGHT)
        .with_target(prometheus.Dataquery().expr(expr).legend_format(title).range().ref_id("A"))
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_mode(common.BigValueColorMode.NONE)
        .graph_mode(common.BigValueGraphMode.AREA)
    )


def ranking(
    title: str, about: str, labels: dict[str, str], columns: Sequence[Column], link: str, *, span: int = 24
) -> table.Panel:
    """A table of the values of now, the largest of the first column on top.

    Args:
        title: of the panel.
        about: what one sees.
        labels: label of the series -> head of its column; the first names the row.
        columns: values.
        link: where the name of a row leads.
        span: width.
    """
    heads = list(labels.values())
    panel = (
        table.Panel().title(title).description(about).unit(NUMBER).datasource(_SOURCE).span(span).height(2 * _HEIGHT)
    )
    for ref_id, column in zip(_ref_ids(), columns, strict=False):
        query = prometheus.Dataquery().expr(column.expr).format(PromQueryFormat.TABLE).instant().ref_id(ref_id)
        panel.with_target(query)
        panel.override_by_name(
            f"Value #{ref_id}",
            [
                dashboard.DynamicConfigValue(id_val="displayName", value=column.title),
                dashboard.DynamicConfigValue(id_val="unit", value=column.unit),
            ],
        )
    panel.override_by_name(
        heads[0], [dashboard.DynamicConfigValue(id_val="links", value=[{"title": "Open", "url": link}])]
    )
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
    organised = {"excludeByName": {"Time": True}, "renameByName": labels}
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="organize", options=organised))
    return panel.sort_by([common_builders.TableSortByFieldState().display_name(columns[0].title).desc(desc=True)])


def choice(name: str, label: str, series: str, of: str, *, many: bool = False, last: bool = False) -> Variable:
    """A variable whose values are those of a label.

    Args:
        name: of the variable.
        label: what people read.
        series: selector of the series.
        of: their label.
        many: whether several may be chosen; all are, at first.
        last: whether the last of the values is chosen at first, not the first.
    """
    variable = (
        builders.QueryVariable(name)
        .label(label)
        .datasource(_SOURCE)
        .query(f"label_values({series}, {of})")
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_DESC if last else dashboard.VariableSort.ALPHABETICAL_ASC)
    )
    if not many:
        return variable
    everything = dashboard.VariableOption(selected=True, text=["All"], value=["$__all"])
    return variable.multi(multi=True).include_all(include_all=True).current(everything)


def render(
    name: str, title: str, about: str, variables: Sequence[Variable], rows: Sequence[tuple[str, Sequence[Panel]]]
) -> str:
    """A dashboard as JSON.

    Args:
        name: part of its identifier, see ``spec.grafana.dashboard_uid``.
        title: what people read.
        about: what it answers.
        variables: what can be chosen, beside the Prometheus.
        rows: heads and the panels below them; no head for an empty one.
    """
    source = builders.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    page = (
        builders.Dashboard(title)
        .uid(dashboard_uid(name))
        .description(about)
        .tags([names.PROJECT])
        .time("now-6h", "now")
        .refresh("30s")
        .timezone("browser")
        .readonly()
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .variables([source, *variables])
        .link(
            builders.DashboardLink("Estate")
            .type(dashboard.DashboardLinkType.DASHBOARDS)
            .tags([names.PROJECT])
            .as_dropdown(as_dropdown=True)
            .include_vars(include_vars=True)
            .keep_time(keep_time=True)
            .placement("")
        )
    )
    counter = 0
    for head, panels in rows:
        if head:
            counter += 1
            page.with_row(builders.Row(head).id(counter))
        for panel in panels:
            counter += 1
            page.with_panel(panel.id(counter))
    return json.dumps(page.build(), cls=JSONEncoder, sort_keys=True, separators=(",", ":"))


def _ref_ids() -> Sequence[str]:
    return "ABCDEFGHIJ"
