"""The alert rules: when somebody is called, and what they are told."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from dashboards.prometheus.recordings import (
    BACKLOG_TREND,
    BATCH_PERIOD,
    BATCH_SINCE,
    BUSIEST,
    LATE_RATIO,
    LATENCY,
    LONGEST_LOOK,
    SKEW,
    UTILIZATION,
    WATERMARK_LAG,
)
from dashboards.prometheus.rule import Alert, quoted
from dashboards.prometheus.settings import Duration, Settings
from streamgauge.errors import SettingError

_AT_ONCE = Duration(0)
_1M, _5M, _10M, _15M = (Duration(60 * minutes) for minutes in (1, 5, 10, 15))

_WHOSE = "Job {{ $labels.job_name }} ({{ $labels.job_id }})"
_VERTEX = "vertex {{ $labels.vertex_name }} ({{ $labels.vertex_id }})"
_FOUND_VERTEX = "vertex {{ .Labels.vertex_name }} ({{ .Labels.vertex_id }})"


def alerts(settings: Settings) -> list[Alert]:
    """
    Return all alert rules.

    Raises:
        SettingError: `lasting` or `keep_firing` names an alert that is not there.
    """
    every = [*_states(settings), *_progress(settings), *_lateness(settings), *_work(settings), *_own(settings)]
    known = [each.name for each in every]
    _refuse_unknown("--for", settings.lasting, known)
    _refuse_unknown("--keep-firing-for", settings.keep_firing, known)
    return [
        replace(
            each,
            lasting=_given(settings.lasting, each.name, each.lasting),
            keep_firing=_given(settings.keep_firing, each.name, each.keep_firing),
        )
        for each in every
    ]


def _given(given: Mapping[str, Duration], name: str, default: Duration) -> Duration:
    return given.get(name, given.get("", default))


def _refuse_unknown(option: str, given: Mapping[str, Duration], known: list[str]) -> None:
    for name in given:
        if name and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise SettingError(f"{option} {name}: there is no such alert" + (f", is it {near[0]}?" if near else ""))


def _asked(expr: str, found: str, otherwise: str = "") -> str:
    """
    Return a template that tells of what Prometheus says to a query.

    What changes while an alert is pending is asked for so: as a label, it would begin the alert anew.

    Args:
        expr: Its first series is told of; JOB in it is the matcher of the alert's job.
        found: A template, in which '.' is the series.
        otherwise: What is said where there is none.
    """
    query = expr.replace("JOB", "job_id=%[1]q")
    return (
        f"{{{{ with printf `{query}` $labels.job_id | query }}}}{{{{ with first . }}}}{found}{{{{ end }}}}"
        + (f"{{{{ else }}}}{otherwise}" if otherwise else "")
        + "{{ end }}"
    )


def _states(settings: Settings) -> Iterator[Alert]:
    """Yield what follows from the state that a job is in, and from its restarts."""
    window = settings.restart_window
    # The service counts from 0 when it starts: that is a change, and no restart.
    runs = f"(changes(streamgauge_job_restarts_total[{window}]) - resets(streamgauge_job_restarts_total[{window}]))"
    yield Alert(
        name="StreamgaugeJobFailed",
        severity="critical",
        expr='max without (state, job_type) (streamgauge_job_state{job_type!="BATCH", state="FAILED"}) == 1',
        lasting=_1M,
        keep_firing=_AT_ONCE,
        summary="A streaming query has failed, and no run has followed.",
        description=f"{_WHOSE} is FAILED; /jobs/{{{{ $labels.job_id }}}}/exceptions tells why.",
    )
    # A deploy ends one driver and starts another, often from a new checkpoint: the name is what remains.
    yield Alert(
        name="StreamgaugeJobSuspended",
        severity="critical",
        expr="""
              max without (state, job_type) (streamgauge_job_state{job_type!="BATCH", state="SUSPENDED"}) == 1
            unless ignoring (job_id, state, job_type)
              streamgauge_job_state{state="RUNNING"} == 1
        """,
        lasting=_5M,
        keep_firing=_AT_ONCE,
        summary="Nothing is heard any more of a driver that had a running query.",
        description=f"{_WHOSE} is SUSPENDED, and no other job of its name runs: its driver has died, hangs, or does "
        "not reach the service.",
    )
    # What a scheduler starts every few minutes comes to its end each time.
    yield Alert(
        name="StreamgaugeJobRestarting",
        severity="warning",
        expr=f"""
            (
                {runs} >= {settings.restarts:g}
              or
                {runs}
              and
                streamgauge_job_restarting_time_seconds > {settings.restarting.seconds}
            )
            unless
              max without (state, job_type) (max_over_time(streamgauge_job_state{{state="FINISHED"}}[{window}])) == 1
        """,
        lasting=_AT_ONCE,
        keep_firing=_5M,
        summary="A streaming query restarts again and again, or does not get through its restart.",
        description=f"{_WHOSE} was restarted {{{{ $value }}}} times within {window}"
        + _asked(
            f"streamgauge_job_restarting_time_seconds{{JOB}} > {settings.restarting.seconds}",
            ", and has been RESTARTING for {{ .Value | humanizeDuration }}",
        )
        + ".",
    )


def _progress(settings: Settings) -> Iterator[Alert]:
    """Yield whether a job keeps up."""
    # A backlog that will be worked off soon is what a restart leaves behind.
    yield Alert(
        name="StreamgaugeJobBackPressured",
        severity="warning",
        expr=f"""
              {UTILIZATION} > {settings.utilization:g}
            and
              streamgauge_job_backlogged == 1
            unless
              -{settings.catch_up.seconds} * {BACKLOG_TREND} > (streamgauge_job_backlog_rows > 0)
        """,
        lasting=_10M,
        keep_firing=_5M,
        summary="A streaming query cannot keep up with its sources.",
        description=f"{_WHOSE} has more to read than it gets through; batches take "
        "{{ $value | humanizePercentage }} of its time. "
        + _asked(
            # While a batch's fixed costs prevail another vertex may be ahead for some time.
            "topk(1, "
            f"max by (vertex_id, vertex_name) (avg_over_time(streamgauge_vertex_busy_ratio{{JOB}}[{settings.window}])) "
            "and max by (vertex_id, vertex_name) "
            f"(max_over_time(streamgauge_vertex_bottleneck{{JOB}}[{settings.window}])))",
            f"The bottleneck is {_FOUND_VERTEX}, which was {{{{ .Value | humanizePercentage }}}} busy on average.",
            "Which vertex is the bottleneck is not known.",
        ),
    )
    yield Alert(
        name="StreamgaugeBacklogGrowing",
        severity="warning",
        expr=f"""
              streamgauge_job_backlog_time_seconds > {settings.backlog_time.seconds}
            and
              {BACKLOG_TREND} > 0
        """,
        lasting=_15M,
        keep_firing=_5M,
        summary="The backlog of a streaming query grows and grows.",
        description=f"{_WHOSE} would need {{{{ $value | humanizeDuration }}}} to work its backlog off"
        + _asked(f"{BACKLOG_TREND}{{JOB}}", ", which grows by {{ .Value | humanize }} rows a second", ", which grows")
        + ".",
    )
    limit = f"({settings.stall_intervals:g} * {BATCH_PERIOD} + {settings.stall_extra.seconds})"
    completed = "streamgauge_job_last_checkpoint_completed_timestamp_seconds"
    under_way = "streamgauge_job_in_progress_checkpoints"
    # A query that waits for rows has no batch under way and, as of its latest one, nothing more to read.
    yield Alert(
        name="StreamgaugeJobStalled",
        severity="critical",
        expr=f"""
            (
                timestamp({completed}) - {completed}
                  > {limit}
              and
                (
                    streamgauge_job_backlog_rows > 0
                  or
                    (
                        {under_way} == 1
                      unless
                        ({BATCH_SINCE} or {LONGEST_LOOK.seconds} + 0 * {under_way}) <= {limit}
                    )
                )
            )
            or
            (
                streamgauge_job_running_time_seconds > {settings.first_batch.seconds}
              and
                min_over_time({under_way}[{settings.first_batch}]) == 1
              unless
                {completed}
            )
        """,
        lasting=_1M,
        keep_firing=_AT_ONCE,
        summary="A streaming query has work to do and completes no micro-batch.",
        description=f"{_WHOSE} has completed no micro-batch for {{{{ $value | humanizeDuration }}}}, though it has "
        "work to do.",
    )


def _lateness(settings: Settings) -> Iterator[Alert]:
    """Yield how late a job is, in event time and in processing time."""
    window = settings.window
    # The least lag of a window stands still while batches come and go. That of an idle query grows, and no row is read.
    yield Alert(
        name="StreamgaugeWatermarkLag",
        severity="warning",
        expr=f"""
              min_over_time({WATERMARK_LAG}[{window}]) > {settings.watermark_lag.seconds}
            and
                min_over_time({WATERMARK_LAG}[{window}])
              - min_over_time({WATERMARK_LAG}[{window}] offset {window})
                > {window.seconds / 10:g}
            and
              rate(streamgauge_job_input_rows_total[{window}]) > 0
        """,
        lasting=_10M,
        keep_firing=_5M,
        summary="The watermark of a streaming query falls behind, although rows come in.",
        description=f"{_WHOSE} reads rows, but its watermark has been {{{{ $value | humanizeDuration }}}} or more "
        f"behind the clock for {window}, and falls further behind"
        + _asked(
            "topk(1, streamgauge_operator_watermark_lag_seconds{JOB})",
            f"; furthest behind is operator {{{{ .Labels.operator_name }}}} of {_FOUND_VERTEX}",
        )
        + ".",
    )
    # Of these bounds the histogram's are told exactly; what lies between two is interpolated.
    yield Alert(
        name="StreamgaugeLatencyHigh",
        severity="critical",
        expr=f"""
              max without (vertex_id, vertex_name) ({LATENCY}) > {settings.latency_p99.seconds}
            unless
              max without (vertex_id, vertex_name) ({LATENCY})
                <= {settings.latency_intervals:g} * streamgauge_job_trigger_interval_seconds
        """,
        lasting=_10M,
        keep_firing=_5M,
        summary="Records need too long to get through a streaming query.",
        description=f"{_WHOSE}: 1 of 100 latency markers needs {{{{ $value | humanizeDuration }}}} or more"
        + _asked(f"topk(1, {LATENCY}{{JOB}})", f" as far as {_FOUND_VERTEX}")
        + ".",
    )
    yield Alert(
        name="StreamgaugeLateRecordsDropped",
        severity="warning",
        expr=f"{LATE_RATIO} > {settings.late_ratio:g}",
        lasting=_10M,
        keep_firing=_5M,
        summary="A stateful operator drops records because they come too late.",
        description=f"{_WHOSE}: operator {{{{ $labels.operator_name }}}} of {_VERTEX} drops "
        "{{ $value | humanizePercentage }} of its records as late.",
    )


def _work(settings: Settings) -> Iterator[Alert]:
    """Yield how a vertex' work is spread."""
    yield Alert(
        name="StreamgaugeSkew",
        severity="warning",
        expr=f"""
              {SKEW} > {settings.skew:g}
            and
              {BUSIEST} > {settings.skew_busy:g}
        """,
        lasting=_15M,
        keep_firing=_5M,
        summary="One subtask does most of a vertex' work.",
        description=f"{_WHOSE}: the busiest subtask of {_VERTEX} is {{{{ $value | humanize }}}} times as busy as the "
        "mean of all.",
    )


