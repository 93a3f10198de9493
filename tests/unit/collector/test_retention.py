"""What leaves the store, when, and what stays."""

from __future__ import annotations

from dataclasses import fields

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.liveness import Liveness
from collector.retention import Keep, Retention

HOUR_MS = 3_600_000


@pytest.fixture
def retention(collector):
    return Retention(collector.store, collector.clock, Keep())


def _jid(number):
    return f"{number:032x}"


def _end(collector, frames, number, kind="STREAMING"):
    collector.push(frames.frame(job=frames.job(_jid(number), state="FINISHED", type=kind)))


def test_ended_job_leaves_after_an_hour(collector, retention, frames):
    """Kept for less than an hour of monotonic time after its end; then handed to the caller and gone."""
    _end(collector, frames, 1)
    collector.clock.advance(HOUR_MS - 1)
    before = collector.store.snapshot()
    assert retention.sweep().jobs == ()
    assert collector.store.snapshot() is before
    collector.clock.advance(1)
    assert [job.job.jid for job in retention.sweep().jobs] == [_jid(1)]
    assert dict(collector.store.snapshot().jobs) == {}


def test_frames_after_the_end_do_not_prolong_it(collector, retention, frames):
    """The hour counts from the frame that told the end."""
    _end(collector, frames, 1)
    collector.clock.advance(HOUR_MS - 1)
    collector.push(frames.frame(seq=2, job=frames.job(_jid(1), state="FINISHED")))
    collector.clock.advance(1)
    assert len(retention.sweep().jobs) == 1


@pytest.mark.parametrize("kind", ["STREAMING", "BATCH"])
def test_a_hundred_ended_jobs_of_a_kind_are_kept(collector, retention, frames, kind):
    """The latest ended stay, in whatever order they had begun; the two kinds are counted apart."""
    for number in range(102):
        collector.push(frames.frame(job=frames.job(_jid(number), type=kind)))
    for number in reversed(range(102)):
        collector.clock.advance(1)
        collector.push(frames.frame(seq=2, job=frames.job(_jid(number), type=kind, state="CANCELED")))
    _end(collector, frames, 200, "BATCH" if kind == "STREAMING" else "STREAMING")
    assert {job.job.jid for job in retention.sweep().jobs} == {_jid(100), _jid(101)}
    assert set(collector.store.snapshot().jobs) == {*map(_jid, range(100)), _jid(200)}


def test_running_jobs_are_never_counted(collector, frames):
    """Limits of ended jobs do not touch those that run."""
    retention = Retention(collector.store, collector.clock, Keep(ended_queries=0, ended_batches=0))
    for number in range(3):
        collector.push(frames.frame(job=frames.job(_jid(number))))
    _end(collector, frames, 3)
    assert [job.job.jid for job in retention.sweep().jobs] == [_jid(3)]


def test_suspended_job_leaves_after_an_hour_of_silence(collector, retention, frames):
    """Silence counts from the last frame, not from when it was noticed."""
    collector.push(frames.frame())
    collector.clock.advance(HOUR_MS - 1)
    Liveness(collector.store, collector.clock).sweep()
    assert retention.sweep().jobs == ()
    collector.clock.advance(1)
    assert [job.state for job in retention.sweep().jobs] == ["SUSPENDED"]


def test_application_keeps_its_executors_until_it_leaves(collector, retention, frames):
    """A silent application is suspended with its executors, and leaves after an hour without jobs."""
    collector.push(frames.app_frame(executors=(frames.executor(),)))
    collector.clock.advance(HOUR_MS - 1)
    Liveness(collector.store, collector.clock).sweep()
    retention.sweep()
    app = collector.store.snapshot().apps["app-1"]
    assert list(app.executors) == ["app-1-1"]
    assert app.suspended
    collector.clock.advance(1)
    assert [app.app.id for app in retention.sweep().apps] == ["app-1"]
    assert dict(collector.store.snapshot().apps) == {}


