"""
Watermarks split by split: …/vertices/:vertexid/splits, ours in Flink's manner.

Spark's watermark follows the fastest split. Beside it stands the one that follows the slowest, as Flink's does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from typing_extensions import TypedDict

from collector import columns
from collector.histogram import BOUNDS_MS, histogram
from collector.store import JobState, VertexState
from collector.taps import figures
from service.flink.distributions import Distribution, distribution
from service.flink.ids import Id
from service.flink.query import Query
from service.watermarks import standing_ms
from streamgauge import names, wire
from streamgauge.watermarks import END_OF_INPUT_MS, NO_WATERMARK_MS
from streamgauge.wire import ENDED_STATES

Watermark = TypedDict("Watermark", {"watermark": int | None, "finished": bool, "lag-ms": int | None})
"""
Unix ms; null before there is one, Long.MAX_VALUE where `finished`, that is at the end of input. The lag is by the
service's clock; null where there is none, and of a job that has ended.
"""

Split = TypedDict(
    "Split",
    {
        "id": str,
        "watermark": int | None,
        "finished": bool,
        "lag-ms": int | None,
        "idle": bool | None,
        "drift-ms": int | None,
        "records": int | None,
        "records-at-risk": int | None,
        "active-ms-per-second": int | None,
        "paused-ms-per-second": int | None,
        "idle-ms-per-second": int | None,
        "accumulated-active-ms": int | None,
        "accumulated-paused-ms": int | None,
        "accumulated-idle-ms": int | None,
    },
)
"""What is not told is null. `drift-ms` is by how much its watermark is behind the greatest of those not idle."""

Tap = TypedDict(
    "Tap",
    {
        "name": str,
        "operator-id": Id,
        "operator-name": str,
        "watermark": int | None,
        "finished": bool,
        "lag-ms": int | None,
        "idle": bool,
        "max-out-of-orderness-ms": int,
        "idleness-ms": int | None,
        "by-subtask": bool,
        "unwatched-records": int,
        "records-at-risk": int | None,
        "max-drift-ms": int | None,
        "splits": list[Split],
    },
)
"""`idleness-ms` is null where no split ever counts as idle. Splits with the greatest drift come first."""

TapPlace = TypedDict("TapPlace", {"vertex-id": Id, "vertex-name": str, "name": str})

Combined = TypedDict(
    "Combined",
    {"watermark": int | None, "finished": bool, "lag-ms": int | None, "taps": list[TapPlace]},
)
"""What the vertex' watermark would be if it followed the slowest split, and the upstream taps that it is made of."""

Records = TypedDict(
    "Records",
    {
        "operator-id": Id,
        "operator-name": str,
        "latency": Distribution | None,
        "queueing": Distribution | None,
    },
)
"""From when a record was made to the end of its micro-batch; of it `queueing` to the micro-batch's trigger."""

VertexSplits = TypedDict(
    "VertexSplits",
    {
        "spark": Watermark,
        "combined": Combined,
        "taps": list[Tap],
        "bounds-ms": list[int],
        "records": list[Records],
    },
)
"""
`spark` is the watermark by which Spark drops late rows: the vertex' own, of a source that of the nearest vertices
behind it.
"""


def vertex(query: Query) -> VertexSplits:
    """
    Answer …/vertices/:vertexid/splits: its taps, what they make of its watermark, and how late records were.

    Of a vertex without taps, and with none before it, lists are empty and watermarks null.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: the job has no such vertex.
    """
    state = query.job_vertex()
    job = query.job()
    now_ms = None if job.state in ENDED_STATES else query.now_ms
    combined = _told(_least([state], names.CURRENT_SPLIT_WATERMARK), now_ms)
    return {
        "spark": _told(_spark(job, state), now_ms),
        "combined": {
            **combined,
            "taps": [_place(each, tap) for each in _upstream(job, state) for tap in _tapped(each)],
        },
        "taps": [_tap(state, tap, now_ms) for tap in state.taps.taps],
        "bounds-ms": list(BOUNDS_MS),
        "records": list(_records(state)),
    }


def _told(watermark_ms: int, now_ms: int | None, max_out_of_orderness_ms: int = 0) -> Watermark:
    standing = standing_ms(watermark_ms, max_out_of_orderness_ms)
    return {
        "watermark": END_OF_INPUT_MS if watermark_ms == END_OF_INPUT_MS else standing,
        "finished": watermark_ms == END_OF_INPUT_MS,
        "lag-ms": None if standing is None or now_ms is None else now_ms - standing,
    }


def _least(states: Iterable[VertexState], metric: str) -> int:
    """Return the least watermark of all subtasks of vertices; NO_WATERMARK_MS where there is none."""
    found = []
    for state in states:
        column = state.columns.get(metric)
        if column is not None:
            found += [int(value) for value in column.values[columns.subtasks(column)].tolist() if math.isfinite(value)]
    return min(max(min(found, default=NO_WATERMARK_MS), NO_WATERMARK_MS), END_OF_INPUT_MS)


