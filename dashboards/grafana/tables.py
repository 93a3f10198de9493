"""Tables of the latest figures: one row a job, vertex or operator, one column an expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common as build
from grafana_foundation_sdk.builders import table as builders
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.grafana.look import Limits, texts, thresholds
from dashboards.grafana.panels import SOURCE, Ask, Told, query


@dataclass(frozen=True, slots=True)
class Column:
    """
    A column of a table.

    Args:
        name: Its heading.
        expr: What fills it.
        label: The label of the result that is shown, '' for the value.
        unit: Of the value.
        limits: From which value on which colour.
        known: Texts and colours for values.
        bar: A share is shown as a bar from 0 to 1 of this colour; '' for a number.
    """

    name: str
    expr: str
    label: str = ""
    unit: str = "short"
    limits: Limits | None = None
    known: Mapping[str, tuple[str, str]] | None = None
    bar: str = ""


def table(
    told: Told,
    rows: Mapping[str, str],
    columns: Sequence[Column],
    *,
    width: int = 24,
    height: int = 9,
    order: Sequence[str] = (),
    links: Mapping[str, str] | None = None,
    wide: int = 320,
) -> builders.Panel:
    """
    Return a table of what the columns' expressions give now.

    Args:
        rows: Labels that every expression keeps, by which rows are matched → heading; '' hides one.
        columns: Two or more: the value of a single one Grafana would call by another name.
        order: Headings by which rows are sorted, the greatest first, the first one before the others.
        links: Heading → address that its cells lead to.
        wide: Width of the first column, px.
    """
    panel = (
        builders.Panel()
        .id(told.id)
        .title(told.title)
        .description(told.description)
        .unit(told.unit)
        .datasource(SOURCE)
        .span(width)
        .height(height)
        .targets(
            [
                query(Ask(column.expr), name).instant().format(PromQueryFormat.TABLE)
                for column, name in zip(columns, ascii_uppercase, strict=False)
            ]
        )
        .with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(dashboard.DataTransformerConfig(id_val="organize", options=_organized(rows, columns)))
        .sort_by([build.TableSortByFieldState().display_name(name).desc(True) for name in order])
        .cell_options(common.TableAutoCellOptions())
        .thresholds(thresholds(None))
        .no_value("–")
    )
    first = next(filter(None, rows.values()))
    panel = panel.override_by_name(first, [_value("custom.minWidth", wide)])
    for column in columns:
        if look := _look(column):
            panel = panel.override_by_name(column.name, look)
    for name, address in (links or {}).items():
        link = {"title": f"Open {name.lower()}", "url": address}
        panel = panel.override_by_name(name, [_value("links", [link])])
    return panel


def _organized(rows: Mapping[str, str], columns: Sequence[Column]) -> dict[str, object]:
    """Return the options of Grafana's `organize`: which fields are shown, by which name and in which order."""
    values = [f"Value #{name}" for name, _ in zip(ascii_uppercase, columns, strict=False)]
    hidden = ["Time", *(label for label, name in rows.items() if not name)]
    hidden += [value for value, column in zip(values, columns, strict=True) if column.label]
    shown = {label: name for label, name in rows.items() if name}
    shown |= {column.label or value: column.name for value, column in zip(values, columns, strict=True)}
    return {
        "excludeByName": dict.fromkeys(hidden, True),
        "indexByName": {field: place for place, field in enumerate(shown)},
        "renameByName": shown,
    }


def _look(column: Column) -> list[dashboard.DynamicConfigValue]:
    if column.bar:
        cell = common.TableBarGaugeCellOptions(mode=common.BarGaugeDisplayMode.BASIC)
        colour = {"mode": dashboard.FieldColorModeId.FIXED, "fixedColor": column.bar}
        shape = [_value("custom.cellOptions", cell), _value("color", colour), _value("min", 0), _value("max", 1)]
    elif column.limits or column.known:
        background = common.TableColoredBackgroundCellOptions(mode=common.TableCellBackgroundDisplayMode.BASIC)
        shape = [_value("custom.cellOptions", background)]
    else:
        shape = []
    if not column.label:
        shape.append(_value("unit", column.unit))
    if column.known:
        shape.append(_value("mappings", texts(column.known)))
    if column.limits:
        shape.append(_value("thresholds", thresholds(column.limits, "transparent").build()))
    return shape


def _value(name: str, value: object) -> dashboard.DynamicConfigValue:
    return dashboard.DynamicConfigValue(id_val=name, value=value)
