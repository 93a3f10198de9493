"""What top shows, line by line, at the widths of terminals."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from streamgauge.overview import Driver, Job, Overview, Vertex
from streamgauge.top import Size, page, screen

JID = "9db08cbfb75c4c0ba705afe8c513cb2f"
SOURCE = Vertex("1", "Source: kafka -> Filter -> Project", "RUNNING", 8, 1234.5, 1200.0, 0.18, 0.62, 98_760, 900, None)
AGGREGATE = Vertex(
    "2", "HashAggregate -> StateStoreSave -> Sink: delta", "RUNNING", 4, 1200.0, 3.25, 0.93, 0.0, bottleneck=True
)
JOB = Job(
    JID,
    "flights by hour",
    "STREAMING",
    "RUNNING",
    0,
    99_000,
    192_000,
    2,
    47,
    18_200,
    1234.5,
    3.25,
    None,
    (SOURCE, AGGREGATE),
)
LOST = Job("0" * 32, "late aircraft", "STREAMING", "SUSPENDED", restarts=0, vertices=())
DRIVER = Driver(
    "app-1",
    "flights",
    "driver.test",
    False,
    age_ms=1_400,
    events_per_second=349.6,
    hooks={
        "droppedRecords": 0,
        "drainTimeNs": 1_200_000,
        "frameBytes": 8123,
        "pushesAccepted": 1203,
        "pushesResend": 1,
        "pushesRejected": 0,
        "pushesRefused": 0,
        "pushesOverloaded": 0,
        "pushesUnreachable": 2,
    },
)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock in the header is local time."""
    monkeypatch.setattr(time, "localtime", time.gmtime)


def overview(*jobs: Job, **changes: object) -> Overview:
    states: dict[str, int] = {}
    for job in jobs:
        states[job.state] = states.get(job.state, 0) + 1
    found = Overview("http://127.0.0.1:8081", 50_402_000, None, states, 2, 1, jobs=jobs, drivers=(DRIVER,))
    return replace(found, **changes)  # type: ignore[arg-type]


def shown(found: Overview, width: int, height: int = 24, status: str = "") -> list[str]:
    return [line.plain for line in screen(found, status, Size(width, height))]


def test_at_80_columns_names_are_cut_and_figures_are_not() -> None:
    """Columns that fit; '-' is unknown, blank is what a line does not have."""
    assert shown(overview(LOST, JOB), 80) == [
        "streamgauge http://127.0.0.1:8081  14:00:02",
        "1 suspended, 1 running, 1 of 2 task slots free",
        "",
        "STATE     PAR  IN/S OUT/S BUSY BACKP    LAG PENDING JOB / VERTEX",
        "SUSPENDED         -     -                           late aircraft",
        "RUNNING       1.23k  3.25                           flights by hour",
        "RUNNING     8 1.23k 1.20k  18%   62%  900ms   98.8k   Source: kafka…r -> Project",
        "RUNNING     4 1.20k  3.25  93%    0%      -       -   HashAg… delta (bottleneck)",
        "",
        "EVENTS/S DROPPED  DRAIN  FRAME PUSHED RESENT FAILED    ACK HOOKS IN DRIVER",
        "     350       0  1.2ms 8.12kB  1.20k      1      2     1s flights on…river.test",
    ]


def test_at_120_columns_there_is_room_for_the_batch() -> None:
    """And for why pushes failed."""
    lines = shown(overview(JOB), 120)
    assert lines[3:5] == [
        "STATE    PAR   IN/S  OUT/S  BUSY  BACKP     LAG  PENDING  UPTIME   BATCH    TOOK  RESTARTS  JOB / VERTEX",
        "RUNNING       1.23k   3.25                                 3m12s      47   18.2s         2  flights by hour",
    ]
    assert lines[-2:] == [
        "EVENTS/S  DROPPED   DRAIN   FRAME  PUSHED  RESENT  REJECTED  REFUSED  UNREACHABLE  FAILED     ACK"
        "  HOOKS IN DRIVER",
        "     350        0   1.2ms  8.12kB   1.20k       1         0        0            2       2      1s"
        "  flights on…river.test",
    ]


def test_at_200_columns_nothing_is_left_out() -> None:
    """Every column, every name in full."""
    lines = shown(overview(JOB), 200)
    assert lines[3:7] == [
        "STATE    PAR   IN/S  OUT/S  BUSY  BACKP     LAG  PENDING  UPTIME   BATCH    TOOK  RESTARTS  JOB / VERTEX",
        "RUNNING       1.23k   3.25                                 3m12s      47   18.2s         2  flights by hour",
        "RUNNING    8  1.23k  1.20k   18%    62%   900ms    98.8k"
        "                                      Source: kafka -> Filter -> Project",
        "RUNNING    4  1.20k   3.25   93%     0%       -        -"
        "                                      HashAggregate -> StateStoreSave -> Sink: delta (bottleneck)",
    ]
    assert "OVERLOADED" in lines[-2]


