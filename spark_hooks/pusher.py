"""One sender thread; nothing is queued, since every frame holds the state as it is then."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Literal, Protocol

import urllib3

from streamgauge import names, wire
from streamgauge.clock import Clock

Outcome = Literal["accepted", "resend", "rejected", "refused", "overloaded", "unreachable"]
"""resend: the collector lacks what the frames build on. rejected: as they are, these will never be taken.
refused: nothing that we send is taken, as with a wrong token."""

CONNECT_TIMEOUT_S = 2.0
READ_TIMEOUT_S = 10.0
SLOWEST_S = 30.0
"""The longest pause between two tries while the collector does not take frames."""

log = logging.getLogger("streamgauge")


class Transport(Protocol):
    """Carries one push."""

    def send(self, body: bytes) -> tuple[Outcome, str, float]:
        """Return what became of it, the collector's words, and the seconds to wait before the next."""

    def close(self) -> None:
        """Let go of what is held."""


class HttpTransport:
    """
    Carries pushes to a collector. One thread.

    Args:
        url: http(s)://host:port of the collector.
        token: Sent as a bearer token where there is one.
    """

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url.rstrip("/") + wire.PUSH_PATH
        self._headers = {"Content-Type": wire.CONTENT_TYPE}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S),
            retries=urllib3.Retry(0, redirect=0, raise_on_redirect=False),
        )

    def send(self, body: bytes) -> tuple[Outcome, str, float]:
        """Push once; never raises."""
        try:
            answer = self._pool.request("POST", self._url, body=body, headers=self._headers)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            return "unreachable", _reason(error), 0.0
        if answer.status == 202:
            return "accepted", "", 0.0
        words = f"HTTP {answer.status} {answer.data[:500].decode('utf-8', 'replace')}".strip()
        if answer.status == 409:
            return "resend", words, 0.0
        if answer.status in (400, 413):
            return "rejected", words, 0.0
        if answer.status in (429, 503):
            pause = answer.headers.get("Retry-After", "")
            return "overloaded", words, float(pause) if pause.isdecimal() else 0.0
        return ("unreachable" if answer.status >= 500 else "refused"), words, 0.0

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()


