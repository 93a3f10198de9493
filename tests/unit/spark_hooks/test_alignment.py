"""How long vertices wait for their turn, and for the last part of their input."""

from __future__ import annotations

import pytest

from spark_hooks import records
from streamgauge import names
from tests.unit.spark_hooks.spark_events import READER, SOURCE, empty
from tests.unit.spark_hooks.spark_shuffles import BEGIN_MS, Joined, Shuffled

JOIN = "SortMergeJoin -> Sink: Noop"
LEFT, RIGHT = "Source: RateStream -> Filter", "Source: RateStream -> Generate"


def ms(found: list[int | None]) -> list[float | None]:
    """Nanoseconds in milliseconds."""
    return [None if each is None else each / 1_000_000 for each in found]


def aligned(run: Shuffled, vertex: str = READER) -> list[float | None]:
    return ms(run.told(vertex, names.CHECKPOINT_ALIGNMENT_TIME))


def delayed(run: Shuffled, vertex: str = READER) -> list[float | None]:
    return ms(run.told(vertex, names.CHECKPOINT_START_DELAY))


def ran_before() -> Shuffled:
    """A query in its second batch, whose reader has had two subtasks."""
    run = Shuffled()
    run.write_all(100)
    of = run.reduce_stage(2)
    for partition in range(2):
        run.read(run.launch(of, partition, 200))
    run.commit()
    run.begin()
    return run


def test_alignment_lasts_from_the_first_finish_to_the_last() -> None:
    """And grows meanwhile; before the first it is 0, after the last it stays, whatever else goes on."""
    run = ran_before()
    of = run.map_stage(3)
    tasks = [run.launch(of, partition, 300) for partition in range(3)]
    run.now(350)
    assert aligned(run) == [0, 0]
    run.wrote(tasks[0], took_ms=100)
    for now_ms, expected in ((400, 0), (460, 60), (700, 300)):
        run.now(now_ms)
        assert aligned(run) == [expected, expected]
    run.wrote(tasks[2], took_ms=450)
    run.now(800)
    assert aligned(run) == [400, 400]
    run.wrote(tasks[1], took_ms=610)
    run.now(5000)
    assert aligned(run) == [510, 510]
    run.launch(run.reduce_stage(2), 0, 930)
    run.now(9000)
    assert aligned(run) == [510, 510]
    run.commit()
    assert aligned(run) == [510, 510]


def test_alignment_waits_for_tasks_that_were_not_launched_yet() -> None:
    """None of them runs: another stage has the slots."""
    run = ran_before()
    of = run.map_stage(2)
    run.wrote(run.launch(of, 0, 300), took_ms=100)
    run.now(700)
    assert aligned(run) == [300, 300]


def test_alignment_does_not_wait_for_a_copy_that_lost() -> None:
    """It runs on for a while; its partition was won."""
    run = ran_before()
    of = run.map_stage(1)
    straggler = run.launch(of, 0, 300)
    run.launch(of, 0, 350, "2")
    run.wrote(straggler, took_ms=100)
    run.complete(of, 400)
    run.now(3000)
    assert aligned(run) == [0, 0]


def test_alignment_of_a_single_upstream_task_is_nothing() -> None:
    """Its first finish is its last."""
    run = Shuffled()
    run.write_all(100)
    run.launch(run.reduce_stage(1), 0, 200)
    run.now(9000)
    assert aligned(run) == [0]


def test_alignment_is_over_all_shuffles_that_are_read() -> None:
    """From the first finish on one side of a join to the last on the other; both are known from the first task on."""
    run = Joined()
    stages = [run.named_stage(1, "MicroBatchScan", name, "Exchange", shuffles=True) for name in ("Filter", "Generate")]
    run.side(stages[0], run.left, run.launch(stages[0], 0, 100), 50)
    run.side(stages[1], run.right, run.launch(stages[1], 0, 300), 400)
    run.launch(run.named_stage(1, "Exchange", "SortMergeJoin", "WriteToDataSourceV2"), 0, 800)
    assert aligned(run, JOIN) == [550]
    assert aligned(run, LEFT) == aligned(run, RIGHT) == []


