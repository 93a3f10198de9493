"""
Flink-grade metrics for every Spark Structured Streaming query.

Two lines in the driver:

    import streamgauge
    streamgauge.attach(spark)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn

from streamgauge.version import __version__

if TYPE_CHECKING:
    from spark_hooks.timer_service import TimerService

__all__ = ["TimerService", "__version__", "attach", "detach"]


def attach(
    spark: Any,
    url: str | None = None,
    token: str | None = None,
    interval_ms: int | None = None,
    enabled: bool | None = None,
    latency_interval_ms: int | None = None,
    latency_granularity: Literal["single", "operator", "subtask"] | None = None,
    latency_history_size: int | None = None,
    **unknown: NoReturn,
) -> bool:
    """
    Record every query of this driver and push its figures to a collector, until `detach` or the driver's end.

    Nothing that goes wrong afterwards reaches the job: it is counted, and told in one warning line.

    | argument               | environment                      | default               |
    |------------------------|----------------------------------|-----------------------|
    | `url`                  | STREAMGAUGE_URL                  | http://127.0.0.1:8081 |
    | `token`                | STREAMGAUGE_TOKEN                | none                  |
    | `interval_ms`          | STREAMGAUGE_INTERVAL_MS          | 1000                  |
    | `enabled`              | STREAMGAUGE_ENABLED              | true                  |
    | `latency_interval_ms`  | STREAMGAUGE_LATENCY_INTERVAL_MS  | 2000                  |
    | `latency_granularity`  | STREAMGAUGE_LATENCY_GRANULARITY  | operator              |
    | `latency_history_size` | STREAMGAUGE_LATENCY_HISTORY_SIZE | 128                   |

    In Spark's configuration each is called spark.streamgauge.<argument>.
    The environment beats the configuration, which beats the argument.

    Args:
        spark: The classic SparkSession, in its driver.
        url: Where the collector listens: http://host:port or https://host:port.
        token: Its push token, where it asks for one.
        interval_ms: Between two pushes, 100 to 60000.
        enabled: False leaves the driver alone.
        latency_interval_ms: Between two latency markers of a source, 100 to 3600000; 0 emits none.
        latency_granularity: What latencies are told apart by, beside operator and subtask: nothing, the source, or
            the source's subtask too.
        latency_history_size: Latest values that latency statistics are made of, 1 to 10000.
        unknown: Nothing; there is no other setting.

    Returns:
        Whether the hooks are attached. Attaching again with the same settings changes nothing; with
        others the hooks are attached anew.

    Raises:
        SettingError: a setting is unknown or cannot be used; the message names it and the remedy.

    Any thread.
    """
    from spark_hooks import agent

    return agent.attach(
        spark,
        url=url,
        token=token,
        interval_ms=interval_ms,
        enabled=enabled,
        latency_interval_ms=latency_interval_ms,
        latency_granularity=latency_granularity,
        latency_history_size=latency_history_size,
        **unknown,
    )


def detach() -> None:
    """
    Push the last figures and take everything of ours out of the driver: listener, threads, sockets.

    Waits a few seconds at most. Any thread; without a prior `attach` it does nothing.
    """
    from spark_hooks import agent

    agent.detach()


def __getattr__(name: str) -> Any:
    # A class, which no function of ours can stand for, and which only those need to load who use it.
    if name == "TimerService":
        from spark_hooks.timer_service import TimerService

        return TimerService
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
