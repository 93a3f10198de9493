"""The recording rules: what alerts and dashboards ask for again and again."""

from __future__ import annotations

from dashboards.prometheus.rule import Recording
from dashboards.prometheus.settings import Duration, Settings

UTILIZATION = "job_id:streamgauge_vertex_busy_or_back_pressured_ratio:max"
BACKLOG_TREND = "job_id:streamgauge_job_backlog_rows:deriv"
WATERMARK_LAG = "job_id:streamgauge_operator_watermark_lag_seconds:max"
LATE_RATIO = "operator_name:streamgauge_operator_late_records_dropped:ratio_rate"
LATENCY = "vertex_id:streamgauge_latency_seconds:p99_rate"
BUSIEST = "vertex_id:streamgauge_vertex_busy_ratio:max_avg"
SKEW = "vertex_id:streamgauge_vertex_busy_ratio:max_over_mean"
BATCH_PERIOD = "job_id:streamgauge_job_batch_period_seconds:max"
BATCH_SINCE = "job_id:streamgauge_job_in_progress_checkpoints:seconds_since_zero"

LONGEST_LOOK = Duration.read("6h")
"""How far back BATCH_SINCE looks for a moment without a batch."""


def recordings(settings: Settings) -> list[Recording]:
    """
    Return the recording rules, none of which needs another.

    They hold at each granularity of /metrics: what is told by subtask is summed up. `without` keeps the labels that
    a scrape config adds.
    """
    window = settings.window
    late = f"sum without (subtask) (rate(streamgauge_operator_late_records_dropped_total[{window}]))"
    return [
        # Of a source vertex, the first in every batch, this is the share of time in which a batch runs.
        Recording(
            UTILIZATION,
            """
            clamp_max(
              max without (vertex_id, vertex_name, subtask) (
                streamgauge_vertex_busy_ratio + streamgauge_vertex_back_pressured_ratio
              ),
              1
            )
            """,
        ),
        Recording(BACKLOG_TREND, f"deriv(streamgauge_job_backlog_rows[{window}])"),
        Recording(
            WATERMARK_LAG,
            """
            max without (vertex_id, vertex_name, operator_name, subtask) (streamgauge_operator_watermark_lag_seconds)
            """,
        ),
        # Where nobody knows what an operator read, what the job read stands for it.
        Recording(
            LATE_RATIO,
            f"""
              {late}
            /
              sum without (subtask) (rate(streamgauge_operator_records_in_total[{window}]))
            or
              {late}
            / ignoring (vertex_id, vertex_name, operator_name) group_left ()
              rate(streamgauge_job_input_rows_total[{window}])
            """,
        ),
        # Operators of a vertex that see the same markers tell the same; of others the slowest stands for the vertex.
        Recording(
            LATENCY,
            f"""
            max without (source_id, source_name, operator_name) (
              histogram_quantile(0.99, rate(streamgauge_latency_seconds_bucket[{window}]))
            )
            """,
        ),
        Recording(BUSIEST, f"max without (subtask) (avg_over_time(streamgauge_vertex_busy_ratio[{window}]))"),
        # Each second makes a busy, idle or back-pressured second of each subtask: so the mean needs no number of them.
        Recording(
            SKEW,
            f"""
              max without (subtask) (avg_over_time(streamgauge_vertex_busy_ratio[{window}]))
            /
              (
                  sum without (subtask) (rate(streamgauge_vertex_busy_seconds_total[{window}]))
                /
                  sum without (subtask) (
                      rate(streamgauge_vertex_busy_seconds_total[{window}])
                    + rate(streamgauge_vertex_idle_seconds_total[{window}])
                    + rate(streamgauge_vertex_back_pressured_seconds_total[{window}])
                  )
              )
            """,
        ),
        # How often a batch should come, or, where batches take longer than that, how often they do.
        Recording(
            BATCH_PERIOD,
            """
              streamgauge_job_trigger_interval_seconds >= streamgauge_job_last_checkpoint_duration_seconds
            or
              streamgauge_job_last_checkpoint_duration_seconds
            or
              streamgauge_job_trigger_interval_seconds
            """,
        ),
        # Batches that follow close upon one another show no moment between them.
        Recording(
            BATCH_SINCE,
            f"""
              timestamp(streamgauge_job_in_progress_checkpoints)
            -
              max_over_time(timestamp(streamgauge_job_in_progress_checkpoints == 0)[{LONGEST_LOOK}:{settings.interval}])
            """,
        ),
    ]
