"""Figures as a person reads them in a terminal: short, and '-' for what is not known."""

from __future__ import annotations

UNKNOWN = "-"

_PREFIXES = " kMGTPE"
_SECOND_MS = 1000
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400
_DAYS = 1000


def quantity(value: float | None, unit: str = "") -> str:
    """
    Return a count or a rate with at most three digits: 0.25, 12.5, 999, 1.23k, 12.3M, 1.00kB; '<0.01' is not 0.

    Args:
        value: Any finite number; what is past 10^21 is told as '>999E'.
        unit: Stands behind it.
    """
    if value is None:
        return UNKNOWN
    sign, scaled = ("-" if value < 0 else ""), abs(value)
    if 0 < scaled < 0.005:
        return f"{'>-' if sign else '<'}0.01{unit}"
    for prefix in _PREFIXES:
        if scaled < 999.5:
            return f"{sign}{_digits(scaled, whole=prefix == ' ' and scaled == int(scaled))}{prefix.strip()}{unit}"
        scaled /= 1000
    return f"{'<-' if sign else '>'}999E{unit}"


def _digits(value: float, whole: bool) -> str:
    if whole or value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def count(value: float | None) -> str:
    """Return a whole number with all its digits."""
    return UNKNOWN if value is None else f"{value:.0f}"


def share(ratio: float | None) -> str:
    """Return a ratio of 0 to 1 in percent."""
    return UNKNOWN if ratio is None else f"{min(max(ratio, 0.0), 1.0) * 100:.0f}%"


def duration(ms: float | None) -> str:
    """Return a time, which may be negative: 182ms, 4.2s, 3m12s, 5h07m, 12d03h, from 1000 days on whole days."""
    if ms is None:
        return UNKNOWN
    sign, length_ms = ("-" if ms < 0 else ""), abs(ms)
    if length_ms < 999.5:
        return (
            f"{sign}{length_ms:.0f}ms"
            if length_ms >= 9.5 or length_ms == int(length_ms)
            else f"{sign}{length_ms:.1f}ms"
        )
    if length_ms < 59_950:
        return f"{sign}{length_ms / _SECOND_MS:.1f}s"
    seconds = round(length_ms / _SECOND_MS)
    if seconds < _HOUR_S:
        return f"{sign}{seconds // _MINUTE_S}m{seconds % _MINUTE_S:02d}s"
    if seconds < _DAY_S:
        return f"{sign}{seconds // _HOUR_S}h{seconds % _HOUR_S // _MINUTE_S:02d}m"
    days = seconds // _DAY_S
    if days < _DAYS:
        return f"{sign}{days}d{seconds % _DAY_S // _HOUR_S:02d}h"
    return f"{sign}{days}d" if days < 100 * _DAYS else f"{'<-' if sign else '>'}99999d"


def age(ms: float | None) -> str:
    """Return a time that is known to a second."""
    return UNKNOWN if ms is None else duration(ms // _SECOND_MS * _SECOND_MS).replace(".0s", "s").replace("0ms", "0s")
