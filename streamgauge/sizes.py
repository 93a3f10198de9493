"""Sizes in words, as Spark's configuration has them: '1g', '512m', '1024'."""

from __future__ import annotations

import re

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

_SIZE = re.compile(r"([0-9]{1,19})([a-z]*)")
_UNITS = {
    "b": 1,
    **dict.fromkeys(("k", "kb"), KIB),
    **dict.fromkeys(("m", "mb"), MIB),
    **dict.fromkeys(("g", "gb"), GIB),
    **dict.fromkeys(("t", "tb"), 1 << 40),
    **dict.fromkeys(("p", "pb"), 1 << 50),
}


def size(text: str, unit: int) -> int | None:
    """
    Return a size in bytes, ≥ 0; None for what Spark would not take.

    Args:
        text: Whole number and suffix, in any case: b, k, m, g, t, p, each but the first with or without a 'b'.
        unit: Bytes of 1 where there is no suffix; it differs between settings.

    Source: Spark, `JavaUtils.byteStringAs`.
    """
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        return None
    factor = _UNITS.get(found[2]) if found[2] else unit
    return None if factor is None else int(found[1]) * factor
