"""The timer service: what it refuses, how it counts and what a callback may do; the model has the rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark import TaskContext
from pyspark.cloudpickle import dumps, loads
from pyspark.sql.streaming.stateful_processor import TimerValues
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState
from pyspark.sql.streaming.stateful_processor_util import (
    TransformWithStateInPandasFuncMode,
    TransformWithStateInPandasUdfUtils,
)

import streamgauge
from spark_hooks.key_timers import KeyTimers, TimeMode
from streamgauge.clock import ManualClock
from streamgauge.errors import TimerError
from tests.unit.spark_hooks.scripted_timers import Op, Scripted
from tests.unit.spark_hooks.spark_timers import Handle, SparkTimers


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever uses this is in a task of Spark's."""
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    monkeypatch.setattr(TaskContext, "_taskContext", TaskContext(stageId=1, partitionId=0, attemptNumber=0))


EVENT = TimerValues(1_000, 50)
NEITHER = TimerValues(-1, -1)


class Recording(Scripted):
    """A processor of event time whose test tells it what to do."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        super().__init__("EventTime", False, {})
        self.timers = streamgauge.TimerService("recording", clock=clock)

    def close(self) -> None:
        """Nothing to close."""


def opened(mode: TimeMode = "EventTime", namespaces: bool = False) -> tuple[Scripted, SparkTimers]:
    processor = Scripted(mode, namespaces, {})
    spark = SparkTimers(processor, mode == "EventTime")
    processor.init(Handle(spark))
    return processor, spark


def timers_of(mode: TimeMode = "EventTime", namespaces: bool = False) -> KeyTimers:
    return opened(mode, namespaces)[0].timers.at(("a",), EVENT)


CALLS: dict[str, Callable[[KeyTimers, Any], None]] = {
    "register_event_time_timer": lambda timers, at: timers.register_event_time_timer(at),
    "delete_event_time_timer": lambda timers, at: timers.delete_event_time_timer(at),
    "register_processing_time_timer": lambda timers, at: timers.register_processing_time_timer(at),
    "delete_processing_time_timer": lambda timers, at: timers.delete_processing_time_timer(at),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_timer_of_the_other_time_mode_is_refused(call: str) -> None:
    """A query of Spark's has one time mode; the message names the call and the rule."""
    mode: TimeMode = "ProcessingTime" if "event" in call else "EventTime"
    with pytest.raises(TimerError, match=rf"{call}\(\) needs a query of time mode .* this one's is '{mode}'"):
        CALLS[call](timers_of(mode), 5)


@pytest.mark.parametrize(
    "timestamp",
    [5.0, float("nan"), True, None, "5", np.float64(5), np.bool_(True), pd.Timestamp(0)],
    ids=lambda value: repr(value),
)
@pytest.mark.parametrize("call", ["register_event_time_timer", "delete_event_time_timer"])
def test_a_timestamp_that_is_no_int_is_refused(call: str, timestamp: Any) -> None:
    """Whatever it might mean: a float cuts milliseconds off, a Timestamp counts nanoseconds."""
    with pytest.raises(
        TypeError, match=rf"{call}\(\): a timestamp in Unix milliseconds, an integer, was expected, not "
    ):
        CALLS[call](timers_of(), timestamp)


@pytest.mark.parametrize("timestamp_ms", [2**63, -(2**63) - 1])
def test_a_timestamp_that_fits_no_int64_is_refused(timestamp_ms: int) -> None:
    """Spark's timers are Java's longs."""
    with pytest.raises(ValueError, match=f"timestamp {timestamp_ms} does not fit an int64"):
        timers_of().register_event_time_timer(timestamp_ms)


def test_an_integer_of_numpys_is_a_timestamp() -> None:
    """A frame's columns have no others; what Spark gets is Python's, which its messages take."""
    processor, spark = opened()
    spark.key = ("a",)
    processor.timers.at(spark.key, EVENT).register_event_time_timer(np.int64(60))
    assert [type(timestamp_ms) for timestamp_ms in spark.of_key()] == [int]


def test_the_ends_of_int64_are_timestamps() -> None:
    """Flink's Long.MIN_VALUE and Long.MAX_VALUE, the first of which is due at once."""
    spark = opened()[1]
    rows = [Op(True, "", 2**63 - 1), Op(True, "", -(2**63))]
    task, out = spark.batch([(("a",), rows)], 50)
    assert [timer.timestamp_ms for timer in out] == [-(2**63)]
    assert spark.timers[repr(("a",))] == {2**63 - 1}
    assert task.timers._counts.lateness == {2**63 - 1 >> 55 << 55: 1}


@pytest.mark.parametrize("namespace", [None, 5, b"a", ("a",)], ids=repr)
def test_a_namespace_that_is_no_text_is_refused(namespace: Any) -> None:
    """The message names what was given."""
    with pytest.raises(TypeError, match="a namespace of type str was expected, not"):
        timers_of(namespaces=True).register_event_time_timer(5, namespace)


