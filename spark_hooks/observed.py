"""What `observe()` saw, as metrics: one a column, the user's words bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice

from streamgauge import wire

COLUMNS = 500
"""Held of one job; the collector takes 2,000 at most."""

_LONG = range(-(2**63), 2**63)


def observed(told: Mapping[str, object]) -> dict[str, wire.Scalar]:
    """
    Return '<name>.<column>' → value.

    Args:
        told: Name → row as Spark's JSON has it: column → value.

    Returns:
        Numbers, truth values and text as they are, all else as JSON; null is absent, for it says that there is no
        value. COLUMNS at most. Any thread.
    """
    return dict(islice(_columns(told), COLUMNS))


def _columns(told: Mapping[str, object]) -> Iterator[tuple[str, wire.Scalar]]:
    for name, row in told.items():
        for column, value in row.items() if isinstance(row, dict) else ():
            if value is not None:
                yield f"{name}.{column}", _scalar(value)


def _scalar(value: object) -> wire.Scalar:
    # What no Java long holds does not travel as an integer either; a decimal of Spark's may be one.
    if isinstance(value, bool | str | float) or (isinstance(value, int) and value in _LONG):
        return value
    return json.dumps(value, ensure_ascii=False)
