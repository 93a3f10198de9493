"""The native SQL metrics of a plan's nodes, under names that are unique in an operator."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from spark_hooks.records import PlanNode
from streamgauge import wire

METRICS = 150
"""Held of one operator; its later ones are left out. RocksDB's state store has about fifty."""

NAME_LENGTH = 200

_KINDS: dict[str, wire.AccumulatorKind] = {"s": "sum", "b": "size", "t": "timing", "n": "nsTiming", "a": "average"}

# Spark 4.0 to 4.2 have one of these for every partition, thousands in a node: versions, not amounts.
_INSTANCES = "The last uploaded version of the snapshot for a specific state store instance"

READ = frozenset(
    {
        "remote blocks read",
        "local blocks read",
        "remote bytes read",
        "remote bytes read to disk",
        "local bytes read",
        "fetch wait time",
        "records read",
        "corrupt merged block chunks",
        "merged fetch fallback count",
        "remote merged blocks fetched",
        "local merged blocks fetched",
        "remote merged chunks fetched",
        "local merged chunks fetched",
        "remote merged bytes read",
        "local merged bytes read",
        "remote reqs duration",
        "remote merged reqs duration",
    }
)
"""Metrics of an exchange that its reader's tasks count; all others are the writer's, or the driver's for it."""


class NativeMetric(NamedTuple):
    """
    A metric of a plan's node.

    Args:
        name: Spark's display name, with ' 2' and so on where the operator has it more than once.
        kind: Spark's.
        plain: The display name as it is.
    """

    name: str
    kind: wire.AccumulatorKind
    accumulator: int
    plain: str


def native_metrics(node: PlanNode, prefix: str = "") -> tuple[NativeMetric, ...]:
    """
    Return a node's metrics, METRICS at most, each under a name that no other one of them has.

    Args:
        prefix: Stands before every name.

    Any thread.
    """
    ids = node.metrics[1::2]
    return tuple(
        NativeMetric(name, kind, ids[place], plain)
        for place, name, kind, plain in _named(node.metrics[::2], node.kinds, prefix)
    )


@lru_cache(maxsize=2048)
def _named(shown: tuple[str, ...], kinds: str, prefix: str) -> tuple[tuple[int, str, wire.AccumulatorKind, str], ...]:
    """Return (place, name, kind, plain) of each; remembered, for every batch has the same nodes again."""
    found: list[tuple[int, str, wire.AccumulatorKind, str]] = []
    times: dict[str, int] = {}
    for place, (display, letter) in enumerate(zip(shown, kinds.ljust(len(shown), "s"), strict=False)):
        if not display or display == _INSTANCES:
            continue
        plain = f"{prefix}{display}"[:NAME_LENGTH]
        times[plain] = times.get(plain, 0) + 1
        name = plain if times[plain] == 1 else f"{plain} {times[plain]}"
        found.append((place, name, _KINDS.get(letter, "sum"), plain))
    return tuple(found[:METRICS])
