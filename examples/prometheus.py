"""Prometheus and Alertmanager beside the demo: found, set as docker-compose.yml sets them, started and asked."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamgauge.errors import StreamgaugeError

PROMETHEUS_PORT = 9090
ALERTMANAGER_PORT = 9093
RETENTION = "6h"

DASHBOARDS = Path(__file__).resolve().parents[1] / "dashboards"
"""Where the files lie that docker-compose.yml mounts: in a clone its root, in a wheel beside the examples."""

INSTALL_HINT = (
    "install them (Debian and Ubuntu: apt-get install prometheus prometheus-alertmanager; macOS: brew install "
    "prometheus alertmanager; elsewhere: prometheus.io/download) and run this again, or have them in containers: "
    "docker compose up"
)

_PROGRAMS = {"Prometheus": ("prometheus",), "Alertmanager": ("prometheus-alertmanager", "alertmanager")}
"""What each may be called: Debian's name first, where it has one of its own."""

QUERIES = (
    "sum by (job_name) (rate(streamgauge_job_input_rows_total[1m]))",
    "topk(3, max by (job_name, vertex_name) (streamgauge_vertex_busy_ratio))",
    "max by (job_name, operator_name) (streamgauge_operator_watermark_lag_seconds)",
    'ALERTS{alertname=~"Streamgauge.+"}',
)
"""What somebody may like to ask first."""


class PrometheusMissing(StreamgaugeError):
    """Prometheus or Alertmanager is not installed, or has no files to be set by; the message says what to do."""


@dataclass(frozen=True)
class Programs:
    """Paths of the two programs."""

    prometheus: str
    alertmanager: str


@dataclass(frozen=True)
class Addresses:
    """Where each part of the set listens, as host:port."""

    service: str
    notices: str
    prometheus: str
    alertmanager: str


def find(environment: Mapping[str, str]) -> Programs:
    """
    Return the two programs, from PATH.

    Raises:
        PrometheusMissing: naming each that is not there, and how to have it.
    """
    path = environment.get("PATH", "")
    found = {
        name: next(filter(None, (shutil.which(each, path=path) for each in called)), None)
        for name, called in _PROGRAMS.items()
    }
    missing = [name for name, program in found.items() if program is None]
    if missing:
        raise PrometheusMissing(
            f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not installed; {INSTALL_HINT}"
        )
    return Programs(str(found["Prometheus"]), str(found["Alertmanager"]))


def free_addresses(*ports: int) -> list[str]:
    """
    Return a loopback address for each port: with that port, or with any free one where something listens there.

    Debian starts both programs as they are installed, so the usual ports are often taken.

    Raises:
        OSError: there are no free ports.
    """
    # All are held until the last is found, for a port that was given back may be given to the next.
    with contextlib.ExitStack() as held:
        return ["{}:{}".format(*held.enter_context(_listen(port)).getsockname()) for port in ports]


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))


def configure(folder: Path, addresses: Addresses) -> None:
    """
    Write the configuration of both into `folder`: that of docker-compose.yml, with these addresses.

    Raises:
        PrometheusMissing: the files are not here, or speak of other addresses than are known.
    """
    replaced = {
        "prometheus/prometheus.yml": {
            "streamgauge:8081": addresses.service,
            "alertmanager:9093": addresses.alertmanager,
            # Relative to this file. The demo's service asks readers for nothing, and does not look at what they send.
            "/run/secrets/streamgauge_read_token": "read-token",
        },
        "prometheus/streamgauge.rules.yml": {},
        "alertmanager/alertmanager.yml": {"notices:8082": addresses.notices},
    }
    for name, words in replaced.items():
        source = DASHBOARDS / name
        try:
            text = source.read_text(encoding="utf-8")
        except OSError as error:
            raise PrometheusMissing(f"{source}: {error.strerror}; run this in a clone of the project") from None
        for old, new in words.items():
            if old not in text:
                raise PrometheusMissing(f"{source} does not speak of {old}, which is to be {new} here")
            text = text.replace(old, new)
        (folder / source.name).write_text(text, encoding="utf-8")
    (folder / "read-token").write_text("none", encoding="utf-8")


def prometheus_command(programs: Programs, folder: Path, addresses: Addresses) -> list[str]:
    """Return what starts Prometheus, with its data in `folder`, which `configure` has been given."""
    return [
        programs.prometheus,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'prometheus-data'}",
        f"--storage.tsdb.retention.time={RETENTION}",
        f"--web.listen-address={addresses.prometheus}",
        f"--web.external-url=http://{addresses.prometheus}",
        "--log.level=warn",
    ]


def alertmanager_command(programs: Programs, folder: Path, addresses: Addresses) -> list[str]:
    """Return what starts Alertmanager, with its data in `folder`, which `configure` has been given."""
    return [
        programs.alertmanager,
        f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'alertmanager-data'}",
        f"--web.listen-address={addresses.alertmanager}",
        f"--web.external-url=http://{addresses.alertmanager}",
        # Else it listens for others of its kind, on all interfaces.
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
