"""The timers that Spark holds of the key whose turn it is, and the namespaces of each."""

from __future__ import annotations

from typing import Any

PLAIN = ""
"""The namespace of timers that have none."""

STATE = "streamgauge_timers"
"""The state variable: timestamp → its namespaces in the order of their registration."""

_KEY = "timestamp_ms long"
_VALUE = "namespaces array<string>"


class TimerStore:
    """
    Timers of one key at a time, behind Spark's handle, which knows the key itself.

    Spark has one timer for each timestamp of a key, warns in an executor's log of one that is registered twice or
    deleted without being there, and counts both as if they were not. So what a key has is read once in its turn,
    when it is first asked for, and Spark is told only what changes something.

    A row of the state variable tells the namespaces at a timestamp. A timer without one has the plain namespace
    alone, so that timers registered before namespaces were used are what they were.

    Args:
        handle: Spark's StatefulProcessorHandle, in the processor's `init`.
        namespaces: Whether timers may have any; without, Spark keeps no state for them.

    Not thread safe.
    """

    def __init__(self, handle: Any, namespaces: bool) -> None:
        self._handle = handle
        self._rows: Any = handle.getMapState(STATE, _KEY, _VALUE) if namespaces else None
        self._held: set[int] | None = None

    def turn(self) -> None:
        """Forget what was read, for Spark has gone on to another key."""
        self._held = None

    def timestamps(self) -> set[int]:
        """Return the timestamps at which the key has timers; the store's own set."""
        if self._held is None:
            self._held = set(self._handle.listTimers())
        return self._held

    def add(self, timestamp_ms: int, namespace: str) -> bool:
        """Register a timer, and return whether it was not there."""
        held = self.timestamps()
        names = self._names(timestamp_ms) if timestamp_ms in held else []
        if namespace in names:
            return False
        if not names:
            self._handle.registerTimer(timestamp_ms)
            held.add(timestamp_ms)
        if names or namespace != PLAIN:
            self._write(timestamp_ms, [*names, namespace])
        return True

    def remove(self, timestamp_ms: int, namespace: str) -> bool:
        """Delete a timer, and return whether it was there."""
        held = self.timestamps()
        names = self._names(timestamp_ms) if timestamp_ms in held else []
        if namespace not in names:
            return False
        names.remove(namespace)
        if names:
            self._write(timestamp_ms, names)
        else:
            self._handle.deleteTimer(timestamp_ms)
            held.remove(timestamp_ms)
            if namespace != PLAIN:
                self._rows.removeKey((timestamp_ms,))
        return True

    def take(self, timestamp_ms: int) -> list[str]:
        """
        Return the namespaces at a timestamp whose timer fires, and forget them.

        Spark's own timer stays: it is Spark that deletes it, after its callback.
        """
        if self._rows is None:
            return [PLAIN]
        row = self._rows.getValue((timestamp_ms,))
        if row is None:
            return [PLAIN]
        self._rows.removeKey((timestamp_ms,))
        return list(row[0])

    def _names(self, timestamp_ms: int) -> list[str]:
        row = None if self._rows is None else self._rows.getValue((timestamp_ms,))
        return [PLAIN] if row is None else list(row[0])

    def _write(self, timestamp_ms: int, names: list[str]) -> None:
        # A row for the plain namespace alone would outlive its timer, which plain services delete without a look.
        if names == [PLAIN]:
            self._rows.removeKey((timestamp_ms,))
        else:
            self._rows.updateValue((timestamp_ms,), (names,))
