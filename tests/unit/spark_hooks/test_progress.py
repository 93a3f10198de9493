"""Spark's progress events, as they are read."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_hooks.progress import Sink, Source, StateOperator, read
from spark_hooks.records import QueryProgress

PROGRESS: dict[str, Any] = {
    "id": "f966a300-c338-468a-8b95-9b96def5f038",
    "runId": "a2571c0b-89cc-4f8a-954d-77b98d606195",
    "name": None,
    "timestamp": "2026-11-21T10:42:48.769Z",
    "batchId": 4,
    "batchDuration": 2234,
    "numInputRows": 100,
    "inputRowsPerSecond": 50.0,
    "durationMs": {"addBatch": 1427, "triggerExecution": 2232},
    "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"},
    "stateOperators": [{"operatorName": "stateStoreSave", "memoryUsedBytes": 1296, "customMetrics": {"x": 1}}],
    "sources": [{"description": "RateStreamV2[rowsPerSecond=50]", "startOffset": None, "numInputRows": 100}],
    "sink": {"description": "NoopTable$", "numOutputRows": -1},
    "observedMetrics": {},
}


def test_progress_is_read_from_sparks_own_json() -> None:
    """Names in camelCase end here."""
    told = read(QueryProgress(json.dumps(PROGRESS)))
    assert (told.id, told.run_id, told.batch_id) == (PROGRESS["id"], PROGRESS["runId"], 4)
    assert (told.timestamp, told.num_input_rows) == (PROGRESS["timestamp"], 100)
    assert told.duration_ms["triggerExecution"] == 2232
    assert told.sources == (Source("RateStreamV2[rowsPerSecond=50]", num_input_rows=100),)
    assert told.sink == Sink("NoopTable$", -1)
    assert told.state_operators == (StateOperator(1296, {"x": 1}),)
    assert told.event_time == {"watermark": "1970-01-01T00:00:00.000Z"}


def test_what_progress_does_not_tell_has_its_default() -> None:
    """Unknown sink rows are -1, as Spark says it, and never 0."""
    bare = {name: PROGRESS[name] for name in ("id", "runId", "batchId", "timestamp")}
    told = read(QueryProgress(json.dumps(bare)))
    assert (told.num_input_rows, told.duration_ms, told.sources, told.state_operators) == (0, {}, (), ())
    assert told.event_time == {}
    assert told.sink.num_output_rows == -1


def test_a_nan_that_a_user_observes_costs_no_progress() -> None:
    """Spark writes it as such, which is no JSON."""
    text = json.dumps(PROGRESS | {"observedMetrics": {"seen": {"mean": float("nan"), "least": -math.inf}}})
    assert "NaN" in text
    told = read(QueryProgress(text))
    assert (told.batch_id, told.num_input_rows) == (4, 100)
    assert math.isnan(told.observed_metrics["seen"]["mean"])
    assert told.observed_metrics["seen"]["least"] == -math.inf
    assert read(QueryProgress(json.dumps(PROGRESS))).observed_metrics == {}


@pytest.mark.parametrize("missing", ["id", "runId", "batchId", "timestamp"])
def test_progress_without_what_every_spark_tells_is_refused(missing: str) -> None:
    """Without these it belongs to no batch."""
    body = {name: value for name, value in PROGRESS.items() if name != missing}
    with pytest.raises(msgspec.DecodeError, match=missing):
        read(QueryProgress(json.dumps(body)))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_arbitrary_progress_raises_decode_errors_only(text: str) -> None:
    """One error here too."""
    with pytest.raises(msgspec.DecodeError):
        read(QueryProgress(text))
