"""The processing-time service: Flink's rules, one test each, and the thread that keeps them."""

import threading
from collections.abc import Callable, Iterator

import pytest

from streamgauge.clock import ManualClock, SystemClock
from streamgauge.timers import ProcessingTimeService, State, TimerFuture

START = 1_000_000


class Bench:
    """A service on a manual clock, with what its callbacks were told and what failed."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.failures: list[Exception] = []
        self.service = ProcessingTimeService(self.clock, self.failures.append)
        self.told: list[int] = []
        self.seen_at: list[int] = []

    def callback(self, timestamp_ms: int) -> None:
        self.told.append(timestamp_ms)
        self.seen_at.append(self.clock.now_ms())

    def run_until(self, end_ms: int) -> None:
        while self.clock.now_ms() < end_ms:
            self.clock.advance(1)
            self.service.run_due()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_timer_fires_one_millisecond_after_the_asked_time(bench: Bench) -> None:
    """A timer fires 1 ms after the asked time, and is told the asked time."""
    timer = bench.service.register_timer(START + 10, bench.callback)
    bench.run_until(START + 10)
    assert (bench.told, timer.done()) == ([], False)
    bench.run_until(START + 50)
    assert (bench.told, bench.seen_at) == ([START + 10], [START + 11])
    assert (timer.done(), timer.cancelled()) == (True, False)


@pytest.mark.parametrize("ago_ms", [0, 1, 5000, START + 2**63], ids=["now", "1 ms ago", "5 s ago", "Long.MIN_VALUE"])
def test_the_past_fires_at_once_plus_one_millisecond(bench: Bench, ago_ms: int) -> None:
    """A timer for a time that has passed fires 1 ms from now, and is told the time that was asked for."""
    bench.service.register_timer(START - ago_ms, bench.callback)
    assert bench.service.run_due() == 0
    bench.run_until(START + 5)
    assert (bench.told, bench.seen_at) == ([START - ago_ms], [START + 1])


def test_a_time_that_never_comes_is_no_error(bench: Bench) -> None:
    """Long.MAX_VALUE, the last watermark, may be asked for."""
    timer = bench.service.register_timer(2**63 - 1, bench.callback)
    bench.clock.advance(2**40)
    assert bench.service.run_due() == 0
    assert not timer.done()


def test_fixed_rate_is_start_plus_n_periods(bench: Bench) -> None:
    """Fixed rate: `start + n · period`, start being the initial delay from now, without the millisecond."""
    bench.service.schedule_at_fixed_rate(bench.callback, 5, 10)
    bench.run_until(START + 30)
    assert bench.told == bench.seen_at == [START + 5, START + 15, START + 25]


def test_fixed_rate_may_start_at_once(bench: Bench) -> None:
    """An initial delay of 0 is due now."""
    bench.service.schedule_at_fixed_rate(bench.callback, 0, 10)
    assert bench.service.run_due() == 1
    assert bench.told == [START]


def test_a_slow_callback_does_not_shift_a_fixed_rate(bench: Bench) -> None:
    """A run that takes 25 of 10 ms makes the next two late, and the one after is back on the schedule."""

    def slow_at_first(timestamp_ms: int) -> None:
        bench.callback(timestamp_ms)
        if len(bench.told) == 1:
            bench.clock.advance(25)

    bench.service.schedule_at_fixed_rate(slow_at_first, 10, 10)
    bench.run_until(START + 50)
    assert bench.told == [START + 10, START + 20, START + 30, START + 40, START + 50]
    assert bench.seen_at == [START + 10, START + 35, START + 35, START + 40, START + 50]


def test_fixed_delay_counts_from_the_end_of_the_previous_run(bench: Bench) -> None:
    """Fixed delay: first after the initial delay, then `period` after the end of the run before."""

    def slow(timestamp_ms: int) -> None:
        bench.callback(timestamp_ms)
        bench.clock.advance(7)

    bench.service.schedule_with_fixed_delay(slow, 5, 10)
    bench.run_until(START + 45)
    assert bench.told == bench.seen_at == [START + 5, START + 22, START + 39]


def test_fixed_delay_never_catches_up(bench: Bench) -> None:
    """After a long gap a view updater ticks once, not once for each tick that was missed."""
    bench.service.schedule_with_fixed_delay(bench.callback, 5, 5)
    bench.clock.advance(100)
    assert bench.service.run_due() == 1
    bench.run_until(START + 105)
    assert bench.seen_at == [START + 100, START + 105]


@pytest.mark.parametrize(("initial_delay_ms", "period_ms"), [(-1, 10), (0, 0), (0, -5)])
def test_impossible_periods_are_refused(bench: Bench, initial_delay_ms: int, period_ms: int) -> None:
    """A delay is at least 0 and a period at least 1 ms; the message tells the offending value."""
    offending = initial_delay_ms if initial_delay_ms < 0 else period_ms
    for schedule in (bench.service.schedule_at_fixed_rate, bench.service.schedule_with_fixed_delay):
        with pytest.raises(ValueError, match=f"of {offending} ms, but at least"):
            schedule(bench.callback, initial_delay_ms, period_ms)
    assert bench.service.pending == 0


def test_equal_deadlines_run_in_the_order_of_registration(bench: Bench) -> None:
    """Callbacks run in the order of their deadlines, and of their registration where these are equal."""
    order: list[str] = []
    for name, at in (("b1", 20), ("a1", 10), ("b2", 20), ("a2", 10)):
        bench.service.register_timer(START + at, lambda _, name=name: order.append(name))  # type: ignore[misc]
    bench.clock.advance(100)
    assert bench.service.run_due() == 4
    assert order == ["a1", "a2", "b1", "b2"]


@pytest.mark.parametrize("step_ms", [-3_600_000, -5, 5, 3_600_000])
def test_a_step_of_the_wall_clock_moves_no_deadline(bench: Bench, step_ms: int) -> None:
    """The wait is measured on the monotonic clock from the registration on."""
    bench.service.register_timer(START + 10, bench.callback)
    bench.service.schedule_at_fixed_rate(bench.callback, 20, 20)
    bench.service.schedule_with_fixed_delay(bench.callback, 30, 30)
    bench.clock.step_wall(step_ms)
    told_after: list[int] = []
    for ms in range(1, 61):
        bench.clock.advance(1)
        told_after += [ms] * bench.service.run_due()
    assert told_after == [11, 20, 30, 40, 60, 60]
    assert bench.told == [START + 10, START + 20, START + 30, START + 40, START + step_ms + 60, START + 60]


def test_cancelled_timer_does_not_run(bench: Bench) -> None:
    """Cancelling takes a timer out of the queue; a second time changes nothing."""
    timer = bench.service.register_timer(START, bench.callback)
    assert timer.cancel()
    assert (timer.done(), timer.cancelled(), bench.service.pending) == (True, True, 0)
    assert timer.cancel()
    bench.run_until(START + 10)
    assert bench.told == []


def test_a_timer_that_has_run_cannot_be_cancelled(bench: Bench) -> None:
    """Cancelling too late says so and leaves the future as it is."""
    timer = bench.service.register_timer(START, bench.callback)
    bench.run_until(START + 1)
    assert not timer.cancel()
    assert (timer.done(), timer.cancelled()) == (True, False)


def test_a_single_run_cannot_be_cancelled_from_within(bench: Bench) -> None:
    """A run that has begun is not called off."""
    answers: list[bool] = []
    timer = bench.service.register_timer(START, lambda _: answers.append(timer.cancel()))
    bench.run_until(START + 1)
    assert (answers, timer.done(), timer.cancelled()) == ([False], True, False)


@pytest.mark.parametrize("kind", ["schedule_at_fixed_rate", "schedule_with_fixed_delay"])
def test_a_periodic_callback_may_cancel_itself(bench: Bench, kind: str) -> None:
    """Cancelling during a run ends the schedule after it."""

    def once(timestamp_ms: int) -> None:
        bench.callback(timestamp_ms)
        assert timer.cancel()

    timer: TimerFuture = getattr(bench.service, kind)(once, 5, 5)
    bench.run_until(START + 50)
    assert (bench.told, timer.done(), timer.cancelled()) == ([START + 5], True, True)
    assert bench.service.pending == 0


def test_alive_is_the_first_state(bench: Bench) -> None:
    """States: alive, quiesced, shut down, in this order only."""
    assert bench.service.state is State.ALIVE
    bench.service.quiesce()
    assert bench.service.state is State.QUIESCED
    bench.service.shutdown()
    assert bench.service.state is State.SHUT_DOWN
    bench.service.quiesce()
    assert bench.service.state is State.SHUT_DOWN


def _registrations(bench: Bench) -> list[Callable[[], TimerFuture]]:
    return [
        lambda: bench.service.register_timer(START, bench.callback),
        lambda: bench.service.schedule_at_fixed_rate(bench.callback, 0, 1),
        lambda: bench.service.schedule_with_fixed_delay(bench.callback, 0, 1),
    ]


def test_registering_while_quiesced_returns_a_future_that_never_completes(bench: Bench) -> None:
    """Quiesced: registering is no error, but nothing comes of it."""
    bench.service.quiesce()
    futures = [register() for register in _registrations(bench)]
    bench.clock.advance(1000)
    assert bench.service.run_due() == 0
    bench.service.shutdown()
    assert bench.told == []
    assert [(future.done(), future.cancelled()) for future in futures] == [(False, False)] * 3
    assert all(future.cancel() and future.cancelled() for future in futures)


def test_registering_after_shutdown_raises(bench: Bench) -> None:
    """Shut down: registering raises."""
    bench.service.shutdown()
    for register in _registrations(bench):
        with pytest.raises(RuntimeError, match="shut down and takes no more timers"):
            register()


@pytest.mark.parametrize("end", ["quiesce", "shutdown"])
def test_what_waits_is_cancelled_at_the_end(bench: Bench, end: str) -> None:
    """Neither quiescing nor shutting down runs what is due."""
    futures = [register() for register in _registrations(bench)]
    bench.clock.advance(1000)
    assert getattr(bench.service, end)()
    assert bench.service.run_due() == 0
    assert bench.told == []
    assert all(future.done() and future.cancelled() for future in futures)


def test_a_periodic_run_that_quiesces_is_the_last(bench: Bench) -> None:
    """A callback may quiesce the service that runs it: it does not wait for itself and is not run again."""

    def end(timestamp_ms: int) -> None:
        bench.callback(timestamp_ms)
        assert bench.service.quiesce()

    timer = bench.service.schedule_at_fixed_rate(end, 5, 5)
    bench.run_until(START + 50)
    assert (bench.told, timer.done(), timer.cancelled()) == ([START + 5], True, True)


@pytest.mark.parametrize("kind", ["schedule_at_fixed_rate", "schedule_with_fixed_delay"])
def test_an_exception_is_reported_and_the_schedule_goes_on(bench: Bench, kind: str) -> None:
    """Failures: an exception in a callback is reported and the schedule goes on."""
    broken = ZeroDivisionError("a defect")

    def fail_at_first(timestamp_ms: int) -> None:
        bench.callback(timestamp_ms)
        if len(bench.told) == 1:
            raise broken

    getattr(bench.service, kind)(fail_at_first, 10, 10)
    other = bench.service.register_timer(START + 12, bench.callback)
    bench.run_until(START + 20)
    assert bench.failures == [broken]
    assert bench.told == [START + 10, START + 12, START + 20]
    assert other.done()


def test_a_single_run_that_fails_is_done(bench: Bench) -> None:
    """A failed run is over like any other."""

    def fail(_: int) -> None:
        raise ValueError("no")

    timer = bench.service.register_timer(START, fail)
    bench.run_until(START + 1)
    assert [str(error) for error in bench.failures] == ["no"]
    assert (timer.done(), timer.cancelled()) == (True, False)


def test_a_handler_that_fails_does_not_stop_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the failure handler raises goes to threading.excepthook."""
    hooked: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: hooked.append(args.exc_value))
    clock = ManualClock()
    handler_error = OSError("the handler is broken too")

    def handler(_: Exception) -> None:
        raise handler_error

    def fail(_: int) -> None:
        raise ValueError("no")

    service = ProcessingTimeService(clock, handler)
    service.schedule_at_fixed_rate(fail, 1, 1)
    clock.advance(3)
    assert service.run_due() == 3
    assert hooked == [handler_error] * 3


