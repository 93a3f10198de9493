"""The processing-time service against a model of its whole schedule."""

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from streamgauge.clock import ManualClock
from streamgauge.timers import ProcessingTimeService, TimerFuture

START = 1_000_000


@dataclass
class _Planned:
    name: int
    deadline_ms: int
    order: int
    told_ms: int
    period_ms: int
    fixed_delay: bool
    takes_ms: int
    fails: bool


class ServiceAgainstSchedule(RuleBasedStateMachine):
    """The service runs exactly what a list of planned runs, sorted by (deadline, order), says."""

    futures = Bundle("futures")

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(START)
        self.elapsed_ms = 0
        self.failures: list[Exception] = []
        self.service = ProcessingTimeService(self.clock, self.failures.append)
        self.plan: list[_Planned] = []
        self.order = 0
        self.ran: list[tuple[int, int, int]] = []
        self.expected: list[tuple[int, int, int]] = []
        self.expected_failures = 0
        self.names = 0

    def _callback(self, name: int, takes_ms: int, fails: bool) -> Callable[[int], None]:
        def callback(timestamp_ms: int) -> None:
            self.ran.append((name, timestamp_ms, self.clock.monotonic_ns() // 1_000_000))
            self.clock.advance(takes_ms)
            if fails:
                raise ArithmeticError(name)

        return callback

    def _plan(self, delay_ms: int, told_ms: int, period_ms: int, fixed_delay: bool, takes_ms: int, fails: bool) -> int:
        self.names += 1
        self.order += 1
        deadline_ms = self.elapsed_ms + delay_ms
        self.plan.append(
            _Planned(self.names, deadline_ms, self.order, told_ms, period_ms, fixed_delay, takes_ms, fails)
        )
        return self.names

    @rule(target=futures, offset_ms=st.integers(-5, 30), takes_ms=st.integers(0, 8), fails=st.booleans())
    def register(self, offset_ms: int, takes_ms: int, fails: bool) -> tuple[int, TimerFuture]:
        asked_ms = self.clock.now_ms() + offset_ms
        name = self._plan(max(offset_ms, 0) + 1, asked_ms, 0, False, takes_ms, fails)
        return name, self.service.register_timer(asked_ms, self._callback(name, takes_ms, fails))

    @rule(
        target=futures,
        delay_ms=st.integers(0, 10),
        period_ms=st.integers(9, 30),
        fixed_delay=st.booleans(),
        takes_ms=st.integers(0, 8),
        fails=st.booleans(),
    )
    def schedule(
        self, delay_ms: int, period_ms: int, fixed_delay: bool, takes_ms: int, fails: bool
    ) -> tuple[int, TimerFuture]:
        # Few at a time, so that slow callbacks cannot keep fixed rates due for ever.
        if sum(1 for planned in self.plan if planned.period_ms) >= 1:
            takes_ms = 0
        told_ms = self.clock.now_ms() + delay_ms
        name = self._plan(delay_ms, told_ms, period_ms, fixed_delay, takes_ms, fails)
        kind = self.service.schedule_with_fixed_delay if fixed_delay else self.service.schedule_at_fixed_rate
        return name, kind(self._callback(name, takes_ms, fails), delay_ms, period_ms)

    @rule(future=futures)
    def cancel(self, future: tuple[int, TimerFuture]) -> None:
        name, timer = future
        waits = any(planned.name == name for planned in self.plan)
        was_cancelled = timer.cancelled()
        assert timer.cancel() is (waits or was_cancelled)
        self.plan = [planned for planned in self.plan if planned.name != name]
        assert timer.done()

    @rule(ms=st.integers(-100, 100))
    def set_the_wall_clock(self, ms: int) -> None:
        self.clock.step_wall(ms)

    @rule(ms=st.integers(0, 40))
    def advance(self, ms: int) -> None:
        wall_ms = self.clock.now_ms() + ms - (self.elapsed_ms + ms)
        self.clock.advance(ms)
        self.elapsed_ms += ms
        runs = 0
        while due := sorted(
            (planned for planned in self.plan if planned.deadline_ms <= self.elapsed_ms),
            key=lambda planned: (planned.deadline_ms, planned.order),
        ):
            first = due[0]
            runs += 1
            self.expected.append((first.name, first.told_ms, self.elapsed_ms))
            self.elapsed_ms += first.takes_ms
            self.expected_failures += first.fails
            self.plan.remove(first)
            if first.period_ms:
                self.order += 1
                first.order = self.order
                if first.fixed_delay:
                    first.deadline_ms = self.elapsed_ms + first.period_ms
                    first.told_ms = wall_ms + first.deadline_ms
                else:
                    first.deadline_ms += first.period_ms
                    first.told_ms += first.period_ms
                self.plan.append(first)
        assert self.service.run_due() == runs

    @invariant()
    def ran_what_was_planned(self) -> None:
        assert self.ran == self.expected
        assert len(self.failures) == self.expected_failures
        assert self.service.pending == len(self.plan)


TestServiceAgainstSchedule = ServiceAgainstSchedule.TestCase
