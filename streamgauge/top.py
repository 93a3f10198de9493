"""What `streamgauge top` shows: jobs, their vertices beneath, and the hooks in their drivers."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text

from streamgauge import names
from streamgauge.figures import age, count, duration, quantity, share
from streamgauge.listing import STATE_STYLES
from streamgauge.overview import Driver, Job, Overview, Vertex
from streamgauge.table import ELLIPSIS, Cell, Column, Label, Row, Table, clean, cut

LOW_FROM, HIGH_FROM = 0.1, 0.5
"""Back-pressured shares above which a vertex is shown so. Source: Flink's levels of back-pressure."""
_STATUS_LINES = 3

_BLANK: Cell = ("", "")
_JOBS = Table(
    (
        Column("STATE", left=True),
        Column("PAR"),
        Column("IN/S", least=5),
        Column("OUT/S", least=5),
        Column("BUSY"),
        Column("BACKP"),
        Column("LAG", keep=6, least=6),
        Column("PENDING", keep=5),
        Column("UPTIME", keep=2, least=6),
        Column("BATCH", keep=4, least=6),
        Column("TOOK", keep=3, least=6),
        Column("RESTARTS", keep=1),
    ),
    "JOB / VERTEX",
    label_width=28,
)
_FAILED_PUSHES = tuple(names.HOOKS_PUSHES[each] for each in ("rejected", "refused", "overloaded", "unreachable"))
_HOOKS = Table(
    (
        Column("EVENTS/S"),
        Column("DROPPED"),
        Column("DRAIN", least=6),
        Column("FRAME", least=6),
        Column("PUSHED"),
        Column("RESENT", keep=7),
        Column("REJECTED", keep=2),
        Column("REFUSED", keep=3),
        Column("OVERLOADED", keep=1),
        Column("UNREACHABLE", keep=4),
        Column("FAILED", keep=8),
        Column("ACK", least=6),
    ),
    "HOOKS IN DRIVER",
    label_width=16,
)


@dataclass(frozen=True, slots=True)
class Size:
    """Cells of a terminal."""

    width: int
    height: int


def page(overview: Overview, width: int | None) -> list[Text]:
    """Return all of it, or why there is nothing, `width` cells a line; None for as many as are needed."""
    if overview.error is not None:
        return [Text(clean(overview.error), style="bold yellow")]
    lines = [*_header(overview, width), Text(), *_job_lines(overview, width)]
    drivers = _driver_lines(overview.drivers or (), width)
    return [*lines, Text(), *drivers] if drivers else lines