def test_a_callback_may_register_another(bench: Bench) -> None:
    """Callbacks run without the service's lock; what they register for now fires 1 ms later, not at once."""

    def again(timestamp_ms: int) -> None:
        bench.callback(timestamp_ms)
        if len(bench.told) < 3:
            bench.service.register_timer(timestamp_ms, again)

    bench.service.register_timer(START, again)
    bench.run_until(START + 10)
    assert bench.seen_at == [START + 1, START + 2, START + 3]


def test_run_due_from_within_a_callback_is_refused(bench: Bench) -> None:
    """Callbacks run one at a time."""
    bench.service.register_timer(START, lambda _: bench.service.run_due() and None)
    bench.run_until(START + 1)
    assert [str(error) for error in bench.failures] == [
        "run_due() cannot be called: the timer service is running a callback"
    ]


def test_a_timer_asked_for_between_two_milliseconds_never_fires_in_its_own() -> None:
    """Wall time is cut to milliseconds, the wait is not: the callback still sees a clock that has passed t."""

    class FineClock:
        def __init__(self) -> None:
            self.ns = 0

        def now_ms(self) -> int:
            return self.ns // 1_000_000

        def monotonic_ns(self) -> int:
            return self.ns

    clock = FineClock()
    service = ProcessingTimeService(clock, lambda _: None)
    seen: list[int] = []
    for start_ns in (0, 400_000, 999_999):
        clock.ns = start_ns
        service.register_timer(5, lambda _: seen.append(clock.now_ms()))
    while service.pending:
        clock.ns += 100_000
        service.run_due()
    assert seen == [6, 6, 6]


