"""
What a task's accumulator updates say of a vertex: how its counts are sums of accumulators.

Worked out once a plan; applied to every task. What Spark does not tell is None, and stays out.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_hooks.plan import Exchange, Operator, Vertex

WRITTEN_RECORDS = "shuffle records written"
WRITTEN_BYTES = "shuffle bytes written"
READ_RECORDS = "records read"
READ_LOCAL_BYTES = "local bytes read"
READ_REMOTE_BYTES = "remote bytes read"
READ_LOCAL_BLOCKS = "local blocks read"
READ_REMOTE_BLOCKS = "remote blocks read"
FETCH_WAIT = "fetch wait time"

# No row metric, and as many rows out as in.
_PASS_THROUGH = frozenset(
    {
        "Project",
        "Sort",
        "EventTimeWatermark",
        "UpdateEventTimeColumn",
        "Coalesce",
        "Window",
        "Union",
        "CollectMetrics",
        "Exchange",
    }
)

TOTALS = (
    "records_in",
    "records_out",
    "bytes_in",
    "bytes_in_local",
    "bytes_in_remote",
    "buffers_in_local",
    "buffers_in_remote",
    "bytes_out",
    "bytes_spilled",
)


Terms = tuple[tuple[int, ...], ...]
"""A count as a sum of accumulators; of several in one place the greatest is added."""

BYTES_WRITTEN = -1
"""Stands among accumulators, which count from 0, for what Spark counts as output of a task."""

BYTES_SPILLED = -2
"""Likewise for what a task spilled to disk."""


def terms(vertex: Vertex) -> tuple[tuple[tuple[Terms | None, Terms | None], ...], tuple[Terms | None, ...]]:
    """
    Return how the counts of a vertex follow from a task's updates, None where this plan cannot tell.

    Returns:
        (records in, records out) of each operator, and the totals of the vertex in the order of `TOTALS`.
    """
    ins: dict[Operator, Terms | None] = {}
    outs: dict[Operator, Terms | None] = {}
    last = vertex.operators[-1] if vertex.operators else None
    for operator in vertex.operators:
        own = (operator.rows,) if operator.rows else None
        if operator.is_source:
            came: Terms | None = own
        else:
            inputs = [found for found in operator.inputs if isinstance(found, Operator) or found.shuffles]
            came = _sum(outs[found] if isinstance(found, Operator) else _read(found, READ_RECORDS) for found in inputs)
            # Of what several operators read nobody tells which of them got how much.
            came = came if vertex.shared.isdisjoint(inputs) else None
        went = came if operator.sink or (own is None and operator.node in _PASS_THROUGH) else own
        if operator is last and vertex.shuffles and vertex.writes is not None:
            went = _read(vertex.writes, WRITTEN_RECORDS)
        ins[operator], outs[operator] = came, went
    local, remote, local_blocks, remote_blocks = (
        _sum((_read(found, metric) for found in vertex.reads if found.shuffles), empty=())
        for metric in (READ_LOCAL_BYTES, READ_REMOTE_BYTES, READ_LOCAL_BLOCKS, READ_REMOTE_BLOCKS)
    )
    heads = _sum(
        [ins[operator] for operator in vertex.operators if operator.is_source]
        + [_read(found, READ_RECORDS) for found in vertex.reads if found.shuffles]
    )
    return (
        tuple((ins[operator], outs[operator]) for operator in vertex.operators),
        (
            heads,
            None if last is None else outs[last],
            _sum((local, remote)),
            local,
            remote,
            local_blocks,
            remote_blocks,
            _bytes_out(vertex),
            ((BYTES_SPILLED,),),
        ),
    )


def late(vertex: Vertex) -> tuple[int, ...]:
    """Return the places of the operators of a vertex that count the rows that they drop as late."""
    return tuple(place for place, operator in enumerate(vertex.operators) if operator.late)


def _bytes_out(vertex: Vertex) -> Terms | None:
    if vertex.shuffles and vertex.writes is not None:
        return _read(vertex.writes, WRITTEN_BYTES)
    # Of all sinks only files are known to tell Spark what they wrote.
    last = vertex.operators[-1] if vertex.operators else None
    if last is not None and last.sink and ("File" in last.name or "InsertInto" in last.node):
        return ((BYTES_WRITTEN,),)
    return None


def _read(exchange: Exchange, metric: str) -> Terms | None:
    accumulator = exchange.metrics.get(metric)
    return None if accumulator is None else ((accumulator,),)


def _sum(parts: Iterable[Terms | None], empty: Terms | None = None) -> Terms | None:
    """Add up; one unknown makes the sum unknown, and nothing to add up is `empty`."""
    total = empty
    for part in parts:
        if part is None:
            return None
        total = part if total is None else total + part
    return total