def screen(overview: Overview, status: str, size: Size) -> list[Text]:
    """
    Return what fits a terminal, and tell how much does not.

    Args:
        status: One more thing in the header, as that the collector is away; '' for none.
        size: Lines are cut to it.
    """
    header = _header(overview, size.width)
    told = textwrap.wrap(clean(status), size.width, max_lines=_STATUS_LINES, placeholder=ELLIPSIS)
    header += [Text(line, style="bold yellow") for line in told]
    drivers = _driver_lines(overview.drivers or (), size.width)
    # Jobs come first on a short terminal: half of it at most is the hooks'.
    spare = size.height - len(header) - 2
    if len(drivers) > max(2, spare // 2):
        kept = max(2, spare // 2 - 1)
        drivers = [*drivers[:kept], Text(f"… {_plural(len(drivers) - kept, 'more driver')}", style="dim")]
    below = [Text(), *drivers] if drivers and spare >= len(drivers) + 4 else []
    room = size.height - len(header) - 1 - len(below)
    lines = [*header, Text(), *_fitted(overview, size.width, room), *below]
    return lines[: size.height]


def _fitted(overview: Overview, width: int, room: int) -> list[Text]:
    lines = _job_lines(overview, width)
    if len(lines) <= room:
        return lines
    kept = max(1, room - 1)
    rows = [each for job in overview.jobs or () for each in (job, *(job.vertices or ()))]
    missing = rows[kept - 1 :]
    jobs = sum(isinstance(each, Job) for each in missing)
    first = next((index for index, each in enumerate(missing) if isinstance(each, Job)), len(missing))
    told = [_plural(first, "more vertex", "more vertices")] if first else []
    told += [_plural(jobs, "more job")] if jobs else []
    return [*lines[:kept], Text(f"… {', '.join(told)}", style="dim")]


def _plural(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _header(overview: Overview, width: int | None) -> list[Text]:
    clock = time.strftime("%H:%M:%S", time.localtime(overview.read_ms / 1000))
    states = overview.states or {}
    told = [f"{number} {state.lower()}" for state, number in sorted(states.items(), key=_state_order)] or ["no jobs"]
    if overview.slots_total and overview.slots_available is not None:
        told.append(f"{overview.slots_available} of {_plural(overview.slots_total, 'task slot')} free")
    lines = [f"streamgauge {overview.collector}  {clock}", clean(", ".join(told))]
    return [Text(line if width is None else cut(line, width), no_wrap=True) for line in lines]


def _state_order(state: tuple[str, int]) -> tuple[int, str]:
    order = ("FAILED", "SUSPENDED", "RESTARTING", "RUNNING", "CREATED", "FINISHED", "CANCELED")
    return (order.index(state[0]) if state[0] in order else len(order)), state[0]


def _job_lines(overview: Overview, width: int | None) -> list[Text]:
    if not overview.jobs:
        return [Text("No jobs to show.")]
    rows: list[Row] = []
    for job in overview.jobs:
        behind = f" ({job.type})" if job.type == "BATCH" else ""
        mark, style = (" (backlogged)", "bold yellow") if job.backlogged else ("", "bold")
        rows.append((list(_job_cells(job)), Label(job.title, style, behind=behind + mark)))
        for vertex in job.vertices or ():
            mark, style = (" (bottleneck)", "bold red") if vertex.bottleneck else ("", "")
            rows.append((list(_vertex_cells(vertex)), Label(vertex.name, style, before="  ", behind=mark)))
    return _JOBS.lines(rows, width)[0]


def _job_cells(job: Job) -> Iterable[Cell]:
    yield job.state, STATE_STYLES.get(job.state, "")
    yield _BLANK
    yield quantity(job.records_in_per_second), "bold"
    yield quantity(job.records_out_per_second), "bold"
    yield from [_BLANK] * 4
    yield duration(job.uptime_ms), ""
    yield count(job.batch_id), ""
    yield duration(job.batch_duration_ms), ""
    yield count(job.restarts), "yellow" if job.restarts else ""


def _vertex_cells(vertex: Vertex) -> Iterable[Cell]:
    held_up = vertex.back_pressured_ratio or 0.0
    yield vertex.state, STATE_STYLES.get(vertex.state, "dim")
    yield count(vertex.parallelism), ""
    yield quantity(vertex.records_in_per_second), ""
    yield quantity(vertex.records_out_per_second), ""
    yield share(vertex.busy_ratio), "bold red" if vertex.bottleneck else ""
    yield share(vertex.back_pressured_ratio), _level(held_up)
    lags = [lag for lag in (vertex.watermark_lag_ms, vertex.fetch_lag_ms) if lag is not None]
    yield duration(max(lags, default=None)), ""
    yield quantity(vertex.pending_records), ""
    yield from [_BLANK] * 4


def _level(back_pressured: float) -> str:
    if back_pressured > HIGH_FROM:
        return "red"
    return "yellow" if back_pressured > LOW_FROM else ""


def _driver_lines(drivers: Sequence[Driver], width: int | None) -> list[Text]:
    if not drivers:
        return []
    rows = [(list(_driver_cells(driver)), _driver_label(driver)) for driver in drivers]
    return _HOOKS.lines(rows, width)[0]


def _driver_label(driver: Driver) -> Label:
    name = f"{driver.name} on {driver.host}" if driver.host else driver.name
    return Label(name or driver.id, behind=" (silent)" if driver.silent else "")


def _driver_cells(driver: Driver) -> Iterable[Cell]:
    hooks = driver.hooks
    dropped, drain_ns = hooks.get(names.HOOKS_DROPPED_RECORDS), hooks.get(names.HOOKS_DRAIN_TIME)
    failures = [hooks[name] for name in _FAILED_PUSHES if name in hooks]
    yield quantity(driver.events_per_second), ""
    yield quantity(dropped), "bold red" if dropped else ""
    yield duration(None if drain_ns is None else drain_ns / 1e6), ""
    yield quantity(hooks.get(names.HOOKS_FRAME_BYTES), "B"), ""
    for outcome in ("accepted", "resend"):
        yield quantity(hooks.get(names.HOOKS_PUSHES[outcome])), ""
    for name in _FAILED_PUSHES:
        yield quantity(hooks.get(name)), "yellow" if hooks.get(name) else ""
    yield quantity(sum(failures) if failures else None), "yellow" if any(failures) else ""
    yield age(driver.age_ms), "bold yellow" if driver.silent else ""