class Running:
    """A service on the machine's clock with a thread of its own; what waits here waits on events."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self.service = ProcessingTimeService(SystemClock(), self.failures.append)
        self.service.start("timers-under-test")

    def thread_lives(self) -> bool:
        return any(thread.name == "timers-under-test" for thread in threading.enumerate())


@pytest.fixture
def running() -> Iterator[Running]:
    bench = Running()
    yield bench
    assert bench.service.shutdown(timeout_s=10)


def test_the_thread_runs_what_is_due(running: Running) -> None:
    """The production driver fires too, on a daemon thread, not before the asked time."""
    fired = threading.Event()
    told: list[tuple[int, int, str, bool]] = []

    def callback(timestamp_ms: int) -> None:
        thread = threading.current_thread()
        told.append((timestamp_ms, running.service.now_ms(), thread.name, thread.daemon))
        fired.set()

    asked_ms = running.service.now_ms() + 5
    running.service.register_timer(asked_ms, callback)
    assert fired.wait(10)
    [(timestamp_ms, seen_ms, name, daemon)] = told
    assert timestamp_ms == asked_ms
    assert seen_ms > asked_ms
    assert (name, daemon) == ("timers-under-test", True)


def test_an_earlier_timer_wakes_the_thread(running: Running) -> None:
    """A thread that waits an hour for one timer is woken for an earlier one."""
    fired = threading.Event()
    running.service.register_timer(running.service.now_ms() + 3_600_000, lambda _: None)
    running.service.register_timer(0, lambda _: fired.set())
    assert fired.wait(10)


def test_the_thread_survives_a_failure(running: Running) -> None:
    """An exception on the thread is reported and the schedule goes on."""
    runs = threading.Semaphore(0)

    def fail(_: int) -> None:
        runs.release()
        raise ValueError("no")

    running.service.schedule_at_fixed_rate(fail, 0, 1)
    for _ in range(5):
        assert runs.acquire(timeout=10)
    assert running.service.quiesce(10)
    assert len(running.failures) >= 5


def test_shutdown_ends_a_thread_that_waits(running: Running) -> None:
    """The thread waits on a condition, so it ends at once, however far the next deadline."""
    running.service.register_timer(2**63 - 1, lambda _: None)
    assert running.thread_lives()
    assert running.service.shutdown(timeout_s=10)
    assert not running.thread_lives()


@pytest.mark.parametrize("end", ["quiesce", "shutdown"])
def test_the_end_waits_for_a_running_callback(running: Running, end: str) -> None:
    """Quiescing lets a running callback end, and says whether it has."""
    began, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def callback(_: int) -> None:
        began.set()
        may_end.wait(10)
        ended.set()

    running.service.register_timer(0, callback)
    assert began.wait(10)
    stop = getattr(running.service, end)
    assert stop(timeout_s=0) is False
    may_end.set()
    assert stop(timeout_s=10) is True
    assert ended.is_set()


def test_the_thread_ends_after_quiescing(running: Running) -> None:
    """A quiesced service needs no thread any more."""
    assert running.service.quiesce(10)
    assert running.service.state is State.QUIESCED
    assert running.service.shutdown(10)
    assert not running.thread_lives()


@pytest.mark.parametrize("end", ["quiesce", "shutdown"])
def test_a_callback_on_the_thread_may_end_the_service(running: Running, end: str) -> None:
    """A callback does not wait for itself."""
    answers: list[bool] = []
    answered = threading.Event()

    def callback(_: int) -> None:
        answers.append(getattr(running.service, end)(timeout_s=None))
        answered.set()

    running.service.register_timer(0, callback)
    assert answered.wait(10)
    assert answers == [True]


def test_a_thread_that_was_told_to_exit_shuts_the_service_down(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service without its thread must not take timers that would never fire."""
    hooked: list[type[BaseException] | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: hooked.append(args.exc_type))

    def leave(_: int) -> None:
        raise SystemExit

    running.service.register_timer(0, leave)
    assert running.service._thread is not None
    running.service._thread.join(10)
    assert hooked == [SystemExit]
    assert running.service.state is State.SHUT_DOWN


