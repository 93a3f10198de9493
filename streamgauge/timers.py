"""
The processing-time service: what calls back at a time, after a while, or again and again.

What "at wall time t" means. Wall time is read once, when a timer is registered; from it follows how long to
wait, and that wait is measured on the monotonic clock. So a wall clock that is set while a timer waits moves
no deadline: the callback comes when the registering clock, had it not been set, would have passed t. After a
step the callback may therefore see a `now_ms()` that is far from t; what it is told is t itself.

Source: Flink's `ProcessingTimeService`, `SystemProcessingTimeService`, and the schedules of Java's
`ScheduledExecutorService`.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable

from streamgauge.clock import Clock
from streamgauge.heap import NOT_IN_HEAP, HeapElement, IndexedHeap

Callback = Callable[[int], None]
"""Called with the wall time it was scheduled for, Unix milliseconds."""

FailureHandler = Callable[[Exception], None]
"""
Told of each exception that a callback raised, on the thread that ran it. What it raises itself goes to
`threading.excepthook`.
"""

_NS_PER_MS = 1_000_000


class State(enum.Enum):
    """
    ALIVE runs callbacks. QUIESCED lets a running one end, runs no other, and takes registrations that never
    fire. SHUT_DOWN refuses registrations too.
    """

    ALIVE = "alive"
    QUIESCED = "quiesced"
    SHUT_DOWN = "shut down"


class TimerFuture(HeapElement):
    """
    A registered callback, as its registrant sees it. Any thread; made by the service only.

    One that was registered while the service was quiesced never completes: it is neither done nor cancelled
    until somebody cancels it.
    """

    __slots__ = ("_cancelled", "_done", "_service", "callback", "fixed_delay", "period_ms", "timestamp_ms")

    def __init__(
        self,
        service: ProcessingTimeService,
        callback: Callback,
        timestamp_ms: int,
        deadline_ns: int,
        period_ms: int | None = None,
        fixed_delay: bool = False,
    ) -> None:
        super().__init__(deadline_ns)
        self.callback = callback
        self.timestamp_ms = timestamp_ms
        self.period_ms = period_ms
        self.fixed_delay = fixed_delay
        self._service = service
        self._done = False
        self._cancelled = False

    def cancel(self) -> bool:
        """
        Keep the callback from running, or from running again.

        A run that is under way is not interrupted.

        Returns:
            Whether this call or an earlier one did so; False for a single run that has begun or is over.
        """
        return self._service._cancel(self)

    def cancelled(self) -> bool:
        """Return whether it was cancelled, by `cancel` or by the service's end."""
        return self._cancelled

    def done(self) -> bool:
        """Return whether its last run is over or it was cancelled."""
        return self._done


