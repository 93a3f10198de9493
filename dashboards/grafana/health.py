"""Streamgauge's own health: the hooks in the drivers and the service. Panels of the dashboard *Executors*."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.grafana.frame import Panel
from dashboards.grafana.look import AGE_LIMITS, ANY, APPLICATION, ONCE, WARNING
from dashboards.grafana.panels import BYTES, BYTES_PER_SECOND, COUNT, PER_SECOND, SECONDS, SHARE, Ask, Told, series
from dashboards.grafana.promql import APPLICATIONS, BY_APPLICATION, greatest, increase, rate


def hooks() -> Iterator[Panel]:
    """Yield how the hooks in the drivers fare."""
    yield series(
        Told(
            30,
            "Pushes by outcome",
            "What became of the pushes. accepted is good; resend comes after a restart of the collector. refused: a "
            "wrong token. rejected: versions that do not fit. overloaded, unreachable: the collector has no room, or "
            "is away, and figures wait in the driver.",
            PER_SECOND,
        ),
        [
            Ask(
                rate("streamgauge_hooks_pushes_total", APPLICATIONS, "application_name, outcome"),
                "{{application_name}}: {{outcome}}",
            )
        ],
        width=8,
    )
    yield series(
        Told(
            31,
            "Lost",
            "Records given up for want of room (counts are too small from then on), live updates given up (the task's "
            "end tells the same later), and events that the hooks could not take in (please report them).",
            COUNT,
        ),
        [
            Ask(
                increase("streamgauge_hooks_dropped_records_total", APPLICATIONS, BY_APPLICATION),
                f"{APPLICATION}: records",
            ),
            Ask(
                increase("streamgauge_hooks_dropped_live_updates_total", APPLICATIONS, BY_APPLICATION),
                f"{APPLICATION}: live updates",
            ),
            Ask(increase("streamgauge_hooks_faults_total", APPLICATIONS, BY_APPLICATION), f"{APPLICATION}: faults"),
        ],
        width=8,
        limits=ONCE,
    )
    yield series(
        Told(
            32,
            "Age of figures",
            "Time since the collector took in what each driver's hooks sent. It saws with the push interval.",
            SECONDS,
        ),
        [Ask(greatest("streamgauge_hooks_acknowledged_age_seconds", APPLICATIONS, BY_APPLICATION), APPLICATION)],
        width=8,
        limits=AGE_LIMITS,
    )
    yield series(
        Told(
            33,
            "Time in the recorder",
            "Share of time that the recorder takes on Spark's listener bus: what the hooks cost there.",
            SHARE,
        ),
        [Ask(rate("streamgauge_hooks_record_time_seconds_total", APPLICATIONS, BY_APPLICATION), APPLICATION)],
        width=8,
        limits={0.03: WARNING},
    )
    yield series(
        Told(
            34,
            "Events",
            "Listener events a second that the recorder takes; they follow the tasks.",
            PER_SECOND,
        ),
        [Ask(rate("streamgauge_hooks_events_total", APPLICATIONS, BY_APPLICATION), APPLICATION)],
        width=8,
    )
    yield series(
        Told(
            35,
            "Drain time",
            "Time that the latest drain of the recorder took, in the driver's Python.",
            SECONDS,
        ),
        [Ask(greatest("streamgauge_hooks_drain_time_seconds", APPLICATIONS, BY_APPLICATION), APPLICATION)],
        width=8,
        limits=ONCE,
    )


def collector() -> Iterator[Panel]:
    """Yield how the service itself fares."""
    yield series(
        Told(
            50,
            "Frames by outcome",
            "Frames of pushes that were taken in. repeated and late ones are left out, and do no harm.",
            PER_SECOND,
        ),
        [Ask("sum by (outcome) (rate(streamgauge_service_frames_total[$__rate_interval]))", "{{outcome}}")],
        width=8,
    )
    yield series(
        Told(
            51,
            "Pushes refused",
            "Pushes that were refused, by the name of the error. Unauthorized: a driver has another token.",
            PER_SECOND,
        ),
        [Ask("sum by (reason) (rate(streamgauge_service_pushes_refused_total[$__rate_interval]))", "{{reason}}")],
        width=8,
        limits=ANY,
    )
    yield series(
        Told(52, "Time to take a push in", "What 95% of the pushes did not exceed, their bodies being there.", SECONDS),
        [
            Ask(
                "histogram_quantile(0.95, "
                "sum by (le) (rate(streamgauge_service_push_duration_seconds_bucket[$__rate_interval])))",
                "p95",
            )
        ],
        width=8,
        limits={0.25: WARNING},
    )
    yield series(
        Told(
            53,
            "Time to answer, p95",
            "What 95% of the requests did not exceed, by handler; scrapes are among them.",
            SECONDS,
        ),
        [
            Ask(
                "histogram_quantile(0.95, sum by (le, handler) "
                "(rate(streamgauge_service_request_duration_seconds_bucket[$__rate_interval])))",
                "{{handler}}",
            )
        ],
        width=8,
        limits={0.5: WARNING},
    )
    yield series(
        Told(54, "Held", "Jobs, applications and values that the collector holds in memory.", COUNT),
        [
            Ask("sum(streamgauge_service_jobs)", "jobs"),
            Ask("sum(streamgauge_service_applications)", "applications"),
            Ask("sum(streamgauge_service_series)", "values"),
        ],
        width=8,
    )
    yield series(
        Told(55, "Memory", "Resident memory of the service's process, where its system tells it.", BYTES),
        [Ask("sum(streamgauge_service_process_resident_memory_bytes)", "resident")],
        width=8,
    )
    yield series(
        Told(
            56,
            "CPU",
            "Processor seconds a second of the service's process; 1 is one core.",
            COUNT,
        ),
        [Ask("sum(rate(streamgauge_service_process_cpu_seconds_total[$__rate_interval]))", "cores")],
        width=12,
    )
    yield series(
        Told(57, "Bytes pushed", "Bytes a second that drivers' hooks send, by application.", BYTES_PER_SECOND),
        [Ask(rate("streamgauge_hooks_sent_bytes_total", APPLICATIONS, BY_APPLICATION), APPLICATION)],
        width=12,
    )
    yield series(
        Told(
            58,
            "Series told to Prometheus",
            "Series of the last scrape, by page: what Prometheus has to keep. It grows with vertices and operators.",
            COUNT,
        ),
        [Ask("max by (page) (streamgauge_scrape_series)", "{{page}}")],
    )
    yield series(
        Told(
            59,
            "Scrapes told coarser than asked",
            "Scrapes that passed the cap of series. The figures of operators, or of vertices, are missing then: raise "
            "the cap, or ask for less.",
            COUNT,
        ),
        [
            Ask(
                "sum by (page, asked, told) (increase(streamgauge_scrapes_coarsened_total[$__rate_interval]))",
                "{{page}}: {{asked}} asked, {{told}} told",
            )
        ],
        limits=ONCE,
    )