def _own(settings: Settings) -> Iterator[Alert]:
    """Yield whether Streamgauge itself sees everything."""
    window, up = settings.window, f"up{{job={quoted(settings.scrape_job)}}}"
    yield Alert(
        name="StreamgaugeCollectorDown",
        severity="critical",
        expr=f"{up} == 0 or absent({up})",
        lasting=_5M,
        keep_firing=_AT_ONCE,
        summary="Prometheus cannot scrape the Streamgauge service, so no query is watched.",
        description="{{ with $labels.instance }}Prometheus cannot scrape {{ . }} of job {{ $labels.job }}{{ else }}"
        "Prometheus has no target of job {{ $labels.job }}{{ end }}: nothing is known of any query, and no "
        "other alert of Streamgauge's can fire.",
    )
    # A driver that lost events before its first scrape has a count and no increase. Scrapes may fail for a while.
    # By application: behind another instance of the service it is the same count.
    lost = "\n            or\n".join(
        f"              increase({name}[{window}]) > {settings.events_dropped:g}\n"
        "            or\n"
        f"              ({name} > {settings.events_dropped:g} unless on (application_id) "
        f"last_over_time({name}[1h] offset {window}))"
        for name in ("streamgauge_hooks_dropped_records_total", "streamgauge_hooks_faults_total")
    )
    yield Alert(
        name="StreamgaugeEventsDropped",
        severity="warning",
        expr=lost,
        lasting=_AT_ONCE,
        keep_firing=_AT_ONCE,
        summary="The hooks in a driver have lost events of Spark's.",
        description="The hooks in application {{ $labels.application_name }} ({{ $labels.application_id }}) have lost "
        "{{ $value | humanize }} events: figures of its jobs are too small from then on.",
    )
