"""Labels of vertices, operators and subtasks, written once and kept for as long as scrapes ask for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_T = TypeVar("_T")
_Made = tuple[Any, Any]


class KeptBlocks:
    """
    The labels that one page was last rendered with.

    Any thread; two scrapes may be under way at once, and what the one that ends last has asked for is kept.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Made] = {}

    def begin(self) -> Blocks:
        """Return what a scrape asks."""
        return Blocks(self._kept)

    def end(self, blocks: Blocks) -> None:
        """Drop what a scrape, which is over, did not ask for."""
        self._kept = blocks.used


class Blocks:
    """
    What one scrape asks for its labels; not thread safe.

    Args:
        kept: What the scrape before it asked for; only read.
    """

    def __init__(self, kept: dict[Hashable, _Made] | None = None) -> None:
        self._kept = kept or {}
        self.used: dict[Hashable, _Made] = {}

    def get(self, key: Hashable, made_of: object, make: Callable[[], _T]) -> _T:
        """
        Return what `make` returns, or returned when the key was last asked for.

        Args:
            key: Whose, and what of it.
            made_of: All that `make` depends on, compared with what it was then. That is mostly the same object, for
                snapshots share what has not changed.
            make: Makes what nobody changes afterwards.
        """
        found = self.used.get(key) or self._kept.get(key)
        if found is None or found[0] != made_of:
            found = (made_of, make())
        self.used[key] = found
        made: _T = found[1]
        return made
