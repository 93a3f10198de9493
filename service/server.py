"""Serving: a socket that is ours, uvicorn on it, and an end that is clean."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

import uvicorn
from fastapi import FastAPI

from collector.archive import Archive, KeepArchived, open_archive
from collector.store import MetricStore
from service.app import create_app
from service.config import MAX_REQUEST_LINE_BYTES, NO_ARCHIVE, Config
from streamgauge.clock import Clock, SystemClock
from streamgauge.errors import SettingError

_BACKLOG = 1024
_KEEP_ALIVE_S = 75
"""Longer than a usual scrape interval, so that a Prometheus keeps its connection."""
_GRACE_S = 5
"""How long requests under way may take once the service is told to stop."""
_HEADER_ROOM = 16 * 1024


def serve(config: Config, announce: Callable[[str], None]) -> None:
    """
    Serve until SIGINT or SIGTERM, then end with SystemExit(0); main thread only.

    Args:
        config: Where to listen, and all else.
        announce: Called once with the URL, when requests are answered.

    Raises:
        SettingError: the address cannot be listened on, or the archive not be used; one line, with the remedy.
    """
    listener = listen(config.host, config.port)
    # What uvicorn catches it raises again when it is done. These turn that into a clean end, and a signal that
    # comes before uvicorn catches any as well.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _exit)
    clock = SystemClock()
    with contextlib.closing(listener), _archive(config, clock) as archive:
        app = create_app(config, MetricStore(), clock, archive=archive)
        _Server(app, lambda: announce(url(config.host, listener))).run(sockets=[listener])


@contextlib.contextmanager
def _archive(config: Config, clock: Clock) -> Iterator[Archive | None]:
    if config.archive == NO_ARCHIVE:
        yield None
        return
    archive = open_archive(config.archive, clock, KeepArchived(config.archive_days, config.archive_jobs))
    with contextlib.closing(archive):
        yield archive


def _exit(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)


class _Server(uvicorn.Server):
    def __init__(self, app: FastAPI, started: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                ws="none",
                lifespan="on",
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_GRACE_S,
                h11_max_incomplete_event_size=MAX_REQUEST_LINE_BYTES + _HEADER_ROOM,
                backlog=_BACKLOG,
            )
        )
        self._announce = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()


def listen(host: str, port: int) -> socket.socket:
    """
    Bind a socket.

    Args:
        host: Name or address; '' for all IPv4 interfaces.
        port: 0 for a free one.

    Raises:
        SettingError: the name does not resolve, the address is not this machine's, or the port is taken or
            needs privileges.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingError(f"--host {host}: {error.strerror or error}") from None
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Two services that may share an address at bind() differ at listen(): this is where the second one fails.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingError(
                f"port {port} on {host} is taken: stop what listens there, or choose another with --port"
            ) from None
        raise SettingError(f"cannot listen on {host}, port {port}: {error.strerror}") from None
    return listener


def url(host: str, listener: socket.socket) -> str:
    """Return the address to open in a browser; loopback where all interfaces are listened on."""
    bound, port = listener.getsockname()[:2]
    if host and not _is_address(host):
        return f"http://{host}:{port}"
    address = ipaddress.ip_address(bound)
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