def test_a_service_has_one_driver(running: Running) -> None:
    """With a thread of its own, nobody else may run what is due, nor start a second thread."""
    with pytest.raises(RuntimeError, match=r"run_due\(\) .* running on a thread of its own"):
        running.service.run_due()
    with pytest.raises(RuntimeError, match="cannot be started: it is running on a thread of its own"):
        running.service.start()


@pytest.mark.parametrize(("end", "word"), [("quiesce", "quiesced"), ("shutdown", "shut down")])
def test_an_ended_service_cannot_be_started(bench: Bench, end: str, word: str) -> None:
    """States never go back."""
    getattr(bench.service, end)()
    with pytest.raises(RuntimeError, match=f"cannot be started: it is {word}"):
        bench.service.start()


def test_any_thread_may_register_and_cancel(running: Running) -> None:
    """Concurrent registrants lose no timer, and a cancelled one does not run."""
    fired: list[int] = []
    each, threads = 200, 4

    def register(number: int) -> None:
        for n in range(each):
            identity = number * each + n
            running.service.register_timer(0, lambda _, identity=identity: fired.append(identity))  # type: ignore[misc]
            assert running.service.register_timer(2**62, fired.append).cancel()

    registrants = [threading.Thread(target=register, args=(number,)) for number in range(threads)]
    for registrant in registrants:
        registrant.start()
    for registrant in registrants:
        registrant.join(30)
    all_fired = threading.Event()
    running.service.register_timer(running.service.now_ms() + 1, lambda _: all_fired.set())
    assert all_fired.wait(30)
    assert sorted(fired) == list(range(each * threads))
    assert running.failures == []
