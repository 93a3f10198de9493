"""Stands between a client and the service: passes every request on, and remembers it with its answer."""

from __future__ import annotations

import mimetypes
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import urllib3

TIMEOUT_S = 30.0
CONNECTIONS = 16
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class Exchange:
    """
    One request that was passed on, and what the service answered.

    Args:
        target: Path and query as the client sent them.
    """

    method: str
    target: str
    status: int
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


class Proxy:
    """
    The server; any thread.

    Args:
        upstream: The service's URL.
        files: Paths that are answered from here, with what is in them; '/' is '/index.html'. They are not remembered.
    """

    def __init__(self, upstream: str, files: Mapping[str, bytes]) -> None:
        self.exchanges: list[Exchange] = []
        http = urllib3.PoolManager(timeout=TIMEOUT_S, retries=False, maxsize=CONNECTIONS)
        exchanges = self.exchanges

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self) -> None:
                name = urlsplit(self.path).path
                name = "/index.html" if name == "/" else name
                file = files.get(name)
                if self.command == "GET" and file is not None:
                    kind = mimetypes.guess_type(name)[0]
                    self.answer(200, kind or "application/octet-stream", file)
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                kept = ("Accept", "Authorization", "Content-Type")
                headers = {name: self.headers[name] for name in kept if name in self.headers}
                answer = http.request(self.command, upstream + self.path, body=body, headers=headers)
                exchanges.append(Exchange(self.command, self.path, answer.status, answer.data))
                self.answer(answer.status, answer.headers["Content-Type"], answer.data)

            def answer(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's own name
                """Nothing: what was asked is in `exchanges`."""

        for method in METHODS:
            setattr(Handler, f"do_{method}", Handler.pass_on)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http = http
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; a request under way may still be answered."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._http.clear()


@contextmanager
def proxying(upstream: str, files: Mapping[str, bytes] | None = None) -> Iterator[Proxy]:
    """Run a proxy; see `Proxy` for the arguments."""
    proxy = Proxy(upstream, {} if files is None else files)
    try:
        yield proxy
    finally:
        proxy.close()
