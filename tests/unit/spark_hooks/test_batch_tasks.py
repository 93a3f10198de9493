"""What the tasks of a micro-batch did, vertex by vertex, from Spark's events."""

from __future__ import annotations

import numpy as np
import pytest

from spark_hooks import batch_tasks, records
from streamgauge import wire
from tests.unit.spark_hooks.spark_events import (
    SOURCE,
    Execution,
    Run,
    accumulator,
    completed,
    scan,
    sink,
    stage,
    submitted,
    updates,
)

STATE, COMMIT = "memory used by state", "time to commit changes"

Told = dict[str, list[list[int]]]
"""Vertex name → launches, ends, state bytes, commit ms of its subtasks."""


def plan_with_state(run: Run) -> None:
    """Have the run's next batch keep state."""
    ids = run.ids
    below = ids.shuffle(ids.node("Filter", scan(ids)))
    saved = ids.node("StateStoreSave", below, metrics=(STATE, COMMIT))
    run.query.batch += 1
    run.plan = sink(ids, ids.node("HashAggregate", saved))
    run.execution = Execution(ids, run.plan, run.query.describe())
    run.apply(run.execution.start())


def told(run: Run, batch: int | None = None) -> Told:
    wanted = run.query.batch if batch is None else batch
    [checkpoint] = [each for each in run.job.checkpoints.told().changed if each.id == wanted]
    names = {vertex.id: vertex.name for vertex in run.job.graph.vertices.values()}
    return {
        names[tasks.vertex]: [
            np.frombuffer(column, "<i8").tolist()
            for column in (tasks.start_ms, tasks.end_ms, tasks.state_bytes, tasks.commit_ms)
        ]
        for tasks in checkpoint.tasks
    }


def vertices(run: Run) -> list[str]:
    """The description of the filter in each vertex that the latest micro-batch tells of."""
    tasks = run.job.checkpoints.told().changed[0].tasks
    return [run.job.graph.vertices[each.vertex].operators[1].description for each in tasks]


def test_tasks_are_told_while_they_run(run: Run) -> None:
    """A subtask has a launch when it was launched, an end when it has won; others of the stage are pending."""
    of = run.map_stage(3)
    first = run.task(of, 0, launch_ms=100)
    run.task(of, 1, launch_ms=110)
    assert told(run) == {}
    run.apply(first.end(run.read(5, 5)))
    assert told(run) == {SOURCE: [[100, 110, -1], [200, -1, -1], [-1] * 3, [-1] * 3]}


def test_tasks_stay_when_the_batch_has_ended(run: Run) -> None:
    """And the next batch's are its own."""
    of = run.map_stage(1)
    run.apply(run.task(of, launch_ms=100).end(run.read(5, 5)), run.execution.end(), run.query.progress(5))
    run.begin()
    assert told(run, 0) == {SOURCE: [[100], [200], [-1], [-1]]}
    assert told(run, 1) == {}


def test_success_that_counts_is_told(run: Run) -> None:
    """A failed attempt has no end; a speculative copy that lost is ignored; a higher stage attempt replaces."""
    of = run.map_stage(1)
    failed = run.task(of, launch_ms=100)
    run.apply(failed.end(succeeded=False))
    retried, copy = run.task(of, attempt=1, launch_ms=300), run.task(of, attempt=2, launch_ms=350)
    run.apply(retried.end(run.read(5, 5)), copy.end(run.read(5, 5)))
    assert told(run)[SOURCE][:2] == [[300], [400]]
    again = run.task(of, stage_attempt=1, launch_ms=700)
    run.apply(again.end(run.read(5, 5)), completed(of, attempt=1))
    assert told(run)[SOURCE][:2] == [[700], [800]]


def test_higher_stage_attempt_counts_after_the_end_too(run: Run) -> None:
    """As it does everywhere: the execution has ended, and its batch is told."""
    of = run.map_stage(1)
    run.apply(run.task(of, launch_ms=100).end(run.read(5, 5)))
    late = run.task(of, stage_attempt=1, launch_ms=150)
    run.apply(run.execution.end(), run.query.progress(5), late.end(run.read(5, 5)))
    assert told(run)[SOURCE][:2] == [[150], [250]]


