"""The indexed heap against a sorted list."""

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from streamgauge.heap import NOT_IN_HEAP, HeapElement, IndexedHeap


class HeapAgainstSortedList(RuleBasedStateMachine):
    """Whatever is done to it, the heap polls what a list sorted by (priority, time of adding) would."""

    elements = Bundle("elements")

    def __init__(self) -> None:
        super().__init__()
        self.heap: IndexedHeap[HeapElement] = IndexedHeap()
        self.model: list[tuple[int, int, HeapElement]] = []
        self.step = 0

    def _insert(self, element: HeapElement, priority: int) -> None:
        self.step += 1
        self.model.append((priority, self.step, element))
        self.model.sort(key=lambda row: row[:2])

    def _forget(self, element: HeapElement) -> bool:
        kept = [row for row in self.model if row[2] is not element]
        was_there = len(kept) < len(self.model)
        self.model = kept
        return was_there

    @rule(target=elements, priority=st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1))
    def add(self, priority: int) -> HeapElement:
        element = HeapElement(priority)
        self._insert(element, priority)
        assert self.heap.add(element) is (self.model[0][2] is element)
        return element

    @rule(element=elements)
    def add_again(self, element: HeapElement) -> None:
        if element in self.heap:
            with pytest.raises(ValueError, match="in a heap already"):
                self.heap.add(element)
        else:
            self._insert(element, element.priority)
            assert self.heap.add(element) is (self.model[0][2] is element)

    @rule(element=consumes(elements))
    def remove(self, element: HeapElement) -> None:
        if self._forget(element):
            self.heap.remove(element)
        else:
            with pytest.raises(ValueError, match="not in this heap"):
                self.heap.remove(element)

    @rule(element=elements, priority=st.integers(-5, 5))
    def adjust(self, element: HeapElement, priority: int) -> None:
        if self._forget(element):
            self._insert(element, priority)
            self.heap.adjust(element, priority)
        else:
            with pytest.raises(ValueError, match="not in this heap"):
                self.heap.adjust(element, priority)

    @precondition(lambda self: self.model)
    @rule()
    def poll(self) -> None:
        assert self.heap.poll() is self.model.pop(0)[2]

    @precondition(lambda self: len(self.model) > 3)
    @rule()
    def clear(self) -> None:
        assert {id(element) for element in self.heap.clear()} == {id(row[2]) for row in self.model}
        self.model = []

    @invariant()
    def the_first_is_the_least(self) -> None:
        assert self.heap.peek() is (self.model[0][2] if self.model else None)
        assert len(self.heap) == len(self.model)

    @invariant()
    def each_element_knows_its_place_and_comes_after_its_parent(self) -> None:
        held = list(self.heap)
        for index, element in enumerate(held):
            assert element.index == index
            assert index == 0 or held[(index - 1) // 2].rank < element.rank

    def teardown(self) -> None:
        assert [self.heap.poll() for _ in self.model] == [row[2] for row in self.model]
        assert self.heap.poll() is None
        assert all(row[2].index == NOT_IN_HEAP for row in self.model)


TestHeapAgainstSortedList = HeapAgainstSortedList.TestCase


class _Counted(int):
    comparisons = 0

    def __lt__(self, other: int) -> bool:
        _Counted.comparisons += 1
        return super().__lt__(other)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)

    __hash__ = int.__hash__


@pytest.mark.parametrize("operation", ["add", "remove", "adjust", "poll"])
def test_each_operation_compares_at_most_twice_a_level(operation: str) -> None:
    """Adding, deleting any, adjusting and polling are O(log n)."""
    size = 4096
    for place in (0, 1, 17, size // 2, size - 1):
        heap: IndexedHeap[HeapElement] = IndexedHeap()
        elements = [HeapElement(_Counted((n * 7919) % size)) for n in range(size)]
        for element in elements:
            heap.add(element)
        chosen = elements[place]
        _Counted.comparisons = 0
        if operation == "add":
            heap.add(HeapElement(_Counted(-1)))
        elif operation == "remove":
            heap.remove(chosen)
        elif operation == "adjust":
            heap.adjust(chosen, _Counted(size - int(chosen.priority)))
        else:
            heap.poll()
        assert _Counted.comparisons <= 2 * math.log2(size) + 2


def test_equal_priorities_leave_in_the_order_they_were_added() -> None:
    """Ties are broken by time of adding, so that a replay fires in the same order."""
    heap: IndexedHeap[HeapElement] = IndexedHeap()
    elements = [HeapElement(7) for _ in range(50)]
    for element in elements:
        heap.add(element)
    assert [heap.poll() for _ in elements] == elements


def test_an_element_of_another_heap_is_refused() -> None:
    """An index that fits by chance does not let one heap take out another's element."""
    one: IndexedHeap[HeapElement] = IndexedHeap()
    other: IndexedHeap[HeapElement] = IndexedHeap()
    ours, theirs = HeapElement(1), HeapElement(1)
    one.add(ours)
    other.add(theirs)
    with pytest.raises(ValueError, match="not in this heap"):
        one.remove(theirs)
    assert one.peek() is ours
    assert other.peek() is theirs
