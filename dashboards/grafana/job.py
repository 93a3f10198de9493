"""The dashboard of one job: how its vertices share the work, whether it keeps up, and what its batches cost."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.grafana.batches import batches, failures
from dashboards.grafana.frame import Panel, address, application, board, job, section, vertex
from dashboards.grafana.look import (
    BACK_PRESSURED,
    BACKLOGGED,
    BAD,
    BOTTLENECK,
    BUSY,
    GOOD,
    IDLE,
    LAG_LIMITS,
    ONCE,
    STATE_NUMBERS,
    VERTEX,
    WARNING,
)
from dashboards.grafana.panels import COUNT, PER_SECOND, SECONDS, SHARE, Ask, Told, figure, series, timeline
from dashboards.grafana.promql import (
    BY_JOB,
    BY_OPERATOR,
    BY_VERTEX,
    JOB,
    VERTICES,
    greatest,
    rate,
    share,
    state_number,
)
from dashboards.grafana.tables import Column, table


def build() -> Dashboard:
    """Return the dashboard *Job*."""
    onto = board(
        "job", "Job", "Which vertex holds this job up, since when, and how far behind is it? What do its batches cost?"
    )
    onto.with_variable(application()).with_variable(job()).with_variable(vertex())
    section(onto, "Now", [*_figures(), _vertices()], row=100)
    section(onto, "Since when", _timelines(), row=200)
    section(onto, "Throughput", _throughput(), row=300)
    section(onto, "Time of each vertex", _shares(), row=400)
    section(onto, "Backlog", _backlog(), row=500)
    section(onto, "Batches (Flink's checkpoints)", batches(), row=600)
    section(onto, "Restarts and failures", failures(), row=700, collapsed=True)
    return onto


def _figures() -> Iterator[Panel]:
    yield figure(
        Told(
            1,
            "State",
            "In Flink's words. SUSPENDED: the driver is silent. When the job is FAILED, its exception is on the "
            "service's page and at /jobs/:jobid/exceptions.",
            COUNT,
        ),
        Ask(state_number(JOB), "{{job_name}}"),
        width=3,
        known=STATE_NUMBERS,
    )
    yield figure(
        Told(
            2,
            "Running for",
            "Time since the job last came to run, that is, since the first micro-batch of this run.",
            SECONDS,
        ),
        Ask(greatest("streamgauge_job_uptime_seconds", JOB, "job_name")),
        width=3,
    )
    yield figure(
        Told(
            3,
            "Keeps up",
            "Whether more arrives than the batches take, or batches run past their trigger interval, as of the latest "
            "batch.",
            COUNT,
        ),
        Ask(greatest("streamgauge_job_backlogged", JOB, "job_name")),
        width=3,
        known=BACKLOGGED,
    )
    yield figure(
        Told(
            4,
            "Bottleneck",
            "The vertex with the greatest busy share while the job is backlogged; none while it keeps up. Begin there: "
            "its operators, its skew and its spill are on Vertex and operators.",
            COUNT,
        ),
        Ask(greatest("streamgauge_vertex_bottleneck", JOB, BY_VERTEX), VERTEX),
        width=6,
        limits=ONCE,
        by_name=True,
    )
    yield figure(
        Told(
            5,
            "Backlog",
            "Time that it would take to work off what waits in the sources, at the pace of the last minute.",
            SECONDS,
        ),
        Ask(greatest("streamgauge_job_backlog_time_seconds", JOB, "job_name")),
        width=3,
        limits=LAG_LIMITS,
    )
    yield figure(
        Told(
            6,
            "Can process over what arrives",
            "Rows that the job can process a second over rows that arrive a second. Below 1 it falls behind, and no "
            "waiting helps.",
            COUNT,
        ),
        Ask(greatest("streamgauge_job_processed_to_input_ratio", JOB, "job_name")),
        width=3,
        limits={1: WARNING, 1.2: GOOD},
        below=BAD,
    )
    yield figure(
        Told(
            7,
            "Watermark lag",
            "By how much the operator furthest behind in event time is behind the driver's clock.",
            SECONDS,
        ),
        Ask(greatest("streamgauge_operator_watermark_lag_seconds", JOB, "job_name")),
        width=3,
        limits=LAG_LIMITS,
    )


def _vertices() -> Panel:
    return table(
        Told(
            10,
            "Vertices",
            "The parts of the physical plan between exchanges, the busiest first. Busy, back-pressured and idle are "
            "each that of the subtask where it is greatest, as on Flink's page, so they need not make 100 %. "
            "Back-pressured means: held up by what lies downstream while the job is backlogged.",
            COUNT,
        ),
        {"vertex_id": "", "vertex_name": "Vertex"},
        [
            Column("Busy", greatest("streamgauge_vertex_busy_ratio", VERTICES, BY_VERTEX), unit=SHARE, bar=BUSY),
            Column(
                "Back-pressured",
                greatest("streamgauge_vertex_back_pressured_ratio", VERTICES, BY_VERTEX),
                unit=SHARE,
                bar=BACK_PRESSURED,
            ),
            Column("Idle", greatest("streamgauge_vertex_idle_ratio", VERTICES, BY_VERTEX), unit=SHARE, bar=IDLE),
            Column(
                "Holds up",
                greatest("streamgauge_vertex_bottleneck", VERTICES, BY_VERTEX),
                known=BOTTLENECK,
            ),
            Column("Records in", rate("streamgauge_vertex_records_in_total", VERTICES, BY_VERTEX), unit=PER_SECOND),
            Column("Records out", rate("streamgauge_vertex_records_out_total", VERTICES, BY_VERTEX), unit=PER_SECOND),
            Column(
                "Waits for a slot",
                greatest("streamgauge_vertex_slot_wait_ratio", VERTICES, BY_VERTEX),
                unit=SHARE,
                limits={0.2: WARNING},
            ),
            Column(
                "Spilled",
                rate("streamgauge_vertex_bytes_spilled_total", VERTICES, BY_VERTEX),
                unit="binBps",
                limits=ONCE,
            ),
        ],
        order=["Holds up", "Busy"],
        links={"Vertex": address("vertex", "${job:queryparam}&var-vertex=${__value.text:percentencode}")},
    )


def _timelines() -> Iterator[Panel]:
    yield timeline(
        Told(
            20,
            "State and backlog",
            "Since when the job has been in its state, and since when it cannot keep up.",
            COUNT,
        ),
        [
            Ask(state_number(JOB), "state"),
            # Past the numbers of states, so that one set of texts does for both.
            Ask(f"{greatest('streamgauge_job_backlogged', JOB, 'job_name')} + 10", "keeps up"),
        ],
        {**STATE_NUMBERS, **{str(int(value) + 10): text for value, text in BACKLOGGED.items()}},
        height=5,
    )
    yield timeline(
        Told(
            21,
            "Bottleneck",
            "Which vertex held the job up, and since when; none while the job keeps up. A bottleneck that moves from "
            "vertex to vertex wants more slots; one that stays wants less work there, or less skew.",
            COUNT,
        ),
        [
            Ask(
                f"{greatest('streamgauge_vertex_bottleneck', VERTICES, BY_VERTEX)}\n"
                f"or 0 * {greatest('streamgauge_vertex_busy_ratio', VERTICES, BY_VERTEX)}",
                VERTEX,
            )
        ],
        {"0": ("–", "transparent"), **BOTTLENECK},
        height=5,
    )


def _throughput() -> Iterator[Panel]:
    yield series(
        Told(
            30,
            "Records in",
            "Records a second that each vertex reads: of a source the rows read, behind an exchange the shuffle "
            "records. They come batch by batch.",
            PER_SECOND,
        ),
        [Ask(rate("streamgauge_vertex_records_in_total", VERTICES, BY_VERTEX), VERTEX)],
    )
    yield series(
        Told(
            31,
            "Records out",
            "Records a second that each vertex puts out: before an exchange the shuffle records written, of a sink "
            "what reached it.",
            PER_SECOND,
        ),
        [Ask(rate("streamgauge_vertex_records_out_total", VERTICES, BY_VERTEX), VERTEX)],
    )


def _shares() -> Iterator[Panel]:
    panel = series(
        Told(
            40,
            "$vertex",
            "How the vertex' subtasks spend their time on the average: busy, back-pressured (held up by what lies "
            "downstream while the job is backlogged) and idle make 100 %. Much idle time in a backlogged job means too "
            "few slots or too few partitions elsewhere. Back-pressure of the batch under way is known at its end.",
            SHARE,
        ),
        [
            Ask(share("busy", VERTICES, "vertex_name"), "busy", BUSY),
            Ask(share("back_pressured", VERTICES, "vertex_name"), "back-pressured", BACK_PRESSURED),
            Ask(share("idle", VERTICES, "vertex_name"), "idle", IDLE),
        ],
        width=24,
        stacked=True,
        most=1,
    )
    yield panel.repeat("vertex").repeat_direction("h").max_per_row(3)


def _backlog() -> Iterator[Panel]:
    yield series(
        Told(
            50,
            "Backlog in time",
            "Time that it would take to work off what waits in the sources, at the pace of the last minute. Compare it "
            "with how late a result may be.",
            SECONDS,
        ),
        [Ask(greatest("streamgauge_job_backlog_time_seconds", JOB, BY_JOB), "backlog")],
        width=8,
        limits=LAG_LIMITS,
    )
    yield series(
        Told(
            51,
            "Records that wait",
            "Records that each source has beyond what the latest batch took. Absent where offsets do not count "
            "records, as with files.",
            COUNT,
        ),
        [Ask(greatest("streamgauge_operator_pending_records", JOB, BY_OPERATOR), "{{operator_name}}")],
        width=8,
    )
    yield series(
        Told(
            52,
            "Growth of the backlog",
            "Records by which the backlog grows a second, over the batches of the last minute; below 0 the job catches "
            "up. Above 0 for longer than a few batches: raise maxOffsetsPerTrigger if batches are short, else give "
            "the bottleneck slots.",
            PER_SECOND,
        ),
        [Ask(greatest("streamgauge_job_backlog_rows_trend", JOB, BY_JOB), "growth")],
        width=8,
        least=None,
    )