@pytest.mark.parametrize("there", [True, False], ids=["to come", "empty"])
def test_alignment_waits_for_a_side_that_is_to_come(there: bool) -> None:
    """A task of it was not launched yet; a side without rows never comes, and is not waited for."""
    run = Joined()
    readers = run.named_stage(1, "Exchange", "SortMergeJoin", "WriteToDataSourceV2")
    run.launch(readers, 0, 0)
    run.commit()
    run.begin()
    if not there:
        ids = run.ids
        run.right = ids.shuffle(empty(ids))
        plan = run.plan.children[0]
        run.apply(
            run.execution.replan(
                records.PlanNode(
                    run.plan.name,
                    run.plan.description,
                    run.plan.metrics,
                    (records.PlanNode(plan.name, plan.description, plan.metrics, (run.left, run.right)),),
                )
            )
        )
    of = run.named_stage(1, "MicroBatchScan", "Filter", "Exchange", shuffles=True)
    run.side(of, run.left, run.launch(of, 0, 100), 50)
    run.complete(of, 150)
    run.now(500)
    assert aligned(run, JOIN) == [350 if there else 0]


def test_alignment_grows_again_while_lost_output_is_written_anew() -> None:
    """A higher attempt of the stage; then it is the last finish."""
    run = ran_before()
    of = run.map_stage(2)
    for partition, took_ms in ((0, 100), (1, 200)):
        run.wrote(run.launch(of, partition, 300), took_ms=took_ms)
    run.complete(of, 500)
    run.launch(run.reduce_stage(2), 0, 510)
    again = run.launch(of, 1, 600, stage_attempt=1)
    run.now(800)
    assert aligned(run) == [400, 400]
    run.wrote(again, took_ms=300)
    run.now(2000)
    assert aligned(run) == [500, 500]


def test_alignment_ends_with_the_batch() -> None:
    """A task that never finished was waited for until then."""
    run = ran_before()
    of = run.map_stage(2)
    run.wrote(run.launch(of, 0, 300), took_ms=100)
    run.launch(of, 1, 300)
    run.now(600)
    assert aligned(run) == [200, 200]
    run.apply(run.execution.end(BEGIN_MS + 850, error="stopped"))
    run.now(900)
    assert aligned(run) == [450, 450]
    run.apply(run.query.terminated(BEGIN_MS + 990))
    assert aligned(run) == [450, 450]


def test_alignment_is_that_of_the_latest_batch_in_which_there_was_one() -> None:
    """A batch without rows tells nothing, and subtasks that it has no longer keep theirs."""
    run = ran_before()
    of = run.map_stage(2)
    for partition, took_ms in ((0, 100), (1, 170)):
        run.wrote(run.launch(of, partition), took_ms=took_ms)
    run.read(run.launch(run.reduce_stage(1), 0, 200))
    assert aligned(run) == [70, 0]
    run.commit()
    run.begin()
    run.now(9000)
    assert aligned(run) == [70, 0]
    run.launch(run.map_stage(2), 0, 9000)
    assert aligned(run) == [0, 0]


def test_a_clock_that_is_set_back_changes_no_duration() -> None:
    """Times are steady: an upstream task ends an hour before it began, by the driver's wall clock."""
    run = ran_before()
    of = run.map_stage(2)
    first, second = (run.launch(of, partition, 300) for partition in range(2))
    run.now(350)
    run.wrote(first, took_ms=100)
    hour_ms = 3_600_000
    run.model.time.look(BEGIN_MS + 500 - hour_ms, (BEGIN_MS + 500) * 1_000_000)
    assert aligned(run) == [100, 100]
    run.model.time.look(BEGIN_MS + 700 - hour_ms, (BEGIN_MS + 700) * 1_000_000)
    run.wrote(second, took_ms=350 - hour_ms)
    assert aligned(run) == [250, 250]


def test_start_delay_is_from_the_batchs_begin_to_the_first_launch() -> None:
    """Of every vertex, sources too; known as soon as a task is launched."""
    run = Shuffled()
    of = run.map_stage(2)
    tasks = [run.launch(of, partition, at_ms) for partition, at_ms in ((0, 40), (1, 90))]
    assert delayed(run, SOURCE) == [40, 40]
    for task in tasks:
        run.wrote(task)
    run.launch(run.reduce_stage(1), 0, 230)
    assert delayed(run) == [230]
    assert aligned(run, SOURCE) == []


def test_start_delay_counts_from_the_trigger_once_that_is_known() -> None:
    """Progress tells it: the first execution began 20 ms after it."""
    run = Shuffled()
    run.wrote(run.launch(run.map_stage(1), 0, 40))
    assert delayed(run, SOURCE) == [40]
    run.apply(run.execution.end(), run.query.progress(timestamp="1970-01-01T01:23:19.980Z"))
    assert delayed(run, SOURCE) == [60]


def test_start_delay_stays_while_its_vertex_does_not_run() -> None:
    """And is that of the latest batch that ran it."""
    run = Shuffled()
    run.launch(run.map_stage(1), 0, 40)
    run.commit()
    run.begin()
    assert delayed(run, SOURCE) == [40]
    run.launch(run.map_stage(1), 0, 70)
    assert delayed(run, SOURCE) == [70]
