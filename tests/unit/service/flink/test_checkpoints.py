"""Micro-batches as Flink's checkpoints, and their tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collector.store import CheckpointHistory, JobState
from service.errors import HANDLER, NOT_FOUND, Missing
from service.flink import checkpoint_tasks, checkpoints
from service.flink.query import Query
from streamgauge import wire
from streamgauge.errors import UnknownJob, UnresolvableParameter

JID, VERTEX, OTHER = "d" * 32, "c" * 32, "b" * 32
PATH = "file:/data/state"
TEMPORARY = "file:/tmp/temporary-4f9d9e9a-93a5-4cb3-9a1f-5d5f5c3c2b1a"
NOTHING = {"min": 0, "max": 0, "avg": 0, "p50": "NaN", "p90": "NaN", "p95": "NaN", "p99": "NaN", "p999": "NaN"}


def tasks(vertex: str, *rows: tuple[int, int, int, int]) -> wire.CheckpointTasks:
    """Each row a subtask: start, end, state bytes, commit ms."""
    columns = np.array(rows, dtype="<i8").reshape(-1, 4).T
    return wire.CheckpointTasks(vertex, *(column.tobytes() for column in columns))


def completed(checkpoint_id: int, *told: wire.CheckpointTasks, **changes: Any) -> wire.Checkpoint:
    given: dict[str, Any] = {"end_ms": 6_000, "duration_ms": 1_000, "state_bytes": 90} | changes
    return wire.Checkpoint(checkpoint_id, "COMPLETED", 5_000, tasks=told, **given)


def history(*held: wire.Checkpoint, **totals: Any) -> CheckpointHistory:
    """Newest first."""
    return CheckpointHistory(
        wire.Checkpoints(held=tuple(each.id for each in held), **totals), {each.id: each for each in held}
    )


def ask(states: Any, job: JobState, *apps: Any, **path: str) -> Query:
    return Query.parse(states.snapshot(job, *apps), 9_000, {"jobid": JID, **path}, b"")


def overview(states: Any, job: JobState, *apps: Any) -> Any:
    return checkpoints.overview(ask(states, job, *apps))


def detail(states: Any, job: JobState, checkpoint_id: int) -> Any:
    return checkpoints.detail(ask(states, job, checkpointid=str(checkpoint_id)))


def of_vertex(states: Any, job: JobState, checkpoint_id: int, vertex: str = VERTEX) -> Any:
    return checkpoint_tasks.detail(ask(states, job, checkpointid=str(checkpoint_id), vertexid=vertex))


# ---- The list


def test_query_without_a_batch_has_nothing(states: Any) -> None:
    """Counts of 0, no latest, and Flink's way to tell figures of nothing."""
    body = overview(states, states.job())
    assert body["counts"] == dict.fromkeys(("restored", "total", "in_progress", "completed", "failed"), 0)
    assert body["latest"] == dict.fromkeys(("completed", "savepoint", "failed", "restored"))
    assert body["history"] == []
    aligned = body["summary"].pop("alignment_buffered")
    assert aligned == dict.fromkeys(NOTHING, 0)
    assert all(figure == NOTHING for figure in body["summary"].values())


def test_counts_are_the_runs_and_the_one_under_way(states: Any) -> None:
    """Those that are held no more count too."""
    held = history(wire.Checkpoint(30, "IN_PROGRESS", 5_000), completed(29), completed=29, failed=1, restored=3)
    body = overview(states, states.job(checkpoints=held))
    assert body["counts"] == {"restored": 1, "total": 31, "in_progress": 1, "completed": 29, "failed": 1}
    assert [each["className"] for each in body["history"]] == ["in_progress", "completed"]


def test_list_ends_after_ten(states: Any) -> None:
    """The latest failed one may be older, and is told as such only."""
    failed = wire.Checkpoint(2, "FAILED", 1_000, 1_500, 500, failure="it broke")
    held = history(*(completed(number) for number in range(20, 10, -1)), failed, latest_failed=2, latest_completed=20)
    body = overview(states, states.job(checkpoints=held))
    assert [each["id"] for each in body["history"]] == list(range(20, 10, -1))
    assert body["latest"]["completed"]["id"] == 20
    told = body["latest"]["failed"]
    assert (told["failure_message"], told["failure_timestamp"], told["end_to_end_duration"]) == ("it broke", 1_500, 500)


def test_completed_batch_has_sparks_figures(states: Any) -> None:
    """Rows, their rate and the phases are additions; no savepoint, nothing in flight."""
    told = completed(7, input_rows=120, output_rows=-1, phases={"addBatch": 900}, checkpointed_bytes=40)
    body = detail(states, states.job(checkpoints=history(told), checkpoint_path=PATH + "/"), 7)
    assert body.pop("streamgauge") == {
        "input_rows": 120,
        "output_rows": None,
        "input_rows_per_second": 120.0,
        "phases": {"addBatch": 900},
    }
    assert body == {
        "className": "completed",
        "id": 7,
        "status": "COMPLETED",
        "is_savepoint": False,
        "savepointFormat": None,
        "trigger_timestamp": 5_000,
        "latest_ack_timestamp": 6_000,
        "checkpointed_size": 40,
        "state_size": 90,
        "end_to_end_duration": 1_000,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": 0,
        "num_acknowledged_subtasks": 0,
        "checkpoint_type": "CHECKPOINT",
        "tasks": {},
        "external_path": "file:/data/state/commits/7",
        "discarded": False,
    }


