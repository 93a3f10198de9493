"""Frames of a log become runs: each once, at its end, with its last samples, and what did not end as suspended."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector import replayed
from collector.replayed import Replayed, summary
from collector.run import Run
from streamgauge import codec, names, wire

VERTEX = "0f" * 16
APP = wire.App("app", "name", 0, "host", "4.3.0", "0")


def frame(
    name: str,
    run: int,
    seq: int,
    state: wire.JobState = "RUNNING",
    kind: str = "STREAMING",
    start_ms: int = 0,
    operators: int = 1,
) -> wire.Frame:
    """A full frame of a job with one vertex."""
    jid = name * (32 // len(name))
    plan = wire.Plan((wire.Vertex(VERTEX, "vertex", tuple(_operators(operators)), (), True),))
    job = wire.Job(
        jid=jid,
        name=name,
        type="STREAMING" if kind == "STREAMING" else "BATCH",
        state=state,
        since_ms={state: start_ms},
        end_ms=start_ms + seq if state in wire.ENDED_STATES else -1,
        trigger="",
        level="task",
        metrics={names.INPUT_ROWS: 10 * seq} if kind == "STREAMING" else {},
    )
    checkpoints = wire.Checkpoints(completed=seq) if kind == "STREAMING" else None
    return wire.Frame(
        version=wire.WIRE_VERSION,
        app=APP,
        attempt=wire.Attempt(start_ms, f"run-{run}"),
        seq=seq,
        base=0,
        sent_at_ms=start_ms + seq,
        interval_ms=5000,
        job=job,
        plan=plan,
        checkpoints=checkpoints,
    )


def _operators(count: int) -> list[wire.Operator]:
    return [wire.Operator(f"{place:032x}", f"operator {place}", "node", "") for place in range(count)]


def own(seq: int) -> wire.Frame:
    return wire.Frame(
        version=wire.WIRE_VERSION,
        app=APP,
        attempt=wire.Attempt(0, "app"),
        seq=seq,
        base=0,
        sent_at_ms=0,
        interval_ms=5000,
    )


def pushed(into: Replayed, *frames: wire.Frame) -> None:
    into.push(codec.encode([own(max((each.seq for each in frames), default=1)), *frames]))


def told(runs: list[Run]) -> list[tuple[str, str, str]]:
    return [(run.state.job.name, run.state.attempt.run_id, run.state.state) for run in runs]


@pytest.fixture
def runs() -> list[Run]:
    return []


@pytest.fixture
def into(runs: list[Run]) -> Replayed:
    return Replayed(runs.append)


def step(into: Replayed) -> None:
    into.clock.advance(5000)
    into.sample()


def test_a_run_is_concluded_once_with_its_course(into: Replayed, runs: list[Run]) -> None:
    """The last sample is that of its end."""
    pushed(into, frame("a", 1, 1))
    step(into)
    pushed(into, frame("a", 1, 2, "FINISHED"))
    assert runs == []
    step(into)
    step(into)
    into.end()
    assert told(runs) == [("a", "run-1", "FINISHED")]
    (run,) = runs
    assert run.app is not None
    assert run.app.app == APP
    assert run.course is not None
    assert run.course.times_ms.tolist() == [5000, 10_000]
    assert run.vertices.keys() == {VERTEX}


def test_a_run_that_another_one_replaces_is_concluded_before(into: Replayed, runs: list[Run]) -> None:
    """Also where both come between two samples; the new one knows of the old one."""
    pushed(into, frame("a", 1, 1, "FAILED"))
    pushed(into, frame("a", 2, 1, "RUNNING", start_ms=10))
    pushed(into, frame("a", 3, 1, "FINISHED", start_ms=20))
    into.end()
    assert told(runs) == [("a", "run-1", "FAILED"), ("a", "run-2", "RUNNING"), ("a", "run-3", "FINISHED")]
    assert [run.state.restarts for run in runs] == [0, 1, 2]


def test_what_still_runs_at_the_end_is_suspended(into: Replayed, runs: list[Run]) -> None:
    pushed(into, frame("a", 1, 1), frame("b", 2, 1, "FINISHED"))
    step(into)
    into.end()
    assert told(runs) == [("b", "run-2", "FINISHED"), ("a", "run-1", "SUSPENDED")]


def test_of_batch_executions_the_last_are_kept(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    """They come last; how many were left out is counted."""
    monkeypatch.setattr(replayed, "BATCHES", 2)
    into = Replayed(runs.append)
    for number, name in enumerate("abcd"):
        pushed(into, frame(name, number, 1, "FINISHED", "BATCH", number))
        step(into)
    pushed(into, frame("e", 9, 1, "FINISHED"))
    step(into)
    into.end()
    assert [run.state.job.name for run in runs] == ["e", "c", "d"]
    assert into.left_out == 2


def test_a_job_that_cannot_be_held_leaves_the_others(into: Replayed, runs: list[Run]) -> None:
    pushed(into, frame("a", 1, 1, "FINISHED"), frame("b", 2, 1, "FINISHED", operators=300))
    pushed(into, frame("a", 1, 1, "FINISHED"), frame("b", 2, 1, "FINISHED", operators=300))
    into.end()
    assert told(runs) == [("a", "run-1", "FINISHED")]
    (refused,) = into.refused
    assert refused.startswith("job b: ")
    assert "300" in refused


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("start", "go on", "end", "sample"))), max_size=40))
def test_every_run_is_concluded_exactly_once(events: list[tuple[str, str]]) -> None:
    """Whatever the order of starts, ends, restarts and samples."""
    runs: list[Run] = []
    into = Replayed(runs.append)
    live: dict[str, wire.Frame] = {}
    begun: list[str] = []
    for number, (name, what) in enumerate(events, 1):
        if what == "sample":
            step(into)
        elif what == "start":
            live[name] = frame(name, number, 1, start_ms=number)
            begun.append(live[name].attempt.run_id)
            pushed(into, live[name])
        elif name in live:
            before = live[name]
            assert before.job is not None
            if before.job.state in wire.ENDED_STATES:
                continue
            job = (
                before.job if what == "go on" else msgspec.structs.replace(before.job, state="FINISHED", end_ms=number)
            )
            live[name] = msgspec.structs.replace(before, seq=before.seq + 1, job=job)
            pushed(into, live[name])
    into.end()
    assert sorted(run.state.attempt.run_id for run in runs) == sorted(begun)
    assert all(run.state.seq >= 1 for run in runs)


def test_summary() -> None:
    runs: list[Run] = []
    into = Replayed(runs.append)
    pushed(into, frame("a", 1, 3, "FINISHED", start_ms=100), frame("b", 2, 1, kind="BATCH"))
    into.end()
    first, second = map(summary, runs)
    assert first == {
        "jid": "a" * 32,
        "run": "run-1",
        "name": "a",
        "type": "STREAMING",
        "state": "FINISHED",
        "batches": 3,
        "records": 30,
        "start_ms": 100,
        "end_ms": 103,
    }
    assert (second["batches"], second["records"], second["end_ms"], second["state"]) == (None, None, None, "SUSPENDED")
