"""
Flink-grade metrics for every Spark Structured Streaming query.

Two lines in the driver:

    import streamgauge
    streamgauge.attach(spark)
"""

from __future__ import annotations

from typing import Any

from streamgauge.version import __version__

__all__ = ["__version__", "attach", "detach"]


def attach(spark: Any, url: str | None = None, token: str | None = None, interval_ms: int | None = None) -> bool:
    """
    Record every query of this driver and push its figures to a collector, until `detach` or the driver's end.

    Nothing that goes wrong afterwards reaches the job: it is counted, and told in one warning line.

    Args:
        spark: The classic SparkSession, in its driver.
        url: The collector; http://127.0.0.1:8081 by default.
        token: Its push token, where it asks for one.
        interval_ms: Between two pushes, 100 to 60000; 1000 by default.

    STREAMGAUGE_* and spark.streamgauge.* beat the arguments: `spark_hooks.settings.Settings` lists them.

    Returns:
        Whether the hooks are attached. Attaching again with the same settings changes nothing; with
        others the hooks are attached anew.

    Raises:
        SettingError: a setting cannot be used; the message names it and the remedy.

    Any thread.
    """
    from spark_hooks import agent

    return agent.attach(spark, url=url, token=token, interval_ms=interval_ms)


def detach() -> None:
    """
    Push the last figures and take everything of ours out of the driver: listener, threads, sockets.

    Waits a few seconds at most. Any thread; without a prior `attach` it does nothing.
    """
    from spark_hooks import agent

    agent.detach()
