"""SQL executions, the stages that execute their plans, and what a stage's tasks have counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spark_hooks import counts, plan
from spark_hooks.job import Bound, Job

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
    """The success of a partition that counts, and what was added for it."""

    run: tuple[int, int]
    """(stage id, stage attempt): the greater one ran later."""
    subtask: int
    updates: dict[int, int]
    bytes_written: int
    added: list[tuple[Bound, list[int]]] = field(default_factory=list)

    def take_out(self) -> None:
        """Take what was added out again: it is counted anew, or another success replaces this one."""
        for bound, row in self.added:
            bound.vertex.counters.subtract(self.subtask, row)
        self.added.clear()


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
    """

    ids: list[int]
    execution: Execution
    tasks: int
    shuffle: int
    scopes: frozenset[str]
    bound: dict[Execution, tuple[plan.Graph | None, Bound]] = field(default_factory=dict)
    won: dict[int, Won] = field(default_factory=dict)
    running: dict[int, int] = field(default_factory=dict)

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

    def drop_live(self, bound: Bound) -> None:
        """Forget what its running tasks told of `bound`."""
        for task, partition in self.running.items():
            bound.vertex.counters.drop_live(self.id, partition, task)

    def count(self, won: Won) -> None:
        """Add a success to every vertex that the stage executes."""
        for bound in self.vertices():
            row = bound.counts(won.updates, won.bytes_written)
            bound.vertex.register(won.subtask + 1)
            bound.vertex.counters.add(won.subtask, row)
            won.added.append((bound, row))

    def count_anew(self) -> None:
        """Count every success again: the vertices that the stage executes are others now."""
        for won in self.won.values():
            won.take_out()
            self.count(won)

    def samples(self, vertex: plan.Vertex) -> bool:
        """
        Whether the stage can only sample what feeds the vertex's shuffle.

        Range partitioning does so in a job of its own, on the same accumulators. A cache that is filled on the way
        is filled once: what stands below it counts in whichever stage comes first.
        """
        return vertex.shuffles and not self.shuffles

    def samples_stream(self) -> bool:
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
        return bool(fed) and all(self.samples(vertex) and not vertex.cached for vertex in fed)

    def vertex_of(self, graph: plan.Graph, updates: Mapping[int, int]) -> plan.Vertex | None:
        """
        Return the vertex of a plan that most of a task's updates speak of, or None.

        What ends a plan may run in a map stage: of user code in foreachBatch.
        """
        best, most = None, 0
        for vertex in graph.vertices:
            told = vertex.cached.intersection(updates) if self.samples(vertex) else updates
            speaking = sum(row in told for operator in vertex.operators for row in operator.rows)
            for exchange in vertex.reads:
                speaking += any(exchange.metrics.get(metric) in told for metric in _READ)
            if vertex.writes is not None:
                speaking += any(vertex.writes.metrics.get(metric) in told for metric in _WRITTEN)
            if speaking > most:
                best, most = vertex, speaking
        return best
