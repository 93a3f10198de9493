"""A ring is the end of a list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collector.ring import CAPACITY, Ring


@given(st.lists(st.integers(0, 1_000), max_size=3 * CAPACITY), st.none() | st.integers(-1, 1_001))
def test_the_latest_rows_are_there_in_order(times: list[int], since_ms: int | None) -> None:
    """However many there were, and whether or not clocks went back; `since` leaves out what is not after it."""
    ring = Ring(2, np.float32)
    empty = ring.nbytes
    for number, time_ms in enumerate(times):
        ring.add(time_ms, [number, time_ms])
    expected = [(time, [number, time]) for number, time in enumerate(times)][-CAPACITY:]
    expected = [each for each in expected if since_ms is None or each[0] > since_ms]
    told_ms, rows = ring.since(since_ms)
    assert told_ms.tolist() == [time for time, _ in expected]
    assert rows.tolist() == [row for _, row in expected]
    assert rows.shape == (len(expected), 2)
    assert ring.nbytes == empty


def test_what_was_read_does_not_change() -> None:
    """Nor does the ring where a reader changes what is its own."""
    ring = Ring(1, np.uint32)
    ring.add(1, [7])
    times_ms, rows = ring.since(None)
    for time_ms in range(2, CAPACITY + 2):
        ring.add(time_ms, [9])
    assert (times_ms.tolist(), rows.tolist()) == ([1], [[7]])
    ring.since(None)[1][:] = 0
    assert ring.since(None)[1].tolist() == [[9]] * CAPACITY
