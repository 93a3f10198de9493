"""One run of a streaming query, or one batch execution: its graph, counters, state and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from spark_hooks import plan
from spark_hooks.counts import BYTES_WRITTEN, TOTALS, Terms, terms
from spark_hooks.metrics import Counters, MeterViews
from spark_hooks.records import Progress
from spark_hooks.sources import Sources
from streamgauge import names, wire

VERTICES = 500
"""Held of one run. User code in foreachBatch may plan differently in every batch; the oldest plans leave."""

_RUNS_OUT = ("AvailableNowTrigger", "OneTimeTrigger")
"""Triggers whose query ends by itself."""


class JobVertex:
    """
    A vertex over all batches of a run. Not thread safe.

    Its counters' columns are (in, out) of each operator, then `TOTALS`.
    """

    def __init__(self, vertex: plan.Vertex) -> None:
        self.id = vertex.id
        self.name = vertex.name
        self.operators = tuple(vertex.operators)
        self.inputs: dict[str, plan.Exchange] = {}
        columns = 2 * len(self.operators) + len(TOTALS)
        self.known: list[bool] = [found is not None for found in flat(vertex)]
        self.counters = Counters(columns)
        self.views = MeterViews(columns)
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
        """Update the rates, once every 5 s."""
        self.views.update(self.counters.shown())


def flat(vertex: plan.Vertex) -> list[Terms | None]:
    """Return how a task's counts follow from its updates, in the order of a vertex's counters."""
    operators, totals = terms(vertex)
    return [found for pair in operators for found in pair] + list(totals)


class Bound:
    """
    A vertex of one plan, and the vertex of the job that it is. Immutable.

    Args:
        columns: For each value of `flat`, the column of the job's vertex; None where it has none.
        only: Accumulators that count; None for all.
    """

    def __init__(
        self,
        plan_vertex: plan.Vertex,
        vertex: JobVertex,
        columns: Sequence[int | None],
        only: frozenset[int] | None = None,
    ) -> None:
        self.vertex = vertex
        # Worked out here, for a plan's walk is too long to be taken for every task.
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

    def counts(self, updates: Mapping[int, int], bytes_written: int) -> list[int]:
        """Return one task's counts, in the columns of the job's vertex."""
        row = [0] * len(self.vertex.known)
        for accumulator, value in updates.items():
            for column in self._columns.get(accumulator, ()):
                row[column] += value
        for accumulators, column in self._greatest:
            row[column] += max(updates.get(accumulator, 0) for accumulator in accumulators)
        for column in self._columns.get(BYTES_WRITTEN, ()):
            row[column] += bytes_written
        return row


class Job:
    """
    One run of a query, or a batch execution; `settings` are those that are not the application's. Not thread safe.

    Args:
        jid: 32 hex digits.
        attempt: (start, Spark's run id; of a batch its execution id).
        state: CREATED until its first batch, RESTARTING where another run came before.
        sink: What the query says of its sink; None for a batch.
    """

    def __init__(
        self,
        jid: str,
        kind: Literal["STREAMING", "BATCH"],
        name: str | None,
        app_name: str,
        attempt: wire.Attempt,
        state: wire.JobState = "RUNNING",
        trigger: str | None = None,
        sink: str | None = None,
    ) -> None:
        self.jid = jid
        self.kind: Literal["STREAMING", "BATCH"] = kind
        self.attempt = attempt
        self.trigger = trigger or ""
        self.sink = sink
        self.state: wire.JobState = state
        self.since_ms: dict[str, int] = {"CREATED": attempt.start_ms, state: attempt.start_ms}
        self.end_ms = -1
        self.failure = ""
        self.settings: dict[str, str] = {}
        self.vertices: dict[str, JobVertex] = {}
        self.current: set[str] = set()
        self.revision = 0
        self._name = name
        self._app_name = app_name
        self._positions: dict[tuple[int, ...], str] = {}
        self._batch_begun = False
        self._broken_off = False
        self._completed = 0
        self._failed = 0
        self._input_rows = 0
        self._output_rows: int | None = 0
        self._sources = Sources()
        self._last: Progress | None = None
        self._last_end_ms = -1

    @property
    def name(self) -> str:
        """The query's name, else '<app name>: <source> -> <sink>': stable over restarts."""
        if self._name:
            return self._name
        first, last = self._ends()
        return f"{self._app_name}: {first} -> {last}" if first and last else self._app_name

    def _ends(self) -> tuple[str, str]:
        operators = [operator for vertex in self.vertices.values() for operator in vertex.operators]
        sources = [operator.name.removeprefix("Source: ") for operator in operators if operator.is_source]
        sinks = [operator.name.removeprefix("Sink: ") for operator in operators if operator.sink]
        return (sources[0] if sources else "", sinks[0] if sinks else "")

    # ---- Graph

    def merge(self, graph: plan.Graph, own: bool) -> None:
        """
        Take a plan's vertices into the graph; a vertex that is there stays as it is.

        Args:
            own: It is the query's own plan, not one that user code ran within a batch.
        """
        for vertex in graph.vertices:
            if vertex.empty and not vertex.operators[-1].sink:
                continue
            self.bind(vertex, own)

    def bind(self, vertex: plan.Vertex, own: bool, only: frozenset[int] | None = None) -> Bound:
        """
        Return the job's vertex that `vertex` is, added if it is new.

        Args:
            only: Accumulators that count; None for all.

        Where Spark shows an empty source in place of the real one, the vertex at the same place of the
        plan is meant: a batch without rows renames nothing.
        """
        known = self._known(vertex, own)
        if known is not None and known.id != vertex.id:
            return Bound(vertex, known, _columns(vertex, known), only)
        if known is None:
            self._make_room()
            known = self.vertices[vertex.id] = JobVertex(vertex)
            self.revision += 1
        if known.link(vertex):
            self.revision += 1
        if own and not vertex.empty:
            self._positions[vertex.position] = vertex.id
        return Bound(vertex, known, tuple(range(len(known.known))), only)

    def show(self, graphs: Iterable[tuple[plan.Graph, bool]]) -> None:
        """
        Tell which vertices the latest plans have; where Spark shows an empty source, what was there stays.

        Args:
            graphs: Each with whether it is the query's own plan.
        """
        vertices = (self._known(vertex, own) for graph, own in graphs for vertex in graph.vertices)
        found = {vertex.id for vertex in vertices if vertex is not None}
        if found and found != self.current:
            self.current = found
            self.revision += 1

    def _known(self, vertex: plan.Vertex, own: bool) -> JobVertex | None:
        known = self.vertices.get(vertex.id)
        if known is None and vertex.empty and own:
            known = self.vertices.get(self._positions.get(vertex.position, ""))
        return known

    def _make_room(self) -> None:
        """Let the oldest vertex go that no latest plan has, where there are too many."""
        if len(self.vertices) >= VERTICES:
            oldest = next((vertex_id for vertex_id in self.vertices if vertex_id not in self.current), None)
            if oldest is not None:
                del self.vertices[oldest]

    # ---- Life

    def begin_batch(self, time_ms: int) -> None:
        """A micro-batch, or the batch execution, begins."""
        self._batch_begun = True
        self._broken_off = False
        self.start(time_ms)

    def break_off(self) -> None:
        """A micro-batch's execution ended with an error; where none ends the run, it was stopped."""
        self._broken_off = True

    def start(self, time_ms: int) -> None:
        """The run is seen to be up: a batch begins, or it waits for rows."""
        if self.state in ("CREATED", "RESTARTING"):
            self._enter("RUNNING", time_ms)

    def progress(self, event: Progress, end_ms: int) -> None:
        """A micro-batch ended."""
        self._batch_begun = False
        self._completed += 1
        self._input_rows += event.num_input_rows
        if event.sink.num_output_rows < 0:
            self._output_rows = None
        elif self._output_rows is not None:
            self._output_rows += event.sink.num_output_rows
        self._sources.progress(event.sources)
        self._last, self._last_end_ms = event, end_ms

    def end(self, time_ms: int, failure: str | None) -> None:
        """
        The run ended.

        Args:
            failure: What ended it, None where nothing did: then the trigger tells a query that was done
                (FINISHED) from one that was stopped (CANCELED). One that was stopped between two of its
                batches, though it would have ended by itself, cannot be told from one that was done.
        """
        if self.state in wire.ENDED_STATES:
            return
        if failure is not None:
            self.failure = failure
            self._failed += self._batch_begun
            self._end("FAILED", time_ms)
        elif self.kind == "BATCH" or (self.trigger.startswith(_RUNS_OUT) and not self._broken_off):
            self._end("FINISHED", time_ms)
        else:
            self._end("CANCELED", time_ms)

    def cancel(self, time_ms: int) -> None:
        """The application ended under the run; what had ended before stays as it is."""
        if self.state not in wire.ENDED_STATES:
            self._end("CANCELED", time_ms)

    def _end(self, state: wire.JobState, time_ms: int) -> None:
        self._enter(state, time_ms)
        self._batch_begun = False
        self.end_ms = time_ms

    def _enter(self, state: wire.JobState, time_ms: int) -> None:
        self.state = state
        self.since_ms[state] = time_ms

    # ---- Figures

    def metrics(self) -> dict[str, wire.Scalar]:
        """Return the job's own metrics; what Spark has not told is absent."""
        if self.kind == "BATCH":
            return {}
        in_progress = int(self._batch_begun)
        found: dict[str, wire.Scalar] = {
            names.NUM_COMPLETED_CHECKPOINTS: self._completed,
            names.NUM_FAILED_CHECKPOINTS: self._failed,
            names.NUM_IN_PROGRESS_CHECKPOINTS: in_progress,
            names.TOTAL_CHECKPOINTS: self._completed + self._failed + in_progress,
            names.INPUT_ROWS: self._input_rows,
        }
        if self._output_rows is not None:
            found[names.OUTPUT_ROWS] = self._output_rows
        last = self._last
        if last is not None:
            found[names.LAST_COMPLETED_CHECKPOINT_ID] = last.batch_id
            found[names.LAST_CHECKPOINT_SIZE] = sum(operator.memory_used_bytes for operator in last.state_operators)
            found[names.LAST_CHECKPOINT_COMPLETED] = self._last_end_ms
            found[names.LAST_CHECKPOINT_PROCESSED] = last.num_input_rows
            if "triggerExecution" in last.duration_ms:
                found[names.LAST_CHECKPOINT_DURATION] = last.duration_ms["triggerExecution"]
        return found

    def coordinators(self) -> dict[tuple[str, str], dict[str, wire.Scalar]]:
        """Return what the driver itself knows of the query's sources, by vertex and operator id."""
        own = self.current.intersection(self._positions.values())
        return self._sources.metrics(
            (vertex_id, operator)
            for vertex_id in own.intersection(self.vertices)
            for operator in self.vertices[vertex_id].operators
        )

    def tick(self) -> None:
        """Update all rates, once every 5 s."""
        for vertex in self.vertices.values():
            vertex.tick()


def _columns(vertex: plan.Vertex, known: JobVertex) -> tuple[int | None, ...]:
    """Match the operators of a plan with an empty source to the real ones, by node and from the sink."""
    free = list(range(len(known.operators)))
    columns: list[int | None] = []
    for operator in reversed(vertex.operators):
        found = next((index for index in reversed(free) if _same(known.operators[index], operator)), None)
        if found is None:
            columns += [None, None]
        else:
            free.remove(found)
            columns += [2 * found + 1, 2 * found]
    totals = 2 * len(known.operators)
    return (*reversed(columns), *range(totals, totals + len(TOTALS)))


def _same(one: plan.Operator, other: plan.Operator) -> bool:
    return one.node == other.node or (one.is_source and other.is_source)


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
