"""Where a source has been read up to, as Spark tells it: offsets compared, whatever their kind."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

DEPTH = 16
"""Maps nested deeper are no offsets of rows; Kafka's are two deep."""

Path = tuple[str, ...]
"""Where a number stands in an offset: (topic, partition) in Kafka's, () where the offset is a number."""


def reached(end: object, target: object) -> bool | None:
    """
    Tell whether a source that has read up to `end` has read all up to `target`.

    Args:
        end, target: Decoded JSON, or a text of JSON. Numbers, also quoted ones, and maps of them can be compared; other
            kinds only where they are equal. A key that `target` alone has is of a partition that is gone, and counts
            as reached; one that `end` alone has does not matter.

    Returns:
        None where the two cannot be compared, as where Spark tells null: it does not know.
    """
    # A source that is read to its end says so in every batch, of each of its thousand partitions.
    if isinstance(end, dict) and _equal(end, target):
        return True
    ahead = behind(end, target)
    return None if ahead is None else not any(ahead.values())


def behind(end: object, latest: object) -> dict[Path, int] | None:
    """
    Return by how much `latest` is ahead of `end`, part by part.

    Args:
        end, latest: As for `reached`.

    Returns:
        Path of a part → its distance, never negative. A part that only one of them has is left out: how far it is
        behind is not known. Where what is equal is no number nor map of such, the whole is 0. None where the two
        cannot be compared. A caller must know what a source counts by: Kafka by rows, others may not.
    """
    end, latest = _read(end), _read(latest)
    if end is None or latest is None:
        return None
    if not _maps(end, latest):
        return _distance((), end, latest)
    found: dict[Path, int] = {}
    for path, part, target in _parts(end, latest):
        distance = _distance(path, part, target) if len(path) <= DEPTH and _number(target) is not None else None
        if distance is None:
            return {(): 0} if _equal(end, latest) else None
        found |= distance
    return found


def between(before: object, after: object, share: float) -> object:
    """
    Return where a source stood on its way from one offset to another.

    Args:
        before, after: As for `reached`.
        share: 0 to 1, how much of the way lay behind it.

    Returns:
        For numbers the one in between, rounded up, for maps those of each part. `after` where the two cannot be
        compared; likewise for a part that `before` lacks, and for one that went back.
    """
    before, after = _read(before), _read(after)
    return after if behind(before, after) is None else _between(before, after, share)


def _between(before: object, after: object, share: float) -> object:
    if isinstance(before, dict) and isinstance(after, dict):
        return {key: _between(before.get(key), part, share) for key, part in after.items()}
    one, other = _number(before), _number(after)
    if one is None or other is None or other <= one:
        return after
    return one + math.ceil((other - one) * share)


def _maps(one: object, other: object) -> bool:
    return isinstance(one, dict) and isinstance(other, dict)


def _parts(end: object, latest: object) -> Iterator[tuple[Path, object, object]]:
    """Yield what stands at the same place of both, and is not a map in both; or lies too deep."""
    waiting: list[tuple[Path, object, object]] = [((), end, latest)]
    while waiting:
        path, one, other = waiting.pop()
        if isinstance(one, dict) and isinstance(other, dict) and len(path) <= DEPTH:
            waiting += [((*path, key), one[key], other[key]) for key in other if key in one]
        else:
            yield path, one, other


def _distance(path: Path, end: object, latest: object) -> dict[Path, int] | None:
    one, other = _number(end), _number(latest)
    if one is None or other is None:
        return {path: 0} if _equal(end, latest) else None
    # As whole numbers where both are: a long does not fit into a float.
    return {path: max(math.ceil(other - one), 0)}


def _equal(one: object, other: object) -> bool:
    try:
        return one == other
    except RecursionError:
        return False


def _number(value: object) -> int | float | None:
    if isinstance(value, str):
        value = _decoded(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) else None


def _read(value: object) -> object:
    return _decoded(value) if isinstance(value, str) else value


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
