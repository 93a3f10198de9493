"""The micro-batches of a job, Flink's checkpoints: panels of the dashboard *Job*."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.grafana.frame import Panel
from dashboards.grafana.look import BUSY_LIMITS, ONCE, VERTEX, WARNING
from dashboards.grafana.panels import BYTES, COUNT, PER_SECOND, SECONDS, SHARE, Ask, Told, series
from dashboards.grafana.promql import BY_JOB, BY_VERTEX, JOB, VERTICES, greatest, increase, rate


def batches() -> Iterator[Panel]:
    """Yield what a job's micro-batches take and do."""
    yield series(
        Told(
            60,
            "Duration against the trigger interval",
            "How long the latest micro-batch took, and the interval that the query asks for (none where it triggers "
            "as soon as it can). Batches that take longer than the interval are late for the next one.",
            SECONDS,
        ),
        [
            Ask(greatest("streamgauge_job_last_checkpoint_duration_seconds", JOB, BY_JOB), "latest batch"),
            Ask(greatest("streamgauge_job_trigger_interval_seconds", JOB, BY_JOB), "trigger interval", WARNING),
        ],
        width=8,
    )
    yield series(
        Told(
            61,
            "Share of the trigger interval",
            "Duration of the latest micro-batch over the trigger interval. Above 95 % there is no room left for more "
            "input; absent for a query without an interval.",
            SHARE,
        ),
        [
            Ask(
                f"{greatest('streamgauge_job_last_checkpoint_duration_seconds', JOB, BY_JOB)}\n"
                f"/ {greatest('streamgauge_job_trigger_interval_seconds', JOB, BY_JOB)}",
                "latest batch",
            )
        ],
        width=8,
        limits=BUSY_LIMITS,
    )
    yield series(
        Told(
            62,
            "Rows of the latest batch",
            "Rows that the latest micro-batch read. It rises with the backlog, up to what maxOffsetsPerTrigger or "
            "maxFilesPerTrigger allow.",
            COUNT,
        ),
        [Ask(greatest("streamgauge_job_last_checkpoint_processed_rows", JOB, BY_JOB), "rows")],
        width=8,
    )
    yield series(
        Told(
            63,
            "Batches completed",
            "Micro-batches a second that the job completes. 0 for longer than its source should be silent: it is "
            "stalled, or a batch takes that long.",
            PER_SECOND,
        ),
        [Ask(rate("streamgauge_job_completed_checkpoints_total", JOB, BY_JOB), "batches")],
        width=8,
    )
    yield series(
        Told(
            64,
            "Start delay",
            "How long each vertex' stage waited for its turn in the latest batch that ran it: for planning and "
            "offsets at first, then for the stages before it.",
            SECONDS,
        ),
        [Ask(greatest("streamgauge_vertex_checkpoint_start_delay_seconds", VERTICES, BY_VERTEX), VERTEX)],
        width=8,
    )
    yield series(
        Told(
            65,
            "State",
            "Memory of the query's state operators after the latest batch: all of its state, not what the batch wrote.",
            BYTES,
        ),
        [Ask(greatest("streamgauge_job_last_checkpoint_size_bytes", JOB, BY_JOB), "state")],
        width=8,
    )


def failures() -> Iterator[Panel]:
    """Yield what was broken off and begun anew."""
    yield series(
        Told(
            70,
            "Restarts",
            "Runs of the query after the first that was seen. Restarts that follow each other read the same batch "
            "again: look at the exceptions.",
            COUNT,
        ),
        [Ask(increase("streamgauge_job_restarts_total", JOB, BY_JOB), "restarts")],
        limits=ONCE,
    )
    yield series(
        Told(
            71,
            "Batches broken off",
            "Micro-batches that a failure or a stop has broken off; the next run does their work again.",
            COUNT,
        ),
        [Ask(increase("streamgauge_job_failed_checkpoints_total", JOB, BY_JOB), "broken off")],
        limits=ONCE,
    )
    yield series(
        Told(
            72,
            "Time without running",
            "Time since the job began to restart, or fell silent; 0 while it runs.",
            SECONDS,
        ),
        [Ask(greatest("streamgauge_job_downtime_seconds", JOB, BY_JOB), "downtime")],
        limits={60: WARNING},
    )
    yield series(
        Told(
            73,
            "Rows in and out",
            "Rows a second that the query read and wrote, as its progress tells them; a sink such as foreachBatch "
            "does not tell what it wrote.",
            PER_SECOND,
        ),
        [
            Ask(rate("streamgauge_job_input_rows_total", JOB, BY_JOB), "in"),
            Ask(rate("streamgauge_job_output_rows_total", JOB, BY_JOB), "out"),
        ],
    )
