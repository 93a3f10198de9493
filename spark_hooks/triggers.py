"""What a query's trigger, in Spark's words, says of when its micro-batches begin."""

from __future__ import annotations

import re

_INTERVAL = re.compile(r"ProcessingTimeTrigger\(([0-9]{1,18})\)")


def interval_ms(trigger: str) -> int | None:
    """
    Return the time between two micro-batches, 0 where one begins when the one before has ended.

    Args:
        trigger: As Spark prints it, 'ProcessingTimeTrigger(5000)'.

    Returns:
        None for a trigger that has none, as where a query runs once, or in Real-Time Mode, and for an unknown one.
    """
    found = _INTERVAL.fullmatch(trigger)
    return None if found is None else int(found.group(1))
