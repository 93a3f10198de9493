"""Ordering, all or nothing, what is held at most, and the counts."""

from __future__ import annotations

import threading

import pytest

from collector.ingest import Ingest
from collector.limits import Limits
from collector.store import MetricStore, Snapshot
from streamgauge import codec, wire
from streamgauge.errors import (
    CollectorError,
    FrameTooLarge,
    InvalidName,
    MalformedFrame,
    NeedsFullFrame,
    Overloaded,
    UnsupportedVersion,
)


def test_first_full_frame_is_accepted(collector, frames):
    """A full frame of a job that is not held makes it known."""
    assert collector.push(frames.frame(vertices=(frames.figures(columns=(frames.column("numRecordsIn", 1, 2),)),))) == (
        1,
        0,
        0,
    )
    job = collector.job()
    assert job.state == "RUNNING"
    assert job.restarts == 0
    assert job.first_start_ms == 1
    assert job.modified_ms == 1_000_000
    assert job.vertices[frames.VERTEX].columns["numRecordsIn"].values.tolist() == [1, 2]


def test_empty_push_changes_nothing(collector):
    """A body without frames is valid."""
    before = collector.store.snapshot()
    assert collector.push() == (0, 0, 0)
    assert collector.store.snapshot() is before


@pytest.mark.parametrize(("seq", "outcome"), [(7, (0, 1, 0)), (6, (0, 0, 1)), (1, (0, 0, 1)), (8, (1, 0, 0))], ids=str)
def test_seq_orders_frames_of_one_attempt(collector, frames, seq, outcome):
    """Equal seq is repeated, smaller is late, greater is accepted, whatever the frame holds."""
    collector.push(frames.frame(seq=7))
    before = collector.store.snapshot()
    assert collector.push(frames.frame(seq=seq, job=frames.job(name="other"))) == outcome
    assert (collector.store.snapshot() is before) == (outcome[0] == 0)


@pytest.mark.parametrize(
    ("attempt", "outcome", "restarts"),
    [
        (wire.Attempt(6, "run-a"), (1, 0, 0), 1),
        (wire.Attempt(5, "run-c"), (1, 0, 0), 1),
        (wire.Attempt(5, "run-a"), (0, 0, 1), 0),
        (wire.Attempt(4, "run-z"), (0, 0, 1), 0),
    ],
    ids=["started later", "same start, greater run id", "same start, smaller run id", "started earlier"],
)
def test_greater_attempt_wins_and_counts_one_restart(collector, frames, attempt, outcome, restarts):
    """(start_ms, run_id) orders runs of a query; seq does not matter between them."""
    collector.push(frames.frame(seq=9, attempt=wire.Attempt(5, "run-b")))
    assert collector.push(frames.frame(seq=1, attempt=attempt)) == outcome
    assert collector.job().restarts == restarts
    assert collector.job().first_start_ms == 5


def test_delta_of_an_older_attempt_is_late_even_if_its_vertices_are_unknown(collector, frames):
    """What arrives too late is counted and never refused: its sender is gone."""
    collector.push(frames.frame(attempt=wire.Attempt(2, "run-2")))
    late = frames.frame(seq=5, base=4, vertices=(frames.figures("d" * 32),))
    assert collector.push(late) == (0, 0, 1)


@pytest.mark.parametrize(
    ("held", "changes", "message"),
    [
        (None, {"seq": 2, "base": 1}, "nothing is held"),
        (1, {"seq": 3, "base": 2}, "only seq 1 is held"),
        (1, {"seq": 3, "base": 1, "attempt": wire.Attempt(2, "run-2")}, "begin an attempt with a full frame"),
    ],
    ids=["unknown job", "base is ahead", "new attempt"],
)
def test_delta_without_its_base_needs_a_full_frame(collector, frames, held, changes, message):
    """Changes are only applied to a state that has all that they build on."""
    if held:
        collector.push(frames.frame(seq=held))
    before = collector.store.snapshot()
    with pytest.raises(NeedsFullFrame, match=message) as caught:
        collector.push(frames.frame(**changes))
    assert str(caught.value).startswith(f"frame 0 (job '{frames.JID}')")
    assert collector.store.snapshot() is before


