"""What holds of every dashboard and panel, as the files have it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from dashboards.grafana.expressions import dashboards, panels

BOARDS = dashboards()
VARIABLES = {
    "overview": ["datasource", "application", "job"],
    "job": ["datasource", "application", "job", "vertex"],
    "vertex": ["datasource", "application", "job", "vertex"],
    "latency": ["datasource", "application", "job", "source", "vertex"],
    "event-time": ["datasource", "application", "job", "vertex"],
    "executors": ["datasource", "application", "executor"],
}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
each_board = pytest.mark.parametrize("name", BOARDS)


def placed(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows and panels, those of closed rows too."""
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", ())


def variables(board: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {variable["name"]: variable for variable in board["templating"]["list"]}


def test_the_dashboards_are_six_and_their_uids_stay() -> None:
    """Links and bookmarks go by the uid."""
    assert {name: board["uid"] for name, board in BOARDS.items()} == {name: f"streamgauge-{name}" for name in VARIABLES}
    assert not [name for name, board in BOARDS.items() if "id" in board], "an id is one Grafana's own"


@each_board
def test_variables_lead_from_the_application_down(name: str) -> None:
    """Each follows the one before, so that a vertex is one of the chosen job."""
    found = variables(BOARDS[name])
    assert [*found] == VARIABLES[name]
    for before, variable in (("application", "job"), ("job", "vertex"), ("job", "source"), ("application", "executor")):
        if variable in found:
            assert f"${before}" in found[variable]["query"]["query"]


@each_board
def test_expressions_use_variables_of_their_dashboard(name: str) -> None:
    """And those of Grafana for spans: a fixed one would not fit every scrape interval."""
    there = {*variables(BOARDS[name]), "__rate_interval", "__range"}
    for panel in panels(BOARDS[name]):
        for target in panel["targets"]:
            assert {*re.findall(r"\$(\w+)", target["expr"])} <= there, panel["title"]
            assert not re.findall(r"\[[^$]", target["expr"]), panel["title"]


@each_board
def test_one_job_is_chosen_by_equality(name: str) -> None:
    """Grafana escapes a single name for =, and several for =~; the other way round a dot or a bar would match more."""
    job = variables(BOARDS[name]).get("job")
    for panel in panels(BOARDS[name]) if job else ():
        for target in panel["targets"]:
            chosen = {*re.findall(r'job_name(=~?)"\$job"', target["expr"])}
            assert chosen <= {"=~" if job["multi"] else "="}, panel["title"]


@each_board
def test_the_datasource_is_the_variable_everywhere(name: str) -> None:
    """A dashboard works with whatever Prometheus is chosen."""
    for panel in panels(BOARDS[name]):
        assert panel["datasource"] == SOURCE, panel["title"]
        assert [target["datasource"] for target in panel["targets"]] == [SOURCE] * len(panel["targets"])
    for variable in variables(BOARDS[name]).values():
        assert variable["type"] == "datasource" or variable["datasource"] == SOURCE


@each_board
def test_no_two_panels_overlap(name: str) -> None:
    """Nor does one leave the grid."""
    for panel in placed(BOARDS[name]):
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= WIDTH, panel["title"]
    for one, other in combinations(placed(BOARDS[name]), 2):
        a, b = one["gridPos"], other["gridPos"]
        apart = (
            a["x"] + a["w"] <= b["x"]
            or b["x"] + b["w"] <= a["x"]
            or a["y"] + a["h"] <= b["y"]
            or b["y"] + b["h"] <= a["y"]
        )
        assert apart, (one["title"], other["title"])


@each_board
def test_lines_of_panels_are_full(name: str) -> None:
    """A gap is a panel that was forgotten, or one of the wrong width."""
    lines: dict[int, int] = {}
    for panel in placed(BOARDS[name]):
        lines[panel["gridPos"]["y"]] = lines.get(panel["gridPos"]["y"], 0) + panel["gridPos"]["w"]
    assert {y: width for y, width in lines.items() if width != WIDTH} == {}


@each_board
def test_ids_are_unique(name: str) -> None:
    """A link to a panel goes by it."""
    ids = [panel["id"] for panel in placed(BOARDS[name])]
    assert len({*ids}) == len(ids)
    assert all(ids)


@each_board
def test_every_panel_says_what_it_shows(name: str) -> None:
    """A title, a unit, and a description of at least a sentence."""
    for panel in panels(BOARDS[name]):
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert len(panel["description"]) > 40, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert "  " not in panel["description"], panel["title"]


@each_board
def test_what_is_shown_as_of_now_is_asked_for_now(name: str) -> None:
    """Else a figure would stay that nobody tells any more: the bottleneck of an hour ago."""
    for panel in panels(BOARDS[name]):
        instant = {target["instant"] for target in panel["targets"]}
        assert instant == {panel["type"] in ("stat", "table")}, panel["title"]


@each_board
def test_targets_are_told_apart(name: str) -> None:
    """By letter; series of several targets by legend as well."""
    for panel in panels(BOARDS[name]):
        letters = [target["refId"] for target in panel["targets"]]
        assert letters
        assert len({*letters}) == len(letters), panel["title"]
        legends = [target["legendFormat"] for target in panel["targets"]]
        if panel["type"] in ("timeseries", "state-timeline"):
            assert all(legends), panel["title"]
            assert len({*legends}) == len(legends), panel["title"]


@each_board
def test_dashboards_lead_to_each_other(name: str) -> None:
    """With the same variables and time; and a cell that leads on names a variable of where it leads."""
    board = BOARDS[name]
    (link,) = board["links"]
    assert (link["type"], link["tags"], link["includeVars"], link["keepTime"]) == (
        "dashboards",
        ["streamgauge"],
        True,
        True,
    )
    assert "streamgauge" in board["tags"]
    uids = {other["uid"]: {*variables(other)} for other in BOARDS.values()}
    for address in re.findall(r'"url": "([^"]*)', json.dumps(board)):
        leads = re.match(r"/d/([\w-]+)\?", address)
        assert leads is not None, address
        assert {*re.findall(r"var-(\w+)=", address)} <= uids[leads[1]], address


def test_cells_lead_from_the_overview_to_a_job_and_from_there_to_a_vertex() -> None:
    """One click for each step down."""
    assert "/d/streamgauge-job?" in json.dumps(BOARDS["overview"])
    assert "/d/streamgauge-vertex?" in json.dumps(BOARDS["job"])


def test_the_page_about_dashboards_has_each() -> None:
    """docs/dashboards.md tells what each answers."""
    page = (Path(__file__).parents[4] / "docs" / "dashboards.md").read_text(encoding="utf-8")
    titles = [board["title"].removeprefix("Streamgauge / ") for board in BOARDS.values()]
    assert [title for title in titles if f"| {title} |" not in page] == []
