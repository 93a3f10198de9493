"""The dashboard of event time and of what waits for it: watermarks, splits, late rows, timers, state."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.grafana.frame import Panel, application, board, job, section, vertex
from dashboards.grafana.look import ANY, IDLE_SPLIT, LAG_LIMITS, ONCE, OPERATOR, VERTEX
from dashboards.grafana.panels import BYTES, COUNT, PER_SECOND, SECONDS, Ask, Told, figure, heat_map, series, timeline
from dashboards.grafana.promql import BY_OPERATOR, BY_VERTEX, VERTICES, date, greatest, least, quantile, rate, total
from dashboards.grafana.tables import Column, table

SPLIT = "{{tap}}: {{split}}"
BY_SPLIT = "tap, split"
LATENESS = "streamgauge_operator_timer_lateness_seconds"


def build() -> Dashboard:
    """Return the dashboard *Event time and state*."""
    onto = board(
        "event-time",
        "Event time and state",
        "How far is event time, which split holds it back or comes too late, and what does the state cost?",
    )
    onto.with_variable(application()).with_variable(job()).with_variable(vertex())
    section(onto, "Now", _figures(), row=100)
    section(onto, "Watermarks", _watermarks(), row=200)
    section(onto, "Splits (taps)", _splits(), row=300)
    section(onto, "Late rows", _late(), row=400)
    section(onto, "State", _state(), row=500)
    section(onto, "Timers", _timers(), row=600, collapsed=True)
    return onto


def _figures() -> Iterator[Panel]:
    yield figure(
        Told(
            1,
            "Greatest watermark lag",
            "By how much the operator furthest behind in event time is behind the driver's clock. The delay of "
            "withWatermark() is in it.",
            SECONDS,
        ),
        Ask(f"max(streamgauge_operator_watermark_lag_seconds{{{VERTICES}}})"),
        limits=LAG_LIMITS,
    )
    yield figure(
        Told(
            2,
            "Late rows dropped",
            "Rows a second that came behind the watermark and are lost to the result. Of an aggregation these are "
            "partial sums, so one may stand for several records.",
            PER_SECOND,
        ),
        Ask(f"sum(rate(streamgauge_operator_late_records_dropped_total{{{VERTICES}}}[$__rate_interval]))"),
        limits=ANY,
    )
    yield figure(
        Told(
            3,
            "Records at risk",
            "Records a second of tapped splits that came behind Spark's watermark: a stateful operator behind the tap "
            "drops them.",
            PER_SECOND,
        ),
        Ask(f"sum(rate(streamgauge_split_records_at_risk_total{{{VERTICES}}}[$__rate_interval]))"),
        limits=ANY,
    )
    yield figure(
        Told(4, "Idle splits", "Splits of taps without a record for longer than the tap's idleness allows.", COUNT),
        Ask(f"sum(streamgauge_split_idle{{{VERTICES}}})"),
        limits=ONCE,
    )
    yield figure(
        Told(
            5,
            "State rows",
            "Rows in the state stores of the chosen vertices. Growth without end: a key that is never given up, for "
            "want of a watermark or of a time-out.",
            COUNT,
        ),
        Ask(f"sum(streamgauge_operator_state_rows{{{VERTICES}}})"),
    )
    yield figure(
        Told(
            6,
            "State memory",
            "Memory that the state stores of the chosen vertices take by their own word. It is the executors' heap "
            "with the HDFS-backed store, and native memory with RocksDB.",
            BYTES,
        ),
        Ask(f"sum(streamgauge_operator_state_memory_bytes{{{VERTICES}}})"),
    )


def _watermarks() -> Iterator[Panel]:
    lag = greatest("streamgauge_operator_watermark_lag_seconds", VERTICES, BY_OPERATOR)
    yield series(
        Told(
            10,
            "Watermark lag",
            "By how much each source's query, or each stateful operator, is behind the driver's clock. A line that "
            "climbs by a second a second is a watermark that stands still: no rows came, or a batch takes long.",
            SECONDS,
        ),
        [Ask(lag, OPERATOR)],
        limits=LAG_LIMITS,
    )
    yield series(
        Told(
            11,
            "Spark's watermark and the slowest split's",
            "By how much each vertex' input watermark is behind the clock, and by how much it would be if it followed "
            "the slowest split, as Flink's does. Spark's follows the fastest row, so the gap is what slow splits may "
            "lose. The second is told behind a tap only.",
            SECONDS,
        ),
        [
            Ask(
                "time() - "
                + least("streamgauge_vertex_current_input_watermark_timestamp_seconds", VERTICES, BY_VERTEX),
                f"{VERTEX}: Spark's",
            ),
            Ask(
                "time() - "
                + least("streamgauge_vertex_current_split_watermark_timestamp_seconds", VERTICES, BY_VERTEX),
                f"{VERTEX}: slowest split's",
            ),
        ],
    )
    yield table(
        Told(
            12,
            "Watermarks",
            "The event time up to which each operator takes its input to be whole (currentInputWatermark) and hands "
            "on that it is (currentOutputWatermark). A dash is none: before the first, at the end of input, or where "
            "Spark lets none through.",
            COUNT,
        ),
        {"vertex_id": "", "operator_name": "Operator", "vertex_name": "Vertex"},
        [
            Column(
                "Input",
                date("streamgauge_operator_current_input_watermark_timestamp_seconds", VERTICES, BY_OPERATOR),
                unit="dateTimeAsIso",
            ),
            Column(
                "Output",
                date("streamgauge_operator_current_output_watermark_timestamp_seconds", VERTICES, BY_OPERATOR),
                unit="dateTimeAsIso",
            ),
            Column("Lag", lag, unit=SECONDS, limits=LAG_LIMITS),
        ],
        width=12,
        height=8,
        order=["Lag"],
        wide=180,
    )
    yield series(
        Told(
            13,
            "From event time to batch",
            "From the latest event time in a batch to the batch's trigger (fetch) and to its end (emit). Fetch is how "
            "late the data comes; the gap between them is how long the batch takes.",
            SECONDS,
        ),
        [
            Ask(
                greatest("streamgauge_operator_current_fetch_event_time_lag_seconds", VERTICES, BY_OPERATOR),
                "{{operator_name}}: fetch",
            ),
            Ask(
                greatest("streamgauge_operator_current_emit_event_time_lag_seconds", VERTICES, BY_OPERATOR),
                "{{operator_name}}: emit",
            ),
        ],
        least=None,
    )


def _splits() -> Iterator[Panel]:
    yield table(
        Told(
            20,
            "Splits",
            "Each split (Flink's word; a partition, say) of each tap, the one furthest behind first. Drift is by how "
            "much it is behind the tap's foremost. At risk are records behind Spark's watermark: they are dropped "
            "downstream. A longer delay, or a faster writer to that partition, saves them.",
            COUNT,
        ),
        {"tap": "Tap", "split": "Split"},
        [
            Column(
                "Watermark",
                date("streamgauge_split_watermark_timestamp_seconds", VERTICES, BY_SPLIT),
                unit="dateTimeAsIso",
            ),
            Column(
                "Lag",
                greatest("streamgauge_split_watermark_lag_seconds", VERTICES, BY_SPLIT),
                unit=SECONDS,
                limits=LAG_LIMITS,
            ),
            Column("Drift", greatest("streamgauge_split_watermark_drift_seconds", VERTICES, BY_SPLIT), unit=SECONDS),
            Column("Records", rate("streamgauge_split_records_total", VERTICES, BY_SPLIT), unit=PER_SECOND),
            Column(
                "At risk",
                rate("streamgauge_split_records_at_risk_total", VERTICES, BY_SPLIT),
                unit=PER_SECOND,
                limits=ANY,
            ),
            Column("Idle", greatest("streamgauge_split_idle", VERTICES, BY_SPLIT), known=IDLE_SPLIT),
        ],
        order=["Drift"],
        wide=140,
    )
    yield series(
        Told(
            21,
            "Drift",
            "By how much each split's watermark is behind that of the tap's foremost split that is not idle. A split "
            "that drifts away has a slow writer, or more data than its share.",
            SECONDS,
        ),
        [Ask(greatest("streamgauge_split_watermark_drift_seconds", VERTICES, BY_SPLIT), SPLIT)],
        least=None,
    )
    yield timeline(
        Told(
            22,
            "Idle",
            "Since when a split counts as idle: no record for longer than the tap's idleness. Flink would let it hold "
            "nobody up; Spark's watermark never waited for it.",
            COUNT,
        ),
        [Ask(greatest("streamgauge_split_idle", VERTICES, BY_SPLIT), SPLIT)],
        IDLE_SPLIT,
        width=12,
        height=8,
    )


def _late() -> Iterator[Panel]:
    yield series(
        Told(
            30,
            "Late rows dropped",
            "Rows a second that each stateful operator dropped, for they came behind the watermark. They are lost: "
            "lengthen the delay of withWatermark(), or mend the split that is late.",
            PER_SECOND,
        ),
        [Ask(rate("streamgauge_operator_late_records_dropped_total", VERTICES, BY_OPERATOR), OPERATOR)],
        limits=ANY,
    )
    yield series(
        Told(
            31,
            "Records at risk by split",
            "Records a second of each split that came behind Spark's watermark. It names the partition whose records "
            "are dropped downstream.",
            PER_SECOND,
        ),
        [Ask(rate("streamgauge_split_records_at_risk_total", VERTICES, BY_SPLIT), SPLIT)],
        limits=ANY,
    )


def _state() -> Iterator[Panel]:
    yield series(
        Told(
            40,
            "Rows",
            "Rows in the state store of each stateful operator. It should level off; a saw is windows that are given "
            "up when the watermark passes them.",
            COUNT,
        ),
        [Ask(total("streamgauge_operator_state_rows", VERTICES, BY_OPERATOR), OPERATOR)],
    )
    yield series(
        Told(
            41,
            "Memory",
            "Memory that each state store takes by its own word. Where it nears the executors' memory: use the RocksDB "
            "store, keep less in state, or spread it over more partitions.",
            BYTES,
        ),
        [Ask(total("streamgauge_operator_state_memory_bytes", VERTICES, BY_OPERATOR), OPERATOR)],
    )
    yield series(
        Told(
            42,
            "Rows written and removed",
            "Rows a second that each stateful operator writes into its store and removes from it. Writes without "
            "removals are state that grows.",
            PER_SECOND,
        ),
        [
            Ask(rate("streamgauge_operator_state_rows_updated_total", VERTICES, BY_OPERATOR), f"{OPERATOR}: written"),
            Ask(rate("streamgauge_operator_state_rows_removed_total", VERTICES, BY_OPERATOR), f"{OPERATOR}: removed"),
        ],
    )
    yield series(
        Told(
            43,
            "Time to commit",
            "Seconds a second that tasks spend on committing their state store's changes, of all subtasks together; it "
            "is part of their busy time. Much of it: fewer shuffle partitions, the RocksDB store with its change log, "
            "or a faster checkpoint location.",
            SECONDS,
        ),
        [Ask(rate("streamgauge_operator_state_commit_seconds_total", VERTICES, BY_OPERATOR), OPERATOR)],
    )


def _timers() -> Iterator[Panel]:
    yield series(
        Told(
            50,
            "Waiting timers",
            "Timers that wait in the state store, those of earlier runs too. Growth without end: timers that are "
            "registered and neither fire nor are deleted.",
            COUNT,
        ),
        [Ask(total("streamgauge_operator_pending_timers", VERTICES, BY_OPERATOR), OPERATOR)],
    )
    yield series(
        Told(
            51,
            "Registered, deleted and fired",
            "Timers a second, of each operator. Fired is absent where neither Spark nor a TimerService tells.",
            PER_SECOND,
        ),
        [
            Ask(rate("streamgauge_operator_registered_timers_total", VERTICES, BY_OPERATOR), f"{OPERATOR}: registered"),
            Ask(rate("streamgauge_operator_deleted_timers_total", VERTICES, BY_OPERATOR), f"{OPERATOR}: deleted"),
            Ask(rate("streamgauge_operator_fired_timers_total", VERTICES, BY_OPERATOR), f"{OPERATOR}: fired"),
        ],
    )
    yield series(
        Told(
            52,
            "How late timers fire, p95",
            "From when a timer was due to when it fired, of 95% of them at most. A timer fires in a micro-batch, so "
            "half a trigger interval is as good as it gets.",
            SECONDS,
        ),
        [Ask(quantile(0.95, LATENESS, VERTICES, BY_OPERATOR), OPERATOR)],
        limits=LAG_LIMITS,
        width=8,
    )
    yield series(
        Told(
            53,
            "Time in timers",
            "Seconds a second in the callbacks of timers, of all subtasks together.",
            SECONDS,
        ),
        [Ask(rate("streamgauge_operator_timer_processing_seconds_total", VERTICES, BY_OPERATOR), OPERATOR)],
        width=8,
    )
    yield heat_map(
        Told(54, "How late timers fire", "How many timers fired how late, of the chosen vertices.", SECONDS),
        f"sum by (le) (increase({LATENESS}_bucket{{{VERTICES}}}[$__rate_interval]))",
        width=8,
        height=8,
    )
