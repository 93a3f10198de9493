"""A vertex of a job over all batches of a run, and what a plan's vertex is of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spark_hooks import plan
from spark_hooks.accumulators import Accumulators, Reading, Run
from spark_hooks.alignment import Alignment
from spark_hooks.buffers import Buffers
from spark_hooks.counts import BYTES_SPILLED, BYTES_WRITTEN, FETCH_WAIT, WRITTEN_RECORDS, Terms, late, terms
from spark_hooks.metrics import Counters, MeterViews
from spark_hooks.source_columns import SourceColumns
from spark_hooks.time_shares import TimeShares
from spark_hooks.vertex_state import VertexState
from spark_hooks.vertex_timers import KEYS, VertexTimers, has_timers
from spark_hooks.vertex_watermarks import VertexWatermarks
from streamgauge import wire


class JobVertex:
    """
    A vertex over all batches of a run. Not thread safe.

    Its counters' columns are (in, out) of each operator, then `TOTALS`, then the late rows of each operator in `late`,
    which are places among `operators`. `timers` is None where no operator has any, `split_watermark_ms` where no tap is
    in it or before it.
    """

    def __init__(self, vertex: plan.Vertex) -> None:
        self.id = vertex.id
        self.name = vertex.name
        self.operators = tuple(vertex.operators)
        self.inputs: dict[str, plan.Exchange] = {}
        self.late = late(vertex)
        self.known: list[bool] = [found is not None for found in flat(vertex)]
        columns = len(self.known)
        self.counters = Counters(columns)
        self.views = MeterViews(columns)
        self.accumulators = Accumulators()
        timed = [operator for operator in self.operators if has_timers(operator)]
        self.timers = VertexTimers(timed, self.accumulators) if timed else None
        self.state = VertexState(tuple(operator.id for operator in self.operators), self.accumulators)
        self.shares = TimeShares()
        self.buffers = Buffers()
        self.alignment = Alignment()
        self.sources = SourceColumns()
        self.split_watermark_ms: int | None = None
        self.watermarks = VertexWatermarks()
        self.parallelism = 0
        self.start_ms = -1
        self.attempts = np.zeros(0, dtype=np.int64)
        self.executor_indices = np.zeros(0, dtype=np.int64)
        self.starts_ms = np.zeros(0, dtype=np.int64)
        self.ends_ms = np.zeros(0, dtype=np.int64)
        self.executors: dict[str, int] = {}

    @property
    def size(self) -> int:
        """Subtasks that any stage had."""
        return self.counters.rows

    @property
    def is_source(self) -> bool:
        """Whether it reads no shuffle; a broadcast is no stream of records, it only joins one."""
        return not any(exchange.shuffles for exchange in self.inputs.values())

    def link(self, vertex: plan.Vertex) -> bool:
        """Take in the exchanges that a plan's `vertex` reads; return whether one is new."""
        found = {exchange.source.id: exchange for exchange in vertex.reads if not exchange.source.empty}
        new = found.keys() - self.inputs.keys()
        self.inputs.update({source: found[source] for source in found if source in new})
        return bool(new)

    def run_stage(self, tasks: int) -> None:
        """A stage of `tasks` tasks executes the vertex."""
        self.parallelism = tasks
        self.register(tasks)

    def register(self, rows: int) -> None:
        """Have `rows` subtasks at least."""
        more = rows - self.size
        if more <= 0:
            return
        self.counters.register(rows)
        self.views.register(rows)
        self.buffers.register(rows)
        self.alignment.register(rows)
        if self.timers is not None:
            self.timers.register(rows)
        unknown = np.full(more, -1, dtype=np.int64)
        self.attempts = np.concatenate([self.attempts, np.zeros(more, dtype=np.int64)])
        self.executor_indices = np.concatenate([self.executor_indices, unknown])
        self.starts_ms = np.concatenate([self.starts_ms, unknown])
        self.ends_ms = np.concatenate([self.ends_ms, unknown])

    def start_task(self, subtask: int, attempt: int, executor: str, launch_ms: int) -> None:
        """A task of `subtask` was launched."""
        self.register(subtask + 1)
        self.attempts[subtask] = attempt
        self.executor_indices[subtask] = self.executors.setdefault(executor, len(self.executors))
        self.starts_ms[subtask] = launch_ms
        self.ends_ms[subtask] = -1
        if self.start_ms < 0:
            self.start_ms = launch_ms

    def end_task(self, subtask: int, attempt: int, executor: str, launch_ms: int, finish_ms: int) -> None:
        """A task of `subtask` ended; one that is not the latest changes nothing."""
        self.register(subtask + 1)
        if launch_ms > self.starts_ms[subtask]:
            self.start_task(subtask, attempt, executor, launch_ms)
        if launch_ms == self.starts_ms[subtask]:
            self.ends_ms[subtask] = finish_ms

    def tick(self) -> None:
        """Update the rates, and sample what is told as a mean, once every 5 s."""
        self.views.update(self.counters.shown())
        self.buffers.sample()
        if self.timers is not None:
            self.timers.tick()