def test_application_stays_while_a_job_of_it_is_held(collector, retention, frames):
    """An ended job still shows its application; both leave in one sweep when the job is due."""
    collector.push(frames.app_frame())
    collector.clock.advance(HOUR_MS // 2)
    _end(collector, frames, 1)
    Liveness(collector.store, collector.clock).sweep()
    collector.clock.advance(HOUR_MS // 2)
    assert retention.sweep().apps == ()
    collector.clock.advance(HOUR_MS // 2)
    found = retention.sweep()
    assert (len(found.jobs), len(found.apps)) == (1, 1)


@pytest.mark.parametrize("name", [field.name for field in fields(Keep)])
def test_negative_setting_is_refused(name):
    """The message names the setting and the value."""
    with pytest.raises(ValueError, match=f"{name} is -1, but must be at least 0"):
        Keep(**{name: -1})


KEEP = Keep(ended_queries=2, ended_batches=1, ended_ms=50_000, silent_ms=60_000)
actions = st.lists(
    st.tuples(
        st.sampled_from(["run", "run", "end", "end", "app", "sweep", "sweep"]),
        st.integers(0, 5),
        st.integers(1, 25_000),
    ),
    max_size=50,
)


@given(actions)
def test_retention_matches_a_plain_model(new_collector, frames, actions):
    """Held after a sweep: what runs, the last ended of each kind, and what has not been silent for long."""
    collector = new_collector()
    liveness = Liveness(collector.store, collector.clock)
    retention = Retention(collector.store, collector.clock, KEEP)
    now, seq = 0, 0
    jobs: dict[int, dict] = {}
    apps: dict[int, dict] = {}
    for action, number, pause in actions:
        collector.clock.advance(pause)
        now, seq = now + pause, seq + 1
        # Jobs 0 to 3 are queries, 4 and 5 batches; the odd ones belong to another application than the even.
        app_id = f"app-{number % 2}"
        if action in ("run", "end"):
            job = frames.job(
                _jid(number),
                state="RUNNING" if action == "run" else "FINISHED",
                type="STREAMING" if number < 4 else "BATCH",
            )
            app = msgspec.structs.replace(frames.APP, id=app_id)
            collector.push(frames.frame(seq=seq, job=job, app=app))
            ended = jobs.get(number, {}).get("ended")
            jobs[number] = {
                "heard": now,
                "ended": None if action == "run" else now if ended is None else ended,
                "suspended": False,
            }
        elif action == "app":
            collector.push(frames.app_frame(app_id, seq=seq))
            apps[number % 2] = {"heard": now, "suspended": False}
        else:
            liveness.sweep()
            retention.sweep()
            for one in (*jobs.values(), *apps.values()):
                one["suspended"] |= one.get("ended") is None and now - one["heard"] > 13_000
            for kind, kept in ((range(4), 2), (range(4, 6), 1)):
                ended = sorted(
                    (one for one in kind if one in jobs and jobs[one]["ended"] is not None),
                    key=lambda one: -jobs[one]["ended"],
                )
                for rank, one in enumerate(ended):
                    if rank >= kept or now - jobs[one]["ended"] >= 50_000:
                        del jobs[one]
            for one in [one for one, job in jobs.items() if job["suspended"] and now - job["heard"] >= 60_000]:
                del jobs[one]
            for one in list(apps):
                if now - apps[one]["heard"] >= 60_000 and not any(job % 2 == one for job in jobs):
                    del apps[one]
        snapshot = collector.store.snapshot()
        assert set(snapshot.jobs) == {_jid(one) for one in jobs}
        assert {jid for jid, job in snapshot.jobs.items() if job.state == "SUSPENDED"} == {
            _jid(one) for one, job in jobs.items() if job["suspended"]
        }
        assert set(snapshot.apps) == {f"app-{one}" for one in apps}
