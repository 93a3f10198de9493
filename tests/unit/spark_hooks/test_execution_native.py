"""Native SQL metrics and observed ones through the model: attempts, plans, the driver's share."""

from __future__ import annotations

from spark_hooks import records
from tests.unit.spark_hooks.spark_events import (
    SOURCE,
    Execution,
    Run,
    empty,
    new_model,
    scan,
    sink,
    stage,
    submitted,
    updates,
)

ROWS = "number of output rows"
WRITTEN = "shuffle records written"


def native(run: Run, vertex: str = SOURCE) -> dict[str, tuple[list[int], int]]:
    """'<operator>.<metric>' of a vertex → value of each subtask, and the driver's; zeros left out."""
    [found] = [each for each in run.job.graph.vertices.values() if each.name == vertex]
    names = {operator.id: operator.name for operator in found.operators} | {"": "Exchange"}
    told = {
        f"{names[each.operator]}.{each.column.metric}": (each.column.values().tolist(), each.driver)
        for each in found.accumulators.columns(found.size)
    }
    return {name: each for name, each in told.items() if any(each[0]) or each[1]}


def read(*rows: int) -> dict[str, tuple[list[int], int]]:
    """What `native` tells where subtasks read so many rows and kept and wrote them all."""
    return {
        f"{name}": (list(rows), 0) for name in (f"Source: RateStream.{ROWS}", f"Filter.{ROWS}", f"Exchange.{WRITTEN}")
    }


def test_batches_add_up_by_subtask() -> None:
    """Each batch has accumulators of its own; a batch with an empty source adds nothing and renames nothing."""
    run = Run()
    for following in (empty(run.ids), None, None):
        written = run.map_stage()
        full = "MicroBatchScan" in str(run.plan)
        for partition, rows in enumerate((3, 4)):
            run.apply(run.task(written, partition).end(run.read(rows, rows) if full else ()))
        run.apply(run.execution.end())
        run.begin(source=following)
    assert native(run) == read(6, 8)


def test_a_failed_attempt_adds_nothing_and_a_later_success_replaces_the_first() -> None:
    """Of a stage that ran again, the higher attempt's; of two successes of one attempt, the first."""
    run = Run()
    written = run.map_stage(tasks=1)
    run.apply(run.task(written).end(run.read(9, 9), succeeded=False))
    run.apply(run.task(written, attempt=1).end(run.read(5, 5)))
    run.apply(run.task(written, attempt=2).end(run.read(7, 7)))
    assert native(run) == read(5)
    run.apply(run.task(written, stage_attempt=1).end(run.read(6, 6)))
    assert native(run) == read(6)


def test_updates_that_come_before_the_plan_that_names_them_are_counted_with_it() -> None:
    """Adaptive execution tells some plans late."""
    run = Run(wrap=True)
    anew = run.new_plan(wrap=True)
    written = run.map_stage(tasks=1)
    told = updates(anew, {"MicroBatchScan": 5, "Filter": 5, f"Exchange.{WRITTEN}": 5})
    run.apply(run.task(written).end(told))
    run.apply(run.execution.replan(anew))
    assert native(run) == read(5)


def test_what_the_driver_set_is_told_once_an_execution_has_ended() -> None:
    """It is of the vertex, and of no subtask; a batch adds to the one before."""
    run = Run()
    for _ in range(2):
        written = run.map_stage(tasks=1)
        run.apply(run.task(written).end(run.read(5, 5)))
        run.apply(run.execution.driver({f"Exchange.{WRITTEN}": 2}), run.execution.end(), run.execution.end())
        run.begin()
    assert native(run) == read(10) | {f"Exchange.{WRITTEN}": ([10], 4)}


def test_a_batch_tells_what_it_observed_and_user_code_in_a_query_does_not() -> None:
    """Of a query its progress tells, the latest; an empty batch observes nothing."""
    run = Run()
    told = records.Observed(run.execution.id, ("seen", '{"rows": 9}'))
    run.apply(told, run.query.progress(observedMetrics={"seen": {"rows": 3, "mean": 0.5}}))
    assert run.job.observed == {"seen.rows": 3, "seen.mean": 0.5}
    run.apply(run.query.progress(observedMetrics={}))
    assert run.job.observed == {"seen.rows": 3, "seen.mean": 0.5}

    model = new_model()
    execution = Execution(run.ids, sink(run.ids, scan(run.ids)), "batch")
    model.apply([execution.start(), execution.job(stage(run.ids, 1)), records.Observed(execution.id, told.rows)])
    assert [job.observed for job in model.jobs.values()] == [{"seen.rows": 9}]
    model.apply([records.Observed(99, told.rows), submitted(stage(run.ids, 1))])
    assert model.faults == []
