"""What is told of vertices and their operators, subtask by subtask."""

from __future__ import annotations

from dataclasses import replace

from streamgauge import names
from streamgauge.catalogue.metric import MICRO_BATCHES, Metric, Scope, metered

_COUNTED = "TaskEnd, ExecutorMetricsUpdate, DriverAccumUpdates"
_TIMED = "SQLExecutionStart, TaskStart, TaskEnd, StageCompleted, QueryProgressEvent"
_SHUFFLED = "TaskStart, TaskEnd, StageCompleted"

_HELD_UP = "Spark has no back-pressure: what waits while the query is backlogged is taken to be held up"
_BLOCKS = "one block for each pair of an upstream and a downstream task: Spark does not tell which are empty"
_MARKER = "a marker stands for the records of its moment: one way through each exchange is taken, at random"
_BYTES = "what was written is taken to be spread evenly over its readers: Spark tells no sizes of blocks"


def _rows(scope: Scope) -> tuple[Metric, ...]:
    whole = scope == "vertex"
    return (
        *metered(
            Metric(
                names.NUM_RECORDS_IN,
                "counter",
                "records",
                scope,
                _COUNTED,
                "Records read: of a source the rows read, behind an exchange the shuffle records read.",
                "Σ over the heads of its chain: a source's 'number of output rows', an exchange's 'records read'"
                if whole
                else "Σ of what its inputs put out; of a source its own 'number of output rows'; behind an exchange "
                "'records read'",
            )
        ),
        *metered(
            Metric(
                names.NUM_RECORDS_OUT,
                "counter",
                "records",
                scope,
                _COUNTED,
                "Records put out: before an exchange the shuffle records written, of a sink what reached it.",
                "that of its chain's last operator"
                if whole
                else "'number of output rows'; before an exchange 'shuffle records written'; of sinks and of nodes "
                "that pass rows through and do not count them (Project, Sort, …), what came in",
            )
        ),
    )


def _read(name: str, unit: str, text: str, formula: str) -> Metric:
    return Metric(name, "counter", unit, "vertex", "TaskEnd, ExecutorMetricsUpdate", text, formula)


_NETWORK: tuple[Metric, ...] = (
    _read(
        names.NUM_BYTES_IN_LOCAL,
        "bytes",
        "Shuffle bytes read from the task's own executor.",
        "Σ over the exchanges that it reads: 'local bytes read'",
    ),
    _read(
        names.NUM_BYTES_IN_REMOTE,
        "bytes",
        "Shuffle bytes read from other executors.",
        "Σ over the exchanges that it reads: 'remote bytes read'",
    ),
    _read(
        names.NUM_BUFFERS_IN_LOCAL,
        "buffers",
        "Shuffle blocks read from the task's own executor.",
        "Σ over the exchanges that it reads: 'local blocks read'",
    ),
    _read(
        names.NUM_BUFFERS_IN_REMOTE,
        "buffers",
        "Shuffle blocks fetched from other executors.",
        "Σ over the exchanges that it reads: 'remote blocks read'",
    ),
)
_TOTALS: tuple[Metric, ...] = (
    _read(
        names.NUM_BYTES_IN,
        "bytes",
        "Shuffle bytes read, local and remote; 0 for a source vertex, as in Flink.",
        f"{names.NUM_BYTES_IN_LOCAL} + {names.NUM_BYTES_IN_REMOTE}",
    ),
    _read(
        names.NUM_BYTES_OUT,
        "bytes",
        "Shuffle bytes written; of a sink that writes files the bytes written; absent for any other sink.",
        "'shuffle bytes written'; of a file sink the task's outputMetrics.bytesWritten",
    ),
)

