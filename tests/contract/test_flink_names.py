"""The catalogue against the metric ids that a real Flink 2.3 lists (recorded answers in flink_names/)."""

import json
import re
from pathlib import Path

import pytest

from streamgauge import catalogue, names

RECORDED = Path(__file__).parent / "flink_names"

OURS = {
    ("job", "lastCheckpointProcessedRows"),
    ("job", "numInputRows"),
    ("job", "numOutputRows"),
    ("coordinator", "numInputRows"),
    ("coordinator", "inputRowsPerSecond"),
    ("coordinator", "processedRowsPerSecond"),
    *(
        ("job", name)
        for name in (
            names.TRIGGER_INTERVAL,
            names.BACKLOGGED,
            names.KEEP_UP_RATIO,
            names.BACKLOG_ROWS,
            names.BACKLOG_ROWS_TREND,
        )
    ),
    *(("job", name) for name in (names.BACKLOG_TIME, names.BACKLOG_TIME_TREND)),
    *(("job", name) for name in (names.MARKERS_EMITTED, names.MARKERS_RECORDED, names.MARKERS_IN_FLIGHT)),
    *(("job", name) for name in names.MARKERS_DROPPED_BY.values()),
    ("vertex", names.SLOT_WAIT_TIME),
    ("vertex", names.NUM_BYTES_SPILLED),
    ("vertex", names.NUM_BYTES_SPILLED + names.PER_SECOND),
    ("operator", names.UNREAD_FILES),
    *(
        ("operator", name)
        for name in (
            names.NUM_REGISTERED_TIMERS,
            names.NUM_DELETED_TIMERS,
            names.NUM_PENDING_TIMERS,
            names.TIMER_TIME,
            # Flink's, of the vertex.
            names.NUM_FIRED_TIMERS,
            names.NUM_FIRED_TIMERS + names.PER_SECOND,
        )
    ),
    *(
        ("operator", name)
        for name in (
            names.NUM_STATE_ROWS,
            names.NUM_STATE_ROWS_UPDATED,
            names.NUM_STATE_ROWS_REMOVED,
            names.STATE_MEMORY_USED,
            names.STATE_COMMIT_TIME,
        )
    ),
    # Of record taps.
    ("vertex", names.CURRENT_SPLIT_WATERMARK),
    ("operator", names.RECORD_LATENCY),
    ("operator", names.RECORD_QUEUEING),
    # Flink 1.2's.
    ("operator", names.LATENCY),
    ("vertex", names.CURRENT_LOW_WATERMARK),
    # Flink's too, of windows; the recorded program has none.
    ("operator", names.NUM_LATE_RECORDS_DROPPED),
    ("operator", names.NUM_LATE_RECORDS_DROPPED + names.PER_SECOND),
    *(
        ("vertex", names.OLD_BUFFERS + name)
        for name in (
            names.OUTPUT_QUEUE_LENGTH,
            names.OUTPUT_QUEUE_SIZE,
            names.OUT_POOL_USAGE,
            names.INPUT_QUEUE_LENGTH,
            names.INPUT_QUEUE_SIZE,
            names.IN_POOL_USAGE,
        )
    ),
    # Flink's too; the recorded source reads numbers that it makes itself, and nothing is ever pending there.
    ("operator", names.PENDING_RECORDS),
    ("operator", names.FETCH_LAG),
    # Flink's too, with metrics.system-resource on, as the recorded one had it not.
    ("driver", "System.Memory.Total"),
    ("executor", "System.Memory.Total"),
}
"""What Spark tells and Flink has no word for; the hooks' own figures are ours altogether."""


def _ids(file: str) -> list[str]:
    return [entry["id"] for entry in json.loads((RECORDED / file).read_text())]


def _known(metric: catalogue.Metric) -> bool:
    if metric.scope == "job":
        return metric.name in _ids("job.json")
    if metric.scope == "vertex":
        told = _ids("vertex.json")
        if metric.type == "histogram":
            return any(re.fullmatch(rf"0\.{metric.name}\..*\.{metric.name}_p99", each) for each in told)
        return f"0.{metric.name}" in told
    if metric.scope == "operator":
        of_source = f"0.Source__datagen.{metric.name}" in _ids("source_vertex.json")
        return of_source or f"0.Count_Map.{metric.name}" in _ids("vertex.json")
    return metric.name in _ids("taskmanager.json" if metric.scope == "executor" else "jobmanager.json")


@pytest.mark.parametrize(
    "metric",
    [metric for metric in catalogue.METRICS if metric.scope != "hooks"],
    ids=lambda metric: f"{metric.scope}-{metric.name}",
)
def test_a_name_is_flinks_or_declared_as_ours(metric: catalogue.Metric) -> None:
    """Names are Flink's, exactly, at the same scope; what is not is on a short list, and nothing on it is Flink's."""
    assert _known(metric) is ((metric.scope, metric.name) not in OURS)


def test_nothing_is_declared_as_ours_in_vain() -> None:
    """The list holds only what the catalogue has."""
    assert {(metric.scope, metric.name) for metric in catalogue.METRICS} >= OURS


def test_an_operators_name_is_filtered_as_flink_does() -> None:
    """'Count Map' is listed as 'Count_Map'."""
    assert any(entry.startswith(f"0.{names.filtered('Count Map')}.numRecordsIn") for entry in _ids("vertex.json"))