@pytest.mark.parametrize("changes", [{"input_rows": -1}, {"duration_ms": -1}, {"duration_ms": 0}])
def test_rate_of_what_is_not_known_is_none(states: Any, changes: dict[str, int]) -> None:
    """Rows over no time are no rate."""
    told = completed(7, **({"input_rows": 5} | changes))
    assert detail(states, states.job(checkpoints=history(told)), 7)["streamgauge"]["input_rows_per_second"] is None


def test_batch_under_way_has_what_its_tasks_have_done(states: Any) -> None:
    """As in Flink: sizes and times of the subtasks that have acknowledged, −1 before the first."""
    begun = wire.Checkpoint(
        3, "IN_PROGRESS", 5_000, tasks=(tasks(VERTEX, (5_010, 5_200, 50, 4), (5_010, -1, -1, -1), (-1, -1, -1, -1)),)
    )
    body = detail(states, states.job(checkpoints=history(begun)), 3)
    assert (body["num_subtasks"], body["num_acknowledged_subtasks"]) == (3, 1)
    assert (body["latest_ack_timestamp"], body["end_to_end_duration"], body["state_size"]) == (5_200, 200, 50)
    assert "external_path" not in body
    body = detail(states, states.job(checkpoints=history(wire.Checkpoint(3, "IN_PROGRESS", 5_000))), 3)
    assert (body["latest_ack_timestamp"], body["end_to_end_duration"], body["checkpointed_size"]) == (-1, -1, -1)


def test_batch_whose_end_was_not_told_is_unknown(states: Any) -> None:
    """Spark went on to the next; nothing but that is known."""
    body = detail(states, states.job(checkpoints=history(wire.Checkpoint(3, "COMPLETED", 5_000))), 3)
    assert (body["latest_ack_timestamp"], body["end_to_end_duration"], body["state_size"]) == (-1, -1, -1)


def test_restored_batch(states: Any) -> None:
    """Where Spark noted that it had committed it, if that is known."""
    held = history(restored=4, restored_ms=1_500)
    expected = {"id": 4, "restore_timestamp": 1_500, "is_savepoint": False}
    for path, external in ((PATH, "file:/data/state/commits/4"), ("", None)):
        body = overview(states, states.job(checkpoints=held, checkpoint_path=path))
        assert body["latest"]["restored"] == expected | {"external_path": external}


# ---- What Spark keeps


@pytest.mark.parametrize(
    ("own", "apps", "kept"),
    [
        ({}, {}, 100),
        ({"minBatchesToRetain": "2"}, {}, 2),
        ({}, {"minBatchesToRetain": "3"}, 3),
        ({}, {"other": "1"}, 100),
        ({"minBatchesToRetain": "9" * 5000}, {}, 100),
    ],
    ids=["not told", "the query's", "the application's", "default", "nonsense"],
)
def test_what_spark_no_longer_keeps_is_discarded(
    states: Any, own: dict[str, str], apps: dict[str, str], kept: int
) -> None:
    """When it begins a batch it deletes what is older than so many before it."""
    own, apps = ({f"spark.sql.streaming.{key}": value for key, value in each.items()} for each in (own, apps))
    numbers = (200, 199, 198, 197, 196, 100, 99)
    held = history(*(completed(number) for number in numbers))
    job = states.job(checkpoints=held, checkpoint_path=PATH, configuration=own)
    body = overview(states, job, states.app(configuration=apps))
    assert [each["discarded"] for each in body["history"]] == [number < 200 - kept for number in numbers]


@pytest.mark.parametrize(
    ("path", "state", "discarded"),
    [
        (TEMPORARY, "RUNNING", False),
        (TEMPORARY, "CANCELED", True),
        (TEMPORARY, "FAILED", False),
        (PATH, "CANCELED", False),
    ],
)
def test_checkpoints_without_a_place_go_with_the_query(states: Any, path: str, state: str, discarded: bool) -> None:
    """Spark leaves them where the query failed, for whoever looks for the reason."""
    job = states.job(checkpoints=history(completed(1)), checkpoint_path=path, state=state)
    assert overview(states, job)["history"][0]["discarded"] is discarded


# ---- Tasks


def test_vertices_of_a_batch(states: Any) -> None:
    """A vertex without state has none and wrote none; of one with state only the whole query's bytes are known."""
    stateful = tasks(OTHER, (5_300, 5_700, 60, 7), (5_300, 5_900, 30, 9))
    told = completed(7, tasks(VERTEX, (5_004, 5_200, -1, -1)), stateful)
    body = detail(states, states.job(checkpoints=history(told)), 7)
    rows = {
        vertex: [row[key] for key in ("latest_ack_timestamp", "end_to_end_duration", "state_size", "checkpointed_size")]
        for vertex, row in body["tasks"].items()
    }
    assert rows == {VERTEX: [5_200, 200, 0, 0], OTHER: [5_900, 900, 90, -1]}
    assert (body["num_subtasks"], body["num_acknowledged_subtasks"]) == (3, 3)


