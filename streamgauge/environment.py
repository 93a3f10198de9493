"""The variables of the environment that Streamgauge reads, and what is said of one that it does not."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from streamgauge.errors import SettingError

PREFIX = "STREAMGAUGE_"

DEFAULT_URL = "http://127.0.0.1:8081"
"""Where a service listens unless it is told otherwise."""

HOOKS = frozenset(
    {
        f"{PREFIX}{name}"
        for name in (
            "ENABLED",
            "URL",
            "TOKEN",
            "INTERVAL_MS",
            "LATENCY_INTERVAL_MS",
            "LATENCY_GRANULARITY",
            "LATENCY_HISTORY_SIZE",
        )
    }
)
"""What the hooks read; `spark_hooks.settings.Settings` is their manual."""

SERVICE = frozenset(
    {
        f"{PREFIX}{name}"
        for name in (
            "HOST",
            "PORT",
            "TOKEN",
            "PUSH_TOKEN",
            "READ_TOKEN",
            "INSECURE",
            "ALLOWED_HOSTS",
            "MAX_PUSH_BYTES",
            "METRICS_MAX_SERIES",
            "ARCHIVE",
            "ARCHIVE_DAYS",
            "ARCHIVE_JOBS",
        )
    }
)
"""What the service reads; `service.config.Config` is its manual."""

_LINK_NAME = re.compile(r"_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$")
_LINK_VALUE = re.compile(r"(tcp|udp|sctp)://")

_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def is_service_link(variable: str, value: str) -> bool:
    """
    Whether a variable is one that Kubernetes puts into every pod beside a Service, and no setting of anyone's.

    Where the Service is called streamgauge, or streamgauge-…, their names have our prefix; its STREAMGAUGE_PORT is
    that of a setting, but tells a URL such as tcp://10.0.0.11:8081.

    Source: Kubernetes documentation, "Service: Environment variables", and Docker's container links before it.
    """
    return bool(_LINK_NAME.search(variable)) or (variable.endswith("_PORT") and bool(_LINK_VALUE.match(value)))


def refuse_unknown(environ: Mapping[str, str]) -> None:
    """
    Refuse a variable that is nobody's: hooks and service share the environment of a container or a shell. What
    Kubernetes tells there of Services is left alone.

    Raises:
        SettingError: naming the nearest known one.
    """
    known = HOOKS | SERVICE
    for variable, value in environ.items():
        if variable.startswith(PREFIX) and variable not in known and not is_service_link(variable, value):
            raise SettingError(f"unknown setting {variable}{nearest(variable, known)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the remedy for an unknown setting: '; did you mean …?', or all that are known."""
    names = sorted(known)
    found = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {found[0]}?" if found else f"; there are {', '.join(names)}"


def check_url(name: str, url: str, token: str) -> None:
    """
    Refuse what cannot be the URL of a collector.

    Args:
        name: Of the setting.
        token: Where its token is given, instead of a password in the URL.

    Raises:
        SettingError: without repeating a password.
    """
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if "@" in url:
        raise SettingError(f"{name}: expected no user and password in it; the collector's token is {token}")
    if not fits or re.search(r"[\s?#]", url):
        raise SettingError(f"{name} {url!r}: expected http://host:port or https://host:port of a collector")


def truth(name: str, value: str) -> bool:
    """
    Return what true, 1, yes, false, 0 or no mean, in any case.

    Raises:
        SettingError: it is none of these.
    """
    try:
        return _TRUTHS[value.lower()]
    except KeyError:
        raise SettingError(f"{name}={value!r}: true or false was expected") from None
