"""
What it costs to keep the last 15 minutes: a sample of every job, its memory, and how long others wait meanwhile.

Aim, not reached yet: a sample every 5 s of 1,000 jobs of 10 vertices of 200 subtasks takes less than a tenth of a core.
From the root of the project: `python -m benchmarks.bench_history`.
"""

from __future__ import annotations

import platform
import threading
import time

import click
import msgspec
import numpy as np

from benchmarks.bench_rest_overview import JOBS_A_PUSH, job_frame
from benchmarks.spread import Spread, spread
from collector.history import SAMPLE_INTERVAL_MS, History
from collector.ingest import Ingest
from collector.limits import Limits
from collector.store import MetricStore
from streamgauge import codec, names, wire
from streamgauge.buckets import HdrCounts
from streamgauge.clock import SystemClock

VERTICES, SUBTASKS = 10, 200
METRICS = (
    names.NUM_RECORDS_IN + names.PER_SECOND,
    names.NUM_RECORDS_OUT + names.PER_SECOND,
    names.BUSY_TIME,
    names.BACK_PRESSURED_TIME,
    names.IDLE_TIME,
    names.INPUT_BUFFERS + names.IN_POOL_USAGE,
    names.OUTPUT_BUFFERS + names.OUT_POOL_USAGE,
    names.INPUT_BUFFERS + names.INPUT_QUEUE_LENGTH,
    names.OUTPUT_BUFFERS + names.OUTPUT_QUEUE_LENGTH,
)


def frame(number: int, round_: int, now_ms: int) -> wire.Frame:
    """Return a job's full frame of one round: other rates than before, and more markers."""
    drawn = np.random.default_rng((number, round_))
    plain = job_frame(number, VERTICES, SUBTASKS, now_ms)
    columns = tuple(wire.column(metric, drawn.uniform(0, 1000, SUBTASKS)) for metric in METRICS)
    counts = HdrCounts()
    counts.add(drawn.integers(0, 20_000, SUBTASKS * round_))
    read = counts.read()
    told = wire.Buckets(read.indices.astype("<u2").tobytes(), read.counts.tobytes(), 0, 0, read.sum_ms)
    assert plain.plan is not None
    source = plain.plan.vertices[0].id
    vertices = [
        msgspec.structs.replace(
            figures,
            columns=columns,
            histograms=(wire.LatencyHistogram(source, tuple(each.id for each in vertex.operators), told, told, told),),
        )
        for vertex, figures in zip(plain.plan.vertices, plain.vertices, strict=True)
    ]
    return msgspec.structs.replace(plain, seq=round_, vertices=tuple(vertices))


class Waits:
    """The longest time that another thread had to wait for its turn while something ran, milliseconds."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Waits:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            began = time.perf_counter()
            time.sleep(0.001)
            self.longest_ms = max(self.longest_ms, (time.perf_counter() - began) * 1000 - 1)


def line(what: str, cost: Spread) -> str:
    """Return one row of the table."""
    return f"{what:36} {cost.median:9.1f} {f'{cost.low:.1f}..{cost.high:.1f}':>18} {cost.greatest:9.1f}"


def measure(jobs: int, rounds: int) -> None:
    """Print the table of so many jobs."""
    clock, store = SystemClock(), MetricStore()
    ingest, history = Ingest(store, clock, Limits()), History(store, clock)
    cpu_ms, waits_ms = [], []
    for round_ in range(1, rounds + 2):
        for first in range(0, jobs, JOBS_A_PUSH):
            frames = [frame(number, round_, clock.now_ms()) for number in range(first, min(first + JOBS_A_PUSH, jobs))]
            ingest.push(codec.encode(frames))
        with Waits() as waits:
            began = time.thread_time_ns()
            history.sample()
            cpu_ms.append((time.thread_time_ns() - began) / 1e6)
        waits_ms.append(waits.longest_ms)
    share = spread(cpu_ms[1:]).median / SAMPLE_INTERVAL_MS
    each = history.nbytes / (jobs * VERTICES)
    click.echo(
        f"\n{jobs:,} jobs of {VERTICES} vertices of {SUBTASKS} subtasks, {rounds} samples: {share:.1%} of a core"
    )
    click.echo(f"{history.nbytes / 2**20:,.0f} MiB, {each / 1000:.1f} kB a vertex, {history.left_out} without room")
    click.echo(f"{'':36} {'median':>9} {'95 % of it':>18} {'most':>9}")
    click.echo(line("a sample, ms of one core", spread(cpu_ms[1:])))
    click.echo(line("another thread waits at most, ms", spread(waits_ms[1:])))


@click.command()
@click.option("--rounds", default=11, show_default=True, help="Samples of each size; the first is left out.")
@click.option("--jobs", "sizes", multiple=True, type=int, default=(100, 500), show_default=True)
def main(rounds: int, sizes: tuple[int, ...]) -> None:
    """Fill a store, sample it, and print tables."""
    click.echo(f"Python {platform.python_version()}, {platform.machine()}")
    for jobs in sizes:
        measure(jobs, rounds)


if __name__ == "__main__":
    main()
