"""The splits of a tap, rule by rule; the rules together: test_splits_model.py."""

from __future__ import annotations

import pytest

from spark_hooks.splits import Splits, at_risk
from spark_hooks.tap_rows import TapRow
from streamgauge import names
from streamgauge.watermarks import END_OF_INPUT_MS, NO_WATERMARK_MS
from tests.unit.spark_hooks.tapped import row, told


def splits(*rows: TapRow, late_ms: int | None = None) -> Splits:
    """Batches at 0, 1000, 2000 … ms, each of 100 ms."""
    made = Splits(rows[0])
    for number, seen in enumerate(rows):
        made.complete(seen, 1000 * number, 1000 * number + 100, late_ms)
    return made


def column(of: Splits, metric: str) -> dict[str, int] | None:
    return told(list(of.columns()), of.names).get(metric)


def test_each_split_has_its_own_watermark_and_the_least_is_everybodys() -> None:
    """The greatest event time less the bound less 1 ms."""
    made = splits(row({"a": (2, 900, 1000), "b": (1, 400, 400), "c": (3, 100, 990)}, delay_ms=50))
    assert column(made, names.SPLIT_CURRENT_WATERMARK) == {"a": 949, "b": 349, "c": 939}
    assert (made.watermark_ms, made.idle) == (349, False)


def test_drift_names_the_split_that_lags() -> None:
    """By how much each is behind the furthest."""
    made = splits(row({"a": (1, 90_000, 90_000), "b": (1, 30_000, 30_000), "c": (1, 89_000, 89_000)}))
    assert column(made, names.SPLIT_WATERMARK_DRIFT) == {"a": 0, "b": 60_000, "c": 1000}


def test_records_of_a_split_are_counted_over_the_run() -> None:
    """Those of splits that are not watched apart."""
    made = splits(row({"a": (2, 1, 1)}, unwatched=4), row({"a": (3, 1, 1), "c": (1, 1, 1)}, unwatched=1))
    assert column(made, names.SPLIT_RECORDS) == {"a": 5, "b": 0, "c": 1}
    assert made.unwatched == 5


def test_listed_split_is_waited_for_from_the_first_batch() -> None:
    """The user says that it is there, and its first record may be the oldest of all."""
    made = splits(row({"a": (1, 500, 500), "b": (1, 500, 500)}))
    assert made.names == ("a", "b", "c")
    assert made.watermark_ms == NO_WATERMARK_MS
    assert column(made, names.SPLIT_WATERMARK_DRIFT) == {"a": 0, "b": 0}


def test_numbered_split_is_there_once_it_or_a_greater_one_had_a_record() -> None:
    """How many there may be is a bound; partitions are numbered from 0 on."""
    numbers = ("0", "1", "2", "3")
    made = splits(row({"0": (1, 500, 500)}, numbers))
    assert made.names == ("0",)
    assert made.watermark_ms == 499
    made.complete(row({"2": (1, 700, 700)}, numbers), 1000, 1100, None)
    assert made.names == ("0", "1", "2")
    assert column(made, names.SPLIT_CURRENT_WATERMARK) == {"0": 499, "1": NO_WATERMARK_MS, "2": 699}
    made.complete(row({}, numbers), 2000, 2100, None)
    assert made.names == ("0", "1", "2")


def test_split_comes_late_and_takes_nothing_back() -> None:
    """What has passed has passed."""
    numbers = ("0", "1")
    made = splits(row({"0": (1, 500, 500)}, numbers), row({"0": (1, 600, 600), "1": (1, 200, 200)}, numbers))
    assert made.watermark_ms == 499


def test_split_is_idle_after_the_timeout_and_lets_the_others_pass() -> None:
    """Counted from the trigger of the batch with its last record, to the trigger of one without."""
    made = Splits(row({}, ("a", "b"), idleness_ms=5000))
    made.complete(row({"a": (1, 10, 10), "b": (1, 5, 5)}, ("a", "b")), 0, 900, None)
    made.complete(row({"a": (1, 20, 20)}, ("a", "b")), 5000, 9000, None)
    assert column(made, names.SPLIT_IDLE) == {"a": 0, "b": 0}
    made.complete(row({"a": (1, 30, 30)}, ("a", "b")), 5001, 9100, None)
    assert column(made, names.SPLIT_IDLE) == {"a": 0, "b": 1}
    assert (made.watermark_ms, made.idle) == (29, False)


def test_time_that_a_batch_takes_makes_no_split_idle() -> None:
    """What came meanwhile is in the next batch: the clock stands still."""
    made = Splits(row({}, ("a", "b"), idleness_ms=5000))
    made.complete(row({"a": (1, 10, 10), "b": (1, 10, 10)}, ("a", "b")), 0, 100, None)
    made.complete(row({"a": (1, 20, 20)}, ("a", "b")), 200, 60_000, None)
    made.tick(60_000)
    made.complete(row({"b": (1, 20, 20)}, ("a", "b")), 60_000, 60_100, None)
    assert column(made, names.SPLIT_IDLE) == {"a": 1, "b": 0}


def test_split_returns_from_idleness_with_a_record() -> None:
    """And takes nothing back, though it may be behind."""
    made = Splits(row({}, ("a", "b"), idleness_ms=10))
    made.complete(row({"a": (1, 10, 10), "b": (1, 5, 5)}, ("a", "b")), 0, 5, None)
    made.complete(row({"a": (1, 30, 30)}, ("a", "b")), 100, 105, None)
    made.complete(row({"b": (1, 8, 8)}, ("a", "b")), 105, 106, None)
    assert column(made, names.SPLIT_IDLE) == {"a": 0, "b": 0}
    assert column(made, names.SPLIT_CURRENT_WATERMARK) == {"a": 29, "b": 7}
    assert made.watermark_ms == 29


