"""Every setting of the service, and the limits that are none."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

import platformdirs

from streamgauge.environment import PREFIX, is_service_link, refuse_unknown, truth
from streamgauge.errors import SettingError

REFRESH_INTERVAL_MS = 3_000
"""How often pages that speak Flink's REST are told to ask again; Flink's default."""
PUSHES_AT_ONCE = 64
"""Pushes being read or written at a time; one more is answered 429."""
PUSH_BYTES_AT_ONCE = 256 * 1024 * 1024
"""Bytes of all their bodies; the push that goes past it is answered 429, unless it is the only one."""
BODY_TIMEOUT_S = 30
"""A push whose body takes longer to arrive is answered 408, so that slow senders cannot hold every place."""
THREAD_FROM_BYTES = 256 * 1024
"""Pushes from this size on are taken in by a worker thread; below it the event loop is faster."""
MAX_REQUEST_LINE_BYTES = 64 * 1024
"""Longest request target that is read; a longer one is answered 414."""
SWEEP_INTERVAL_S = 1.0
"""How often silent drivers are looked for, and what is past its time is dropped."""
JOB_STATE_RETENTION_MS = 15 * 60 * 1000
"""How long after its end a job's state stays in /metrics, so that alerts can see it."""


NO_ARCHIVE = "none"
"""What --archive is where ended jobs are not kept."""


def default_archive() -> str:
    """
    Return where ended jobs are kept unless told otherwise: archive.db in this user's folder of state.

    That is ~/.local/state/streamgauge, or $XDG_STATE_HOME/streamgauge, on Linux.
    """
    return str(platformdirs.user_state_path("streamgauge") / "archive.db")


@dataclass(frozen=True)
class Config:
    """
    The service's settings: options of `streamgauge serve`, else the environment, else these defaults.

    | option            | environment               | default    | meaning                                     |
    |-------------------|---------------------------|------------|---------------------------------------------|
    | `--host`          | STREAMGAUGE_HOST          | 127.0.0.1  | Address to listen on; 0.0.0.0 or :: for all |
    | `--port`          | STREAMGAUGE_PORT          | 8081       | 0 to 65535; 0 takes a free one              |
    | `--push-token`    | STREAMGAUGE_PUSH_TOKEN    | none       | What a push must carry as its Bearer token; |
    |                   | or STREAMGAUGE_TOKEN      |            | empty is none                               |
    | `--read-token`    | STREAMGAUGE_READ_TOKEN    | none       | What reads must carry, as Bearer token or   |
    |                   |                           |            | Basic password; pushes and probes need none |
    | `--insecure`      | STREAMGAUGE_INSECURE      | false      | Listen beyond loopback without a token      |
    | `--allowed-host`  | STREAMGAUGE_ALLOWED_HOSTS | none       | Further names in the Host header; in the    |
    |                   |                           |            | environment separated by commas             |
    | `--max-push-bytes`| STREAMGAUGE_MAX_PUSH_BYTES| 33554432   | Longest body of a push; longer is 413       |
    | `--metrics-max-series`                        | 250000     | Series of a page that Prometheus scrapes;   |
    |                   | STREAMGAUGE_METRICS_MAX_SERIES         | what would be more is told less finely      |
    | `--archive`       | STREAMGAUGE_ARCHIVE       | a file of  | Where ended jobs are kept: the path of a    |
    |                   |                           | the user's | SQLite file, sqlite:///path,                |
    |                   |                           |            | postgresql://user:password@host/database,   |
    |                   |                           |            | or none; see `default_archive`              |
    | `--archive-days`  | STREAMGAUGE_ARCHIVE_DAYS  | 7          | Days that an ended run is kept there        |
    | `--archive-jobs`  | STREAMGAUGE_ARCHIVE_JOBS  | 1000       | Ended runs of queries that are kept at      |
    |                   |                           |            | most, and as many of batch executions       |

    Beyond loopback a push token is needed, for anyone who can reach the port could write; `--insecure` says that
    this is meant. See `service.doors` for which Host headers are answered.
    """

    host: str = "127.0.0.1"
    port: int = 8081
    push_token: str = ""
    insecure: bool = False
    allowed_hosts: tuple[str, ...] = ()
    max_push_bytes: int = 32 * 1024 * 1024
    read_token: str = ""
    metrics_max_series: int = 250_000
    archive: str = field(default_factory=default_archive)
    archive_days: int = 7
    archive_jobs: int = 1_000

    def __post_init__(self) -> None:
        """
        Refuse what is out of range or unsafe.

        Raises:
            SettingError: in one line, with the remedies.
        """
        if not 0 <= self.port <= 65535:
            raise SettingError(f"port {self.port}: a port is a number from 0 to 65535")
        if self.max_push_bytes < 1:
            raise SettingError(f"max-push-bytes {self.max_push_bytes}: a push needs at least 1 byte")
        if self.metrics_max_series < 1:
            raise SettingError(f"metrics-max-series {self.metrics_max_series}: a page needs at least 1 series")
        for name, value, unit in (
            ("archive-days", self.archive_days, "day"),
            ("archive-jobs", self.archive_jobs, "job"),
        ):
            if value < 1:
                raise SettingError(f"{name} {value}: at least 1 {unit} is kept; --archive none keeps nothing")
        if not is_loopback(self.host) and not self.push_token and not self.insecure:
            raise SettingError(
                f"--host {self.host or '(all interfaces)'} is open to the network, where anyone could push: set a "
                f"token (--push-token or {PREFIX}PUSH_TOKEN), stay on --host 127.0.0.1, or say --insecure"
            )

    @classmethod
    def read(cls, environ: Mapping[str, str], **options: object) -> Config:
        """
        Read the settings once, before the service exists.

        Args:
            environ: Usually `os.environ`.
            options: Fields of Config by name, as from the command line; None, or (), where not given.

        Raises:
            SettingError: an unknown STREAMGAUGE_ name (with the nearest known one), or a value that does not
                parse (with what was expected).
        """
        refuse_unknown(environ)
        settings: dict[str, object] = {}
        for variable, (name, parse) in _VARIABLES.items():
            value = environ.get(variable, "")
            if value and not is_service_link(variable, value):
                settings[name] = parse(variable, value)
        settings.update({name: value for name, value in options.items() if value is not None and value != ()})
        return cls(**settings)  # type: ignore[arg-type]


def is_loopback(host: str) -> bool:
    """Tell whether a name or address means this machine only; '' means all interfaces."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _text(_variable: str, value: str) -> str:
    return value


def _whole(variable: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise SettingError(f"{variable}={value!r}: a whole number was expected") from None


def _list(_variable: str, value: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in value.split(",") if word.strip())


# Later entries win: the service's own token goes before the one it shares with the hooks.
_VARIABLES = {
    PREFIX + "HOST": ("host", _text),
    PREFIX + "PORT": ("port", _whole),
    PREFIX + "TOKEN": ("push_token", _text),
    PREFIX + "PUSH_TOKEN": ("push_token", _text),
    PREFIX + "READ_TOKEN": ("read_token", _text),
    PREFIX + "INSECURE": ("insecure", truth),
    PREFIX + "ALLOWED_HOSTS": ("allowed_hosts", _list),
    PREFIX + "MAX_PUSH_BYTES": ("max_push_bytes", _whole),
    PREFIX + "METRICS_MAX_SERIES": ("metrics_max_series", _whole),
    PREFIX + "ARCHIVE": ("archive", _text),
    PREFIX + "ARCHIVE_DAYS": ("archive_days", _whole),
    PREFIX + "ARCHIVE_JOBS": ("archive_jobs", _whole),
}
