"""Every expression that the dashboards ask, read from the same files that Grafana reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
_LABEL_VALUES = re.compile(r"label_values\((?P<selector>.+), (?P<label>\w+)\)")


class Expression(NamedTuple):
    """
    What a panel or a variable asks.

    Args:
        dashboard: Its title.
        panel: The panel's title, or `variable <name>`.
        expr: PromQL, with variables as they stand in the dashboard, or resolved.
        legend: What a series is called, '' where a table or the panel says it.
        label: Of a variable the label whose values it lists, '' of a panel.
    """

    dashboard: str
    panel: str
    expr: str
    legend: str = ""
    label: str = ""


def dashboards() -> dict[str, dict[str, Any]]:
    """Return the committed dashboards by the names of their files, without ending."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def panels(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the panels of a dashboard from top to bottom, those in rows too, the rows themselves left out."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def written() -> Iterator[Expression]:
    """Yield every expression of every variable and panel, variables standing as they do."""
    for board in dashboards().values():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                asked = _LABEL_VALUES.fullmatch(variable["query"]["query"])
                if asked is None:
                    raise ValueError(f"{board['title']}, variable {variable['name']}: not label_values(…, …)")
                yield Expression(
                    board["title"], f"variable {variable['name']}", asked["selector"], label=asked["label"]
                )
        for panel in panels(board):
            for target in panel["targets"]:
                yield Expression(board["title"], panel["title"], target["expr"], target.get("legendFormat", ""))


def resolved(values: Mapping[str, str]) -> Iterator[Expression]:
    """
    Yield every expression with what Grafana would put in.

    Args:
        values: Of each variable, without $, what stands for it within a quoted label value, escaped as PromQL wants
            it ('.*' is all, where several may be chosen); of `__rate_interval` and `__range` a duration.

    Raises:
        KeyError: an expression has a variable that is not among `values`.
    """
    for each in written():
        yield each._replace(expr=Template(each.expr).substitute(values))
