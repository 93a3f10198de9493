"""A tap's row, as Spark's progress has it, becomes figures; what no tap wrote becomes nothing."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_hooks.tap_rows import DELAY_BUCKETS, PREFIX, Options, SplitRow, TapRow, tap_rows, users

OPTIONS: dict[str, Any] = {
    "version": 1,
    "event_time": True,
    "ingest_time": True,
    "by": "column",
    "splits": ["a", "b"],
    "max_out_of_orderness_ms": 10_000,
    "idleness_ms": 60_000,
}
ROW: dict[str, Any] = {
    "rows": 9,
    "event_min": 1_000,
    "event_max": 9_000,
    "split_rows": 6,
    "rows_0": 4,
    "min_0": 1_000,
    "max_0": 5_000,
    "rows_1": 0,
    "ingest_rows": 8,
    "delays": [{"x": 0, "y": 1.0}, {"x": 67, "y": 2.0}, {"x": 67.0, "y": 3.0}, {"x": 110, "y": 1}],
}


def row(*without: str, options: dict[str, Any] | None = None, **changed: object) -> dict[str, object]:
    """A row of a tap, with other values or without some."""
    whole = {"options": json.dumps(OPTIONS | (options or {})), **ROW, **changed}
    return {column: value for column, value in whole.items() if column not in without}


def read(told: object, name: str = "clicks") -> list[TapRow]:
    return list(tap_rows({PREFIX + name: told}))


def test_row_tells_everything() -> None:
    """Options, counts, event times and delays; a delay that Spark lists twice is one."""
    assert read(row()) == [
        TapRow(
            name="clicks",
            event_time=True,
            ingest_time=True,
            by="column",
            max_out_of_orderness_ms=10_000,
            idleness_ms=60_000,
            rows=9,
            event_min_ms=1_000,
            event_max_ms=9_000,
            splits=(SplitRow("a", 4, 1_000, 5_000), SplitRow("b", 0, None, None)),
            unwatched=2,
            delays={-1: 1, 0: 1, 67: 5, 998: 1},
        )
    ]


def test_batch_without_rows_has_no_times() -> None:
    """Spark tells null, or nothing."""
    told = row("delays", rows=0, event_min=None, event_max=None, split_rows=0, rows_0=0, min_0=None, max_0=None)
    told |= {"ingest_rows": 0}
    (found,) = read(told)
    assert (found.rows, found.event_min_ms, found.event_max_ms, found.unwatched, found.delays) == (0, None, None, 0, {})
    assert found.splits == (SplitRow("a", 0, None, None), SplitRow("b", 0, None, None))


def test_tap_without_times_counts() -> None:
    """What was not asked for is not there, and not looked at."""
    plain = {"event_time": False, "ingest_time": False, "by": None, "splits": [], "idleness_ms": None}
    (found,) = read({"options": json.dumps(OPTIONS | plain), "rows": 3, "delays": "odd", "event_min": "odd"})
    assert (found.rows, found.splits, found.event_min_ms, found.idleness_ms, found.delays) == (3, (), None, None, {})


def test_options_read_what_they_write() -> None:
    """The tap's side and the reader's are one struct."""
    options = Options(**{**OPTIONS, "splits": ("a", "b")})
    (found,) = read(row(options={"splits": list(options.splits)}))
    assert tuple(split.name for split in found.splits) == options.splits


@pytest.mark.parametrize("delay_ms", [0, 1, 2, 3, 5, 10, 17, 18, 19, 20, 31, 100, 999, 12_345, 3_600_000, 10**9, 2**62])
def test_a_delay_is_told_within_its_bucket(delay_ms: int) -> None:
    """Exact below 18 ms, else within 1 ms or 3.2 %, however long it is."""
    bucket = int(math.log(delay_ms + 1) * DELAY_BUCKETS)
    (found,) = read(row(ingest_rows=1, delays=[{"x": bucket, "y": 1.0}]))
    (told,) = found.delays
    assert abs(told - delay_ms) <= (0 if delay_ms < 18 else max(1, 0.032 * delay_ms))


MALFORMED = {
    "no row": [1, 2],
    "no options": row("options"),
    "options of another kind": row() | {"options": {"version": 1}},
    "options that are no JSON": row() | {"options": "{"},
    "deep options": row() | {"options": "[" * 100_000},
    "long options": row(options={"splits": ["x" * 100_000]}),
    "lone surrogate": row() | {"options": '"\ud800"'},
    "another version": row(options={"version": 2}),
    "by something else": row(options={"by": "colour"}),
    "splits by nothing": row(options={"by": None}),
    "no splits by something": row(options={"splits": []}),
    "splits without event time": row(options={"event_time": False}),
    "a split twice": row(options={"splits": ["a", "a"]}),
    "too many splits": row(options={"splits": [str(split) for split in range(65)]}),
    "a split without a name": row(options={"splits": ["a", ""]}),
    "a long name": row(options={"splits": ["a", "b" * 201]}),
    "negative out-of-orderness": row(options={"max_out_of_orderness_ms": -1}),
    "huge out-of-orderness": row(options={"max_out_of_orderness_ms": 2**63}),
    "no idleness": row(options={"idleness_ms": 0}),
    "no rows": row("rows"),
    "negative rows": row(rows=-1),
    "rows as text": row(rows="9"),
    "rows as truth": row(rows=True),
    "rows in parts": row(rows=9.0),
    "huge rows": row(rows=2**53 + 1),
    "half a range": row(event_min=None),
    "a range backwards": row(event_min=9_001),
    "a time as text": row(event_max="9000"),
    "huge time": row(event_max=2**63),
    "NaN time": row(event_max=float("nan")),
    "rows of a split without times": row("min_0", "max_0"),
    "times of a split without rows": row(min_1=1, max_1=1),
    "a split without rows told": row("rows_1"),
    "more rows of splits than there are": row(split_rows=3),
    "no ingest rows": row("ingest_rows"),
    "more delays than ingest rows": row(ingest_rows=6),
    "delays of another kind": row(delays={"x": 1, "y": 1}),
    "delays as text": row(delays="31"),
    "a delay of another kind": row(delays=[31]),
    "a delay without count": row(delays=[{"x": 31}]),
    "NaN delay": row(delays=[{"x": float("nan"), "y": 1.0}]),
    "infinite count": row(delays=[{"x": 31, "y": float("inf")}]),
    "half a count": row(delays=[{"x": 31, "y": 0.5}]),
    "a count below none": row(delays=[{"x": 31, "y": -1.0}]),
    "a delay below all": row(delays=[{"x": -1, "y": 1.0}]),
    "a huge delay": row(delays=[{"x": 1e300, "y": 1.0}]),
    "a huge bucket": row(delays=[{"x": 64 * 16, "y": 1.0}]),
    "a huge count": row(delays=[{"x": 31, "y": 2**53 + 1}]),
    "too many delays": row(delays=[{"x": delay, "y": 1} for delay in range(1001)]),
}


@pytest.mark.parametrize("told", MALFORMED.values(), ids=MALFORMED)
def test_what_no_tap_wrote_is_nothing(told: object) -> None:
    """Neither a figure nor an exception, and the other taps' rows are read."""
    assert read(told) == []
    found = tap_rows({PREFIX + "odd": told, PREFIX + "good": row()})
    assert [each.name for each in found] == ["good"]


@pytest.mark.parametrize("name", ["", "a.b", "a b", "é", "x" * 65, "a\n"])
def test_name_that_no_tap_has_is_nothing(name: str) -> None:
    """It would become part of metric ids."""
    assert read(row(), name) == []


def test_other_observations_are_the_users() -> None:
    """A tap's row is no metric of theirs."""
    observed = {"seen": {"n": 1}, PREFIX + "clicks": row(), PREFIX + "odd": {"n": 2}, "streamgauge": {"n": 3}}
    assert users(observed) == {"seen": {"n": 1}, "streamgauge": {"n": 3}}
    assert [each.name for each in tap_rows(observed)] == ["clicks"]


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner))


@given(changed=st.dictionaries(st.sampled_from(sorted(row())), anything), options=anything)
def test_no_row_raises(changed: dict[str, object], options: object) -> None:
    """Whatever stands in a row, reading it never harms the driver."""
    for told in (row() | changed, row() | {"options": json.dumps(options)}, options):
        for found in read(told):
            assert 0 <= found.rows <= 2**53
            assert found.unwatched >= 0
