"""The taps of one run: where in the graph they are, what they tell of splits and delays, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from spark_hooks.job_graph import JobGraph
from spark_hooks.plan import Operator
from spark_hooks.progress import Progress, watermark
from spark_hooks.splits import Splits
from spark_hooks.tap_rows import PREFIX, TapRow
from spark_hooks.timeline import Batch
from spark_hooks.vertex import JobVertex
from streamgauge.buckets import HdrCounts
from streamgauge.valve import StatusWatermarkValve

TAPS = 64
"""Of one run; those past it are not told."""

_COLLECT_METRICS = "CollectMetrics"


class Delays:
    """
    The delays of all records of a tap in this run. Not thread safe.

    A delay is told cut to one that stands for those next to it, see `TapRow`, and so are these.

    `queueing` is from a record's ingest to the batch's trigger, `latency` to its end. `revision` counts the changes.
    """

    def __init__(self) -> None:
        self.revision = 0
        self.queueing, self.latency = HdrCounts(), HdrCounts()

    def add(self, delays: Mapping[int, int], took_ms: int) -> None:
        """
        Count the records of a batch.

        Args:
            delays: ms → records; below 0 for those whose clock is ahead of the driver's, of which nothing is known.
            took_ms: From the moment that delays are measured to until the batch's end, at least 0.
        """
        if delays:
            queueing_ms, rows = np.array(list(delays.items()), dtype=np.int64).T
            self.queueing.add_times(queueing_ms, rows)
            self.latency.add_times(np.where(queueing_ms < 0, queueing_ms, queueing_ms + took_ms), rows)
            self.revision += 1


@dataclass(slots=True, eq=False)
class Tap:
    """
    A tap of a run.

    Args:
        splits: None without an event time.
        delays: None without an ingest time.
        vertex: Id of the vertex that it is in; '' while the graph has not shown it.
        operator: Id of its own operator there.
        source: Id of the operator whose splits these are: the vertex's only source, else its own.
    """

    name: str
    splits: Splits | None
    delays: Delays | None
    vertex: str = ""
    operator: str = ""
    source: str = ""


@dataclass(slots=True, eq=False)
class _Gate:
    """A vertex' valve: its taps are those that it has or is behind, `channels` by tap and split."""

    taps: list[Tap] = field(default_factory=list)
    valve: StatusWatermarkValve = field(default_factory=StatusWatermarkValve)
    channels: dict[tuple[str, str], int] = field(default_factory=dict)


