"""
Flights that should have landed a while ago: one timer a flight, on Spark's transformWithState.

Needs Spark 4.1 or later, and what its Python workers need: pandas, pyarrow and protobuf.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor

import streamgauge

GRACE = timedelta(minutes=15)
"""A flight is overdue from so long after its planned arrival."""

WATERMARK_DELAY = "10 minutes"
"""Movements come in the order in which they happen, so none of them is late."""

FLIGHT = ("carrier", "number", "origin", "destination", "scheduled_ms")
"""What tells a flight from all others; the numbers are Unix milliseconds, which no time zone can bend."""

_RESULT = "carrier STRING, number INT, origin STRING, destination STRING, scheduled_ms LONG, due_ms LONG"


class Overdue(StatefulProcessor):  # type: ignore[misc]
    """
    Puts out a flight that has departed and has not landed when GRACE after its planned arrival is over.

    A departure registers a timer, an arrival deletes it. What counts is when a flight landed, not when the row came:
    one that landed after its timer was due leaves it alone, though both rows may be in one batch. So what is put out
    does not depend on how the stream is cut into batches. A flight that departs when it is overdue is put out at once.
    """

    def __init__(self) -> None:
        self._timers = streamgauge.TimerService("overdue")

    def init(self, handle: Any) -> None:
        """Take Spark's handle."""
        self._timers.open(handle, self)

    def handleInputRows(self, key: Any, rows: Iterable[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Register or delete the timer of one flight; its rows of one batch come in any order."""
        timers = self._timers.at(key, timerValues)
        for row in sorted(rows, key=lambda row: row.at_ms):
            if row.kind == "departure":
                timers.register_event_time_timer(row.due_ms)
            elif row.at_ms <= row.due_ms:
                timers.delete_event_time_timer(row.due_ms)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Let the timer service call back."""
        yield from self._timers.fire(key, timerValues, expiredTimerInfo)

    def on_event_time(self, timer: Any, timers: Any) -> Iterator[Row]:
        """Put out the flight, which the timer's key tells."""
        yield Row(**dict(zip(FLIGHT, timer.key, strict=True)), due_ms=timer.timestamp_ms)

    def close(self) -> None:
        """Nothing is held that Spark does not hold."""


def overdue(movements: DataFrame) -> DataFrame:
    """
    Return flights that have not landed GRACE after their planned arrival, each once, as soon as the watermark tells.

    Args:
        movements: Departures and arrivals, in the session of `timer_session`.

    Returns:
        carrier, number, origin, destination, scheduled (the planned departure) and due (since when it is overdue).

    Raises:
        TimerError: this Spark has no transformWithState.
    """
    due = f.unix_millis("scheduled_arrival") + f.lit(GRACE // timedelta(milliseconds=1))
    found = (
        movements.withWatermark("at", WATERMARK_DELAY)
        .withColumns({"at_ms": f.unix_millis("at"), "scheduled_ms": f.unix_millis("scheduled"), "due_ms": due})
        .drop("scheduled", "scheduled_arrival")
        .groupBy(*FLIGHT)
        .transformWithState(Overdue(), _RESULT, outputMode="append", timeMode="EventTime")
    )
    instants = (f.timestamp_millis(f"{name}_ms").alias(name) for name in ("scheduled", "due"))
    return found.select(*FLIGHT[:-1], *instants)
