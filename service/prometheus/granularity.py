"""How finely a page tells things apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

Granularity = Literal["job", "vertex", "operator", "subtask"]
GRANULARITIES: tuple[Granularity, ...] = get_args(Granularity)
"""From coarse to fine: each tells what the one before it tells, and more."""


def tells(granularity: Granularity, what: Granularity) -> bool:
    """Return whether a page of one granularity has what is told from another one on; any thread."""
    return GRANULARITIES.index(granularity) >= GRANULARITIES.index(what)


def coarsening(granularity: Granularity) -> Sequence[Granularity]:
    """Return a granularity and those that are coarser, down to `job`; any thread."""
    return GRANULARITIES[GRANULARITIES.index(granularity) :: -1]