class MemoryTransport:
    """Keeps pushes instead of sending them, and answers as it is told; for tests. Does not check tokens."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.answers: list[Outcome] = []

    def send(self, body: bytes) -> tuple[Outcome, str, float]:
        """Keep the push; answer with the next of `answers`, else 'accepted'."""
        self.bodies.append(body)
        return (self.answers.pop(0) if self.answers else "accepted"), "", 0.0

    def close(self) -> None:
        """Nothing is held."""


class Pusher:
    """
    Sends what `build` returns, once an interval, from a thread of its own.

    Args:
        build: Returns the frames of now; called on the sender thread.
        settle: Told the frames and what became of them; called on the sender thread.
        where: The collector, for the warning line.
        clock: Tells the age of the last acknowledged push.
        told_all: Whether nothing is left to tell; the thread then ends by itself.

    `start`, `stop` and `outcomes`: any thread.
    """

    def __init__(
        self,
        build: Callable[[], list[wire.Frame]],
        settle: Callable[[list[wire.Frame], Outcome], None],
        transport: Transport,
        interval_s: float,
        where: str,
        clock: Clock,
        told_all: Callable[[], bool] = lambda: False,
    ) -> None:
        self.outcomes: Counter[str] = Counter()
        self._sent_bytes = 0
        self._frame_bytes: int | None = None
        self._accepted_ns: int | None = None
        self._clock = clock
        self._build = build
        self._settle = settle
        self._transport = transport
        self._interval_s = interval_s
        self._where = where
        self._told_all = told_all
        self._left_out: set[str] = set()
        self._stop = threading.Event()
        self._failing = 0
        self._thread = threading.Thread(target=self._run, name="streamgauge-pusher", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """End the thread; waits at most `timeout_s` for a push under way."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def close(self) -> None:
        """Close the connections, once the last push is done."""
        self._transport.close()

    def push(self) -> tuple[Outcome, float]:
        """
        Send once; on the sender thread, or on any other before it is started or after it has ended.

        Returns:
            What became of it, and the seconds to wait before the next.
        """
        frames = [frame for frame in self._build() if _key(frame) not in self._left_out]
        outcome, words, pause_s = self._send(frames)
        if outcome == "rejected" and len(frames) > 1:
            outcome, words, pause_s = self._send_apart(frames)
        self._tell(outcome, words)
        return outcome, pause_s

    def figures(self) -> dict[str, wire.Scalar]:
        """Return the pusher's own figures by metric name; what has not happened yet is absent. Any thread."""
        found: dict[str, wire.Scalar] = {name: self.outcomes[outcome] for outcome, name in names.HOOKS_PUSHES.items()}
        found[names.HOOKS_SENT_BYTES] = self._sent_bytes
        if self._frame_bytes is not None:
            found[names.HOOKS_FRAME_BYTES] = self._frame_bytes
        if self._accepted_ns is not None:
            found[names.HOOKS_ACKNOWLEDGED_AGE] = (self._clock.monotonic_ns() - self._accepted_ns) // 1_000_000
        return found

    def _send(self, frames: list[wire.Frame]) -> tuple[Outcome, str, float]:
        body = wire.encode(frames)
        outcome, words, pause_s = self._transport.send(body)
        self.outcomes[outcome] += 1
        self._sent_bytes += len(body)
        self._frame_bytes = len(body)
        if outcome == "accepted":
            self._accepted_ns = self._clock.monotonic_ns()
        self._settle(frames, outcome)
        return outcome, words, pause_s

    def _send_apart(self, frames: list[wire.Frame]) -> tuple[Outcome, str, float]:
        """Send one by one what was rejected together: one job must not cost the others their figures."""
        rejected: dict[str, str] = {}
        for frame in frames:
            outcome, words, pause_s = self._send([frame])
            if outcome == "rejected":
                rejected[_key(frame)] = words
            elif outcome != "accepted":
                return outcome, words, pause_s
        if len(rejected) == len(frames):
            return "rejected", next(iter(rejected.values())), 0.0
        for key, words in rejected.items():
            self._left_out.add(key)
            log.warning("streamgauge leaves %s out, %s does not take it: %s", key or "executors", self._where, words)
        return "accepted", "", 0.0

    def _run(self) -> None:
        pause_s = self._interval_s
        while not self._told_all() and not self._stop.wait(pause_s):
            try:
                outcome, asked_s = self.push()
            except Exception as error:  # the edge of the hooks: nothing of ours may reach the driver
                log.debug("streamgauge could not push", exc_info=True)
                self._tell("refused", f"{type(error).__name__}: {error}")
                outcome, asked_s = "refused", 0.0
            # A collector that is down costs a refused connection a second; one that says no is asked less often.
            pause_s = (
                SLOWEST_S if outcome in ("refused", "rejected") else max(self._interval_s, min(asked_s, SLOWEST_S))
            )

    def _tell(self, outcome: Outcome, words: str) -> None:
        """One line when pushes begin to fail, one when they work again."""
        if outcome in ("accepted", "resend"):
            if self._failing:
                log.warning("streamgauge reaches %s again; %d pushes were not taken", self._where, self._failing)
            self._failing = 0
        else:
            if not self._failing:
                log.warning(
                    "streamgauge cannot push to %s (%s): the job runs on, its figures follow once it is back",
                    self._where,
                    words or outcome,
                )
            self._failing += 1


def _key(frame: wire.Frame) -> str:
    return "" if frame.job is None else frame.job.jid


def _reason(error: BaseException) -> str:
    """The innermost cause in one line."""
    inner = getattr(error, "reason", None)
    return (
        _reason(inner) if isinstance(inner, BaseException) else str(error).rpartition(": ")[2] or type(error).__name__
    )
