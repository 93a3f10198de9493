"""The dashboard on which one sees whether all is well, and if not, which job, since when and how bad."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.grafana.frame import Panel, address, application, board, job, section
from dashboards.grafana.look import ANY, BACKLOGGED, BAD, BUSY, LAG_LIMITS, ONCE, STATE_NAMES, STATE_NUMBERS, WARNING
from dashboards.grafana.panels import COUNT, PER_SECOND, SECONDS, SHARE, Ask, Told, figure, series, timeline
from dashboards.grafana.promql import BY_JOB, JOBS, QUERIES, greatest, increase, rate, state_number
from dashboards.grafana.tables import Column, table

NAMED = "{{job_name}}"


def build() -> Dashboard:
    """Return the dashboard *Overview*."""
    onto = board(
        "overview",
        "Overview",
        "Is every job well? Which cannot keep up, since when, and which vertex holds it up?",
    )
    onto.with_variable(application()).with_variable(job(several=True))
    section(onto, "Now", [*_figures(), _jobs()], row=100)
    section(onto, "Since when", _timelines(), row=200)
    section(onto, "Work", _work(), row=300)
    section(onto, "Failures", _failures(), row=400)
    return onto


def _figures() -> Iterator[Panel]:
    yield figure(
        Told(
            1,
            "Running",
            "Jobs in state RUNNING. A job is a streaming query; it runs from its first micro-batch on.",
            COUNT,
        ),
        Ask(f'sum(streamgauge_job_state{{{JOBS}, {QUERIES}, state="RUNNING"}})'),
    )
    yield figure(
        Told(
            2,
            "In trouble",
            "Jobs that have FAILED in the last 15 minutes, are SUSPENDED (their driver is silent) or RESTARTING. The "
            "table and the time line below name them; the job's exceptions are on the service's page and at "
            "/jobs/:jobid/exceptions.",
            COUNT,
        ),
        Ask(f'sum(streamgauge_job_state{{{JOBS}, {QUERIES}, state=~"FAILED|SUSPENDED|RESTARTING"}})'),
        limits={1: BAD},
    )
    yield figure(
        Told(
            3,
            "Backlogged",
            "Jobs that cannot keep up: more arrives than their batches take, or batches run past their trigger "
            "interval. The table names the vertex that holds each up.",
            COUNT,
        ),
        Ask(f"sum(streamgauge_job_backlogged{{{JOBS}}})"),
        limits=ONCE,
    )
    yield figure(
        Told(
            4,
            "Longest backlog",
            "Time that the job which is furthest behind would take to work its backlog off at its present pace. "
            "Sources that do not tell how much waits in them have none.",
            SECONDS,
        ),
        Ask(f"max(streamgauge_job_backlog_time_seconds{{{JOBS}}})"),
        limits=LAG_LIMITS,
    )
    yield figure(
        Told(
            5,
            "Greatest watermark lag",
            "By how much the operator furthest behind in event time is behind its driver's clock. The watermark's own "
            "delay is in it, and replayed data is as far behind as it is old.",
            SECONDS,
        ),
        Ask(f"max(streamgauge_operator_watermark_lag_seconds{{{JOBS}}})"),
        limits=LAG_LIMITS,
    )
    yield figure(
        Told(
            6,
            "Late rows dropped",
            "Rows a second that stateful operators dropped because they came behind the watermark. They are lost to "
            "the result: give withWatermark() a longer delay, or find the slow partition on Event time and state.",
            PER_SECOND,
        ),
        Ask(f"sum(rate(streamgauge_operator_late_records_dropped_total{{{JOBS}}}[$__rate_interval]))"),
        limits=ANY,
    )


def _jobs() -> Panel:
    return table(
        Told(
            10,
            "Jobs",
            "Every job, those that cannot keep up first. Bottleneck is the vertex of a backlogged job with the "
            "greatest busy share; busy is that of the job's busiest vertex. A dash is what Spark does not tell. A "
            "click on a name opens the job.",
            COUNT,
        ),
        {"job_id": "", "job_name": "Job"},
        [
            Column(
                "State",
                f"max by ({BY_JOB}, state) (streamgauge_job_state{{{JOBS}, {QUERIES}}} == 1)",
                label="state",
                known=STATE_NAMES,
            ),
            Column("Keeps up", greatest("streamgauge_job_backlogged", JOBS, BY_JOB), known=BACKLOGGED),
            Column(
                "Bottleneck",
                greatest("streamgauge_vertex_bottleneck", JOBS, f"{BY_JOB}, vertex_name"),
                label="vertex_name",
            ),
            Column("Busy", greatest("streamgauge_vertex_busy_ratio", JOBS, BY_JOB), unit=SHARE, bar=BUSY),
            Column("Rows in", rate("streamgauge_job_input_rows_total", JOBS, BY_JOB), unit=PER_SECOND),
            Column(
                "Backlog",
                greatest("streamgauge_job_backlog_time_seconds", JOBS, BY_JOB),
                unit=SECONDS,
                limits=LAG_LIMITS,
            ),
            Column("Rows waiting", greatest("streamgauge_job_backlog_rows", JOBS, BY_JOB)),
            Column(
                "Watermark lag",
                greatest("streamgauge_operator_watermark_lag_seconds", JOBS, BY_JOB),
                unit=SECONDS,
                limits=LAG_LIMITS,
            ),
            Column("Last batch", greatest("streamgauge_job_last_checkpoint_duration_seconds", JOBS, BY_JOB), unit="s"),
            Column("Restarts", greatest("streamgauge_job_restarts_total", JOBS, BY_JOB)),
        ],
        height=10,
        order=["Keeps up", "Backlog", "Watermark lag"],
        links={"Job": address("job", "var-job=${__value.text:percentencode}")},
        wide=200,
    )


def _timelines() -> Iterator[Panel]:
    yield timeline(
        Told(
            20,
            "State",
            "The state of each job over time, in Flink's words. SUSPENDED: its driver is silent, and nothing else is "
            "known of it. An ended job is told for 15 minutes.",
            COUNT,
        ),
        [Ask(state_number(JOBS), NAMED)],
        STATE_NUMBERS,
        width=12,
    )
    yield timeline(
        Told(
            21,
            "Keeps up",
            "Since when a job cannot keep up, as of its latest batch. A batch that took long once is no backlog; one "
            "behind the other is.",
            COUNT,
        ),
        [Ask(greatest("streamgauge_job_backlogged", JOBS, BY_JOB), NAMED)],
        BACKLOGGED,
        width=12,
    )


def _work() -> Iterator[Panel]:
    yield series(
        Told(
            30,
            "Rows in",
            "Rows a second that each job reads, as Spark's progress tells them, so a batch's all at its end. Nothing "
            "for longer than its source should be silent: look at the source, and at the job's batches.",
            PER_SECOND,
        ),
        [Ask(rate("streamgauge_job_input_rows_total", JOBS, BY_JOB), NAMED)],
    )
    yield series(
        Told(
            31,
            "Watermark lag",
            "By how much each job's operator furthest behind in event time is behind. It saws with the micro-batches; "
            "a line that climbs means that event time stands still: no rows, or a backlog.",
            SECONDS,
        ),
        [Ask(greatest("streamgauge_operator_watermark_lag_seconds", JOBS, BY_JOB), NAMED)],
        limits=LAG_LIMITS,
    )
    yield series(
        Told(
            32,
            "Backlog",
            "Time that it would take to work off what waits in each job's sources. It rises during a batch and falls "
            "after it; a backlog that grows from batch to batch wants more slots, or less work in the bottleneck.",
            SECONDS,
        ),
        [Ask(greatest("streamgauge_job_backlog_time_seconds", JOBS, BY_JOB), NAMED)],
        limits=LAG_LIMITS,
    )
    yield series(
        Told(
            33,
            "Growth of the backlog",
            "Seconds by which the time to work the backlog off grows in a second, over the batches of the last minute. "
            "Above 0 the job falls behind, below 0 it catches up.",
            SHARE,
        ),
        [Ask(greatest("streamgauge_job_backlog_time_growth_ratio", JOBS, BY_JOB), NAMED)],
        limits={0.05: WARNING},
        least=None,
    )


def _failures() -> Iterator[Panel]:
    yield series(
        Told(
            40,
            "Restarts",
            "Runs of the query after the first that was seen. A job that restarts again and again reads the same "
            "batch again and again: look at its exceptions.",
            COUNT,
        ),
        [Ask(increase("streamgauge_job_restarts_total", JOBS, BY_JOB), NAMED)],
        limits=ONCE,
    )
    yield series(
        Told(
            41,
            "Batches broken off",
            "Micro-batches (Flink's checkpoints) that a failure or a stop has broken off; their work is done again "
            "by the next run.",
            COUNT,
        ),
        [Ask(increase("streamgauge_job_failed_checkpoints_total", JOBS, BY_JOB), NAMED)],
        limits=ONCE,
    )
