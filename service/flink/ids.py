"""Ids of jobs, vertices and applications: 32 hex digits, in Flink's bodies in lower case, in requests in any."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

PATTERN = "^[0-9a-fA-F]{32}$"
"""An id as a request may have it."""
_REQUESTED = re.compile(PATTERN.strip("^$"))

Id = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
"""An id as a body has it."""


def is_id(text: str) -> bool:
    """Tell whether this is an id, in whatever case."""
    return _REQUESTED.fullmatch(text) is not None
