"""Reads a collector's REST, as any other client of it would."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import TypeVar

import msgspec
import urllib3

from streamgauge.environment import check_url
from streamgauge.errors import ReadError, SettingError

CONNECT_TIMEOUT_S = 2.0
READ_TIMEOUT_S = 5.0
AT_ONCE = 4
"""Requests under way at a time; with more, client and service only wait for each other on a small machine."""

_TOKEN = re.compile(r"[^\s\x00-\x1f\x7f]*")
_WORDS = 300
"""How much of a refusal's own words is repeated."""

T = TypeVar("T")


class _Refusal(msgspec.Struct):
    errors: list[str] = []


class Rest:
    """
    A collector's REST.

    Args:
        url: http(s)://host:port, with a path in front of the REST's where a proxy adds one.
        token: The read token, sent as a bearer token; None or '' for none.

    Raises:
        SettingError: the URL or the token cannot be used. A token is never repeated in a message.

    `requests` counts what was asked for, `date` is the last answer's header. One thread, apart from `close`.
    """

    def __init__(self, url: str, token: str | None) -> None:
        check_url("--collector", url, "--token")
        self.url = url.rstrip("/")
        self.requests = 0
        self.date: str | None = None
        if not _TOKEN.fullmatch(token or ""):
            raise SettingError("the read token has spaces or control characters in it: no service takes such a one")
        # http.client writes headers in Latin-1; this way it is UTF-8 that travels, which the service reads too.
        self._headers = {"Authorization": f"Bearer {token}".encode().decode("latin-1")} if token else {}
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S), maxsize=AT_ONCE, retries=False
        )

    def get(self, path: str, kind: type[T]) -> T | None:
        """
        Ask for one resource.

        Args:
            path: From '/', with its query.
            kind: What the answer is read as, a msgspec type.

        Returns:
            None where there is no such resource (404).

        Raises:
            ReadError: there is no answer, a refusal, or one that is not of that kind.
        """
        self.requests += 1
        return self._get(path, kind)

    def get_all(self, paths: Sequence[str], kind: type[T]) -> list[T | None]:
        """
        Ask for several resources of one kind, a few at a time.

        Returns:
            What `get` returns for each, in order.

        Raises:
            ReadError: of the first that failed; the rest is not asked for then.
        """
        self.requests += len(paths)
        answers: list[T | None] = [None] * len(paths)
        failures: list[Exception] = []
        todo = iter(range(len(paths)))
        lock = threading.Lock()

        def work() -> None:
            while not failures:
                with lock:
                    index = next(todo, None)
                if index is None:
                    return
                try:
                    answers[index] = self._get(paths[index], kind)
                except Exception as error:  # noqa: BLE001 - carried to the caller's thread, whatever it is
                    failures.append(error)

        # Threads of an executor would be waited for at exit, a slow collector's answer with them.
        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(AT_ONCE, len(paths)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return answers

    def close(self) -> None:
        """Close the connections; any thread."""
        self._pool.clear()

    def _get(self, path: str, kind: type[T]) -> T | None:
        answer = self._request(path)
        self.date = answer.headers.get("Date")
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise self._refused(answer)
        try:
            return msgspec.json.decode(answer.data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self.foreign(f"{path.partition('?')[0]}: {error}") from None

    def _request(self, path: str) -> urllib3.BaseHTTPResponse:
        try:
            try:
                return self._pool.request("GET", self.url + path, headers=self._headers)
            except urllib3.exceptions.ProtocolError:
                # A connection that was kept may be closed by the other side just now: once more, on a new one.
                return self._pool.request("GET", self.url + path, headers=self._headers)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unreachable(error) from None

    def foreign(self, why: str) -> ReadError:
        """Return the error that says that another kind of server answers there."""
        return ReadError(
            f"{self.url} answers, but not as a Streamgauge service ({_one_line(why)}): name the service with "
            "--collector or STREAMGAUGE_URL"
        )

    def _unreachable(self, error: BaseException) -> ReadError:
        return ReadError(
            f"{self.url} cannot be reached ({_one_line(_reason(error))}): start the service there (streamgauge serve), "
            "or name another with --collector or STREAMGAUGE_URL"
        )

    def _refused(self, answer: urllib3.BaseHTTPResponse) -> ReadError:
        if answer.status == 401:
            fault = "does not take this read token" if self._headers else "is read with a token only"
            return ReadError(f"{self.url} {fault}: give the read token with --token or STREAMGAUGE_READ_TOKEN")
        try:
            words = "; ".join(msgspec.json.decode(answer.data, type=_Refusal).errors)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self.foreign(f"HTTP {answer.status}")
        return ReadError(f"{self.url} refuses (HTTP {answer.status}): {_one_line(words)}")


def _reason(error: BaseException) -> str:
    """Return the innermost cause, without the objects that urllib3 names in it."""
    inner = getattr(error, "reason", None)
    if isinstance(inner, BaseException):
        return _reason(inner)
    # A refused connection is a NewConnectionError, which urllib3 counts among the timeouts.
    if isinstance(error, urllib3.exceptions.TimeoutError) and not isinstance(
        error, urllib3.exceptions.NewConnectionError
    ):
        return "no answer in time"
    return str(error).rpartition(": ")[2] or type(error).__name__


def _one_line(text: str) -> str:
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    return line if len(line) <= _WORDS else f"{line[: _WORDS - 1]}…"
