"""What is told of the timers of stateful operators: transformWithState's, and TimerService's on top of them."""

from __future__ import annotations

from dataclasses import replace

from streamgauge import names
from streamgauge.catalogue.metric import Metric, metered

_TASKS = "TaskEnd"
_REPORTS = "TaskEnd, and TimerService's accumulator"

_FIRED = Metric(
    names.NUM_FIRED_TIMERS,
    "counter",
    "timers",
    "operator",
    _REPORTS,
    "Timers that fired; absent where neither Spark nor a TimerService tells: Spark does not for processors in Python.",
    "what TimerService reports, else 'Number of expired timers' of TransformWithState",
)

METRICS: tuple[Metric, ...] = (
    *metered(
        replace(
            _FIRED,
            scope="vertex",
            help="Timers that fired; absent where the operator's is, and at every vertex without timers.",
            formula="Σ over its operators",
        )
    ),
    *metered(_FIRED),
    Metric(
        names.NUM_REGISTERED_TIMERS,
        "counter",
        "timers",
        "operator",
        _REPORTS,
        "Timers that were registered and were not there; without a TimerService Spark's count, which is of calls: "
        "one that is there counts too.",
        "what TimerService reports, else 'Number of registered timers'",
    ),
    Metric(
        names.NUM_DELETED_TIMERS,
        "counter",
        "timers",
        "operator",
        _REPORTS,
        "Timers that were deleted and were there; without a TimerService Spark's count, which is of calls, and has "
        "those that fired in it.",
        "what TimerService reports, else 'Number of deleted timers'",
    ),
    Metric(
        names.NUM_PENDING_TIMERS,
        "gauge",
        "timers",
        "operator",
        _TASKS,
        "Timers that wait in the state store, also those of earlier runs; several namespaces of a key at one timestamp "
        "are one. Absent where the processor has lists or state that expires, for the store does not tell them apart, "
        "and where the store counts no rows.",
        "'RocksDB: number of internal keys for internal column families' / 2, where "
        "'RocksDB: number of internal column families' is 2",
    ),
    Metric(
        names.TIMER_TIME,
        "counter",
        "ms",
        "operator",
        _REPORTS,
        "Time in the callbacks of timers; absent where numFiredTimers is.",
        "what TimerService reports, else 'Number of milliseconds taken to process all timers' of TransformWithState",
    ),
)
