"""Every refusal that taps and distributions give rise to, and its message."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from streamgauge import names, wire
from streamgauge.buckets import MAX_COUNT
from streamgauge.errors import FrameTooLarge, InvalidName, MalformedFrame


def _taps(frames, *taps):
    return {"vertices": (frames.figures(taps=taps),)}


def _tap(frames, *watermarks, **changes):
    return _taps(frames, frames.tap(*(watermarks or (1, 2)), **changes))


def _column(frames, metric, *values, **changes):
    column = msgspec.structs.replace(wire.column(metric, np.array(values)), **changes)
    return _tap(frames, columns=(column,))


def _distributions(frames, *distributions):
    return {"vertices": (frames.figures(distributions=distributions),)}


MALFORMED = {
    "operator": (lambda f: _tap(f, operator="O"), "tap 'by partition': operator is 'O', expected 32"),
    "watermark past a long": (
        lambda f: _tap(f, watermark_ms=2**63),
        "watermark_ms is 9223372036854775808, expected -9223372036854775808 to 9223372036854775807",
    ),
    "negative out-of-orderness": (
        lambda f: _tap(f, max_out_of_orderness_ms=-1),
        "max_out_of_orderness_ms is -1, expected 0 to 9007199254740992",
    ),
    "idleness below never": (lambda f: _tap(f, idleness_ms=-2), "idleness_ms is -2, expected -1 to"),
    "negative unwatched": (lambda f: _tap(f, unwatched=-1), f"unwatched is -1, expected 0 to {MAX_COUNT}"),
    "unknown metric": (
        lambda f: _column(f, "busyTimeMsPerSecond", 1, 2),
        "a split has no metric 'busyTimeMsPerSecond', expected one of ['watermark.currentWatermark', ",
    ),
    "metric twice": (
        lambda f: _tap(f, columns=f.tap(1, 2).columns[:1] * 2),
        "two columns of 'watermark.currentWatermark', expected one a metric",
    ),
    "column of doubles": (
        lambda f: _column(f, names.SPLIT_RECORDS, 1.0, 2.0),
        "column 'numRecordsIn': it is f8, expected i8: it is a whole number in Flink",
    ),
    "column too short": (
        lambda f: _column(f, names.SPLIT_RECORDS, 1),
        "column 'numRecordsIn': 8 bytes for 2 splits, expected 16: 8 bytes a split",
    ),
    "column of no splits": (
        lambda f: _tap(f, splits=()),
        "16 bytes for 0 splits, expected 0",
    ),
    "bitmap too long": (
        lambda f: _column(f, names.SPLIT_RECORDS, 1, 2, present=b"ab"),
        "a bitmap of 2 bytes for 2 splits, expected 1: 1 bit a split",
    ),
    "negative count": (
        lambda f: _column(f, names.SPLIT_RECORDS_AT_RISK, -1, 2),
        f"values from -1 to 2, expected 0 to {MAX_COUNT}",
    ),
    "count past all": (
        lambda f: _column(f, names.SPLIT_ACCUMULATED_IDLE_TIME, 0, MAX_COUNT + 1),
        "values from 0 to 9007199254740993, expected 0",
    ),
    "half idle": (lambda f: _column(f, names.SPLIT_IDLE, 0, 2), "values from 0 to 2, expected 0 or 1: whether"),
    "time that is no number": (
        lambda f: _column(f, names.SPLIT_ACTIVE_TIME, 1.0, np.nan),
        "a value is no number of at most 9007199254740992",
    ),
    "unknown distribution": (
        lambda f: _distributions(f, f.distribution(1, metric="latency")),
        "distribution 'latency': expected one of ['recordLatency', 'recordQueueing', 'timerLateness']",
    ),
    "operator of a distribution": (
        lambda f: _distributions(f, f.distribution(1, operator="O")),
        "distribution 'recordLatency': operator is 'O', expected 32",
    ),
    "distribution twice": (
        lambda f: _distributions(f, f.distribution(1), f.distribution(2)),
        f"operator '{'b' * 32}' is there twice, expected once a metric",
    ),
    "buckets": (
        lambda f: _distributions(
            f, wire.Distribution(f.OPERATOR, names.TIMER_LATENESS, wire.Buckets(b"abc", bytes(8)))
        ),
        "distribution 'timerLateness': 3 bytes of indices and 8 of counts, expected 2 and 8",
    ),
}
GOOD = {
    "no taps": lambda f: _taps(f),
    "no splits": lambda f: _taps(f, f.tap()),
    "two of one name": lambda f: _taps(f, f.tap(1), f.tap(2)),
    "splits of one name": lambda f: _tap(f, splits=("a", "a")),
    "split without a name": lambda f: _tap(f, splits=("", "b")),
    "ends of time": lambda f: _tap(f, -(2**63), 2**63 - 1, idleness_ms=0),
    "unknown values do not matter": lambda f: _column(f, names.SPLIT_RECORDS, -5, 1, present=b"\x02"),
    "double where Flink has one": lambda f: _column(f, names.SPLIT_ACCUMULATED_ACTIVE_TIME, 0.5, 2.0),
    "nothing distributed": lambda f: _distributions(f, f.distribution()),
    "one operator, several metrics": lambda f: _distributions(
        f, *(f.distribution(1, metric=metric) for metric in names.DISTRIBUTIONS)
    ),
}


@pytest.mark.parametrize(("changes", "message"), MALFORMED.values(), ids=MALFORMED)
def test_tap_that_contradicts_itself_is_malformed(collector, frames, changes, message):
    """Refused, with the vertex, the tap and the values in the message; nothing is written."""
    before = collector.store.snapshot()
    with pytest.raises(MalformedFrame, match=rf"^frame 0 \(job 'c+'\): vertex 'a+': .*{re.escape(message)}"):
        collector.push(frames.frame(**changes(frames)))
    assert collector.store.snapshot() is before


@pytest.mark.parametrize("changes", GOOD.values(), ids=GOOD)
def test_tap_at_the_edge_is_taken(collector, frames, check_snapshot, changes):
    """What only looks odd is good."""
    assert collector.push(frames.frame(**changes(frames))) == (1, 0, 0)
    check_snapshot(collector.store.snapshot())


def test_names_are_bounded(new_collector, frames):
    """A tap has one; a split's stands in metric ids, and may be as long as they."""
    small = new_collector(metric_chars=4, name_chars=64)
    with pytest.raises(InvalidName, match=r"tap '': name is empty, expected 1 to 64"):
        small.push(frames.frame(**_taps(frames, frames.tap(name="", columns=()))))
    with pytest.raises(InvalidName, match=r"name 'n{65}' has 65 characters, at most 64 are taken"):
        small.push(frames.frame(**_taps(frames, frames.tap(name="n" * 65, columns=()))))
    with pytest.raises(InvalidName, match=r"split 'abcde' has 5 characters, at most 4 are taken: .* metric_chars"):
        small.push(frames.frame(**_tap(frames, 1, splits=("abcde",), columns=())))


@pytest.mark.parametrize(
    ("limits", "changes", "message"),
    [
        ({"taps": 1}, lambda f: _taps(f, f.tap(1), f.tap(2)), "2 taps, at most 1 are taken: send fewer or raise"),
        ({"splits": 1}, lambda f: _tap(f, 1, 2), "tap 'by partition': 2 splits, at most 1 are taken"),
        (
            {"distributions": 1},
            lambda f: _distributions(f, f.distribution(1), f.distribution(1, metric=names.TIMER_LATENESS)),
            "2 distributions, at most 1 are taken",
        ),
        ({"job_series": 11}, lambda f: _tap(f, 1, 2), "the job would have 12 values, at most 11"),
        (
            {"job_series": 4},
            lambda f: _distributions(f, f.distribution(1)),
            "the job would have 5 values, at most 4",
        ),
    ],
    ids=["taps", "splits", "distributions", "series of a tap", "series of a distribution"],
)
def test_taps_past_a_limit_are_too_large(new_collector, frames, limits, changes, message):
    """FrameTooLarge, naming the limit."""
    with pytest.raises(FrameTooLarge, match=message):
        new_collector(**limits).push(frames.frame(**changes(frames)))