class Taps:
    """
    The taps of one run. Not thread safe.

    One that is no longer in the plan stays as it was last seen.
    """

    def __init__(self) -> None:
        self._taps: dict[str, Tap] = {}
        self._gates: dict[str, _Gate] = {}
        self._watermark_ms: int | None = None
        self._placed: tuple[int, int] = (-1, 0)

    def complete(self, rows: Iterable[TapRow], told: Progress, batch: Batch) -> None:
        """A micro-batch has completed, in which the taps saw these rows."""
        late_ms = self._late(told)
        seen = {row.name: row for row in rows}
        for row in seen.values():
            if row.name not in self._taps and len(self._taps) < TAPS:
                self._taps[row.name] = Tap(
                    row.name, Splits(row) if row.event_time else None, Delays() if row.ingest_time else None
                )
        # A record's delay is measured to when Spark fixes a batch's time: when it has asked the sources what there is.
        took_ms = max(batch.end_ms - batch.begin_ms - told.duration_ms.get("latestOffset", 0), 0)
        for name, tap in self._taps.items():
            found = seen.get(name)
            if tap.splits is not None:
                tap.splits.complete(found, batch.begin_ms, batch.end_ms, late_ms)
            if tap.delays is not None and found is not None:
                tap.delays.add(found.delays, took_ms)

    def place(self, graph: JobGraph) -> None:
        """Find where in the graph the taps are, and let the vertices behind them know how far their splits are."""
        if not self._taps:
            return
        if self._placed != (graph.revision, len(self._taps)):
            self._placed = (graph.revision, len(self._taps))
            for tap in self._taps.values():
                _find(tap, graph)
            self._connect(graph)
        for vertex_id, gate in self._gates.items():
            _feed(gate)
            graph.vertices[vertex_id].split_watermark_ms = gate.valve.watermark_ms

    def tick(self, now_ms: int) -> None:
        """Look at the time that has passed, steady, once every 5 s."""
        for tap in self._taps.values():
            if tap.splits is not None:
                tap.splits.tick(now_ms)

    def end(self, now_ms: int, finished: bool, graph: JobGraph) -> None:
        """
        The run has ended, steady time.

        Args:
            finished: By itself, for its input had.
        """
        for tap in self._taps.values():
            if tap.splits is not None:
                tap.splits.end(now_ms, finished)
        self.place(graph)

    def of(self, vertex_id: str) -> Iterator[Tap]:
        """Yield the taps in a vertex."""
        return (tap for tap in self._taps.values() if tap.vertex == vertex_id)

    def _late(self, told: Progress) -> int | None:
        """
        Return the watermark behind which Spark took records of a batch for late; None where the query has none.

        Source: Spark, `IncrementalExecution`: late is what is behind the watermark of the batch before, so that what
        a stateful operator puts out when its watermark moves is not late for the next one. Seen on 3.5.9 and 4.3.0. Of
        the batch before a run's first, nobody has told: there its own stands for it.
        """
        own_ms = watermark(told.event_time)
        if own_ms is None:
            return None
        late_ms, self._watermark_ms = self._watermark_ms, own_ms
        if late_ms is None:
            late_ms = own_ms
        return late_ms

    def _connect(self, graph: JobGraph) -> None:
        """Have a valve at every vertex that has a tap or is behind one; a tap once there stays."""
        readers: dict[str, list[str]] = {}
        for vertex in graph.vertices.values():
            for source, exchange in vertex.inputs.items():
                if exchange.shuffles:
                    readers.setdefault(source, []).append(vertex.id)
        for tap in self._taps.values():
            if tap.splits is None or tap.vertex not in graph.vertices:
                continue
            reached, ahead = {tap.vertex}, [tap.vertex]
            # Plans of different batches, put together, might lead in a circle.
            while ahead:
                found = [reader for reader in readers.get(ahead.pop(), ()) if reader not in reached]
                reached.update(found)
                ahead += found
            for vertex_id in reached:
                gate = self._gates.setdefault(vertex_id, _Gate())
                if tap not in gate.taps:
                    gate.taps.append(tap)
        self._gates = {vertex_id: gate for vertex_id, gate in self._gates.items() if vertex_id in graph.vertices}


def _find(tap: Tap, graph: JobGraph) -> None:
    """Find a tap among the vertices of the latest plans; where none of them has it, it stays where it was."""
    current = [vertex for vertex_id, vertex in graph.vertices.items() if vertex_id in graph.current]
    for vertex in sorted(current, key=lambda each: each.id != tap.vertex):
        own = next((operator for operator in vertex.operators if _is(operator, tap.name)), None)
        if own is not None:
            tap.vertex, tap.operator, tap.source = vertex.id, own.id, _source(vertex, own).id
            return


def _is(operator: Operator, name: str) -> bool:
    own = f"{_COLLECT_METRICS} {PREFIX}{name}"
    return operator.node == _COLLECT_METRICS and operator.description.partition(",")[0].strip() == own


def _source(vertex: JobVertex, own: Operator) -> Operator:
    sources = [operator for operator in vertex.operators if operator.is_source]
    return sources[0] if len(sources) == 1 else own


def _feed(gate: _Gate) -> None:
    """Tell a vertex' valve what every split does, as of the latest batch."""
    told = [(tap.name, channel) for tap in gate.taps if tap.splits is not None for channel in tap.splits.channels()]
    # All that are new before any is told of: what the first ones tell must not pass before the others are waited for.
    for tap, channel in told:
        if (tap, channel.split) not in gate.channels:
            gate.channels[tap, channel.split] = gate.valve.add()
    # Active ones first: as long as one of them is, those that turn idle are not the last.
    for tap, channel in sorted(told, key=lambda each: each[1].idle):
        number = gate.channels[tap, channel.split]
        gate.valve.input_status(number, channel.idle)
        gate.valve.input_watermark(number, channel.watermark_ms)
