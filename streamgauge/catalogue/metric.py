"""What an entry of the catalogue is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from streamgauge.names import PER_SECOND

Type = Literal["counter", "meter", "gauge", "bool", "string", "histogram"]
"""
counter: int64 that only grows within a run. meter: a rate over 60 s. gauge: int64 or float64. histogram: the eleven
statistics of the latest values.
"""

Scope = Literal["job", "vertex", "operator", "coordinator", "executor", "driver", "cluster", "hooks"]
"""
Where a metric lives; vertex and operator metrics have one value a subtask. A coordinator's are what the driver knows of
a source.
"""

PROGRESS = "QueryProgressEvent"
MICRO_BATCHES = "QueryStartedEvent, SQLExecutionStart, TaskEnd, SQLExecutionEnd, QueryProgressEvent, QueryIdleEvent"
"""Sources that several metrics share; Spark's listener events are called by their names without 'SparkListener'."""

METER = "(newest − oldest) / 60 s of 13 counts, one every 5 s, all 0 at first: it climbs for a minute, as in Flink"


@dataclass(frozen=True, slots=True)
class Metric:
    """
    One metric of the catalogue, or with '<…>' in its name a pattern of them.

    Args:
        name: Flink's, without subtask and operator.
        unit: records, bytes, buffers, ms, ms/s, 1/s, bytes/s, … ; '' for a plain number.
        source: What in Spark it is taken from.
        help: Its meaning on Spark, one sentence.
        formula: How it follows from what Spark tells; '' where it is told as it is.
        estimate: Why it is not exact; '' where it is.
    """

    name: str
    type: Type
    unit: str
    scope: Scope
    source: str
    help: str
    formula: str = ""
    estimate: str = ""


def metered(counter: Metric) -> tuple[Metric, Metric]:
    """Return a counter and its rate."""
    return counter, replace(
        counter,
        name=counter.name + PER_SECOND,
        type="meter",
        unit=f"{counter.unit}/s",
        help=f"Rate of {counter.name} over the last 60 s (Flink's MeterView).",
        formula=METER,
    )
