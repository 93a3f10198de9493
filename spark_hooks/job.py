"""One run of a streaming query, or one batch execution: its graph, counters, state and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from spark_hooks.batch_tasks import BatchTasks
from spark_hooks.checkpoints import APPLICATION_ENDED, STOPPED, Checkpoints
from spark_hooks.course import Course
from spark_hooks.executors import Executors
from spark_hooks.failures import Failures, root_cause
from spark_hooks.job_graph import JobGraph
from spark_hooks.markers import Markers
from spark_hooks.observed import observed
from spark_hooks.progress import Progress
from spark_hooks.steady import SteadyTime
from spark_hooks.tap_rows import users
from streamgauge import names, wire
from streamgauge.clock import SystemClock

if TYPE_CHECKING:
    from spark_hooks.stages import Execution

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
        self.graph = JobGraph()
        executors = executors or Executors("", 1, SystemClock())
        self.course = Course(self.graph, self.trigger, time or SteadyTime(), executors, markers)
        self.checkpoints = Checkpoints(attempt.start_ms, from_start)
        self.state: wire.JobState = state
        self.since_ms: dict[str, int] = {"CREATED": attempt.start_ms, state: attempt.start_ms}
        self.end_ms = -1
        self.failure, self.failures = "", Failures()
        self.settings: dict[str, str] = {}
        self._name = name
        self._app_name = app_name
        self._broken_off = False
        self._input_rows = 0
        self._output_rows: int | None = 0
        self.observed: dict[str, wire.Scalar] = {}

    @property
    def name(self) -> str:
        """The query's name, else '<app name>: <source> -> <sink>': stable over restarts."""
        if self._name:
            return self._name
        first, last = self._ends()
        return f"{self._app_name}: {first} -> {last}" if first and last else self._app_name

    def _ends(self) -> tuple[str, str]:
        operators = [operator for vertex in self.graph.vertices.values() for operator in vertex.operators]
        sources = [operator.name.removeprefix("Source: ") for operator in operators if operator.is_source]
        sinks = [operator.name.removeprefix("Sink: ") for operator in operators if operator.sink]
        return (sources[0] if sources else "", sinks[0] if sinks else "")

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
        self.course.begin(batch_id, time_ms, execution)
        return self.checkpoints.begin(batch_id, time_ms)

    def executed(self, execution: Execution, time_ms: int, error: str | None) -> None:
        """An outermost execution of the run ended; with an error, where none ends the run, it was stopped."""
        self.course.executed(execution, time_ms)
        if error:
            self._broken_off = True
            self.checkpoints.break_off(time_ms, error)
        else:
            self.failures.finish()

    def start(self, time_ms: int) -> None:
        """The run is seen to be up: a batch begins, or it waits for rows."""
        if self.state in ("CREATED", "RESTARTING"):
            self._enter("RUNNING", time_ms)

    def progress(self, event: Progress, trigger_ms: int, change_log: bool = False) -> None:
        """A micro-batch that began at `trigger_ms` ended; `change_log` is as for `Checkpoints.complete`."""
        self.checkpoints.complete(event, trigger_ms, change_log)
        self.course.complete(event, trigger_ms)
        self._input_rows += event.num_input_rows
        if event.sink.num_output_rows < 0:
            self._output_rows = None
        elif self._output_rows is not None:
            self._output_rows += event.sink.num_output_rows
        self.observe(event.observed_metrics)

    def idle(self, time_ms: int) -> None:
        """It waits for rows."""
        self.start(time_ms)
        self.course.idle(time_ms)

    def observe(self, told: Mapping[str, object]) -> None:
        """
        Take in what `observe()` saw last.

        Args:
            told: Name → column → value; nothing where no batch has run through it.
        """
        if seen := users(told):
            self.observed = observed(seen)

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
        self.course.end(time_ms, finished=state == "FINISHED")
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
        return found | self.course.metrics()

    def tick(self) -> None:
        """Update all rates, once every 5 s."""
        self.course.tick()
