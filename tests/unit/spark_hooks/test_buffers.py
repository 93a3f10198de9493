"""What waits in shuffles, and how full memory is."""

from __future__ import annotations

import pytest

from spark_hooks import records
from tests.unit.spark_hooks.spark_events import READER, SOURCE, Run, accumulator, stage, updates
from tests.unit.spark_hooks.spark_shuffles import WRITTEN, Reused, Shuffled

IN_FLIGHT = 48 * 1024 * 1024

# ---- Queues


def test_a_block_waits_for_each_downstream_task_until_that_has_finished() -> None:
    """Those who are to read are the plan's partitions while none of them has ever run."""
    run = Shuffled()
    of = run.map_stage(2)
    first, second = (run.launch(of, partition) for partition in range(2))
    assert run.told(SOURCE, "outputQueueLength") == [0, 0]
    run.wrote(first, 100)
    assert run.told(SOURCE, "outputQueueLength") == [3, 0]
    run.wrote(second, 50)
    run.complete(of)
    assert run.told(SOURCE, "outputQueueLength") == [3, 3]
    readers = run.reduce_stage(3)
    tasks = [run.launch(readers, partition, 200) for partition in range(3)]
    for left, task in zip((2, 1, 0), tasks, strict=True):
        run.read(task)
        assert run.told(SOURCE, "outputQueueLength") == [left, left]


def test_a_block_waits_for_readers_that_are_not_shown_yet() -> None:
    """While adaptive execution may still change the plan only what runs is."""
    run = Shuffled(wrap=True)
    run.write_all(100)
    assert [each.name for each in run.job.graph.vertices.values()] == [SOURCE]
    assert run.told(SOURCE, "outputQueueLength") == [3]
    assert run.told(SOURCE, "outputQueueSize") == [100]


def test_bytes_wait_until_who_finished_has_read_them() -> None:
    """What a subtask has written, in proportion; downwards to whole bytes, so never more than there is."""
    run = Shuffled()
    run.write_all(100, 50)
    assert run.told(SOURCE, "outputQueueSize") == [100, 50]
    readers = run.reduce_stage(2)
    first, second = (run.launch(readers, partition, 200) for partition in range(2))
    run.read(first, local=30, remote=40)
    assert run.told(SOURCE, "outputQueueSize") == [53, 26]
    run.read(second, local=10)
    assert run.told(SOURCE, "outputQueueSize") == [0, 0]


def test_before_a_reader_waits_what_is_on_other_executors() -> None:
    """Of a task that may still be placed anywhere all is; what was read by who finished is gone."""
    run = Shuffled()
    run.write_all(100, 60, 40, executors="112")
    readers = run.reduce_stage(4)
    run.launch(readers, 0, 200, "1")
    run.launch(readers, 1, 200, "2")
    assert run.queued()["before"] == [[1, 2, 3, 3], [10, 40, 50, 50]]
    run.read(run.launch(readers, 2, 200, "2"), local=20, remote=60)
    assert run.queued()["before"] == [[1, 2, 0, 3], [8, 32, 0, 40]]


def test_with_one_executor_nothing_is_remote() -> None:
    """As in local mode: also of a task that was not placed yet."""
    run = Shuffled(executors=1)
    run.write_all(100, 60)
    run.launch(run.reduce_stage(2), 0, 200)
    assert run.queued() == {"behind": [[2, 2], [100, 60]], "before": [[0, 0], [0, 0]]}


def test_an_executor_that_comes_makes_what_waits_remote() -> None:
    """The readers may be placed there."""
    run = Shuffled(executors=1)
    run.write_all(100)
    run.launch(run.reduce_stage(2), 0, 200, "1")
    assert run.queued()["before"] == [[0, 0], [0, 0]]
    run.executor("2")
    assert run.queued()["before"] == [[0, 1], [0, 50]]
    run.apply(records.ExecutorRemoved("2", 9))
    assert run.queued()["before"] == [[0, 0], [0, 0]]


def test_readers_that_ran_before_wait_before_they_are_launched() -> None:
    """In the next batch there are as many as there were."""
    run = Shuffled()
    run.write_all(100)
    of = run.reduce_stage(2)
    for partition in range(2):
        run.read(run.launch(of, partition, 200))
    run.commit()
    run.begin()
    run.write_all(80)
    assert run.queued() == {"behind": [[2], [80]], "before": [[1, 1], [40, 40]]}


@pytest.mark.parametrize("how", ["committed", "executed", "stopped"])
def test_nothing_waits_once_the_batch_is_over(how: str) -> None:
    """Though nobody may have read it: adaptive execution found it to be of no use, or the query was stopped."""
    run = Shuffled()
    run.write_all(100)
    run.launch(run.reduce_stage(2), 0, 200)
    assert run.queued()["behind"] == [[2], [100]]
    run.apply(run.execution.end())
    if how == "committed":
        run.apply(run.query.progress())
    elif how == "stopped":
        run.apply(run.query.terminated())
    assert run.queued() == {"behind": [[0], [0]], "before": [[0, 0], [0, 0]]}


