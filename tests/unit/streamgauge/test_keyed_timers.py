"""The internal timer service: Flink's rules, one test each, and a model of both queues."""

import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Hashable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from streamgauge.clock import ManualClock
from streamgauge.keyed_timers import (
    MIN_TIMESTAMP,
    InternalTimerService,
    KeyedTimer,
    KeyGroups,
    TimerQueue,
    stable_hash,
)
from streamgauge.timers import ProcessingTimeService, TimerFuture

START = 1_000_000
ALL = KeyGroups.of_subtask(0, 1)

Fired = tuple[str, str, str, str, int]
"""Which callback, the current key in it, and the timer's key, namespace and timestamp."""


class CountedService(ProcessingTimeService):
    """A processing-time service that remembers what was registered with it; all else is the real one's."""

    def __init__(self, clock: ManualClock, on_failure: Callable[[Exception], None]) -> None:
        super().__init__(clock, on_failure)
        self.wake_ups: list[TimerFuture] = []

    def register_timer(self, timestamp_ms: int, callback: Callable[[int], None]) -> TimerFuture:
        self.wake_ups.append(super().register_timer(timestamp_ms, callback))
        return self.wake_ups[-1]

    def asked(self) -> list[int]:
        return [wake_up.timestamp_ms for wake_up in self.wake_ups]


class Bench:
    """An internal timer service whose target remembers what fired, and may do more."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.failures: list[Exception] = []
        self.processing_time = CountedService(self.clock, self.failures.append)
        self.fired: list[Fired] = []
        self.then: Callable[[KeyedTimer[str, str]], None] = lambda timer: None
        self.timers: InternalTimerService[str, str] = InternalTimerService(
            "nobody", ALL, self.processing_time, self, self.failures.append
        )

    def on_event_time(self, timer: KeyedTimer[str, str]) -> None:
        self._take("event", timer)

    def on_processing_time(self, timer: KeyedTimer[str, str]) -> None:
        self._take("processing", timer)

    def _take(self, kind: str, timer: KeyedTimer[str, str]) -> None:
        self.fired.append((kind, self.timers.current_key, timer.key, timer.namespace, timer.timestamp_ms))
        self.then(timer)

    def fired_at(self) -> list[int]:
        return [fired[-1] for fired in self.fired]

    def run_until(self, end_ms: int) -> None:
        while self.clock.now_ms() < end_ms:
            self.clock.advance(1)
            self.processing_time.run_due()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_timers_are_keyed_by_key_namespace_and_timestamp(bench: Bench) -> None:
    """One timer for each (key, namespace, timestamp): each part tells two timers apart, nothing else does."""
    for key, namespace, at in (("k", "n", 1), ("k", "n", 1), ("l", "n", 1), ("k", "m", 1), ("k", "n", 2)):
        bench.timers.current_key = key
        bench.timers.register_event_time_timer(namespace, at)
    assert bench.timers.event_time_timers == 4
    bench.timers.advance_watermark(10)
    assert [fired[2:] for fired in bench.fired] == [("k", "n", 1), ("l", "n", 1), ("k", "m", 1), ("k", "n", 2)]


def test_event_time_and_processing_time_queues_are_apart(bench: Bench) -> None:
    """The same timer may wait in both queues; each fires by its own time, and is deleted from its own."""
    bench.timers.register_event_time_timer("n", START + 5)
    bench.timers.register_processing_time_timer("n", START + 5)
    bench.timers.register_processing_time_timer("n", START + 6)
    bench.timers.register_event_time_timer("n", START + 7)
    bench.timers.delete_event_time_timer("n", START + 6)
    bench.timers.delete_processing_time_timer("n", START + 7)
    bench.timers.advance_watermark(START + 100)
    assert [(kind, at) for kind, *_, at in bench.fired] == [("event", START + 5), ("event", START + 7)]
    bench.run_until(START + 100)
    assert [(kind, at) for kind, *_, at in bench.fired[2:]] == [("processing", START + 5), ("processing", START + 6)]


def test_an_earlier_head_cancels_and_replaces_the_wake_up(bench: Bench) -> None:
    """Registering: an earlier head cancels and replaces the one scheduled wake-up; a later one does not."""
    for at in (50, 60, 20, 30):
        bench.timers.register_processing_time_timer("n", START + at)
    assert bench.processing_time.asked() == [START + 50, START + 20]
    assert [wake_up.cancelled() for wake_up in bench.processing_time.wake_ups] == [True, False]
    assert bench.processing_time.pending == 1
    bench.run_until(START + 100)
    assert bench.fired_at() == [START + 20, START + 30, START + 50, START + 60]


def test_a_duplicate_changes_nothing(bench: Bench) -> None:
    """Registering: a duplicate, of the head or of another, neither waits twice nor schedules."""
    for at in (50, 60):
        bench.timers.register_processing_time_timer("n", START + at)
        bench.timers.register_processing_time_timer("n", START + at)
    assert bench.timers.processing_time_timers == 2
    assert bench.processing_time.asked() == [START + 50]
    bench.run_until(START + 100)
    assert bench.fired_at() == [START + 50, START + 60]


def test_an_equal_head_of_another_key_keeps_the_wake_up(bench: Bench) -> None:
    """Only a strictly earlier timer replaces the wake-up."""
    bench.timers.register_processing_time_timer("n", START + 50)
    bench.timers.register_processing_time_timer("m", START + 50)
    assert bench.processing_time.asked() == [START + 50]


def test_a_deleted_timer_leaves_its_wake_up(bench: Bench) -> None:
    """Deleting takes it out of the queue; the scheduled wake-up stays, fires, and finds nothing."""
    bench.timers.register_processing_time_timer("n", START + 10)
    bench.timers.delete_processing_time_timer("n", START + 10)
    assert bench.timers.processing_time_timers == 0
    [wake_up] = bench.processing_time.wake_ups
    assert not wake_up.cancelled()
    bench.run_until(START + 20)
    assert wake_up.done()
    assert not wake_up.cancelled()
    assert bench.fired == []
    assert len(bench.processing_time.wake_ups) == 1


def test_a_wake_up_that_finds_nothing_schedules_the_next_head(bench: Bench) -> None:
    """A wake-up whose timer was deleted passes the turn on."""
    bench.timers.register_processing_time_timer("n", START + 10)
    bench.timers.register_processing_time_timer("n", START + 30)
    bench.timers.delete_processing_time_timer("n", START + 10)
    bench.run_until(START + 30)
    assert bench.processing_time.asked() == [START + 10, START + 30]
    assert bench.fired == []
    bench.run_until(START + 31)
    assert bench.fired_at() == [START + 30]


def test_deleting_refers_to_the_current_key(bench: Bench) -> None:
    """Another key's timer stays, and deleting what is not there is no error."""
    bench.timers.current_key = "a"
    bench.timers.register_event_time_timer("n", 1)
    bench.timers.current_key = "b"
    bench.timers.delete_event_time_timer("n", 1)
    assert bench.timers.event_time_timers == 1
    bench.timers.current_key = "a"
    bench.timers.delete_event_time_timer("n", 1)
    assert bench.timers.event_time_timers == 0
    bench.timers.advance_watermark(10)
    assert bench.fired == []


