"""What is told of the state of stateful operators, and what stays unknown."""

from __future__ import annotations

import pytest

from spark_hooks import records
from spark_hooks.records import PlanNode
from spark_hooks.vertex import JobVertex
from spark_hooks.vertex_columns import groups
from streamgauge import names
from tests.unit.spark_hooks.spark_events import Run, scan, sink, updates

ROWS, MEMORY = "number of total state rows", "memory used by state"
UPDATED, REMOVED, COMMIT = "number of updated state rows", "number of removed state rows", "time to commit changes"


class StateRun(Run):
    """A query `scan -> exchange -> aggregation -> sink` whose first batch has begun."""

    def new_plan(self, source: PlanNode | None = None, wrap: bool = False) -> PlanNode:
        plan = self.ids.shuffle(self.ids.node("Filter", source or scan(self.ids)))
        return sink(self.ids, self.ids.node("StateStoreSave", plan, metrics=(ROWS, MEMORY, UPDATED, REMOVED, COMMIT)))

    def reading(self, tasks: int) -> records.Stage:
        """A stage of the vertex with the state."""
        found = records.Stage(next(self.ids.stages), 0, tasks, -1, (), ())
        self.stages(found)
        return found

    def told(self, **figures: int) -> tuple[int, ...]:
        """Updates of a task, which put out a row too."""
        by_name = {"rows": ROWS, "memory": MEMORY, "updated": UPDATED, "removed": REMOVED, "commit": COMMIT}
        told = {f"StateStoreSave.{by_name[name]}": value for name, value in figures.items()}
        return updates(self.plan, {"StateStoreSave": 1, **told})

    def next_batch(self) -> None:
        self.apply(self.execution.end())
        self.begin()

    @property
    def vertex(self) -> JobVertex:
        found = self.job.graph.vertices.values()
        return next(each for each in found if any(operator.node == "StateStoreSave" for operator in each.operators))

    def shown(self, vertex: JobVertex | None = None) -> dict[str, list[float | None]]:
        """Every figure of state → a value a subtask."""
        found: dict[str, list[float | None]] = {}
        vertex = vertex or self.vertex
        for told in (each for group in groups(vertex) if group.name == "state" for each in group.columns()):
            assert told.present is not None
            values = zip(told.values.tolist(), told.present.tolist(), strict=True)
            found[told.metric] = [value if known else None for value, known in values]
        return found


def test_levels_are_the_latest_batchs_and_what_was_done_adds_up() -> None:
    """Each subtask has its part of the state; 0 rows are a figure once a store has told any."""
    run = StateRun()
    for batch in ([(5, 900, 5, 0, 3), (2, 800, 2, 0, 4)], [(4, 950, 1, 2, 5), (0, 700, 0, 2, 6)]):
        reading = run.reading(tasks=2)
        for partition, (rows, memory, updated, removed, commit) in enumerate(batch):
            told = run.told(rows=rows, memory=memory, updated=updated, removed=removed, commit=commit)
            run.apply(run.task(reading, partition).end(told))
        run.next_batch()
    assert run.shown() == {
        names.NUM_STATE_ROWS: [4, 0],
        names.STATE_MEMORY_USED: [950, 700],
        names.NUM_STATE_ROWS_UPDATED: [6, 2],
        names.NUM_STATE_ROWS_REMOVED: [2, 2],
        names.STATE_COMMIT_TIME: [8, 10],
    }


def test_what_was_done_does_not_go_back_when_another_attempt_replaces_a_task() -> None:
    """The later success counts, as Spark has it, once it is more than what was told."""
    run = StateRun()
    reading = run.reading(tasks=1)
    run.apply(run.task(reading).end(run.told(rows=5, commit=900)))
    assert run.shown()[names.STATE_COMMIT_TIME] == [900]
    run.apply(run.task(reading, stage_attempt=1).end(run.told(rows=5, commit=40)))
    assert run.shown()[names.STATE_COMMIT_TIME] == [900]
    run.next_batch()
    run.apply(run.task(run.reading(tasks=1)).end(run.told(rows=5, commit=1000)))
    assert run.shown()[names.STATE_COMMIT_TIME] == [1040]


def test_a_subtask_that_has_not_ended_yet_tells_nothing() -> None:
    """What a run before has left is there, but nobody has told how much."""
    run = StateRun()
    run.apply(run.task(run.reading(tasks=2), 1).end(run.told(rows=5, updated=5)))
    shown = run.shown()
    assert shown[names.NUM_STATE_ROWS] == shown[names.NUM_STATE_ROWS_UPDATED] == [None, 5]


@pytest.mark.parametrize(("figure", "metric"), [("rows", names.NUM_STATE_ROWS), ("memory", names.STATE_MEMORY_USED)])
def test_a_level_that_no_store_told_is_absent(figure: str, metric: str) -> None:
    """A store may be set to count no rows, and tells 0; later it cannot be told from one that lost its last row."""
    run = StateRun()
    reading = run.reading(tasks=1)
    run.apply(run.task(reading).end(run.told(updated=5)))
    assert metric not in run.shown()
    run.apply(run.task(reading, stage_attempt=1).end(run.told(**{figure: 7})))
    assert run.shown()[metric] == [7]
    run.next_batch()
    run.apply(run.task(run.reading(tasks=1)).end(run.told()))
    assert run.shown()[metric] == [0]


def test_a_vertex_without_state_tells_nothing() -> None:
    """Most have none."""
    run = StateRun()
    run.apply(run.task(run.reading(tasks=1)).end(run.told(rows=5)))
    others = [vertex for vertex in run.job.graph.vertices.values() if vertex is not run.vertex]
    assert others
    assert all(not run.shown(vertex) for vertex in others)
