"""Each rule by which jobs begin, end, get their names and are forgotten, on events built by hand."""

from __future__ import annotations

import hashlib

import pytest

from spark_hooks import execution, records
from spark_hooks.execution import Model
from streamgauge import wire
from tests.unit.spark_hooks.spark_events import (
    APP,
    Execution,
    Ids,
    Query,
    Run,
    Task,
    completed,
    new_model,
    query_id,
    scan,
    shown,
    sink,
    stage,
    submitted,
    updates,
)

# ---- States


def start(model: Model, query: Query, **more: str | None) -> None:
    model.apply([query.started(**more)])
    assert model.faults == []


def test_query_is_created_until_it_is_seen_to_run() -> None:
    """A query whose first run this is has nothing to restart from; one that waits for rows runs."""
    model = new_model()
    start(model, Query(1))
    job = model.jobs[Query(1).jid]
    assert (job.state, job.end_ms) == ("CREATED", -1)
    model.apply([records.QueryIdle(query_id(1), Query(1).run_id, 1_795_255_210_000)])
    assert (job.state, job.since_ms["RUNNING"]) == ("RUNNING", 1_795_255_210_000)
    assert job.attempt == wire.Attempt(1_795_255_200_000, Query(1).run_id)


def test_query_that_told_no_start_is_as_old_as_its_application() -> None:
    """One that ran before the recorder came and has no progress yet: its attempt must not be the oldest of all."""
    model = new_model()
    start(model, Query(1), timestamp=None)
    assert model.jobs[Query(1).jid].attempt.start_ms == APP.start_ms


def test_started_query_is_told_once() -> None:
    """Attaching may tell a query that tells its start itself."""
    run = Run()
    job = run.job
    run.apply(run.query.started())
    assert run.job is job


@pytest.mark.parametrize("told", [False, True], ids=["before its end was told", "after its end was told"])
def test_second_run_is_restarting_until_its_first_batch(told: bool) -> None:
    """The same id with another run id; also when the collector knows the first run's end, and it is forgotten."""
    run = Run()
    run.apply(run.execution.end(), run.query.terminated(exception="boom"))
    if told:
        run.model.forget(run.query.jid, run.job.attempt)
        assert not run.model.jobs
    run.query = Query(1, run=1)
    run.apply(run.query.started(timestamp="2026-11-21T10:30:00.000Z"))
    assert run.job.state == "RESTARTING"
    run.begin()
    assert run.job.state == "RUNNING"
    assert run.job.since_ms["RUNNING"] == 5_000_000


def test_second_run_begins_at_zero(run: Run) -> None:
    """A run counts for itself; events of the run before do not reach it."""
    of = run.map_stage()
    late = run.task(of, 1)
    told = run.read(5, 5)
    run.apply(run.task(of).end(told), run.query.terminated())
    old = run.query
    run.query = Query(1, run=1)
    run.apply(run.query.started())
    run.apply(late.end(told), old.progress(5), old.terminated(exception="late"))
    assert run.job.state == "RESTARTING"
    assert not run.job.graph.vertices
    assert "numInputRows" in run.job.metrics()
    assert run.job.metrics()["numInputRows"] == 0


def test_runs_that_were_replaced_are_not_held() -> None:
    """A query that restarts for ever, while no collector takes its ends, holds one run."""
    model = new_model()
    for number in range(50):
        query = Query(1, run=number)
        model.apply([query.started(), query.terminated()])
    assert len(model._runs) == len(model.jobs) == 1


@pytest.mark.parametrize("trigger", ["AvailableNowTrigger", "OneTimeTrigger", "AvailableNowTrigger$"])
def test_query_that_ends_by_itself_is_finished(trigger: str) -> None:
    """Its trigger says that it ends when it has read everything."""
    model = new_model()
    query = Query(1, trigger=trigger)
    model.apply([query.started(), query.terminated(7_000_000)])
    job = model.jobs[query.jid]
    assert (job.state, job.end_ms, job.since_ms["FINISHED"]) == ("FINISHED", 7_000_000, 7_000_000)


@pytest.mark.parametrize("trigger", ["AvailableNowTrigger", "OneTimeTrigger"])
def test_query_that_is_stopped_within_a_batch_is_canceled(run: Run, trigger: str) -> None:
    """Whatever its trigger: the batch's execution ends with an error then, and the run without one."""
    run.job.trigger = trigger
    run.apply(run.execution.end(error="java.lang.InterruptedException"), run.query.terminated())
    assert run.job.state == "CANCELED"


