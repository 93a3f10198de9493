"""What every check of a frame does: lengths, ids, bounds, and the words of a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sized

from collector.limits import Limits
from streamgauge import wire
from streamgauge.errors import FrameTooLarge, InvalidName, MalformedFrame

_ID = re.compile(r"[0-9a-f]{32}")
_SHOWN_CHARS = 80


def shown(text: str) -> str:
    """Return untrusted text as messages show it: quoted, at most 80 characters; any thread."""
    return repr(text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…")


class Checks:
    """
    Refuses what is past the limits or no id.

    Holds no state but the limits: any thread.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def _scalars(self, where: str, metrics: Mapping[str, wire.Scalar]) -> None:
        self._bound(where, "scalars", metrics)
        for metric, value in metrics.items():
            self._metric(where, metric)
            if isinstance(value, str):
                self._length(where, f"metric {shown(metric)}", value, "text_chars")

    def _metric(self, where: str, metric: str) -> None:
        if not 0 < len(metric) <= self._limits.metric_chars:
            raise InvalidName(
                f"{where}: metric name {shown(metric)} has {len(metric)} characters, expected 1 to "
                f"{self._limits.metric_chars}: shorten it or raise the limit metric_chars"
            )

    def _id(self, where: str, what: str, value: str) -> None:
        if not _ID.fullmatch(value):
            raise MalformedFrame(f"{where}: {what} is {shown(value)}, expected 32 lower-case hex digits")

    def _name(self, where: str, what: str, value: str) -> None:
        if not value:
            raise InvalidName(f"{where}: {what} is empty, expected 1 to {self._limits.name_chars} characters")
        self._length(where, what, value, "name_chars")

    def _length(self, where: str, what: str, value: str, limit: str) -> None:
        allowed: int = getattr(self._limits, limit)
        if len(value) > allowed:
            raise InvalidName(
                f"{where}: {what} {shown(value)} has {len(value)} characters, at most {allowed} are taken: "
                f"shorten it or raise the limit {limit}"
            )

    def _bound(self, where: str, what: str, items: Sized) -> None:
        allowed: int = getattr(self._limits, what)
        if len(items) > allowed:
            raise FrameTooLarge(
                f"{where}: {len(items)} {what}, at most {allowed} are taken: send fewer or raise the limit {what}"
            )

    def _unique(self, where: str, what: str, ids: Iterable[str]) -> None:
        seen: set[str] = set()
        for one in ids:
            if one in seen:
                raise MalformedFrame(f"{where}: {what} {shown(one)} is there twice, expected once")
            seen.add(one)
