"""Panels in the one style of all dashboards: each with an id, a description, a unit, and names in its legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple, TypeVar

from grafana_foundation_sdk.builders import common as build
from grafana_foundation_sdk.builders import heatmap, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.grafana.look import GOOD, Limits, texts, thresholds

SOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""Wherever a panel or a variable asks."""

COUNT, PER_SECOND, SECONDS, BYTES, BYTES_PER_SECOND, SHARE = "short", "cps", "s", "bytes", "binBps", "percentunit"
"""Grafana's names of units; a share of 0 to 1 is shown as a percentage."""

_BACKGROUND = common.BigValueColorMode.BACKGROUND_SOLID

_Panel = TypeVar("_Panel", timeseries.Panel, stat.Panel, statetimeline.Panel, heatmap.Panel)


class Ask(NamedTuple):
    """
    One expression of a panel.

    Args:
        legend: What a series is called; `{{label}}` stands for a label's value.
        colour: Of its series; '' where several share the expression.
    """

    expr: str
    legend: str = ""
    colour: str = ""


class Told(NamedTuple):
    """
    What a panel says of itself.

    Args:
        id: Its number in its dashboard. It is part of links to the panel, so it stays when the panel moves.
        description: What it says on Spark, and what to do when it is bad.
    """

    id: int
    title: str
    description: str
    unit: str


def query(ask: Ask, name: str) -> prometheus.Dataquery:
    """Return an expression as Grafana asks it over the time that is shown; `name` is its letter in the panel."""
    return prometheus.Dataquery().expr(ask.expr).legend_format(ask.legend).range().ref_id(name).datasource(SOURCE)


def series(
    told: Told,
    asks: Sequence[Ask],
    *,
    width: int = 12,
    height: int = 8,
    limits: Limits | None = None,
    stacked: bool = False,
    least: float | None = 0,
    most: float | None = None,
) -> timeseries.Panel:
    """
    Return figures over time, one line a series.

    Args:
        limits: Drawn as dashed lines.
        stacked: Parts of a whole are laid on each other.
        least: Where the axis begins, None for wherever the values do.
        most: Where it ends, None for wherever the values do.
    """
    legend = build.VizLegendOptions().display_mode(common.LegendDisplayMode.TABLE).show_legend(True)
    legend = legend.placement(common.LegendPlacement.BOTTOM).calcs(["lastNotNull", "max"])
    tooltip = build.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
    panel = (
        _fill(timeseries.Panel(), told, asks, width, height)
        .legend(legend.sort_by("Last *").sort_desc(True))
        .tooltip(tooltip)
        .line_width(1)
        .fill_opacity(60 if stacked else 8)
        .show_points(common.VisibilityMode.NEVER)
        .thresholds(thresholds(limits))
    )
    if limits:
        panel = panel.thresholds_style(build.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED))
    if stacked:
        panel = panel.stacking(build.StackingConfig().mode(common.StackingMode.NORMAL))
    if least is not None:
        panel = panel.min(least)
    if most is not None:
        panel = panel.max(most)
    return _coloured(panel, asks)


def figure(
    told: Told,
    ask: Ask,
    *,
    width: int = 4,
    height: int = 4,
    limits: Limits | None = None,
    known: Mapping[str, tuple[str, str]] | None = None,
    by_name: bool = False,
    below: str = GOOD,
) -> stat.Panel:
    """
    Return the figure of now, large, its colour telling how bad it is.

    It is asked for now only: over a time the last one that was told would stay when nothing is told any more.

    Args:
        known: Texts for values.
        by_name: The series' name is shown instead of the value.
        below: The colour below the first limit.
    """
    panel = (
        _fill(stat.Panel(), told, [], width, height)
        .targets([query(ask, "A").instant()])
        .reduce_options(build.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .color_mode(common.BigValueColorMode.VALUE if limits is None and not known else _BACKGROUND)
        .graph_mode(common.BigValueGraphMode.NONE)
        .text_mode(common.BigValueTextMode.NAME if by_name else common.BigValueTextMode.VALUE)
        .justify_mode(common.BigValueJustifyMode.AUTO)
        .thresholds(thresholds(limits, below))
        .no_value("–")
    )
    return panel.mappings(texts(known)) if known else panel


def timeline(
    told: Told, asks: Sequence[Ask], known: Mapping[str, tuple[str, str]], *, width: int = 24, height: int = 7
) -> statetimeline.Panel:
    """Return states over time, one bar a series: since when."""
    return (
        _fill(statetimeline.Panel(), told, asks, width, height)
        .mappings(texts(known))
        .thresholds(thresholds(None))
        .merge_values(True)
        .show_value(common.VisibilityMode.AUTO)
        .row_height(0.85)
        .line_width(0)
        .fill_opacity(80)
        .legend(build.VizLegendOptions().show_legend(False).display_mode(common.LegendDisplayMode.LIST))
        .tooltip(build.VizTooltipOptions().mode(common.TooltipDisplayMode.SINGLE))
    )


def heat_map(told: Told, expr: str, *, width: int = 24, height: int = 9) -> heatmap.Panel:
    """Return how many values fell into each bucket over time; `expr` gives a series a bucket, by `le`."""
    return (
        _fill(heatmap.Panel(), told, [], width, height)
        .targets([query(Ask(expr, "{{le}}"), "A").format(PromQueryFormat.HEATMAP)])
        .calculate(False)
        .color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Spectral").steps(64).reverse(True))
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .y_axis(heatmap.YAxisConfig().unit(told.unit).axis_placement(common.AxisPlacement.LEFT))
        .cell_gap(1)
        .tooltip(heatmap.HeatmapTooltip().mode(common.TooltipDisplayMode.SINGLE).y_histogram(True))
        .show_legend()
    )


def _fill(panel: _Panel, told: Told, asks: Sequence[Ask], width: int, height: int) -> _Panel:
    return (
        panel.id(told.id)
        .title(told.title)
        .description(told.description)
        .unit(told.unit)
        .datasource(SOURCE)
        .span(width)
        .height(height)
        .targets([query(ask, name) for ask, name in zip(asks, ascii_uppercase, strict=False)])
    )


def _coloured(panel: timeseries.Panel, asks: Sequence[Ask]) -> timeseries.Panel:
    for ask, name in zip(asks, ascii_uppercase, strict=False):
        if ask.colour:
            fixed = {"mode": dashboard.FieldColorModeId.FIXED, "fixedColor": ask.colour}
            panel = panel.override_by_query(name, [dashboard.DynamicConfigValue(id_val="color", value=fixed)])
    return panel