def flat(vertex: plan.Vertex) -> list[Terms | None]:
    """Return how a task's counts follow from its updates, in the order of a vertex's counters."""
    operators, totals = terms(vertex)
    dropped: list[Terms | None] = [(vertex.operators[place].late,) for place in late(vertex)]
    return [found for pair in operators for found in pair] + list(totals) + dropped


class Bound:
    """
    A vertex of one plan, and the vertex of the job that it is. Immutable.

    Args:
        columns: For each value of `flat`, the column of the job's vertex; None where it has none.
        only: Accumulators that count; None for all.

    `plan_vertex` is the plan's. `timers` is where its tasks' timers count, None where nowhere. `state` and `commits`
    are the accumulators of the bytes of its state, and of the time it took to commit it, `fetch_waits` of the time that
    it waited for shuffle blocks.
    """

    def __init__(
        self,
        plan_vertex: plan.Vertex,
        vertex: JobVertex,
        columns: Sequence[int | None],
        only: frozenset[int] | None = None,
    ) -> None:
        self.vertex = vertex
        self.plan_vertex = plan_vertex
        self._only = only
        self._operators = tuple(
            None if column is None else vertex.operators[column // 2].id
            for column in columns[: 2 * len(plan_vertex.operators) : 2]
        )
        self._reading: Reading | None = None
        # Worked out here, for a plan's walk is too long to be taken for every task.
        self.state = tuple(each for operator in plan_vertex.operators for each in operator.state)
        self.commits = tuple(each for operator in plan_vertex.operators for each in operator.commits)
        self.fetch_waits = tuple(
            exchange.metrics[FETCH_WAIT]
            for exchange in plan_vertex.reads
            if exchange.shuffles and FETCH_WAIT in exchange.metrics
        )
        timed = [operator for operator in plan_vertex.operators if has_timers(operator)]
        counts = any(only is None or not only.isdisjoint(operator.rows) for operator in timed)
        self.timers = vertex.timers if counts else None
        self._keys = {each.accumulator for operator in timed for each in operator.native if each.plain == KEYS}
        self._columns: dict[int, list[int]] = {}
        self._greatest: list[tuple[tuple[int, ...], int]] = []
        for column, found in zip(columns, flat(plan_vertex), strict=True):
            if column is None or found is None:
                continue
            for term in found:
                if only is not None and only.isdisjoint(term):
                    continue
                if len(term) == 1:
                    self._columns.setdefault(term[0], []).append(column)
                else:
                    self._greatest.append((term, column))

    @property
    def written(self) -> int | None:
        """The accumulator of the records that its tasks write to a shuffle; None where it writes none."""
        writes = self.plan_vertex.writes
        return None if writes is None else writes.metrics.get(WRITTEN_RECORDS)

    def counts_as(self, other: Bound) -> bool:
        """Whether a task's counts and native metrics are the same here and there, as where a plan is told again."""
        return (
            self.vertex is other.vertex
            and self._columns == other._columns
            and self._greatest == other._greatest
            and self.reading == other.reading
        )

    def counts(self, updates: Mapping[int, int], bytes_written: int = 0, bytes_spilled: int = 0) -> list[int]:
        """Return one task's counts, in the columns of the job's vertex."""
        row = [0] * len(self.vertex.known)
        # These are fewer than a task's updates.
        for accumulator, columns in self._columns.items():
            value = updates.get(accumulator)
            if value:
                for column in columns:
                    row[column] += value
        for accumulators, column in self._greatest:
            row[column] += max(updates.get(accumulator, 0) for accumulator in accumulators)
        for column in self._columns.get(BYTES_WRITTEN, ()):
            row[column] += bytes_written
        for column in self._columns.get(BYTES_SPILLED, ()):
            row[column] += bytes_spilled
        return row

    def accumulate(self, subtask: int, run: Run, updates: Mapping[int, int]) -> None:
        """Add a task's native metrics to the job's vertex."""
        self.vertex.accumulators.add(subtask, run, self._reading or self.reading, updates)
        if self.timers is not None and not self._keys.isdisjoint(updates):
            self.timers.keys_told = True

    def retract(self, subtask: int, run: Run, updates: Mapping[int, int]) -> None:
        """Take out again what `accumulate` has added."""
        self.vertex.accumulators.take_out(subtask, run, self.reading, updates)

    @property
    def reading(self) -> Reading:
        """How the native metrics follow from a task's updates; found when first asked for: many plans run no task."""
        if self._reading is None:
            table = self.vertex.accumulators
            self._reading = table.reading(self.plan_vertex, self._operators, self._only)
        return self._reading


def subtask_columns(vertex: JobVertex, executor_prefix: str) -> wire.Subtasks:
    """Return where and when the vertex's subtasks ran, as it travels."""

    def packed(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bytes:
        return values.astype("<i8").tobytes()

    executors: Sequence[str] = list(vertex.executors)
    return wire.Subtasks(
        attempt=packed(vertex.attempts),
        executor=packed(vertex.executor_indices),
        start_ms=packed(vertex.starts_ms),
        end_ms=packed(vertex.ends_ms),
        executors=tuple(f"{executor_prefix}-{executor}" for executor in executors),
    )
