"""What of the recorder's life needs no JVM: sessions without one, refusals, and the calls it makes."""

from __future__ import annotations

import zlib
from typing import Any
from unittest.mock import MagicMock

import pytest

from spark_hooks.jvm import QUEUE, Recorder
from streamgauge.errors import HookError


def gateway() -> MagicMock:
    """A Py4J gateway that takes every call; it checks neither Java nor its types."""
    found = MagicMock()
    found.new_array.side_effect = lambda _, size: [None] * size
    return found


def session(with_gateway: Any) -> MagicMock:
    spark = MagicMock()
    spark.sparkContext._gateway = with_gateway
    return spark


class ConnectSession:
    """A Spark Connect session: it has no SparkContext."""

    @property
    def sparkContext(self) -> object:
        raise RuntimeError("[JVM_ATTRIBUTE_NOT_SUPPORTED]")


@pytest.mark.parametrize("spark", [ConnectSession(), object(), None], ids=["connect", "object", "none"])
def test_a_session_without_a_driver_is_refused_by_name(spark: object) -> None:
    """The message says what to attach to instead."""
    with pytest.raises(HookError) as refused:
        Recorder(spark)
    assert str(refused.value).startswith(f"{type(spark).__name__} has no SparkContext to listen to: ")


def test_a_jvm_that_does_not_compile_the_recorder_is_refused() -> None:
    """Whatever Py4J raises; the cause is told."""
    broken = gateway()
    broken.jvm.org.codehaus.janino.SimpleCompiler.side_effect = TypeError("'JavaPackage' object is not callable")
    with pytest.raises(HookError, match="does not take the recorder: 'JavaPackage' object is not callable"):
        Recorder(session(broken))


def test_the_recorder_is_compiled_from_the_shipped_source_and_queued() -> None:
    """On a queue of its own, and told of what is there already."""
    java = gateway()
    spark = session(java)
    recorder = Recorder(spark, buffer_bytes=4096)
    compiler = java.jvm.org.codehaus.janino.SimpleCompiler.return_value
    (source,) = compiler.cook.call_args.args
    assert "public class Recorder extends SparkListener" in source
    context = spark.sparkContext._jsc.sc.return_value
    listener, queue = context.listenerBus.return_value.addToQueue.call_args.args
    assert queue == QUEUE
    listener.recordPresent.assert_called_once_with(context)
    java.jvm.java.lang.Long.valueOf.assert_called_once_with(4096)
    recorder.remove()
    context.listenerBus.return_value.removeListener.assert_called_once_with(listener)


def test_what_it_hands_over_is_bytes() -> None:
    """A drain comes deflated; Py4J may hand a byte[] over as a bytearray."""
    spark = session(gateway())
    recorder = Recorder(spark)
    listener = spark.sparkContext._jsc.sc.return_value.listenerBus.return_value.addToQueue.call_args.args[0]
    listener.drain.return_value = bytearray(zlib.compress(b"\x94"))
    listener.driverMetrics.return_value = bytearray(b"\x80")
    assert (recorder.drain(), recorder.driver_metrics()) == (b"\x94", b"\x80")