_TIME: tuple[Metric, ...] = (
    Metric(
        names.BUSY_TIME,
        "gauge",
        "ms/s",
        "vertex",
        _TIMED,
        "Time a second in which it works, or waits for a slot while its stage runs; NaN before anything is known.",
        f"1000 − {names.IDLE_TIME} − {names.BACK_PRESSURED_TIME}: from its stage's first launch to its own finish, "
        "less 'fetch wait time', over the last 60 s in spans of 5 s, or what there is of them",
    ),
    Metric(
        names.IDLE_TIME,
        "gauge",
        "ms/s",
        "vertex",
        _TIMED,
        "Time a second in which it has nothing to do: between batches, before its stage, behind its own finish; "
        "absent before anything is known.",
        f"all time that is neither busy nor {names.BACK_PRESSURED_TIME}; 'fetch wait time' is in it",
        _HELD_UP,
    ),
    Metric(
        names.BACK_PRESSURED_TIME,
        "gauge",
        "ms/s",
        "vertex",
        _TIMED,
        "Time a second in which what lies downstream holds it up; NaN before anything is known.",
        f"in batches that were {names.BACKLOGGED}, from its stage's end to the batch's end; of a source vertex also "
        "from the batch's trigger to its first launch",
        _HELD_UP,
    ),
    Metric(
        names.SLOT_WAIT_TIME,
        "gauge",
        "ms/s",
        "vertex",
        _TIMED,
        "The part of its busy time in which it waited for a slot.",
        "from its stage's first launch to its own",
    ),
    Metric(
        names.ACCUMULATED_BUSY_TIME,
        "gauge",
        "ms",
        "vertex",
        _TIMED,
        "Busy time since the subtask was first seen.",
        f"as {names.BUSY_TIME}, looked at every 5 s",
    ),
    Metric(
        names.ACCUMULATED_IDLE_TIME,
        "gauge",
        "ms",
        "vertex",
        _TIMED,
        "Idle time since the subtask was first seen.",
        f"as {names.IDLE_TIME}; time held up in the batch under way is not known for such before it has ended",
        _HELD_UP,
    ),
    Metric(
        names.ACCUMULATED_BACK_PRESSURED_TIME,
        "gauge",
        "ms",
        "vertex",
        _TIMED,
        "Back-pressured time since the subtask was first seen.",
        f"as {names.BACK_PRESSURED_TIME}, of batches that have ended",
        _HELD_UP,
    ),
    Metric(
        names.IS_BACK_PRESSURED,
        "bool",
        "",
        "vertex",
        _TIMED,
        "Whether it was back-pressured when the hooks last looked.",
        "looked at every 5 s",
        _HELD_UP,
    ),
)

_QUEUES: tuple[tuple[str, Metric], ...] = (
    (
        names.OUTPUT_BUFFERS,
        Metric(
            names.OUTPUT_QUEUE_LENGTH,
            "gauge",
            "buffers",
            "vertex",
            _SHUFFLED,
            "Shuffle blocks that it has written and that unfinished downstream tasks have yet to read.",
            "downstream tasks that have not finished, once its own task has; 0 between batches",
            _BLOCKS,
        ),
    ),
    (
        names.OUTPUT_BUFFERS,
        Metric(
            names.OUTPUT_QUEUE_SIZE,
            "gauge",
            "bytes",
            "vertex",
            _SHUFFLED,
            "Bytes that it has written and that unfinished downstream tasks have yet to read.",
            "'shuffle bytes written' less the share of readers that have finished; 0 between batches",
            _BYTES,
        ),
    ),
    (
        names.OUTPUT_BUFFERS,
        Metric(
            names.OUT_POOL_USAGE,
            "gauge",
            "",
            "vertex",
            "TaskEnd, BlockManagerAdded",
            "Execution memory that its latest task held at most, over its slot's share of the executor's, 0 to 1.",
            "peakExecutionMemory / (unified memory / slots), at most 1; 0 for an empty pool, absent where unknown",
        ),
    ),
    (
        names.INPUT_BUFFERS,
        Metric(
            names.INPUT_QUEUE_LENGTH,
            "gauge",
            "buffers",
            "vertex",
            _SHUFFLED,
            "Shuffle blocks on other executors that wait for it; 0 where there is one executor, as in local mode.",
            "upstream tasks that have finished elsewhere, until its own task has; not yet placed it has all of them "
            "elsewhere",
            _BLOCKS,
        ),
    ),
    (
        names.INPUT_BUFFERS,
        Metric(
            names.INPUT_QUEUE_SIZE,
            "gauge",
            "bytes",
            "vertex",
            _SHUFFLED,
            "Bytes on other executors that wait for it; 0 where there is one executor, as in local mode.",
            "(bytes written − bytes that finished tasks have read) / tasks that have not finished, the remote part",
            _BYTES,
        ),
    ),
    (
        names.INPUT_BUFFERS,
        Metric(
            names.IN_POOL_USAGE,
            "gauge",
            "",
            "vertex",
            _SHUFFLED,
            "How full its fetches are, 0 to 1, mean of the last 60 s.",
            f"{names.INPUT_QUEUE_SIZE} / spark.reducer.maxSizeInFlight, at most 1, mean of 12 looks, one every 5 s",
            _BYTES,
        ),
    ),
)

