"""What arrived between two looks, against the values that were recorded between them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from collector.arrivals import Arrivals, Arrived
from collector.histogram import Histogram, histogram, merge
from collector.latencies import Latencies
from streamgauge import wire

SOURCE, OTHER = "a" * 32, "b" * 32
FIRST, LAST = f"{0:032x}", f"{1:032x}"


def recorded(frames: Any, *values: int) -> Histogram:
    return histogram(frames.buckets(*values))


def at(states: Any, held: dict[tuple[str, str], wire.LatencyHistogram]) -> Any:
    return states.vertex(operators={"Scan": {}, "Filter": {}}, latencies=Latencies(histograms=held))


def same(one: Histogram, other: Histogram) -> bool:
    return (one.buckets.indices.tolist(), one.buckets.counts.tolist(), one.buckets.below, one.buckets.sum_ms) == (
        other.buckets.indices.tolist(),
        other.buckets.counts.tolist(),
        other.buckets.below,
        other.buckets.sum_ms,
    )


VALUES = st.lists(st.integers(0, 100_000), max_size=5)
LOOKS = st.lists(
    st.tuples(st.booleans(), st.dictionaries(st.sampled_from([SOURCE, OTHER]), VALUES)), min_size=1, max_size=8
)


@given(LOOKS)
def test_what_arrived_is_what_was_recorded_since(
    frames: Any, states: Any, looks: list[tuple[bool, dict[str, list[int]]]]
) -> None:
    """Of all sources; a new run counts from 0, and at the first look nobody knows."""
    arrivals, run = Arrivals(), 0
    held: dict[str, list[int]] = defaultdict(list)
    for place, (restarts, more) in enumerate(looks):
        if restarts:
            run, held = run + 1, defaultdict(list)
        for source, values in more.items():
            held[source] += values
        told = {
            key: frames.histogram(*values, source=key[1])
            for source, values in held.items()
            for key in ((FIRST, source), (LAST, source))
        }
        arrived = arrivals.look(at(states, told), f"run {run}")
        if place == 0 or not told:
            assert arrived is None
            continue
        assert arrived is not None
        new = [value for values in more.values() for value in values]
        assert same(arrived.total, recorded(frames, *new))
        assert same(arrived.queueing, recorded(frames, *(value // 3 for value in new)))
        assert same(arrived.processing, recorded(frames, *(value - value // 3 for value in new)))


def test_a_marker_counts_where_it_leaves(frames: Any, states: Any) -> None:
    """At the last operator that has any: it passed the others before."""
    arrivals = Arrivals()
    arrivals.look(at(states, {(FIRST, SOURCE): frames.histogram(1)}), "run")
    both = {(FIRST, SOURCE): frames.histogram(1, 2), (LAST, SOURCE): frames.histogram(5)}
    arrived = arrivals.look(at(states, both), "run")
    assert arrived is not None
    assert same(arrived.total, recorded(frames, 5))


def test_less_than_before_has_begun_anew(frames: Any, states: Any) -> None:
    """Whatever run it says that it is of: no count is ever below 0."""
    arrivals = Arrivals()
    arrivals.look(at(states, {(LAST, SOURCE): frames.histogram(1, 1, 9)}), "run")
    arrived = arrivals.look(at(states, {(LAST, SOURCE): frames.histogram(1, 8)}), "run")
    assert arrived is not None
    assert same(arrived.total, recorded(frames, 1, 8))


def test_several_places_are_one(frames: Any) -> None:
    """As where a job has two sinks."""
    one, other = (Arrived(*(recorded(frames, value) for _ in range(3))) for value in (3, 4))
    assert same(Arrived.of([one, other]).total, merge([one.total, other.total]))
