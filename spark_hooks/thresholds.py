"""What Spark says of event time at the stateful operators of a plan, read from their descriptions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple


class Thresholds(NamedTuple):
    """
    How far event time is at a stateful operator in one micro-batch, Unix ms.

    Where the query has no watermark, or none yet, all of it follows from 0.

    Args:
        late_ms: Rows that are older are dropped as late.
        eviction_ms: State that is older is given up: Spark's input watermark of the operator.
        output_ms: Spark's output watermark of it; None where it has none.
    """

    late_ms: int
    eviction_ms: int
    output_ms: int | None


# Everything is read from a description's end, for it begins with columns, whose names are the user's.
_BEHIND_STATE = re.compile(r", (-?\d+), (-?\d+)(?:, \d+)?$")
_JOIN = re.compile(
    r", (-?\d+), (-?\d+), state cleanup \[ left(?: = null| \w+ predicate: .*?<= (-?\d+)\)), "
    r"right(?: = null| \w+ predicate: .*?<= (-?\d+)\)) \], \d+(, \w+)?$",
    re.DOTALL,
)
_LEFT_SEMI = re.compile(r"\], LeftSemi, condition = \[")
_FUNCTION = re.compile(r", \w+Timeout, \d+, (-?\d+), (-?\d+)(?=, |$)")
# Behind the trigger's time, and from the second micro-batch on that of the one before.
_PROCESSOR = re.compile(r", \d+(?:, \d+)?, (-?\d+), (-?\d+), [a-z]")
_BY_PROCESSING_TIME = re.compile(r", ProcessingTime, ")


def thresholds(node: str, description: str) -> Thresholds | None:
    """
    Return what Spark prints of a stateful operator's event time; None for any other node, and where it prints none.

    Args:
        node: The plan node's name, stripped.

    Source: `produceOutputWatermark` of each of Spark's stateful operators, 3.5.9 and 4.3.0.
    """
    read = _READ.get(node)
    return None if read is None else read(description)


def _behind_state(description: str) -> Thresholds | None:
    found = _BEHIND_STATE.search(description)
    return None if found is None else Thresholds(int(found[1]), int(found[2]), int(found[2]))


def _join(description: str) -> Thresholds | None:
    found = _JOIN.search(description)
    if found is None:
        return None
    late_ms, eviction_ms, left_us, right_us, mode = found.groups()
    # Spark 3.5, which prints no mode there, takes both sides of a semi join too.
    kept = [left_us] if mode and _LEFT_SEMI.search(description) else [left_us, right_us]
    # What a side may still be joined with is older than the rows that come in.
    bounds_ms = [int(bound_us) // 1000 for bound_us in kept if bound_us is not None]
    return Thresholds(int(late_ms), int(eviction_ms), min([int(eviction_ms), *bounds_ms]))


def _function(description: str) -> Thresholds | None:
    found = _last(_FUNCTION, description)
    # Of the event times that user code puts out Spark assumes nothing.
    return None if found is None else Thresholds(int(found[1]), int(found[2]), None)


def _processor(description: str) -> Thresholds | None:
    found = _last(_PROCESSOR, description)
    if found is None:
        return None
    eviction_ms = int(found[2])
    untimed = _BY_PROCESSING_TIME.search(description) is not None
    return Thresholds(int(found[1]), eviction_ms, None if untimed else eviction_ms)


def _last(pattern: re.Pattern[str], description: str) -> re.Match[str] | None:
    return max(pattern.finditer(description), key=re.Match.start, default=None)


_READ: dict[str, Callable[[str], Thresholds | None]] = {
    "StateStoreSave": _behind_state,
    "SessionWindowStateStoreSave": _behind_state,
    "SessionWindowStateStoreRestore": _behind_state,
    "StreamingDeduplicate": _behind_state,
    "StreamingDeduplicateWithinWatermark": _behind_state,
    "StreamingSymmetricHashJoin": _join,
    "FlatMapGroupsWithState": _function,
    "FlatMapGroupsInPandasWithState": _function,
    "TransformWithState": _processor,
    "TransformWithStateInPandas": _processor,
    "TransformWithStateInPySpark": _processor,
}
