"""How the hooks are set, and by whom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import cast, get_args

from streamgauge import wire
from streamgauge.buckets import DEFAULT_HISTORY_SIZE
from streamgauge.environment import DEFAULT_URL, PREFIX, check_url, nearest, refuse_unknown, truth
from streamgauge.errors import SettingError

CONF_PREFIX = "spark.streamgauge."

_TOKEN = re.compile(r"[\x21-\x7e]*")


@dataclass(frozen=True, slots=True)
class Settings:
    """
    The hooks' settings; `streamgauge.attach` is their manual, and tells which source beats which.

    Args:
        url: Where the collector listens; http or https, without a password in it.
        token: Sent as a bearer token; needed where the collector asks for one. Visible ASCII characters.
        interval_ms: Between two pushes, 100 to 60000.
        enabled: False leaves the driver alone.
        latency_interval_ms: Between two latency markers of a source, 100 to 3600000; 0 emits none.
        latency_granularity: What latencies are told apart by: single, operator or subtask.
        latency_history_size: Latest values that latency statistics are made of, 1 to 10000.
    """

    url: str = DEFAULT_URL
    token: str | None = field(default=None, repr=False)
    interval_ms: int = 1000
    enabled: bool = True
    latency_interval_ms: int = 2000
    latency_granularity: wire.LatencyGranularity = "operator"
    latency_history_size: int = DEFAULT_HISTORY_SIZE

    def __post_init__(self) -> None:
        """
        Refuse what cannot work.

        Raises:
            SettingError: naming the setting; neither a token nor a password is repeated.
        """
        check_url("url", self.url, "`token`")
        if not _TOKEN.fullmatch(self.token or ""):
            raise SettingError("token: expected visible ASCII characters only, without spaces or line breaks")
        if not 100 <= self.interval_ms <= 60_000:
            raise SettingError(f"interval_ms {self.interval_ms}: expected milliseconds between 100 and 60000")
        if self.latency_interval_ms and not 100 <= self.latency_interval_ms <= 3_600_000:
            raise SettingError(
                f"latency_interval_ms {self.latency_interval_ms}: expected milliseconds between 100 and 3600000, or 0 "
                "for no latency markers"
            )
        if not 1 <= self.latency_history_size <= 10_000:
            raise SettingError(f"latency_history_size {self.latency_history_size}: expected 1 to 10000 values")

    @classmethod
    def read(cls, arguments: Mapping[str, object], conf: Mapping[str, str], environment: Mapping[str, str]) -> Settings:
        """
        Bring the three sources together.

        Args:
            arguments: Of `attach` or of an option, by name; None where not given.
            conf: Spark's configuration, of which spark.streamgauge.* is read.
            environment: Of which STREAMGAUGE_* is read; the service's own names are left alone.

        Raises:
            SettingError: a setting is unknown (with the nearest known one), or a value does not fit.
        """
        known = [setting.name for setting in fields(cls)]
        refuse_unknown(environment)
        for name in arguments:
            if name not in known:
                raise SettingError(f"attach({name}=…) is no setting{nearest(name, known)}")
        found = {name: value for name, value in arguments.items() if value is not None}
        for key, value in conf.items():
            if key.startswith(CONF_PREFIX):
                name = key.removeprefix(CONF_PREFIX)
                if name not in known:
                    raise SettingError(f"{key} is no setting{nearest(key, [CONF_PREFIX + each for each in known])}")
                found[name] = value
        for name in known:
            value = environment.get(f"{PREFIX}{name.upper()}", "")
            if value:
                found[name] = value
        return cls(
            url=str(found.get("url", DEFAULT_URL)),
            token=None if found.get("token") is None else str(found["token"]),
            interval_ms=_whole("interval_ms", found.get("interval_ms", 1000)),
            enabled=truth("enabled", str(found.get("enabled", True))),
            latency_interval_ms=_whole("latency_interval_ms", found.get("latency_interval_ms", 2000)),
            latency_granularity=_granularity(found.get("latency_granularity", "operator")),
            latency_history_size=_whole(
                "latency_history_size", found.get("latency_history_size", DEFAULT_HISTORY_SIZE)
            ),
        )


def _granularity(value: object) -> wire.LatencyGranularity:
    for known in get_args(wire.LatencyGranularity):
        if value == known:
            return cast(wire.LatencyGranularity, known)
    raise SettingError(f"latency_granularity {value!r}: expected single, operator or subtask")


def _whole(name: str, value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise SettingError(f"{name} {value!r}: expected a whole number") from None
