"""What may listen where a collector should, and does not behave as one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import urllib3

PAGE = (
    b"<!DOCTYPE html>\n<html>\n<head><title>%b</title></head>\n<body>\n"
    + b"<p>so sorry</p>\n" * 5_000
    + b"</body></html>"
)


class Faulty:
    """
    Takes requests at a port of 127.0.0.1 and does with each what `answer` does. Does not check what it is sent.

    `requests` and `answered` count from the start; `close` hangs up on everybody and frees the port.
    """

    def __init__(self, answer: Callable[[Faulty, socket.socket, bytes], None]) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.closed = threading.Event()
        self.methods: list[str] = []
        self.answered = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while True:
                method, body = _request(connection)
                if not method:
                    return
                self.methods.append(method)
                self._answer(self, connection, body)
                self.answered += 1

    def close(self) -> None:
        self.closed.set()
        for each in (self._listener, *self._connections):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _request(connection: socket.socket) -> tuple[str, bytes]:
    """The method and body of the next request; '' at the end."""
    read = b""
    while b"\r\n\r\n" not in read:
        more = connection.recv(65536)
        if not more:
            return "", b""
        read += more
    head, _, body = read.partition(b"\r\n\r\n")
    lengths = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0]) if lengths else 0
    while len(body) < length:
        body += connection.recv(65536)
    return head.partition(b" ")[0].decode(), body


Answer = Callable[[Faulty, socket.socket, bytes], None]


def answering(status: str, body: bytes = b"", *headers: str) -> Answer:
    """Answer always the same."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]).encode()
    return lambda server, connection, _: connection.sendall(head + body)


def page(status: str) -> Answer:
    """Answer with a long page, as proxies and frameworks do."""
    return answering(status, PAGE % status.encode(), "Content-Type: text/html; charset=utf-8")


def silent(server: Faulty, connection: socket.socket, body: bytes) -> None:
    """Never answer."""
    server.closed.wait()


def dripping(server: Faulty, connection: socket.socket, body: bytes) -> None:
    """Answer with a byte ten times a second, without end."""
    connection.sendall(b"HTTP/1.1 202 Accepted\r\nX: ")
    while not server.closed.wait(0.1):
        connection.sendall(b"x")


def hanging_up(server: Faulty, connection: socket.socket, body: bytes) -> None:
    """Close the connection at once."""
    connection.shutdown(socket.SHUT_RDWR)


def slow(collector: str, seconds: float) -> Answer:
    """Hand requests on to a real collector, and its answers back after a while."""
    http = urllib3.PoolManager(retries=False)

    def answer(server: Faulty, connection: socket.socket, body: bytes) -> None:
        headers = {"Content-Type": "application/msgpack"}
        told = http.request("POST", f"{collector}/push/v1/frames", body=body, headers=headers)
        server.closed.wait(seconds)
        head = f"HTTP/1.1 {told.status} Told\r\nContent-Length: {len(told.data)}\r\n\r\n"
        connection.sendall(head.encode() + told.data)

    return answer
