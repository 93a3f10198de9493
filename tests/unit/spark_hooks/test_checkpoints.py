"""Each rule by which micro-batches are checkpoints, on a run built by hand."""

from __future__ import annotations

import json

import pytest

from spark_hooks import records
from spark_hooks.checkpoints import APPLICATION_ENDED, HELD, STOPPED, Checkpoints
from spark_hooks.progress import Progress, read
from streamgauge import names, wire
from streamgauge.watermarks import NO_WATERMARK_MS
from tests.unit.spark_hooks.spark_events import Execution, Query, Run, new_model

TRIGGERED_MS = 1_795_255_201_000
"""Of every progress that Query tells."""


@pytest.fixture
def checkpoints() -> Checkpoints:
    return Checkpoints(1_000, from_start=True)


def progress(batch_id: int, **more: object) -> Progress:
    told = {"id": "q", "runId": "r", "batchId": batch_id, "timestamp": "2026-11-21T10:00:01.000Z"}
    return read(records.QueryProgress(json.dumps(told | more)))


def state(memory: int = 0, **custom: int) -> dict[str, object]:
    return {"memoryUsedBytes": memory, "customMetrics": custom}


def only(checkpoints: Checkpoints) -> wire.Checkpoint:
    [found] = checkpoints.told().changed
    return found


# ---- One micro-batch


def test_batch_is_in_progress_from_its_first_execution(checkpoints: Checkpoints) -> None:
    """Its trigger is the first sign of it until Spark tells better; nothing else is known of it."""
    checkpoints.begin(0, 5_000)
    checkpoints.begin(0, 6_000)
    assert only(checkpoints) == wire.Checkpoint(0, "IN_PROGRESS", 5_000)
    assert (checkpoints.in_progress, checkpoints.told().latest_completed) == (1, -1)


def test_completed_batch_is_what_its_progress_tells(checkpoints: Checkpoints) -> None:
    """From the trigger on, with Spark's phases, the memory of all state stores, and rows in and out."""
    checkpoints.begin(0, 5_000)
    phases = {"triggerExecution": 250, "addBatch": 200, "walCommit": 7}
    told = {"durationMs": phases, "numInputRows": 7, "sink": {"numOutputRows": 3}}
    checkpoints.complete(progress(0, **told, stateOperators=[state(100), state(23)]), 4_000)
    assert only(checkpoints) == wire.Checkpoint(0, "COMPLETED", 4_000, 4_250, 250, 123, -1, 7, 3, phases)
    assert checkpoints.in_progress == 0


def test_batch_without_state_has_none(checkpoints: Checkpoints) -> None:
    """Spark lists no stateful operators: that is told, not unknown."""
    checkpoints.complete(progress(0), 4_000)
    assert (only(checkpoints).state_bytes, only(checkpoints).checkpointed_bytes) == (0, 0)
    assert (only(checkpoints).duration_ms, only(checkpoints).output_rows) == (-1, -1)


@pytest.mark.parametrize(
    ("stores", "written"),
    [
        ([state(rocksdbBytesCopied=40, rocksdbChangeLogWriterCommitLatencyMs=0)], 40),
        ([state(rocksdbBytesCopied=40, rocksdbChangeLogWriterCommitLatencyMs=0)] * 2, 80),
        ([state(rocksdbBytesCopied=40, rocksdbChangeLogWriterCommitLatencyMs=9)], -1),
        ([state(rocksdbBytesCopied=40)], -1),
        ([state(stateOnCurrentVersionSizeBytes=40)], -1),
        ([state(rocksdbBytesCopied=40, rocksdbChangeLogWriterCommitLatencyMs=0), state()], -1),
    ],
    ids=["RocksDB", "two operators", "change log", "Spark 3.5", "files", "one of two"],
)
def test_written_bytes_are_told_where_all_stores_tell(
    checkpoints: Checkpoints, stores: list[dict[str, object]], written: int
) -> None:
    """With a change log RocksDB repeats an older snapshot's figures, and Spark 3.5 does not say if it wrote one."""
    checkpoints.complete(progress(0, stateOperators=stores), 4_000)
    assert only(checkpoints).checkpointed_bytes == written
    assert (checkpoints.told().checkpointed_bytes is None) == (written < 0)


