"""What latencies are kept, told apart by what, and that they are those that were recorded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_hooks import latencies
from spark_hooks.latencies import Arrivals, Latencies, Window
from spark_hooks.routes import Station
from streamgauge import wire
from streamgauge.buckets import ValueWindow, WindowStatistics
from tests.unit.spark_hooks.marker_runs import statistics

MIDDLE = Station(("op",), frozenset({"in"}), sink=False)
END = Station(("end",), frozenset({"in"}), sink=True)

Key = tuple[str, int, tuple[str, ...]]


def arrivals(
    source: str, sources: list[int], subtasks: list[int], queueing: list[int], processing: list[int]
) -> Arrivals:
    return Arrivals(source, *(np.array(values, dtype=np.int64) for values in (sources, subtasks, queueing, processing)))


def told(held: Latencies, vertex: str = "v", size: int = 2) -> dict[Key, list[float]]:
    """Every window that is told → how many values each subtask had."""
    return {
        (each.source, each.source_subtask, each.operators): [figures["count"] for figures in statistics(each)]
        for each in held.latencies(vertex, size, lambda key, state: True)
    }


recorded = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 50) | st.integers(0, 10**9)), max_size=30),
    max_size=8,
)


@settings(deadline=None, max_examples=60)
@given(recorded, st.integers(1, 7))
def test_windows_tell_what_one_window_a_subtask_tells(batches: list[list[tuple[int, int, int]]], history: int) -> None:
    """To the bit: the last values of each subtask of the source at each subtask, however they came in."""
    window = Window(history)
    expected: dict[tuple[int, int], ValueWindow] = {}
    for batch in batches:
        if not batch:
            continue
        sources, subtasks, values = (np.array(column, dtype=np.int64) for column in zip(*batch, strict=True))
        window.register(int(sources.max()) + 1, int(subtasks.max()) + 1)
        window.record(sources, subtasks, values)
        for source, subtask, value in batch:
            expected.setdefault((source, subtask), ValueWindow(history)).record(value)
        # Figures are worked out when they are asked for: between the batches too, for those that were changed.
        window.told(0, 1)
    for each in range(window.shape[0]):
        counts, figures = window.told(each, 4)
        for subtask, found in enumerate(statistics(wire.Latency("", each, (), counts, figures))):
            single = expected.get((each, subtask))
            assert found.pop("count") == (single.count if single else 0)
            if single:
                alone = single.statistics()
                assert list(found.values()) == [getattr(alone, name) for name in WindowStatistics.__slots__]
            else:
                assert all(np.isnan(figure) for figure in found.values())


def test_a_window_is_told_in_the_width_that_is_asked_for() -> None:
    """A column has a value for every subtask of the vertex, and no more."""
    window = Window(3)
    window.register(1, 2)
    window.record(np.array([0]), np.array([1]), np.array([5]))
    for size in (1, 2, 4):
        counts, figures = window.told(0, size)
        assert (len(counts), len(figures)) == (8 * size, 88 * size)
    assert np.frombuffer(window.told(0, 4)[0], dtype="<i8").tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("granularity", "middle", "end"),
    [
        ("operator", {("s", -1), ("t", -1)}, {("s", -1), ("t", -1), ("s", 0), ("s", 1), ("t", 0)}),
        ("single", {("s", -1), ("t", -1), ("", -1)}, {("s", -1), ("t", -1), ("", -1), ("s", 0), ("s", 1), ("t", 0)}),
        (
            "subtask",
            {("s", -1), ("t", -1), ("s", 0), ("s", 1), ("t", 0)},
            {("s", -1), ("t", -1), ("s", 0), ("s", 1), ("t", 0)},
        ),
    ],
)
def test_granularity_says_what_is_told_beside_the_sources(
    granularity: wire.LatencyGranularity, middle: set[tuple[str, int]], end: set[tuple[str, int]]
) -> None:
    """Each source always; the older form of the ids has the source's subtasks at sinks whatever is set."""
    held = Latencies(granularity, 128)
    for station in (MIDDLE, END):
        held.record("v", station, arrivals("s", [0, 1, 0], [0, 0, 1], [1, 2, 3], [4, 5, 6]))
        held.record("v", station, arrivals("t", [0], [1], [1], [1]))
    found = told(held)
    assert {key[:2] for key in found if key[2] == ("op",)} == middle
    assert {key[:2] for key in found if key[2] == ("end",)} == end
    assert found["s", -1, ("op",)] == [2, 1]
    if granularity == "single":
        assert found["", -1, ("op",)] == [2, 2]
    assert (found["s", 0, ("end",)], found["s", 1, ("end",)]) == ([1, 1], [1, 0])