def test_a_namespace_that_is_too_long_is_refused() -> None:
    """At most 256 characters."""
    timers = timers_of(namespaces=True)
    timers.register_event_time_timer(5, "n" * 256)
    with pytest.raises(ValueError, match="a namespace of 257 characters, at most 256 may be"):
        timers.register_event_time_timer(5, "n" * 257)


def test_a_namespace_needs_a_service_that_takes_them() -> None:
    """Where it does not, the message tells how to make one that does."""
    with pytest.raises(ValueError, match="namespace 'a', but this TimerService takes none; make it with namespaces="):
        timers_of().register_event_time_timer(5, "a")


def test_timers_that_were_registered_before_namespaces_have_none() -> None:
    """Turning namespaces on changes nothing about what is pending."""
    spark = opened()[1]
    spark.batch([(("a",), [Op(True, "", 60)])], 50)
    after = SparkTimers(Scripted("EventTime", True, {}), True)
    after.timers, after.keys = spark.timers, spark.keys
    after.batch([(("a",), [Op(True, "b", 60)])], 50)
    assert [timer.namespace for timer in after.batch([], 60)[1]] == ["", "b"]


def test_the_timers_of_a_key_end_with_its_turn() -> None:
    """Spark registers for the key that it is at, whosever timers were asked for."""
    processor, _ = opened()
    first = processor.timers.at(("a",), EVENT)
    processor.timers.at(("b",), EVENT)
    with pytest.raises(TimerError, match=r"delete_event_time_timer\(\) on the timers of a key that Spark has left"):
        first.delete_event_time_timer(5)