def test_what_does_not_fit_the_height_is_counted() -> None:
    """Vertices of the last job that is shown, then jobs; the hooks stay."""
    lines = shown(overview(*[JOB] * 8), 80)
    assert len(lines) == 24
    assert lines[-4:-2] == ["… 2 more vertices, 2 more jobs", ""]
    assert lines[-2].startswith("EVENTS/S")


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("height", [1, 5, 8, 11, 24])
def test_every_size_is_kept_to(width: int, height: int) -> None:
    """Never a line too many; on a very short screen the jobs are what is left."""
    lines = shown(overview(*[JOB] * 8, drivers=(DRIVER,) * 9), width, height, "12s old: gone")
    assert len(lines) == height
    assert height < 8 or any(line.endswith("flights by hour") for line in lines)


def test_many_drivers_leave_half_of_the_screen_to_jobs() -> None:
    """And are counted."""
    lines = shown(overview(*[JOB] * 8, drivers=(DRIVER,) * 30), 80)
    assert lines[-1] == "… 22 more drivers"
    assert sum("flights by hour" in line for line in lines) == 3


def test_a_collector_that_is_away_is_told_above_what_was_read() -> None:
    """Wrapped, and cleaned: an error may repeat what a server said."""
    lines = shown(overview(JOB), 60, status="12s old: http://127.0.0.1:8081 cannot be reached (Connection \x1brefused)")
    assert lines[2:4] == ["12s old: http://127.0.0.1:8081 cannot be reached (Connection", "\ufffdrefused)"]
    assert "flights by hour" in "\n".join(lines)


def test_a_driver_that_tells_nothing_is_unknown_all_over() -> None:
    """An older version of the hooks, or one that has only just begun; silence is said."""
    silent = Driver("app-2", "", "", True, age_ms=95_000)
    assert shown(overview(JOB, drivers=(silent,)), 80)[-1] == (
        "       -       -      -      -      -      -      -  1m35s app-2 (silent)"
    )


def test_without_drivers_there_are_no_lines_for_hooks() -> None:
    """A service that does not tell them, or Flink itself."""
    lines = shown(overview(JOB, drivers=None, slots_total=None), 80)
    assert "HOOKS" not in "\n".join(lines)
    assert lines[1] == "1 running"


def test_no_jobs_is_said() -> None:
    """Not an empty table."""
    lines = shown(overview(states={"FINISHED": 3}), 80)
    assert lines[1:4] == ["3 finished, 1 of 2 task slots free", "", "No jobs to show."]


def test_a_page_is_as_long_as_it_has_to_be() -> None:
    """For a pipe: every job in full; or the error alone."""
    lines = [line.plain for line in page(overview(*[JOB] * 50), None)]
    assert len(lines) == 2 + 1 + 1 + 150 + 1 + 2
    gone = Overview("http://c", 0, error="http://c cannot be reached")
    assert [line.plain for line in page(gone, 80)] == ["http://c cannot be reached"]


def test_hostile_names_are_shown_as_text() -> None:
    """A job's name is a stranger's: it may not draw, colour or move anything."""
    name = "\x1b[2J[bold red]流れ\u202e\n"
    hostile = replace(JOB, name=name, state="RUNNING\x1b"[:7], vertices=(replace(SOURCE, name=name),))
    found = screen(overview(hostile), "", Size(80, 24))
    assert found[4].plain.endswith("  \ufffd[2J[bold red]流れ\ufffd\ufffd"[1:])
    assert all("\x1b" not in line.plain and "\n" not in line.plain for line in found)


def test_trouble_is_coloured_and_health_is_not() -> None:
    """Lost jobs, high back-pressure, the bottleneck, failed pushes; in words too, for those without colours."""
    styles = {
        line.plain[span.start : span.end]: span.style
        for line in screen(overview(LOST, JOB), "", Size(200, 24))
        for span in line.spans
    }
    assert styles["SUSPENDED"] == "yellow"
    assert styles["62%"] == "red"
    assert styles["93%"] == styles[" (bottleneck)"] == "bold red"
    assert styles["2"] == "yellow"
    assert "18%" not in styles


def test_a_job_that_cannot_keep_up_says_so() -> None:
    """Also one of a single vertex, which has nothing upstream to hold up."""
    lone = replace(JOB, backlogged=True, bottleneck="2", vertices=(AGGREGATE,))
    lines = screen(overview(lone, replace(JOB, backlogged=False)), "", Size(200, 24))
    assert lines[4].plain.endswith("  flights by hour (backlogged)")
    assert lines[5].plain.endswith("Sink: delta (bottleneck)")
    assert lines[6].plain.endswith("  flights by hour")
    assert {span.style for span in lines[4].spans} >= {"bold yellow"}