def test_histograms_hold_the_whole_and_its_parts() -> None:
    """Of every source; sums are exact."""
    held = Latencies("operator", 1)
    held.record("v", MIDDLE, arrivals("s", [0, 1], [0, 0], [100, 200], [7, 8]))
    held.record("v", MIDDLE, arrivals("s", [0], [1], [300], [9]))
    [found] = held.histograms("v", lambda key, state: True)
    assert (found.source, found.operators) == ("s", ("op",))
    assert [each.sum_ms for each in (found.total, found.queueing, found.processing)] == [624, 600, 24]
    assert np.frombuffer(found.total.counts, dtype="<i8").sum() == 3
    assert np.frombuffer(found.processing.indices, dtype="<u2").tolist() == [7, 8, 9]


def test_only_what_is_wanted_is_told_and_its_state_changes_when_it_does() -> None:
    """So that what has not moved need not travel."""
    held = Latencies("operator", 8)
    held.record("v", MIDDLE, arrivals("s", [0], [0], [1], [1]))
    held.record("v", END, arrivals("s", [0], [0], [1], [1]))

    def states() -> dict[tuple[str, ...], tuple[int, int]]:
        asked: dict[tuple[str, ...], tuple[int, int]] = {}

        def refuse(key: tuple[str, ...], state: tuple[int, int]) -> bool:
            asked[key] = state
            return False

        assert not list(held.latencies("v", 2, refuse))
        assert not list(held.histograms("v", refuse))
        return asked

    before = states()
    assert len(before) == 5
    assert states() == before
    held.record("v", END, arrivals("s", [0], [0], [1], [1]))
    after = states()
    assert len([key for key in after if after[key] != before[key]]) == 3


def test_windows_of_single_source_subtasks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the bound no more are begun; those that are there go on, and all together are always told."""
    monkeypatch.setattr(latencies, "SUBTASK_WINDOWS", 4)
    held = Latencies("operator", 8)
    held.record("v", END, arrivals("s", [0, 1], [0, 1], [1, 1], [1, 1]))
    held.record("v", END, arrivals("s", [0, 1, 2], [0, 1, 0], [1, 1, 1], [1, 1, 1]))
    held.record("w", END, arrivals("s", [0], [0], [1], [1]))
    found = told(held)
    assert found["s", 0, ("end",)] == [2, 0]
    assert ("s", 2, ("end",)) not in found
    assert found["s", -1, ("end",)] == [3, 2]
    assert set(told(held, "w")) == {("s", -1, ("end",))}


def test_values_in_windows_are_bounded_and_histograms_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with very many subtasks does not take the driver's memory."""
    monkeypatch.setattr(latencies, "VALUES", 16)
    held = Latencies("operator", 8)
    held.record("v", MIDDLE, arrivals("s", [0, 0], [0, 1], [1, 1], [1, 1]))
    held.record("w", MIDDLE, arrivals("s", [0], [0], [1], [1]))
    assert told(held) == {("s", -1, ("op",)): [1, 1]}
    assert told(held, "w") == {}
    assert len(list(held.histograms("w", lambda key, state: True))) == 1


def test_vertices_that_are_gone_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the job has forgotten is not told any more, and counts no more."""
    monkeypatch.setattr(latencies, "VALUES", 16)
    monkeypatch.setattr(latencies, "SUBTASK_WINDOWS", 1)
    held = Latencies("operator", 8)
    held.record("v", END, arrivals("s", [0], [0], [1], [1]))
    held.keep({"w"})
    assert told(held) == {}
    held.record("w", END, arrivals("s", [0], [0], [1], [1]))
    assert set(told(held, "w")) == {("s", -1, ("end",)), ("s", 0, ("end",))}