def test_advance_watermark_sets_it_first_then_polls_while_head_is_reached(bench: Bench) -> None:
    """advance_watermark(t) sets the current watermark first, then polls while head ≤ t, setting the key for each."""
    assert bench.timers.current_watermark == MIN_TIMESTAMP
    for key, at in (("c", 30), ("a", 10), ("d", 31), ("b", 20)):
        bench.timers.current_key = key
        bench.timers.register_event_time_timer("n", at)
    seen: list[tuple[int, int]] = []
    bench.then = lambda _: seen.append((bench.timers.current_watermark, bench.timers.event_time_timers))
    bench.timers.advance_watermark(30)
    assert bench.fired == [("event", key, key, "n", at) for key, at in (("a", 10), ("b", 20), ("c", 30))]
    assert seen == [(30, 3), (30, 2), (30, 1)]
    assert bench.timers.event_time_timers == 1


def test_an_event_time_callback_may_register_and_delete(bench: Bench) -> None:
    """What a callback registers at or before the watermark fires in the same advance; what it deletes does not."""

    def then(timer: KeyedTimer[str, str]) -> None:
        if timer.timestamp_ms == 10:
            bench.timers.register_event_time_timer("n", 5)
            bench.timers.register_event_time_timer("n", 41)
            bench.timers.delete_event_time_timer("n", 20)

    bench.then = then
    for at in (10, 20, 30):
        bench.timers.register_event_time_timer("n", at)
    bench.timers.advance_watermark(40)
    assert bench.fired_at() == [10, 5, 30]
    bench.timers.advance_watermark(41)
    assert bench.fired_at() == [10, 5, 30, 41]


