"""The dashboard of a job's vertices and their operators: who does how much, how evenly, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.grafana.frame import Panel, application, board, job, section, vertex
from dashboards.grafana.look import ANY, BACK_PRESSURE, BAD, BUSY_LIMITS, ONCE, OPERATOR, SKEW_LIMITS, VERTEX, WARNING
from dashboards.grafana.panels import (
    BYTES,
    BYTES_PER_SECOND,
    COUNT,
    PER_SECOND,
    SECONDS,
    SHARE,
    Ask,
    Told,
    series,
    timeline,
)
from dashboards.grafana.promql import BY_OPERATOR, BY_VERTEX, VERTICES, greatest, rate, share, total
from dashboards.grafana.tables import Column, table

_SKEW = (
    f"{greatest('streamgauge_vertex_busy_ratio', VERTICES, BY_VERTEX)}\n"
    f"/ (({share('busy', VERTICES, BY_VERTEX)}) > 0.01)"
)


def build() -> Dashboard:
    """Return the dashboard *Vertex and operators*."""
    onto = board(
        "vertex",
        "Vertex and operators",
        "Which operator does the work, how evenly is it spread, and who waits for whom?",
    )
    onto.with_variable(application()).with_variable(job()).with_variable(vertex())
    section(onto, "Now", [_operators()], row=100)
    section(onto, "Time", _time(), row=200)
    section(onto, "Records", _records(), row=300)
    section(onto, "Skew", _skew(), row=400)
    section(onto, "Sources", _sources(), row=500)
    section(onto, "Shuffles and buffers", _buffers(), row=600, collapsed=True)
    return onto


def _operators() -> Panel:
    return table(
        Told(
            1,
            "Operators",
            "Every operator of the chosen vertices, those that read most first. Out over in tells what a filter or an "
            "aggregation leaves. A dash is what Spark does not tell of this operator.",
            COUNT,
        ),
        {"vertex_id": "", "operator_name": "Operator", "vertex_name": "Vertex"},
        [
            Column("In", rate("streamgauge_operator_records_in_total", VERTICES, BY_OPERATOR), unit=PER_SECOND),
            Column("Out", rate("streamgauge_operator_records_out_total", VERTICES, BY_OPERATOR), unit=PER_SECOND),
            Column(
                "Out over in",
                f"{rate('streamgauge_operator_records_out_total', VERTICES, BY_OPERATOR)}\n"
                f"/ {rate('streamgauge_operator_records_in_total', VERTICES, BY_OPERATOR)}",
            ),
            Column("Waiting", greatest("streamgauge_operator_pending_records", VERTICES, BY_OPERATOR)),
            Column(
                "Late dropped",
                rate("streamgauge_operator_late_records_dropped_total", VERTICES, BY_OPERATOR),
                unit=PER_SECOND,
                limits=ANY,
            ),
            Column(
                "Watermark lag",
                greatest("streamgauge_operator_watermark_lag_seconds", VERTICES, BY_OPERATOR),
                unit=SECONDS,
            ),
            Column("State rows", total("streamgauge_operator_state_rows", VERTICES, BY_OPERATOR)),
        ],
        height=10,
        order=["In"],
        wide=220,
    )


def _time() -> Iterator[Panel]:
    yield series(
        Told(
            10,
            "Busy",
            "Share of time in which each vertex' busiest subtask works, or waits for a slot while its stage runs. "
            "Near 100 % it is what the job's pace depends on.",
            SHARE,
        ),
        [Ask(greatest("streamgauge_vertex_busy_ratio", VERTICES, BY_VERTEX), VERTEX)],
        limits=BUSY_LIMITS,
        width=8,
        most=1,
    )
    yield series(
        Told(
            11,
            "Back-pressured",
            "Share of time in which a vertex is held up by what lies downstream, in batches that were backlogged. "
            "Look downstream of the last vertex that is: the one behind it holds it up. An estimate: Spark has no "
            "back-pressure, and what waits while the job is backlogged is taken to be held up.",
            SHARE,
        ),
        [Ask(greatest("streamgauge_vertex_back_pressured_ratio", VERTICES, BY_VERTEX), VERTEX)],
        limits={0.1: WARNING, 0.5: BAD},
        width=8,
        most=1,
    )
    yield series(
        Told(
            12,
            "Waiting for a slot",
            "The part of a vertex' busy time in which its subtasks waited for a slot. Much of it: the application has "
            "too few cores for its shuffle partitions and its queries.",
            SHARE,
        ),
        [Ask(greatest("streamgauge_vertex_slot_wait_ratio", VERTICES, BY_VERTEX), VERTEX)],
        limits={0.2: WARNING},
        width=8,
        most=1,
    )
    yield timeline(
        Told(
            13,
            "Back-pressure",
            "Whether a vertex was back-pressured when the hooks last looked, every 5 s: since when, and how often.",
            COUNT,
        ),
        [Ask(greatest("streamgauge_vertex_is_back_pressured", VERTICES, BY_VERTEX), VERTEX)],
        BACK_PRESSURE,
        height=6,
    )


def _records() -> Iterator[Panel]:
    yield series(
        Told(
            20,
            "Records into operators",
            "Records a second that each operator reads; that of an operator whose node counts no rows is what those "
            "before it put out.",
            PER_SECOND,
        ),
        [Ask(rate("streamgauge_operator_records_in_total", VERTICES, BY_OPERATOR), OPERATOR)],
    )
    yield series(
        Told(
            21,
            "Records out of operators",
            "Records a second that each operator puts out: before an exchange the shuffle records written, of a sink "
            "what reached it.",
            PER_SECOND,
        ),
        [Ask(rate("streamgauge_operator_records_out_total", VERTICES, BY_OPERATOR), OPERATOR)],
    )


def _skew() -> Iterator[Panel]:
    yield series(
        Told(
            30,
            "Busiest subtask over the mean",
            "How much busier the busiest subtask is than its vertex' mean: 1 is even, and with n subtasks n is all "
            "work in one. From 2 on look for a key that most records have; salt it, or aggregate in two steps. Shown "
            "from a mean of 1 % on. The two are means of spans that differ, so it wavers.",
            COUNT,
        ),
        [Ask(_SKEW, VERTEX)],
        limits=SKEW_LIMITS,
        width=8,
    )
    yield series(
        Told(
            31,
            "Alignment",
            "From the first to the last finish of the tasks whose shuffles a vertex reads, in the latest batch: how "
            "long its input was complete in part only. Long with a short stage: one upstream task is late, by skew or "
            "by a slow machine.",
            SECONDS,
        ),
        [Ask(greatest("streamgauge_vertex_checkpoint_alignment_time_seconds", VERTICES, BY_VERTEX), VERTEX)],
        width=8,
    )
    yield series(
        Told(
            32,
            "Spilled to disk",
            "Bytes a second that a vertex' tasks spilled to disk for want of execution memory. More shuffle "
            "partitions, or more memory for executors, makes it go away.",
            BYTES_PER_SECOND,
        ),
        [Ask(rate("streamgauge_vertex_bytes_spilled_total", VERTICES, BY_VERTEX), VERTEX)],
        limits=ONCE,
        width=8,
    )


def _sources() -> Iterator[Panel]:
    yield series(
        Told(
            40,
            "Waiting at sources",
            "Records that each source has beyond what was read, and files that a stream of files has listed and not "
            "read.",
            COUNT,
        ),
        [
            Ask(greatest("streamgauge_operator_pending_records", VERTICES, BY_OPERATOR), f"{OPERATOR}: records"),
            Ask(greatest("streamgauge_operator_unread_files", VERTICES, BY_OPERATOR), f"{OPERATOR}: files"),
        ],
        width=8,
    )
    yield series(
        Told(
            41,
            "Idle sources",
            "Time since a batch last read rows of each source; 0 while one is under way. A source that should not be "
            "silent: look at what writes to it.",
            SECONDS,
        ),
        [Ask(greatest("streamgauge_operator_source_idle_time_seconds", VERTICES, BY_OPERATOR), OPERATOR)],
        width=8,
    )
    yield series(
        Told(
            42,
            "Arriving and processed",
            "Spark's own rates of each source's latest batch: rows that came a second, and rows that it went through "
            "a second. Processed below arriving: the job falls behind.",
            PER_SECOND,
        ),
        [
            Ask(
                greatest("streamgauge_coordinator_input_rows_per_second", VERTICES, BY_OPERATOR),
                f"{OPERATOR}: arriving",
            ),
            Ask(
                greatest("streamgauge_coordinator_processed_rows_per_second", VERTICES, BY_OPERATOR),
                f"{OPERATOR}: processed",
            ),
        ],
        width=8,
    )


def _buffers() -> Iterator[Panel]:
    yield series(
        Told(
            50,
            "Bytes in",
            "Shuffle bytes a second that each vertex reads, from its own executor and from others; 0 of a source.",
            BYTES_PER_SECOND,
        ),
        [
            Ask(rate("streamgauge_vertex_bytes_in_local_total", VERTICES, BY_VERTEX), f"{VERTEX}: local"),
            Ask(rate("streamgauge_vertex_bytes_in_remote_total", VERTICES, BY_VERTEX), f"{VERTEX}: remote"),
        ],
    )
    yield series(
        Told(
            51,
            "Bytes out",
            "Shuffle bytes a second that each vertex writes, or what a sink of files writes. Much more than it reads: "
            "filter and aggregate before the exchange.",
            BYTES_PER_SECOND,
        ),
        [Ask(rate("streamgauge_vertex_bytes_out_total", VERTICES, BY_VERTEX), VERTEX)],
    )
    yield series(
        Told(
            52,
            "Pool usage",
            "Out: execution memory that a vertex' latest task held at most, over its slot's share. In: how full its "
            "fetches are, over spark.reducer.maxSizeInFlight. Out near 100 % comes before spilling.",
            SHARE,
        ),
        [
            Ask(greatest("streamgauge_vertex_out_pool_usage", VERTICES, BY_VERTEX), f"{VERTEX}: out"),
            Ask(greatest("streamgauge_vertex_in_pool_usage", VERTICES, BY_VERTEX), f"{VERTEX}: in"),
        ],
        limits={0.9: WARNING},
        most=1,
    )
    yield series(
        Told(
            53,
            "Queued bytes",
            "Shuffle bytes that are written and wait to be read (out), and that wait on other executors (in; 0 where "
            "there is one executor). An estimate: what was written is taken to be spread evenly over its readers.",
            BYTES,
        ),
        [
            Ask(greatest("streamgauge_vertex_output_queue_size_bytes", VERTICES, BY_VERTEX), f"{VERTEX}: out"),
            Ask(greatest("streamgauge_vertex_input_queue_size_bytes", VERTICES, BY_VERTEX), f"{VERTEX}: in"),
        ],
    )
    yield series(
        Told(
            54,
            "Queued buffers",
            "Shuffle blocks that are written and wait to be read (out), and that wait on other executors (in). They go "
            "up and down with every stage; what matters is that they come down.",
            COUNT,
        ),
        [
            Ask(greatest("streamgauge_vertex_output_queue_length", VERTICES, BY_VERTEX), f"{VERTEX}: out"),
            Ask(greatest("streamgauge_vertex_input_queue_length", VERTICES, BY_VERTEX), f"{VERTEX}: in"),
        ],
    )
    yield series(
        Told(
            55,
            "Buffers in",
            "Shuffle blocks a second that each vertex reads, from its own executor and from others. Very many small "
            "ones: there are more shuffle partitions than the data needs.",
            PER_SECOND,
        ),
        [
            Ask(rate("streamgauge_vertex_buffers_in_local_total", VERTICES, BY_VERTEX), f"{VERTEX}: local"),
            Ask(rate("streamgauge_vertex_buffers_in_remote_total", VERTICES, BY_VERTEX), f"{VERTEX}: remote"),
        ],
    )