def test_batch_that_was_run_to_its_end_makes_good_the_one_before(run: Run) -> None:
    """An error that the run survived does not say that it was stopped."""
    run.job.trigger = "AvailableNowTrigger"
    run.apply(run.execution.end(error="caught"))
    run.begin()
    run.apply(run.execution.end(), run.query.progress(), run.query.terminated())
    assert run.job.state == "FINISHED"


def test_query_that_is_stopped_is_canceled() -> None:
    """An end without an exception under any other trigger is a stop."""
    model = new_model()
    model.apply([Query(1).started(), Query(1).terminated()])
    assert model.jobs[Query(1).jid].state == "CANCELED"


def test_query_that_an_exception_ended_has_failed(run: Run) -> None:
    """The exception's text is kept, and the batch under way counts as failed; nothing changes it afterwards."""
    run.apply(run.query.terminated(7_000_000, "it broke"), run.query.terminated(8_000_000))
    assert (run.job.state, run.job.failure, run.job.end_ms) == ("FAILED", "it broke", 7_000_000)
    assert run.job.metrics()["numberOfFailedCheckpoints"] == 1
    run.apply(records.ApplicationEnd(9_000_000))
    assert (run.job.state, run.job.end_ms) == ("FAILED", 7_000_000)


@pytest.mark.parametrize("trigger", ["ProcessingTimeTrigger(0)", "AvailableNowTrigger"])
def test_end_of_the_application_cancels_what_runs(trigger: str) -> None:
    """What had not ended by then was cut off, whatever its trigger; a batch too."""
    model, ids = new_model(), Ids()
    batch = Execution(ids, ids.node("Filter", scan(ids)), "show at app.py:3")
    query = Query(1, trigger=trigger)
    model.apply([query.started(), batch.start(), batch.job(stage(ids, 1)), records.ApplicationEnd(8_000_000)])
    assert [(job.state, job.end_ms) for job in model.jobs.values()] == [("CANCELED", 8_000_000)] * 2


# ---- Names and batch executions


def test_job_is_called_by_its_querys_name(run: Run) -> None:
    """The name that the user gave."""
    assert run.job.name == "departures"


def test_job_without_a_name_is_called_by_application_source_and_sink() -> None:
    """Stable over restarts: '<app>: <source> -> <sink>'; before any plan is known, the application's name."""
    model, ids = new_model(), Ids()
    query = Query(1, name=None)
    start(model, query)
    job = model.jobs[query.jid]
    assert job.name == "flights"
    query.batch = 0
    model.apply([Execution(ids, sink(ids, ids.node("Filter", scan(ids))), query.describe()).start()])
    assert job.name == "flights: RateStream -> Noop"


def test_batch_execution_is_a_job_once_it_runs_a_spark_job() -> None:
    """Its id is the MD5 of application and root execution, its name the first line of its description."""
    model, ids = new_model(), Ids()
    plan = ids.node("Filter", scan(ids))
    batch = Execution(ids, plan, "count at app.py:7\nmore of it")
    model.apply([batch.start(4_000_000)])
    assert not model.jobs
    of = stage(ids, 2)
    task = Task(ids, of, 1)
    model.apply([batch.job(of), submitted(of), task.start(), task.end(updates(plan, {"MicroBatchScan": 5}))])
    [job] = model.jobs.values()
    assert job.jid == hashlib.md5(b"app-7:0").hexdigest()
    assert (job.kind, job.name, job.state) == ("BATCH", "count at app.py:7", "RUNNING")
    assert job.attempt == wire.Attempt(4_000_000, str(batch.id))
    assert job.metrics() == {}
    assert shown(job)["Source: RateStream -> Filter", 1, "records_in"] == 5
    model.apply([batch.end(7_000_000)])
    assert (job.state, job.end_ms) == ("FINISHED", 7_000_000)


def test_batch_execution_that_fails_says_why() -> None:
    """Spark tells the error with the execution's end."""
    model, ids = new_model(), Ids()
    batch = Execution(ids, ids.node("Filter", scan(ids)), "count at app.py:7")
    model.apply([batch.start(), batch.job(stage(ids, 1)), batch.end(7_000_000, "it broke")])
    [job] = model.jobs.values()
    assert (job.state, job.failure) == ("FAILED", "it broke")


def test_inner_executions_of_a_batch_are_one_job() -> None:
    """Executions are grouped by their root; the first Spark job of any makes the job."""
    model, ids = new_model(), Ids()
    root = Execution(ids, ids.node("Execute CreateTable", rows=False), "save at app.py:9")
    first = Execution(ids, ids.node("Filter", scan(ids)), "save at app.py:9", root=root.id)
    second = Execution(ids, ids.node("Project", scan(ids), rows=False), "save at app.py:9", root=root.id)
    model.apply([root.start(), first.start(), first.job(stage(ids, 1)), second.start(), second.job(stage(ids, 1))])
    model.apply([first.end(), second.end()])
    [job] = model.jobs.values()
    assert job.state == "RUNNING"
    model.apply([root.end()])
    assert job.state == "FINISHED"