def test_state_is_what_the_tasks_of_its_vertex_tell(run: Run) -> None:
    """Bytes and commit time of a stateful vertex, 0 where a task sent none; −1 on a vertex without state."""
    plan_with_state(run)
    of, reader = run.map_stage(1), stage(run.ids, 2)
    run.apply(run.task(of, launch_ms=100).end(run.read(5, 5)))
    run.stages(reader)
    for partition, figures in enumerate(({f"StateStoreSave.{STATE}": 816, f"StateStoreSave.{COMMIT}": 7}, {})):
        task = run.task(reader, partition, launch_ms=300 + partition)
        run.apply(task.end(updates(run.plan, {"HashAggregate": 1, **figures})))
    found = told(run)
    [stateful] = [name for name in found if "StateStoreSave" in name]
    assert found[stateful] == [[300, 301], [400, 401], [816, 0], [7, 0]]
    assert found[SOURCE][2:] == [[-1], [-1]]


def test_vertex_that_a_stage_only_seemed_to_execute_is_not_told(run: Run) -> None:
    """The names of RDD scopes are a guess that a task's updates may correct."""
    ids = run.ids
    sides = [ids.shuffle(ids.node("Filter", scan(ids), description=side)) for side in ("one", "other")]
    run.query.batch += 1
    run.execution = Execution(ids, sink(ids, ids.node("Join", *sides)), run.query.describe())
    run.apply(run.execution.start())
    guessed = stage(ids, 1, shuffles=True, scopes=["Exchange", "Filter"])
    run.stages(guessed)
    task = run.task(guessed, launch_ms=100)
    before = vertices(run)
    rows = accumulator(sides[1], "Filter") if before == ["one"] else accumulator(sides[0], "Filter")
    run.apply(task.end((rows, 5)))
    assert [before, vertices(run)] in ([["one"], ["other"]], [["other"], ["one"]])


def test_last_execution_of_a_vertex_is_told(run: Run) -> None:
    """Two writes in foreachBatch read the stream twice: both are work of one subtask."""
    for launch_ms in (100, 500):
        of = run.map_stage(1)
        run.apply(run.task(of, launch_ms=launch_ms).end(run.read(5, 5)))
    assert told(run)[SOURCE][:2] == [[500], [600]]


def test_inner_executions_are_of_their_roots_batch(run: Run) -> None:
    """A sink of the second kind runs its jobs in an execution within the execution."""
    inner = Execution(run.ids, run.plan, run.query.describe(), root=run.execution.id)
    of = stage(run.ids, 1, shuffles=True)
    run.apply(inner.start(), inner.job(of), submitted(of))
    task = run.task(of, launch_ms=100)
    run.apply(task.end(run.read(5, 5)), inner.end())
    assert told(run)[SOURCE][:2] == [[100], [200]]


def test_ended_executions_are_not_held(run: Run) -> None:
    """A batch that user code makes long, with thousands of executions, holds figures alone."""
    for _ in range(300):
        inner = Execution(run.ids, run.new_plan(), run.query.describe(), root=run.execution.id)
        of = stage(run.ids, 1, shuffles=True)
        run.apply(inner.start(), inner.job(of), submitted(of), inner.end())
    tasks = run.model._executions[run.execution.id].tasks
    assert tasks is not None
    assert len(tasks._running) == 1


@pytest.mark.parametrize("bound", ["SUBTASKS", "VERTICES"])
def test_what_is_told_of_a_batch_is_bounded(run: Run, bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vertex that comes when there is no room is left out, and nothing breaks."""
    monkeypatch.setattr(batch_tasks, bound, 1)
    of, reader = run.map_stage(1), stage(run.ids, 1)
    run.apply(run.task(of, launch_ms=100).end(run.read(5, 5)))
    run.stages(reader)
    run.apply(run.task(reader).end(updates(run.plan, {"HashAggregate": 1})))
    assert list(told(run)) == [SOURCE]


def test_same_object_while_nothing_changes(run: Run) -> None:
    """So that what has not changed is seen at once, and does not travel."""
    of = run.map_stage(1)
    run.apply(run.task(of).end(run.read(5, 5)))
    [one], [other] = (run.job.checkpoints.told().changed for _ in range(2))
    assert one is other
    assert isinstance(one, wire.Checkpoint)
    run.apply(records.JobEnd(0, 0, True))
    assert run.job.checkpoints.told().changed[0] is one
