"""The dashboard of latencies: of markers from source to operator, and of the records that taps look at."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.grafana.frame import Panel, application, board, job, section, source, vertex
from dashboards.grafana.look import LAG_LIMITS, OPERATOR
from dashboards.grafana.panels import COUNT, PER_SECOND, SECONDS, Ask, Told, figure, heat_map, series
from dashboards.grafana.promql import BY_JOB, BY_OPERATOR, JOB, VERTICES, greatest, increase, mean, quantile, rate
from dashboards.grafana.tables import Column, table

WAYS = f'{VERTICES}, source_name=~"$source"'
BY_WAY = f"source_id, source_name, {BY_OPERATOR}"
WAY = "{{source_name}} → {{operator_name}} in {{vertex_name}}"
LATENCY, QUEUEING, PROCESSING = (f"streamgauge_latency_{part}seconds" for part in ("", "queueing_", "processing_"))
RECORD_LATENCY, RECORD_QUEUEING = "streamgauge_tap_record_latency_seconds", "streamgauge_tap_record_queueing_seconds"
_BUCKETS = " Estimated within buckets, each about twice the one before: 1 ms to 68 min."


def build() -> Dashboard:
    """Return the dashboard *Latency*."""
    onto = board(
        "latency",
        "Latency",
        "How long does a record take from its source to each operator, and does it wait or is it worked on?",
    )
    onto.with_variable(application()).with_variable(job()).with_variable(source()).with_variable(vertex())
    section(onto, "Over the time that is shown", [*_figures(), _ways()], row=100)
    section(onto, "From source to operator", _over_time(), row=200)
    section(onto, "Waiting or working", _parts(), row=300)
    section(onto, "Records at taps", _records(), row=400)
    section(onto, "Latency markers themselves", _markers(), row=500, collapsed=True)
    return onto


def _figures() -> Iterator[Panel]:
    for number, rank in enumerate((0.5, 0.95, 0.99), 1):
        yield figure(
            Told(
                number,
                f"p{rank * 100:.0f}",
                f"Latency that {rank:.0%} of the markers did not exceed, of all chosen sources and vertices together, "
                f"over the time that is shown.{_BUCKETS}",
                SECONDS,
            ),
            Ask(quantile(rank, LATENCY, WAYS, "", "$__range")),
            limits=LAG_LIMITS,
        )
    yield figure(
        Told(
            4,
            "p95 waiting",
            "Of the latency, the time until the micro-batch began that carried the marker. It is the larger part where "
            "batches are long or the job is backlogged: a shorter trigger interval or smaller batches help.",
            SECONDS,
        ),
        Ask(quantile(0.95, QUEUEING, WAYS, "", "$__range")),
        limits=LAG_LIMITS,
    )
    yield figure(
        Told(
            5,
            "p95 worked on",
            "Of the latency, the time from when that micro-batch began. It is the larger part where a batch's own work "
            "is slow: see Vertex and operators.",
            SECONDS,
        ),
        Ask(quantile(0.95, PROCESSING, WAYS, "", "$__range")),
        limits=LAG_LIMITS,
    )
    yield figure(
        Told(
            6,
            "Markers",
            "Latency markers that reached a sink in the time that is shown: what the figures beside stand on.",
            COUNT,
        ),
        Ask(f"sum(increase(streamgauge_job_latency_markers_recorded_total{{{JOB}}}[$__range]))"),
    )


def _ways() -> Panel:
    return table(
        Told(
            10,
            "Source to operator",
            "Each source's markers at each operator over the time that is shown, the slowest first. Where it jumps "
            f"from one operator to the next, the time is lost between them.{_BUCKETS}",
            SECONDS,
        ),
        {
            "source_id": "",
            "vertex_id": "",
            "source_name": "Source",
            "operator_name": "Operator",
            "vertex_name": "Vertex",
        },
        [
            *(
                Column(
                    f"p{rank * 100:.0f}", quantile(rank, LATENCY, WAYS, BY_WAY, "$__range"), unit="s", limits=LAG_LIMITS
                )
                for rank in (0.5, 0.95, 0.99)
            ),
            Column("p95 waiting", quantile(0.95, QUEUEING, WAYS, BY_WAY, "$__range"), unit="s"),
            Column("p95 worked on", quantile(0.95, PROCESSING, WAYS, BY_WAY, "$__range"), unit="s"),
            Column("Markers", f"sum by ({BY_WAY}) (increase({LATENCY}_count{{{WAYS}}}[$__range]))"),
        ],
        order=["p95"],
        wide=220,
    )


def _over_time() -> Iterator[Panel]:
    for number, rank in ((20, 0.5), (21, 0.95), (22, 0.99)):
        yield series(
            Told(
                number,
                f"p{rank * 100:.0f}",
                f"Latency that {rank:.0%} of the markers did not exceed, from each source to each operator. A gap is a "
                f"time in which no marker arrived: no batch ended.{_BUCKETS}",
                SECONDS,
            ),
            [Ask(quantile(rank, LATENCY, WAYS, BY_WAY), WAY)],
            width=8,
            limits=LAG_LIMITS,
        )
    yield heat_map(
        Told(
            23,
            "All latencies",
            "How many markers took how long, from all chosen sources to all chosen vertices. Two bands are two paths, "
            "or two kinds of batches; a band that climbs is a backlog.",
            SECONDS,
        ),
        f"sum by (le) (increase({LATENCY}_bucket{{{WAYS}}}[$__rate_interval]))",
    )


def _parts() -> Iterator[Panel]:
    yield series(
        Told(
            30,
            "Mean latency, waiting and worked on",
            "The mean of all markers, cut in two: until the micro-batch began that carried them, and from then on. A "
            "micro-batch cannot do better than wait half its interval.",
            SECONDS,
        ),
        [
            Ask(mean(QUEUEING, WAYS, "job_name"), "waiting", "orange"),
            Ask(mean(PROCESSING, WAYS, "job_name"), "worked on", "blue"),
        ],
        width=8,
        stacked=True,
    )
    for number, title, family in ((31, "p95 waiting", QUEUEING), (32, "p95 worked on", PROCESSING)):
        yield series(
            Told(
                number,
                title,
                f"What 95% of the markers did not exceed, from each source to each operator.{_BUCKETS}",
                SECONDS,
            ),
            [Ask(quantile(0.95, family, WAYS, BY_WAY), WAY)],
            width=8,
            limits=LAG_LIMITS,
        )


def _records() -> Iterator[Panel]:
    yield series(
        Told(
            40,
            "p95 of records",
            "From when a record was made to the end of its micro-batch, at each tap that knows the ingest time: every "
            "record, not a marker in its place. Waiting is the time until its batch was triggered.",
            SECONDS,
        ),
        [
            Ask(quantile(0.95, RECORD_LATENCY, VERTICES, BY_OPERATOR), f"{OPERATOR}: in all"),
            Ask(quantile(0.95, RECORD_QUEUEING, VERTICES, BY_OPERATOR), f"{OPERATOR}: waiting"),
        ],
        limits=LAG_LIMITS,
    )
    yield heat_map(
        Told(
            41,
            "All records",
            "How many records took how long until the end of their micro-batch, at all taps of the chosen vertices.",
            SECONDS,
        ),
        f"sum by (le) (increase({RECORD_LATENCY}_bucket{{{VERTICES}}}[$__rate_interval]))",
        width=12,
        height=8,
    )


def _markers() -> Iterator[Panel]:
    yield series(
        Told(
            50,
            "Emitted and recorded",
            "Markers that came due at source subtasks, and that reached a sink. They differ by those that were dropped "
            "and those that are on their way.",
            PER_SECOND,
        ),
        [
            Ask(rate("streamgauge_job_latency_markers_emitted_total", JOB, BY_JOB), "emitted"),
            Ask(rate("streamgauge_job_latency_markers_recorded_total", JOB, BY_JOB), "recorded"),
        ],
        width=8,
    )
    yield series(
        Told(
            51,
            "Dropped",
            "Markers that were dropped, by the reason. idle: no batch began, so no record waited. ended: the run, or "
            "the batch, ended first. lost: the batch ran nothing that hands them on. crowded: too many wait already, "
            "so latency is told from the others.",
            COUNT,
        ),
        [Ask(increase("streamgauge_job_latency_markers_dropped_total", JOB, "reason"), "{{reason}}")],
        width=8,
    )
    yield series(
        Told(
            52,
            "On their way",
            "Markers whose fate is not known yet. It rises while a batch runs, or while none begins.",
            COUNT,
        ),
        [Ask(greatest("streamgauge_job_latency_markers_in_flight", JOB, BY_JOB), "in flight")],
        width=8,
    )