def test_a_passed_timer_waits_for_the_next_watermark(bench: Bench) -> None:
    """Registering behind the watermark fires nothing by itself."""
    bench.timers.advance_watermark(100)
    bench.timers.register_event_time_timer("n", 50)
    assert bench.fired == []
    bench.timers.advance_watermark(100)
    assert bench.fired_at() == [50]


def test_a_watermark_that_goes_back_is_taken(bench: Bench) -> None:
    """The service sets what it is given; that watermarks rise is the valve's concern."""
    bench.timers.advance_watermark(100)
    bench.timers.advance_watermark(-5)
    assert bench.timers.current_watermark == -5


def test_on_processing_time_polls_by_the_asked_time_and_schedules_the_next_head(bench: Bench) -> None:
    """On processing time t: polls while head ≤ t, then schedules the next head."""
    for key, at in (("b", 10), ("a", 10), ("c", 11), ("d", 40)):
        bench.timers.current_key = key
        bench.timers.register_processing_time_timer("n", START + at)
    bench.run_until(START + 11)
    assert [fired[:3] for fired in bench.fired] == [("processing", "b", "b"), ("processing", "a", "a")]
    assert bench.processing_time.asked() == [START + 10, START + 11]
    bench.run_until(START + 100)
    assert bench.processing_time.asked() == [START + 10, START + 11, START + 40]
    assert bench.fired_at() == [START + 10, START + 10, START + 11, START + 40]
    assert bench.processing_time.pending == 0


def test_on_processing_time_does_not_schedule_over_a_callback(bench: Bench) -> None:
    """On processing time t: clears the next wake-up first, and schedules the next head only if no callback did."""

    def then(timer: KeyedTimer[str, str]) -> None:
        if timer.timestamp_ms == START + 10:
            bench.timers.register_processing_time_timer("n", START + 20)

    bench.then = then
    bench.timers.register_processing_time_timer("n", START + 10)
    bench.timers.register_processing_time_timer("n", START + 40)
    bench.run_until(START + 11)
    assert bench.processing_time.asked() == [START + 10, START + 20]
    assert bench.processing_time.pending == 1
    bench.run_until(START + 100)
    assert bench.fired_at() == [START + 10, START + 20, START + 40]


def test_what_a_callback_registers_in_the_past_fires_in_the_same_turn(bench: Bench) -> None:
    """A timer at or before t is polled at once; the wake-up that it scheduled finds nothing and passes on."""

    def then(timer: KeyedTimer[str, str]) -> None:
        if timer.timestamp_ms == START + 10:
            bench.timers.register_processing_time_timer("n", START)

    bench.then = then
    bench.timers.register_processing_time_timer("n", START + 10)
    bench.timers.register_processing_time_timer("n", START + 40)
    bench.run_until(START + 11)
    assert bench.fired_at() == [START + 10, START]
    bench.run_until(START + 100)
    assert bench.fired_at() == [START + 10, START, START + 40]


def test_current_processing_time_is_wall_time(bench: Bench) -> None:
    """Processing time is the clock's."""
    bench.clock.advance(5)
    assert bench.timers.current_processing_time() == START + 5


@pytest.mark.parametrize("kind", ["event", "processing"])
def test_a_failing_callback_is_reported_and_the_others_fire(bench: Bench, kind: str) -> None:
    """Failures: an exception in a callback is reported and the schedule goes on, in this turn and after it."""

    def then(timer: KeyedTimer[str, str]) -> None:
        if timer.namespace == "broken":
            raise LookupError(timer.timestamp_ms)

    bench.then = then
    register = getattr(bench.timers, f"register_{kind}_time_timer")
    for namespace, at in (("broken", 10), ("sound", 10), ("broken", 20), ("sound", 30)):
        register(namespace, START + at)
    if kind == "event":
        bench.timers.advance_watermark(START + 30)
    bench.run_until(START + 31)
    assert bench.fired_at() == [START + 10, START + 10, START + 20, START + 30]
    assert [error.args for error in bench.failures] == [(START + 10,), (START + 20,)]


