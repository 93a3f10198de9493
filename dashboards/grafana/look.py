"""Colours, limits and texts for values: what good and bad look like on every dashboard."""

from __future__ import annotations

from collections.abc import Mapping

from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.models import dashboard

from dashboards.grafana.promql import STATES

GOOD, WARNING, BAD, PLAIN = "green", "orange", "red", "text"
IDLE, BUSY, BACK_PRESSURED = "blue", "red", "dark-purple"
"""Of the shares of time. Busy is red as in Flink's graph; its black for back-pressured is lost on a dark page."""

Limits = Mapping[float, str]
"""From which value on which colour; below the first it is GOOD."""

LAG_LIMITS: Limits = {60.0: WARNING, 300.0: BAD}
"""Seconds of a lag, a backlog or a latency; what is much for a job, its owner knows."""
BUSY_LIMITS: Limits = {0.7: WARNING, 0.95: BAD}
AGE_LIMITS: Limits = {15: WARNING, 60: BAD}
"""Seconds since a driver was heard; hooks push every second."""
SKEW_LIMITS: Limits = {2: WARNING, 5: BAD}
ANY: Limits = {0.001: WARNING}
"""Of rates that should be 0."""
ONCE: Limits = {1: WARNING}
"""Of counts that should be 0."""

VERTEX, OPERATOR = "{{vertex_name}}", "{{operator_name}} in {{vertex_name}}"
APPLICATION = "{{application_name}}"
"""Legends."""

STATE_COLOURS = {
    "CREATED": "blue",
    "RUNNING": GOOD,
    "RESTARTING": WARNING,
    "SUSPENDED": WARNING,
    "FAILED": BAD,
    "FINISHED": "blue",
    "CANCELED": "super-light-blue",
}


def thresholds(limits: Limits | None, below: str = GOOD) -> ThresholdsConfig:
    """
    Return limits as Grafana has them.

    Args:
        limits: None for a figure that is neither good nor bad.
        below: The colour below the first.
    """
    steps = [dashboard.Threshold(color=below if limits else PLAIN)]
    steps += [dashboard.Threshold(value=value, color=colour) for value, colour in (limits or {}).items()]
    return ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps)


def texts(known: Mapping[str, tuple[str, str]]) -> list[dashboard.ValueMapping]:
    """
    Return what stands for values.

    Args:
        known: Value, as text, → what is shown and its colour.
    """
    results = {
        value: dashboard.ValueMappingResult(text=text, color=colour, index=index)
        for index, (value, (text, colour)) in enumerate(known.items())
    }
    return [dashboard.ValueMap(options=results)]


STATE_NUMBERS = {str(at): (state, STATE_COLOURS[state]) for at, state in enumerate(STATES, 1)}
"""Of `promql.state_number`."""
STATE_NAMES = {state: (state, colour) for state, colour in STATE_COLOURS.items()}
BACKLOGGED = {"0": ("keeps up", GOOD), "1": ("backlogged", WARNING)}
BACK_PRESSURE = {"0": ("OK", GOOD), "1": ("back-pressured", WARNING)}
BOTTLENECK = {"1": ("bottleneck", BAD)}
IDLE_SPLIT = {"0": ("active", GOOD), "1": ("idle", IDLE)}
