"""Silence makes SUSPENDED, a frame brings back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.liveness import Liveness
from streamgauge import wire


@pytest.fixture
def liveness(collector):
    return Liveness(collector.store, collector.clock)


@pytest.mark.parametrize("interval_ms", [1, 1000, 60_000])
def test_silence_past_three_intervals_and_ten_seconds_suspends(collector, liveness, frames, interval_ms):
    """Exactly 3 intervals + 10 s is not yet silence; one millisecond more is."""
    collector.push(frames.frame(interval_ms=interval_ms), frames.app_frame(interval_ms=interval_ms))
    collector.clock.advance(3 * interval_ms + 10_000)
    before = collector.store.snapshot()
    assert liveness.sweep().jobs == ()
    assert collector.store.snapshot() is before
    collector.clock.advance(1)
    found = liveness.sweep()
    assert (found.jobs, found.apps) == ((frames.JID,), ("app-1",))
    assert collector.job().state == "SUSPENDED"
    assert collector.job().job.state == "RUNNING"
    assert collector.job().since_ms["SUSPENDED"] == collector.clock.now_ms()
    assert collector.job().modified_ms == collector.clock.now_ms()
    assert collector.store.snapshot().apps["app-1"].suspended


def test_silence_is_told_once(collector, liveness, frames):
    """Who is suspended is not suspended again by the next sweep."""
    collector.push(frames.frame(), frames.app_frame())
    collector.clock.advance(60_000)
    liveness.sweep()
    before = collector.store.snapshot()
    collector.clock.advance(60_000)
    found = liveness.sweep()
    assert (found.jobs, found.apps) == ((), ())
    assert collector.store.snapshot() is before


def test_frame_brings_a_suspended_job_back(collector, liveness, frames):
    """The driver's state holds again; when the job was last suspended is still told."""
    collector.push(frames.frame(), frames.app_frame())
    collector.clock.advance(60_000)
    liveness.sweep()
    suspended_ms = collector.clock.now_ms()
    collector.clock.advance(5)
    collector.push(frames.frame(seq=2, base=1), frames.app_frame(seq=2))
    job = collector.job()
    assert job.state == "RUNNING"
    assert dict(job.since_ms) == {"RUNNING": 3, "SUSPENDED": suspended_ms}
    assert job.modified_ms == suspended_ms + 5
    assert not collector.store.snapshot().apps["app-1"].suspended


def test_new_run_forgets_that_the_last_one_was_suspended(collector, liveness, frames):
    """since_ms tells the states of this run only."""
    collector.push(frames.frame())
    collector.clock.advance(60_000)
    liveness.sweep()
    collector.push(frames.frame(attempt=wire.Attempt(2, "run-2")))
    assert "SUSPENDED" not in collector.job().since_ms


def test_repeated_and_late_frames_are_no_sign_of_life(collector, liveness, frames):
    """They change nothing; a driver that lives sends new ones."""
    collector.push(frames.frame(seq=2))
    collector.clock.advance(60_000)
    collector.push(frames.frame(seq=2), frames.frame(seq=1))
    assert liveness.sweep().jobs == (frames.JID,)


@pytest.mark.parametrize("state", sorted(wire.ENDED_STATES))
def test_ended_job_is_never_suspended(collector, liveness, frames, state):
    """A job that has ended is silent by right."""
    collector.push(frames.frame(job=frames.job(state=state)))
    collector.clock.advance(600_000)
    assert liveness.sweep().jobs == ()
    assert collector.job().state == state


def test_wall_time_does_not_matter(collector, liveness, frames):
    """An administrator who sets the clock suspends nobody."""
    collector.push(frames.frame())
    collector.clock.step_wall(86_400_000)
    assert liveness.sweep().jobs == ()
    collector.clock.step_wall(-2 * 86_400_000)
    collector.clock.advance(13_001)
    assert liveness.sweep().jobs == (frames.JID,)


actions = st.lists(
    st.tuples(
        st.sampled_from(["speak", "repeat", "end", "sweep", "sweep", "sweep"]),
        st.integers(0, 2),
        st.integers(0, 9_000),
    ),
    max_size=40,
)


@given(actions, st.tuples(*[st.integers(1, 4_000)] * 3))
def test_suspension_matches_a_plain_model(new_collector, frames, actions, intervals):
    """A job is SUSPENDED from the first sweep that finds it silent until its next new frame."""
    collector = new_collector()
    liveness = Liveness(collector.store, collector.clock)
    now, seq = 0, 1
    heard: dict[int, int] = {}
    states: dict[int, str] = {}
    for action, number, pause in actions:
        collector.clock.advance(pause)
        now += pause
        job = frames.job(f"{number:032x}", state="FAILED" if action == "end" else "RUNNING")
        if action in ("speak", "end"):
            seq += 1
            collector.push(frames.frame(seq=seq, job=job, interval_ms=intervals[number]))
            heard[number], states[number] = now, job.state
        elif action == "repeat" and number in heard:
            collector.push(frames.frame(job=job, interval_ms=intervals[number]))
        elif action == "sweep":
            silent = {
                number
                for number, state in states.items()
                if state == "RUNNING" and now - heard[number] > 3 * intervals[number] + 10_000
            }
            states.update(dict.fromkeys(silent, "SUSPENDED"))
            assert set(liveness.sweep().jobs) == {f"{number:032x}" for number in silent}
        found = {jid: job.state for jid, job in collector.store.snapshot().jobs.items()}
        assert found == {f"{number:032x}": state for number, state in states.items()}
