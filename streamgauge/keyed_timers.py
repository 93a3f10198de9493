"""
The internal timer service: timers of keys, in event time and in processing time.

Source: Flink's `InternalTimerServiceImpl`, `HeapPriorityQueueSet` and `KeyGroupRangeAssignment`. Two things
differ. Among timers of one timestamp the first registered fires first, where Flink leaves the order open. And
an exception of a callback is reported and the other timers fire, where Flink fails the task.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from streamgauge.heap import HeapElement, IndexedHeap
from streamgauge.timers import FailureHandler, ProcessingTimeService, State, TimerFuture

MIN_TIMESTAMP = -(2**63)
"""Java's Long.MIN_VALUE: the watermark before the first one."""

KeyHash = Callable[[Any], int]
"""A hash of a key that is the same in every process."""

K = TypeVar("K", bound=Hashable)
N = TypeVar("N", bound=Hashable)


def stable_hash(key: Hashable) -> int:
    """
    Return a hash of a key that is the same in every process, machine and run: CRC-32 of its MessagePack form.

    Python's own hash of a string is salted per process, so that two executors, or one after a restart, would
    put a key into different groups. Nobody gains by choosing keys that collide, so a checksum will do: CRC-32
    spreads keys that differ by little, as ids do, evenly over groups.

    Args:
        key: Whatever msgspec encodes: None, numbers, text, bytes, dates, and tuples and structs of these.
            Keys that are equal must be of one type, as those of one column are: 1 and 1.0 differ here.

    Returns:
        0 to 2³² − 1.

    Raises:
        TypeError: the key has no MessagePack form; give the service a `key_hash` of your own.
    """
    return zlib.crc32(msgspec.msgpack.encode(key))


@dataclass(frozen=True, slots=True)
class KeyGroups:
    """
    The key groups that one subtask owns.

    Args:
        max_parallelism: Key groups of the whole job, at least 1.
        first: The first group owned, at least 0.
        last: The last group owned, less than `max_parallelism`.
        key_hash: What assigns keys to groups.

    Raises:
        ValueError: the range is empty or reaches out of the job's groups.
    """

    max_parallelism: int
    first: int
    last: int
    key_hash: KeyHash = stable_hash

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last < self.max_parallelism:
            raise ValueError(
                f"key groups {self.first} to {self.last}, but a range within 0 to {self.max_parallelism - 1} "
                "was expected"
            )

    @classmethod
    def of_subtask(
        cls, subtask_index: int, parallelism: int, max_parallelism: int = 128, key_hash: KeyHash = stable_hash
    ) -> KeyGroups:
        """
        Return the groups of one subtask; those of all subtasks are disjoint and cover every group.

        Args:
            subtask_index: 0 to parallelism − 1.
            parallelism: 1 to `max_parallelism`.
            max_parallelism: Key groups of the whole job; Flink's least default is 128.
            key_hash: What assigns keys to groups.

        Raises:
            ValueError: an argument is out of its range.

        Source: Flink, `KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex`.
        """
        if not 0 <= subtask_index < parallelism <= max_parallelism:
            raise ValueError(
                f"subtask {subtask_index} of {parallelism}, but at least 0 and less than a parallelism of "
                f"at most {max_parallelism} was expected"
            )
        first = (subtask_index * max_parallelism + parallelism - 1) // parallelism
        last = ((subtask_index + 1) * max_parallelism - 1) // parallelism
        return cls(max_parallelism, first, last, key_hash)

    def __len__(self) -> int:
        return self.last - self.first + 1

    def group(self, key: Hashable) -> int:
        """Return the key's group in the job, 0 to `max_parallelism` − 1, whoever owns it."""
        return self.key_hash(key) % self.max_parallelism

    def offset(self, group: int) -> int:
        """
        Return a group's place among those owned, 0 to len − 1.

        Raises:
            ValueError: the group is not owned.
        """
        if not self.first <= group <= self.last:
            raise ValueError(f"key group {group}, but only groups {self.first} to {self.last} are owned here")
        return group - self.first


