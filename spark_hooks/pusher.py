"""One sender thread; nothing is queued, since every frame holds the state as it is then."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Literal, Protocol

from spark_hooks.outage import Outage
from streamgauge import codec, names, wire
from streamgauge.clock import Clock

Outcome = Literal["accepted", "resend", "rejected", "refused", "overloaded", "unreachable"]
"""resend: the collector lacks what the frames build on. rejected: as they are, these will never be taken.
refused: nothing that we send is taken, as with a wrong token."""

SLOWEST_S = 30.0
"""The longest pause between two tries while the collector does not take frames."""

log = logging.getLogger("streamgauge")


class Transport(Protocol):
    """Carries one push."""

    def send(self, body: bytes) -> tuple[Outcome, str, float]:
        """Return what became of it, the collector's words, and the seconds to wait before the next."""

    def close(self) -> None:
        """Let go of what is held."""


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
        clock: Tells the age of the last acknowledged push, and how long an outage lasts.
        told_all: Whether nothing is left to tell; the thread then ends by itself.

    `start`, `stop`, `leave` and `outcomes`: any thread.
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
        self._left_out_ever = 0
        self._outage = Outage(where, clock)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamgauge-pusher", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self, timeout_s: float | None = None) -> None:
        """End the thread; waits for a push under way, at most `timeout_s` where that is given."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def close(self) -> None:
        """Close the connections, once the last push is done."""
        self._transport.close()

    def leave(self, answered: bool) -> None:
        """Tell the log what the collector may lack, now that nothing more is sent; `answered` as in `Outage.close`."""
        self._outage.close(answered)

    def push(self) -> tuple[Outcome, float]:
        """
        Send once; on the sender thread, or on any other before it is started or after it has ended.

        Returns:
            What became of it, and the seconds to wait before the next.
        """
        frames = self._build()
        # A job that the hooks no longer hold does not come back; without this the set would grow for ever.
        self._left_out.intersection_update([_key(frame) for frame in frames])
        frames = [frame for frame in frames if _key(frame) not in self._left_out]
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
        body = codec.encode(frames)
        outcome, words, pause_s = self._transport.send(body)
        if outcome == "resend" and not any(frame.base for frame in frames):
            # They build on nothing, so there is nothing that it could lack: this is no collector of ours.
            outcome = "refused"
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
            self._left_out_ever += 1
            # The 1st, 10th, 100th …: an application may run thousands of jobs, and all of them may be of a kind.
            if str(self._left_out_ever).rstrip("0") == "1":
                log.warning(
                    "streamgauge leaves %s out, %s does not take it: %s (%d so far)",
                    key or "executors",
                    self._where,
                    words,
                    self._left_out_ever,
                )
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
        if outcome in ("accepted", "resend"):
            self._outage.work()
        else:
            self._outage.fail(outcome, words)


def _key(frame: wire.Frame) -> str:
    return "" if frame.job is None else frame.job.jid