class ProcessingTimeService:
    """
    Runs callbacks when their time comes, one at a time, in the order of their deadlines.

    Driven in one of two ways, which run the same code: `start` gives it a daemon thread of its own; without
    that, whoever calls `run_due` runs what is due (tests do, with a `ManualClock`, and never sleep).

    Args:
        clock: With `start` it must move by itself.
        on_failure: Told of a callback's exception; the schedule goes on.

    Registering, cancelling, `quiesce` and `shutdown`: any thread, also from within a callback. Callbacks run
    without the service's lock. A process forked off has no such thread, so nothing runs there.
    """

    def __init__(self, clock: Clock, on_failure: FailureHandler) -> None:
        self._clock = clock
        self._on_failure = on_failure
        self._heap: IndexedHeap[TimerFuture] = IndexedHeap()
        self._changed = threading.Condition(threading.Lock())
        self._state = State.ALIVE
        self._running: TimerFuture | None = None
        self._runner: int | None = None
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> State:
        """Return the state as it is now."""
        return self._state

    @property
    def pending(self) -> int:
        """Return how many callbacks wait for their time; a periodic one counts once, and not while it runs."""
        return len(self._heap)

    def now_ms(self) -> int:
        """Return the current processing time: the clock's wall time, Unix milliseconds."""
        return self._clock.now_ms()

    def register_timer(self, timestamp_ms: int, callback: Callback) -> TimerFuture:
        """
        Run `callback(timestamp_ms)` once, 1 ms after a wall time; if that has passed, 1 ms from now.

        The millisecond keeps a timer for t from firing while the clock still reads t, when more may happen
        at t; a watermark of t promises the same.

        Args:
            timestamp_ms: Unix milliseconds, any value.
            callback: Given `timestamp_ms`, also when that had passed.

        Returns:
            Its future; one that never completes if the service is quiesced.

        Raises:
            RuntimeError: the service is shut down.

        Source: Flink, `SystemProcessingTimeService.registerTimer`.
        """
        delay_ms = max(timestamp_ms - self._clock.now_ms(), 0) + 1
        return self._schedule(TimerFuture(self, callback, timestamp_ms, self._deadline(delay_ms)))

    def schedule_at_fixed_rate(self, callback: Callback, initial_delay_ms: int, period_ms: int) -> TimerFuture:
        """
        Run `callback` at start + n · period for n = 0, 1, 2, …, where start is `initial_delay_ms` from now.

        A slow run makes later ones late but shifts no deadline: what was missed is run at once, one after
        the other.

        Args:
            callback: Given the wall time of its own deadline, start + n · period.
            initial_delay_ms: At least 0.
            period_ms: At least 1.

        Returns:
            Its future; it ends by `cancel` or with the service only.

        Raises:
            ValueError: a time is too small.
            RuntimeError: the service is shut down.

        Source: Flink, `SystemProcessingTimeService.scheduleAtFixedRate`.
        """
        return self._schedule(self._periodic(callback, initial_delay_ms, period_ms, fixed_delay=False))

    def schedule_with_fixed_delay(self, callback: Callback, initial_delay_ms: int, period_ms: int) -> TimerFuture:
        """
        Run `callback` after `initial_delay_ms`, then each time `period_ms` after the end of the run before.

        Each run is told the wall time that it was scheduled for, by the clock as it stood when the run before
        had ended (Flink adds up periods instead, and so drifts from the time it really meant).

        Args, Returns, Raises: as `schedule_at_fixed_rate`.
        """
        return self._schedule(self._periodic(callback, initial_delay_ms, period_ms, fixed_delay=True))

    def start(self, name: str = "streamgauge-timers") -> None:
        """
        Give the service a daemon thread, which ends with `quiesce` or `shutdown`.

        Raises:
            RuntimeError: it has one, or is no longer alive.
        """
        with self._changed:
            if self._thread is not None or self._state is not State.ALIVE:
                raise RuntimeError(f"the timer service cannot be started: it is {self._describe()}")
            self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
            self._thread.start()

    def run_due(self) -> int:
        """
        Run, on the calling thread, every callback whose deadline has passed; none that is not alive.

        The clock is read anew before each, so what becomes due meanwhile runs too.

        Returns:
            How many ran.

        Raises:
            RuntimeError: the service has a thread of its own, or a callback is running.
        """
        if self._thread is not None:
            raise RuntimeError(f"run_due() cannot be called: the timer service is {self._describe()}")
        return self._run_due()

    def quiesce(self, timeout_s: float | None = None) -> bool:
        """
        Run nothing more, cancel what waits, and wait for a callback that is running.

        A callback that calls this does not wait for itself. Nothing happens after `shutdown` but the wait.

        Args:
            timeout_s: The longest wait, seconds; None for as long as it takes.

        Returns:
            Whether no callback is running any more (but perhaps the caller).

        Source: Flink, `ProcessingTimeService.quiesce`, whose future completes when running timers have ended.
        """
        self._stop(State.QUIESCED)
        return self._wait_until_idle(timeout_s)

    def shutdown(self, timeout_s: float | None = 0.0) -> bool:
        """
        As `quiesce`, and refuse registrations from now on. May be called again, to wait longer.

        Args:
            timeout_s: The longest wait for a running callback and the thread, seconds; None for no limit.

        Returns:
            Whether nothing is running any more (but perhaps the caller).
        """
        self._stop(State.SHUT_DOWN)
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return self._wait_until_idle(timeout_s)
        thread.join(timeout_s)
        return not thread.is_alive()

    def _describe(self) -> str:
        if self._state is State.ALIVE and self._thread is not None:
            return "running on a thread of its own"
        if self._state is State.ALIVE and self._running is not None:
            return "running a callback"
        return self._state.value

    def _deadline(self, delay_ms: int) -> int:
        return self._clock.monotonic_ns() + delay_ms * _NS_PER_MS

    def _periodic(self, callback: Callback, initial_delay_ms: int, period_ms: int, fixed_delay: bool) -> TimerFuture:
        if initial_delay_ms < 0:
            raise ValueError(f"an initial delay of {initial_delay_ms} ms, but at least 0 was expected")
        if period_ms < 1:
            raise ValueError(f"a period of {period_ms} ms, but at least 1 was expected")
        first_ms = self._clock.now_ms() + initial_delay_ms
        return TimerFuture(self, callback, first_ms, self._deadline(initial_delay_ms), period_ms, fixed_delay)

    def _schedule(self, timer: TimerFuture) -> TimerFuture:
        with self._changed:
            if self._state is State.SHUT_DOWN:
                raise RuntimeError("the timer service is shut down and takes no more timers")
            if self._state is State.ALIVE and self._heap.add(timer):
                self._changed.notify_all()
        return timer

    def _cancel(self, timer: TimerFuture) -> bool:
        with self._changed:
            if timer._done:
                return timer._cancelled
            if timer is self._running and timer.period_ms is None:
                return False
            if timer.index != NOT_IN_HEAP:
                self._heap.remove(timer)
            timer._cancelled = timer._done = True
            return True

    def _loop(self) -> None:
        try:
            while self._wait_for_due():
                self._run_due()
        except BaseException:
            # A callback asked the thread to exit. A service that takes timers and never fires them would hide it.
            self._stop(State.SHUT_DOWN)
            raise

    def _wait_for_due(self) -> bool:
        with self._changed:
            while self._state is State.ALIVE:
                head = self._heap.peek()
                if head is None:
                    self._changed.wait()
                    continue
                remaining_ns = head.priority - self._clock.monotonic_ns()
                if remaining_ns <= 0:
                    return True
                self._changed.wait(min(remaining_ns / 1e9, threading.TIMEOUT_MAX))
        return False

    def _run_due(self) -> int:
        ran = 0
        while (timer := self._take_due()) is not None:
            self._run(timer)
            ran += 1
        return ran

    def _take_due(self) -> TimerFuture | None:
        with self._changed:
            if self._running is not None:
                raise RuntimeError(f"run_due() cannot be called: the timer service is {self._describe()}")
            head = self._heap.peek()
            if head is None or head.priority > self._clock.monotonic_ns():
                return None
            self._running, self._runner = self._heap.poll(), threading.get_ident()
            return self._running

    def _run(self, timer: TimerFuture) -> None:
        try:
            timer.callback(timer.timestamp_ms)
        except Exception as error:  # noqa: BLE001 - the rule: whatever a callback raises, the schedule goes on
            self._report(error)
        finally:
            self._finish(timer)

    def _report(self, error: Exception) -> None:
        try:
            self._on_failure(error)
        except Exception as broken:  # noqa: BLE001 - a broken handler must not stop every other timer
            thread = threading.current_thread()
            threading.excepthook(threading.ExceptHookArgs((type(broken), broken, broken.__traceback__, thread)))

    def _finish(self, timer: TimerFuture) -> None:
        with self._changed:
            self._running = self._runner = None
            if timer.period_ms is None:
                timer._done = True
            elif not timer._done and self._state is not State.ALIVE:
                timer._cancelled = timer._done = True
            elif not timer._done:
                if timer.fixed_delay:
                    timer.timestamp_ms = self._clock.now_ms() + timer.period_ms
                    timer.priority = self._deadline(timer.period_ms)
                else:
                    timer.timestamp_ms += timer.period_ms
                    timer.priority += timer.period_ms * _NS_PER_MS
                self._heap.add(timer)
            self._changed.notify_all()

    def _stop(self, state: State) -> None:
        with self._changed:
            if self._state is not State.SHUT_DOWN:
                self._state = state
            for timer in self._heap.clear():
                timer._cancelled = timer._done = True
            self._changed.notify_all()

    def _wait_until_idle(self, timeout_s: float | None) -> bool:
        with self._changed:
            if self._runner == threading.get_ident():
                return True
            return self._changed.wait_for(lambda: self._running is None, timeout_s)