def test_application_frames_are_ordered_likewise(collector, frames):
    """The application's own frames follow the same rules as a job's."""
    with pytest.raises(NeedsFullFrame, match="application 'app-1'"):
        collector.push(frames.app_frame(seq=2, base=1))
    assert collector.push(frames.app_frame(seq=2), frames.app_frame(seq=2), frames.app_frame(seq=1)) == (1, 1, 1)
    assert collector.push(frames.app_frame(seq=3, base=2)) == (1, 0, 0)
    assert collector.store.snapshot().apps["app-1"].seq == 3


def test_frames_of_one_push_are_taken_in_order(collector, frames):
    """A later frame of a body builds on an earlier one."""
    delta = frames.frame(seq=2, base=1, job=frames.job(name="renamed"))
    assert collector.push(frames.frame(), delta, frames.frame()) == (2, 0, 1)
    assert collector.job().job.name == "renamed"


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"seq": 0}, MalformedFrame),
        ({"job": {"name": ""}}, InvalidName),
        ({"version": 99}, UnsupportedVersion),
        ({"seq": 2, "base": 1}, NeedsFullFrame),
        ({"figures": "d" * 32}, MalformedFrame),
    ],
    ids=["malformed", "name", "version", "needs full", "unknown vertex"],
)
def test_one_bad_frame_refuses_the_whole_push(collector, frames, bad, error):
    """Everything is checked before anything is written: a refused push leaves the same snapshot object."""
    changes = dict(bad)
    changes["job"] = frames.job("e" * 32, **changes.get("job", {}))
    if figures := changes.pop("figures", None):
        changes["vertices"] = (frames.figures(figures),)
    before = collector.store.snapshot()
    with pytest.raises(error) as caught:
        collector.push(frames.frame(), frames.app_frame(), frames.frame(**changes))
    if error is not UnsupportedVersion:
        assert str(caught.value).startswith(f"frame 2 (job '{'e' * 32}'): ")
    assert collector.store.snapshot() is before


def test_garbage_is_malformed(collector):
    """Bytes that are no MessagePack are refused with the reason."""
    with pytest.raises(MalformedFrame, match="no whole MessagePack array"):
        collector.ingest.push(b"\xc1")


def test_string_that_is_no_utf8_is_malformed(collector, frames):
    """A broken string is the sender's fault and refused as such."""
    body = codec.encode([frames.frame()]).replace(b"flights", b"fl\xffghts")
    with pytest.raises(MalformedFrame, match="no UTF-8"):
        collector.ingest.push(body)


def test_long_wrong_value_is_cut_in_the_message(collector, frames):
    """A refusal names the place and never repeats a whole value, however long it is."""
    body = codec.encode([frames.frame(job=frames.job(state="x" * 5_000))])
    with pytest.raises(MalformedFrame, match=r"Invalid enum value 'xxx.*….*\$\[0\]\.job\.state") as caught:
        collector.ingest.push(body)
    assert len(str(caught.value)) < 500


def test_body_past_its_limit_is_too_large(new_collector, frames):
    """The limit is inclusive and checked before decoding."""
    body = codec.encode([frames.frame()])
    assert new_collector(body_bytes=len(body)).ingest.push(body).accepted == 1
    with pytest.raises(FrameTooLarge, match=f"the body has {len(body)} bytes, at most {len(body) - 1}"):
        new_collector(body_bytes=len(body) - 1).ingest.push(body)


def test_no_more_jobs_than_the_limit_are_held(new_collector, frames):
    """A job that is held is still taken; a new one has to wait."""
    collector = new_collector(jobs=1, retry_after_s=7)
    collector.push(frames.frame())
    with pytest.raises(Overloaded, match="1 jobs are held, at most 1") as caught:
        collector.push(frames.frame(job=frames.job("d" * 32)))
    assert caught.value.retry_after_s == 7
    assert collector.push(frames.frame(seq=2)) == (1, 0, 0)


def test_no_more_applications_than_the_limit_are_held(new_collector, frames):
    """An application that is held is still taken; a new one has to wait."""
    collector = new_collector(apps=1)
    collector.push(frames.app_frame())
    with pytest.raises(Overloaded, match="1 apps are held, at most 1"):
        collector.push(frames.app_frame("app-2"))
    assert collector.push(frames.app_frame(seq=2)) == (1, 0, 0)


