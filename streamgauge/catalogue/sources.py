"""What is told of a query's sources: of their operators, and by their coordinators, which is what the driver knows."""

from __future__ import annotations

from streamgauge import names
from streamgauge.catalogue.metric import PROGRESS, Metric

_OPERATORS: tuple[Metric, ...] = (
    Metric(
        names.PENDING_RECORDS,
        "gauge",
        "records",
        "operator",
        PROGRESS,
        "Records that the source has beyond what was read, at subtask 0; absent where offsets do not count records.",
        "Σ over its partitions: latestOffset − endOffset, at least 0, of the latest batch; maps of partitions count "
        "records, a plain number where it grew by numInputRows in every batch",
    ),
    Metric(
        names.UNREAD_FILES,
        "gauge",
        "",
        "operator",
        "JobStart, when FileStreamSource.unreadFiles is looked at",
        "Files that a stream of files had listed and not read when the latest batch began, at subtask 0.",
    ),
    Metric(
        names.FETCH_LAG,
        "gauge",
        "ms",
        "operator",
        PROGRESS,
        "From the latest event time in a batch to the batch's trigger; absent without a watermark or with two sources.",
        "timestamp − eventTime.max",
    ),
    Metric(
        names.EMIT_LAG,
        "gauge",
        "ms",
        "operator",
        PROGRESS,
        "From the latest event time in a batch to the batch's end; absent without a watermark or with two sources.",
        "timestamp + triggerExecution − eventTime.max",
    ),
    Metric(
        names.SOURCE_IDLE_TIME,
        "gauge",
        "ms",
        "operator",
        "SQLExecutionStart, QueryProgressEvent",
        "Time since a batch last read rows of the source; 0 while one is under way.",
        "now − end of the latest batch that read rows of it, every 5 s",
    ),
)

_COORDINATORS: tuple[Metric, ...] = (
    Metric(
        names.INPUT_ROWS,
        "counter",
        "records",
        "coordinator",
        PROGRESS,
        "Rows that this run has read of the source.",
        "Σ sources[].numInputRows",
    ),
    Metric(
        names.INPUT_RATE,
        "gauge",
        "records/s",
        "coordinator",
        PROGRESS,
        "Spark's own rate of rows into the last batch; it divides by the time since the last, perhaps empty, poll.",
        "sources[].inputRowsPerSecond",
    ),
    Metric(
        names.PROCESSED_RATE,
        "gauge",
        "records/s",
        "coordinator",
        PROGRESS,
        "Spark's own rate at which the last batch went through its rows.",
        "sources[].processedRowsPerSecond",
    ),
)

METRICS: tuple[Metric, ...] = (*_OPERATORS, *_COORDINATORS)

PATTERNS: tuple[Metric, ...] = (
    Metric(
        f"{names.PENDING_RECORDS}.<topic>.<partition>",
        "gauge",
        "records",
        "coordinator",
        PROGRESS,
        "Records that a partition has beyond what was read of it.",
        "latestOffset − endOffset, at least 0",
    ),
    Metric(
        "<metric>",
        "gauge",
        "",
        "coordinator",
        PROGRESS,
        "Whatever the connector tells of the source, by its own name, 100 at most; text where it is no number.",
        "sources[].metrics",
    ),
)
