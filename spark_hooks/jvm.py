"""The recorder inside the driver's JVM: compiled, put on the listener bus, drained, taken off again."""

from __future__ import annotations

import contextlib
import zlib
from importlib import resources
from typing import Any
from weakref import WeakKeyDictionary

from streamgauge.errors import HookError

QUEUE = "streamgauge"
"""A listener queue of our own: it never slows Spark's own listeners, nor they it."""

BUFFER_BYTES = 64 * 1024 * 1024
"""What may wait in the driver's JVM between two drains; a drain comes every second."""

CATCH_UP_MS = 500
"""How long the end of the hooks waits for events that are on their way."""


class Recorder:
    """
    The listener that runs in the JVM of `spark`.

    Made, drained and removed by one thread at a time; Py4J gives each thread its own connection.
    `listener` is the Java object.
    """

    def __init__(self, spark: Any, buffer_bytes: int = BUFFER_BYTES) -> None:
        """
        Compile the recorder and put it on the bus.

        Raises:
            HookError: there is no Spark driver behind `spark`, or its JVM refuses the recorder.
        """
        try:
            self._context = spark.sparkContext._jsc.sc()
            self._shared = spark._jsparkSession.sharedState()
            gateway = spark.sparkContext._gateway
        except Exception as error:
            raise HookError(
                f"{type(spark).__name__} has no SparkContext to listen to: "
                "attach to a classic SparkSession in its driver"
            ) from error
        try:
            recorder_class = _recorder_class(gateway)
            types = gateway.new_array(gateway.jvm.java.lang.Class, 2)
            types[0] = gateway.jvm.java.lang.Long.TYPE
            types[1] = gateway.jvm.java.lang.Class.forName("java.lang.Object")
            arguments = gateway.new_array(gateway.jvm.java.lang.Object, 2)
            arguments[0] = gateway.jvm.java.lang.Long.valueOf(buffer_bytes)
            arguments[1] = spark._jsparkSession
            self.listener = recorder_class.getDeclaredConstructor(types).newInstance(arguments)
            self._context.listenerBus().addToQueue(self.listener, QUEUE)
            self.listener.recordPresent(self._context)
        except Exception as error:
            raise HookError(f"this Spark's JVM does not take the recorder: {error}") from error

    def drain(self) -> bytes:
        """Return all records since the last drain, see `records.decode`."""
        return zlib.decompress(self.listener.drain())

    def catch_up(self) -> None:
        """
        Wait until the bus has delivered what Spark has posted, CATCH_UP_MS at most.

        It delivers on threads of its own: a query that has ended may not have been told yet.
        """
        # Where a listener of somebody else's is slower than that, or the JVM is gone, there is nothing to wait for.
        with contextlib.suppress(Exception):
            self._context.listenerBus().waitUntilEmpty(CATCH_UP_MS)

    def running(self) -> set[str]:
        """Return the run ids of the streaming queries that are active, of whatever session."""
        # One that ends meanwhile is looked up in vain.
        queries = self._shared.activeStreamingQueries().values()
        return {str(query.runId()) for query in queries if query is not None and query.isActive()}

    def driver_metrics(self) -> bytes:
        """Return the driver's Status.* figures, a MessagePack map."""
        return bytes(self.listener.driverMetrics())

    def remove(self) -> None:
        """Take the recorder off the bus."""
        self._context.listenerBus().removeListener(self.listener)


# Py4J keeps methods by the name of their class, so there must be one class of a name in a JVM.
_recorder_classes: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _recorder_class(gateway: Any) -> Any:
    if gateway not in _recorder_classes:
        source = resources.files("spark_hooks").joinpath("Recorder.java").read_text(encoding="utf-8")
        _recorder_classes[gateway] = compiled(gateway, "Recorder", source)
    return _recorder_classes[gateway]


def compiled(gateway: Any, name: str, source: str) -> Any:
    """Return the Java class `name` of `source`, compiled against the Spark that runs."""
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)