def _spark(job: JobState, state: VertexState) -> int:
    seen = {state.vertex.id}
    level = [state]
    while level:
        told = [each for each in level if names.CURRENT_INPUT_WATERMARK in each.columns]
        if told:
            return _least(told, names.CURRENT_INPUT_WATERMARK)
        above = {each.vertex.id for each in level}
        level = [
            each
            for each in job.vertices.values()
            if each.vertex.id not in seen and not above.isdisjoint(edge.source for edge in each.vertex.inputs)
        ]
        seen.update(each.vertex.id for each in level)
    return NO_WATERMARK_MS


def _upstream(job: JobState, state: VertexState) -> list[VertexState]:
    """Return all vertices whose records reach this one, the nearest first."""
    found: dict[str, VertexState] = {}
    level = [state]
    while level:
        sources = dict.fromkeys(edge.source for each in level for edge in each.vertex.inputs)
        level = [job.vertices[source] for source in sources if source in job.vertices and source not in found]
        found.update((each.vertex.id, each) for each in level)
    return list(found.values())


def _tapped(state: VertexState) -> Iterator[wire.Tap]:
    """Yield the taps that tell of event time: the others have no splits."""
    yield from (tap for tap in state.taps.taps if tap.splits)


def _place(state: VertexState, tap: wire.Tap) -> TapPlace:
    return {"vertex-id": state.vertex.id, "vertex-name": state.vertex.name, "name": tap.name}


def _tap(state: VertexState, tap: wire.Tap, now_ms: int | None) -> Tap:
    told = figures(tap)
    splits = [_split(tap, told, place, now_ms) for place in range(len(tap.splits))]
    drifts = [split["drift-ms"] for split in splits if split["drift-ms"] is not None]
    at_risk = [split["records-at-risk"] for split in splits if split["records-at-risk"] is not None]
    return {
        "name": tap.name,
        "operator-id": tap.operator,
        "operator-name": operator_name(state, tap.operator),
        **_told(tap.watermark_ms, now_ms, tap.max_out_of_orderness_ms),
        "idle": tap.idle,
        "max-out-of-orderness-ms": tap.max_out_of_orderness_ms,
        "idleness-ms": tap.idleness_ms if tap.idleness_ms >= 0 else None,
        "by-subtask": tap.by_subtask,
        "unwatched-records": tap.unwatched,
        "records-at-risk": sum(at_risk) if at_risk else None,
        "max-drift-ms": max(drifts, default=None),
        # Whoever is woken asks which split it is; equal ones stay in the order in which they are watched.
        "splits": sorted(splits, key=lambda split: math.inf if (drift := split["drift-ms"]) is None else -drift),
    }


def _split(tap: wire.Tap, told: dict[str, list[int | float | None]], place: int, now_ms: int | None) -> Split:
    def whole(metric: str) -> int | None:
        value = told[metric][place] if metric in told else None
        return None if value is None else int(value)

    watermark, idle = whole(names.SPLIT_CURRENT_WATERMARK), whole(names.SPLIT_IDLE)
    return {
        "id": tap.splits[place],
        **_told(NO_WATERMARK_MS if watermark is None else watermark, now_ms, tap.max_out_of_orderness_ms),
        "idle": None if idle is None else bool(idle),
        "drift-ms": whole(names.SPLIT_WATERMARK_DRIFT),
        "records": whole(names.SPLIT_RECORDS),
        "records-at-risk": whole(names.SPLIT_RECORDS_AT_RISK),
        "active-ms-per-second": whole(names.SPLIT_ACTIVE_TIME),
        "paused-ms-per-second": whole(names.SPLIT_PAUSED_TIME),
        "idle-ms-per-second": whole(names.SPLIT_IDLE_TIME),
        "accumulated-active-ms": whole(names.SPLIT_ACCUMULATED_ACTIVE_TIME),
        "accumulated-paused-ms": whole(names.SPLIT_ACCUMULATED_PAUSED_TIME),
        "accumulated-idle-ms": whole(names.SPLIT_ACCUMULATED_IDLE_TIME),
    }


def _records(state: VertexState) -> Iterator[Records]:
    for operator in state.vertex.operators:
        told = {
            metric: distribution(histogram(state.taps.distributions[operator.id, metric]))
            for metric in (names.RECORD_LATENCY, names.RECORD_QUEUEING)
            if (operator.id, metric) in state.taps.distributions
        }
        if told:
            yield {
                "operator-id": operator.id,
                "operator-name": operator.name,
                "latency": told.get(names.RECORD_LATENCY),
                "queueing": told.get(names.RECORD_QUEUEING),
            }


def operator_name(state: VertexState, operator: str) -> str:
    """Return the name of an operator of a vertex by its id; '' where it has none such. Any thread."""
    return next((each.name for each in state.vertex.operators if each.id == operator), "")
