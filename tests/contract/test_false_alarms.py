"""The alerts stay silent through two hours of what happens to healthy jobs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dashboards.prometheus.build import RULES
from tests.contract.scrapes import SCRAPES, STALE, STEP_S, Series, labelled, own, query, states, values
from tests.programs import program

JOB = {"job_id": "4e1d", "job_name": "counts"}
NEXT = {"job_id": "77aa", "job_name": "counts"}
HOUR = SCRAPES // 2
MINUTE = 60 // STEP_S
RUNS = ((0, "RUNNING"),)


def running(interval_s: int = 30, vertices: int = 3, idle: int = 0) -> Series:
    return {**own(), **states(JOB, RUNS), **query(JOB, interval_s=interval_s, vertices=vertices, idle=idle)}


def restart(down: int) -> Series:
    """A failure, and a run that follows and catches up: its counts begin anew."""
    before, after = query(JOB, end=HOUR), query(JOB, begin=HOUR + down)
    found = {name: [*before[name][:HOUR], *[STALE] * down, *after[name][HOUR + down :]] for name in before}
    restarts = found[labelled("streamgauge_job_restarts_total", JOB)]
    restarts[HOUR + down :] = [1] * (SCRAPES - HOUR - down)
    catching = range(HOUR + down, HOUR + down + 8 * MINUTE)
    for name, greatest, least in (
        ("backlog_rows", 300_000, 0),
        ("backlog_time_seconds", 300, 0),
        ("backlogged", 1, 1),
    ):
        series = found[labelled(f"streamgauge_job_{name}", JOB)]
        for number, scrape in enumerate(catching):
            series[scrape] = greatest + (least - greatest) * number / len(catching)
    busy = found[labelled("streamgauge_vertex_busy_ratio", {**JOB, "vertex_id": "v0", "vertex_name": "Vertex 0"})]
    busy[HOUR + down : catching.stop] = [0.95] * len(catching)
    course = states(JOB, ((0, "RUNNING"), (HOUR, "FAILED"), (HOUR + down, "RESTARTING"), (HOUR + down + 3, "RUNNING")))
    return {**own(), **course, **found}


def deploy() -> Series:
    """A driver is killed, and a query of the same name begins from another checkpoint two minutes later."""
    begin = HOUR + 2 * MINUTE
    old = states(JOB, ((0, "RUNNING"), (HOUR + 2, "SUSPENDED")))
    new = states(NEXT, ((begin, "CREATED"), (begin + 3, "RUNNING")))
    return {**own(), **old, **new, **query(JOB, end=HOUR + 2), **query(NEXT, begin=begin)}


def ended(state: str) -> Series:
    after = (HOUR + 15 * MINUTE, "")
    return {**own(), **states(JOB, ((0, "RUNNING"), (HOUR, state), after)), **query(JOB, end=HOUR)}


def gaps() -> Series:
    """Prometheus is away for four minutes of every ten; series do not end, they are not there."""
    return {
        name: [None if number % (10 * MINUTE) >= 6 * MINUTE else value for number, value in enumerate(series)]
        for name, series in running().items()
    }


def failing_scrapes() -> Series:
    """Two minutes of every twenty the service does not answer, and all of its series end."""
    found = running()
    up = found.pop(labelled("up", {}))
    for number in range(SCRAPES):
        if number % (20 * MINUTE) >= 18 * MINUTE:
            up[number] = 0
            for series in found.values():
                series[number] = STALE
    return {labelled("up", {}): up, **found}


def service_restart() -> Series:
    """The service starts anew, and has forgotten how often a job was restarted."""
    found = running()
    found[labelled("streamgauge_job_restarts_total", JOB)] = [5] * HOUR + [STALE] * 6 + [0] * (SCRAPES - HOUR - 6)
    return {**found, labelled("up", {}): [1] * HOUR + [0] * 6 + [1] * (SCRAPES - HOUR - 6)}


SILENT: dict[str, Callable[[], Series]] = {
    "the sawtooth of a 30-second micro-batch": running,
    "the sawtooth of a 10-minute micro-batch": lambda: running(interval_s=600),
    "a restart within half a minute": lambda: restart(down=3),
    "a deploy": deploy,
    "an idle source": lambda: running(idle=HOUR),
    "an idle source of a 10-minute micro-batch": lambda: running(interval_s=600, idle=HOUR),
    "a one-vertex job": lambda: running(vertices=1),
    "a job that has finished": lambda: ended("FINISHED"),
    "a job that was stopped": lambda: ended("CANCELED"),
    "gaps between scrapes": gaps,
    "scrapes that fail": failing_scrapes,
    "a restart of the service": service_restart,
    "a job of which nothing but its state is known": lambda: {**own(), **states(JOB, RUNS)},
    "no job at all": own,
}


def fired(promtool: str, folder: Path, series: Mapping[str, list[float | None]]) -> list[str]:
    """Names of the alerts that fired at any moment of two hours."""
    expression = 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[2h]))'
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": f"{STEP_S}s",
                "input_series": [{"series": name, "values": values(told)} for name, told in series.items()],
                "promql_expr_test": [{"expr": expression, "eval_time": "119m50s"}],
            }
        ],
    }
    file = folder / "scenario.yml"
    file.write_text(json.dumps(test), encoding="utf-8")
    ran = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode == 0:
        return []
    told = ran.stdout + ran.stderr
    assert "got: {alertname=" in told, told
    return sorted({part.split('"')[1] for part in told.split("{alertname=")[1:]})


@pytest.mark.parametrize("series", SILENT.values(), ids=SILENT.keys())
def test_no_alert_fires_for_what_healthy_jobs_do(series: Callable[[], Series], tmp_path: Path) -> None:
    """Nobody is called while all is well, and what is not known is no reason to call anybody."""
    assert fired(program("promtool"), tmp_path, series()) == []


def test_the_same_scrapes_with_something_wrong_do_fire(tmp_path: Path) -> None:
    """Else silence would prove nothing: a watermark that stands still, and a backlog without end."""
    series = running()
    for name in series:
        if name.startswith("streamgauge_operator_watermark_lag_seconds"):
            series[name] = [600 + STEP_S * number for number in range(SCRAPES)]
    series[labelled("streamgauge_job_backlogged", JOB)] = [1] * SCRAPES
    series[labelled("streamgauge_job_backlog_rows", JOB)] = [100 * number for number in range(SCRAPES)]
    series[labelled("streamgauge_job_backlog_time_seconds", JOB)] = [0.5 * number for number in range(SCRAPES)]
    busy = labelled("streamgauge_vertex_busy_ratio", {**JOB, "vertex_id": "v0", "vertex_name": "Vertex 0"})
    series[busy] = [0.9] * SCRAPES
    assert fired(program("promtool"), tmp_path, series) == [
        "StreamgaugeBacklogGrowing",
        "StreamgaugeJobBackPressured",
        "StreamgaugeWatermarkLag",
    ]
