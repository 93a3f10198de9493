"""
Spark's events → jobs, vertices, subtasks, attempts: the one model of what runs in this application.

Exactly once: the first success of a (stage, partition) counts; a success of a higher stage attempt, or of
a later stage that writes the same shuffle again, replaces it; everything else is ignored, also after the
stage, the job or the execution has ended.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import singledispatchmethod
from random import Random
from typing import TypeVar

from spark_hooks import plan, progress, records
from spark_hooks.checkpoints import CHANGE_LOG_SETTING
from spark_hooks.executors import Executors
from spark_hooks.job import Job
from spark_hooks.markers import Emission, Markers
from spark_hooks.progress import milliseconds
from spark_hooks.stages import Execution, Stage, Won
from spark_hooks.steady import SteadyTime
from spark_hooks.timer_reports import TimerReport
from spark_hooks.vertex_timers import WaitingReports
from streamgauge import wire

# A speculative loser was seen to end 3 s after its job; 256 ended executions are kept for such.
ENDED_EXECUTIONS = 256
RUNNING_EXECUTIONS = 1024
"""More can only be such whose end the recorder had to drop."""
ENDED_JOBS = 100
QUERIES = 1000
"""Queries that are remembered, so that their next run is known as a restart."""

_Told = TypeVar("_Told", bound="records.Record | TimerReport")

_STREAM = re.compile(r"runId = ([0-9a-f-]{36})\nbatch = (?:(\d+)|init)")


class Model:
    """
    Applies events in the order Spark told them. Not thread safe.

    `time` is to be shown the clocks before the events that were recorded until then. `ended` tells that the application
    has: nothing can come any more; `end_ms` is when, wall time, −1 before.

    Args:
        app: This application.
        executors: Told of executors and tasks.
        starts: Run id → start of runs that hooks which were attached before have told of.
        emission: Of latency markers; None for none.
        random: Draws the ways of markers.
    """

    def __init__(
        self,
        app: wire.App,
        executors: Executors,
        starts: Mapping[str, int] | None = None,
        emission: Emission | None = None,
        random: Random | None = None,
    ) -> None:
        self.time = SteadyTime()
        self.jobs: OrderedDict[str, Job] = OrderedDict()
        self.unknown_updates = 0
        self.faults: list[str] = []
        self.ended, self.end_ms = False, -1
        self.environment: records.Environment | None = None
        self._app = app
        self._executors = executors
        self._starts = dict(starts or {})
        self._emission = emission
        self._random = random or Random()  # noqa: S311  no secrets
        self._runs: dict[str, Job] = {}
        self._queries: OrderedDict[str, None] = OrderedDict()
        self._executions: dict[int, Execution] = {}
        self._ended: OrderedDict[int, Execution] = OrderedDict()
        self._stages: dict[int, Stage] = {}
        self._shuffles: dict[int, Stage] = {}
        self._reports = WaitingReports()

    def apply(self, events: Iterable[records.Record]) -> None:
        """Apply events; one that cannot be applied is noted in `faults`, and the rest goes on."""
        # Looked up once: every look makes a new function, which takes longer than most events do.
        apply = self._apply
        for event in events:
            self._take(apply, event)

    def report(self, reports: Iterable[TimerReport]) -> None:
        """Take in what timer services reported; they do so before Spark tells of the end of their task."""
        for report in reports:
            self._take(self._report, report)

    def tick(self) -> None:
        """Update the rates of all jobs, once every 5 s."""
        for job in self.jobs.values():
            if job.state not in wire.ENDED_STATES:
                job.tick()

    def starts(self) -> dict[str, int]:
        """Return the starts of all runs that are known, for hooks that are attached after these."""
        return self._starts | {run: job.attempt.start_ms for run, job in self._runs.items()}

    def running(self) -> set[str]:
        """Return the run ids of the streaming queries whose end has not been told."""
        return {run for run, job in self._runs.items() if job.state not in wire.ENDED_STATES}

    def forget(self, jid: str, attempt: wire.Attempt) -> None:
        """Drop an ended job; its last state has been told."""
        job = self.jobs.get(jid)
        if job is not None and job.attempt == attempt and job.state in wire.ENDED_STATES:
            del self.jobs[jid]
            self._runs.pop(attempt.run_id, None)

    def _report(self, report: TimerReport) -> None:
        stage = self._stages.get(report.stage)
        won = None if stage is None else stage.won.get(report.partition)
        if won is not None and won.task == report.task:
            won.report(report)
        else:
            self._reports.hold(report)

    def _take(self, apply: Callable[[_Told], None], event: _Told) -> None:
        try:
            apply(event)
        except Exception as error:  # noqa: BLE001  the edge of the hooks: the next event must not suffer
            self.faults.append(f"{type(event).__name__}: {error!r}")

    @singledispatchmethod
    def _apply(self, event: records.Record) -> None:
        self._executors.apply(event)

    @_apply.register
    def _(self, event: records.Fault) -> None:
        self.faults.append(event.text)

    # ---- How all is set

    @_apply.register
    def _(self, event: records.Environment) -> None:
        self.environment = event
        self._executors.apply(event)

    @_apply.register
    def _(self, event: records.Configuration) -> None:
        execution = self._executions.get(event.execution)
        if execution is not None:
            execution.settings = event.settings
        job = self._runs.get(event.run or "") if execution is None else execution.job
        if job is not None:
            job.settings = event.settings

    # ---- Queries

    @_apply.register
    def _(self, event: records.QueryStarted) -> None:
        if event.run in self._runs:
            return
        jid = event.id.replace("-", "")
        restarts = jid in self._queries
        self._queries[jid] = None
        self._queries.move_to_end(jid)
        if len(self._queries) > QUERIES:
            self._queries.popitem(last=False)
        # Of a query that ran before the recorder came and has told no progress yet, no start is known.
        start_ms = self._app.start_ms if event.timestamp is None else milliseconds(event.timestamp)
        start_ms = self._starts.get(event.run, start_ms)
        self._runs[event.run] = self._add(
            Job(
                jid,
                "STREAMING",
                event.name,
                self._app.name,
                wire.Attempt(start_ms, event.run),
                state="RESTARTING" if restarts else "CREATED",
                trigger=event.trigger,
                sink=event.sink or "unknown",
                checkpoint_path=event.checkpoint,
                from_start=event.batch < 0,
                time=self.time,
                executors=self._executors,
                markers=self._markers(event, start_ms),
            )
        )

    @_apply.register
    def _(self, event: records.QueryProgress) -> None:
        told = progress.read(event)
        job = self._runs.get(told.run_id)
        if job is not None:
            general = {} if self.environment is None else self.environment.settings
            change_log = job.settings.get(CHANGE_LOG_SETTING, general.get(CHANGE_LOG_SETTING)) == "true"
            job.progress(told, milliseconds(told.timestamp), change_log)

    @_apply.register
    def _(self, event: records.QueryIdle) -> None:
        job = self._runs.get(event.run)
        if job is not None:
            job.idle(event.time_ms)

    @_apply.register
    def _(self, event: records.QueryTerminated) -> None:
        job = self._runs.get(event.run)
        if job is not None:
            job.end(event.time_ms, event.exception)

    @_apply.register
    def _(self, event: records.SourceBacklog) -> None:
        job = self._runs.get(event.run)
        if job is not None:
            job.course.sources.list(event)

    @_apply.register
    def _(self, event: records.ApplicationEnd) -> None:
        for job in self.jobs.values():
            job.cancel(event.time_ms)
        self._executors.end()
        self.ended, self.end_ms = True, event.time_ms

    def _markers(self, event: records.QueryStarted, start_ms: int) -> Markers | None:
        if self._emission is None:
            return None
        first_ms = began_ms = self.time.of(start_ms)
        # Of a run that was there before, nobody saw what became of the markers until now.
        if event.timestamp is None or event.batch >= 0 or event.run in self._starts:
            first_ms = max(first_ms, self.time.now_ms or 0)
        return Markers(self._emission, began_ms, first_ms, event.trigger or "", self.time, self._random)

    # ---- Executions and their plans

    @_apply.register
    def _(self, event: records.ExecutionStart) -> None:
        root = None if event.root == event.execution else self._executions.get(event.root)
        job, batch = (root.job, -1) if root is not None else self._run_of(event.description)
        same = root is not None and root.graph.accumulators == plan.accumulators(event.plan)
        own = job is not None and job.kind == "STREAMING" and (root is None or (same and root.own))
        execution = Execution(
            id=event.execution,
            root=root,
            description=event.description or "",
            time_ms=event.time_ms,
            job=job,
            own=own,
            # A V2 sink posts the same plan twice, with the same accumulators.
            graph=root.graph if root is not None and same else self._analyse(event.plan, job, own),
            adaptive=_adaptive(event.plan),
        )
        self._executions[execution.id] = execution
        if len(self._executions) - len(self._ended) > RUNNING_EXECUTIONS:
            self._evict(next(held for held in self._executions.values() if held.id not in self._ended))
        if root is not None:
            root.inner.append(execution)
            execution.tasks = root.tasks
        elif job is not None:
            execution.tasks = job.begin_batch(event.time_ms, batch, execution)
            job.failures.begin(execution.id)
        if execution.tasks is not None:
            execution.tasks.join(execution)
        if not execution.adaptive and (root is None or same):
            self._show(execution)

    @_apply.register
    def _(self, event: records.PlanUpdate) -> None:
        execution = self._executions.get(event.execution)
        if execution is None:
            return
        execution.replan(self._analyse(event.plan, execution.job, execution.own))
        execution.adaptive = _adaptive(event.plan)
        if execution.own and execution.root is not None:
            execution.root.replan(execution.graph)
        # User code in foreachBatch executes the stream's plan in executions of its own.
        for each in (execution, *execution.inner):
            for stage in each.stages:
                stage.resolve()
        if not execution.adaptive:
            self._show(execution)

    @_apply.register
    def _(self, event: records.DriverUpdates) -> None:
        execution = self._executions.get(event.execution)
        if execution is not None:
            execution.driver.update(_pairs(event.updates))

    @_apply.register
    def _(self, event: records.ExecutionEnd) -> None:
        execution = self._executions.get(event.execution)
        if execution is None or execution.id in self._ended:
            return
        if execution.job is not None:
            self._count_driver(execution)
            if execution.stages:
                self._show(execution)
            execution.count_driver()
            # What a sampling job tells is known, though it counts nowhere.
            self.unknown_updates += sum(
                not execution.names(won.updates) for stage in execution.stages for won in stage.won.values()
            )
            if execution.root is None:
                execution.job.executed(execution, event.time_ms, event.error)
                if execution.job.kind == "BATCH":
                    execution.job.end(event.time_ms, event.error or None)
        if execution.tasks is not None:
            execution.tasks.leave(execution)
        self._ended[execution.id] = execution
        while len(self._ended) > ENDED_EXECUTIONS:
            self._evict(self._ended.popitem(last=False)[1])

    @_apply.register
    def _(self, event: records.Observed) -> None:
        execution = self._executions.get(event.execution)
        # Of a query its progress tells; what user code observes within foreachBatch is no part of it.
        if execution is not None and execution.job is not None and execution.job.kind == "BATCH":
            execution.job.observe(dict(zip(event.rows[::2], map(progress.row, event.rows[1::2]), strict=True)))

    def _run_of(self, description: str | None) -> tuple[Job | None, int]:
        """Return the run and the micro-batch that an execution is of; −1 for none."""
        found = _STREAM.search(description or "")
        return (self._runs.get(found.group(1)), int(found.group(2) or -1)) if found else (None, -1)

    def _analyse(self, root: records.PlanNode, job: Job | None, own: bool) -> plan.Graph:
        return plan.analyse(root, job.sink if own and job is not None else None)

    def _show(self, execution: Execution) -> None:
        """Take an execution's plan into its job's graph, and tell which vertices are there now."""
        job = execution.job
        if job is None:
            return
        job.graph.merge(execution.graph, execution.own)
        if execution.own:
            job.course.plan(execution.graph)
        outermost = execution.outermost
        shown = [outermost, *(inner for inner in outermost.inner if inner.stages)]
        job.graph.show([(each.graph, each.own) for each in shown])

    def _count_driver(self, execution: Execution) -> None:
        """Count what the driver did itself, without a stage: it is a vertex's only subtask."""
        job = execution.job
        if job is None or not execution.driver:
            return
        updates = execution.driver
        ran = {bound.vertex.id for stage in execution.stages for bound in stage.vertices()}
        for vertex in execution.graph.vertices:
            if vertex.id in ran or vertex.empty or vertex.shuffles:
                continue
            if any(row in updates for operator in vertex.operators if not operator.sink for row in operator.rows):
                bound = job.graph.bind(vertex, execution.own)
                bound.vertex.run_stage(1)
                bound.vertex.counters.add(0, bound.counts(updates))

    def _evict(self, execution: Execution) -> None:
        del self._executions[execution.id]
        if execution.root is not None:
            execution.root.inner.remove(execution)
        if execution.tasks is not None:
            execution.tasks.leave(execution)
        for stage in execution.stages:
            for stage_id in stage.ids:
                self._stages.pop(stage_id, None)
            if self._shuffles.get(stage.shuffle) is stage:
                del self._shuffles[stage.shuffle]

    # ---- Spark jobs and stages

    @_apply.register
    def _(self, event: records.JobStart) -> None:
        execution = self._executions.get(event.execution)
        if execution is None:
            return
        if execution.job is None:
            self._begin_batch_job(execution.outermost)
        for told in event.stages:
            if told.stage in self._stages:
                continue
            stage = self._shuffles.get(told.shuffle)
            # What nobody has written yet is the work of whoever writes it.
            if stage is None or not stage.won:
                stage = Stage([told.stage], execution, told.tasks, told.shuffle, frozenset(told.scopes))
                execution.stages.append(stage)
                if told.shuffles:
                    self._shuffles[told.shuffle] = stage
            else:
                stage.ids.append(told.stage)
            self._stages[told.stage] = stage

    def _begin_batch_job(self, root: Execution) -> None:
        jid = hashlib.md5(f"{self._app.id}:{root.id}".encode(), usedforsecurity=False).hexdigest()
        first_line = root.description.partition("\n")[0]
        attempt = wire.Attempt(root.time_ms, str(root.id))
        job = Job(jid, "BATCH", first_line, self._app.name, attempt, time=self.time, executors=self._executors)
        job.course.timeline.begin(-1, self.time.of(root.time_ms), root)
        job.settings = root.settings
        root.job = self._add(job)
        job.failures.begin(root.id)
        for inner in root.inner:
            inner.job = job
        if not root.adaptive:
            self._show(root)

    @_apply.register
    def _(self, event: records.StageSubmitted) -> None:
        stage = self._stages.get(event.stage.stage)
        if stage is not None:
            stage.bind_by_scopes()

    @_apply.register
    def _(self, event: records.StageCompleted) -> None:
        stage = self._stages.get(event.stage)
        if stage is None:
            return
        for bound in stage.vertices():
            stage.drop_live(bound)
        if event.failure is None:
            stage.completed_ms = self.time.of(event.time_ms)
        if stage.execution.job is not None:
            stage.execution.job.failures.stage(event, stage.execution.outermost.id)

    # ---- Tasks

    @_apply.register
    def _(self, event: records.TaskStart) -> None:
        stage = self._stages.get(event.stage)
        self._executors.start_task(event.task, event.executor, self._jid(stage))
        if stage is None:
            return
        stage.start(event, self.time.of(event.launch_ms))
        if stage.execution.tasks is not None:
            stage.execution.tasks.note(stage)
        for bound in stage.vertices():
            bound.vertex.start_task(event.partition, event.attempt, event.executor, event.launch_ms)

    @_apply.register
    def _(self, event: records.LiveUpdate) -> None:
        stage = self._stages.get(event.stage)
        if stage is None or event.task not in stage.running:
            return
        partition = stage.running[event.task]
        updates = dict(_pairs(event.updates))
        stage.bind_by_updates(updates)
        # Where the partition was won, another attempt does the same work again, and its end will tell if it counts.
        if partition in stage.won:
            return
        for bound in stage.vertices():
            bound.vertex.register(partition + 1)
            bound.vertex.counters.show_live(stage.id, partition, event.task, bound.counts(updates))

    @_apply.register
    def _(self, event: records.TaskEnd) -> None:
        stage = self._stages.get(event.stage)
        self._executors.end_task(event.task)
        if stage is None:
            return
        updates = dict(_pairs(event.updates))
        stage.bind_by_updates(updates)
        if event.partition not in stage.launches:
            # The recorder had to drop its start.
            stage.start(event, self.time.of(event.launch_ms))
        stage.running.pop(event.task, None)
        for bound in stage.vertices():
            bound.vertex.end_task(event.partition, event.attempt, event.executor, event.launch_ms, event.finish_ms)
            # Once a partition is won, what other attempts of it do is done already.
            bound.vertex.counters.drop_live(stage.id, event.partition, None if event.succeeded else event.task)
        if not event.succeeded:
            return
        before = stage.won.get(event.partition)
        if before is not None:
            if before.run >= (event.stage, event.stage_attempt):
                return
            before.take_out()
        run = (event.stage, event.stage_attempt)
        won = Won(
            run,
            event.partition,
            updates,
            event.bytes_written,
            event.launch_ms,
            event.finish_ms,
            self.time.of(event.finish_ms),
            event.executor,
            event.peak_bytes,
            event.spilled_bytes,
            event.task,
            self._reports.claim(event.task, event.stage, event.partition),
        )
        stage.win(won)
        if stage.execution.tasks is not None:
            stage.execution.tasks.note(stage)

    @_apply.register
    def _(self, event: records.TaskFailure) -> None:
        stage = self._stages.get(event.stage)
        if stage is not None and stage.execution.job is not None:
            place = self._executors.place(event.executor)
            stage.execution.job.failures.task(event, stage.execution.outermost.id, stage.vertex_id, *place)

    def _jid(self, stage: Stage | None) -> str:
        job = None if stage is None else stage.execution.job
        return "" if job is None else job.jid

    def _add(self, job: Job) -> Job:
        before = self.jobs.get(job.jid)
        if before is not None:
            self._runs.pop(before.attempt.run_id, None)
        self.jobs[job.jid] = job
        self.jobs.move_to_end(job.jid)
        ended = [jid for jid, held in self.jobs.items() if held.state in wire.ENDED_STATES]
        for jid in ended[: max(len(ended) - ENDED_JOBS, 0)]:
            self.forget(jid, self.jobs[jid].attempt)
        return job


def _adaptive(root: records.PlanNode) -> bool:
    """Whether adaptive execution may still change the plan."""
    if root.name == "AdaptiveSparkPlan":
        return "isFinalPlan=false" in root.description
    return any(_adaptive(child) for child in root.children)


def _pairs(updates: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    return zip(updates[::2], updates[1::2], strict=True)
