"""What full frames and deltas make of the latencies before them."""

from __future__ import annotations

import pytest

from collector.latencies import LatencyKey
from streamgauge.errors import MalformedFrame

OTHER = "d" * 32
SECOND = "e" * 32


@pytest.fixture
def held(collector, frames):
    """A vertex of two operators and two subtasks: one window and one histogram of both, one window of all sources."""
    both = (frames.OPERATOR, SECOND)
    plan = frames.plan(frames.vertex(operators=both), frames.vertex(OTHER, operators=()))
    latencies = (frames.latency(3, 0, operators=both), frames.latency(5, 1, source="", operators=both))
    figures = frames.figures(latencies=latencies, histograms=(frames.histogram(7, 9, operators=both),))
    collector.push(frames.frame(plan=plan, vertices=(figures,)))
    return collector


def _of(collector, frames):
    return collector.job().vertices[frames.VERTEX].latencies


def _delta(frames, **figures):
    return frames.frame(seq=2, base=1, vertices=(frames.figures(**figures),))


def test_operators_share_what_they_see(held, frames):
    """Each operator has its key; the arrays and the histogram are there once, and counted once."""
    latencies = _of(held, frames)
    first, second = (latencies.windows[LatencyKey(one, frames.VERTEX, -1)] for one in (frames.OPERATOR, SECOND))
    assert first is second
    assert (first.counts.tolist(), first.statistics[:, 0].tolist()) == ([3, 0], [100.0 * row for row in range(11)])
    assert len(latencies.windows) == 4
    one, other = (latencies.histograms[one, frames.VERTEX] for one in (frames.OPERATOR, SECOND))
    assert one is other
    # Keys; two windows of a count and 11 figures for 2 subtasks; 2 buckets in each part, and 3 further numbers.
    assert latencies.series == 4 + 2 + 2 * 12 * 2 + 3 * (2 + 3)
    assert held.job().series == latencies.series


def test_delta_replaces_the_latencies_it_has_and_keeps_the_rest(held, frames):
    """By operator, source and source subtask: an operator may leave those that it shared with."""
    before = _of(held, frames)
    held.push(_delta(frames, latencies=(frames.latency(8, 8, operators=(SECOND,)),)))
    after = _of(held, frames)
    assert after.windows[LatencyKey(SECOND, frames.VERTEX, -1)].counts.tolist() == [8, 8]
    kept = LatencyKey(frames.OPERATOR, frames.VERTEX, -1)
    assert after.windows[kept] is before.windows[kept]
    assert after.histograms == before.histograms
    assert before.windows[LatencyKey(SECOND, frames.VERTEX, -1)].counts.tolist() == [3, 0]
    assert after.series == before.series + 24


def test_delta_replaces_histograms(held, frames):
    """A histogram replaces the one that was there; it is of the whole run."""
    held.push(_delta(frames, histograms=(frames.histogram(7, 9, 11, operators=(SECOND,)),)))
    after = _of(held, frames).histograms
    assert after[SECOND, frames.VERTEX] == frames.histogram(7, 9, 11, operators=(SECOND,))
    assert after[frames.OPERATOR, frames.VERTEX].total == frames.buckets(7, 9)


def test_delta_without_latencies_keeps_them(held, frames):
    """Nothing was said, nothing has changed."""
    before = _of(held, frames)
    held.push(_delta(frames, columns=(frames.column("numRecordsIn", 1, 2),)))
    assert _of(held, frames) is before


def test_full_frame_tells_all(held, frames):
    """What a full frame does not repeat is gone."""
    held.push(frames.frame(seq=2, vertices=(frames.figures(latencies=(frames.latency(1, 1),)),)))
    latencies = _of(held, frames)
    assert list(latencies.windows) == [LatencyKey(frames.OPERATOR, frames.VERTEX, -1)]
    assert (dict(latencies.histograms), held.job().series) == ({}, 25)


def test_ended_job_keeps_its_latencies(held, frames):
    """They are what one looks for; only shares of time are taken away."""
    before = _of(held, frames)
    held.push(frames.frame(seq=2, base=1, job=frames.job(state="FINISHED")))
    assert _of(held, frames) is before


@pytest.mark.parametrize("latency", ["latencies", "histograms"])
@pytest.mark.parametrize("operator", [False, True], ids=["source", "operator"])
def test_latency_of_the_unknown_is_malformed(held, frames, latency, operator):
    """An operator is one of the vertex, a source one of the job's vertices."""
    before = held.store.snapshot()
    whose = {"operators": ("f" * 32,)} if operator else {"source": "f" * 32}
    told = frames.latency(1, 1, **whose) if latency == "latencies" else frames.histogram(1, **whose)
    named = (
        "operator 'f+' of a latency is not in the vertex's" if operator else "source 'f+' of a latency is not in the"
    )
    with pytest.raises(MalformedFrame, match=f"{named} .*plan: send the plan with the first frame"):
        held.push(_delta(frames, **{latency: (told,)}))
    assert held.store.snapshot() is before


def test_source_may_be_another_vertex(held, frames):
    """It mostly is."""
    held.push(_delta(frames, latencies=(frames.latency(1, 1, source=OTHER, subtask=4),)))
    assert LatencyKey(frames.OPERATOR, OTHER, 4) in _of(held, frames).windows


def test_vertex_that_grows_needs_its_latencies_anew(held, frames):
    """As its columns: each has a value for every subtask."""
    both = (frames.OPERATOR, SECOND)
    with pytest.raises(MalformedFrame, match=r"size changed from 2 to 3, but latencies of operator 'b+' were not sent"):
        held.push(_delta(frames, size=3, latencies=(frames.latency(3, 0, 1, operators=both),)))
    whole = (frames.latency(3, 0, 1, operators=both), frames.latency(5, 1, 2, source="", operators=both))
    held.push(_delta(frames, size=3, latencies=whole))
    assert {window.counts.size for window in _of(held, frames).windows.values()} == {3}


def test_plan_that_lost_an_operator_or_a_source_takes_its_latencies_along(held, frames):
    """What cannot be shown must not be held."""
    held.push(
        _delta(frames, latencies=(frames.latency(1, 1, source=OTHER),), histograms=(frames.histogram(source=OTHER),))
    )
    plan = frames.plan(frames.vertex(operators=(frames.OPERATOR,)))
    held.push(frames.frame(seq=3, base=2, plan=plan))
    latencies = _of(held, frames)
    assert {key.operator for key in latencies.windows} == {frames.OPERATOR}
    assert {key.source for key in latencies.windows} == {frames.VERTEX, ""}
    assert list(latencies.histograms) == [(frames.OPERATOR, frames.VERTEX)]
    assert held.job().series == latencies.series


def test_plan_that_has_all_keeps_the_same_latencies(held, frames):
    """A plan that comes again copies nothing."""
    before = _of(held, frames)
    both = (frames.OPERATOR, SECOND)
    plan = frames.plan(frames.vertex(operators=both), frames.vertex(OTHER, operators=()))
    held.push(frames.frame(seq=2, base=1, plan=plan))
    assert _of(held, frames) is before
