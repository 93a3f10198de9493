"""
Latencies as metrics of a vertex, under Flink's ids: of the granularity that is set, and in the form of Flink 1.2.

An id names the subtask that recorded, so it exists on that subtask only.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence

import numpy as np

from collector.latencies import LatencyKey, LatencyWindow
from collector.store import VertexState
from service.flink.numbers import double
from service.flink.query import Query
from streamgauge import names, wire

SINK = "Sink: "
"""What the names of sinks begin with, as those of no other operator do."""

_ID = re.compile(
    rf"{names.LATENCY}\."
    r"(?:source_id\.(?P<source>[0-9a-f]{32})\.(?:source_subtask_index\.(?P<emitted>0|[1-9][0-9]{0,9})\.)?)?"
    r"operator_id\.(?P<operator>[0-9a-f]{32})\."
    r"operator_subtask_index\.(?P<subtask>0|[1-9][0-9]{0,9})\."
    rf"{names.LATENCY}_(?P<statistic>{'|'.join(names.LATENCY_STATISTICS)})"
)
_BEGIN, _END = f"{names.LATENCY}.", f".{names.LATENCY}"
_ROWS = {name: row for row, name in enumerate(names.LATENCY_STATISTICS)}
_WHOLE = frozenset({"min", "max"})
_LEGACY = (("max", "max"), ("mean", "mean"), ("min", "min"), ("p50", "median"), ("p95", "p95"), ("p99", "p99"))
"""Flink 1.2's names of statistics, and today's."""


def granularity(query: Query) -> wire.LatencyGranularity | None:
    """Return what latencies of the path's job are told apart by; None where it is unknown, or emits no markers."""
    job = query.known_job()
    return None if job is None else job.job.latency


def windows(
    vertex: VertexState, told_apart: wire.LatencyGranularity | None
) -> Iterator[tuple[LatencyKey, LatencyWindow]]:
    """Yield the windows of one granularity, by operator from source to sink; none where it is None."""
    held = vertex.latencies.windows
    if held and told_apart is not None:
        places = {operator.id: place for place, operator in enumerate(vertex.vertex.operators)}
        for key in sorted(held, key=lambda key: (places[key.operator], key.source, key.source_subtask)):
            if _granularity_of(key) == told_apart:
                yield key, held[key]


def legacy_windows(vertex: VertexState, operator: wire.Operator) -> list[tuple[LatencyKey, LatencyWindow]]:
    """
    Return the windows of an operator that Flink 1.2 kept: of a sink by source subtask, of any other by source.

    A sink of which those were not kept is told as any other.

    Source: Flink 1.2, `AbstractStreamOperator.LatencyGauge`.
    """
    mine = [(key, window) for key, window in vertex.latencies.windows.items() if key.operator == operator.id]
    by_subtask = [(key, window) for key, window in mine if key.source_subtask >= 0]
    if by_subtask and operator.name.startswith(SINK):
        return sorted(by_subtask, key=lambda pair: pair[0])
    return sorted(
        ((key, window) for key, window in mine if _granularity_of(key) == "operator"), key=lambda pair: pair[0]
    )


def prefix(key: LatencyKey, subtask: object) -> str:
    """
    Return what a metric id has before the statistic.

    Source: Flink, `LatencyStats`, seen on 2.3.
    """
    source = f"source_id.{key.source}." if key.source else ""
    emitted = f"source_subtask_index.{key.source_subtask}." if key.source_subtask >= 0 else ""
    where = f"operator_id.{key.operator}.operator_subtask_index.{subtask}."
    return f"{names.LATENCY}.{source}{emitted}{where}{names.LATENCY}_"


