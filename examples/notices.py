"""The notice board: takes what Alertmanager's webhooks send and tells it, a line an alert."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import msgspec

from streamgauge.errors import StreamgaugeError

DEFAULT_PORT = 8082
LONGEST_BODY = 8 * 1024 * 1024
"""A notification of thousands of alerts has a megabyte or two."""
READ_LIMIT_S = 30.0

_WHERE = ("job_name", "vertex_name", "operator_name", "subtask", "executor_id")
"""Labels that say what an alert is about, from the job inwards."""


class Alert(msgspec.Struct):
    """
    One alert of a notification.

    Source: Alertmanager documentation, "webhook_config", version 4.
    """

    status: str
    labels: dict[str, str]
    annotations: dict[str, str] = {}


class Notification(msgspec.Struct):
    """What a webhook is sent; all else in it is left alone."""

    alerts: list[Alert]


class NotANotification(StreamgaugeError):
    """A body that Alertmanager does not send; the message says what is wrong with it."""


def lines(kind: str, body: bytes) -> list[str]:
    """
    Return a line for each alert: kind, status, name, what it is about, and its description, or else its summary.

    Args:
        kind: What the receiver is called: page, ticket, context.
        body: A notification, JSON.

    Returns:
        Printable text without line breaks, for names of jobs and vertices are their users'.

    Raises:
        NotANotification: the body is none.
    """
    try:
        notification = msgspec.json.decode(body, type=Notification)
    except msgspec.DecodeError as error:
        raise NotANotification(f"not a notification of Alertmanager's: {error}") from None
    return [_line(kind, alert) for alert in notification.alerts]


def _line(kind: str, alert: Alert) -> str:
    where = " / ".join(alert.labels[name] for name in _WHERE if alert.labels.get(name))
    text = alert.annotations.get("description") or alert.annotations.get("summary", "")
    name = alert.labels.get("alertname", "an alert without a name")
    told = ": ".join(filter(None, (f"[{kind}] {alert.status} {name}", where, text)))
    return " ".join("".join(sign if sign.isprintable() else " " for sign in told).split())


class Notices:
    """
    A listening notice board, from construction until `close`.

    Args:
        host: Address to listen on.
        port: 0 takes a free one.
        say: Takes one line; called in a thread for each request.

    Raises:
        OSError: the address cannot be listened on.

    One thread opens and closes it.
    """

    def __init__(self, host: str, port: int, say: Callable[[str], None]) -> None:
        class Handler(_Handler):
            tell = staticmethod(say)

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="notices", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens, as host:port."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def close(self) -> None:
        """Take no more, and give the port back."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    tell: Callable[[str], None]
    timeout = READ_LIMIT_S

    def do_GET(self) -> None:
        self._answer(200 if urlsplit(self.path).path == "/-/healthy" else 404, "")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST_BODY:
            self._answer(413, f"a notification has a length of at most {LONGEST_BODY} bytes")
            return
        kind = urlsplit(self.path).path.strip("/") or "alert"
        try:
            found = lines(kind, self.rfile.read(int(length)))
        except NotANotification as error:
            self._answer(400, str(error))
            return
        for line in found:
            self.tell(line)
        self._answer(200, "")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that http.server calls
        """Say nothing: the board is for alerts."""

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command until SIGINT or SIGTERM; returns its exit code: 1 where it cannot listen, told in one line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.notices", description="What Alertmanager sends, in lines."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one (default %(default)s)")
    options = parser.parse_args(arguments)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        notices = Notices(options.host, options.port, _say)
    except OSError as error:
        print(f"error: cannot listen on {options.host}, port {options.port}: {error.strerror}", file=sys.stderr)
        return 1
    _say(f"notices are taken at http://{notices.address}")
    stopped.wait()
    notices.close()
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
