"""
What the recorder costs: ns per event of each kind in the JVM, and to drain, decode and apply it in the driver's Python.

The events are real ones, of a query with a shuffle, replayed into the recorder. Promise: at most 10 µs a task event in
the JVM. From the root of the project: `python -m benchmarks.bench_recorder`.
"""

from __future__ import annotations

import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import click
from pyspark.sql import SparkSession

from benchmarks.spread import Spread, spread
from benchmarks.workloads import few_heavy_tasks, many_small_tasks, session
from spark_hooks import records
from spark_hooks.execution import Model
from spark_hooks.executors import Executors
from spark_hooks.jvm import Recorder, compiled
from streamgauge import wire
from streamgauge.clock import SystemClock

EVENTS = 20_000
"""Of a replay, or fewer, as many as make REPLAY_BYTES."""

REPLAY_BYTES = 8_000_000

PROBE = 200
"""Events by whose size it is seen how many make REPLAY_BYTES."""


@dataclass(frozen=True)
class Cost:
    """
    Of one kind of event, ns per event.

    Args:
        seen: How many came while they were kept.
        size: Bytes of its record.
    """

    kind: str
    seen: int
    size: float
    record: Spread
    drain: Spread
    decode: Spread
    apply: Spread


class Capture:
    """
    A recorder, a model that has been told of all that it recorded, and the latest events of each kind.

    One a session: Py4J keeps methods by the name of their class.
    """

    def __init__(self, spark: SparkSession) -> None:
        gateway = spark.sparkContext._gateway
        source = Path(__file__).with_name("Replayer.java").read_text(encoding="utf-8")
        constructor = compiled(gateway, "Replayer", source).getDeclaredConstructor(
            gateway.new_array(gateway.jvm.java.lang.Class, 0)
        )
        self._replayer = constructor.newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0))
        self._context = spark.sparkContext._jsc.sc()
        self._context.addSparkListener(self._replayer)
        self._recorder = Recorder(spark)
        app = wire.App("bench", "bench", 0, "", spark.version, "0")
        self._model = Model(app, Executors("bench", 1, SystemClock()))

    def stop(self) -> None:
        """Take no more events."""
        self._context.listenerBus().waitUntilEmpty()
        self._context.removeSparkListener(self._replayer)
        self._recorder.remove()
        self._model.apply(records.decode(self._recorder.drain()).records)

    def cpu_ns(self, prefix: str) -> int:
        """Return the CPU time, ns, of the JVM's live threads whose name begins so."""
        return int(self._replayer.cpuNs(prefix))

    def seen(self) -> dict[str, int]:
        """Return how many events of each kind came."""
        return {kind: int(count) for kind, _, count in (line.rpartition(" ") for line in self._replayer.kinds())}

    def cost(self, kind: str, runs: int) -> Cost:
        """Replay one kind; the first, cold run is left out."""
        self._replayer.replay(self._recorder.listener, kind, PROBE)
        size = max(len(self._recorder.drain()) / PROBE, 1.0)
        events = int(min(EVENTS, max(REPLAY_BYTES / size, PROBE)))
        figures: dict[str, list[float]] = {"record": [], "drain": [], "decode": [], "apply": []}
        for _ in range(1 + runs):
            figures["record"].append(self._replayer.replay(self._recorder.listener, kind, events) / events)
            began = time.perf_counter_ns()
            drained = self._recorder.drain()
            figures["drain"].append((time.perf_counter_ns() - began) / events)
            began = time.perf_counter_ns()
            told = records.decode(drained).records
            figures["decode"].append((time.perf_counter_ns() - began) / events)
            began = time.perf_counter_ns()
            self._model.apply(told)
            figures["apply"].append((time.perf_counter_ns() - began) / events)
        if self._model.faults:
            raise RuntimeError(f"{kind}: {self._model.faults[0]}")
        return Cost(kind, self.seen()[kind], size, **{step: spread(values[1:]) for step, values in figures.items()})


def table(costs: list[Cost]) -> str:
    """Return the costs as text, the most time in the JVM first."""
    lines = [f"{'ns per event':40} {'seen':>6} {'bytes':>6} {'record':>23} {'drain':>8} {'decode':>8} {'apply':>8}"]
    for cost in sorted(costs, key=lambda cost: -cost.seen * cost.record.median):
        record = f"{cost.record.median:.0f} ({cost.record.least:.0f}..{cost.record.greatest:.0f})"
        rest = " ".join(f"{step.median:8.0f}" for step in (cost.drain, cost.decode, cost.apply))
        lines.append(f"{cost.kind:40} {cost.seen:6} {cost.size:6.0f} {record:>23} {rest}")
    return "\n".join(lines)


def captured(spark: SparkSession, folder: Path, batches: int, tasks: int, rows: int) -> Capture:
    """Keep the events of a run of many small tasks, and heartbeats from a run of few heavy ones."""
    capture = Capture(spark)
    for number, workload in enumerate((many_small_tasks(batches, tasks), few_heavy_tasks(2, rows))):
        inputs = folder / f"captured-{number}"
        workload.write(inputs)
        workload.run(spark, inputs, folder / f"captured-{number}-checkpoint")
    capture.stop()
    return capture


@click.command()
@click.option("--runs", default=7, show_default=True, help="Replays of each kind.")
@click.option("--batches", default=20, show_default=True, help="Batches of which events are kept.")
@click.option("--tasks", default=24, show_default=True, help="Tasks of a batch.")
def main(runs: int, batches: int, tasks: int) -> None:
    """Keep real events, replay them, and print a table."""
    with tempfile.TemporaryDirectory() as folder, session("bench_recorder") as spark:
        capture = captured(spark, Path(folder), batches, tasks, 300_000)
        click.echo(f"Spark {spark.version}, Python {platform.python_version()}, {platform.machine()}, {runs} runs")
        click.echo(table([capture.cost(kind, runs) for kind in capture.seen()]))


if __name__ == "__main__":
    main()
