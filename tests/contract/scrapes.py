"""What Prometheus scrapes of a job through two hours, as input of `promtool test rules`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

STEP_S = 10
"""Between two scrapes."""

SCRAPES = 720
"""Two hours."""

Value = float | None
"""None is a sample that is missing; a series that ends is marked by STALE."""

STALE = float("nan")
Series = dict[str, list[Value]]
"""Name and labels → values, one a scrape."""

_BOUNDS = ("7.999", "31.999", "63.999", "255.999", "+Inf")


def labelled(name: str, labels: Mapping[str, str]) -> str:
    """A series as promtool writes it."""
    pairs = {"job": "streamgauge", "instance": "collector:8081", **labels}
    return name + "{" + ", ".join(f'{key}="{value}"' for key, value in pairs.items()) + "}"


def states(job: Mapping[str, str], course: Sequence[tuple[int, str]]) -> Series:
    """
    streamgauge_job_state of a job.

    Args:
        course: From which scrape it is in which state; '' is no longer told.
    """
    every = ("CREATED", "RUNNING", "RESTARTING", "SUSPENDED", "FAILED", "FINISHED", "CANCELED")
    found: Series = {
        labelled("streamgauge_job_state", {**job, "job_type": "STREAMING", "state": state}): [None] * SCRAPES
        for state in every
    }
    for begin, current in course:
        for state, values in zip(every, found.values(), strict=True):
            values[begin:] = [STALE if not current else int(state == current)] * (SCRAPES - begin)
    return found


def query(
    job: Mapping[str, str], begin: int = 0, end: int = SCRAPES, interval_s: int = 30, vertices: int = 3, idle: int = 0
) -> Series:
    """
    All that is told of a healthy query, from one scrape to before another.

    A batch takes two thirds of its interval; what waits for it rises while it runs, and falls to nothing at its end.

    Args:
        interval_s: The trigger's; a multiple of 30.
        vertices: One, or a chain.
        idle: From which scrape on no row comes; 0 for never.
    """
    told: Series = {}

    def tell(name: str, values: Iterable[float], **labels: str) -> None:
        series: list[Value] = [None] * begin + [*values] + [STALE] * (SCRAPES - end)
        told[labelled(name, {**job, **labels})] = series

    ticks = range(end - begin)
    works = [not idle or begin + tick < idle for tick in ticks]
    busy_ticks = [*accumulate(works)]
    phase = [tick * STEP_S % interval_s / interval_s for tick in ticks]
    under_way = [int(work and part < 2 / 3) for work, part in zip(works, phase, strict=True)]
    batches = [done * STEP_S // interval_s for done in busy_ticks]
    tell("streamgauge_job_trigger_interval_seconds", [interval_s for _ in ticks])
    tell("streamgauge_job_in_progress_checkpoints", under_way)
    tell("streamgauge_job_last_checkpoint_duration_seconds", [interval_s * 2 / 3 for _ in ticks])
    tell(
        "streamgauge_job_last_checkpoint_completed_timestamp_seconds",
        [begin * STEP_S + number * interval_s - interval_s // 3 for number in batches],
    )
    tell("streamgauge_job_running_time_seconds", [tick * STEP_S for tick in ticks])
    tell("streamgauge_job_restarting_time_seconds", [0 for _ in ticks])
    tell("streamgauge_job_restarts_total", [0 for _ in ticks])
    tell("streamgauge_job_input_rows_total", [number * interval_s * 1000 for number in batches])
    tell(
        "streamgauge_job_backlog_rows",
        [run * part * interval_s * 1000 for run, part in zip(under_way, phase, strict=True)],
    )
    tell("streamgauge_job_backlog_time_seconds", [run * part * 20 for run, part in zip(under_way, phase, strict=True)])
    # A batch that overruns now and then is no back-pressure.
    tell(
        "streamgauge_job_backlogged",
        [int(number % 7 == 3 and work) for number, work in zip(batches, works, strict=True)],
    )
    for number in range(vertices):
        vertex = {"vertex_id": f"v{number}", "vertex_name": f"Vertex {number}"}
        share = 0.93 if vertices == 1 else 0.6 / (number + 1)
        tell("streamgauge_vertex_busy_ratio", [share * work for work in works], **vertex)
        tell("streamgauge_vertex_back_pressured_ratio", [0.05 * work for work in works], **vertex)
        subtasks = 1 if vertices == 1 else 8
        tell(
            "streamgauge_vertex_busy_seconds_total",
            [subtasks * STEP_S * share * 0.8 * done for done in busy_ticks],
            **vertex,
        )
        tell(
            "streamgauge_vertex_idle_seconds_total",
            [subtasks * STEP_S * (tick - share * 0.8 * done) for tick, done in zip(ticks, busy_ticks, strict=True)],
            **vertex,
        )
        tell("streamgauge_vertex_back_pressured_seconds_total", [0 for _ in ticks], **vertex)
        # The watermark stands while a batch runs; the query allows for records that are ten minutes late.
        since = [
            part * interval_s if work else (begin + tick - idle) * STEP_S
            for tick, part, work in zip(ticks, phase, works, strict=True)
        ]
        operator = {**vertex, "operator_name": f"Operator {number}"}
        tell("streamgauge_operator_watermark_lag_seconds", [600 + interval_s + each for each in since], **operator)
        tell("streamgauge_operator_records_in_total", [rows * interval_s * 1000 for rows in batches], **operator)
        tell("streamgauge_operator_late_records_dropped_total", [rows * interval_s for rows in batches], **operator)
        marked = {**operator, "source_id": "v0", "source_name": "Vertex 0"}
        for rank, bound in enumerate(_BOUNDS):
            tell(
                "streamgauge_latency_seconds_bucket",
                [max(0, count * (10 + min(rank, 2))) for count in batches],
                **marked,
                le=bound,
            )
    return told


def own(up: Sequence[tuple[int, int]] = ((0, 1),)) -> Series:
    """
    What is told of the service and of the hooks.

    Args:
        up: From which scrape on it can be scraped, 1, or cannot, 0.
    """
    values: list[Value] = [None] * SCRAPES
    for begin, is_up in up:
        values[begin:] = [is_up] * (SCRAPES - begin)
    driver = {"application_id": "app-1", "application_name": "flights"}
    return {
        labelled("up", {}): values,
        labelled("streamgauge_hooks_dropped_records_total", driver): [0] * SCRAPES,
        labelled("streamgauge_hooks_faults_total", driver): [0] * SCRAPES,
    }


def values(series: Sequence[Value]) -> str:
    """Samples as promtool writes them."""
    return " ".join("_" if each is None else "stale" if math.isnan(each) else repr(each) for each in series)
