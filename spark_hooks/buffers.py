"""What waits in a micro-batch's shuffles, subtask by subtask, and how full the memory is through which it goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spark_hooks.counts import READ_LOCAL_BYTES, READ_REMOTE_BYTES, WRITTEN_BYTES
from spark_hooks.shuffles import Ran, Shuffles
from streamgauge import names

if TYPE_CHECKING:
    from spark_hooks.executors import Executors
    from spark_hooks.stages import Won
    from spark_hooks.vertex import JobVertex

SAMPLES = 12
"""One every 5 s: what is told as a mean is that of the last 60 s."""

_Longs = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Flags = npt.NDArray[np.bool_]

Column = tuple[str, str, _Longs | _Floats, _Flags | None]


class Buffers:
    """
    What waits behind and before the subtasks of a vertex. Not thread safe.

    `revision` grows with every change.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._state: object = None
        self._pool_state: object = None
        self._out_lengths, self._out_bytes, self._in_lengths, self._in_bytes = np.zeros((4, 0), dtype=np.int64)
        self._out_usage: _Floats = np.zeros(0)
        self._in_usage: _Floats = np.zeros(0)
        self._samples = np.zeros((SAMPLES, 0))
        self._sampled = np.zeros(0, dtype=np.int64)
        self._newest = 0

    def register(self, rows: int) -> None:
        """Have `rows` subtasks at least; nothing waits for a new one, and of its memory nothing is known."""
        more = rows - self._sampled.size
        if more <= 0:
            return
        zeros = np.zeros(more, dtype=np.int64)
        self._out_lengths = np.concatenate([self._out_lengths, zeros])
        self._out_bytes = np.concatenate([self._out_bytes, zeros])
        self._in_lengths = np.concatenate([self._in_lengths, zeros])
        self._in_bytes = np.concatenate([self._in_bytes, zeros])
        self._sampled = np.concatenate([self._sampled, zeros])
        self._out_usage = np.concatenate([self._out_usage, np.full(more, np.nan)])
        self._in_usage = np.concatenate([self._in_usage, np.zeros(more)])
        self._samples = np.concatenate([self._samples, np.zeros((SAMPLES, more))], axis=1)
        self.revision += 1

    def moved(self, state: object) -> bool:
        """Remember what the queues are made of; return whether it is not what it was."""
        if state == self._state:
            return False
        self._state = state
        return True

    def queue(self, out: tuple[_Longs, _Longs], came: tuple[_Longs, _Longs], in_flight_bytes: float) -> None:
        """
        Replace what waits.

        Args:
            out, came: Blocks and bytes that wait behind each subtask and before it, shape (subtasks,).
            in_flight_bytes: What a task fetches at once; NaN where it is not known.
        """
        self._out_lengths, self._out_bytes = out
        self._in_lengths, self._in_bytes = came
        self._in_usage = np.where(self._in_bytes > 0, np.minimum(self._in_bytes / in_flight_bytes, 1.0), 0.0)
        self.revision += 1

    def empty(self) -> None:
        """Nothing waits any more."""
        if self.moved(None):
            nothing = np.zeros(self._sampled.size, dtype=np.int64)
            self.queue((nothing, nothing), (nothing, nothing), np.nan)

    def fill(self, stages: Iterable[Ran], executors: Executors) -> None:
        """Take in how much memory the tasks that have run held at most, over their slot's share."""
        ran = list(stages)
        state = tuple(each.state for each in ran)
        if state == self._pool_state:
            return
        self._pool_state = state
        won = [each for one in ran for each in one.stage.won.values()]
        if not won:
            return
        slots = {executor: executors.slot_bytes(executor) for executor in {each.executor for each in won}}
        peaks = np.fromiter((each.peak_bytes for each in won), dtype=np.float64, count=len(won))
        pools = np.fromiter((slots[each.executor] for each in won), dtype=np.float64, count=len(won))
        # An empty pool is not used; NaN stays NaN.
        usage = np.where(pools == 0, 0.0, np.minimum(peaks / np.where(pools == 0, 1.0, pools), 1.0))
        self._out_usage[_subtasks(won)] = usage
        self.revision += 1

    def sample(self) -> None:
        """Sample how full the inputs are, once every 5 s."""
        before = self._mean()
        self._newest = (self._newest + 1) % SAMPLES
        self._samples[self._newest] = self._in_usage
        self._sampled += self._sampled < SAMPLES
        if not np.array_equal(self._mean(), before, equal_nan=True):
            self.revision += 1

    def columns(self) -> Iterator[Column]:
        """Return everything: name, its present prefix, values, whether there is one; arrays are the caller's."""
        yield names.OUTPUT_QUEUE_LENGTH, names.OUTPUT_BUFFERS, self._out_lengths.copy(), None
        yield names.OUTPUT_QUEUE_SIZE, names.OUTPUT_BUFFERS, self._out_bytes.copy(), None
        yield names.INPUT_QUEUE_LENGTH, names.INPUT_BUFFERS, self._in_lengths.copy(), None
        yield names.INPUT_QUEUE_SIZE, names.INPUT_BUFFERS, self._in_bytes.copy(), None
        for metric, prefix, usage in (
            (names.OUT_POOL_USAGE, names.OUTPUT_BUFFERS, self._out_usage),
            (names.IN_POOL_USAGE, names.INPUT_BUFFERS, self._mean()),
        ):
            known = ~np.isnan(usage)
            if known.any():
                yield metric, prefix, np.where(known, usage, 0.0), known

    def _mean(self) -> _Floats:
        # Of a subtask that was not sampled yet it is what it is now.
        sampled = self._sampled > 0
        mean: _Floats = np.where(sampled, self._samples.sum(axis=0) / np.maximum(self._sampled, 1), self._in_usage)
        return mean