def ids(
    vertex: VertexState, told_apart: wire.LatencyGranularity | None, chosen: Container[int] | None = None
) -> Iterator[tuple[int, str]]:
    """Yield (subtask, id without it) of all that was recorded, or by the subtasks that are `chosen`."""
    if told_apart is None or not vertex.latencies.windows:
        return
    for key, window in windows(vertex, told_apart):
        for subtask in _recorded([window], chosen):
            begin = prefix(key, subtask)
            for statistic in names.LATENCY_STATISTICS:
                yield subtask, begin + statistic
    for operator in vertex.vertex.operators:
        name = f"{names.filtered(operator.name)}.{names.LATENCY}"
        for subtask in _recorded([window for _, window in legacy_windows(vertex, operator)], chosen):
            yield subtask, name


def _recorded(windows: list[LatencyWindow], chosen: Container[int] | None) -> list[int]:
    if not windows:
        return []
    found: list[int] = np.flatnonzero(np.any([window.counts for window in windows], axis=0)).tolist()
    return found if chosen is None else [subtask for subtask in found if subtask in chosen]


def value(
    vertex: VertexState, told_apart: wire.LatencyGranularity | None, name: str, subtask: int
) -> int | float | str | None:
    """
    Return one subtask's value of a latency's id without the subtask; None where it is no such id, or has none.

    Least and greatest are whole numbers, the rest are doubles; `<operator>.latency` is a text.
    """
    # Most names are none of a latency: they are told by their ends, before anything is parsed.
    if told_apart is None or (not name.startswith(_BEGIN) and not name.endswith(_END)):
        return None
    if not vertex.latencies.windows or not 0 <= subtask < vertex.size:
        return None
    found = _ID.fullmatch(name)
    if found is None:
        return _legacy(vertex, name, subtask)
    if int(found["subtask"]) != subtask:
        return None
    emitted = found["emitted"]
    key = LatencyKey(found["operator"], found["source"] or "", -1 if emitted is None else int(emitted))
    window = vertex.latencies.windows.get(key)
    if window is None or _granularity_of(key) != told_apart or not window.counts[subtask]:
        return None
    statistic = found["statistic"]
    told: float = window.statistics[_ROWS[statistic], subtask].item()
    return int(told) if statistic in _WHOLE else told


def values(
    vertex: VertexState, told_apart: wire.LatencyGranularity | None, name: str, chosen: Sequence[int] | None
) -> list[int | float | str]:
    """Return the values of a latency's id without the subtask, of all subtasks or those `chosen`, as `value` does."""
    if not name.startswith(_BEGIN) and not name.endswith(_END):
        return []
    among = range(vertex.size) if chosen is None else chosen
    found = _ID.fullmatch(name)
    if found is not None:
        among = [subtask for subtask in (int(found["subtask"]),) if subtask in among]
    told = (value(vertex, told_apart, name, subtask) for subtask in among)
    return [each for each in told if each is not None]


def _granularity_of(key: LatencyKey) -> wire.LatencyGranularity:
    if not key.source:
        return "single"
    return "operator" if key.source_subtask < 0 else "subtask"


def _legacy(vertex: VertexState, name: str, subtask: int) -> str | None:
    head, _, metric = name.rpartition(".")
    if metric != names.LATENCY:
        return None
    for operator in vertex.vertex.operators:
        if names.filtered(operator.name) == head:
            told = [
                f"{_descriptor(key)}={_statistics(window, subtask)}"
                for key, window in legacy_windows(vertex, operator)
                if window.counts[subtask]
            ]
            if told:
                return f"{{{', '.join(told)}}}"
    return None


def _descriptor(key: LatencyKey) -> str:
    return f"LatencySourceDescriptor{{vertexID={key.source}, subtaskIndex={key.source_subtask}}}"


def _statistics(window: LatencyWindow, subtask: int) -> str:
    figures: Mapping[str, float] = dict(
        zip(names.LATENCY_STATISTICS, window.statistics[:, subtask].tolist(), strict=True)
    )
    return f"{{{', '.join(f'{old}={double(figures[name])}' for old, name in _LEGACY)}}}"
