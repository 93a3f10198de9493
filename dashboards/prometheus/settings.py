"""What the rules may be told: thresholds, windows, and how long a state has to last."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from streamgauge.errors import SettingError

LEAST_EVALUATIONS = 4
"""Evaluations that a window has to hold: with fewer, rates and trends are made of one sample or two."""

LONGEST_S = 365 * 86_400
"""The longest duration, seconds; Prometheus itself refuses those of three centuries."""

_UNITS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile("".join(f"(?:([0-9]+){unit})?" for unit in _UNITS_S))


@dataclass(frozen=True, slots=True)
class Duration:
    """
    A span of time, as Prometheus writes one.

    Args:
        seconds: At least 0.
    """

    seconds: int

    @classmethod
    def read(cls, text: str) -> Duration:
        """
        Read '15s', '10m', '1h30m' or '2d': days, hours, minutes and seconds, in this order.

        Raises:
            SettingError: it is no such text, as a number without a unit is none, or is longer than LONGEST_S.
        """
        found = _DURATION.fullmatch(text)
        if not text or found is None:
            raise SettingError(f"{text!r} is no duration: numbers with d, h, m or s are expected, as in 15s or 1h30m")
        counts = zip(found.groups(default="0"), _UNITS_S.values(), strict=True)
        read = cls(sum(int(count) * seconds for count, seconds in counts))
        if read.seconds > LONGEST_S:
            raise SettingError(f"{text!r} is longer than a year, which no alert waits for")
        return read

    def __str__(self) -> str:
        """Return the text that `read` reads, in the greatest units."""
        left, text = self.seconds, ""
        for unit, seconds in _UNITS_S.items():
            count, left = divmod(left, seconds)
            text += f"{count}{unit}" if count else ""
        return text or "0s"


@dataclass(frozen=True, slots=True)
class Range:
    """
    Where a number may lie: from `low`, or above it where it is open, to below `high`.

    Args:
        high: Infinite where there is no bound.
    """

    low: float
    high: float = math.inf
    is_open: bool = False

    def __contains__(self, value: float) -> bool:
        """Whether a number lies in it; NaN does not."""
        return (self.low < value if self.is_open else self.low <= value) and value < self.high

    def __str__(self) -> str:
        """Say it in words."""
        low = f"above {self.low:g}" if self.is_open else f"{self.low:g} or more"
        return low if self.high == math.inf else f"{low}, and below {self.high:g}"


_SHARE = Range(0, 1)
_SOME_TIME = Range(1)


def _told(words: str, values: Range | None = None) -> dict[str, object]:
    return {"help": words, "range": values}


@dataclass(frozen=True, slots=True)
class Settings:
    """
    All that the rules may be told. Each setting carries its words for `--help`, and the range that it may be in.

    Args:
        lasting: Alert → how long its state has to last before it fires, 0 or more; '' is any that is not named.
        keep_firing: Alert, or '' → how long it goes on firing when the state is over.

    Raises:
        SettingError: names a setting, its value and what was expected.
    """

    lasting: Mapping[str, Duration] = field(default_factory=dict)
    keep_firing: Mapping[str, Duration] = field(default_factory=dict)
    interval: Duration = field(
        default=Duration.read("30s"),
        metadata=_told("Between two evaluations, not less than the scrape interval.", _SOME_TIME),
    )
    window: Duration = field(
        default=Duration.read("10m"),
        metadata=_told("What rates, trends and quantiles are of, three batches or more.", _SOME_TIME),
    )
    scrape_job: str = field(default="streamgauge", metadata=_told("The job_name of the scrape config."))
    runbook_url: str = field(default="docs/runbooks", metadata=_told("What stands in front of /<alert>.md."))
    utilization: float = field(
        default=0.9, metadata=_told("BackPressured: share of the time that batches take.", Range(0, 1, is_open=True))
    )
    catch_up: Duration = field(
        default=Duration.read("1h"),
        metadata=_told("BackPressured: what may be worked off in this time is no alert.", _SOME_TIME),
    )
    backlog_time: Duration = field(
        default=Duration.read("2m"),
        metadata=_told("BacklogGrowing: what it would take to work the backlog off.", _SOME_TIME),
    )
    watermark_lag: Duration = field(
        default=Duration.read("15m"), metadata=_told("WatermarkLag: how far the watermark is behind.", _SOME_TIME)
    )
    late_ratio: float = field(
        default=0.01, metadata=_told("LateRecordsDropped: share of the records that an operator reads.", _SHARE)
    )
    latency_p99: Duration = field(
        default=Duration.read("256s"), metadata=_told("LatencyHigh: what 99 of 100 markers need at most.", _SOME_TIME)
    )
    latency_intervals: float = field(
        default=4.0, metadata=_told("LatencyHigh: trigger intervals that are no high latency yet.", Range(0))
    )
    restarts: float = field(default=3.0, metadata=_told("JobRestarting: restarts in the restart window.", Range(2)))
    restart_window: Duration = field(
        default=Duration.read("30m"), metadata=_told("JobRestarting: where restarts are counted.", _SOME_TIME)
    )
    restarting: Duration = field(
        default=Duration.read("10m"), metadata=_told("JobRestarting: how long one restart may take.", _SOME_TIME)
    )
    stall_intervals: float = field(
        default=5.0, metadata=_told("JobStalled: trigger intervals without a batch.", Range(2))
    )
    stall_extra: Duration = field(
        default=Duration.read("60s"), metadata=_told("JobStalled: what is added to them.", Range(0))
    )
    first_batch: Duration = field(
        default=Duration.read("30m"), metadata=_told("JobStalled: what the first batch of a run may take.", _SOME_TIME)
    )
    skew: float = field(
        default=3.0, metadata=_told("Skew: the busiest subtask over the mean of all.", Range(1, is_open=True))
    )
    skew_busy: float = field(default=0.5, metadata=_told("Skew: how busy the busiest subtask has to be.", _SHARE))
    events_dropped: float = field(
        default=0.0, metadata=_told("EventsDropped: events that may be missing in the window.", Range(0))
    )

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for one in fields(self):
            value = getattr(self, one.name)
            allowed = one.metadata.get("range")
            if isinstance(value, str) and not value.strip():
                raise SettingError(f"{option(one.name)} is empty: some text is expected")
            if allowed is None:
                continue
            if isinstance(value, Duration) and value.seconds not in allowed:
                raise SettingError(f"{option(one.name)} {value}: {allowed.low:g}s or more is expected")
            if isinstance(value, float | int) and value not in allowed:
                raise SettingError(f"{option(one.name)} {value:g}: a number {allowed} is expected")
        for name in ("window", "restart_window"):
            if getattr(self, name).seconds < LEAST_EVALUATIONS * self.interval.seconds:
                raise SettingError(
                    f"{option(name)} {getattr(self, name)}: at an --interval of {self.interval} a window of "
                    f"{Duration(LEAST_EVALUATIONS * self.interval.seconds)} or more is expected"
                )


def option(name: str) -> str:
    """Return a setting's name on the command line."""
    return "--" + name.replace("_", "-")
