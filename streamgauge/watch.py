"""Reads a collector again and again; a failure is a reading too, so that whoever looks on goes on."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from streamgauge.errors import ReadError
from streamgauge.overview import Overview
from streamgauge.survey import Question, Survey


def readings(
    survey: Survey,
    question: Callable[[], Question],
    interval_s: float,
    once: bool = False,
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[Overview]:
    """
    Yield readings for ever; one that failed has `error` set and nothing else.

    Args:
        survey: Asked.
        question: Returns what to ask for next.
        interval_s: From one reading's end to the next one's beginning.
        once: End after the first, which has to have jobs if some were asked for.
        pause: Waits.

    Raises:
        ReadError: the first reading failed: more likely a wrong URL or token than a collector that comes back.
    """
    first = survey.read(question())
    job = question().job
    if once and job is not None and not first.jobs:
        raise ReadError(
            f"no job's id begins with, and no job's name contains, {job!r}: streamgauge jobs --all lists them"
        )
    yield first
    while not once:
        pause(interval_s)
        try:
            yield survey.read(question())
        except ReadError as error:
            yield survey.failed(error)


class Watch:
    """
    Takes readings on a thread of its own, so that a slow collector holds up nobody who draws or waits for a key.

    Args:
        source: Iterated over on that thread, a daemon: the end of the program waits for no answer.

    `newest` may be called on any thread.
    """

    def __init__(self, source: Iterator[Overview]) -> None:
        self._source = source
        # Only the last one counts: what nobody took in time is given up.
        self._newest: deque[Overview | Exception] = deque(maxlen=1)
        threading.Thread(target=self._run, name="streamgauge-watch", daemon=True).start()

    def newest(self) -> Overview | None:
        """
        Return the last reading, unless it has been taken already.

        Raises:
            ReadError: the first reading failed.
        """
        try:
            found = self._newest.pop()
        except IndexError:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def _run(self) -> None:
        try:
            self._newest.extend(self._source)
        except Exception as error:  # noqa: BLE001 - carried to the thread that takes readings, whatever it is
            self._newest.append(error)