def test_written_bytes_are_unknown_where_a_change_log_is_asked_for(checkpoints: Checkpoints) -> None:
    """It may take less than a millisecond, which no metric tells from none; without state nothing is written."""
    store = state(rocksdbBytesCopied=40, rocksdbChangeLogWriterCommitLatencyMs=0)
    checkpoints.complete(progress(0, stateOperators=[store]), 4_000, change_log=True)
    assert only(checkpoints).checkpointed_bytes == -1
    checkpoints.complete(progress(1), 5_000, change_log=True)
    assert checkpoints.told().changed[0].checkpointed_bytes == 0


def test_batch_that_the_end_of_the_run_broke_off_has_failed(checkpoints: Checkpoints) -> None:
    """With the reason, from its first sign to the end of the run; what had completed stays so."""
    checkpoints.complete(progress(0), 4_000)
    checkpoints.begin(1, 5_000)
    checkpoints.fail(5_700, "it broke")
    checkpoints.fail(9_000, "again")
    latest = checkpoints.told().changed[0]
    assert latest == wire.Checkpoint(1, "FAILED", 5_000, 5_700, 700, failure="it broke")
    assert (checkpoints.completed, checkpoints.failed, checkpoints.in_progress) == (1, 1, 0)
    assert (checkpoints.told().latest_completed, checkpoints.told().latest_failed) == (0, 1)


def test_batch_that_was_followed_by_another_has_completed(checkpoints: Checkpoints) -> None:
    """Its progress was lost; Spark begins no micro-batch before it has committed the last. Its figures are unknown."""
    checkpoints.begin(0, 5_000)
    checkpoints.begin(1, 6_000)
    assert [each.status for each in checkpoints.told().changed] == ["IN_PROGRESS", "COMPLETED"]
    assert checkpoints.told().changed[1] == wire.Checkpoint(0, "COMPLETED", 5_000)
    assert checkpoints.told().duration_ms is None
    assert checkpoints.metrics()[names.LAST_COMPLETED_CHECKPOINT_ID] == 0
    assert names.LAST_CHECKPOINT_SIZE not in checkpoints.metrics()


def test_batch_whose_execution_failed_before_another_came_has_failed(checkpoints: Checkpoints) -> None:
    """An error that the run survived: the micro-batch did not."""
    checkpoints.begin(0, 5_000)
    checkpoints.break_off(5_500, "caught")
    checkpoints.begin(1, 6_000)
    assert checkpoints.told().changed[1] == wire.Checkpoint(0, "FAILED", 5_000, 5_500, 500, failure="caught")


def test_late_execution_of_an_ended_batch_begins_nothing(checkpoints: Checkpoints) -> None:
    """A thread of the user's may go on after foreachBatch has returned; its tasks still are that batch's."""
    tasks = checkpoints.begin(3, 5_000)
    checkpoints.complete(progress(3), 5_000)
    assert checkpoints.begin(3, 9_000) is tasks
    assert checkpoints.begin(2, 9_000) is None
    assert (checkpoints.in_progress, only(checkpoints).status) == (0, "COMPLETED")


# ---- Which are held, and where the run went on


def test_latest_ten_are_held_and_the_latest_failed(checkpoints: Checkpoints) -> None:
    """Newest first; older ones are forgotten, though they count."""
    checkpoints.begin(0, 1)
    checkpoints.break_off(2, "caught")
    for batch in range(1, 15):
        checkpoints.begin(batch, batch)
        checkpoints.complete(progress(batch), batch)
    assert checkpoints.told().held == (*range(14, 14 - HELD, -1), 0)
    assert (checkpoints.completed, checkpoints.told().latest_failed) == (14, 0)


@pytest.mark.parametrize(
    ("from_start", "first", "restored"),
    [(True, 0, -1), (True, 5, 4), (False, 5, -1)],
    ids=["began anew", "went on", "seen too late"],
)
def test_run_went_on_from_the_batch_before_its_first(from_start: bool, first: int, restored: int) -> None:
    """A query that was restarted runs again what it had not committed; of one seen late the first is not known."""
    checkpoints = Checkpoints(1_000, from_start)
    checkpoints.begin(first, 5_000)
    checkpoints.complete(progress(first), 5_000)
    checkpoints.begin(first + 1, 6_000)
    told = checkpoints.told()
    assert (told.restored, told.restored_ms) == (restored, 1_000 if restored >= 0 else -1)


# ---- From Spark's events


