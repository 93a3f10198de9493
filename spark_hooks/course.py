"""The course of a run: what its micro-batches tell of time, shuffles, sources and latency as they go by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_hooks import buffers
from spark_hooks.alignment import align
from spark_hooks.backlog import Backlog
from spark_hooks.executors import Executors
from spark_hooks.job_graph import JobGraph
from spark_hooks.markers import Markers
from spark_hooks.progress import Progress, watermark
from spark_hooks.shuffles import Shuffles
from spark_hooks.sources import Sources
from spark_hooks.spans import Spans
from spark_hooks.steady import SteadyTime
from spark_hooks.tap_rows import tap_rows
from spark_hooks.taps import Taps
from spark_hooks.timeline import Batch, Timeline
from spark_hooks.vertex import JobVertex
from streamgauge import names, wire
from streamgauge.watermarks import NO_WATERMARK_MS

if TYPE_CHECKING:
    from spark_hooks.plan import Graph
    from spark_hooks.stages import Execution, Stage


class Course:
    """
    The micro-batches of one run, or a batch job as a single one. Times that it is told are wall times. Not thread safe.

    A batch is looked at while it is under way, and settled when it has ended, each time as a whole: Spark may tell what
    a stage executes, and when a batch was triggered, after the fact.

    `watermark_ms` is the query's, NO_WATERMARK_MS before there is one.

    Args:
        graph: The job's.
        trigger: In Spark's words, '' where unknown.
        time: Turns wall times into steady ones.
        executors: The application's.
        markers: The run's latency markers; None where none are emitted.
    """

    def __init__(
        self, graph: JobGraph, trigger: str, time: SteadyTime, executors: Executors, markers: Markers | None
    ) -> None:
        self.timeline = Timeline()
        self.backlog = Backlog(trigger)
        self.sources = Sources()
        self.markers = markers
        self.taps = Taps()
        self.watermark_ms = NO_WATERMARK_MS
        self._graph = graph
        self._time = time
        self._executors = executors
        self._plan: Graph | None = None

    def plan(self, graph: Graph) -> None:
        """The query's own plan of the micro-batch that begins is this one."""
        if graph is not self._plan:
            self._plan = graph
            self._graph.mark(graph, self.watermark_ms)

    def begin(self, batch_id: int, time_ms: int, execution: Execution) -> None:
        """An outermost execution of a micro-batch begins; −1 for a batch job."""
        self._pass(self.timeline.begin(batch_id, self._time.of(time_ms), execution))

    def executed(self, execution: Execution, time_ms: int) -> None:
        """An outermost execution ended."""
        self.timeline.executed(execution, self._time.of(time_ms))

    def complete(self, event: Progress, trigger_ms: int) -> None:
        """A micro-batch that was triggered at `trigger_ms` was committed."""
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
        graph, own = self._graph, self._graph.own
        if self.markers is not None:
            self.markers.settle(batch, event, own, graph.revision, self.sources.positions)
            self.markers.latencies.keep(graph.vertices)
        self.taps.complete(tap_rows(event.observed_metrics), event, batch)
        self.taps.place(graph)
        watermark_ms = watermark(event.event_time)
        if watermark_ms is not None and watermark_ms > NO_WATERMARK_MS:
            self.watermark_ms = watermark_ms
            if self._plan is not None:
                self._graph.mark(self._plan, watermark_ms)
        self.sources.match(graph.revision, graph.vertices, own)
        self._look_at_watermark()

    def idle(self, time_ms: int) -> None:
        """The query waits for rows."""
        if self.markers is not None:
            self.markers.idle(self._time.of(time_ms))

    def end(self, time_ms: int, finished: bool = False) -> None:
        """
        The run ended, and with it the batch under way.

        Args:
            finished: By itself, for its input had.
        """
        ended_ms = self._time.of(time_ms)
        under_way = self.timeline.end(ended_ms)
        if under_way is not None:
            self._settle(under_way)
        for vertex in self._graph.vertices.values():
            vertex.shares.end(ended_ms)
        if self.markers is not None:
            self.markers.end(ended_ms)
        self.taps.end(ended_ms, finished, self._graph)

    def look(self) -> None:
        """Bring what the batch under way tells of its shuffles up to now."""
        batch = self.timeline.batch
        if batch is not None:
            self._look_at_shuffles(batch, batch.by_vertex())

    def tick(self) -> None:
        """Look at everything and update all rates, once every 5 s."""
        batch = self.timeline.batch
        ran = {} if batch is None else batch.by_vertex()
        if batch is not None:
            self._look_at_shuffles(batch, ran)
        for vertex in self._graph.vertices.values():
            vertex.tick()
        now_ms = self._time.now_ms
        if now_ms is not None:
            self._look_at_time(now_ms, ran)
            reading = [vertex for vertex_id, vertex in self._graph.vertices.items() if vertex_id in ran]
            self.sources.wait(now_ms, reading)
            self.taps.tick(now_ms)
            self._look_at_watermark()

    def metrics(self) -> dict[str, wire.Scalar]:
        """Return the job's metrics of all this; what is not known is absent."""
        found: dict[str, wire.Scalar] = {}
        if self.backlog.up is not None:
            found[names.BACKLOGGED] = self.backlog.up
        if self.backlog.interval_ms:
            found[names.TRIGGER_INTERVAL] = self.backlog.interval_ms
        if self._time.now_ms is not None:
            found |= self.sources.metrics(self._time.now_ms, self.timeline.batch is not None)
        if self.markers is not None:
            found |= self.markers.metrics()
        return found

    def coordinators(self) -> dict[tuple[str, str], dict[str, wire.Scalar]]:
        """Return what the driver itself knows of the query's sources, by vertex and operator id."""
        return {
            (vertex.id, operator): intake.metrics()
            for vertex in self._graph.vertices.values()
            for operator, intake in vertex.sources.intakes.items()
        }

    def _pass(self, batch: Batch | None) -> None:
        """A batch, if any, has ended though nothing was told of its end."""
        if batch is not None:
            self._settle(batch)
            if self.markers is not None:
                self.markers.miss(batch)

    def _settle(self, batch: Batch) -> None:
        """A batch has ended; one whose progress never came is as backlogged as the one before it."""
        ran = batch.by_vertex()
        self._look_at_shuffles(batch, ran)
        for vertex in self._graph.vertices.values():
            vertex.shares.settle(self._spans(batch, ran, vertex), vertex.size, bool(self.backlog.up))

    def _look_at_shuffles(self, batch: Batch, ran: Mapping[str, list[Stage]]) -> None:
        """Take in what a batch, which may have ended, tells of its shuffles."""
        shuffles, vertices = Shuffles(batch, ran, self._graph.vertices), self._graph.vertices.values()
        over_ms = batch.executed_ms if batch.executed_ms >= 0 else batch.end_ms
        align(shuffles, batch, vertices, self._time.now_ms if over_ms < 0 else over_ms)
        for vertex in vertices:
            vertex.buffers.fill(shuffles.ran(vertex.id), self._executors)
            if over_ms >= 0:
                vertex.buffers.empty()
        if over_ms < 0:
            buffers.queue(shuffles, vertices, self._executors)

    def _look_at_time(self, now_ms: int, ran: Mapping[str, list[Stage]]) -> None:
        """Tell every vertex what it does in the batch under way."""
        batch, backlogged = self.timeline.batch, bool(self.backlog.up)
        for vertex in self._graph.vertices.values():
            spans = None if batch is None else self._spans(batch, ran, vertex)
            vertex.shares.tick(now_ms, vertex.size, spans, backlogged, vertex.is_source)

    def _spans(self, batch: Batch, ran: Mapping[str, list[Stage]], vertex: JobVertex) -> Spans:
        waiting = vertex.parallelism if vertex.id in self._graph.current else 0
        return Spans.of(batch, ran.get(vertex.id, ()), vertex.id, vertex.is_source, waiting)

    def _look_at_watermark(self) -> None:
        """See how far watermarks are behind the driver's clock, wall time, as event times are."""
        if self._time.now_ms is None:
            return
        now_ms = self._time.now_ms - self._time.shift_ms
        if self.watermark_ms > NO_WATERMARK_MS:
            self.sources.lag_behind(now_ms - self.watermark_ms)
        for vertex_id, vertex in self._graph.vertices.items():
            # What no plan has any more does not fall behind; its watermark stays where it was.
            vertex.watermarks.lag_behind(now_ms if vertex_id in self._graph.current else None)
