"""What record taps tell: of the splits of a source, of the watermark that follows the slowest, and of delays."""

from __future__ import annotations

from dataclasses import replace

from streamgauge import names
from streamgauge.catalogue.metric import PROGRESS, Metric, Type

_TAP = f"{PROGRESS}: the tap's observe()"
_TRIGGERS = f"{PROGRESS}: when batches were triggered and ended"
_CUT = "delays are told to a few per cent"


def _split(name: str, kind: Type, unit: str, source: str, text: str, formula: str = "", estimate: str = "") -> Metric:
    return Metric(f"{names.SPLIT}<split>.{name}", kind, unit, "operator", source, text, formula, estimate)


_DELAYS: tuple[Metric, ...] = (
    Metric(
        names.RECORD_LATENCY,
        "histogram",
        "ms",
        "operator",
        _TAP,
        "Time from a record's ingest to the end of the batch that it is in, of all records of this run; at the tap.",
        f"{names.RECORD_QUEUEING} + triggerExecution − latestOffset",
        _CUT,
    ),
    Metric(
        names.RECORD_QUEUEING,
        "histogram",
        "ms",
        "operator",
        _TAP,
        "Time from a record's ingest until Spark fixes the time of its batch, of all records of this run; at the tap.",
        "current_timestamp() − ingest time, cut to a few per cent",
        _CUT,
    ),
)

METRICS: tuple[Metric, ...] = (
    Metric(
        names.CURRENT_SPLIT_WATERMARK,
        "gauge",
        "ms",
        "vertex",
        _TAP,
        "What its input watermark would be if it followed the slowest split, as Flink's does; absent without a tap in "
        "it or before it.",
        "Flink's valve over the splits of all taps that it has or is behind, fed when a batch has ended",
    ),
    *_DELAYS,
)

PATTERNS: tuple[Metric, ...] = (
    _split(
        names.SPLIT_CURRENT_WATERMARK,
        "gauge",
        "ms",
        _TAP,
        "A split's watermark, as Unix time; −2^63 before it has had a record.",
        "greatest event time − max_out_of_orderness − 1",
    ),
    _split(
        names.SPLIT_ACTIVE_TIME,
        "gauge",
        "ms/s",
        _TRIGGERS,
        "Time in which the split was not idle, last 60 s or as long as it has been there.",
        "1000 − paused − idle",
    ),
    _split(
        names.SPLIT_PAUSED_TIME,
        "gauge",
        "ms/s",
        _TRIGGERS,
        "0: Spark lets no split wait for the others.",
    ),
    _split(
        names.SPLIT_IDLE_TIME,
        "gauge",
        "ms/s",
        _TRIGGERS,
        "Time in which the split was idle, last 60 s or as long as it has been there.",
        "from the end of a batch that found it idle to the end of one that did not",
    ),
    *(
        _split(name, "counter", "ms", _TRIGGERS, f"Time in which the split was {state}, in this run.")
        for name, state in (
            (names.SPLIT_ACCUMULATED_ACTIVE_TIME, "not idle"),
            (names.SPLIT_ACCUMULATED_PAUSED_TIME, "made to wait for the others, which is 0"),
            (names.SPLIT_ACCUMULATED_IDLE_TIME, "idle"),
        )
    ),
    _split(
        names.SPLIT_IDLE,
        "bool",
        "",
        _TRIGGERS,
        "Whether the split holds no other up, for it has had no record for longer than the tap's idleness.",
        "trigger of the latest batch − trigger of the last one with its records > idleness",
    ),
    _split(
        names.SPLIT_WATERMARK_DRIFT,
        "gauge",
        "ms",
        _TAP,
        "By how much the split's watermark is behind; below 0 for an idle one that is ahead.",
        "greatest watermark of the splits that are not idle − its own",
    ),
    _split(names.SPLIT_RECORDS, "counter", "records", _TAP, "Records of the split that have an event time."),
    _split(
        names.SPLIT_RECORDS_AT_RISK,
        "counter",
        "records",
        _TAP,
        "Records of the split that came behind Spark's watermark: a stateful operator drops them; absent where the "
        "query has no watermark.",
        "event time ≤ eventTime.watermark of the batch before",
        "where a batch has a split's records on both sides, they are taken to be spread evenly",
    ),
    *(
        replace(
            metric,
            name=f"{metric.name}_<statistic>",
            type="gauge",
            help=f"A statistic of {metric.name}, at subtask 0.",
        )
        for metric in _DELAYS
    ),
)
