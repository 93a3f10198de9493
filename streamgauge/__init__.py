"""
Flink-grade metrics for every Spark Structured Streaming query.

Two lines in the driver:

    import streamgauge
    streamgauge.attach(spark)
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from streamgauge.version import __version__

if TYPE_CHECKING:
    from spark_hooks.timer_service import TimerService

__all__ = ["SOURCE_SPLIT", "SourceSplit", "TimerService", "__version__", "attach", "detach", "tap"]


class SourceSplit(Enum):
    """What tells a tap's splits apart where no column does: see SOURCE_SPLIT."""

    SOURCE_SPLIT = "SOURCE_SPLIT"

    def __repr__(self) -> str:
        return self.value


SOURCE_SPLIT: Final = SourceSplit.SOURCE_SPLIT
"""For `tap(partition=…)`: a split is what one task of the source reads; they are numbered from 0."""


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


def tap(
    df: Any,
    name: str,
    *,
    event_time: Any = None,
    ingest_time: Any = None,
    partition: Any = None,
    splits: int | Sequence[int] | Sequence[str] | None = None,
    max_out_of_orderness: str | timedelta | None = None,
    idleness: str | timedelta | None = None,
) -> Any:
    """
    Measure a stream's records themselves as they come by: event times, the watermark of each split, delays.

    Spark's own aggregates do it, in one `observe()`: no Python runs in the data path, and the result has the rows
    and the columns of `df`. Where the hooks are not attached, or from another process, the figures are in the
    query's progress, as `observedMetrics["streamgauge.tap.<name>"]`.

    Args:
        df: A streaming DataFrame.
        name: Of the tap, unique in its query: 1 to 64 of A-Z, a-z, 0-9, '_' and '-'.
        event_time: When a record's event was: a timestamp column, by name or as a Column. Records without one count
            as records, and as nothing else.
        ingest_time: When a record came into the source, a timestamp column, as Kafka's `timestamp`. Its delay is the
            time from there to the trigger of the batch that reads it.
        partition: Which split of the source a record is of: a column of integers or strings, as Kafka's `partition`,
            or SOURCE_SPLIT for what one task of the source reads. Needs event_time.
        splits: Which splits to watch, 64 at most: their values, or a number n for 0 … n − 1; 8 where nothing is said.
            A string column needs the values. Records of others are counted, all together.
        max_out_of_orderness: How far a split's watermark is behind its latest event time: '10 seconds', or a
            timedelta; none where nothing is said. Needs event_time.
        idleness: A split without records for that long is idle and holds nobody up; never where nothing is said. Needs
            event_time.

    Returns:
        The tapped DataFrame, to be used in place of `df`.

    Raises:
        TapError: the DataFrame is a batch's, a column or another argument cannot be used; the message names it and
            the rule.

    Any thread that may use `df`.
    """
    from spark_hooks import tap as taps

    return taps.tap(
        df,
        name,
        event_time=event_time,
        ingest_time=ingest_time,
        partition=partition,
        splits=splits,
        max_out_of_orderness=max_out_of_orderness,
        idleness=idleness,
    )


def __getattr__(name: str) -> Any:
    # A class, which no function of ours can stand for, and which only those need to load who use it.
    if name == "TimerService":
        from spark_hooks.timer_service import TimerService

        return TimerService
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
