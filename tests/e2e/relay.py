"""A listener between a driver and the service that keeps every push."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3


@dataclass
class Relay:
    """What was pushed through it; `url` is where to push to."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def relaying(service: str) -> Iterator[Relay]:
    """Pass on to `service` what is pushed, and its answer."""
    relay = Relay()
    http = urllib3.PoolManager(timeout=10.0, retries=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            relay.bodies.append(body)
            answer = http.request(
                "POST", service + self.path, body=body, headers={"Content-Type": self.headers["Content-Type"]}
            )
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.data)))
            self.end_headers()
            self.wfile.write(answer.data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    relay.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        http.clear()