def test_counts_of_metrics_and_checkpoints_agree(run: Run) -> None:
    """At every moment of a run that an exception ends."""
    moments: list[records.Record] = [run.execution.end(), run.query.progress(3), run.query.terminated(exception="boom")]
    for event in moments:
        run.apply(event)
        if isinstance(event, records.QueryProgress):
            run.begin()
        found, told = run.job.metrics(), run.job.checkpoints.told()
        running = sum(each.status == "IN_PROGRESS" for each in told.changed)
        assert found["numberOfCompletedCheckpoints"] == told.completed
        assert found["numberOfFailedCheckpoints"] == told.failed
        assert found["numberOfInProgressCheckpoints"] == running
        assert found["totalNumberOfCheckpoints"] == told.completed + told.failed + running
    assert (told.completed, told.failed) == (1, 1)
    assert told.changed[0].failure == "boom"


@pytest.mark.parametrize("trigger", ["ProcessingTimeTrigger(0)", "AvailableNowTrigger"])
def test_stop_within_a_batch_says_so(run: Run, trigger: str) -> None:
    """Spark tells no reason then: the words are ours."""
    run.job.trigger = trigger
    run.apply(run.execution.end(5_500_000, error="java.lang.InterruptedException"), run.query.terminated(5_600_000))
    [failed] = run.job.checkpoints.told().changed
    assert (failed.status, failed.end_ms, failed.failure) == ("FAILED", 5_600_000, STOPPED)


def test_end_of_the_application_breaks_off_too(run: Run) -> None:
    """In other words, for nobody stopped the query."""
    run.apply(records.ApplicationEnd(8_000_000))
    assert run.job.checkpoints.told().changed[0].failure == APPLICATION_ENDED


def test_stop_between_batches_fails_none(run: Run) -> None:
    """What had been committed is done."""
    run.apply(run.execution.end(), run.query.progress(), run.query.terminated())
    assert (run.job.checkpoints.completed, run.job.checkpoints.failed) == (1, 0)


def test_execution_after_the_end_begins_no_batch(run: Run) -> None:
    """A thread that user code has left behind must not make an ended run look busy."""
    run.apply(run.query.terminated())
    run.begin()
    told = run.job.checkpoints.told()
    assert (told.held, run.job.metrics()["numberOfInProgressCheckpoints"]) == ((0,), 0)


def test_execution_before_any_batch_is_none(run: Run) -> None:
    """A source that is made ready may run SQL: its description says 'init' in the batch's place."""
    model, query = new_model(), Query(1)
    execution = Execution(run.ids, run.new_plan(), query.describe().replace("batch = -1", "batch = init"))
    model.apply([query.started(), execution.start()])
    assert model.faults == []
    job = model.jobs[query.jid]
    assert (job.state, job.checkpoints.told().held) == ("RUNNING", ())


def test_run_that_was_seen_late_tells_no_restored_batch() -> None:
    """The hooks came when it had ended a micro-batch already."""
    model, query = new_model(), Query(1, ended_before=6)
    query.batch = 7
    model.apply([query.started(), query.progress()])
    assert model.jobs[query.jid].checkpoints.told().restored == -1


def test_path_of_the_checkpoints_is_kept() -> None:
    """As the query tells it; '' where it was out of reach."""
    model, query, other = new_model(), Query(1), Query(2)
    other.checkpoint = None  # type: ignore[assignment]
    model.apply([query.started(), other.started()])
    assert [job.checkpoint_path for job in model.jobs.values()] == ["file:/data/departures", ""]


# ---- The watermark


@pytest.mark.parametrize(
    ("told", "watermark_ms"),
    [
        ({}, NO_WATERMARK_MS),
        ({"watermark": "1970-01-01T00:00:00.000Z"}, NO_WATERMARK_MS),
        ({"watermark": "2026-11-21T10:00:59.250Z"}, 1_795_255_259_250),
    ],
    ids=["without", "not yet", "known"],
)
def test_watermark_is_sparks(told: dict[str, str], watermark_ms: int) -> None:
    """Spark's is the epoch before there is one; Flink has its own word for none."""
    model, query = new_model(), Query(1)
    model.apply([query.started(), query.progress(eventTime=told)])
    assert model.faults == []
    assert model.jobs[query.jid].course.watermark_ms == watermark_ms


def test_watermark_stays_where_a_batch_tells_none() -> None:
    """Stateless batches of a query may leave it out."""
    model, query = new_model(), Query(1)
    model.apply([query.started(), query.progress(eventTime={"watermark": "2026-11-21T10:00:59.250Z"})])
    model.apply([query.progress()])
    assert model.jobs[query.jid].course.watermark_ms == 1_795_255_259_250
