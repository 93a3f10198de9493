"""…/vertices/:vertexid/timers: what became of timers, and how late they fired."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from collector.histogram import BOUNDS_MS
from collector.taps import Taps
from service.errors import Missing
from service.flink import timers
from service.flink.query import Query
from streamgauge import names
from streamgauge.errors import UnknownJob

JID, VERTEX = "d" * 32, "c" * 32


def ask(states: Any, vertex: Any) -> Any:
    """The body as it is sent."""
    body = timers.vertex(
        Query.parse(states.snapshot(states.job(vertex)), 5_000, {"jobid": JID, "vertexid": VERTEX}, b"")
    )
    return msgspec.json.decode(msgspec.json.encode(body))


def test_timers_of_all_subtasks_together(states: Any) -> None:
    """Sums over those that told any; the rate is Flink's meter, the lateness of the whole run."""
    columns = {
        names.NUM_REGISTERED_TIMERS: states.column(5, 7),
        names.NUM_DELETED_TIMERS: states.column(1, None),
        names.NUM_PENDING_TIMERS: states.column(0, 4),
        names.NUM_FIRED_TIMERS: states.column(3, 4),
        names.NUM_FIRED_TIMERS + names.PER_SECOND: states.column(0.25, 0.5),
        names.TIMER_TIME: states.column(12, 1),
    }
    lateness = {(f"{1:032x}", names.TIMER_LATENESS): states.buckets(10, 20, 20)}
    vertex = states.vertex(operators={"Map": {}, "Timers": columns}, taps=Taps((), lateness))
    body = ask(states, vertex)
    [told] = body["operators"]
    late = told.pop("lateness")
    assert told == {
        "operator-id": f"{1:032x}",
        "operator-name": "Timers",
        "registered": 12,
        "deleted": 1,
        "pending": 4,
        "fired": 7,
        "fired-per-second": 0.75,
        "processing-ms": 13,
    }
    assert (late["count"], late["min-ms"], late["p50-ms"], late["max-ms"]) == (3, 10, 20, 20)
    assert body["bounds-ms"] == list(BOUNDS_MS)


def test_what_is_not_told_is_null(states: Any) -> None:
    """Spark's own timers tell no firing; a service of ours whose timers all fired on time still has a lateness."""
    columns = {names.NUM_REGISTERED_TIMERS: states.column(5, 7), names.NUM_FIRED_TIMERS: states.column(None, None)}
    lateness = {(f"{1:032x}", names.TIMER_LATENESS): states.buckets()}
    vertex = states.vertex(operators={"Own": columns, "Late": {}}, taps=Taps((), lateness))
    own, late = ask(states, vertex)["operators"]
    assert {key: value for key, value in own.items() if value is not None} == {
        "operator-id": f"{0:032x}",
        "operator-name": "Own",
        "registered": 12,
    }
    assert (late["registered"], late["lateness"]["count"], late["lateness"]["p99-ms"]) == (None, 0, None)


def test_operators_without_timers_are_left_out(states: Any) -> None:
    """Most have none."""
    records = {(f"{0:032x}", names.RECORD_LATENCY): states.buckets(3)}
    vertex = states.vertex(operators={"Map": {names.NUM_RECORDS_IN: states.column(1, 2)}}, taps=Taps((), records))
    assert ask(states, vertex)["operators"] == []


def test_unknown_job_and_vertex_are_refused(states: Any) -> None:
    """As by the other resources of a vertex."""
    snapshot = states.snapshot(states.job(states.vertex()))
    with pytest.raises(UnknownJob):
        timers.vertex(Query.parse(snapshot, 0, {"jobid": "e" * 32, "vertexid": VERTEX}, b""))
    with pytest.raises(Missing, match=r"No vertex with ID 'e+' exists"):
        timers.vertex(Query.parse(snapshot, 0, {"jobid": JID, "vertexid": "e" * 32}, b""))
