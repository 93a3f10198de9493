"""The timers of the key that Spark hands to a processor: Flink's timer service as a callback sees it."""

from __future__ import annotations

import operator
from typing import Literal, SupportsIndex

from spark_hooks.due_timers import DueTimers
from spark_hooks.timer_channel import TaskCounts
from spark_hooks.timer_store import PLAIN, TimerStore
from streamgauge.errors import TimerError
from streamgauge.keyed_timers import MIN_TIMESTAMP

TimeMode = Literal["EventTime", "ProcessingTime"]
"""Spark's words for what the timers of a query are timed by."""

LONGEST_NAMESPACE = 256
"""Characters."""

_GREATEST_MS = 2**63 - 1


class KeyTimers:
    """
    Registers and deletes timers of one key, as long as Spark is at this key.

    There is one timer for each (key, namespace, timestamp): registering it twice changes nothing, nor does deleting
    one that is not there. A timer is due once the watermark, or the processing time, has reached its timestamp: it
    fires in the batch in which it comes to be due, after all rows of all keys. One that is registered when it is due
    fires in the same batch, also when a timer's callback registers it; one that is deleted before its callback does
    not fire.

    Both times are Spark's and stand still within a batch: the watermark that the batch began with, and the time of
    its trigger.

    Not thread safe, and of no use after the processor's method that got it.
    """

    def __init__(
        self,
        mode: TimeMode,
        namespaces: bool,
        watermark_ms: int,
        processing_ms: int,
        store: TimerStore,
        counts: TaskCounts,
    ) -> None:
        self._mode = mode
        self._namespaces = namespaces
        self._watermark_ms = watermark_ms
        self._processing_ms = processing_ms
        self._store = store
        self._counts = counts
        self._due: DueTimers | None = None
        self._over = False

    def current_watermark(self) -> int:
        """Return the batch's watermark, Unix ms; 0 before the first one, as in Spark."""
        return self._watermark_ms

    def current_processing_time(self) -> int:
        """Return when the batch was triggered, Unix ms."""
        return self._processing_ms

    def register_event_time_timer(self, timestamp_ms: SupportsIndex, namespace: str = PLAIN) -> None:
        """
        Fire once the watermark has reached a timestamp.

        Args:
            timestamp_ms: Unix ms, an integer of any kind that fits an int64.
            namespace: At most 256 characters; only a service made with `namespaces=True` takes one.

        Raises:
            TimerError: the query's time mode is ProcessingTime, or Spark is at another key.
            TypeError: the timestamp is no integer, or a bool, or the namespace no text.
            ValueError: the timestamp is no int64, or the namespace is too long or not taken.
        """
        self._register("register_event_time_timer", "EventTime", timestamp_ms, namespace)

    def delete_event_time_timer(self, timestamp_ms: SupportsIndex, namespace: str = PLAIN) -> None:
        """Forget a timer; nothing happens where there is none. Raises as `register_event_time_timer`."""
        self._delete("delete_event_time_timer", "EventTime", timestamp_ms, namespace)

    def register_processing_time_timer(self, timestamp_ms: SupportsIndex, namespace: str = PLAIN) -> None:
        """
        Fire in the first batch that is triggered at a timestamp or later.

        Args and raises as `register_event_time_timer`, for the other time mode.
        """
        self._register("register_processing_time_timer", "ProcessingTime", timestamp_ms, namespace)

    def delete_processing_time_timer(self, timestamp_ms: SupportsIndex, namespace: str = PLAIN) -> None:
        """Forget a timer; nothing happens where there is none. Raises as `register_processing_time_timer`."""
        self._delete("delete_processing_time_timer", "ProcessingTime", timestamp_ms, namespace)

    def fire(self, first_ms: int) -> DueTimers:
        """Return what is due now that Spark has called back a timestamp; from here on, due timers are put in there."""
        limit_ms = self._watermark_ms if self._mode == "EventTime" else self._processing_ms
        self._due = DueTimers(self._store, first_ms, limit_ms)
        return self._due

    def end(self) -> None:
        """Be of no more use: Spark goes on to another key."""
        self._over = True

    def _register(self, call: str, mode: TimeMode, timestamp_ms: SupportsIndex, namespace: str) -> None:
        self._check(call, mode)
        at_ms = _timestamp(call, timestamp_ms)
        self._check_namespace(call, namespace)
        self._counts.registered += self._timers(at_ms).add(at_ms, namespace)

    def _delete(self, call: str, mode: TimeMode, timestamp_ms: SupportsIndex, namespace: str) -> None:
        self._check(call, mode)
        at_ms = _timestamp(call, timestamp_ms)
        self._check_namespace(call, namespace)
        self._counts.deleted += self._timers(at_ms).remove(at_ms, namespace)

    def _timers(self, timestamp_ms: int) -> DueTimers | TimerStore:
        return self._due if self._due is not None and timestamp_ms <= self._due.limit_ms else self._store

    def _check(self, call: str, mode: TimeMode) -> None:
        if mode != self._mode:
            raise TimerError(
                f"{call}() needs a query of time mode {mode!r}, but this one's is {self._mode!r}: a query of Spark's "
                "has one time mode, and its timers are all of that kind"
            )
        if self._over:
            raise TimerError(f"{call}() on the timers of a key that Spark has left; ask the service for them anew")

    def _check_namespace(self, call: str, namespace: str) -> None:
        if type(namespace) is not str:
            raise TypeError(f"{call}(): a namespace of type str was expected, not {_shown(namespace)}")
        if namespace != PLAIN and not self._namespaces:
            raise ValueError(
                f"{call}(): namespace {namespace[:40]!r}, but this TimerService takes none; make it with "
                "namespaces=True"
            )
        if len(namespace) > LONGEST_NAMESPACE:
            raise ValueError(
                f"{call}(): a namespace of {len(namespace)} characters, at most {LONGEST_NAMESPACE} may be"
            )


def _timestamp(call: str, given: SupportsIndex) -> int:
    try:
        # An int of Python's own, which NumPy's are not: Spark's messages take no other.
        timestamp_ms = operator.index(given)
    except TypeError:
        timestamp_ms = None
    if timestamp_ms is None or isinstance(given, bool):
        raise TypeError(f"{call}(): a timestamp in Unix milliseconds, an integer, was expected, not {_shown(given)}")
    if not MIN_TIMESTAMP <= timestamp_ms <= _GREATEST_MS:
        raise ValueError(f"{call}(): timestamp {timestamp_ms} does not fit an int64")
    return timestamp_ms


def _shown(given: object) -> str:
    return f"{given!r:.40} of type {type(given).__name__}"
