"""The dashboards against Grafana's own types."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from jsonschema_rs import Draft7Validator

from dashboards.grafana.expressions import dashboards, panels
from tests.contract.grafana_schema import schema

BOARDS = dashboards()
TYPES = {
    "heatmap": "Heatmap",
    "stat": "Stat",
    "state-timeline": "StateTimeline",
    "table": "Table",
    "timeseries": "TimeSeries",
}
"""Of a panel → what its types are called; a stat's fields have none of their own."""


@pytest.fixture(scope="module")
def types() -> dict[str, Any]:
    return schema()


def faults(types: dict[str, Any], name: str, value: Any) -> list[str]:
    checker = Draft7Validator({"$ref": f"#/definitions/{name}", "definitions": types["definitions"]})
    return [f"{'/'.join(map(str, fault.instance_path))}: {fault.message[:300]}" for fault in checker.iter_errors(value)]


def panel_faults(types: dict[str, Any], panel: dict[str, Any]) -> list[str]:
    called = TYPES[panel["type"]]
    found = faults(types, f"{called}Options", panel["options"])
    if f"{called}Field" in types["definitions"]:
        found += faults(types, f"{called}Field", panel["fieldConfig"]["defaults"].get("custom", {}))
    return [f"{panel['title']}: {fault}" for fault in found]


@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_is_what_grafana_takes(types: dict[str, Any], name: str) -> None:
    """Every key and value is one of Grafana's, down to the options of each kind of panel."""
    assert faults(types, "Dashboard", BOARDS[name]) == []
    assert [fault for panel in panels(BOARDS[name]) for fault in panel_faults(types, panel)] == []


def test_what_grafana_does_not_take_is_found(types: dict[str, Any]) -> None:
    """Else the test above could not fail: keys that nobody knows, values of another type, and what lacks."""
    board = deepcopy(BOARDS["job"])
    board["panls"] = board.pop("schemaVersion")
    board["refresh"] = 30
    told = " ".join(faults(types, "Dashboard", board))
    assert all(name in told for name in ("panls", "schemaVersion", "refresh"))
    panel = deepcopy(next(panel for panel in panels(board) if panel["type"] == "timeseries"))
    panel["options"]["legend"]["displayMode"] = "chart"
    panel["fieldConfig"]["defaults"]["custom"]["lineWith"] = 1
    told = " ".join(panel_faults(types, panel))
    assert "displayMode" in told
    assert "lineWith" in told
