"""When micro-batches and stages ran, as the model takes it from Spark's events."""

from __future__ import annotations

import pytest

from spark_hooks import execution as model_module
from spark_hooks import records
from spark_hooks.timeline import Batch
from tests.unit.spark_hooks.spark_events import (
    Execution,
    Ids,
    Query,
    Run,
    Task,
    completed,
    new_model,
    scan,
    stage,
    updates,
)

HOUR_MS = 3_600_000
TRIGGER_MS = 1_795_255_201_000
"""What `Query.progress` tells of its batch's beginning."""


def batch_of(run: Run) -> Batch:
    found = run.job.course.timeline.batch
    assert found is not None
    return found


def done(of: records.Stage, time_ms: int, attempt: int = 0, failure: str | None = None) -> records.StageCompleted:
    return records.StageCompleted(of.stage, attempt, time_ms, failure)


def test_batch_is_under_way_from_its_execution_to_its_progress(run: Run) -> None:
    """Its outermost execution begins it, the execution's end is told, and what Spark says of its trigger ends it."""
    batch = batch_of(run)
    assert (batch.id, batch.begin_ms, batch.executed_ms, batch.end_ms) == (0, 5_000_000, -1, -1)
    run.apply(run.execution.end(5_000_400))
    assert batch.executed_ms == 5_000_400
    run.apply(run.query.progress(timestamp="1970-01-01T01:23:19.990Z", durationMs={"triggerExecution": 500}))
    assert (batch.begin_ms, batch.executed_ms, batch.end_ms) == (4_999_990, 5_000_400, 5_000_490)
    assert run.job.course.timeline.batch is None


def test_nested_executions_are_of_their_batch(run: Run) -> None:
    """User code in foreachBatch runs in executions within the query's own; the batch has executed when that has."""
    inner = Execution(run.ids, run.new_plan(), run.query.describe(), root=run.execution.id)
    of = stage(run.ids, 1, shuffles=True)
    run.apply(inner.start(), inner.job(of))
    task = run.task(of)
    run.apply(task.end(updates(inner.plan, {"MicroBatchScan": 1})), inner.end(5_000_200))
    batch = batch_of(run)
    assert (len(batch.executions), batch.executed_ms) == (1, -1)
    [found] = batch.stages()
    assert (found.first_ms, list(batch.by_vertex().values())) == (5_000_000, [[found]])
    run.apply(run.execution.end(5_000_300))
    assert batch.executed_ms == 5_000_300


def test_execution_of_no_batch_begins_none() -> None:
    """Where Spark makes a source ready it says 'batch = init'."""
    model, ids, query = new_model(), Ids(), Query(1)
    description = query.describe().replace("batch = -1", "batch = init")
    model.apply([query.started(), Execution(ids, scan(ids), description).start()])
    assert model.jobs[query.jid].course.timeline.batch is None


def test_execution_that_a_batch_left_behind_is_of_no_batch(run: Run) -> None:
    """A thread of user code goes on when the next batch is under way, and what enclosed it is held no more."""
    late = Execution(run.ids, run.plan, run.query.describe(), root=999)
    run.begin()
    run.apply(late.start(), late.end())
    assert (batch_of(run).id, len(batch_of(run).executions), batch_of(run).executed_ms) == (1, 1, -1)


def test_batch_that_is_followed_by_another_has_ended(run: Run) -> None:
    """Its progress may have been lost."""
    batch = batch_of(run)
    run.query.batch += 1
    run.apply(Execution(run.ids, run.new_plan(), run.query.describe()).start(5_700_000))
    assert (batch.end_ms, batch_of(run).id) == (5_700_000, 1)


@pytest.mark.parametrize("failure", [None, "boom"], ids=["stopped", "failed"])
def test_run_that_ends_ends_its_batch(run: Run, failure: str | None) -> None:
    """And what comes after it begins none."""
    batch = batch_of(run)
    run.apply(run.query.terminated(6_500_000, failure))
    assert (batch.executed_ms, batch.end_ms, run.job.course.timeline.batch) == (-1, 6_500_000, None)
    run.apply(Execution(run.ids, run.plan, run.query.describe()).start())
    assert run.job.course.timeline.batch is None


def test_second_run_has_a_timeline_of_its_own(run: Run) -> None:
    """It may run the same batch again; late events of the run before do not reach it."""
    old, before, batch = run.query, run.execution, batch_of(run)
    run.apply(run.query.terminated(6_500_000, "boom"))
    run.query = Query(1, run=1)
    run.apply(run.query.started("2026-11-21T10:30:00.000Z"))
    run.begin()
    assert batch_of(run).id == batch.id == 0
    run.apply(before.end(7_000_000), old.progress(5), old.terminated())
    assert batch_of(run).executed_ms == -1
    assert batch.end_ms == 6_500_000


def test_batch_job_is_one_batch() -> None:
    """From its outermost execution's start to its end, when it has executed."""
    model, ids = new_model(), Ids()
    execution = Execution(ids, scan(ids), "count at app.py:7")
    of = stage(ids, 1)
    model.apply([execution.start(5_000_000), execution.job(of)])
    [job] = model.jobs.values()
    batch = job.course.timeline.batch
    assert batch is not None
    assert (batch.id, batch.begin_ms, batch.executed_ms) == (-1, 5_000_000, -1)
    model.apply([execution.end(5_000_900)])
    assert (batch.executed_ms, batch.end_ms, job.course.timeline.batch) == (5_000_900, 5_000_900, None)
    assert (job.state, model.faults) == ("FINISHED", [])


