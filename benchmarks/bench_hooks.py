"""
What a guest costs: the throughput of a driver with the hooks in it over that of the same driver without them.

Bare and attached runs take turns in one driver, in pairs whose order is drawn with a fixed seed; a real service takes
the pushes. Promise: at least 99 % of the bare throughput, at most 3 % of a core at 1,000 tasks a second, at most 10 µs
a task event in the JVM. From the root of the project: `python -m benchmarks.bench_hooks`.
"""

from __future__ import annotations

import gc
import os
import platform
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from pyspark.sql import SparkSession

import streamgauge
from benchmarks.bench_recorder import captured, table
from benchmarks.spread import spread
from benchmarks.workloads import SEED, Collector, Workload, collector, few_heavy_tasks, many_small_tasks, session
from spark_hooks import agent
from spark_hooks.jvm import QUEUE
from streamgauge import names

LISTENER = f"spark-listener-group-{QUEUE}"
PY4J = "Thread-"
"""How Py4J's threads in the JVM are called; drains run on them, and so does all else that the driver's Python asks."""


@dataclass
class Run:
    """
    One run of a workload.

    Args:
        seconds: From the query's start to its end.
        cpu_ns: Thread → CPU time during the run; Python's by their own names, the JVM's by their prefix, and that of
            the collector, which runs on another machine where it should.
        hooks: What the hooks told of themselves last; empty in a bare run.
    """

    seconds: float
    cpu_ns: dict[str, int]
    hooks: dict[str, Any] = field(default_factory=dict)


class Bench:
    """
    One driver and one workload.

    Args:
        jvm_cpu_ns: Thread name's prefix → CPU time, ns.
    """

    def __init__(
        self,
        spark: SparkSession,
        workload: Workload,
        folder: Path,
        service: Collector,
        jvm_cpu_ns: Callable[[str], int],
    ) -> None:
        self._spark = spark
        self._workload = workload
        self._service = service
        self._jvm_cpu_ns = jvm_cpu_ns
        self._folder = folder / workload.name.replace(" ", "-")
        self._folder.mkdir()
        self._runs = 0
        workload.write(self._folder / "in")

    def pairs(self, warm_up: int, count: int) -> list[tuple[Run, Run]]:
        """Return (bare, attached) runs; each order comes as often as the other, or once more."""
        orders = [number % 2 == 0 for number in range(count)]
        random.Random(SEED).shuffle(orders)
        found = []
        for number, bare_first in enumerate([True] * warm_up + orders):
            first, second = (self.bare, self.attached) if bare_first else (self.attached, self.bare)
            one, other = first(), second()
            if number >= warm_up:
                found.append((one, other) if bare_first else (other, one))
        return found

    def bare(self) -> Run:
        """Run without the hooks."""
        return self._run()

    def attached(self) -> Run:
        """Run with the hooks; attaching and detaching are not in the figures."""
        if not streamgauge.attach(self._spark, url=self._service.url):
            raise RuntimeError("the hooks did not attach")
        latest = agent._latest
        try:
            run = self._run()
        finally:
            streamgauge.detach()
        # Detaching has drained what the run left.
        assert latest is not None
        run.hooks = dict(latest._hooks)
        run.hooks.update({f"pushes {outcome}": count for outcome, count in latest._pusher.outcomes.items()})
        return run

    def _run(self) -> Run:
        self._runs += 1
        gc.collect()
        self._spark.sparkContext._jvm.System.gc()
        before = self._cpu_ns()
        seconds = self._workload.run(self._spark, self._folder / "in", self._folder / f"checkpoint-{self._runs}")
        # What the recorder's queue still holds belongs to the run.
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        after = self._cpu_ns()
        return Run(seconds, {thread: after[thread] - before.get(thread, 0) for thread in after})

    def _cpu_ns(self) -> dict[str, int]:
        found = {
            thread.name: time.clock_gettime_ns(time.pthread_getcpuclockid(thread.ident))
            for thread in threading.enumerate()
            if thread.name.startswith("streamgauge-") and thread.ident is not None
        }
        found |= {prefix: self._jvm_cpu_ns(prefix) for prefix in (LISTENER, PY4J)}
        return found | {"the collector": self._service.cpu_ns()}