def test_ended_batches_are_held_to_a_number() -> None:
    """With no collector to tell, the oldest ended jobs are forgotten; one that runs never is."""
    model, ids = new_model(), Ids()
    start(model, Query(1))
    for _ in range(execution.ENDED_JOBS + 20):
        batch = Execution(ids, ids.node("Filter", scan(ids)), "count")
        model.apply([batch.start(), batch.job(stage(ids, 1)), batch.end()])
    assert Query(1).jid in model.jobs
    assert len(model.jobs) <= execution.ENDED_JOBS + 2


# ---- The edge


def test_event_that_cannot_be_applied_does_not_stop_the_others() -> None:
    """It is noted in `faults` by its kind, and what follows is applied."""
    model = new_model()
    model.apply([records.QueryProgress("no json"), records.Fault("recorder: out of luck"), Query(1).started()])
    assert Query(1).jid in model.jobs
    first, second = model.faults
    assert first.startswith("QueryProgress: ")
    assert second == "recorder: out of luck"


def test_events_of_what_began_before_the_recorder_are_ignored() -> None:
    """Attached in the middle of a batch: its executions, stages and tasks are not known, and harm nothing."""
    model, ids = new_model(), Ids()
    of = stage(ids, 1)
    task = Task(ids, of, 0)
    gone = Execution(ids, scan(ids), "")
    model.apply([gone.job(of), gone.replan(scan(ids)), gone.driver({"MicroBatchScan": 1}), submitted(of)])
    model.apply([task.start(), task.live((1, 2)), task.end((1, 2)), completed(of), gone.end(), Query(1).progress()])
    assert model.faults == []
    assert not model.jobs


def test_stages_of_a_job_outside_sql_are_ignored(run: Run) -> None:
    """A job without an execution, of plain RDDs, has no plan."""
    of = stage(run.ids, 1)
    run.apply(records.JobStart(99, 0, -1, None, None, -1, (of,)), run.task(of).end())
    assert shown(run.job) == {}


def test_stage_that_a_later_job_lists_again_is_the_same(run: Run) -> None:
    """A shuffle that is there already is listed, and skipped, by every later job."""
    of = run.map_stage()
    run.apply(run.task(of).end(run.read(5, 5)))
    run.apply(run.execution.job(of), run.task(of, attempt=1).end(run.read(5, 5)))
    assert run.counts() == [5, 0]


# ---- Memory


def held(model: Model) -> int:
    return sum(map(len, (model._executions, model._stages, model._shuffles, model._runs)))


def test_five_thousand_batches_leave_no_more_than_a_few_hundred() -> None:
    """Executions, stages and accumulators of batches long gone are forgotten."""
    run = Run()
    most = 0
    for batch in range(5_000):
        of = run.map_stage()
        run.apply(run.task(of).end(run.read(1, 1)), run.execution.end(), run.query.progress(1))
        run.begin()
        if batch == 1_000:
            most = held(run.model)
    assert held(run.model) <= most
    assert len(run.model._executions) <= execution.ENDED_EXECUTIONS + 1
    assert len(run.model._stages) <= execution.ENDED_EXECUTIONS + 1
    assert run.counts() == [5_000, 0]
    assert not run.job.graph.vertices[next(iter(run.job.graph.vertices))].counters._live


def test_executions_whose_end_was_dropped_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder drops records where its room runs out; an end that never comes must not be waited for."""
    monkeypatch.setattr(execution, "RUNNING_EXECUTIONS", 8)
    run = Run()
    for _ in range(100):
        run.map_stage()
        run.begin()
    assert len(run.model._executions) <= 8
    assert len(run.model._stages) <= 8


def test_adaptive_plans_of_an_execution_leave_with_it() -> None:
    """Every plan that an execution had, not only its last one."""
    run = Run(wrap=True)
    for _ in range(execution.ENDED_EXECUTIONS * 2):
        for _ in range(3):
            run.apply(run.execution.replan(run.new_plan(wrap=True)))
        run.apply(run.execution.end())
        run.begin(wrap=True)
    plans = sum(1 + len(each.replaced) for each in run.model._executions.values())
    assert plans <= 4 * (execution.ENDED_EXECUTIONS + 1)
