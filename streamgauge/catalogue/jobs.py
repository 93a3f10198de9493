"""What is told of a job as a whole."""

from __future__ import annotations

from streamgauge import names
from streamgauge.catalogue.metric import MICRO_BATCHES, PROGRESS, Metric, Type

_BEGUN = "SQLExecutionStart or QueryIdleEvent, the first of a run"
_RUNNING = "now − when it came to run, by the service's clock"


def _job(name: str, kind: Type, unit: str, source: str, text: str, formula: str = "", estimate: str = "") -> Metric:
    return Metric(name, kind, unit, "job", source, text, formula, estimate)


_STATES: tuple[Metric, ...] = (
    _job(names.UPTIME, "gauge", "ms", _BEGUN, "Time since the job last came to run; 0 when it does not run.", _RUNNING),
    _job(
        names.RUNNING_TIME,
        "gauge",
        "ms",
        _BEGUN,
        "Time that the job has been running without a break; 0 when it does not run.",
        _RUNNING,
    ),
    _job(
        names.RESTARTING_TIME,
        "gauge",
        "ms",
        "QueryStartedEvent",
        "Time since the job began to restart; 0 when it does not.",
        "now − when the query was started again, until its first batch",
    ),
    _job(
        names.DOWNTIME,
        "gauge",
        "ms",
        "QueryStartedEvent; the driver's silence",
        "Time since a job began to restart or was suspended; 0 while it runs, −1 once it has ended.",
        "now − when it came to be RESTARTING or SUSPENDED",
    ),
    _job(
        names.NUM_RESTARTS,
        "gauge",
        "",
        "QueryStartedEvent",
        "Runs of the query after the first that was seen.",
        "new run ids of one query id",
    ),
)
_CHECKPOINTS: tuple[Metric, ...] = (
    _job(
        names.NUM_COMPLETED_CHECKPOINTS,
        "counter",
        "",
        PROGRESS,
        "Micro-batches that this run has completed.",
        "one that is followed by another counts though its own end was not told",
    ),
    _job(
        names.NUM_FAILED_CHECKPOINTS,
        "counter",
        "",
        "SQLExecutionEnd, QueryTerminatedEvent",
        "Micro-batches of this run that were broken off, by a failure or a stop.",
    ),
    _job(names.NUM_IN_PROGRESS_CHECKPOINTS, "gauge", "", "SQLExecutionStart", "1 while a micro-batch runs, else 0."),
    _job(
        names.TOTAL_CHECKPOINTS,
        "counter",
        "",
        "SQLExecutionStart",
        "Micro-batches that this run has begun.",
        f"{names.NUM_COMPLETED_CHECKPOINTS} + {names.NUM_FAILED_CHECKPOINTS} + {names.NUM_IN_PROGRESS_CHECKPOINTS}",
    ),
    _job(
        names.LAST_COMPLETED_CHECKPOINT_ID,
        "gauge",
        "",
        PROGRESS,
        "Batch id of the latest completed micro-batch.",
        "batchId",
    ),
    _job(
        names.LAST_CHECKPOINT_DURATION,
        "gauge",
        "ms",
        PROGRESS,
        "How long its trigger took; absent where its end was not told.",
        "durationMs.triggerExecution",
    ),
    _job(
        names.LAST_CHECKPOINT_SIZE,
        "gauge",
        "bytes",
        PROGRESS,
        "Memory used by the query's state operators, which is all of its state and not what the batch wrote of it.",
        "Σ stateOperators[].memoryUsedBytes",
    ),
    _job(
        names.LAST_CHECKPOINT_COMPLETED,
        "gauge",
        "ms",
        PROGRESS,
        "When it ended, as Unix time.",
        "timestamp + durationMs.triggerExecution",
    ),
    _job(names.LAST_CHECKPOINT_PROCESSED, "gauge", "records", PROGRESS, "Rows that it read.", "numInputRows"),
)
_ROWS: tuple[Metric, ...] = (
    _job(
        names.INPUT_ROWS,
        "counter",
        "records",
        PROGRESS,
        "Rows read by this run, as Spark's progress tells them.",
        "Σ numInputRows",
    ),
    _job(
        names.OUTPUT_ROWS,
        "counter",
        "records",
        PROGRESS,
        "Rows written by this run, as the sink tells them; absent once it has not told, as foreachBatch never does.",
        "Σ sink.numOutputRows",
    ),
)
_BACKLOG: tuple[Metric, ...] = (
    _job(
        names.TRIGGER_INTERVAL,
        "gauge",
        "ms",
        "QueryStartedEvent",
        "Time between two micro-batches that the query asks for; absent where it asks for none.",
        "of Trigger.ProcessingTime",
    ),
    _job(
        names.BACKLOGGED,
        "bool",
        "",
        PROGRESS,
        "Whether the query cannot keep up, as of its latest batch; absent before one has been completed.",
        "a source had more than the batch took (latestOffset past endOffset, Kafka's offsets behind latest, files not "
        "read); or with a trigger interval the batch before it, batch 0 apart, ran past its slot; or without one rows "
        "and duration grew three times in a row, batch upon batch",
        "where the source does not tell what it has, the two other rules judge by the batches alone",
    ),
    _job(
        names.KEEP_UP_RATIO,
        "gauge",
        "",
        PROGRESS,
        "Rows that it can process a second over rows that arrive a second, below 1 where the backlog grows; absent "
        "where nobody knows what arrives.",
        "(rows read / time in batches) / (rows that arrived / time), batches of the last 60 s, two at least; arrived = "
        "read + what the sources have more at the last trigger than at the first",
    ),
    _job(
        names.BACKLOG_ROWS,
        "gauge",
        "records",
        PROGRESS,
        "Rows that its sources had beyond those that the latest batch took; absent where one of them does not tell.",
        f"Σ {names.PENDING_RECORDS}",
    ),
    _job(
        names.BACKLOG_ROWS_TREND,
        "gauge",
        "records/s",
        PROGRESS,
        "By how much the backlog grows a second; below 0 it shrinks.",
        f"growth of {names.BACKLOG_ROWS} over the batches of the last 60 s / their time",
    ),
    _job(
        names.BACKLOG_TIME,
        "gauge",
        "ms",
        PROGRESS,
        "Time that it would take to work the backlog off.",
        f"{names.BACKLOG_ROWS} / (rows read / time in batches), batches of the last 60 s",
        "later batches may go at another rate",
    ),
    _job(
        names.BACKLOG_TIME_TREND,
        "gauge",
        "ms/s",
        PROGRESS,
        "By how much that time grows a second; below 0 it shrinks.",
        f"growth of {names.BACKLOG_TIME} over the batches of the last 60 s / their time",
        "later batches may go at another rate",
    ),
)
_DROPPED = {
    "idle": "no micro-batch began for them, so no record waited",
    "ended": "the run, or the batch that carried them, ended first",
    "lost": "the batch that carried them ran nothing that hands them on",
    "crowded": "too many wait already",
}
_MARKERS: tuple[Metric, ...] = (
    _job(
        names.MARKERS_EMITTED,
        "counter",
        "",
        MICRO_BATCHES,
        "Latency markers that came due at a source subtask.",
        "one a source subtask every latency_interval_ms; recorded + dropped + in flight",
    ),
    _job(names.MARKERS_RECORDED, "counter", "", MICRO_BATCHES, "Latency markers that reached a sink."),
    _job(names.MARKERS_IN_FLIGHT, "gauge", "", MICRO_BATCHES, "Latency markers whose fate is not known yet."),
    *(
        _job(name, "counter", "", MICRO_BATCHES, f"Latency markers that were dropped: {_DROPPED[reason]}.")
        for reason, name in names.MARKERS_DROPPED_BY.items()
    ),
)

METRICS: tuple[Metric, ...] = (*_STATES, *_CHECKPOINTS, *_ROWS, *_BACKLOG, *_MARKERS)