def test_nothing_waits_once_the_readers_stage_is_done() -> None:
    """Adaptive execution may have its tasks read less than was written."""
    run = Shuffled()
    run.write_all(100)
    of = run.reduce_stage(2)
    run.read(run.launch(of, 0, 200), local=10)
    run.complete(of, 300)
    assert run.queued() == {"behind": [[0], [0]], "before": [[0, 0], [0, 0]]}


def test_who_has_finished_waits_again_where_its_task_runs_again() -> None:
    """What it had written was lost; the block is there when it is written anew."""
    run = Shuffled()
    of = run.write_all(100, 100)
    run.launch(run.reduce_stage(2), 0, 200, "2")
    again = run.launch(of, 1, 300, stage_attempt=1)
    assert run.queued() == {"behind": [[2, 0], [100, 0]], "before": [[1, 1], [50, 50]]}
    run.wrote(again, 40)
    assert run.queued()["behind"] == [[2, 2], [100, 40]]


def test_a_stragglers_copy_takes_no_block_away() -> None:
    """It was launched before the straggler was done."""
    run = Shuffled()
    of = run.map_stage(1)
    straggler = run.launch(of, 0)
    run.launch(of, 0, 50, "2")
    run.wrote(straggler, 100)
    assert run.told(SOURCE, "outputQueueLength") == [3]


def test_of_several_readers_the_furthest_behind_tells() -> None:
    """A shuffle that two vertices read is written once, and there until both have it."""
    run = Reused()
    of = run.map_stage(1)
    told = updates(run.shared, {"MicroBatchScan": 1, "Filter": 1, WRITTEN: 100})
    run.apply(run.launch(of, 0).end(told))
    run.complete(of)
    assert (run.told(SOURCE, "outputQueueLength"), run.told(SOURCE, "outputQueueSize")) == ([3], [100])

    def read(name: str) -> list[tuple[list[int], list[int]]]:
        readers = run.named_stage(2, "Exchange", name, shuffles=True)
        tasks = [run.launch(readers, partition, 200) for partition in range(2)]
        seen = []
        for task in tasks:
            run.apply(
                task.end((*updates(run.shared, {"Exchange.local bytes read": 50}), accumulator(run.plan, name), 1))
            )
            seen.append((run.told(SOURCE, "outputQueueLength"), run.told(SOURCE, "outputQueueSize")))
        run.complete(readers, 300)
        return seen

    assert read("HashAggregate") == [([3], [100]), ([3], [100])]
    assert read("Generate") == [([1], [50]), ([0], [0])]


def test_sampling_writes_no_blocks() -> None:
    """A range partitioning reads its input first, in a job that has no shuffle of its own."""
    run = Shuffled()
    sampling = stage(run.ids, 2, scopes=("MicroBatchScan", "Filter", "Exchange"))
    run.stages(sampling)
    run.wrote(run.launch(sampling, 0), 0)
    writing = run.map_stage(2)
    run.wrote(run.launch(writing, 1, 200), 70)
    assert run.told(SOURCE, "outputQueueLength") == [0, 3]
    assert run.told(SOURCE, "outputQueueSize") == [0, 70]


def test_a_job_on_some_partitions_waits_for_those_that_were_launched() -> None:
    """As take() has it: two tasks, of partitions 1 and 2."""
    run = Shuffled()
    run.write_all(100)
    of = run.reduce_stage(2)
    first = run.launch(of, 1, 200, "2")
    run.launch(of, 2, 200, "2")
    assert run.queued() == {"behind": [[2], [100]], "before": [[0, 1, 1], [0, 50, 50]]}
    run.read(first, remote=60)
    assert run.queued() == {"behind": [[1], [40]], "before": [[0, 0, 1], [0, 0, 40]]}


def test_a_second_write_of_the_same_batch_waits_for_its_own_readers() -> None:
    """Those of the first one have finished before the second shuffle was begun."""
    run = Shuffled()
    run.write_all(100)
    of = run.reduce_stage(2)
    for partition in range(2):
        run.read(run.launch(of, partition, 200))
    run.complete(of, 300)
    assert run.queued()["behind"] == [[0], [0]]
    second = run.map_stage(1)
    run.wrote(run.launch(second, 0, 400), 60)
    assert run.queued() == {"behind": [[2], [60]], "before": [[1, 1], [30, 30]]}


def test_who_sends_nothing_on_and_who_reads_nothing_have_empty_queues() -> None:
    """As Flink's sinks and sources have them."""
    run = Shuffled()
    run.write_all(100)
    run.launch(run.reduce_stage(1), 0, 200)
    assert (run.told(READER, "outputQueueLength"), run.told(READER, "outputQueueSize")) == ([0], [0])
    assert (run.told(SOURCE, "inputQueueLength"), run.told(SOURCE, "inputQueueSize")) == ([0], [0])
    assert run.told(SOURCE, "inPoolUsage") == [0.0]


# ---- Memory