def test_stage_runs_from_its_first_task_until_spark_says_so(run: Run) -> None:
    """Each task's launch and finish is its own; a stage that failed has not completed."""
    of = run.map_stage()
    tasks = [run.task(of, 0, launch_ms=5_000_010), run.task(of, 1, launch_ms=5_000_020)]
    [found] = batch_of(run).stages()
    assert (found.first_ms, found.launches, found.completed_ms) == (5_000_010, {0: 5_000_010, 1: 5_000_020}, -1)
    run.apply(*(task.end(run.read(1, 1), took_ms=200, peak_bytes=7) for task in tasks))
    run.apply(done(of, 5_000_225, failure="lost an executor"))
    assert found.completed_ms == -1
    run.apply(done(of, 5_000_230))
    assert found.completed_ms == 5_000_230
    won = found.won[1]
    assert (won.finished_ms, won.executor, won.peak_bytes) == (5_000_220, "1", 7)


def test_late_attempt_of_a_won_partition_leaves_its_stage_completed(run: Run) -> None:
    """Spark may launch a speculative task when the original has just won, and tell of it after the stage's end."""
    of = run.map_stage(1)
    run.apply(run.task(of, launch_ms=5_000_010).end(run.read(1, 1)), done(of, 5_000_120))
    late = run.task(of, attempt=1, launch_ms=5_000_105)
    [found] = batch_of(run).stages()
    assert (found.completed_ms, found.launches) == (5_000_120, {0: 5_000_010})
    run.apply(late.end(succeeded=False))
    assert not found.running


def test_stage_that_is_executed_again_runs_again(run: Run) -> None:
    """Where what it wrote was lost, a higher attempt of it writes it again."""
    of = run.map_stage(1)
    run.apply(run.task(of).end(run.read(1, 1)), done(of, 5_000_120))
    again = run.task(of, stage_attempt=1, launch_ms=5_000_500)
    [found] = batch_of(run).stages()
    assert (found.completed_ms, found.launches) == (-1, {0: 5_000_500})
    run.apply(again.end(run.read(1, 1)), done(of, 5_000_600, attempt=1))
    assert (found.completed_ms, found.won[0].finished_ms) == (5_000_600, 5_000_600)


def test_task_whose_start_was_lost_was_launched(run: Run) -> None:
    """The recorder gives records up where there is no room; a task's end tells its launch too."""
    of = run.map_stage(1)
    run.apply(Task(run.ids, of, 0, launch_ms=5_000_010).end(run.read(1, 1)))
    [found] = batch_of(run).stages()
    assert (found.first_ms, found.launches, found.running) == (5_000_010, {0: 5_000_010}, {})
    assert len(batch_of(run).by_vertex()) == 1


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS], ids=["back", "forward"])
def test_clock_that_is_set_in_mid_batch_moves_nothing(step_ms: int) -> None:
    """Spark measures a trigger by the wall clock too, and tells a duration of 0 where that ran backwards."""
    model = new_model()
    model.time.look(TRIGGER_MS, 0)
    run = Run(model)
    run.query.batch += 1
    run.execution = Execution(run.ids, run.plan, run.query.describe())
    run.apply(run.execution.start(TRIGGER_MS + 10))
    of, batch = run.map_stage(1), batch_of(run)
    task = run.task(of, launch_ms=TRIGGER_MS + 100)
    model.time.look(TRIGGER_MS + 4_000 + step_ms, 4_000_000_000)
    run.apply(task.end(run.read(1, 1), took_ms=1_900 + step_ms), done(of, TRIGGER_MS + 2_010 + step_ms))
    run.apply(run.execution.end(TRIGGER_MS + 2_500 + step_ms))
    run.apply(run.query.progress(durationMs={"triggerExecution": max(3_000 + step_ms, 0)}))
    [found] = batch.stages()
    assert (found.first_ms, found.won[0].finished_ms) == (TRIGGER_MS + 100, TRIGGER_MS + 2_000)
    assert found.completed_ms == TRIGGER_MS + 2_010
    assert (batch.begin_ms, batch.executed_ms) == (TRIGGER_MS, TRIGGER_MS + 2_500)
    # What lies behind the end of its last execution is lost with its duration.
    assert batch.end_ms == TRIGGER_MS + (3_000 if step_ms > 0 else 2_500)


def test_nested_executions_are_bounded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """User code may run thousands in one batch; with those that have ended go their stages and tasks."""
    monkeypatch.setattr(model_module, "ENDED_EXECUTIONS", 10)
    for _ in range(50):
        inner = Execution(run.ids, run.new_plan(), run.query.describe(), root=run.execution.id)
        of = stage(run.ids, 1, shuffles=True)
        run.apply(inner.start(), inner.job(of))
        run.apply(run.task(of).end(updates(inner.plan, {"MicroBatchScan": 1})), completed(of), inner.end())
    assert len(list(batch_of(run).stages())) == 10
    assert sum(run.counts()) == 50


def test_runs_batches_do_not_pile_up(run: Run) -> None:
    """Of a run that goes on for weeks the batch under way is held, and executions that have ended as long as ever."""
    for _ in range(2 * model_module.ENDED_EXECUTIONS):
        run.apply(run.task(run.map_stage(1)).end(run.read(1, 1)), run.execution.end(), run.query.progress())
        assert run.job.course.timeline.batch is None
        run.begin()
    assert len(run.model._executions) == model_module.ENDED_EXECUTIONS + 1
    assert len(run.model._stages) == model_module.ENDED_EXECUTIONS
