"""What the driver's log says of a collector that does not take pushes: a line when it begins, then counts."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from streamgauge.clock import Clock

REMIND_S = 3600
"""While it lasts, a line with counts and the latest reason comes once in so many seconds."""

QUIET_S = 60
"""For so long after the line that ends an outage, another one is only counted: a collector that comes and goes must not
fill the log. Past it, an outage that still lasts is told."""

log = logging.getLogger("streamgauge")


class Outage:
    """
    Notes what became of each push and tells the log of it: one line when pushes begin to fail, whatever the reasons are
    from then on; a reminder an hour; one line with counts when they work again, or when the hooks leave before.

    Any thread.

    Args:
        where: The collector, for the lines.
    """

    def __init__(self, where: str, clock: Clock) -> None:
        self._where = where
        self._clock = clock
        self._lock = threading.Lock()
        self._failed: Counter[str] = Counter()
        self._failing = False
        self._told = False
        self._over = False
        self._words = ""
        self._began_ns = 0
        self._spoke_ns: int | None = None

    def fail(self, kind: str, words: str) -> None:
        """
        A push was not taken.

        Args:
            kind: Counted, so one of few.
            words: Why, told in one line; '' where nothing is known beyond the kind.
        """
        with self._lock:
            if not self._failed:
                self._began_ns = self._clock.monotonic_ns()
            self._failed[kind] += 1
            self._failing = True
            self._words = " ".join((words or kind).split())
            if not self._told and self._silent_for(QUIET_S):
                self._told = True
                self._say(
                    "streamgauge cannot push to %s (%s): the job runs on, its figures follow once it is back",
                    self._where,
                    self._words,
                )
            elif self._told and self._silent_for(REMIND_S):
                self._say("streamgauge still cannot push to %s (%s): %s", self._where, self._words, self._counts())

    def work(self) -> None:
        """A push was taken."""
        with self._lock:
            if self._told:
                self._say("streamgauge reaches %s again: %s", self._where, self._counts())
                self._failed.clear()
            self._failing = self._told = False

    def close(self, answered: bool) -> None:
        """
        The hooks leave: tell what the collector does not know; nothing is told afterwards.

        Args:
            answered: Whether no push is still under way.
        """
        with self._lock:
            if self._failing:
                self._say("streamgauge leaves before %s is back (%s): %s", self._where, self._words, self._counts())
            elif not answered:
                self._say("streamgauge leaves before %s has answered: it may lack the last figures", self._where)
            self._over = True

    def _silent_for(self, seconds: int) -> bool:
        return self._spoke_ns is None or self._clock.monotonic_ns() - self._spoke_ns >= seconds * 1_000_000_000

    def _say(self, line: str, *arguments: object) -> None:
        if not self._over:
            self._spoke_ns = self._clock.monotonic_ns()
            log.warning(line, *arguments)

    def _counts(self) -> str:
        pushes = sum(self._failed.values())
        lasted_s = (self._clock.monotonic_ns() - self._began_ns) // 1_000_000_000
        kinds = ", ".join(f"{count} {kind}" for kind, count in self._failed.most_common())
        return f"{pushes} {'push was' if pushes == 1 else 'pushes were'} not taken in {lasted_s} s ({kinds})"
