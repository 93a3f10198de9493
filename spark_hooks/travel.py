"""How latency markers travel along the micro-batch that carries them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from spark_hooks.latencies import Arrivals, Latencies
from spark_hooks.routes import Routes, Station
from spark_hooks.timeline import Batch
from spark_hooks.vertex import JobVertex

if TYPE_CHECKING:
    from spark_hooks.stages import Stage

Integers = npt.NDArray[np.int64]

AT_ONCE = 65_536
"""Markers that travel together: bounds the memory that a batch takes which carries very many."""


class _Markers(NamedTuple):
    """Markers of one source vertex: marked times, steady, and the source's subtasks; int64, shape (n,)."""

    source: str
    marked_ms: Integers
    sources: Integers

    def of(self, chosen: npt.NDArray[np.bool_]) -> _Markers:
        return _Markers(self.source, self.marked_ms[chosen], self.sources[chosen])


class _Ran(NamedTuple):
    """A vertex's tasks in the batch: subtasks, ascending, and when each finished, steady; int64, shape (n,), n ≥ 1."""

    subtasks: Integers
    finished_ms: Integers


class Travel:
    """
    One micro-batch that has ended, as markers pass it. Not thread safe.

    Args:
        vertices: Of the query's own plan, by id.
        random: Draws readers and channels.
    """

    def __init__(
        self, batch: Batch, vertices: Mapping[str, JobVertex], routes: Routes, latencies: Latencies, random: Random
    ) -> None:
        self._batch = batch
        self._vertices = vertices
        self._routes = routes
        self._latencies = latencies
        self._random = random
        self._tasks: dict[str, _Ran | None] = {}

    @cached_property
    def _stages(self) -> dict[str, list[Stage]]:
        return self._batch.by_vertex()

    def carry(self, vertex_id: str, operator: str, marked_ms: Integers, subtasks: int) -> int | None:
        """
        Let markers of a source operator pass.

        Args:
            operator: Its id.
            marked_ms: int64, shape (n,), steady; one marker of each of `subtasks` subtasks was due at each.

        Returns:
            How many reached a sink; the others were lost on the way. None where the source's vertex ran no task.
        """
        ran = self._ran(vertex_id)
        if ran is None:
            return None
        arrived, step = 0, max(AT_ONCE // subtasks, 1)
        for first in range(0, marked_ms.size, step):
            part = marked_ms[first : first + step]
            markers = _Markers(vertex_id, part.repeat(subtasks), np.tile(np.arange(subtasks), part.size))
            arrived += self._pass(markers, vertex_id, operator, ran, markers.sources % ran.subtasks.size)
        return arrived

    def _pass(
        self, markers: _Markers, vertex_id: str, entry: str, ran: _Ran | None, places: Integers, length: int = 1
    ) -> int:
        """
        Let markers pass a vertex, and what is behind it; return how many reached a sink.

        Args:
            ran: None where it was passed over, for there were no rows: no operator of it did anything, but the query's
                end is its end all the same.
            places: Where among the vertex's tasks each marker is.
            length: Vertices on the way so far.
        """
        subtasks = places if ran is None else ran.subtasks[places]
        ended = self._batch.executed_ms >= 0
        for station in self._routes.stations(vertex_id, entry):
            if station.sink and ended:
                # What the query puts out is there when all of the batch has been executed, and not before.
                self._record(vertex_id, station, markers, subtasks, np.full(places.size, self._batch.executed_ms))
            elif ran is not None and not station.sink:
                self._record(vertex_id, station, markers, subtasks, ran.finished_ms[places])
        if self._routes.ends(vertex_id):
            return places.size if ended else 0
        # Plans of different batches, put together, might lead in a circle.
        if length >= self._routes.longest:
            return 0
        arrived = 0
        for reader, chosen in self._choose(self._routes.readers(vertex_id), markers):
            read = self._ran(reader)
            if read is not None:
                drawn = self._draw(read.subtasks.size, chosen.sources.size)
            elif self._passed_over(reader):
                drawn = self._draw(max(self._vertices[reader].parallelism, 1), chosen.sources.size)
            else:
                continue
            arrived += self._pass(chosen, reader, vertex_id, read, drawn, length + 1)
        return arrived

    def _record(
        self, vertex_id: str, station: Station, markers: _Markers, subtasks: Integers, arrived_ms: Integers
    ) -> None:
        begin_ms = self._batch.begin_ms
        queueing = np.maximum(begin_ms - markers.marked_ms, 0)
        processing = np.maximum(arrived_ms - np.maximum(markers.marked_ms, begin_ms), 0)
        arrivals = Arrivals(markers.source, markers.sources, subtasks, queueing, processing)
        self._latencies.record(vertex_id, station, arrivals)

    def _choose(self, readers: Sequence[str], markers: _Markers) -> Iterator[tuple[str, _Markers]]:
        """Let each marker go to one reader."""
        if len(readers) == 1:
            yield readers[0], markers
            return
        drawn = self._draw(len(readers), markers.sources.size)
        for number, reader in enumerate(readers):
            chosen = drawn == number
            if chosen.any():
                yield reader, markers.of(chosen)

    def _draw(self, choices: int, count: int) -> Integers:
        """Draw numbers below `choices`, each as likely as the others; there must be at least one choice."""
        if choices <= 1:
            return np.zeros(count, dtype=np.int64)
        return (np.frombuffer(self._random.randbytes(8 * count), dtype=np.uint64) % choices).astype(np.int64)

    def _ran(self, vertex_id: str) -> _Ran | None:
        if vertex_id not in self._tasks:
            # Where several stages executed it, what reads it has read the last one.
            finished = {
                partition: won.finished_ms
                for stage in self._stages.get(vertex_id, ())
                for partition, won in stage.won.items()
            }
            ordered = sorted(finished)
            self._tasks[vertex_id] = (
                _Ran(np.array(ordered), np.array([finished[partition] for partition in ordered])) if ordered else None
            )
        return self._tasks[vertex_id]

    def _passed_over(self, reader: str) -> bool:
        """
        Whether a vertex of which Spark told no task had nothing to do, for one that writes what it reads wrote no row.

        Adaptive execution leaves such a stage out. In foreachBatch it may run, and tell nothing that would show whose
        stage it is.
        """
        return any(self._wrote_nothing(writer) for writer in self._routes.writers(reader))

    def _wrote_nothing(self, vertex_id: str) -> bool:
        for stage in self._stages.get(vertex_id, ()):
            for bound in stage.vertices():
                if bound.vertex.id == vertex_id and (bound.written is None or _wrote(stage, bound.written)):
                    return False
        return True


def _wrote(stage: Stage, accumulator: int) -> bool:
    return any(won.updates.get(accumulator) for won in stage.won.values())
