import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from examples.notices import LONGEST_BODY, NotANotification, Notices, lines, main

FAILED = {
    "status": "firing",
    "labels": {"alertname": "StreamgaugeJobFailed", "severity": "critical", "job_name": "departures"},
    "annotations": {"summary": "A job has failed.", "description": "departures has failed."},
    "startsAt": "2026-01-01T00:00:00Z",
}


def notification(*alerts: dict[str, object]) -> bytes:
    """As Alertmanager sends it, with more than is read."""
    return json.dumps({"version": "4", "receiver": "page", "status": "firing", "alerts": alerts}).encode()


def test_an_alert_is_a_line_that_says_what_and_where() -> None:
    """From the job inwards; the description has the figures, so it is what is told."""
    vertex = {"alertname": "StreamgaugeSkew", "vertex_name": "HashAggregate", "job_name": "departures", "job_id": "1"}
    skew = {"status": "resolved", "labels": vertex, "annotations": {"summary": "One subtask has more than the others."}}
    assert lines("page", notification(FAILED, skew)) == [
        "[page] firing StreamgaugeJobFailed: departures: departures has failed.",
        "[page] resolved StreamgaugeSkew: departures / HashAggregate: One subtask has more than the others.",
    ]


def test_an_alert_without_labels_and_words_is_told_all_the_same() -> None:
    """Somebody else's rules may send here too."""
    assert lines("ticket", notification({"status": "firing", "labels": {}})) == [
        "[ticket] firing an alert without a name"
    ]


def test_names_cannot_write_lines_or_drive_a_terminal() -> None:
    """A query's name is anything that its user typed."""
    hostile = FAILED | {
        "labels": {"alertname": "A", "job_name": "a\n[page] firing B\x1b[2J\r\u2028b"},
        "annotations": {},
    }
    assert lines("page", notification(hostile)) == ["[page] firing A: a [page] firing B [2J b"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"alerts": [{"status": 1, "labels": {}}]}', b"\xff"])
def test_what_is_no_notification_is_refused(body: bytes) -> None:
    """With the place of what is wrong."""
    with pytest.raises(NotANotification, match="not a notification of Alertmanager's: "):
        lines("page", body)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def url(told: list[str]) -> Iterator[str]:
    board = Notices("127.0.0.1", 0, told.append)
    yield f"http://{board.address}"
    board.close()


def post(url: str, body: bytes) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_path_says_how_urgent_it_is(url: str, told: list[str]) -> None:
    """It is the receiver's name; what was told is told before the answer, so that nothing is lost unseen."""
    assert post(f"{url}/page", notification(FAILED)) == 200
    assert post(url, notification(FAILED)) == 200
    assert [line.partition(" firing ")[0] for line in told] == ["[page]", "[alert]"]


def test_what_is_refused_is_not_told(url: str, told: list[str]) -> None:
    """Alertmanager repeats what is answered 500, not 400."""
    assert post(f"{url}/page", b"{}") == 400
    with urllib.request.urlopen(f"{url}/-/healthy", timeout=10) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="404"), urllib.request.urlopen(url, timeout=10):
        pass
    assert told == []


@pytest.mark.parametrize("length", [str(LONGEST_BODY + 1), "-1", "many"])
def test_a_body_of_any_length_is_not_read(url: str, length: str) -> None:
    """Who can reach the port must not fill the memory."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"POST /page HTTP/1.0\r\nContent-Length: {length}\r\n\r\n".encode())
        assert b" 413 " in connection.recv(100)


def test_a_closed_board_gives_its_port_back(told: list[str]) -> None:
    """The demo leaves nothing behind."""
    board = Notices("127.0.0.1", 0, told.append)
    port = int(board.address.rpartition(":")[2])
    board.close()
    Notices("127.0.0.1", port, told.append).close()


def test_a_taken_port_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """As the demo's other programs do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--port", str(port)]) == 1
    assert capsys.readouterr() == ("", f"error: cannot listen on 127.0.0.1, port {port}: Address already in use\n")
