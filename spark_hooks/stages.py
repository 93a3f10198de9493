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
            foreachBatch the query's too. One of each, however often adaptive execution plans anew.
        won: Partition → the success that counts.
        running: Task id → partition.
    """

    ids: list[int]
    execution: Execution
    tasks: int
    shuffle: int
    scopes: frozenset[str]
    bound: dict[Execution, tuple[plan.Graph, Bound]] = field(default_factory=dict)
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

    def vertex_of(self, graph: plan.Graph, updates: Mapping[int, int]) -> plan.Vertex | None:
        """
        Return the vertex of a plan that most of a task's updates speak of, or None.

        What feeds a shuffle counts in map stages only: range partitioning samples its input in a job of its
        own, on the same accumulators. What ends a plan may run in a map stage: of user code in foreachBatch.
        """
        best, most = None, 0
        for vertex in graph.vertices:
            if vertex.shuffles and not self.shuffles:
                continue
            speaking = sum(row in updates for operator in vertex.operators for row in operator.rows)
            for exchange in vertex.reads:
                speaking += any(exchange.metrics.get(metric) in updates for metric in _READ)
            if vertex.writes is not None:
                speaking += any(vertex.writes.metrics.get(metric) in updates for metric in _WRITTEN)
            if speaking > most:
                best, most = vertex, speaking
        return best
