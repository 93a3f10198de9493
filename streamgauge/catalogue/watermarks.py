"""What is told of event time: watermarks of vertices and operators, and rows that came too late."""

from __future__ import annotations

from streamgauge import names
from streamgauge.catalogue.metric import Metric, metered

_PLANNED = "SQLExecutionStart, QueryProgressEvent"
_LEAST = (
    "the least of its upstream vertices' outputs, and of the eviction thresholds of the stateful operators that these "
    "reach first; of the micro-batch that ran last or runs"
)


def _of_vertex(name: str, text: str) -> Metric:
    return Metric(name, "gauge", "ms", "vertex", _PLANNED, text, _LEAST)


METRICS: tuple[Metric, ...] = (
    _of_vertex(
        names.CURRENT_INPUT_WATERMARK,
        "The watermark of what it reads, as Unix time; −2^63 before there is one; absent for a source vertex.",
    ),
    _of_vertex(names.CURRENT_LOW_WATERMARK, f"What Flink 1.2 called {names.CURRENT_INPUT_WATERMARK}."),
    Metric(
        names.CURRENT_INPUT_WATERMARK,
        "gauge",
        "ms",
        "operator",
        "SQLExecutionStart",
        "The watermark of a stateful operator, as Unix time: state that is older is given up; −2^63 before there is "
        "one; absent for all others.",
        "its eviction threshold in the plan of the micro-batch that ran last or runs",
    ),
    Metric(
        names.CURRENT_OUTPUT_WATERMARK,
        "gauge",
        "ms",
        "operator",
        _PLANNED,
        "The watermark of what a stateful operator, or withWatermark(), puts out; absent where Spark lets none "
        "through.",
        f"{names.CURRENT_INPUT_WATERMARK}; of a join the least of it and of what its sides are cleaned up to; of "
        "withWatermark() the query's",
    ),
    Metric(
        names.WATERMARK_LAG,
        "gauge",
        "ms",
        "operator",
        _PLANNED,
        "By how much a source's query, or a stateful operator, is behind the driver's clock; absent before there is a "
        "watermark.",
        f"now − eventTime.watermark of a source, now − {names.CURRENT_INPUT_WATERMARK} of a stateful operator; "
        "every 5 s",
    ),
    *metered(
        Metric(
            names.NUM_LATE_RECORDS_DROPPED,
            "counter",
            "records",
            "operator",
            "TaskEnd, ExecutorMetricsUpdate",
            "Rows that a stateful operator dropped because they were older than its late threshold; of an aggregation "
            "these are partial sums, so one may stand for several records.",
            "'number of rows which are dropped by watermark'",
        )
    ),
)
