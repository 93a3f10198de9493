"""What all dashboards have in common: variables, links to each other, and how panels are laid out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from grafana_foundation_sdk.builders import heatmap, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.models import dashboard

from dashboards.grafana.panels import SOURCE
from dashboards.grafana.promql import JOB, QUERIES

Panel: TypeAlias = heatmap.Panel | stat.Panel | statetimeline.Panel | table.Panel | timeseries.Panel

TAG = "streamgauge"
ALL = ".*"
"""The value of a variable of which all are chosen; it matches series that have not got the label, too."""

_JOBS = f'{{__name__=~"streamgauge_job_(info|state)", application_name=~"$application", {QUERIES}}}'
"""Which application runs a job is told while it runs; its state, which stays after its end, says nothing of it."""


def board(name: str, title: str, description: str) -> Dashboard:
    """
    Return a dashboard without variables and panels.

    Args:
        name: Of its file; its uid, by which others link to it, follows from it.
        description: What it answers.
    """
    others = DashboardLink("Streamgauge").type(dashboard.DashboardLinkType.DASHBOARDS).tags([TAG])
    return (
        Dashboard(f"Streamgauge / {title}")
        .uid(uid(name))
        .description(description)
        .tags([TAG, "spark"])
        .timezone("browser")
        .time("now-1h", "now")
        .refresh("30s")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .link(others.include_vars(True).keep_time(True).icon("external link").tooltip("With the same job and time"))
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus").regex(""))
    )


def uid(name: str) -> str:
    """Return the uid of a dashboard, by which Grafana knows it whatever its title."""
    return f"streamgauge-{name}"


def address(name: str, chosen: str) -> str:
    """
    Return where a cell leads: another dashboard, at the same time and data source.

    Args:
        name: Of that dashboard's file.
        chosen: `var-…=…` of what the cell is about.
    """
    return f"/d/{uid(name)}?${{__url_time_range}}&${{datasource:queryparam}}&{chosen}"


def application() -> QueryVariable:
    """Return the variable of applications: drivers, by name."""
    family = "streamgauge_hooks_events_total"
    return _variable("application", "Application", f"label_values({family}, application_name)", several=True)


def job(*, several: bool = False) -> QueryVariable:
    """Return the variable of jobs, by name; it follows the application."""
    return _variable("job", "Job", f"label_values({_JOBS}, job_name)", several=several)


def vertex() -> QueryVariable:
    """Return the variable of vertices, by name; it follows the job."""
    return _variable(
        "vertex", "Vertex", f"label_values(streamgauge_vertex_busy_ratio{{{JOB}}}, vertex_name)", several=True
    )


def source() -> QueryVariable:
    """Return the variable of the sources of latency markers, by name; it follows the job."""
    return _variable(
        "source", "Source", f"label_values(streamgauge_latency_seconds_count{{{JOB}}}, source_name)", several=True
    )


def executor() -> QueryVariable:
    """Return the variable of executors; it follows the application."""
    family = 'streamgauge_executor_managed_memory_bytes{application_name=~"$application"}'
    return _variable("executor", "Executor", f"label_values({family}, executor_id)", several=True)


def section(onto: Dashboard, title: str, panels: Iterable[Panel], *, row: int, collapsed: bool = False) -> None:
    """
    Add a row of panels below those that are there.

    Args:
        panels: From left to right and from top to bottom; those of a line are 24 wide together.
        row: Id of the row itself.
        collapsed: Opened, and asked for, only on a click.
    """
    heading = Row(title).id(row)
    if collapsed:
        for panel in panels:
            heading = heading.with_panel(panel)
        onto.with_row(heading)
        return
    onto.with_row(heading.collapsed(False))
    for panel in panels:
        onto.with_panel(panel)


def _variable(name: str, label: str, query: str, *, several: bool) -> QueryVariable:
    variable = (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": query, "refId": name})
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
        .multi(several)
        .include_all(several)
    )
    if several:
        everything = dashboard.VariableOption(selected=True, text=["All"], value=["$__all"])
        variable = variable.all_value(ALL).current(everything)
    return variable