def test_vertex_that_had_nothing_to_do_is_told_with_no_tasks(states: Any) -> None:
    """Flink's page reads an entry for each vertex of the job, and breaks over one that is missing."""
    told = completed(7, tasks(OTHER, (5_004, 5_200, -1, -1)))
    job = states.job(states.vertex(id=VERTEX), states.vertex(id=OTHER), checkpoints=history(told))
    body = detail(states, job, 7)
    assert set(body["tasks"]) == {VERTEX, OTHER}
    alone = of_vertex(states, job, 7)
    keys = ("num_subtasks", "num_acknowledged_subtasks", "latest_ack_timestamp", "end_to_end_duration", "state_size")
    for idle in (body["tasks"][VERTEX], alone):
        assert [idle[key] for key in keys] == [0, 0, -1, -1, 0]
    assert alone["subtasks"] == []
    assert (body["num_subtasks"], body["num_acknowledged_subtasks"]) == (1, 1)


def test_subtasks_of_a_vertex(states: Any) -> None:
    """Start delay and duration from the trigger, commit as the synchronous part; no quantiles, as in Flink."""
    told = completed(7, tasks(VERTEX, (5_300, 5_700, 60, 7), (5_304, 5_901, 30, 10)))
    body = of_vertex(states, states.job(checkpoints=history(told)), 7)
    assert [
        (row["index"], row["ack_timestamp"], row["end_to_end_duration"], row["start_delay"], row["state_size"])
        for row in body["subtasks"]
    ] == [(0, 5_700, 700, 300, 60), (1, 5_901, 901, 304, 30)]
    assert [row["checkpoint"] for row in body["subtasks"]] == [{"sync": 7, "async": 0}, {"sync": 10, "async": 0}]
    summary = body["summary"]
    assert summary["end_to_end_duration"] == NOTHING | {"min": 700, "max": 901, "avg": 800}
    assert summary["state_size"] == NOTHING | {"min": 30, "max": 60, "avg": 45}
    assert summary["checkpoint_duration"] == {"sync": NOTHING | {"min": 7, "max": 10, "avg": 8}, "async": NOTHING}
    assert summary["start_delay"] == NOTHING | {"min": 300, "max": 304, "avg": 302}
    assert summary["checkpointed_size"] == NOTHING


@pytest.mark.parametrize(
    ("status", "kinds"),
    [
        ("IN_PROGRESS", ["completed", "pending", "pending"]),
        ("FAILED", ["completed", "pending", "pending"]),
        ("COMPLETED", ["completed"]),
    ],
)
def test_subtasks_that_have_not_done_their_part(states: Any, status: Any, kinds: list[str]) -> None:
    """A limit may complete a batch without some; they took no part in it."""
    rows = [(5_010, 5_200, -1, -1), *([(-1, -1, -1, -1)] * 2 if status == "COMPLETED" else [(5_010, -1, -1, -1)] * 2)]
    told = wire.Checkpoint(7, status, 5_000, tasks=(tasks(VERTEX, *rows),))
    body = of_vertex(states, states.job(checkpoints=history(told)), 7)
    assert [row["className"] for row in body["subtasks"]] == kinds
    assert body["num_subtasks"] == len(kinds)


# ---- Refusals


def test_job_that_is_no_query_has_no_checkpoints(states: Any) -> None:
    """Flink's words where checkpointing is disabled, one for each resource."""
    job = states.job(type="BATCH")
    with pytest.raises(Missing, match=rf"^{HANDLER}Checkpointing has not been enabled\.$"):
        overview(states, job)
    for ask_for in (detail, of_vertex):
        with pytest.raises(Missing, match=f"^{HANDLER}Checkpointing was not enabled for job {JID}.$"):
            ask_for(states, job, 1)


def test_what_is_not_there_is_unknown(states: Any) -> None:
    """The job first, then the micro-batch, then the vertex; a negative number is a number."""
    job = states.job(checkpoints=history(completed(7)))
    with pytest.raises(UnknownJob):
        checkpoints.overview(Query.parse(states.snapshot(), 0, {"jobid": JID}, b""))
    for unknown in (8, -7, 2**63 - 1):
        with pytest.raises(
            Missing, match=f"^{HANDLER}Could not find checkpointing statistics for checkpoint {unknown}.$"
        ):
            detail(states, job, unknown)
    with pytest.raises(Missing, match=f"^{NOT_FOUND}There is no checkpoint statistics for task {VERTEX}.$"):
        of_vertex(states, job, 7)


@pytest.mark.parametrize(
    "text", ["abc", "", "1.0", "0x7", "9223372036854775808", "-9223372036854775809", "٣", "1" * 5000]
)
def test_id_that_is_no_long_is_malformed(states: Any, text: str) -> None:
    """As Java reads one, but for digits of other scripts."""
    with pytest.raises(UnresolvableParameter, match="checkpointid"):
        ask(states, states.job(), checkpointid=text)
