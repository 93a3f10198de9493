"""A job's metrics: what its driver told, and the times that follow from its states and the clock."""

from __future__ import annotations

from collector.store import JobState
from streamgauge import names
from streamgauge.wire import ENDED_STATES, Scalar

_ENDED = -1
"""Flink's word for the downtime of a job that will not run again."""


def job_metrics(state: JobState, now_ms: int) -> dict[str, Scalar]:
    """
    Return a job's metrics by name, job scope; any thread.

    States are timed by the driver's clock and read against `now_ms`: a time that would be negative is 0.

    Source: Flink's UpTimeGauge and DownTimeGauge. Unlike its UpTimeGauge, an ended job's uptime is 0, as the
    catalogue says; its downtime is −1.
    """
    in_state_ms = max(0, now_ms - state.since_ms.get(state.state, state.modified_ms))
    running = in_state_ms if state.state == "RUNNING" else 0
    down = 0
    if state.state in ENDED_STATES:
        down = _ENDED
    elif state.state in ("RESTARTING", "SUSPENDED"):
        down = in_state_ms
    return {
        **state.job.metrics,
        names.UPTIME: running,
        names.RUNNING_TIME: running,
        names.RESTARTING_TIME: in_state_ms if state.state == "RESTARTING" else 0,
        names.DOWNTIME: down,
        names.NUM_RESTARTS: state.restarts,
    }
