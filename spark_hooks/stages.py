"""SQL executions, the stages that execute their plans, and what a stage's tasks have counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spark_hooks import counts, plan, records
from spark_hooks.batch_tasks import BatchTasks
from spark_hooks.job import Job
from spark_hooks.timer_reports import TimerReport
from spark_hooks.vertex import Bound

_READ = (
    counts.READ_RECORDS,
    counts.READ_LOCAL_BYTES,
    counts.READ_REMOTE_BYTES,
    counts.READ_LOCAL_BLOCKS,
    counts.READ_REMOTE_BLOCKS,
)
_WRITTEN = (counts.WRITTEN_RECORDS, counts.WRITTEN_BYTES)


@dataclass(slots=True, eq=False)
class Won:
    """
    The success of a partition that counts, and what was added for it.

    Args:
        run: (stage id, stage attempt): the greater one ran later.
        launch_ms, finish_ms: Wall times.
        finished_ms: Steady time of its end.
        executor: Spark's id of the one that it ran on.
        peak_bytes: Execution memory that it held at most.
        spilled_bytes: To disk.
        task: Spark's id of the task attempt.
        reports: What its timer services have reported.
    """

    run: tuple[int, int]
    subtask: int
    updates: dict[int, int]
    bytes_written: int
    launch_ms: int
    finish_ms: int
    finished_ms: int
    executor: str
    peak_bytes: int
    spilled_bytes: int
    task: int = -1
    reports: list[TimerReport] = field(default_factory=list)
    added: list[tuple[Bound, list[int]]] = field(default_factory=list)

    def take_out(self) -> None:
        """Take what was added out again: it is counted anew, or another success replaces this one."""
        for bound, row in self.added:
            bound.vertex.counters.subtract(self.subtask, row)
            bound.retract(self.subtask, self.run, self.updates)
            if bound.timers is not None:
                for report in self.reports:
                    bound.timers.take_out(self.subtask, report)
        self.added.clear()

    def report(self, report: TimerReport) -> None:
        """Add what a timer service has reported of the task."""
        self.reports.append(report)
        for bound, _ in self.added:
            if bound.timers is not None:
                bound.timers.add(self.subtask, report)


@dataclass(slots=True, eq=False)
class Execution:
    """
    One SQL execution. Not thread safe.

    Args:
        root: The outermost one; None where there is none above it.
        job: None until a batch execution runs its first Spark job.
        own: Its plan is the streaming query's own.
        adaptive: Its plan is still being changed; only what runs is shown.
        replaced: What adaptive execution has planned before `graph`.
        driver: SQL metrics that the driver set.
        settings: Spark's that are not the application's; of an outermost one.
        tasks: Where what its tasks do is told, of a micro-batch's execution; None for others.
        accumulators: Of every metric of every plan that it had.
    """

    id: int
    root: Execution | None
    description: str
    time_ms: int
    job: Job | None
    own: bool
    graph: plan.Graph
    adaptive: bool
    replaced: list[plan.Graph] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    inner: list[Execution] = field(default_factory=list)
    driver: dict[int, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    tasks: BatchTasks | None = None
    accumulators: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self.accumulators = set(self.graph.accumulators)

    def replan(self, graph: plan.Graph) -> None:
        """Adaptive execution goes on with another plan."""
        self.replaced.append(self.graph)
        self.graph = graph
        self.accumulators.update(graph.accumulators)

    def names(self, updates: Mapping[int, int]) -> bool:
        """Whether its plans, and those of the execution that encloses it, have all of these accumulators."""
        return self.outermost.accumulators.issuperset(updates.keys() - self.accumulators)

    def count_driver(self) -> None:
        """Add the native metrics that the driver set to the vertices that are shown; once, for it ends."""
        if self.job is None:
            return
        left = dict(self.driver)
        for vertex in self.graph.vertices if left else ():
            bound = self.job.graph.bound(vertex, self.own)
            if bound is not None:
                for accumulator in bound.vertex.accumulators.add_driver(bound.reading, left):
                    del left[accumulator]

    @property
    def outermost(self) -> Execution:
        """The execution that no other one encloses; it may be this one."""
        return self.root or self


@dataclass(slots=True, eq=False)
class Stage:
    """
    One stage, over its attempts, or all stages that write the same shuffle. Not thread safe.

    Args:
        ids: Spark's. With adaptive execution a map stage is a job of its own; what it wrote and was lost is
            written again by a stage of the reader's job, under another id.
        bound: The vertices it executes, with the plan they stand in: its own execution's, and with
            foreachBatch the query's too. One of each, however often adaptive execution plans anew; without
            a plan while nothing but the names of its RDDs' scopes has told so.
        won: Partition → the success that counts.
        running: Task id → partition.
        starts: Partition → launch of its latest task, wall time.
        launches: The same, steady time.
        relaunched: Partition → launch of its first task, steady time, of those that have had another one since.
        first_ms: Launch of its first task, steady time; −1 before.
        places: Partition → the executor of its latest task.
        completed_ms: When all partitions had been won, steady time; −1 while it runs.
        revision: Tasks that were launched, and successes that count; grows with whatever its tasks do.
    """

    ids: list[int]
    execution: Execution
    tasks: int
    shuffle: int
    scopes: frozenset[str]
    bound: dict[Execution, tuple[plan.Graph | None, Bound]] = field(default_factory=dict)
    won: dict[int, Won] = field(default_factory=dict)
    running: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    launches: dict[int, int] = field(default_factory=dict)
    relaunched: dict[int, int] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    first_ms: int = -1
    completed_ms: int = -1
    revision: int = 0

    @property
    def id(self) -> int:
        """The first of Spark's ids."""
        return self.ids[0]

    @property
    def shuffles(self) -> bool:
        """Whether it writes a shuffle."""
        return self.shuffle >= 0

    def vertices(self) -> Iterator[Bound]:
        """Return the vertices it executes."""
        return (bound for _, bound in self.bound.values())

    @property
    def vertex_id(self) -> str:
        """The vertex that its own execution's plan has for it, else the query's, '' where neither is known."""
        _, bound = self.bound.get(self.execution) or next(iter(self.bound.values()), (None, None))
        return "" if bound is None else bound.vertex.id

    def start(self, event: records.TaskStart | records.TaskEnd, launched_ms: int) -> None:
        """A task was launched, at a steady time; that of one whose partition was won meanwhile changes nothing else."""
        self.running[event.task] = event.partition
        won = self.won.get(event.partition)
        if won is not None and won.run >= (event.stage, event.stage_attempt):
            return
        self.starts[event.partition] = event.launch_ms
        if event.partition in self.launches:
            self.relaunched.setdefault(event.partition, self.launches[event.partition])
        self.launches[event.partition] = launched_ms
        self.places[event.partition] = event.executor
        self.revision += 1
        self.completed_ms = -1
        if self.first_ms < 0:
            self.first_ms = launched_ms

    def drop_live(self, bound: Bound) -> None:
        """Forget what its running tasks told of `bound`."""
        for task, partition in self.running.items():
            bound.vertex.counters.drop_live(self.id, partition, task)

    def win(self, won: Won) -> None:
        """A success counts, in place of the one before it that was taken out."""
        self.won[won.subtask] = won
        self.revision += 1
        self.count(won)

    def count(self, won: Won) -> None:
        """Add a success to every vertex that the stage executes."""
        for bound in self.vertices():
            row = bound.counts(won.updates, won.bytes_written, won.spilled_bytes)
            bound.vertex.register(won.subtask + 1)
            bound.vertex.counters.add(won.subtask, row)
            bound.accumulate(won.subtask, won.run, won.updates)
            if bound.timers is not None:
                for report in won.reports:
                    bound.timers.add(won.subtask, report)
            won.added.append((bound, row))

    def bind_by_scopes(self) -> None:
        """Find the vertex that the stage executes by the names of its RDD scopes."""
        graph = self.execution.graph
        if self.execution in self.bound or not self.scopes:
            return
        # What only other vertices have rules a vertex out: sampling for a range partitioning is no work of its reader.
        # Generated code that none has is of a plan that is not told yet, as where a cache is filled.
        known = self.scopes & {scope for vertex in graph.vertices for scope in vertex.scopes}
        if any(scope.startswith(plan.CODEGEN) for scope in self.scopes - known):
            return
        fitting = [each for each in graph.vertices if each.shuffles == self.shuffles and known <= each.scopes]
        if known and fitting:
            self._bind(self.execution, None, min(fitting, key=lambda vertex: len(vertex.scopes - known)))

    def bind_by_updates(self, updates: Mapping[int, int]) -> None:
        """
        Find the vertices that the stage executes by the accumulators that a task updated; what is counted stays right.

        One of each execution: its own, and the one that encloses it where foreachBatch reads the stream. Plans of
        others may have the same accumulators, as those of two queries that read one cached table; that is no work of
        theirs.
        """
        if self._find(updates):
            self._count_anew()

    def resolve(self) -> None:
        """Count the successes anew: a plan came that names updates which came before it."""
        for won in self.won.values():
            self._find(won.updates)
        self._count_anew()

    def _find(self, updates: Mapping[int, int]) -> bool:
        """Bind by a task's updates; return whether a vertex was found that was not known before."""
        found = False
        own = self.execution
        for execution in (own,) if own.root is None else (own, own.root):
            known = self.bound.get(execution)
            if known is not None and known[0] is execution.graph:
                continue
            if execution is not own:
                updates = {each: value for each, value in updates.items() if each not in own.accumulators}
                if not updates or self._samples_stream():
                    continue
            # An accumulator that an older plan alone has says nothing against the newer one.
            older = reversed(execution.replaced) if known is None else ()
            for graph in (execution.graph, *older):
                vertex = self._vertex_of(graph, updates)
                if vertex is not None:
                    self._bind(execution, graph, vertex)
                    found = True
                    break
        return found

    def _bind(self, execution: Execution, graph: plan.Graph | None, vertex: plan.Vertex) -> None:
        job = self.execution.job
        if job is not None:
            bound = job.graph.bind(vertex, execution.own, vertex.cached if self._samples(vertex) else None)
            bound.vertex.run_stage(self.tasks)
            if execution in self.bound:
                self.drop_live(self.bound[execution][1])
            self.bound[execution] = (graph, bound)

    def _count_anew(self) -> None:
        """Count every success again that was not counted as the vertices that the stage executes now count it."""
        now = tuple(self.vertices())
        same: dict[tuple[Bound, ...], bool] = {}
        for won in self.won.values():
            before = tuple(bound for bound, _ in won.added)
            if before not in same:
                same[before] = len(before) == len(now) and all(map(Bound.counts_as, before, now))
            if not same[before]:
                won.take_out()
                self.count(won)

    def _samples(self, vertex: plan.Vertex) -> bool:
        """
        Whether the stage can only sample what feeds the vertex's shuffle.

        Range partitioning does so in a job of its own, on the same accumulators. A cache that is filled on the way
        is filled once: what stands below it counts in whichever stage comes first.
        """
        return vertex.shuffles and not self.shuffles

    def _samples_stream(self) -> bool:
        """
        Whether what it reads of the stream that user code was handed in foreachBatch is only sampled.

        Rows need not have come through to tell: where the stream feeds nothing but shuffles, a stage that writes
        none samples, unless it fills a cache.
        """
        if self.bound.get(self.execution, (None,))[0] is not None:
            return False
        fed = [
            vertex
            for vertex in self.execution.graph.vertices
            if any(operator.node == plan.FED_BY_RDD for operator in vertex.operators)
        ]
        return bool(fed) and all(self._samples(vertex) and not vertex.cached for vertex in fed)

    def _vertex_of(self, graph: plan.Graph, updates: Mapping[int, int]) -> plan.Vertex | None:
        """
        Return the vertex of a plan that most of a task's updates speak of, or None.

        What ends a plan may run in a map stage: of user code in foreachBatch.
        """
        best, most = None, 0
        for vertex in graph.vertices:
            told = vertex.cached.intersection(updates) if self._samples(vertex) else updates
            speaking = sum(row in told for operator in vertex.operators for row in operator.rows)
            for exchange in vertex.reads:
                speaking += any(exchange.metrics.get(metric) in told for metric in _READ)
            if vertex.writes is not None:
                speaking += any(vertex.writes.metrics.get(metric) in told for metric in _WRITTEN)
            if speaking > most:
                best, most = vertex, speaking
        return best