def test_a_shutdown_during_a_callback_is_no_failure(bench: Bench) -> None:
    """The next head is not scheduled with a service that has been shut down meanwhile."""
    bench.then = lambda _: bench.processing_time.shutdown() and None
    bench.timers.register_processing_time_timer("n", START + 1)
    bench.timers.register_processing_time_timer("n", START + 9)
    bench.run_until(START + 20)
    assert bench.fired_at() == [START + 1]
    assert bench.failures == []


def test_a_key_of_another_subtask_is_refused() -> None:
    """Key groups are offset by the owned range; what lies out of it is a routing error."""
    clock = ManualClock()
    bench = Bench()
    service = ProcessingTimeService(clock, bench.failures.append)
    groups = KeyGroups(128, 40, 79, key_hash=int)
    timers: InternalTimerService[str, str] = InternalTimerService("40", groups, service, bench, bench.failures.append)
    for key, owned in (("39", False), ("40", True), ("79", True), ("80", False), ("167", False), ("168", True)):
        timers.current_key = key
        if owned:
            timers.register_event_time_timer("n", 1)
            continue
        expected = f"key group {int(key) % 128}, but only groups 40 to 79"
        for refused in (
            timers.register_event_time_timer,
            timers.register_processing_time_timer,
            timers.delete_event_time_timer,
            timers.delete_processing_time_timer,
        ):
            with pytest.raises(ValueError, match=expected):
                refused("n", 1)
    assert timers.event_time_timers == 3
    assert timers.processing_time_timers == 0


def test_the_group_is_the_hash_modulo_max_parallelism() -> None:
    """Key groups: hash mod max parallelism, offset by the owned range."""
    groups = KeyGroups(10, 3, 6, key_hash=int)
    assert [groups.group(key) for key in ("0", "9", "10", "123")] == [0, 9, 0, 3]
    assert [groups.offset(group) for group in (3, 4, 5, 6)] == [0, 1, 2, 3]
    assert len(groups) == 4
    for outside in (2, 7):
        with pytest.raises(ValueError, match=f"key group {outside}, but only groups 3 to 6 are owned"):
            groups.offset(outside)


def test_each_key_group_has_a_map_of_its_own() -> None:
    """One map per group, so that a group's timers can be told without looking at the others."""
    queue: TimerQueue[str, str] = TimerQueue(KeyGroups(10, 3, 6, key_hash=int))
    timers = [KeyedTimer(key, "n", at) for key, at in (("3", 1), ("13", 2), ("4", 3), ("23", 4))]
    for timer in timers:
        queue.add(timer)
    assert queue.of_group(3) == {timers[0], timers[1], timers[3]}
    assert queue.of_group(4) == {timers[2]}
    assert queue.poll() == timers[0]
    queue.remove(timers[3])
    assert queue.of_group(3) == {timers[1]}
    with pytest.raises(ValueError, match="key group 7"):
        queue.of_group(7)


def test_put_if_absent_comes_before_the_heap() -> None:
    """Adding what is there leaves the heap alone and keeps its place in the order."""
    queue: TimerQueue[str, str] = TimerQueue(ALL)
    assert queue.add(KeyedTimer("a", "n", 5))
    assert not queue.add(KeyedTimer("b", "n", 5))
    assert not queue.add(KeyedTimer("a", "n", 5))
    assert len(queue) == 2
    assert [queue.poll(), queue.poll(), queue.poll()] == [KeyedTimer("a", "n", 5), KeyedTimer("b", "n", 5), None]