@dataclass(frozen=True, slots=True)
class _Written:
    """
    What a stage's finished tasks have written: by subtask, and block and byte totals by executor.

    `partitions` is what the plan parts it into.
    """

    partitions: int
    subtasks: _Longs
    bytes: _Longs
    total_bytes: int
    blocks_on: dict[str, int]
    bytes_on: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Awaited:
    """Which subtasks of a reader have not finished, and how much of what was written they have yet to read."""

    unfinished: _Flags
    blocks: int
    bytes: int


def queue(shuffles: Shuffles, vertices: Iterable[JobVertex], executors: Executors) -> None:
    """
    Tell every vertex what waits behind and before its subtasks, as of now.

    A block is written by an upstream task for each downstream one, and is freed when that one has finished: one for
    each pair, also where it is empty, and where a task reads one branch of a union alone, for Spark tells of no blocks
    before they are read. Bytes are those that the upstream tasks have written less those that finished downstream tasks
    have read: of an upstream subtask in proportion to what it wrote, of downstream ones in equal parts.
    """
    look = _Look(shuffles, executors)
    for vertex in vertices:
        if vertex.buffers.moved(look.state(vertex)):
            vertex.buffers.queue(look.behind(vertex), look.before(vertex), executors.in_flight_bytes)


class _Look:
    """One look at the queues of a micro-batch."""

    def __init__(self, shuffles: Shuffles, executors: Executors) -> None:
        self._shuffles = shuffles
        self._alone = executors.count <= 1
        self._written: dict[str, _Written] = {}

    def state(self, vertex: JobVertex) -> object:
        """What the vertex's queues are made of; None where nothing can wait."""
        shuffles = self._shuffles
        writer = shuffles.writer(vertex.id)
        parts: list[object] = []
        if writer is not None:
            readers = shuffles.readers(vertex.id, writer)
            parts += [writer.state, *(reader.state if reader else each.parallelism for each, reader in readers)]
        for source in shuffles.sources(vertex):
            wrote = shuffles.writer(source)
            if wrote is not None:
                reader = shuffles.reader(vertex.id, wrote)
                parts += [source, wrote.state, reader.state if reader else vertex.parallelism]
        return (vertex.size, self._alone, *parts) if parts else None

    def behind(self, vertex: JobVertex) -> tuple[_Longs, _Longs]:
        """Return the blocks and bytes that wait for those which read the vertex's shuffle."""
        lengths, sizes = np.zeros((2, vertex.size), dtype=np.int64)
        writer = self._shuffles.writer(vertex.id)
        if writer is not None:
            written = self._wrote(vertex.id, writer)
            readers = self._shuffles.readers(vertex.id, writer)
            awaited = [self._awaits(vertex.id, each, reader, written) for each, reader in readers]
            # What several vertices read is there until the last of them has it.
            blocks = max((each.blocks for each in awaited), default=written.partitions)
            left = max((each.bytes for each in awaited), default=written.total_bytes)
            lengths[written.subtasks] = blocks
            sizes[written.subtasks] = written.bytes * (left / max(written.total_bytes, 1))
        return lengths, sizes

    def before(self, vertex: JobVertex) -> tuple[_Longs, _Longs]:
        """Return the blocks and bytes on other executors that wait for the vertex's subtasks."""
        lengths, sizes = np.zeros((2, vertex.size), dtype=np.int64)
        for source in self._shuffles.sources(vertex):
            writer = self._shuffles.writer(source)
            if writer is None:
                continue
            written = self._wrote(source, writer)
            reader = self._shuffles.reader(vertex.id, writer)
            awaited = self._awaits(source, vertex, reader, written)
            if not awaited.blocks or not written.subtasks.size:
                continue
            share = awaited.bytes / awaited.blocks / max(written.total_bytes, 1)
            # Where a task may still be placed anywhere, all is remote, but for where there is one executor.
            anywhere = 0 if self._alone else 1
            blocks = np.full(vertex.size, written.subtasks.size * anywhere)
            parts = np.full(vertex.size, written.total_bytes * anywhere)
            placed = {} if reader is None else reader.stage.places
            rows = np.fromiter((row for row in placed if row < vertex.size), dtype=np.int64)
            on = [executor for row, executor in placed.items() if row < vertex.size]
            blocks[rows] = [written.subtasks.size - written.blocks_on.get(executor, 0) for executor in on]
            parts[rows] = [written.total_bytes - written.bytes_on.get(executor, 0) for executor in on]
            lengths += np.where(awaited.unfinished, blocks, 0)
            sizes += np.where(awaited.unfinished, parts * share, 0).astype(np.int64)
        return lengths, sizes

    def _wrote(self, vertex_id: str, writer: Ran) -> _Written:
        found = self._written.get(vertex_id)
        if found is None:
            won = self._shuffles.finished(writer)
            writes = writer.bound.plan_vertex.writes
            accumulator = -1 if writes is None else writes.metrics.get(WRITTEN_BYTES, -1)
            sizes = [each.updates.get(accumulator, 0) for each in won]
            blocks_on: dict[str, int] = {}
            bytes_on: dict[str, int] = {}
            for each, size in zip(won, sizes, strict=True):
                blocks_on[each.executor] = blocks_on.get(each.executor, 0) + 1
                bytes_on[each.executor] = bytes_on.get(each.executor, 0) + size
            found = self._written[vertex_id] = _Written(
                0 if writes is None else writes.partitions,
                _subtasks(won),
                np.array(sizes, dtype=np.int64),
                sum(sizes),
                blocks_on,
                bytes_on,
            )
        return found

    def _awaits(self, source: str, vertex: JobVertex, reader: Ran | None, written: _Written) -> _Awaited:
        unfinished = np.zeros(vertex.size, dtype=np.bool_)
        if reader is None:
            unfinished[: vertex.parallelism] = True
            # Of one that has never run the plan alone tells how many they are.
            return _Awaited(unfinished, vertex.parallelism or written.partitions, written.total_bytes)
        stage = reader.stage
        if stage.completed_ms >= 0:
            return _Awaited(unfinished, 0, 0)
        launched = np.fromiter((row for row in stage.launches if row < vertex.size), dtype=np.int64)
        # A job on some of the partitions alone, as of take(), does not tell which, but for those that were launched.
        if launched.size and launched.max() >= stage.tasks:
            unfinished[launched] = True
        else:
            unfinished[: stage.tasks] = True
        finished = self._shuffles.finished(reader)
        unfinished[_subtasks(finished)] = False
        blocks = int(unfinished.sum())
        exchange = self._shuffles.exchange(reader, source)
        read = 0
        if exchange is not None:
            accumulators = [exchange.metrics.get(metric, -1) for metric in (READ_LOCAL_BYTES, READ_REMOTE_BYTES)]
            read = sum(each.updates.get(accumulator, 0) for each in finished for accumulator in accumulators)
        return _Awaited(unfinished, blocks, max(written.total_bytes - read, 0) if blocks else 0)


def _subtasks(won: list[Won]) -> _Longs:
    return np.fromiter((each.subtask for each in won), dtype=np.int64, count=len(won))
