"""
The latency markers of one run: when they come due, which micro-batch carries them, and what becomes of them.

A marker is what a record would be that arrives at a source at the marked time. Spark tells of a micro-batch when it
has ended, and of a trigger without rows nothing at all: so all is settled afterwards, by arithmetic on the marked times
start + n · interval. All times are steady.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

import numpy as np

from spark_hooks import file_positions
from spark_hooks.emitter import Emitter, Position, Waiting, position
from spark_hooks.latencies import Latencies
from spark_hooks.offsets import reached
from spark_hooks.progress import Progress
from spark_hooks.routes import Routes
from spark_hooks.scans import Scan, scans
from spark_hooks.steady import SteadyTime
from spark_hooks.timeline import Batch
from spark_hooks.travel import Travel
from spark_hooks.triggers import interval_ms
from spark_hooks.vertex import JobVertex
from streamgauge import names, wire
from streamgauge.buckets import DEFAULT_HISTORY_SIZE

TRIGGER_MS = 100
"""A batch that began this much later than a trigger was due began there."""

_LONG_AGO_MS = -(2**62)
_NO_FILES: Mapping[int, file_positions.Position] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Emission:
    """How markers are emitted and what is told of them; `Settings` are their manual."""

    interval_ms: int = 2000
    granularity: wire.LatencyGranularity = "operator"
    history_size: int = DEFAULT_HISTORY_SIZE


class Markers:
    """
    The markers of one run. Not thread safe.

    At every moment, those that were emitted are those that reached a sink, those that were dropped, and those in
    flight.

    Args:
        emission: With an interval of at least 1 ms.
        start_ms: Of the run; marked times count from here.
        first_ms: When the run was first seen; no marker is emitted before.
        trigger: The query's, in Spark's words.
        random: Draws the ways that markers take.
    """

    def __init__(
        self, emission: Emission, start_ms: int, first_ms: int, trigger: str, time: SteadyTime, random: Random
    ) -> None:
        self.granularity = emission.granularity
        self.latencies = Latencies(emission.granularity, emission.history_size)
        self._start_ms = start_ms
        self._interval_ms = emission.interval_ms
        self._slot_ms = interval_ms(trigger) or 0
        self._time = time
        self._random = random
        # Numbers n of marked times: of the first whose fate is open, and of the next one to come due.
        self._open = self._next = max(-(-(first_ms - start_ms) // self._interval_ms), 0)
        self._ended = False
        self._busy_until_ms = _LONG_AGO_MS
        # A query has one source at least; Spark names them when its first batch has ended.
        self._emitters = [Emitter()]
        self._recorded = 0
        self._dropped: Counter[str] = Counter()
        self._routes = Routes({})
        self._revision = -1

    def look(self, now_ms: int) -> None:
        """Markers come due until `now_ms`."""
        due = (now_ms - self._start_ms) // self._interval_ms + 1
        if self._ended or due <= self._next:
            return
        for emitter in self._emitters:
            emitter.come_due(due - self._next)
        self._next = due

    def settle(
        self,
        batch: Batch,
        told: Progress,
        own: Mapping[str, JobVertex],
        revision: int,
        files: Mapping[int, file_positions.Position] = _NO_FILES,
    ) -> None:
        """
        A micro-batch was committed.

        Args:
            own: Vertices of the query's own plan in this batch, by id.
            revision: Of the graph; `own` changes with it.
            files: Where the sources stand that are streams of files, by their place in `told`.
        """
        if self._ended:
            return
        self.look(batch.begin_ms)
        bound, until = self._first_for(batch.begin_ms), self._until(batch.begin_ms)
        positions = [position(source, files.get(place)) for place, source in enumerate(told.sources)]
        if until == self._open and not any(emitter.waits for emitter in self._emitters):
            # Most batches of a query that runs many a second are due to no marker.
            for emitter, there in zip(self._emitters, positions, strict=False):
                emitter.stand(there.latest, batch.begin_ms)
            self._pass(batch)
            return
        if revision != self._revision:
            self._revision, self._routes = revision, Routes(own)
        # Where nothing is told of any source, the rows of the batch are theirs.
        positions = positions or [Position(told.num_input_rows > 0, None, None, told.num_input_rows)]
        while len(self._emitters) < len(positions):
            self._emitters.append(Emitter(self._next - self._open))
        operators = ((vertex.id, operator) for vertex in own.values() for operator in vertex.operators)
        found = scans(operators, [each.moved for each in positions], [source.description for source in told.sources])
        travel = Travel(batch, own, self._routes, self.latencies, self._random)
        for emitter, there, read in zip(self._emitters, positions, found, strict=False):
            emitter.grow(max((own[vertex_id].parallelism for vertex_id, _ in read), default=emitter.subtasks))
            for waiting in emitter.release(there.end):
                self._carry(travel, read, there, waiting)
            self._drop("idle", emitter.settle(bound - self._open))
            number, (now, before) = bound, emitter.stand(there.latest, batch.begin_ms)
            for times, subtasks in emitter.settle(until - bound):
                marked_ms = self._start_ms + self._interval_ms * np.arange(number, number + times)
                number += times
                self._bind(emitter, travel, read, there, Waiting(marked_ms, subtasks, now, before))
        for emitter in self._emitters[len(positions) :]:
            self._drop("lost", emitter.settle(until - self._open))
        self._pass(batch)

    def idle(self, now_ms: int) -> None:
        """The query waits for rows: since the last batch that was told, none has begun."""
        if self._ended:
            return
        self.look(now_ms)
        still = self._first_for(now_ms)
        for emitter in self._emitters:
            self._drop("idle", emitter.settle(still - self._open))
        self._open = still

    def miss(self, batch: Batch) -> None:
        """A micro-batch has ended, and what it read was not told."""
        if self._ended:
            return
        self.look(batch.begin_ms)
        bound, until = self._first_for(batch.begin_ms), self._until(batch.begin_ms)
        for emitter in self._emitters:
            self._drop("idle", emitter.settle(bound - self._open))
            self._drop("ended", emitter.settle(until - bound))
        self._pass(batch)

    def end(self, now_ms: int) -> None:
        """The run has ended."""
        self.look(now_ms)
        self._ended = True
        for emitter in self._emitters:
            self._dropped["ended"] += emitter.drop()

    def metrics(self) -> dict[str, int]:
        """Return what has become of the markers until now, by the job's metrics."""
        if self._time.now_ms is not None:
            self.look(self._time.now_ms)
        return {
            names.MARKERS_EMITTED: sum(emitter.emitted for emitter in self._emitters),
            names.MARKERS_RECORDED: self._recorded,
            names.MARKERS_IN_FLIGHT: sum(emitter.in_flight for emitter in self._emitters),
            **{metric: self._dropped[reason] for reason, metric in names.MARKERS_DROPPED_BY.items()},
        }

    def _until(self, moment_ms: int) -> int:
        """Return the number of the first marked time after `moment_ms` whose fate is open."""
        return max((moment_ms - self._start_ms) // self._interval_ms + 1, self._open)

    def _first_for(self, begin_ms: int) -> int:
        """
        Return the number of the first open marked time that a batch binds which begins at `begin_ms`.

        A marked time is bound by the first trigger at or after it. There are no triggers while a batch runs, and the
        next one, as far as can be told, is the later one of its end and the next slot, or without slots at once. Where
        a batch did begin, there was one, also if none was expected: the first of a run does not wait for its slot, nor
        does one that follows a batch which ran past its own.
        """
        latest_ms = begin_ms - TRIGGER_MS
        if self._busy_until_ms >= latest_ms:
            return self._open
        if self._slot_ms:
            # Spark's slots are multiples of the interval on the wall clock.
            shift_ms = self._time.shift_ms
            latest_ms = (latest_ms - shift_ms - 1) // self._slot_ms * self._slot_ms + shift_ms + 1
        return min(max(-(-(latest_ms - self._start_ms) // self._interval_ms), self._open), self._until(begin_ms))

    def _pass(self, batch: Batch) -> None:
        self._open = self._until(batch.begin_ms)
        self._busy_until_ms = max(batch.end_ms, self._busy_until_ms)

    def _bind(self, emitter: Emitter, travel: Travel, read: Sequence[Scan], there: Position, waiting: Waiting) -> None:
        """Settle what markers wait for that a batch binds: for nothing, for this batch, or for a later one."""
        behind = there.latest is not None and reached(there.end, there.latest) is False
        if there.moved:
            times = waiting.read(there.end) if behind else waiting.marked_ms.size
            if times:
                self._carry(travel, read, there, waiting.part(slice(times)))
            waiting = waiting.part(slice(times, None))
        if behind:
            self._dropped["crowded"] += emitter.bind(waiting)
        else:
            self._dropped["idle"] += waiting.markers

    def _carry(self, travel: Travel, read: Sequence[Scan], there: Position, waiting: Waiting) -> None:
        arrived = None
        if read:
            # A source that the plan scans more than once hands a marker to one of the scans.
            vertex_id, operator = self._random.choice(read)
            arrived = travel.carry(vertex_id, operator.id, waiting.marked_ms, waiting.subtasks)
        if arrived is None:
            # Without rows there may be no tasks, and then there was no record that waited.
            self._dropped["lost" if there.rows else "idle"] += waiting.markers
        else:
            self._recorded += arrived
            self._dropped["lost"] += waiting.markers - arrived

    def _drop(self, reason: str, settled: Iterable[tuple[int, int]]) -> None:
        self._dropped[reason] += sum(times * subtasks for times, subtasks in settled)