def test_series_past_the_limit_are_refused_but_held_ones_move_on(new_collector, frames):
    """At the limit of values, jobs that do not grow are still taken."""
    collector = new_collector(series=3)
    two = (frames.figures(columns=(frames.column("numRecordsIn", 1, 2),)),)
    collector.push(frames.frame(vertices=two))
    with pytest.raises(Overloaded, match="2 more values than the 2 that are held, at most 3"):
        collector.push(frames.frame(job=frames.job("d" * 32), vertices=two))
    assert collector.push(frames.frame(seq=2, vertices=two)) == (1, 0, 0)


def test_held_jobs_move_on_even_above_a_lowered_limit(collector, frames):
    """A store that holds more than the limit refuses growth only."""
    two = (frames.figures(columns=(frames.column("numRecordsIn", 1, 2),)),)
    collector.push(frames.frame(vertices=two))
    lowered = Ingest(collector.store, collector.clock, Limits(series=1))
    assert lowered.push(codec.encode([frames.frame(seq=2, vertices=two)])).accepted == 1


def test_room_left_by_another_writer_can_be_used(new_collector, frames):
    """Values are counted anew when something else, such as retention, has swapped the snapshot."""
    collector = new_collector(series=2)
    two = (frames.figures(columns=(frames.column("numRecordsIn", 1, 2),)),)
    empty = collector.store.snapshot()
    collector.push(frames.frame(vertices=two))
    with collector.store.lock:
        collector.store.swap(empty)
    assert collector.push(frames.frame(job=frames.job("d" * 32), vertices=two)) == (1, 0, 0)


def test_values_of_one_push_are_counted_together(new_collector, frames):
    """Two jobs of one body that fit one by one but not together are refused."""
    two = (frames.figures(columns=(frames.column("numRecordsIn", 1, 2),)),)
    with pytest.raises(Overloaded, match="frame 1"):
        new_collector(series=3).push(frames.frame(vertices=two), frames.frame(job=frames.job("d" * 32), vertices=two))


def test_values_of_one_job_are_limited(new_collector, frames):
    """One job may not take the room of all; sending it again would not help."""
    with pytest.raises(FrameTooLarge, match="the job would have 2 values, at most 1"):
        new_collector(job_series=1).push(
            frames.frame(vertices=(frames.figures(columns=(frames.column("numRecordsIn", 1, 2),)),))
        )


def test_totals_count_frames_by_outcome_and_refusals_by_reason(collector, frames):
    """Nothing vanishes silently."""
    assert collector.ingest.totals().refused_at_ms == -1
    collector.push(frames.frame(seq=2), frames.frame(seq=2), frames.frame(seq=1))
    size = len(codec.encode([frames.frame(seq=2), frames.frame(seq=2), frames.frame(seq=1)]))
    for _ in range(2):
        collector.clock.advance(5)
        with pytest.raises(MalformedFrame):
            collector.ingest.push(b"\xc1")
    totals = collector.ingest.totals()
    assert (totals.accepted, totals.repeated, totals.late) == (1, 1, 1)
    assert dict(totals.refused) == {"MalformedFrame": 2}
    assert totals.bytes == size + 2
    assert totals.refused_at_ms == 1_000_010


class WatchedStore(MetricStore):
    """A store that checks that its writer holds the lock; it does not check who the writer is."""

    def swap(self, snapshot: Snapshot) -> None:
        assert self.lock.locked()
        super().swap(snapshot)


def test_write_holds_the_lock_and_leaves_it_free(collector, frames):
    """Requirement: writers hold the store's lock from reading the snapshot to swapping it, refused or not."""
    store = WatchedStore()
    ingest = Ingest(store, collector.clock, Limits())
    ingest.push(codec.encode([frames.frame()]))
    assert not store.lock.locked()
    with pytest.raises(NeedsFullFrame):
        ingest.push(codec.encode([frames.frame(seq=9, base=8)]))
    assert not store.lock.locked()


def test_pushes_of_many_threads_lose_nothing(collector, frames):
    """Requirement: any thread may push, and writes are serialised by the store's lock."""
    errors: list[CollectorError] = []

    def drive(number: int) -> None:
        job = frames.job(f"{number:032x}")
        try:
            for seq in range(1, 31):
                collector.push(frames.frame(seq=seq, base=seq - 1, plan=frames.plan(), job=job))
        except CollectorError as error:
            errors.append(error)

    threads = [threading.Thread(target=drive, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [job.seq for job in collector.store.snapshot().jobs.values()] == [30] * 4
    assert collector.ingest.totals().accepted == 120
