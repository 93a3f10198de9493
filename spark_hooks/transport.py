"""HTTP to what may be no collector at all: every push is over within a bound, and so is what is read of its answer."""

from __future__ import annotations

import http.client
import io
import re
import signal
import socket
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from spark_hooks.pusher import Outcome
from streamgauge import wire

CONNECT_S = 2.0
"""How long a connection may take to be made."""

ANSWER_S = 20.0
"""How long a push may take to be sent, and then its whole answer to arrive, even drop by drop. A collector that takes
10 s is slow, not gone: giving it up would have it take the same in again and again."""

WORDS_BYTES = 4_096
"""What is read of an answer; of a longer one the rest stays unread, and the connection is closed."""

WORDS_CHARS = 200
"""What is repeated of an answer in the driver's log."""

_MARKUP = re.compile(r"<(style|script)\b.*?(?:</\1>|\Z)|<[^>]*(?:>|\Z)", re.DOTALL | re.IGNORECASE)


class HttpTransport:
    """
    Carries pushes to a collector; redirects are not followed. One thread.

    Args:
        url: http(s)://host:port of the collector.
        token: Sent as a bearer token where there is one, and never repeated.
    """

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url.rstrip("/") + wire.PUSH_PATH
        self._token = token
        self._headers = {"Content-Type": wire.CONTENT_TYPE}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._tls: ssl.SSLContext | None = None
        self._connection: http.client.HTTPConnection | None = None

    def send(self, body: bytes) -> tuple[Outcome, str, float]:
        """Push once; never raises. The calling thread gets no SIGPIPE from here on."""
        if hasattr(signal, "pthread_sigmask"):
            # Python ignores it, but scripts put it back so that `| head` ends them; a collector that hangs up must not.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPIPE])
        try:
            answer, text = self._answered(body)
        except (http.client.HTTPException, OSError, ValueError) as error:
            self.close()
            return "unreachable", self._words(str(error) or type(error).__name__), 0.0
        if answer.status == 202:
            return "accepted", "", 0.0
        words = self._words(f"HTTP {answer.status} {_text(answer, text)}")
        if answer.status == 409:
            return "resend", words, 0.0
        if answer.status in (400, 413):
            return "rejected", words, 0.0
        if answer.status in (429, 503):
            pause = answer.headers.get("Retry-After", "")
            return "overloaded", words, float(pause) if pause.isdecimal() else 0.0
        return ("unreachable" if answer.status >= 500 else "refused"), words, 0.0

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _answered(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        held = self._connection
        if held is not None and held.sock is not None:
            try:
                return self._exchange(held, body)
            except ConnectionError:
                # Servers close a connection that idles, and it may be while this push is on its way.
                self.close()
        return self._exchange(self._connect(), body)

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self._url)
        host = parts.hostname or ""
        if parts.scheme == "https":
            self._tls = self._tls or ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(host, parts.port, timeout=CONNECT_S, context=self._tls)
        else:
            self._connection = http.client.HTTPConnection(host, parts.port, timeout=CONNECT_S)
        self._connection.response_class = _Answer
        self._connection.connect()
        return self._connection

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        connection.sock.settimeout(ANSWER_S)
        connection.request("POST", urlsplit(self._url).path, body, self._headers)
        answer = connection.getresponse()
        text = answer.read(WORDS_BYTES)
        if not answer.isclosed() and answer.read(1):
            answer.close()
            self.close()
        elif answer.length:
            raise http.client.IncompleteRead(text, answer.length)
        return answer, text

    def _words(self, text: str) -> str:
        """What others wrote, as one line fit for a log: printable, short, without our token."""
        line = "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))
        if self._token:
            line = line.replace(self._token, "[token]")
        return line if len(line) <= WORDS_CHARS else f"{line[: WORDS_CHARS - 1]}…"


class _Answer(http.client.HTTPResponse):
    """An answer that must be there in whole within ANSWER_S."""

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp = io.BufferedReader(_Deadline(sock, self.fp.detach()))


class _Deadline(io.RawIOBase):
    """
    Reads a socket until ANSWER_S from now.

    A socket's own timeout begins anew with every byte, so a server that drips would hold its reader for ever.
    """

    def __init__(self, sock: socket.socket, stream: io.RawIOBase) -> None:
        self._sock = sock
        self._stream = stream
        self._end = time.monotonic() + ANSWER_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._end - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self._sock.settimeout(left)
            return self._stream.readinto(buffer)
        except TimeoutError:
            raise TimeoutError(f"no whole answer within {ANSWER_S:g} s") from None

    def close(self) -> None:
        self._stream.close()
        super().close()


def _text(answer: http.client.HTTPResponse, body: bytes) -> str:
    """The answer's words; of a page without its markup, which would fill a line with nothing."""
    text = body.decode("utf-8", "replace")
    return _MARKUP.sub(" ", text) if "html" in answer.headers.get("Content-Type", "").lower() else text