@pytest.mark.parametrize(
    ("memory_bytes", "peak", "usage"),
    [(1000, 250, [0.5]), (1000, 900, [1.0]), (1000, 0, [0.0]), (0, 900, [0.0]), (-1, 250, [])],
    ids=["half of its slot", "more than its slot", "none", "no pool", "unknown"],
)
def test_memory_is_that_of_a_slot(memory_bytes: int, peak: int, usage: list[float]) -> None:
    """An executor of two slots; what is not known is absent."""
    run = Shuffled(executors=0)
    run.executor("1", memory_bytes)
    run.wrote(run.launch(run.map_stage(1), 0), peak_bytes=peak)
    assert run.told(SOURCE, "outPoolUsage") == usage


def test_memory_is_that_of_the_latest_task() -> None:
    """Of a subtask that did not run again, or has not finished, it stays; between batches too."""
    run = Shuffled()
    of = run.map_stage(3)
    for partition in range(2):
        run.wrote(run.launch(of, partition), peak_bytes=100)
    run.launch(of, 2)
    assert run.told(SOURCE, "outPoolUsage") == [0.2, 0.2, None]
    run.commit()
    run.begin()
    run.wrote(run.launch(run.map_stage(1), 0), peak_bytes=400)
    assert run.told(SOURCE, "outPoolUsage") == [0.8, 0.2, None]


def test_memory_on_an_executor_that_is_gone_is_known_while_it_is_remembered() -> None:
    """Its slots and memory were told."""
    run = Shuffled()
    run.wrote(run.launch(run.map_stage(1), 0), peak_bytes=100)
    run.apply(records.ExecutorRemoved("1", 6))
    assert run.told(SOURCE, "outPoolUsage") == [0.2]


def test_input_memory_is_the_mean_of_a_minute() -> None:
    """Of twelve samples, one every 5 s, of those that there are; bytes over what is fetched at once, 1 at most."""
    run = Shuffled()
    of = run.reduce_stage(1)
    run.launch(of, 0, 200, "2")
    writing = run.map_stage(2)
    run.wrote(run.launch(writing, 0), IN_FLIGHT // 2)
    assert run.told(READER, "inPoolUsage") == [0.5]
    run.model.tick()
    run.wrote(run.launch(writing, 1), 3 * IN_FLIGHT)
    run.model.tick()
    assert run.told(READER, "inPoolUsage") == [0.75]
    run.apply(run.execution.end())
    for passed, left in ((10, 1.5), (1, 1.0), (1, 0.0)):
        for _ in range(passed):
            run.model.tick()
        assert run.told(READER, "inPoolUsage") == [left / 12]


@pytest.mark.parametrize(
    ("setting", "usage"), [("2", [0.25]), ("1m", [0.5]), ("*** (redacted)", [])], ids=["MiB", "suffix", "hidden"]
)
def test_what_is_fetched_at_once_is_sparks_setting(setting: str, usage: list[float]) -> None:
    """Without a unit it counts MiB; where it cannot be read nobody knows."""
    run = Shuffled()
    run.apply(records.Environment("", "", (), (), {"spark.reducer.maxSizeInFlight": setting}))
    run.launch(run.reduce_stage(1), 0, 200, "2")
    run.wrote(run.launch(run.map_stage(1), 0), 512 * 1024)
    assert run.told(READER, "inPoolUsage") == usage


# ---- What is spilled


def test_what_was_spilled_counts_once() -> None:
    """A failed attempt's does not; a success of a later stage attempt replaces the one before it."""
    run = Run()
    of = run.map_stage(2)
    run.apply(run.task(of).end(succeeded=False, spilled_bytes=7000))
    run.apply(run.task(of, attempt=1).end(run.read(1, 1), spilled_bytes=500))
    run.apply(run.task(of, attempt=2).end(run.read(1, 1), spilled_bytes=900))
    run.apply(run.task(of, 1).end(run.read(1, 1), spilled_bytes=30))
    assert run.counts(label="bytes_spilled") == [500, 30]
    run.apply(run.task(of, 1, stage_attempt=1).end(run.read(1, 1), spilled_bytes=80))
    assert run.counts(label="bytes_spilled") == [500, 80]


def test_what_was_spilled_adds_up_over_batches() -> None:
    """It is a counter of the run."""
    run = Run()
    for _ in range(2):
        run.apply(run.task(run.map_stage(1)).end(run.read(1, 1), spilled_bytes=500))
        run.begin()
    assert run.counts(label="bytes_spilled") == [1000]


# ---- What it costs


def test_what_has_not_moved_is_not_told_again() -> None:
    """A look at a batch in which nothing happened changes nothing, nor does one between batches."""
    run = Shuffled(executors=1)
    run.write_all(100)
    run.launch(run.reduce_stage(2), 0, 200)

    def revisions() -> list[int]:
        run.job.course.look()
        return [each.buffers.revision for each in run.job.graph.vertices.values()]

    moved = revisions()
    assert revisions() == moved
    run.model.tick()
    assert revisions() == moved
    run.apply(run.execution.end())
    settled = revisions()
    assert settled != moved
    assert revisions() == settled
    run.apply(run.query.progress())
    run.model.tick()
    assert revisions() == settled
