"""The timers of one key that fire in this batch, once the first of them does."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from spark_hooks.timer_store import TimerStore


class DueTimers:
    """
    What of a key is due, in the order in which it fires: by timestamp, then as it was registered.

    Spark fires what was due when the batch's rows had been read: it calls back a timer that an earlier callback has
    deleted, and one that a callback registers waits for the next batch, which may never come. So what callbacks do to
    timers that are due is done here. As long as they do nothing of the kind, only the timestamp that Spark has called
    back is held; the first that does so has all of the key's due timers read, and they fire before Spark goes on.

    Args:
        store: The key's timers.
        first_ms: The timestamp that Spark has called back.
        limit_ms: What is not later is due.

    Not thread safe.
    """

    def __init__(self, store: TimerStore, first_ms: int, limit_ms: int) -> None:
        self._store = store
        self._first_ms = first_ms
        self.limit_ms = limit_ms
        self.read_ahead = False
        """Whether timers were read that Spark has not called back yet, though it will."""
        self._heap: list[tuple[int, int, str]] = []
        self._waiting: dict[tuple[int, str], int] = {}
        self._registered = 0
        self._push(first_ms)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield timestamp and namespace of each timer that is still there when its turn comes; it no longer is then."""
        while self._heap:
            timestamp_ms, number, namespace = heapq.heappop(self._heap)
            if self._waiting.get((timestamp_ms, namespace)) == number:
                del self._waiting[timestamp_ms, namespace]
                yield timestamp_ms, namespace

    def add(self, timestamp_ms: int, namespace: str) -> bool:
        """Register a timer that is due, and return whether it was not there."""
        self._read(timestamp_ms)
        return self._put(timestamp_ms, namespace)

    def remove(self, timestamp_ms: int, namespace: str) -> bool:
        """Delete a timer that is due, and return whether it was there."""
        self._read(timestamp_ms)
        return self._waiting.pop((timestamp_ms, namespace), None) is not None

    def _put(self, timestamp_ms: int, namespace: str) -> bool:
        if (timestamp_ms, namespace) in self._waiting:
            return False
        self._registered += 1
        self._waiting[timestamp_ms, namespace] = self._registered
        heapq.heappush(self._heap, (timestamp_ms, self._registered, namespace))
        return True

    def _push(self, timestamp_ms: int) -> None:
        for namespace in self._store.take(timestamp_ms):
            self._put(timestamp_ms, namespace)

    def _read(self, timestamp_ms: int) -> None:
        # Up to the timestamp that Spark has called back, all that is there is held here already.
        if self.read_ahead or timestamp_ms <= self._first_ms:
            return
        self.read_ahead = True
        for held_ms in self._store.timestamps():
            if self._first_ms < held_ms <= self.limit_ms:
                self._push(held_ms)
