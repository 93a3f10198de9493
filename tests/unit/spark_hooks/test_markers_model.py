"""Whatever the course of a run, every marker's fate is that of a slow model that takes them one by one."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import hypothesis.strategies as st
from hypothesis import given, settings

from spark_hooks.markers import Emission
from tests.unit.spark_hooks.marker_runs import MarkerRun, source, statistics

CHAIN = "Source: RateStream -> Filter -> Project -> Sink: Noop"
TOLERANCE_MS = 100


@dataclass
class Marker:
    """One marked time."""

    marked_ms: int
    fate: str = "open"
    target: object = None


def _reached(end: object, target: object) -> bool | None:
    """None where these are no numbers nor maps of the same partitions."""
    if isinstance(end, int) and isinstance(target, int):
        return end >= target
    if isinstance(end, dict) and isinstance(target, dict):
        return all(end[partition] >= target[partition] for partition in target)
    return True if end == target else None


def _between(before: object, after: object, way: Fraction) -> object:
    """Where a source stood that grew evenly; `after` where that cannot be told."""
    if isinstance(before, int) and isinstance(after, int):
        return before + math.ceil((after - before) * way)
    if isinstance(before, dict) and isinstance(after, dict):
        return {partition: _between(before[partition], after[partition], way) for partition in after}
    return after


@dataclass
class SlowModel:
    """
    The rules in words: the first trigger at or after the marked time binds it. It is the next slot, or without an
    interval the marked time itself, or the running batch's end if that is later, or an earlier one where a batch began.
    Where no batch began within 100 ms, it is dropped. Where a batch has not read all that the source had, the marker
    stands where the source stood at the marked time, which grew evenly since the batch before; the first batch that
    reaches that carries it.
    """

    slot_ms: int
    interval_ms: int
    markers: list[Marker] = field(default_factory=list)
    latencies: list[int] = field(default_factory=list)
    busy_until_ms: int = -1
    before: tuple[int, object] | None = None

    def look(self, now_ms: int) -> None:
        while len(self.markers) * self.interval_ms <= now_ms:
            self.markers.append(Marker(len(self.markers) * self.interval_ms))

    def trigger_ms(self, marker: Marker) -> int:
        due = marker.marked_ms
        if self.slot_ms:
            due += -due % self.slot_ms
        return max(due, self.busy_until_ms)

    def batch(self, begin_ms: int, executed_ms: int, end_ms: int, start: object, end: object, latest: object) -> None:
        self.look(begin_ms)
        for marker in self.markers:
            if marker.fate == "waiting" and _reached(end, marker.target) is not False:
                self.carry(marker, executed_ms)
            elif marker.fate == "open" and marker.marked_ms <= begin_ms:
                if self.trigger_ms(marker) < begin_ms - TOLERANCE_MS:
                    marker.fate = "idle"
                elif latest is not None and _reached(end, latest) is False:
                    marker.fate, marker.target = "waiting", self.stood(marker, begin_ms, latest)
                    if start != end and _reached(end, marker.target) is not False:
                        self.carry(marker, executed_ms)
                elif start == end:
                    marker.fate = "idle"
                else:
                    self.carry(marker, executed_ms)
        self.busy_until_ms = end_ms
        self.before = None if latest is None else (begin_ms, latest)

    def stood(self, marker: Marker, begin_ms: int, latest: object) -> object:
        if self.before is None:
            return latest
        before_ms, before = self.before
        way = Fraction(marker.marked_ms - before_ms, max(begin_ms - before_ms, 1))
        return _between(before, latest, min(max(way, Fraction(0)), Fraction(1)))

    def carry(self, marker: Marker, executed_ms: int) -> None:
        marker.fate = "recorded"
        self.latencies.append(executed_ms - marker.marked_ms)

    def idle(self, now_ms: int) -> None:
        self.look(now_ms)
        for marker in self.markers:
            if marker.fate == "open" and self.trigger_ms(marker) < now_ms - TOLERANCE_MS:
                marker.fate = "idle"

    def end(self, now_ms: int) -> None:
        self.look(now_ms)
        for marker in self.markers:
            if marker.fate in ("open", "waiting"):
                marker.fate = "ended"

    def figures(self) -> dict[str, int]:
        found = Counter("flying" if each.fate in ("open", "waiting") else each.fate for each in self.markers)
        found["emitted"] = len(self.markers)
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True)
class Step:
    """
    What happens next.

    Args:
        what: A micro-batch, the query's word that it waits, or a look at the clock.
        gap_ms: Before it.
        on_slot: A batch waits for the next slot besides.
        took_ms, commit_ms: Of a batch, until it had been executed, and from there.
        more, other: Rows that two partitions of the source have got.
        reads: Rows that a batch reads at most.
    """

    what: str
    gap_ms: int
    on_slot: bool
    took_ms: int
    commit_ms: int
    more: int
    other: int
    reads: int


_steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(["batch", "batch", "idle", "look"]),
        st.sampled_from([0, 1, 3, 50, 100, 101, 150, 700, 2_000, 9_000, 31_000]),
        st.booleans(),
        st.sampled_from([0, 10, 900, 1_900, 2_000, 4_100, 12_000]),
        st.sampled_from([0, 5, 400]),
        st.integers(0, 5),
        st.integers(0, 3),
        st.integers(0, 5),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=400)
@given(
    _steps,
    st.sampled_from([0, 1_000, 3_000, 5_000]),
    st.sampled_from([100, 700, 2_000]),
    st.sampled_from(["number", "map", "unknown", "none"]),
    st.booleans(),
)
def test_fates_and_latencies_are_those_of_the_slow_model(
    steps: list[Step], slot_ms: int, interval_ms: int, kind: str, ends: bool
) -> None:
    """Binding, waiting and dropping, for every kind of offset and trigger; at every step."""
    run = MarkerRun(emission=Emission(interval_ms, history_size=10_000), trigger=f"ProcessingTimeTrigger({slot_ms})")
    slow = SlowModel(slot_ms, interval_ms)
    now_ms = 0
    stands, read = [0, 0], [0, 0]
    told_before: object = None

    def offset(values: list[int]) -> object:
        return values[0] if kind == "number" else dict(zip("ab", values, strict=True)) if kind == "map" else str(values)

    for step in steps:
        now_ms += step.gap_ms
        if step.what == "batch":
            if step.on_slot and slot_ms:
                now_ms += -now_ms % slot_ms
            stands = [stands[0] + step.more, stands[1] + step.other]
            read = [min(read[0] + step.reads, stands[0]), min(read[1] + step.reads // 2, stands[1])]
            end, latest = offset(read), None if kind == "none" else offset(stands)
            executed_ms = now_ms + step.took_ms
            end_ms = executed_ms + step.commit_ms
            run.batch(now_ms, executed_ms, end_ms, {CHAIN: {0: executed_ms}}, source(told_before, end, latest))
            slow.batch(now_ms, executed_ms, end_ms, told_before, end, latest)
            now_ms, told_before = end_ms, end
        elif step.what == "idle":
            run.markers.idle(now_ms)
            slow.idle(now_ms)
        else:
            run.markers.look(now_ms)
            slow.look(now_ms)
        assert run.figures() == slow.figures()
    if ends:
        run.markers.end(now_ms)
        slow.end(now_ms)
        assert run.figures() == slow.figures()
    vertex = run.vertex(CHAIN)
    for told in run.latencies.latencies(vertex.id, 1, lambda key, state: True):
        if vertex.operators[-1].id in told.operators:
            [figures] = statistics(told)
            assert figures["count"] == len(slow.latencies)
            assert (figures["min"], figures["max"]) == (min(slow.latencies), max(slow.latencies))
            assert round(figures["mean"] * figures["count"]) == sum(slow.latencies)