@given(st.data())
def test_subtasks_own_every_group_once(data: st.DataObject) -> None:
    """The ranges of all subtasks are disjoint, in order, cover every group, and differ by at most one in length."""
    max_parallelism = data.draw(st.integers(1, 400))
    parallelism = data.draw(st.integers(1, max_parallelism))
    ranges = [KeyGroups.of_subtask(n, parallelism, max_parallelism) for n in range(parallelism)]
    owned = [group for groups in ranges for group in range(groups.first, groups.last + 1)]
    assert owned == list(range(max_parallelism))
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1
    # Flink's computeOperatorIndexForKeyGroup is the way back.
    for n, groups in enumerate(ranges):
        assert {group * parallelism // max_parallelism for group in range(groups.first, groups.last + 1)} == {n}


@pytest.mark.parametrize(("first", "last"), [(-1, 3), (4, 3), (0, 10)])
def test_impossible_ranges_are_refused(first: int, last: int) -> None:
    """A range lies within the job's groups and is not empty."""
    with pytest.raises(ValueError, match=f"key groups {first} to {last}, but a range within 0 to 9"):
        KeyGroups(10, first, last)


@pytest.mark.parametrize(("subtask", "parallelism"), [(-1, 2), (2, 2), (0, 11), (0, 0)])
def test_impossible_subtasks_are_refused(subtask: int, parallelism: int) -> None:
    """A subtask is less than the parallelism, and that at most the maximum."""
    with pytest.raises(ValueError, match=f"subtask {subtask} of {parallelism}, but"):
        KeyGroups.of_subtask(subtask, parallelism, 10)


@pytest.mark.parametrize(
    ("key", "form"),
    [
        ("spark", b"\xa5spark"),
        ("ß", b"\xa2\xc3\x9f"),
        (b"\x00\xff", b"\xc4\x02\x00\xff"),
        (7, b"\x07"),
        (None, b"\xc0"),
        (("a", 1), b"\x92\xa1a\x01"),
    ],
)
def test_the_hash_is_the_crc_of_the_messagepack_form(key: Hashable, form: bytes) -> None:
    """What a key hashes to follows from two specifications, so no version and no machine changes it."""
    assert stable_hash(key) == zlib.crc32(form)


def test_the_hash_is_the_same_in_every_process() -> None:
    """Python's own hash of text is salted; the key groups' hash must not be."""
    keys = ["", "spark", "größe", b"\x00\xff", 0, -1, 2**40, 1.5, None, ("a", 1)]
    program = f"from streamgauge.keyed_timers import stable_hash; print([stable_hash(k) for k in {keys!r}])"
    root = Path(__file__).parents[3]
    for seed in ("1", "2"):
        printed = subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root), "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        assert printed.strip() == str([stable_hash(key) for key in keys])


@pytest.mark.parametrize(
    "keys",
    [
        [str(n) for n in range(12_800)],
        [f"user-{n:08d}" for n in range(12_800)],
        list(range(12_800)),
        [n * 128 for n in range(12_800)],
        [("shop", n) for n in range(12_800)],
    ],
    ids=["digits", "ids", "integers", "multiples of 128", "pairs"],
)
def test_similar_keys_spread_over_the_groups(keys: list[Hashable]) -> None:
    """Of 12,800 keys that differ by little, no one of 128 groups gets more than twice or less than half its share."""
    sizes = Counter(ALL.group(key) for key in keys)
    assert len(sizes) == 128
    assert max(sizes.values()) <= 200
    assert min(sizes.values()) >= 50


def test_a_key_without_a_form_is_refused() -> None:
    """What cannot be encoded needs a hash of its own."""
    with pytest.raises(TypeError):
        stable_hash(object())


Identity = tuple[str, str, int]