@dataclass(frozen=True, slots=True)
class KeyedTimer(Generic[K, N]):
    """What is registered: one timer for each (key, namespace, timestamp); the timestamp in milliseconds."""

    key: K
    namespace: N
    timestamp_ms: int


class _Entry(HeapElement, Generic[K, N]):
    __slots__ = ("timer",)

    def __init__(self, timer: KeyedTimer[K, N]) -> None:
        super().__init__(timer.timestamp_ms)
        self.timer = timer


class TimerQueue(Generic[K, N]):
    """
    Timers in the order of their timestamps, each at most once: a heap, and one map for each key group owned.

    Not thread safe.
    """

    def __init__(self, groups: KeyGroups) -> None:
        self._groups = groups
        self._maps: list[dict[KeyedTimer[K, N], _Entry[K, N]]] = [{} for _ in range(len(groups))]
        self._heap: IndexedHeap[_Entry[K, N]] = IndexedHeap()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, timer: KeyedTimer[K, N]) -> bool:
        """
        Put a timer in, unless it is there.

        Returns:
            Whether it is the first one now; False for one that was there.

        Raises:
            ValueError: its key's group is not owned here.
        """
        entry = _Entry(timer)
        return self._map(timer).setdefault(timer, entry) is entry and self._heap.add(entry)

    def remove(self, timer: KeyedTimer[K, N]) -> bool:
        """
        Take a timer out.

        Returns:
            Whether it was there.

        Raises:
            ValueError: its key's group is not owned here.
        """
        entry = self._map(timer).pop(timer, None)
        if entry is None:
            return False
        self._heap.remove(entry)
        return True

    def peek(self) -> KeyedTimer[K, N] | None:
        """Return the first timer and leave it there; None when there is none."""
        head = self._heap.peek()
        return None if head is None else head.timer

    def poll(self) -> KeyedTimer[K, N] | None:
        """Take the first timer out; None when there is none."""
        head = self._heap.poll()
        if head is None:
            return None
        del self._map(head.timer)[head.timer]
        return head.timer

    def of_group(self, group: int) -> frozenset[KeyedTimer[K, N]]:
        """
        Return the timers of one key group, the unit that moves between subtasks.

        Raises:
            ValueError: the group is not owned here.
        """
        return frozenset(self._maps[self._groups.offset(group)])

    def _map(self, timer: KeyedTimer[K, N]) -> dict[KeyedTimer[K, N], _Entry[K, N]]:
        return self._maps[self._groups.offset(self._groups.group(timer.key))]


class TimerTarget(Protocol[K, N]):
    """What is called when timers fire, with the service's current key set to the timer's."""

    def on_event_time(self, timer: KeyedTimer[K, N]) -> None:
        """Take a timer that the watermark has reached."""

    def on_processing_time(self, timer: KeyedTimer[K, N]) -> None:
        """Take a timer whose processing time has passed."""


