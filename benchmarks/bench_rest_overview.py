"""
What /jobs/overview costs over many jobs: the handler with its encoding, in this process, and a whole request over HTTP.

Promise: at most 20 ms over 200 jobs of 10 vertices of 50 subtasks. From the root of the project:
`python -m benchmarks.bench_rest_overview`.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import click
import msgspec
import numpy as np
import urllib3

from benchmarks.spread import Spread, spread
from benchmarks.workloads import collector
from collector.ingest import Ingest
from collector.limits import Limits
from collector.store import MetricStore
from service.flink import jobs
from service.flink.query import Query
from streamgauge import codec, names, wire
from streamgauge.clock import SystemClock

JOBS_A_PUSH = 20


def job_frame(number: int, vertices: int, subtasks: int, now_ms: int) -> wire.Frame:
    """Return a running job in full: every vertex of two operators, with six columns and its subtasks' times."""
    drawn = np.random.default_rng(number)
    ids = [f"{number:08x}{vertex:024x}" for vertex in range(vertices)]
    whole = [drawn.integers(0, 1_000_000, subtasks) for _ in range(4)]
    columns = (
        wire.column(names.NUM_RECORDS_IN, whole[0]),
        wire.column(names.NUM_RECORDS_OUT, whole[1]),
        wire.column(names.NUM_BYTES_IN, whole[2]),
        wire.column(names.NUM_BYTES_OUT, whole[3]),
        wire.column(names.BUSY_TIME, drawn.uniform(0, 1000, subtasks)),
        wire.column(names.BACK_PRESSURED_TIME, drawn.uniform(0, 1000, subtasks)),
    )
    zeros, starts = np.zeros(subtasks, dtype="<i8").tobytes(), np.full(subtasks, now_ms, dtype="<i8").tobytes()
    open_ends = np.full(subtasks, -1, dtype="<i8").tobytes()
    app = wire.App(f"app-{number:06}", f"app {number}", now_ms - 60_000, "driver", "4.3.0", "0")
    return wire.Frame(
        wire.WIRE_VERSION,
        app,
        wire.Attempt(now_ms - 50_000 + number, f"run-{number}"),
        1,
        0,
        now_ms,
        600_000,
        wire.Job(
            f"{number:032x}",
            f"query {number}",
            "STREAMING",
            "RUNNING",
            {"CREATED": now_ms - 50_000, "RUNNING": now_ms - 49_000},
            -1,
            "every 10 s",
            "task",
            {},
        ),
        wire.Plan(
            tuple(
                wire.Vertex(
                    vertex_id,
                    f"Scan {index} -> Filter {index}",
                    (
                        wire.Operator(f"{number:08x}{index:08x}{0:016x}", f"Scan {index}", "Scan", "a scan"),
                        wire.Operator(f"{number:08x}{index:08x}{1:016x}", f"Filter {index}", "Filter", "a filter"),
                    ),
                    (wire.Edge(ids[index - 1], "HASH", "hashpartitioning(k, 50)"),) if index else (),
                )
                for index, vertex_id in enumerate(ids)
            )
        ),
        tuple(
            wire.VertexColumns(
                vertex_id,
                subtasks,
                subtasks,
                now_ms,
                columns,
                (),
                wire.Subtasks(zeros, zeros, starts, open_ends, (f"{app.id}-0",)),
            )
            for vertex_id in ids
        ),
    )


def timed(work: Callable[[], object], runs: int) -> Spread:
    """Return the milliseconds that `work` takes; the first, cold run is left out."""
    figures = []
    for _ in range(1 + runs):
        began = time.perf_counter_ns()
        work()
        figures.append((time.perf_counter_ns() - began) / 1e6)
    return spread(figures[1:])


def handled(pushes: list[bytes], clock: SystemClock, runs: int) -> tuple[Spread, int]:
    """Return what handler and encoder take, milliseconds, and the length of the body."""
    store = MetricStore()
    ingest = Ingest(store, clock, Limits())
    for body in pushes:
        ingest.push(body)

    def answer() -> bytes:
        query = Query.parse(store.snapshot(), clock.now_ms(), {}, b"")
        return msgspec.json.encode(jobs.overview(query))

    return timed(answer, runs), len(answer())


def requested(pushes: list[bytes], runs: int) -> Spread:
    """Return what a request to a service of its own takes on a connection that is kept, milliseconds."""
    with collector() as service, urllib3.PoolManager() as http:
        for body in pushes:
            headers = {"Content-Type": wire.CONTENT_TYPE}
            taken = http.request("POST", service.url + wire.PUSH_PATH, body=body, headers=headers)
            if taken.status != 202:
                raise RuntimeError(f"a push was answered {taken.status}: {taken.data.decode()}")
        return timed(lambda: http.request("GET", f"{service.url}/jobs/overview").data, runs)


def line(what: str, cost: Spread) -> str:
    """Return one row of the table."""
    held = f"{cost.low:.2f}..{cost.high:.2f}"
    return f"{what:24} {cost.median:8.2f} {held:>16} {cost.least:8.2f} {cost.greatest:8.2f}"


@click.command()
@click.option("--runs", default=51, show_default=True, help="Measurements of each kind.")
@click.option("--jobs", "job_count", default=200, show_default=True)
@click.option("--vertices", default=10, show_default=True, help="Of a job.")
@click.option("--subtasks", default=50, show_default=True, help="Of a vertex.")
def main(runs: int, job_count: int, vertices: int, subtasks: int) -> None:
    """Fill a store and a service with the same jobs, ask both, and print a table."""
    clock = SystemClock()
    frames = [job_frame(number, vertices, subtasks, clock.now_ms()) for number in range(job_count)]
    pushes = [codec.encode(frames[first : first + JOBS_A_PUSH]) for first in range(0, job_count, JOBS_A_PUSH)]
    in_process, size = handled(pushes, clock, runs)
    over_http = requested(pushes, runs)
    click.echo(
        f"{job_count} jobs × {vertices} vertices × {subtasks} subtasks, a body of {size:,} bytes, {runs} runs; "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    click.echo(f"{'/jobs/overview, ms':24} {'median':>8} {'95 % of it':>16} {'least':>8} {'most':>8}")
    click.echo(line("handler and encoder", in_process))
    click.echo(line("request over HTTP", over_http))


if __name__ == "__main__":
    main()
