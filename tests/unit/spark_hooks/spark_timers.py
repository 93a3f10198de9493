"""Spark's side of transformWithState's timers, as real Spark 4.3.0 was seen to behave; see docs/timers.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.cloudpickle import dumps, loads
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

Key = tuple[Any, ...]


class Rows:
    """A map state: of the key whose turn it is."""

    def __init__(self, store: SparkTimers, name: str) -> None:
        self._store = store
        self._name = name

    def _held(self) -> dict[Any, Any]:
        return self._store.states[self._name][repr(self._store.key)]

    def getValue(self, key: Any) -> Any:
        return self._held().get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self._held()[key] = loads(dumps(value))

    def removeKey(self, key: Any) -> None:
        self._held().pop(key, None)


class Handle:
    """What a processor gets; it does not check schemas, nor that variables are made in `init` alone."""

    def __init__(self, store: SparkTimers) -> None:
        self._store = store

    def getMapState(self, name: str, key: str, value: str) -> Rows:
        return Rows(self._store, name)

    def listTimers(self) -> Iterator[int]:
        # As from RocksDB, in no order that means anything.
        return iter(sorted(self._store.of_key(), key=lambda timestamp_ms: -(timestamp_ms % 7)))

    def registerTimer(self, timestamp_ms: int) -> None:
        self._store.warnings += timestamp_ms in self._store.of_key()
        self._store.of_key().add(timestamp_ms)

    def deleteTimer(self, timestamp_ms: int) -> None:
        self._store.warnings += timestamp_ms not in self._store.of_key()
        self._store.of_key().discard(timestamp_ms)


class SparkTimers:
    """
    The state store of one partition and the course of a batch: rows first, then what was due when they were read.

    It does not check that a task fails, nor page its iterators.

    Args:
        processor: Pickled for each batch, as for each task, after which nothing of it is left.
        event_time: The time mode.
    """

    def __init__(self, processor: Any, event_time: bool) -> None:
        self._pickled = dumps(processor)
        self._event_time = event_time
        self.keys: dict[str, Key] = {}
        self.timers: dict[str, set[int]] = defaultdict(set)
        self.states: dict[str, dict[str, dict[Any, Any]]] = defaultdict(lambda: defaultdict(dict))
        self.key: Key = ()
        self.warnings = 0
        """Times that Spark would have complained of a timer that is there already, or is not."""

    def of_key(self) -> set[int]:
        """The timers of the key whose turn it is; by its repr, since a key may have no hash, or be NaN."""
        self.keys[repr(self.key)] = self.key
        return self.timers[repr(self.key)]

    def batch(self, rows: Iterable[tuple[Key, list[Any]]], now_ms: int) -> tuple[Any, list[Any]]:
        """Run a batch at a time of the mode's; return the task's processor as it ends, and what it put out."""
        processor = loads(self._pickled)
        processor.init(Handle(self))
        values = TimerValues(5 if self._event_time else now_ms, now_ms if self._event_time else 0)
        out: list[Any] = []
        for self.key, given in rows:
            out += processor.handleInputRows(self.key, iter(given), values)
        due = sorted((at_ms, key) for key, timers in self.timers.items() for at_ms in timers if at_ms <= now_ms)
        for at_ms, key in due:
            self.key = loads(dumps(self.keys[key]))
            out += processor.handleExpiredTimer(
                key=self.key, timerValues=values, expiredTimerInfo=ExpiredTimerInfo(at_ms)
            )
            Handle(self).deleteTimer(at_ms)
        return processor, out