class InternalTimerService(Generic[K, N]):
    """
    Registers and fires the timers of the keys of one operator's subtask.

    `current_key` is the key that registering and deleting refer to: the caller sets it, and the service sets
    it to each timer's key before its callback. However many timers wait in processing time, one wake-up at
    most is scheduled with the processing-time service.

    Args:
        current_key: The first current key.
        groups: The key groups owned here.
        processing_time: Wakes this service; its callbacks run `on_processing_time` of the target.
        on_failure: Told of a callback's exception; the timers behind it fire all the same.

    Not thread safe: use it from the thread that runs `processing_time`'s callbacks.
    """

    def __init__(
        self,
        current_key: K,
        groups: KeyGroups,
        processing_time: ProcessingTimeService,
        target: TimerTarget[K, N],
        on_failure: FailureHandler,
    ) -> None:
        self.current_key = current_key
        self._processing_time = processing_time
        self._target = target
        self._on_failure = on_failure
        self._event_queue: TimerQueue[K, N] = TimerQueue(groups)
        self._processing_queue: TimerQueue[K, N] = TimerQueue(groups)
        self._watermark = MIN_TIMESTAMP
        self._wake_up: TimerFuture | None = None

    @property
    def current_watermark(self) -> int:
        """Return the latest watermark, milliseconds; MIN_TIMESTAMP before the first."""
        return self._watermark

    @property
    def event_time_timers(self) -> int:
        """Return how many event-time timers wait."""
        return len(self._event_queue)

    @property
    def processing_time_timers(self) -> int:
        """Return how many processing-time timers wait."""
        return len(self._processing_queue)

    def current_processing_time(self) -> int:
        """Return wall time, Unix milliseconds."""
        return self._processing_time.now_ms()

    def register_event_time_timer(self, namespace: N, timestamp_ms: int) -> None:
        """
        Fire once the watermark reaches a timestamp; one that has been passed fires with the next watermark.

        Raises:
            ValueError: the current key's group is not owned here.
        """
        self._event_queue.add(KeyedTimer(self.current_key, namespace, timestamp_ms))

    def delete_event_time_timer(self, namespace: N, timestamp_ms: int) -> None:
        """
        Forget a timer; nothing happens if it is not there.

        Raises:
            ValueError: the current key's group is not owned here.
        """
        self._event_queue.remove(KeyedTimer(self.current_key, namespace, timestamp_ms))

    def register_processing_time_timer(self, namespace: N, timestamp_ms: int) -> None:
        """
        Fire 1 ms after a wall time. A timer that comes before all others replaces the scheduled wake-up.

        Raises:
            ValueError: the current key's group is not owned here.
            RuntimeError: the timer is the first, and the processing-time service is shut down.
        """
        head = self._processing_queue.peek()
        first = self._processing_queue.add(KeyedTimer(self.current_key, namespace, timestamp_ms))
        if first and (head is None or timestamp_ms < head.timestamp_ms):
            if self._wake_up is not None:
                self._wake_up.cancel()
            self._schedule(timestamp_ms)

    def delete_processing_time_timer(self, namespace: N, timestamp_ms: int) -> None:
        """
        Forget a timer; the wake-up scheduled for it stays, comes, and finds nothing.

        Raises:
            ValueError: the current key's group is not owned here.
        """
        self._processing_queue.remove(KeyedTimer(self.current_key, namespace, timestamp_ms))

    def advance_watermark(self, timestamp_ms: int) -> None:
        """
        Set the watermark, then fire every event-time timer up to and including it.

        Timers that callbacks register at or before it fire as well.

        Args:
            timestamp_ms: Milliseconds; taken as it is, also when it goes back.
        """
        self._watermark = timestamp_ms
        self._fire(self._event_queue, timestamp_ms, self._target.on_event_time)

    def _on_processing_time(self, timestamp_ms: int) -> None:
        # Cleared first, so that what a callback schedules is seen below and not scheduled over.
        self._wake_up = None
        self._fire(self._processing_queue, timestamp_ms, self._target.on_processing_time)
        head = self._processing_queue.peek()
        if head is not None and self._wake_up is None and self._processing_time.state is not State.SHUT_DOWN:
            self._schedule(head.timestamp_ms)

    def _schedule(self, timestamp_ms: int) -> None:
        self._wake_up = self._processing_time.register_timer(timestamp_ms, self._on_processing_time)

    def _fire(self, queue: TimerQueue[K, N], up_to_ms: int, callback: Callable[[KeyedTimer[K, N]], None]) -> None:
        while (timer := queue.peek()) is not None and timer.timestamp_ms <= up_to_ms:
            self.current_key = timer.key
            queue.poll()
            try:
                callback(timer)
            except Exception as error:  # noqa: BLE001 - the rule: whatever a callback raises, the schedule goes on
                self._on_failure(error)
