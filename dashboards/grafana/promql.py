"""Expressions that several panels share, and the selectors that the dashboards' variables make."""

from __future__ import annotations

JOBS = 'job_name=~"$job"'
"""Of a dashboard where several jobs may be chosen."""
JOB = 'job_name="$job"'
"""Of a dashboard of one job."""
VERTICES = f'{JOB}, vertex_name=~"$vertex"'
QUERIES = 'job_type!="BATCH"'
"""Of states: those of streaming queries, and of no SQL execution of its own."""
APPLICATIONS = 'application_name=~"$application"'

BY_APPLICATION = "application_id, application_name"
BY_JOB = "job_id, job_name"
BY_VERTEX = "vertex_id, vertex_name"
BY_OPERATOR = "vertex_id, vertex_name, operator_name"

STATES = ("CREATED", "RUNNING", "RESTARTING", "SUSPENDED", "FAILED", "FINISHED", "CANCELED")
"""A job's; `state_number` tells the place in this, from 1."""


def rate(counter: str, where: str, by: str) -> str:
    """Return the growth a second of a counter, summed by labels, over Grafana's own interval."""
    return f"sum by ({by}) (rate({counter}{{{where}}}[$__rate_interval]))"


def increase(counter: str, where: str, by: str) -> str:
    """Return the growth of a counter within each of Grafana's intervals, summed by labels."""
    return f"sum by ({by}) (increase({counter}{{{where}}}[$__rate_interval]))"


def greatest(gauge: str, where: str, by: str) -> str:
    """
    Return the greatest of a gauge by labels.

    That of the subtasks is what the default page tells; a page with a series a subtask gives the same.
    """
    return f"max by ({by}) ({gauge}{{{where}}})"


def least(gauge: str, where: str, by: str) -> str:
    """Return the least of a gauge by labels: of watermarks, for a vertex is as far as the last of its subtasks."""
    return f"min by ({by}) ({gauge}{{{where}}})"


def date(timestamp: str, where: str, by: str) -> str:
    """Return the least of a gauge of Unix time by labels in ms, as Grafana takes dates."""
    return f"{least(timestamp, where, by)} * 1000"


def total(gauge: str, where: str, by: str) -> str:
    """Return the sum of a gauge by labels: of what each subtask holds a part of."""
    return f"sum by ({by}) ({gauge}{{{where}}})"


def share(part: str, where: str, by: str) -> str:
    """
    Return a vertex' mean share of time, 0 to 1, so that busy, back-pressured and idle make 1.

    The gauges would not: each is that of another subtask, the one where it is greatest.

    Args:
        part: busy, back_pressured or idle.
    """
    spent = [rate(f"streamgauge_vertex_{each}_seconds_total", where, by) for each in ("busy", "back_pressured", "idle")]
    return f"{rate(f'streamgauge_vertex_{part}_seconds_total', where, by)}\n/ ({' + '.join(spent)})"


def quantile(rank: float, histogram: str, where: str, by: str, over: str = "$__rate_interval") -> str:
    """
    Return a quantile of a histogram, estimated within its bucket as Prometheus does.

    Args:
        rank: 0 to 1.
        histogram: The family.
        by: Labels that stay apart, '' for none.
        over: How far back.
    """
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({rank}, sum by ({labels}) (rate({histogram}_bucket{{{where}}}[{over}])))"


def mean(histogram: str, where: str, by: str) -> str:
    """Return the mean of a histogram's values by labels; values past 70 minutes are counted, and are not in the sum."""
    return f"{rate(f'{histogram}_sum', where, by)}\n/ {rate(f'{histogram}_count', where, by)}"


def state_number(where: str) -> str:
    """
    Return the state of each job as its place in STATES, from 1.

    Job by job, not by name: for 15 minutes an ended job stands beside the one of its name that took its place.
    """
    told = (
        f'streamgauge_job_state{{{where}, {QUERIES}, state="{state}"}} * {at}' for at, state in enumerate(STATES, 1)
    )
    return f"max by ({BY_JOB}) (\n  " + "\n  or ".join(told) + "\n)"