class InternalServiceAgainstModel(RuleBasedStateMachine):
    """Both queues behave as dicts from (key, namespace, timestamp) to the order of registration, sorted when due."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(START)
        self.failures: list[Exception] = []
        self.processing_time = CountedService(self.clock, self.failures.append)
        self.timers: InternalTimerService[str, str] = InternalTimerService(
            "a", ALL, self.processing_time, self, self.failures.append
        )
        self.models: dict[str, dict[Identity, int]] = {"event": {}, "processing": {}}
        self.order = 0
        self.watermark = MIN_TIMESTAMP
        self.fired: list[tuple[str, Identity]] = []
        self.expected: list[tuple[str, Identity]] = []
        self.failed = 0
        # When the one wake-up comes, and the timestamp that it was scheduled for.
        self.wake_up: tuple[int, int] | None = None

    def on_event_time(self, timer: KeyedTimer[str, str]) -> None:
        self._react("event", timer)

    def on_processing_time(self, timer: KeyedTimer[str, str]) -> None:
        self._react("processing", timer)

    def _react(self, kind: str, timer: KeyedTimer[str, str]) -> None:
        """Namespaces say what a callback does: 'again' registers 7 ms later, 'drop' deletes another, 'fail' raises."""
        assert self.timers.current_key == timer.key
        self.fired.append((kind, (timer.key, timer.namespace, timer.timestamp_ms)))
        if timer.namespace == "again":
            getattr(self.timers, f"register_{kind}_time_timer")("plain", timer.timestamp_ms + 7)
        elif timer.namespace == "drop":
            getattr(self.timers, f"delete_{kind}_time_timer")("plain", timer.timestamp_ms + 1)
        elif timer.namespace == "fail":
            raise ArithmeticError

    def _register(self, kind: str, identity: Identity) -> None:
        if identity in self.models[kind]:
            return
        if kind == "processing" and all(identity[2] < at for _, _, at in self.models[kind]):
            self._schedule(identity[2])
        self.order += 1
        self.models[kind][identity] = self.order

    def _schedule(self, at: int) -> None:
        self.wake_up = max(at, self.clock.now_ms()) + 1, at

    def _fire_until(self, kind: str, limit_ms: int) -> None:
        model = self.models[kind]
        while due := sorted((at, order, (key, ns, at)) for (key, ns, at), order in model.items() if at <= limit_ms):
            key, namespace, at = identity = due[0][2]
            del model[identity]
            self.expected.append((kind, identity))
            if namespace == "again":
                self._register(kind, (key, "plain", at + 7))
            elif namespace == "drop":
                model.pop((key, "plain", at + 1), None)
            self.failed += namespace == "fail"

    kinds = st.sampled_from(["event", "processing"])
    keys = st.sampled_from(["a", "b", "c"])
    namespaces = st.sampled_from(["plain", "again", "drop", "fail"])

    @rule(kind=kinds, key=keys, namespace=namespaces, offset_ms=st.integers(-10, 30))
    def register(self, kind: str, key: str, namespace: str, offset_ms: int) -> None:
        at = self.clock.now_ms() + offset_ms
        self.timers.current_key = key
        getattr(self.timers, f"register_{kind}_time_timer")(namespace, at)
        self._register(kind, (key, namespace, at))

    @rule(kind=kinds, key=keys, namespace=namespaces, offset_ms=st.integers(-10, 30))
    def delete(self, kind: str, key: str, namespace: str, offset_ms: int) -> None:
        at = self.clock.now_ms() + offset_ms
        self.timers.current_key = key
        getattr(self.timers, f"delete_{kind}_time_timer")(namespace, at)
        self.models[kind].pop((key, namespace, at), None)

    @rule(data=st.data(), kind=kinds)
    def delete_one_that_waits(self, data: st.DataObject, kind: str) -> None:
        if self.models[kind]:
            key, namespace, at = data.draw(st.sampled_from(sorted(self.models[kind])))
            self.timers.current_key = key
            getattr(self.timers, f"delete_{kind}_time_timer")(namespace, at)
            del self.models[kind][key, namespace, at]

    @rule(offset_ms=st.integers(-20, 40))
    def advance_watermark(self, offset_ms: int) -> None:
        self.watermark = self.clock.now_ms() + offset_ms
        self.timers.advance_watermark(self.watermark)
        self._fire_until("event", self.watermark)

    @rule(ms=st.integers(1, 25))
    def pass_time(self, ms: int) -> None:
        # A wake-up fires what is due by the timestamp it was scheduled for; a timer behind one that was late
        # when it was registered waits for the next wake-up, a millisecond on, as on Flink.
        for _ in range(ms):
            self.clock.advance(1)
            self.processing_time.run_due()
            while self.wake_up is not None and self.wake_up[0] <= self.clock.now_ms():
                at, self.wake_up = self.wake_up[1], None
                self._fire_until("processing", at)
                if self.models["processing"] and self.wake_up is None:
                    self._schedule(min(at for _, _, at in self.models["processing"]))

    @invariant()
    def fired_what_the_model_did(self) -> None:
        assert self.fired == self.expected
        assert len(self.failures) == self.failed

    @invariant()
    def holds_what_the_model_does(self) -> None:
        assert self.timers.event_time_timers == len(self.models["event"])
        assert self.timers.processing_time_timers == len(self.models["processing"])
        assert self.timers.current_watermark == self.watermark

    @invariant()
    def one_wake_up_at_most_is_scheduled_and_none_too_late(self) -> None:
        scheduled = [wake_up for wake_up in self.processing_time.wake_ups if not wake_up.done()]
        assert len(scheduled) == self.processing_time.pending <= 1
        if self.models["processing"]:
            assert scheduled[0].timestamp_ms <= min(at for _, _, at in self.models["processing"])


TestInternalServiceAgainstModel = InternalServiceAgainstModel.TestCase
