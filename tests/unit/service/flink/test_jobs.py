"""Jobs, one and all."""

from __future__ import annotations

from typing import Any

from collector.segment import run_id
from service.flink import jobs, overview, vertices
from service.flink.query import Query
from streamgauge import names, wire


def test_jobs_that_have_not_ended_come_first_and_the_latest_before_the_others(states: Any) -> None:
    """As in Flink's lists; SUSPENDED is no end."""
    snapshot = states.snapshot(
        states.job(jid="1" * 32, state="FAILED", first_start_ms=900),
        states.job(jid="2" * 32, first_start_ms=100),
        states.job(jid="3" * 32, state="SUSPENDED", first_start_ms=200),
        states.job(jid="4" * 32, state="FINISHED", first_start_ms=950),
    )
    listed: Any = jobs.ids(Query.parse(snapshot, 1_000, {}, b""))["jobs"]
    assert [(job["id"][0], job["status"]) for job in listed] == [
        ("3", "SUSPENDED"),
        ("2", "RUNNING"),
        ("4", "FINISHED"),
        ("1", "FAILED"),
    ]
    told = overview.overview(Query.parse(snapshot, 1_000, {}, b""))
    assert [told[f"jobs-{state}"] for state in ("running", "finished", "cancelled", "failed")] == [2, 1, 0, 1]


def test_detail_sums_vertices_and_counts_their_states(states: Any) -> None:
    """One vertex that has left the plan is FINISHED beside those that run."""
    column = {names.NUM_RECORDS_OUT: states.column(3, 4)}
    snapshot = states.snapshot(
        states.job(
            states.vertex(id="a" * 32, columns=column), states.vertex(id="b" * 32, current=False), first_start_ms=1_000
        )
    )
    body: Any = jobs.detail(Query.parse(snapshot, 5_000, {"jobid": "d" * 32}, b""))
    assert (body["start-time"], body["end-time"], body["duration"], body["now"]) == (1_000, -1, 4_000, 5_000)
    assert body["vertices"][0]["metrics"]["write-records"] == 7
    assert body["vertices"][0]["tasks"] == {**dict.fromkeys(body["status-counts"], 0), "RUNNING": 2}
    assert {state: count for state, count in body["status-counts"].items() if count} == {"RUNNING": 1, "FINISHED": 1}
    assert body["plan"]["jid"] == body["jid"]


def test_what_is_ours_sits_in_one_object(states: Any) -> None:
    """How much can be told, what was dropped, and why the job failed."""
    job = states.job(state="FAILED", failure="root cause", incomplete=wire.Incomplete(records=7))
    body = jobs.detail(Query.parse(states.snapshot(job), 5_000, {"jobid": "d" * 32}, b""))
    assert body["streamgauge"] == {
        "application": "app-1",
        "run": run_id(job),
        "archived": False,
        "level": "task",
        "trigger": "every 10 s",
        "failure": "root cause",
        "incomplete": {"records": 7, "live_updates": 0, "unknown_updates": 0},
        "backlogged": None,
        "bottleneck": None,
    }


def test_the_bottleneck_of_a_backlogged_job_is_named(states: Any) -> None:
    """With the busy share of its busiest subtask."""
    slow = states.vertex(columns={names.BUSY_TIME: states.column(250.0, 750.0)})
    job = states.job(slow, metrics={names.BACKLOGGED: True})
    body = jobs.detail(Query.parse(states.snapshot(job), 5_000, {"jobid": "d" * 32}, b""))["streamgauge"]
    assert body["backlogged"] is True
    assert body["bottleneck"] == {"id": "c" * 32, "name": "Scan -> Filter", "busy-ratio": 0.75}


def test_vertex_may_grow_past_its_parallelism_and_the_job_tells_no_bound(states: Any) -> None:
    """Clients that scale take a vertex's greatest parallelism at its word, −1 too; of a whole job Flink tells −1."""
    snapshot = states.snapshot(states.job(states.vertex(id="a" * 32)))
    told: Any = jobs.detail(Query.parse(snapshot, 5_000, {"jobid": "d" * 32}, b""))
    alone: Any = vertices.detail(Query.parse(snapshot, 5_000, {"jobid": "d" * 32, "vertexid": "a" * 32}, b""))
    assert told["maxParallelism"] == -1
    assert [vertex["maxParallelism"] for vertex in told["vertices"]] == [alone["maxParallelism"]] == [2**15]
