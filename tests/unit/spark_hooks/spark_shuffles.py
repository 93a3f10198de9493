"""A query's shuffles, task by task: what is written and read on which executor, and what the buffers tell of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from spark_hooks import records
from spark_hooks.records import PlanNode
from spark_hooks.vertex import JobVertex
from tests.unit.spark_hooks.spark_events import READER, SOURCE, Run, Task, scan, sink, stage, updates

BEGIN_MS = 5_000_000
"""When the builders' executions and tasks begin, unless it is said."""

WRITTEN = "Exchange.shuffle bytes written"
LOCAL = "Exchange.local bytes read"
REMOTE = "Exchange.remote bytes read"


class Shuffled(Run):
    """A run on `executors`, each of two slots and 1,000 bytes; times are in ms from BEGIN_MS."""

    def __init__(self, executors: int = 2, wrap: bool = False) -> None:
        super().__init__(wrap=wrap)
        self.apply(records.Environment("", "", (), (), {}))
        for number in range(1, executors + 1):
            self.executor(str(number))

    def executor(self, name: str, memory_bytes: int = 1000) -> None:
        self.apply(
            records.ExecutorAdded(name, "worker.test", 2, 5, 0),
            records.BlockManagerAdded(name, f"{name}.test:7337", memory_bytes),
        )

    def map_stage(self, tasks: int = 2) -> records.Stage:
        return self.named_stage(tasks, "MicroBatchScan", "Filter", "Exchange", shuffles=True)

    def reduce_stage(self, tasks: int = 3) -> records.Stage:
        return self.named_stage(tasks, "Exchange", "HashAggregate", "WriteToDataSourceV2")

    def named_stage(self, tasks: int, *scopes: str, shuffles: bool = False) -> records.Stage:
        """A stage whose vertex is known as soon as it is submitted."""
        found = stage(self.ids, tasks, shuffles, scopes)
        self.stages(found)
        return found

    def launch(
        self, of: records.Stage, partition: int, at_ms: int = 0, executor: str = "1", stage_attempt: int = 0
    ) -> Task:
        task = Task(self.ids, of, partition, stage_attempt=stage_attempt, launch_ms=BEGIN_MS + at_ms, executor=executor)
        self.apply(task.start())
        return task

    def wrote(self, task: Task, size: int = 100, took_ms: int = 100, **more: int) -> None:
        """A map task ends; a row makes it known which vertex it was."""
        told = updates(self.plan, {"MicroBatchScan": 1, "Filter": 1, WRITTEN: size})
        self.apply(task.end(told, took_ms=took_ms, **more))

    def read(self, task: Task, local: int = 0, remote: int = 0, took_ms: int = 100) -> None:  # type: ignore[override]
        told = updates(self.plan, {"HashAggregate": 1, LOCAL: local, REMOTE: remote})
        self.apply(task.end(told, took_ms=took_ms))

    def write_all(self, *sizes: int, executors: str = "1") -> records.Stage:
        """A map stage whose task i writes `sizes[i]` on the executor that `executors` names, in turn."""
        of = self.map_stage(len(sizes))
        for partition, size in enumerate(sizes):
            self.wrote(self.launch(of, partition, executor=executors[partition % len(executors)]), size)
        self.complete(of)
        return of

    def complete(self, of: records.Stage, at_ms: int = 100, attempt: int = 0) -> None:
        self.apply(records.StageCompleted(of.stage, attempt, BEGIN_MS + at_ms, None))

    def now(self, at_ms: int) -> None:
        """The drain finds the clocks here; the wall clock was not set."""
        self.model.time.look(BEGIN_MS + at_ms, (BEGIN_MS + at_ms) * 1_000_000)

    def commit(self) -> None:
        """The batch's execution ends, and its progress comes."""
        self.apply(self.execution.end(), self.query.progress())

    def vertex(self, name: str) -> JobVertex:
        [found] = [each for each in self.job.graph.vertices.values() if each.name == name]
        return found

    def told(self, vertex: str, metric: str) -> list[Any]:
        """A figure of a vertex after a look, subtask by subtask; None where there is none, [] where it is not told."""
        self.job.course.look()
        found = self.vertex(vertex)
        columns = [(name, values, present) for name, _, values, present in found.buffers.columns()]
        for name, values, present in (*columns, *found.alignment.columns()):
            if name == metric:
                there = np.ones(found.size, dtype=bool) if present is None else present
                return [value if known else None for value, known in zip(values.tolist(), there.tolist(), strict=True)]
        return []

    def queued(self) -> dict[str, list[Any]]:
        """What waits behind the source's subtasks and before the reader's: blocks, then bytes."""
        return {
            "behind": [self.told(SOURCE, "outputQueueLength"), self.told(SOURCE, "outputQueueSize")],
            "before": [self.told(READER, "inputQueueLength"), self.told(READER, "inputQueueSize")],
        }


class Reused(Shuffled):
    """One shuffle, which two vertices read that each write one of their own."""

    def new_plan(self, source: PlanNode | None = None, wrap: bool = False) -> PlanNode:
        ids = self.ids
        shared = ids.shuffle(ids.node("Filter", scan(ids)))
        ends = [ids.shuffle(ids.node(name, shared)) for name in ("HashAggregate", "Generate")]
        # What stands in one vertex alone has accumulators that are found by its name.
        self.shared = shared
        return sink(ids, ids.node("Union", *ends))


class Joined(Shuffled):
    """Two sources, each with a shuffle of its own, which one vertex reads."""

    def new_plan(self, source: PlanNode | None = None, wrap: bool = False) -> PlanNode:
        ids = self.ids
        self.left, self.right = (ids.shuffle(ids.node(name, scan(ids))) for name in ("Filter", "Generate"))
        return sink(ids, ids.node("SortMergeJoin", self.left, self.right))

    def side(self, of: records.Stage, root: PlanNode, task: Task, took_ms: int) -> None:
        """A task of one of the sources' stages ends."""
        node = root.children[0].name
        self.apply(task.end(updates(root, {"MicroBatchScan": 1, node: 1, WRITTEN: 100}), took_ms=took_ms))