def test_times_are_those_that_spark_tells() -> None:
    """The batch's watermark and the time of its trigger."""
    timers = timers_of()
    assert (timers.current_watermark(), timers.current_processing_time()) == (50, 1_000)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"name": 5}, TypeError, "a TimerService's name is text, not 5 of type int"),
        ({"name": ""}, ValueError, "a TimerService's name has 1 to 64 characters, not 0"),
        ({"name": "n" * 65}, ValueError, "1 to 64 characters, not 65"),
        (
            {"name": "n", "time_mode": "event"},
            ValueError,
            "time_mode='event', but 'EventTime' or 'ProcessingTime' was expected",
        ),
    ],
    ids=["type", "empty", "long", "mode"],
)
def test_what_a_service_cannot_be_made_with_is_refused(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    """The message names the value and what was expected."""
    with pytest.raises(error, match=words):
        streamgauge.TimerService(**arguments)


def test_spark_without_transform_with_state_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark 3.5 has nothing that timers could stand on."""
    monkeypatch.setattr("pyspark.__version__", "3.5.9")
    with pytest.raises(TimerError, match=r"stands on transformWithState, which Spark 3\.5\.9 does not have"):
        streamgauge.TimerService("overdue")


@pytest.mark.usefixtures("task")
@pytest.mark.parametrize("mode", ["EventTime", "ProcessingTime"])
def test_a_processor_without_the_callback_is_refused(mode: TimeMode) -> None:
    """At the query's start, not when the first timer fires."""
    service = streamgauge.TimerService("overdue", mode)
    name = "on_event_time" if mode == "EventTime" else "on_processing_time"
    with pytest.raises(TypeError, match=rf"object has no method {name}\(timer, timers\)"):
        service.open(Handle(SparkTimers(None, True)), object())  # type: ignore[arg-type]


def test_a_query_without_timers_is_refused() -> None:
    """Spark tells no time in its time mode None."""
    with pytest.raises(TimerError, match="'EventTime', but Spark tells no time"):
        opened()[0].timers.at(("a",), NEITHER)


class Client:
    """Spark's connection of a task, as far as the first call of a processor needs it."""

    handle_state = StatefulProcessorHandleState.CREATED

    def set_handle_state(self, state: StatefulProcessorHandleState) -> None:
        self.handle_state = state


@pytest.mark.usefixtures("task")
@pytest.mark.parametrize("mode", ["ProcessingTime", "None"])
def test_a_query_of_the_other_time_mode_is_refused_by_its_first_task(mode: str) -> None:
    """Spark's own caller of `init` has the mode, which it tells the processor nowhere."""
    worker: Any = TransformWithStateInPandasUdfUtils(Recording(), mode)  # type: ignore[arg-type]
    with pytest.raises(TimerError, match=rf"'recording'\) is of time mode 'EventTime', .* timeMode is '{mode}'"):
        worker.transformWithStateUDF(Client(), TransformWithStateInPandasFuncMode.PROCESS_DATA, ("a",), iter([]))


@pytest.mark.usefixtures("task")
def test_a_query_of_the_same_time_mode_is_taken_however_it_is_written() -> None:
    """Spark takes its mode in any case."""
    worker: Any = TransformWithStateInPandasUdfUtils(Recording(), "eventtime")  # type: ignore[arg-type]
    client = Client()
    with pytest.raises(AttributeError, match="set_implicit_key"):
        worker.transformWithStateUDF(client, TransformWithStateInPandasFuncMode.PROCESS_DATA, ("a",), iter([]))
    assert client.handle_state is StatefulProcessorHandleState.INITIALIZED


@pytest.mark.parametrize("mode", ["ProcessingTime", "EventTime"])
def test_nothing_is_refused_where_spark_would_swallow_the_reason(mode: str) -> None:
    """Outside of a task, in the driver, a processor's exception is a crashed worker to Spark; a task will tell it."""
    worker: Any = TransformWithStateInPandasUdfUtils(Recording(), mode)  # type: ignore[arg-type]
    assert (
        list(worker.transformWithStateUDF(Client(), TransformWithStateInPandasFuncMode.PRE_INIT, None, iter([]))) == []
    )


class Slow(Recording):
    """Its callbacks take 3 ms before, 4 ms between and 5 ms after two rows; who reads them takes 100."""

    def on_event_time(self, timer: Any, timers: KeyTimers) -> Iterator[Any]:
        clock = self.timers._clock
        assert isinstance(clock, ManualClock)
        clock.advance(3)
        yield "one"
        clock.advance(4)
        yield "two"
        clock.advance(5)


def test_a_callbacks_time_is_its_own() -> None:
    """What Spark does with its rows is not."""
    clock = ManualClock()
    processor = Slow(clock)
    spark = SparkTimers(processor, True)
    processor.init(Handle(spark))
    spark.key = ("a",)
    processor.timers.at(spark.key, EVENT).register_event_time_timer(40)

    class Expired:
        def getExpiryTimeInMs(self) -> int:
            return 40

    for _ in processor.timers.fire(spark.key, EVENT, Expired()):
        clock.advance(100)
    told = processor.timers._counts.report()
    assert (told.callback_ns, told.fired_event, told.fired_processing) == (12_000_000, 1, 0)
    assert told.lateness == {10: 1}


class Silent(Recording):
    """Its callback puts nothing out, and is no generator."""

    def on_event_time(self, timer: Any, timers: KeyTimers) -> Any:
        self.seen = timer


def test_a_callback_may_put_nothing_out() -> None:
    """One that returns None is as good as a generator."""
    task, out = SparkTimers(Silent(), True).batch([(("a",), [Op(True, "", 50)])], 50)
    assert out == []
    assert task.seen.timestamp_ms == 50


class Failing(Recording):
    """Its callback fails."""

    def on_event_time(self, timer: Any, timers: KeyTimers) -> Any:
        raise ArithmeticError("of the user's")


def test_a_callbacks_exception_fails_the_task() -> None:
    """As in Flink; Spark runs the batch again, from the state before it."""
    with pytest.raises(ArithmeticError, match="of the user's"):
        SparkTimers(Failing(), True).batch([(("a",), [Op(True, "", 50)])], 50)


def test_a_processor_with_a_service_travels() -> None:
    """Spark pickles it for each task."""
    service = loads(dumps(Recording())).timers
    assert (service.name, service.time_mode, service.namespaces) == ("recording", "EventTime", False)


def test_importing_streamgauge_loads_no_spark() -> None:
    """The service is loaded when it is asked for; a reader of the REST has no Spark."""
    code = "import sys, streamgauge; assert not {'pyspark', 'pandas', 'spark_hooks'} & set(sys.modules), sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_streamgauge_does_not_have_is_said_as_ever() -> None:
    """A name that is none raises what any module would."""
    with pytest.raises(AttributeError, match="module 'streamgauge' has no attribute 'timer_service'"):
        _ = streamgauge.timer_service


def test_a_timer_that_is_deleted_and_registered_again_goes_to_the_end() -> None:
    """Timers of one timestamp fire as they were registered, last of all the one that came back."""
    again = [Op(False, "a", 40), Op(True, "a", 40)]
    processor = Scripted("EventTime", True, {(repr(("k",)), "", 40): again})
    rows = [Op(True, name, 40) for name in ("", "a", "b")]
    out = SparkTimers(processor, True).batch([(("k",), rows)], 50)[1]
    assert [timer.namespace for timer in out] == ["", "b", "a"]


def test_a_timer_whose_namespaces_are_all_deleted_leaves_no_state() -> None:
    """Nor does one that has only the plain namespace left: it is as if it had never had another."""
    spark = SparkTimers(Scripted("EventTime", True, {}), True)
    both = [Op(True, "", 60), Op(True, "a", 60), Op(True, "b", 70)]
    spark.batch([(("k",), [*both, Op(False, "a", 60), Op(False, "b", 70)])], 50)
    assert spark.states["streamgauge_timers"][repr(("k",))] == {}
    assert spark.timers[repr(("k",))] == {60}