def test_batch_in_which_the_tap_saw_nothing_is_one_without_records() -> None:
    """A batch without rows, or of another source; all splits idle is idle, and the watermark stays."""
    made = Splits(row({}, ("a",), idleness_ms=10))
    made.complete(row({"a": (1, 10, 10)}, ("a",)), 0, 5, None)
    made.complete(None, 100, 105, None)
    assert (made.watermark_ms, made.idle) == (9, True)
    assert column(made, names.SPLIT_WATERMARK_DRIFT) is None


def test_end_of_input_is_the_greatest_watermark_and_not_idle() -> None:
    """Of the whole; what the splits had last stays to be read."""
    made = splits(row({"a": (1, 10, 10)}, ("a",), idleness_ms=1), row({}, ("a",)))
    assert made.idle
    made.end(9000, finished=True)
    assert (made.watermark_ms, made.idle) == (END_OF_INPUT_MS, False)
    assert [tuple(channel) for channel in made.channels()] == [("a", END_OF_INPUT_MS, False)]
    assert column(made, names.SPLIT_CURRENT_WATERMARK) == {"a": 9}


def test_run_that_was_stopped_keeps_its_watermark() -> None:
    """Its input may have gone on."""
    made = splits(row({"a": (1, 10, 10)}, ("a",)))
    made.end(9000, finished=False)
    assert made.watermark_ms == 9


def test_stream_without_splits_has_one_watermark() -> None:
    """Its own, and no table."""
    made = splits(row({"": (3, 100, 500)}, by=None, delay_ms=9))
    assert (made.names, made.watermark_ms, list(made.columns())) == ((), 490, [])


def test_split_by_the_sources_tasks_says_so() -> None:
    """Then split i is what subtask i reads."""
    assert Splits(row({}, ("0",), by="source")).by_subtask
    assert not Splits(row({}, ("0",))).by_subtask


def test_risk_is_told_only_where_the_query_has_a_watermark() -> None:
    """Without one Spark takes nothing for late."""
    seen = row({"a": (4, 100, 100), "b": (2, 900, 900)}, ("a", "b"))
    assert column(splits(seen), names.SPLIT_RECORDS_AT_RISK) is None
    assert column(splits(seen, seen, late_ms=500), names.SPLIT_RECORDS_AT_RISK) == {"a": 8, "b": 0}


@pytest.mark.parametrize(
    ("rows", "least", "greatest", "late_ms", "expected"),
    [
        pytest.param(10, 100, 199, 99, 0, id="all ahead"),
        pytest.param(10, 100, 199, 199, 10, id="all at it or behind"),
        pytest.param(10, 100, 199, 149, 5, id="half"),
        pytest.param(10, 100, 199, 100, 1, id="the least is behind"),
        pytest.param(10, 100, 10_000, 9_999, 9, id="the greatest is not"),
        pytest.param(1, 100, 100, 100, 1, id="one, at it"),
        pytest.param(1, 100, 100, 99, 0, id="one, ahead"),
    ],
)
def test_risk_is_exact_on_one_side_and_spread_evenly_between(
    rows: int, least: int, greatest: int, late_ms: int, expected: int
) -> None:
    """Spark drops what is at the watermark, too."""
    assert at_risk(rows, least, greatest, late_ms) == expected


def test_split_gauges_are_flinks() -> None:
    """Active is what is neither idle nor paused, over what has passed of the last minute; a split is never paused."""
    made = Splits(row({}, ("a", "b"), idleness_ms=10))
    made.complete(row({"a": (1, 10, 10), "b": (1, 5, 5)}, ("a", "b")), 0, 1000, None)
    assert column(made, names.SPLIT_IDLE_TIME) is None
    made.complete(row({"a": (1, 30, 30)}, ("a", "b")), 3000, 4000, None)
    made.tick(5000)
    assert column(made, names.SPLIT_IDLE_TIME) == {"a": 0, "b": 250}
    assert column(made, names.SPLIT_PAUSED_TIME) == {"a": 0, "b": 0}
    assert column(made, names.SPLIT_ACTIVE_TIME) == {"a": 1000, "b": 750}
    assert column(made, names.SPLIT_ACCUMULATED_IDLE_TIME) == {"a": 0, "b": 1000}
    assert column(made, names.SPLIT_ACCUMULATED_PAUSED_TIME) == {"a": 0, "b": 0}
    assert column(made, names.SPLIT_ACCUMULATED_ACTIVE_TIME) == {"a": 4000, "b": 3000}


def test_event_times_from_all_ends_of_time_are_told_within_a_long() -> None:
    """They are the user's, and 2⁶⁴ ms apart at most."""
    made = splits(row({"a": (1, -(2**63), -(2**63)), "b": (1, 2**63 - 1, 2**63 - 1)}, ("a", "b"), delay_ms=2**62))
    assert column(made, names.SPLIT_CURRENT_WATERMARK) == {"a": NO_WATERMARK_MS, "b": 2**62 - 2}
    made = splits(row({"a": (1, -(2**63) + 9, -(2**63) + 9), "b": (1, 2**62, 2**63 - 1)}, ("a", "b")))
    assert column(made, names.SPLIT_WATERMARK_DRIFT) == {"a": 2**63 - 1, "b": 0}


def test_every_change_is_a_revision() -> None:
    """What has not changed does not travel."""
    made = Splits(row({}, ("a",)))
    seen = [made.revision]
    made.complete(row({"a": (1, 1, 1)}, ("a",)), 0, 1, None)
    seen.append(made.revision)
    made.tick(10)
    seen.append(made.revision)
    made.end(20, finished=True)
    seen.append(made.revision)
    assert seen == sorted(set(seen))
