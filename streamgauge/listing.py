"""What `streamgauge jobs` prints: one line a job, those that run first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from streamgauge.figures import UNKNOWN, count, duration, quantity
from streamgauge.overview import Job, Overview
from streamgauge.table import Cell, Column, Label, Table

STATE_STYLES = {"RUNNING": "green", "FAILED": "bold red", "RESTARTING": "yellow", "SUSPENDED": "yellow"}


def listing(overview: Overview, width: int | None, ended: bool) -> list[Text]:
    """
    Return the lines of `jobs`.

    Args:
        overview: With the jobs that are to be listed.
        width: Cells a line has; None for as many as are needed.
        ended: Whether jobs that have ended were asked for.
    """
    jobs = overview.jobs or ()
    running = [job for job in jobs if not job.ended]
    over = [job for job in jobs if job.ended]
    lines = _section(running, "UPTIME", width) if running else [Text("No running jobs.")]
    if ended:
        lines += [Text(), *(_section(over, "RAN", width) if over else [Text("No ended jobs.")])]
    elif not running and (total := sum((overview.states or {}).values())):
        lines.append(Text(f"{total} ended: streamgauge jobs --all"))
    return lines


def _section(jobs: Sequence[Job], time_title: str, width: int | None) -> list[Text]:
    table = Table(
        (
            Column("STATE", left=True),
            Column("JOB ID", left=True),
            Column("TYPE", keep=1, left=True),
            Column(time_title),
            Column("IN/S", keep=6),
            Column("OUT/S", keep=5),
            Column("BATCH", keep=3),
            Column("TOOK", keep=2),
            Column("RESTARTS", keep=4),
        ),
        "NAME",
        label_width=16,
    )
    lines, hidden = table.lines([(list(_cells(job)), Label(job.title)) for job in jobs], width)
    if hidden:
        lines.append(Text(f"No room for {', '.join(hidden)}: widen the terminal, or use --json.", style="dim"))
    return lines


def _cells(job: Job) -> Iterable[Cell]:
    yield job.state, STATE_STYLES.get(job.state, "")
    yield job.id, ""
    yield job.type or UNKNOWN, ""
    yield duration(job.duration_ms if job.ended else job.uptime_ms), ""
    yield quantity(job.records_in_per_second), ""
    yield quantity(job.records_out_per_second), ""
    yield count(job.batch_id), ""
    yield duration(job.batch_duration_ms), ""
    yield count(job.restarts), "yellow" if job.restarts else ""