def report(workload: Workload, tasks: int, pairs: list[tuple[Run, Run]]) -> str:
    """Return one workload's figures as text."""
    bare = statistics.median(run.seconds for run, _ in pairs)
    attached = statistics.median(run.seconds for _, run in pairs)
    ratios = [one.seconds / other.seconds for one, other in pairs]
    ratio = spread(ratios)
    lines = [
        f"{workload.name}: {workload.batches} batches, {tasks} tasks, {workload.total_rows} rows a run; "
        f"{len(pairs)} pairs",
        f"{'median':44} {'bare':>12} {'attached':>12}",
        f"{'s a run':44} {bare:12.3f} {attached:12.3f}",
        f"{'rows/s':44} {workload.total_rows / bare:12.0f} {workload.total_rows / attached:12.0f}",
        f"{'tasks/s':44} {tasks / bare:12.1f} {tasks / attached:12.1f}",
    ]
    for thread in sorted({thread for pair in pairs for run in pair for thread in run.cpu_ns}):
        shares = [[run.cpu_ns.get(thread, 0) / 1e6 / run.seconds for run in runs] for runs in zip(*pairs, strict=True)]
        told = " ".join(f"{statistics.median(share):12.2f}" for share in shares)
        lines.append(f"{f'CPU ms/s {thread}':44} {told}")
    lines.append(
        f"throughput attached/bare: median {ratio.median:.4f}, {ratio.least:.4f}..{ratio.greatest:.4f}; "
        f"{100 * ratio.confidence:.1f} % interval of the median {ratio.low:.4f}..{ratio.high:.4f}"
    )
    lines.append(f"pairs in their order: {' '.join(f'{each:.3f}' for each in ratios)}")
    hooks = [run.hooks for _, run in pairs]
    events, record_ns = (sum(told[name] for told in hooks) for name in (names.HOOKS_EVENTS, names.HOOKS_RECORD_TIME))
    lines.append(
        f"recorder: {events / len(pairs):.0f} events a run, {record_ns / events:.0f} ns an event; dropped: "
        f"{sum(told[names.HOOKS_DROPPED_RECORDS] for told in hooks)} records, "
        f"{sum(told[names.HOOKS_DROPPED_LIVE] for told in hooks)} live updates; "
        f"faults: {sum(told[names.HOOKS_FAULTS] for told in hooks)}"
    )
    outcomes = sorted({name for told in hooks for name in told if name.startswith("pushes ")})
    lines.append(", ".join(f"{name}: {sum(told.get(name, 0) for told in hooks)}" for name in outcomes))
    return "\n".join(lines)


@click.command()
@click.option("--pairs", default=11, show_default=True, help="Measured pairs of each workload; from 6 on, 95 % hold.")
@click.option("--warm-up", default=2, show_default=True, help="Pairs before them that are not measured.")
@click.option("--batches", default=60, show_default=True, help="Batches of many small tasks.")
@click.option("--tasks", default=24, show_default=True, help="Tasks behind the shuffle of such a batch.")
@click.option("--heavy-batches", default=3, show_default=True, help="Batches of few heavy tasks.")
@click.option("--heavy-rows", default=400_000, show_default=True, help="Rows that a heavy task parses.")
@click.option("--replays", default=7, show_default=True, help="Replays of each kind of event into the recorder.")
def main(pairs: int, warm_up: int, batches: int, tasks: int, heavy_batches: int, heavy_rows: int, replays: int) -> None:
    """Run, and print a table for each workload and one for the recorder."""
    # Each batch has one task before the shuffle; two parse and two merge.
    workloads = [
        (many_small_tasks(batches, tasks), batches * (1 + tasks)),
        (few_heavy_tasks(heavy_batches, heavy_rows), heavy_batches * 4),
    ]
    with tempfile.TemporaryDirectory() as name, collector() as service, session("bench_hooks") as spark:
        folder = Path(name)
        click.echo(
            f"Spark {spark.version}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.2f} at the start, seed {SEED}"
        )
        capture = captured(spark, folder, min(batches, 20), tasks, heavy_rows)
        for workload, total in workloads:
            bench = Bench(spark, workload, folder, service, capture.cpu_ns)
            click.echo("")
            click.echo(report(workload, total, bench.pairs(warm_up, pairs)))
        click.echo("")
        click.echo(table([capture.cost(kind, replays) for kind in capture.seen()]))


if __name__ == "__main__":
    main()
