"""Every refusal that latencies give rise to, and its message."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from collector.latency_admission import GREATEST_MS
from streamgauge import names, wire
from streamgauge.buckets import BUCKET_COUNT, HIGHEST_COUNTED_MS, MAX_COUNT
from streamgauge.errors import FrameTooLarge, MalformedFrame

FIGURES = len(names.LATENCY_STATISTICS)


def _latencies(frames, *latencies):
    return {"vertices": (frames.figures(latencies=latencies),)}


def _changed(frames, **changes):
    return _latencies(frames, msgspec.structs.replace(frames.latency(3, 0), **changes))


def _statistics(frames, value, *counts):
    statistics = np.full((FIGURES, 2), value, dtype="<f8").tobytes()
    return _changed(frames, counts=np.array(counts, dtype="<i8").tobytes(), statistics=statistics)


def _histograms(frames, *histograms):
    return {"vertices": (frames.figures(histograms=histograms),)}


def _buckets(frames, indices=(5,), counts=(2,), part="total", **changes):
    told = wire.Buckets(np.array(indices, "<u2").tobytes(), np.array(counts, "<i8").tobytes(), sum_ms=10)
    told = msgspec.structs.replace(told, **changes)
    return _histograms(frames, msgspec.structs.replace(frames.histogram(7), **{part: told}))


MALFORMED = {
    "source": (lambda f: _latencies(f, f.latency(1, 1, source="S")), "latency of source 'S': source is 'S'"),
    "source subtask below -1": (
        lambda f: _latencies(f, f.latency(1, 1, subtask=-2)),
        "source_subtask is -2, expected -1 to 99999: -1 stands for all of a source's subtasks",
    ),
    "source subtask past the limit": (
        lambda f: _latencies(f, f.latency(1, 1, subtask=100_000)),
        "source_subtask is 100000, expected -1 to 99999",
    ),
    "subtask of all sources": (
        lambda f: _latencies(f, f.latency(1, 1, source="", subtask=0)),
        "latency of source '': source_subtask is 0, expected -1 to -1",
    ),
    "operator": (lambda f: _latencies(f, f.latency(1, 1, operators=("O",))), "operator is 'O', expected 32"),
    "operator twice": (
        lambda f: _latencies(f, f.latency(1, 1, operators=(f.OPERATOR,) * 2)),
        f"subtask -1: operator '{'b' * 32}' is there twice, expected once",
    ),
    "operator in two latencies": (
        lambda f: _latencies(f, f.latency(1, 1), f.latency(2, 2)),
        f"subtask -1: operator '{'b' * 32}' is there twice, expected once",
    ),
    "counts too short": (
        lambda f: _latencies(f, f.latency(1)),
        "counts has 8 bytes for 2 subtasks, expected 16: 8 bytes a subtask and figure",
    ),
    "statistics too short": (
        lambda f: _changed(f, statistics=bytes(8 * 21)),
        "statistics has 168 bytes for 2 subtasks, expected 176: 8 bytes a subtask and figure, of which the statistics "
        "have 11",
    ),
    "negative count": (lambda f: _statistics(f, 1.0, 1, -1), "-1 values recorded, expected 0 or more"),
    "statistic unknown": (lambda f: _statistics(f, np.nan, 1, 0), "is no number of at most 9007199254740992 ms"),
    "statistic infinite": (lambda f: _statistics(f, -np.inf, 0, 1), "is no number of at most"),
    "statistic past all": (lambda f: _statistics(f, 2.0 * GREATEST_MS, 0, 1), "is no number of at most"),
    "source of a histogram": (
        lambda f: _histograms(f, f.histogram(1, source="")),
        "latency histogram of source '': source is '', expected 32",
    ),
    "operator of a histogram": (lambda f: _histograms(f, f.histogram(1, operators=("O",))), "operator is 'O'"),
    "histogram twice": (
        lambda f: _histograms(f, f.histogram(1), f.histogram(2)),
        f"operator '{'b' * 32}' is there twice, expected once",
    ),
    "half an index": (
        lambda f: _histograms(
            f, wire.LatencyHistogram(f.VERTEX, (f.OPERATOR,), wire.Buckets(b"abc", bytes(8)), *[f.buckets()] * 2)
        ),
        "3 bytes of indices and 8 of counts, expected 2 and 8",
    ),
    "count without an index": (
        lambda f: _buckets(f, counts=(1, 1)),
        "total: 2 bytes of indices and 16 of counts, expected 2 and 8 for each bucket",
    ),
    "indices descend": (
        lambda f: _buckets(f, indices=(6, 5), counts=(1, 1)),
        "the buckets' indices do not ascend within 0 to 2047",
    ),
    "index twice": (lambda f: _buckets(f, indices=(5, 5), counts=(1, 1)), "indices do not ascend"),
    "index past the layout": (lambda f: _buckets(f, indices=(BUCKET_COUNT,)), "indices do not ascend"),
    "empty bucket": (
        lambda f: _buckets(f, counts=(0,), part="queueing"),
        "queueing: the buckets' counts reach from 0 to 0, expected 1 to 9007199254740992",
    ),
    "bucket past all": (lambda f: _buckets(f, counts=(MAX_COUNT + 1,)), "counts reach from 9007199254740993 to"),
    "buckets past all": (
        lambda f: _buckets(f, indices=(5, 6), counts=(MAX_COUNT, 1024)),
        "more than 9007199254740992 values in all buckets together",
    ),
    "negative count below": (lambda f: _buckets(f, below=-1, part="processing"), "processing: -1 values below"),
    "count above past all": (
        lambda f: _buckets(f, above=MAX_COUNT + 1),
        "9007199254740993 values above, expected 0 to",
    ),
    "negative sum": (lambda f: _buckets(f, sum_ms=-1), "the sum of 2 values is -1 ms, expected 0 to 8388606"),
    "sum that the values cannot have": (
        lambda f: _buckets(f, sum_ms=2 * HIGHEST_COUNTED_MS + 1),
        "the sum of 2 values is 8388607 ms, expected 0 to 8388606: each is at most 4194303 ms",
    ),
    "sum of no value": (
        lambda f: _buckets(f, indices=(), counts=(), sum_ms=1),
        "the sum of 0 values is 1 ms, expected 0 to 0",
    ),
    "sum past an int64": (
        lambda f: _buckets(f, counts=(MAX_COUNT,), sum_ms=2**63),
        "expected 0 to 9223372036854775807",
    ),
}
GOOD = {
    "none": lambda f: _latencies(f),
    "without subtasks": lambda f: {"vertices": (f.figures(size=0, latencies=(f.latency(),)),)},
    "all sources": lambda f: _latencies(f, f.latency(1, 0, source="")),
    "a source and its subtasks": lambda f: _latencies(
        f, f.latency(1, 1), *(f.latency(1, 1, subtask=s) for s in (0, 1))
    ),
    "meaningless figures of nothing": lambda f: _statistics(f, np.inf, 0, 0),
    "greatest figures": lambda f: _statistics(f, -GREATEST_MS, 1, 1),
    "nothing counted": lambda f: _histograms(f, f.histogram()),
    "out of range alone": lambda f: _histograms(f, f.histogram(-4, HIGHEST_COUNTED_MS + 1)),
    "first and last bucket": lambda f: _buckets(f, indices=(0, BUCKET_COUNT - 1), counts=(1, 1)),
    "greatest count": lambda f: _buckets(f, counts=(MAX_COUNT,), sum_ms=2**63 - 1, below=MAX_COUNT, above=MAX_COUNT),
}


@pytest.mark.parametrize(("changes", "message"), MALFORMED.values(), ids=MALFORMED)
def test_latency_that_contradicts_itself_is_malformed(collector, frames, changes, message):
    """Refused, with the vertex, the source and the values in the message; nothing is written."""
    before = collector.store.snapshot()
    with pytest.raises(MalformedFrame, match=rf"^frame 0 \(job 'c+'\): vertex 'a+': .*{re.escape(message)}"):
        collector.push(frames.frame(**changes(frames)))
    assert collector.store.snapshot() is before


@pytest.mark.parametrize("changes", GOOD.values(), ids=GOOD)
def test_latency_at_the_edge_is_taken(collector, frames, check_snapshot, changes):
    """What only looks odd is good."""
    assert collector.push(frames.frame(**changes(frames))) == (1, 0, 0)
    check_snapshot(collector.store.snapshot())


@pytest.mark.parametrize(
    ("limits", "changes", "message"),
    [
        (
            {"latencies": 1},
            lambda f: _latencies(f, f.latency(1, 1), f.latency(1, 1, subtask=0)),
            "2 latencies, at most 1",
        ),
        (
            {"latencies": 1},
            lambda f: _histograms(f, f.histogram(1), f.histogram(1, source="d" * 32)),
            "2 latencies, at most 1 are taken: send fewer or raise the limit latencies",
        ),
        (
            {"operators": 1},
            lambda f: _latencies(f, f.latency(1, 1, operators=(f.OPERATOR, "d" * 32))),
            "2 operators, at most 1",
        ),
        ({"operators": 1}, lambda f: _histograms(f, f.histogram(1, operators=(f.OPERATOR, "d" * 32))), "2 operators"),
        ({"job_series": 24}, lambda f: _latencies(f, f.latency(1, 1)), "the job would have 25 values, at most 24"),
    ],
    ids=["latencies", "histograms", "operators", "operators of a histogram", "series"],
)
def test_latencies_past_a_limit_are_too_large(new_collector, frames, limits, changes, message):
    """FrameTooLarge, naming the limit."""
    with pytest.raises(FrameTooLarge, match=message):
        new_collector(**limits).push(frames.frame(**changes(frames)))
