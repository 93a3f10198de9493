"""Reading REST: connections, limits, and what is said of a URL or a token that cannot be used."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from streamgauge.errors import ReadError, SettingError
from streamgauge.rest import Rest


@contextmanager
def answering(status: int = 200, body: bytes = b"7", once: bool = False) -> Iterator[tuple[str, list[str]]]:
    """
    A server that answers everything alike, or one request a connection; its URL, and what came as Authorization.
    """
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        answered = 0

        def do_GET(self) -> None:
            if once and self.answered:
                self.close_connection = True
                return
            self.answered += 1
            seen.append(self.headers.get("Authorization", ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_many_resources_come_in_the_order_asked_for() -> None:
    """Some at a time; each is counted."""
    with answering(body=b'{"a":1}') as (url, seen):
        rest = Rest(f"{url}/", None)
        assert rest.get_all([f"/{number}" for number in range(20)], dict[str, int]) == [{"a": 1}] * 20
        assert rest.get_all([], int) == []
        assert (rest.requests, len(seen)) == (20, 20)
        rest.close()


def test_what_is_not_there_is_none() -> None:
    """One of many may have gone meanwhile."""
    with answering(404, b"") as (url, _):
        rest = Rest(url, None)
        assert (rest.get("/x", int), rest.get_all(["/x", "/y"], int)) == (None, [None, None])
        rest.close()


def test_a_failure_of_one_of_many_is_raised() -> None:
    """In the thread that asked."""
    with answering(500, b'{"errors":["no"]}') as (url, _):
        rest = Rest(url, None)
        with pytest.raises(ReadError, match=r"refuses \(HTTP 500\): no"):
            rest.get_all(["/x", "/y"], int)
        rest.close()


def test_a_redirect_is_not_followed() -> None:
    """The token would go along."""
    with answering(302, b"") as (url, seen):
        rest = Rest(url, None)
        with pytest.raises(ReadError, match=r"answers, but not as a Streamgauge service \(HTTP 302\)"):
            rest.get("/x", int)
        assert len(seen) == 1
        rest.close()


def test_a_connection_that_is_closed_under_a_request_is_no_failure() -> None:
    """A service that is tired of idle connections: asked once more, on a new one."""
    with answering(once=True) as (url, seen):
        rest = Rest(url, None)
        assert [rest.get("/x", int) for _ in range(5)] == [7] * 5
        assert len(seen) == 5
        rest.close()


def test_the_token_is_sent_as_utf_8() -> None:
    """And only where there is one."""
    with answering() as (url, seen):
        for token in ("sécret", "", None):
            rest = Rest(url, token)
            rest.get("/x", int)
            rest.close()
    assert [each.encode("latin-1").decode() for each in seen] == ["Bearer sécret", "", ""]


def test_a_wrong_token_is_told_from_a_missing_one() -> None:
    """Neither message repeats it."""
    with answering(401, b"{}") as (url, _):
        for token, said in (("secret", "does not take this read token"), (None, "is read with a token only")):
            rest = Rest(url, token)
            with pytest.raises(ReadError, match=f"{said}: give the read token with --token or ") as error:
                rest.get("/x", int)
            assert "secret" not in str(error.value)
            rest.close()


def test_nobody_there_is_one_line_with_the_reason_and_the_remedy() -> None:
    """The port was just given back."""
    with answering() as (url, _):
        pass
    rest = Rest(url, None)
    with pytest.raises(ReadError) as error:
        rest.get("/x", int)
    assert str(error.value).startswith(f"{url} cannot be reached ([Errno ")
    assert str(error.value).endswith(
        "): start the service there (streamgauge serve), or name another with --collector or STREAMGAUGE_URL"
    )


@pytest.mark.parametrize(
    "url", ["", "localhost:8081", "ftp://x", "http://", "http://x:0", "http://x:99999", "http://x/?a", "http://x y"]
)
def test_a_url_that_cannot_be_one_is_refused(url: str) -> None:
    """With what is expected."""
    with pytest.raises(SettingError, match=r"--collector .*: expected http://host:port"):
        Rest(url, None)


def test_neither_password_nor_token_is_repeated() -> None:
    """What is refused ends up in terminals and logs."""
    for url, token in (("http://me:secret@x", None), ("http://x", "sec ret"), ("http://x", "secret\n")):
        with pytest.raises(SettingError) as error:
            Rest(url, token)
        assert "sec" not in str(error.value)
