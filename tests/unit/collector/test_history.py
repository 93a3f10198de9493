"""A history is what was read at each sample, as long as it is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.histogram import BOUNDS_MS
from collector.history import HISTORY_MAX_BYTES, SAMPLE_INTERVAL_MS, Course, History
from collector.latencies import Latencies
from collector.readings import JOB_FIGURES, VERTEX_FIGURES
from collector.ring import CAPACITY, Ring
from collector.store import MetricStore
from streamgauge import names, wire
from streamgauge.clock import ManualClock

IN = names.NUM_RECORDS_IN + names.PER_SECOND
BUSY = f"{names.BUSY_TIME}.max"
NOW_MS = 1_000_000


class Watched:
    """A store that is set from outside, and its history."""

    def __init__(self, states: Any, max_bytes: int = HISTORY_MAX_BYTES) -> None:
        self.states = states
        self.store, self.clock = MetricStore(), ManualClock(NOW_MS)
        self.history = History(self.store, self.clock, max_bytes)

    def hold(self, *jobs: Any) -> None:
        with self.store.lock:
            self.store.swap(self.states.snapshot(*jobs))

    def sample(self, *jobs: Any) -> None:
        """What is held from now on, sampled; then an interval passes."""
        self.hold(*jobs)
        self.history.sample()
        self.clock.advance(SAMPLE_INTERVAL_MS)

    def job(self, jid: str | None = None, **arguments: Any) -> Course:
        course = self.history.job(jid or self.states.JID, **arguments)
        assert course is not None
        return course

    def busy(self, *values: float | None, **changes: Any) -> Any:
        """A vertex whose subtasks are that busy."""
        return self.states.vertex(len(values), columns={names.BUSY_TIME: self.states.column(*values)}, **changes)


@pytest.fixture
def watched(states: Any) -> Watched:
    return Watched(states)


@given(st.lists(st.none() | st.floats(0, 1_000, width=32), min_size=1, max_size=CAPACITY + 20), st.integers(-1, 250))
def test_the_last_samples_are_kept(states: Any, values: list[float | None], passed: int) -> None:
    """As many as are kept, in their order, each with its time; a value that is not known is NaN."""
    watched = Watched(states)
    for value in values:
        watched.sample(states.job(watched.busy(value)))
    expected = [(NOW_MS + place * SAMPLE_INTERVAL_MS, value) for place, value in enumerate(values)][-CAPACITY:]
    since_ms = NOW_MS + passed * SAMPLE_INTERVAL_MS
    for kept, arguments in (expected, {}), ([each for each in expected if each[0] > since_ms], {"since_ms": since_ms}):
        vertex = watched.history.vertex(states.JID, states.VERTEX, **arguments)
        assert vertex is not None
        for course in (vertex, watched.job(**arguments)):
            assert course.times_ms.tolist() == [time_ms for time_ms, _ in kept]
            known = [np.nan if value is None else value for _, value in kept]
            if any(value is not None for _, value in kept):
                np.testing.assert_array_equal(course.figures[BUSY], known)
            else:
                assert BUSY not in course.figures


def test_a_sample_is_taken_every_interval(watched: Watched, states: Any) -> None:
    """However often it is swept, and at the same beat after a sweep that came late."""
    watched.hold(states.job(watched.busy(1)))
    for _ in range(12):
        watched.history.sweep()
        watched.clock.advance(1_000)
    watched.clock.advance(1_500)
    watched.history.sweep()
    watched.clock.advance(1_499)
    watched.history.sweep()
    watched.clock.advance(1)
    watched.history.sweep()
    assert (watched.job().times_ms - NOW_MS).tolist() == [0, 5_000, 10_000, 15_000]
    watched.clock.advance(7_000)
    watched.history.sweep()
    watched.clock.advance(3_000)
    watched.history.sweep()
    assert (watched.job().times_ms[4:] - NOW_MS).tolist() == [22_000, 25_000]


def test_the_last_sample_of_a_job_is_that_of_its_end(watched: Watched, states: Any) -> None:
    """And then it stands as long as the job is held; one that has ended before it was seen has none."""
    watched.sample(states.job(watched.busy(1)))
    ended = states.job(watched.busy(2), state="FINISHED")
    for _ in range(3):
        watched.sample(ended, states.job(watched.busy(3), jid="e" * 32, state="FAILED"))
    assert watched.job().figures[BUSY].tolist() == [1, 2]
    assert watched.history.job("e" * 32) is None
    watched.sample()
    assert watched.history.job(states.JID) is None
    assert watched.history.vertex(states.JID, states.VERTEX) is None
    assert watched.history.nbytes == 0


def test_nobody_knows_what_a_silent_driver_does(watched: Watched, states: Any) -> None:
    """There are no samples while it is SUSPENDED, and it goes on afterwards."""
    for state in ("RUNNING", "SUSPENDED", "SUSPENDED", "RUNNING"):
        watched.sample(states.job(watched.busy(4), state=state))
    assert ((watched.job().times_ms - NOW_MS) // SAMPLE_INTERVAL_MS).tolist() == [0, 3]


def test_a_vertex_goes_with_its_plan(watched: Watched, states: Any) -> None:
    """What the job no longer has, nobody asks for; what comes later begins when it comes."""
    first, second = watched.busy(1, id="a" * 32), watched.busy(2, id="b" * 32)
    watched.sample(states.job(first))
    watched.sample(states.job(first, second))
    later = watched.history.vertex(states.JID, "b" * 32)
    assert later is not None
    assert later.times_ms.tolist() == [NOW_MS + SAMPLE_INTERVAL_MS]
    watched.sample(states.job(second))
    assert watched.history.vertex(states.JID, "a" * 32) is None


def test_a_job_is_as_busy_as_its_busiest_vertex_of_today(watched: Watched, states: Any) -> None:
    """One that the latest plan does not have any more counts no more."""
    watched.sample(
        states.job(
            watched.busy(1, id="a" * 32), watched.busy(7, id="b" * 32), watched.busy(9, id="c" * 32, current=False)
        )
    )
    assert watched.job().figures[BUSY].tolist() == [7]


def test_heat_is_what_arrived(watched: Watched, states: Any, frames: Any) -> None:
    """Between two samples, by the bounds; nothing at the first look, and no heat where nothing ever arrived."""
    told = [(3,), (3, 4, 100, 5_000), (3, 4, 100, 5_000), (3, 4, 100, 5_000, 4_100_000, 10**7)]
    for values in told:
        held = Latencies(histograms={(f"{0:032x}", "f" * 32): frames.histogram(*values)})
        watched.sample(states.job(states.vertex(operators={"Sink": {}}, latencies=held, feeds=False)))
    heat = watched.history.heat(states.JID, states.VERTEX)
    assert heat is not None
    assert ((heat.times_ms - NOW_MS) // SAMPLE_INTERVAL_MS).tolist() == [1, 2, 3]
    place = {bound: BOUNDS_MS.index(bound) for bound in (5, 100, 7_999)}
    first = heat.counts[0].tolist()
    assert [first[place[bound]] for bound in (5, 100, 7_999)] == [1, 1, 1]
    assert heat.counts.sum(axis=1).tolist() == [3, 0, 2]
    assert heat.counts[2, -1] == 2
    for course in (watched.job(), watched.history.vertex(states.JID, states.VERTEX)):
        assert course is not None
        np.testing.assert_array_equal(course.figures["latency.p50"], [np.nan, 100, np.nan, 4_112_383])
    watched.sample(states.job(states.vertex(id="a" * 32)))
    assert watched.history.heat(states.JID, "a" * 32) is None
    assert watched.history.heat("0" * 32, states.VERTEX) is None


def test_a_run_counts_from_zero(watched: Watched, states: Any, frames: Any) -> None:
    """All that a new run has told arrived since, be it more than the run before had."""
    for run, values in (("first", (3, 3)), ("second", (3, 3, 3))):
        held = Latencies(histograms={(f"{0:032x}", "f" * 32): frames.histogram(*values)})
        vertex = states.vertex(operators={"Sink": {}}, latencies=held)
        watched.sample(states.job(vertex, attempt=wire.Attempt(1, run)))
    heat = watched.history.heat(states.JID, states.VERTEX)
    assert heat is not None
    assert heat.counts.sum() == 3


def test_past_its_room_nothing_new_is_taken_in(states: Any) -> None:
    """What is there goes on; how much is missing is told, and what leaves makes room."""
    job, vertex = Ring(len(JOB_FIGURES), np.float32).nbytes, Ring(len(VERTEX_FIGURES), np.float32).nbytes
    watched = Watched(states, job + vertex)
    first, second = (states.job(watched.busy(1), jid=jid) for jid in ("a" * 32, "b" * 32))
    watched.sample(first)
    assert (watched.history.nbytes, watched.history.left_out) == (job + vertex, 0)
    wider = states.job(watched.busy(1), watched.busy(2, id="d" * 32), jid="a" * 32)
    watched.sample(wider, second)
    assert watched.history.left_out == 3
    assert watched.history.job("b" * 32) is None
    assert len(watched.job("a" * 32).times_ms) == 2
    assert watched.history.vertex("a" * 32, "d" * 32) is None
    watched.sample(second)
    assert watched.history.job("b" * 32) is not None
    assert (watched.history.nbytes, watched.history.left_out) == (job + vertex, 0)


def test_what_no_float32_holds_is_not_known(watched: Watched, states: Any) -> None:
    """A hostile driver's figures make no warnings and no infinities."""
    huge = states.vertex(2, columns={IN: states.column(1e308, 1e308), names.BUSY_TIME: states.column(1e39, 2.0)})
    watched.sample(states.job(huge))
    assert watched.job().figures == {}
