"""What is told of the state of stateful operators."""

from __future__ import annotations

from streamgauge import names
from streamgauge.catalogue.metric import Metric

METRICS: tuple[Metric, ...] = (
    Metric(
        names.NUM_STATE_ROWS,
        "gauge",
        "rows",
        "operator",
        "TaskEnd",
        "Rows in the state store, as the subtask's latest batch left it; of a stream-stream join those of all its "
        "stores. Absent before a store told any: RocksDB may be set to count none.",
        "'number of total state rows'",
    ),
    Metric(
        names.STATE_MEMORY_USED,
        "gauge",
        "bytes",
        "operator",
        "TaskEnd",
        "Memory that the state store takes by its own word, as the subtask's latest batch left it; of a stream-stream "
        "join that of all its stores.",
        "'memory used by state'",
    ),
    Metric(
        names.NUM_STATE_ROWS_UPDATED,
        "counter",
        "rows",
        "operator",
        "TaskEnd",
        "Rows that were written into the state store, new ones and others.",
        "'number of updated state rows'",
    ),
    Metric(
        names.NUM_STATE_ROWS_REMOVED,
        "counter",
        "rows",
        "operator",
        "TaskEnd",
        "Rows that were removed from the state store, as those behind the watermark are.",
        "'number of removed state rows'",
    ),
    Metric(
        names.STATE_COMMIT_TIME,
        "counter",
        "ms",
        "operator",
        "TaskEnd",
        "Time in which tasks committed their state store's changes; part of their busy time.",
        "'time to commit changes'",
    ),
)
