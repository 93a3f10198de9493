"""A binary min-heap whose elements know their place, so that any of them can be deleted or moved in O(log n)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

NOT_IN_HEAP = -1
"""Index of an element that no heap holds."""


class HeapElement:
    """
    What a heap holds; subclass it to carry something.

    Args:
        priority: The least comes first: a timestamp or a deadline, in any unit.

    Set by the heap: `index`, the element's place in it, and `rank`, what it is ordered by.
    """

    __slots__ = ("index", "priority", "rank")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.rank = (priority, 0)
        self.index = NOT_IN_HEAP


E = TypeVar("E", bound=HeapElement)


class IndexedHeap(Generic[E]):
    """
    A binary min-heap on `priority`; equal ones come in the order in which they were added.

    An element is in at most one heap at a time. Not thread safe.

    Source: Flink's `HeapPriorityQueue` keeps each element's index in the element itself; it leaves the order
    of equal ones open.
    """

    def __init__(self) -> None:
        self._elements: list[E] = []
        self._added = 0

    def __len__(self) -> int:
        return len(self._elements)

    def __iter__(self) -> Iterator[E]:
        return iter(self._elements)

    def __contains__(self, element: E) -> bool:
        index = element.index
        return 0 <= index < len(self._elements) and self._elements[index] is element

    def peek(self) -> E | None:
        """Return the first element and leave it in the heap; None when it is empty."""
        return self._elements[0] if self._elements else None

    def poll(self) -> E | None:
        """Take the first element out; None when the heap is empty."""
        if not self._elements:
            return None
        first = self._elements[0]
        self._remove_at(0)
        return first

    def add(self, element: E) -> bool:
        """
        Put an element in.

        Returns:
            Whether it is the first one now.

        Raises:
            ValueError: it is in a heap already.
        """
        if element.index != NOT_IN_HEAP:
            raise ValueError(f"the element is in a heap already, at index {element.index}")
        self._rank(element)
        self._elements.append(element)
        self._sift_up(element, len(self._elements) - 1)
        return element.index == 0

    def remove(self, element: E) -> None:
        """
        Take an element out, wherever it is.

        Raises:
            ValueError: this heap does not hold it.
        """
        self._remove_at(self._index_of(element))

    def adjust(self, element: E, priority: int) -> None:
        """
        Give an element another priority; among equal ones it counts as added now.

        Raises:
            ValueError: this heap does not hold it.
        """
        index = self._index_of(element)
        element.priority = priority
        self._rank(element)
        self._settle(element, index)

    def clear(self) -> list[E]:
        """Take everything out; returned in no particular order."""
        elements, self._elements = self._elements, []
        for element in elements:
            element.index = NOT_IN_HEAP
        return elements

    def _index_of(self, element: E) -> int:
        if element not in self:
            raise ValueError("the element is not in this heap")
        return element.index

    def _rank(self, element: E) -> None:
        self._added += 1
        element.rank = (element.priority, self._added)

    def _remove_at(self, index: int) -> None:
        removed = self._elements[index]
        last = self._elements.pop()
        if last is not removed:
            self._settle(last, index)
        removed.index = NOT_IN_HEAP

    def _settle(self, element: E, index: int) -> None:
        self._sift_down(element, index)
        if element.index == index:
            self._sift_up(element, index)

    def _sift_up(self, element: E, index: int) -> None:
        elements, rank = self._elements, element.rank
        while index > 0:
            above = (index - 1) >> 1
            parent = elements[above]
            if parent.rank < rank:
                break
            elements[index] = parent
            parent.index = index
            index = above
        elements[index] = element
        element.index = index

    def _sift_down(self, element: E, index: int) -> None:
        elements, rank, size = self._elements, element.rank, len(self._elements)
        while (below := 2 * index + 1) < size:
            child = elements[below]
            if below + 1 < size and elements[below + 1].rank < child.rank:
                below += 1
                child = elements[below]
            if rank < child.rank:
                break
            elements[index] = child
            child.index = index
            index = below
        elements[index] = element
        element.index = index
