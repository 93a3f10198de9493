"""One run of a streaming query, or one batch execution: its graph, counters, state and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from spark_hooks import buffers, plan
from spark_hooks.alignment import align
from spark_hooks.backlog import Backlog
from spark_hooks.batch_tasks import BatchTasks
from spark_hooks.checkpoints import APPLICATION_ENDED, STOPPED, Checkpoints
from spark_hooks.counts import TOTALS
from spark_hooks.executors import Executors
from spark_hooks.failures import Failures, root_cause
from spark_hooks.markers import Markers
from spark_hooks.observed import observed
from spark_hooks.progress import Progress, moment
from spark_hooks.records import SourceBacklog
from spark_hooks.shuffles import Shuffles
from spark_hooks.sources import Sources
from spark_hooks.spans import Spans
from spark_hooks.steady import SteadyTime
from spark_hooks.timeline import Batch, Timeline
from spark_hooks.vertex import Bound, JobVertex
from streamgauge import names, wire
from streamgauge.clock import SystemClock

if TYPE_CHECKING:
    from spark_hooks.stages import Execution, Stage

VERTICES = 500
"""Held of one run. User code in foreachBatch may plan differently in every batch; the oldest plans leave."""

NO_WATERMARK_MS = -(2**63)
"""Source: Flink, `Watermark.UNINITIALIZED`."""

_RUNS_OUT = ("AvailableNowTrigger", "OneTimeTrigger")
"""Triggers whose query ends by itself."""


class Job:
    """
    One run of a query, or a batch execution; `settings` are those that are not the application's. Not thread safe.

    Args:
        jid: 32 hex digits.
        attempt: (start, Spark's run id; of a batch its execution id).
        state: CREATED until its first batch, RESTARTING where another run came before.
        sink: What the query says of its sink; None for a batch.
        checkpoint_path: Where a query keeps its offsets and state.
        from_start: None of its micro-batches had ended when it was first seen.
        time: Turns Spark's times into steady ones.
        executors: The application's.
        markers: The run's latency markers; None where none are emitted.
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
        checkpoint_path: str | None = None,
        from_start: bool = True,
        time: SteadyTime | None = None,
        executors: Executors | None = None,
        markers: Markers | None = None,
    ) -> None:
        self.jid = jid
        self.kind: Literal["STREAMING", "BATCH"] = kind
        self.attempt = attempt
        self.trigger = trigger or ""
        self.sink = sink
        self.checkpoint_path = checkpoint_path or ""
        self.timeline = Timeline()
        self.backlog = Backlog(self.trigger)
        self.markers = markers
        self._time = time or SteadyTime()
        self._executors = executors or Executors("", 1, SystemClock())
        self.checkpoints = Checkpoints(attempt.start_ms, from_start)
        self.watermark_ms = NO_WATERMARK_MS
        self.state: wire.JobState = state
        self.since_ms: dict[str, int] = {"CREATED": attempt.start_ms, state: attempt.start_ms}
        self.end_ms = -1
        self.failure, self.failures = "", Failures()
        self.settings: dict[str, str] = {}
        self.vertices: dict[str, JobVertex] = {}
        self.current: set[str] = set()
        self.revision = 0
        self._name = name
        self._app_name = app_name
        self._positions: dict[tuple[int, ...], str] = {}
        self._broken_off = False
        self._input_rows = 0
        self._output_rows: int | None = 0
        self.observed: dict[str, wire.Scalar] = {}
        self.sources = Sources()

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
            return _bound(vertex, known, only)
        if known is None:
            self._make_room()
            known = self.vertices[vertex.id] = JobVertex(vertex)
            self.revision += 1
        if known.link(vertex):
            self.revision += 1
        if own and not vertex.empty:
            self._positions[vertex.position] = vertex.id
        return _bound(vertex, known, only)

    def bound(self, vertex: plan.Vertex, own: bool) -> Bound | None:
        """Return the job's vertex that `vertex` is; None where it has none."""
        known = self._known(vertex, own)
        return None if known is None else _bound(vertex, known)

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

    def begin_batch(self, time_ms: int, batch_id: int, execution: Execution) -> BatchTasks | None:
        """
        An outermost execution of a micro-batch begins.

        Args:
            batch_id: −1 for an execution of the query that belongs to none, as where a source is made ready.

        Returns:
            Where what its tasks do is to be told; None where nowhere.
        """
        # A thread that user code has left behind may still go on when the run has ended.
        if self.state in wire.ENDED_STATES:
            return None
        self._broken_off = False
        self.start(time_ms)
        if batch_id < 0:
            return None
        self._pass(self.timeline.begin(batch_id, self._time.of(time_ms), execution))
        return self.checkpoints.begin(batch_id, time_ms)

    def executed(self, execution: Execution, time_ms: int, error: str | None) -> None:
        """An outermost execution of the run ended; with an error, where none ends the run, it was stopped."""
        self.timeline.executed(execution, self._time.of(time_ms))
        if error:
            self._broken_off = True
            self.checkpoints.break_off(time_ms, error)
        else:
            self.failures.finish()

    def start(self, time_ms: int) -> None:
        """The run is seen to be up: a batch begins, or it waits for rows."""
        if self.state in ("CREATED", "RESTARTING"):
            self._enter("RUNNING", time_ms)

    def progress(self, event: Progress, trigger_ms: int) -> None:
        """A micro-batch that began at `trigger_ms` ended."""
        self.checkpoints.complete(event, trigger_ms)
        # Spark takes the duration from the wall clock too: together they are what that told at the batch's end.
        end_ms = self._time.of(trigger_ms + event.duration_ms.get("triggerExecution", 0))
        if self._time.now_ms is not None:
            # Unless that was set meanwhile by so little that it was not seen.
            end_ms = min(end_ms, self._time.now_ms)
        passed, batch = self.timeline.complete(event.batch_id, self._time.of(trigger_ms), end_ms)
        self._pass(passed)
        self.sources.progress(event, batch, trigger_ms)
        self.backlog.complete(batch, event, self.sources.unread_files)
        self._settle(batch)
        if self.markers is not None:
            self.markers.settle(batch, event, self._own(), self.revision, self.sources.positions)
            self.markers.latencies.keep(self.vertices)
        # Spark's own watermark is 0 before there is one.
        watermark_ms = moment(event.event_time, "watermark")
        if watermark_ms is not None and watermark_ms > 0:
            self.watermark_ms = watermark_ms
        self._input_rows += event.num_input_rows
        if event.sink.num_output_rows < 0:
            self._output_rows = None
        elif self._output_rows is not None:
            self._output_rows += event.sink.num_output_rows
        self.sources.match(self.revision, self.vertices, self._own())
        self._look_at_watermark()
        self.observe(event.observed_metrics)

    def list_files(self, told: SourceBacklog) -> None:
        """The streams of files among the query's sources were looked at, in a micro-batch that has just begun."""
        self.sources.list(told)

    def idle(self, time_ms: int) -> None:
        """It waits for rows."""
        self.start(time_ms)
        if self.markers is not None:
            self.markers.idle(self._time.of(time_ms))

    def _pass(self, batch: Batch | None) -> None:
        """A batch, if any, has ended though nothing was told of its end."""
        if batch is not None:
            self._settle(batch)
            if self.markers is not None:
                self.markers.miss(batch)

    def observe(self, told: Mapping[str, object]) -> None:
        """
        Take in what `observe()` saw last.

        Args:
            told: Name → column → value; nothing where no batch has run through it.
        """
        if told:
            self.observed = observed(told)

    def end(self, time_ms: int, failure: str | None) -> None:
        """
        The run ended.

        Args:
            failure: What ended it, with its stack; None where nothing did: then the trigger tells a query that was done
                (FINISHED) from one that was stopped (CANCELED). One that was stopped between two of its
                batches, though it would have ended by itself, cannot be told from one that was done.
        """
        if self.state in wire.ENDED_STATES:
            return
        if failure is not None:
            self.failure = root_cause(failure)
            self.failures.end(failure, time_ms)
            self._end("FAILED", time_ms, self.failure)
        elif self.kind == "BATCH" or (self.trigger.startswith(_RUNS_OUT) and not self._broken_off):
            self._end("FINISHED", time_ms, STOPPED)
        else:
            self._end("CANCELED", time_ms, STOPPED)

    def cancel(self, time_ms: int) -> None:
        """The application ended under the run; what had ended before stays as it is."""
        if self.state not in wire.ENDED_STATES:
            self._end("CANCELED", time_ms, APPLICATION_ENDED)

    def _end(self, state: wire.JobState, time_ms: int, reason: str) -> None:
        self._enter(state, time_ms)
        ended_ms = self._time.of(time_ms)
        under_way = self.timeline.end(ended_ms)
        if under_way is not None:
            self._settle(under_way)
        for vertex in self.vertices.values():
            vertex.shares.end(ended_ms)
        if self.markers is not None:
            self.markers.end(ended_ms)
        self.checkpoints.fail(time_ms, reason)
        self.end_ms = time_ms

    def _enter(self, state: wire.JobState, time_ms: int) -> None:
        self.state = state
        self.since_ms[state] = time_ms

    # ---- Figures

    def metrics(self) -> dict[str, wire.Scalar]:
        """Return the job's own metrics; what Spark has not told is absent."""
        if self.kind == "BATCH":
            return {}
        found: dict[str, wire.Scalar] = {**self.checkpoints.metrics(), names.INPUT_ROWS: self._input_rows}
        if self._output_rows is not None:
            found[names.OUTPUT_ROWS] = self._output_rows
        if self.backlog.up is not None:
            found[names.BACKLOGGED] = self.backlog.up
        now_ms = self._time.now_ms
        if now_ms is not None:
            found |= self.sources.metrics(now_ms, self.timeline.batch is not None)
        if self.markers is not None:
            found.update(self.markers.metrics())
        return found

    def coordinators(self) -> dict[tuple[str, str], dict[str, wire.Scalar]]:
        """Return what the driver itself knows of the query's sources, by vertex and operator id."""
        return {
            (vertex.id, operator): intake.metrics()
            for vertex in self.vertices.values()
            for operator, intake in vertex.sources.intakes.items()
        }

    def look(self) -> None:
        """Bring what is told of the batch under way up to now."""
        if self.timeline.batch is not None:
            self._look_at_shuffles(self.timeline.batch)

    def _own(self) -> dict[str, JobVertex]:
        """Return the vertices of the query's latest own plan."""
        own = self.current.intersection(self._positions.values())
        return {vertex_id: self.vertices[vertex_id] for vertex_id in own.intersection(self.vertices)}

    def tick(self) -> None:
        """Update all rates, once every 5 s."""
        self.look()
        for vertex in self.vertices.values():
            vertex.tick()
        if self._time.now_ms is not None:
            self._look_at_time(self._time.now_ms)
            batch = self.timeline.batch
            ran = set() if batch is None else batch.by_vertex().keys() & self.vertices.keys()
            self.sources.wait(self._time.now_ms, [self.vertices[vertex_id] for vertex_id in ran])
            self._look_at_watermark()

    def _look_at_shuffles(self, batch: Batch) -> None:
        """Take in what a batch, which may have ended, tells of its shuffles."""
        shuffles, vertices = Shuffles(batch, self.vertices), self.vertices.values()
        over_ms = batch.executed_ms if batch.executed_ms >= 0 else batch.end_ms
        align(shuffles, batch, vertices, self._time.now_ms if over_ms < 0 else over_ms)
        for vertex in vertices:
            vertex.buffers.fill(shuffles.ran(vertex.id), self._executors)
            if over_ms >= 0:
                vertex.buffers.empty()
        if over_ms < 0:
            buffers.queue(shuffles, vertices, self._executors)

    def _look_at_time(self, now_ms: int) -> None:
        """Tell every vertex what it does in the batch under way."""
        batch, backlogged = self.timeline.batch, bool(self.backlog.up)
        ran = {} if batch is None else batch.by_vertex()
        for vertex in self.vertices.values():
            spans = None if batch is None else self._spans(batch, ran, vertex)
            vertex.shares.tick(now_ms, vertex.size, spans, backlogged, vertex.is_source)

    def _settle(self, batch: Batch) -> None:
        """A batch has ended; one whose progress never came is as backlogged as the one before it."""
        self._look_at_shuffles(batch)
        ran = batch.by_vertex()
        for vertex in self.vertices.values():
            vertex.shares.settle(self._spans(batch, ran, vertex), vertex.size, bool(self.backlog.up))

    def _spans(self, batch: Batch, ran: Mapping[str, list[Stage]], vertex: JobVertex) -> Spans:
        waiting = vertex.parallelism if vertex.id in self.current else 0
        return Spans.of(batch, ran.get(vertex.id, ()), vertex.id, vertex.is_source, waiting)

    def _look_at_watermark(self) -> None:
        """See how far the watermark is behind the driver's clock, wall time, as event times are."""
        now_ms = self._time.now_ms
        if now_ms is not None and self.watermark_ms > NO_WATERMARK_MS:
            self.sources.lag_behind(now_ms - self._time.shift_ms - self.watermark_ms)


def _bound(vertex: plan.Vertex, known: JobVertex, only: frozenset[int] | None = None) -> Bound:
    columns = tuple(range(len(known.known))) if known.id == vertex.id else _columns(vertex, known)
    return Bound(vertex, known, columns, only)


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