_REST: tuple[Metric, ...] = (
    *metered(
        Metric(
            names.NUM_BYTES_SPILLED,
            "counter",
            "bytes",
            "vertex",
            "TaskEnd",
            "Bytes that its tasks spilled to disk.",
            "Σ diskBytesSpilled",
        )
    ),
    Metric(
        names.CHECKPOINT_ALIGNMENT_TIME,
        "gauge",
        "ns",
        "vertex",
        "TaskEnd",
        "How long its input was complete in part only, in the latest batch in which its upstream tasks ran.",
        "last − first finish of the tasks whose shuffles it reads; until all have finished, now − first finish",
    ),
    Metric(
        names.CHECKPOINT_START_DELAY,
        "gauge",
        "ns",
        "vertex",
        "TaskStart, QueryProgressEvent",
        "How long its stage waited for its turn, in the latest batch that ran it.",
        "its stage's first launch − the batch's trigger; before that is told, − the start of the batch's execution",
    ),
    Metric(
        names.LATENCY,
        "histogram",
        "ms",
        "vertex",
        MICRO_BATCHES,
        "Time from when a latency marker was due at a source to when it reached an operator; its ids name both.",
        "arrival − marked time, of the last 128 markers (latency_history_size)",
        _MARKER,
    ),
    Metric(
        names.LATENCY,
        "string",
        "ms",
        "operator",
        MICRO_BATCHES,
        "The latencies of markers in Flink 1.2's form, one text; only a sink tells the source's subtasks apart.",
        "{LatencySourceDescriptor{vertexID=…, subtaskIndex=…}={max=…, mean=…, min=…, p50=…, p95=…, p99=…}, …}",
        _MARKER,
    ),
)

METRICS: tuple[Metric, ...] = (
    *_rows("vertex"),
    *(each for counter in (*_TOTALS, *_NETWORK) for each in metered(counter)),
    *(each for counter in _NETWORK for each in metered(replace(counter, name=f"{names.SHUFFLE_INPUT}{counter.name}"))),
    *_TIME,
    *(
        replace(metric, name=f"{prefix}{metric.name}")
        for present, metric in _QUEUES
        for prefix in (present, names.OLD_BUFFERS)
    ),
    *_REST,
    *_rows("operator"),
)

_AT = f"operator_id.<operator>.operator_subtask_index.<subtask>.{names.LATENCY}_<statistic>"
_LATENCY = next(metric for metric in METRICS if metric.type == "histogram")

PATTERNS: tuple[Metric, ...] = (
    replace(
        _LATENCY,
        name=f"{names.LATENCY}.source_id.<source>.{_AT}",
        type="gauge",
        help="A statistic of the markers of a source at an operator; with latency_granularity operator.",
    ),
    replace(
        _LATENCY,
        name=f"{names.LATENCY}.{_AT}",
        type="gauge",
        help="The same of all sources' markers together; with latency_granularity single.",
    ),
    replace(
        _LATENCY,
        name=f"{names.LATENCY}.source_id.<source>.source_subtask_index.<source subtask>.{_AT}",
        type="gauge",
        help="The same of the markers of one subtask of a source; with latency_granularity subtask.",
    ),
)
