"""One body shape for every failure, endpoint by endpoint, and one status for every error."""

from __future__ import annotations

from typing import Any

import pytest

from service import errors as service_errors
from service.errors import JSON, TABLE, answer
from service.flink import rest
from streamgauge import errors, wire

JOB, VERTEX = "0" * 32, "1" * 32
NOT_FOUND = "org.apache.flink.runtime.rest.NotFoundException: "
HANDLER = "org.apache.flink.runtime.rest.handler.RestHandlerException: "
PARAMETERS = f"{HANDLER}Bad request, could not parse parameters: "

ROWS: list[tuple[errors.CollectorError, int, str]] = [
    (errors.MalformedFrame("m"), 400, "m"),
    (errors.UnsupportedVersion("m"), 400, "m"),
    (errors.InvalidName("m"), 400, "m"),
    (errors.Unauthorized("m"), 401, "m"),
    (errors.NeedsFullFrame("m"), 409, "m"),
    (errors.WrongType("m"), 415, "m"),
    (errors.UnknownJob(JOB), 404, f"{NOT_FOUND}Job {JOB} not found"),
    (errors.UnknownVertex(VERTEX), 404, f"{NOT_FOUND}JobVertex {VERTEX} not found"),
    (errors.UnknownSubtask(VERTEX), 404, f"{HANDLER}Invalid subtask index for vertex {VERTEX}"),
    (errors.UnknownAttempt(1, 2, "Scan (1/3)"), 404, f"{HANDLER}Attempt 1 not found in subtask Scan (1/3)"),
    (errors.UnknownTaskManager("x"), 404, f"{NOT_FOUND}TaskManager x not found"),
    (service_errors.Missing(HANDLER, "m"), 404, f"{HANDLER}m"),
    (
        errors.UnresolvableParameter("path", "jobid", "xyz"),
        400,
        f'{PARAMETERS}Cannot resolve path parameter (jobid) from value "xyz".',
    ),
    (errors.Overloaded("m", 7), 503, "m"),
    (errors.FrameTooLarge("m"), 413, "m"),
    (errors.ArchiveError("m"), 500, "m"),
    (errors.ArchiveAway("m"), 503, "m"),
    (
        errors.CorruptSegment(JOB, VERTEX, "its end is missing", "restore it"),
        500,
        f"Job {JOB}, run {VERTEX}, cannot be read from the archive: its end is missing; restore it",
    ),
    (service_errors.UnauthorizedRead("m"), 401, "m"),
    (service_errors.ForbiddenHost("m"), 403, "m"),
    (service_errors.ForbiddenOrigin("m"), 403, "m"),
    (service_errors.BodyTimeout("m"), 408, "m"),
    (service_errors.TooManyPushes("m", 1), 429, "m"),
]


def leaves(kind: type[errors.CollectorError]) -> set[type[errors.CollectorError]]:
    below = {leaf for each in kind.__subclasses__() for leaf in leaves(each)}
    return below or {kind}


@pytest.mark.parametrize(("error", "status", "message"), ROWS, ids=lambda value: type(value).__name__)
def test_every_row_of_the_table(error: errors.CollectorError, status: int, message: str) -> None:
    """Status, body to the byte, content type."""
    response = answer(error)
    assert (response.status_code, response.headers["content-type"]) == (status, JSON)
    escaped = message.replace('"', '\\"')
    assert bytes(response.body).decode() == f'{{"errors":["{escaped}"]}}'


def test_every_error_has_a_row_and_every_row_a_test() -> None:
    """An error without one would be answered 500."""
    assert {type(error) for error, _, _ in ROWS} == set(TABLE)
    assert leaves(errors.CollectorError) <= set(TABLE)


def test_capacity_errors_say_when_to_come_back() -> None:
    """Retry-After in seconds, as the error has it; a token is asked for as HTTP asks."""
    assert answer(errors.Overloaded("m", 7)).headers["retry-after"] == "7"
    assert answer(service_errors.TooManyPushes("m", 1)).headers["retry-after"] == "1"
    assert answer(errors.Unauthorized("m")).headers["www-authenticate"] == "Bearer"


def test_an_error_of_no_known_kind_is_ours_to_hide() -> None:
    """500 without its message."""
    assert bytes(answer(errors.CollectorError("secret")).body) == b'{"errors":["Internal server error."]}'


REQUESTS: list[tuple[str, str, dict[str, Any], int]] = [
    ("GET", "/jobs/xyz", {}, 400),
    ("GET", f"/jobs/{JOB}", {}, 404),
    ("GET", f"/jobs/{JOB}/plan", {}, 404),
    ("GET", f"/jobs/{JOB}/vertices/{VERTEX}", {}, 404),
    ("GET", f"/jobs/{JOB}/vertices/xyz/metrics", {}, 400),
    ("GET", f"/jobs/{JOB}/vertices/{VERTEX}/subtasks/-1/metrics", {}, 400),
    ("GET", f"/jobs/{JOB}/vertices/{VERTEX}/subtasks/metrics?agg=x", {}, 400),
    ("GET", "/jobs/metrics?jobs=xyz", {}, 400),
    ("GET", "/taskmanagers/metrics?agg=x", {}, 400),
    ("GET", "/taskmanagers/x", {}, 404),
    ("GET", "/nope", {}, 404),
    ("GET", "/web", {}, 404),
    ("GET", "/web/nope.js", {}, 404),
    ("POST", "/", {}, 404),
    ("GET", "/docs", {}, 404),
    ("POST", "/openapi.json", {}, 404),
    ("GET", "/push/v1/frames", {}, 404),
    ("GET", "/metrics/", {}, 404),
    ("GET", "/metrics?granularity=x", {}, 400),
    ("GET", "/metrics/flink?granularity=x", {}, 400),
    ("POST", "/metrics", {}, 404),
    ("POST", "/-/healthy", {}, 404),
    ("POST", "/jobs", {"content": b"{}"}, 404),
    ("DELETE", "/cluster", {}, 404),
    ("PUT", "/push/v1/frames", {}, 404),
    ("OPTIONS", "/push/v1/frames", {"headers": {"Origin": "http://evil.test"}}, 404),
    ("GET", "/overview", {"headers": {"Host": "evil.test"}}, 403),
    ("POST", wire.PUSH_PATH, {}, 415),
    ("POST", wire.PUSH_PATH, {"headers": {"Content-Type": "text/plain"}}, 415),
    ("POST", wire.PUSH_PATH, {"headers": {"Content-Type": wire.CONTENT_TYPE, "Content-Encoding": "gzip"}}, 415),
    ("POST", wire.PUSH_PATH, {"headers": {"Content-Type": wire.CONTENT_TYPE, "Origin": "http://evil.test"}}, 403),
    ("POST", wire.PUSH_PATH, {"headers": {"Content-Type": wire.CONTENT_TYPE}}, 400),
    ("POST", wire.PUSH_PATH, {"headers": {"Content-Type": wire.CONTENT_TYPE}, "content": b"\xc1"}, 400),
]


@pytest.mark.parametrize(("method", "path", "arguments", "status"), REQUESTS)
def test_every_failure_has_the_one_shape(
    client: Any, method: str, path: str, arguments: dict[str, Any], status: int
) -> None:
    """{"errors": [message, …]}, and nothing else, whoever finds the fault."""
    response = client.request(method, path, **arguments)
    assert response.status_code == status
    assert response.headers["content-type"] == JSON
    body = response.json()
    assert list(body) == ["errors"]
    assert body["errors"]
    assert all(isinstance(message, str) and message for message in body["errors"])


def test_a_fault_of_ours_tells_nothing_about_itself(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 in the same shape, without message, type or trace."""

    def broken(_query: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setitem(rest.RESOURCES, "/overview", broken)
    response = client.get("/overview")
    assert (response.status_code, response.text) == (500, '{"errors":["Internal server error."]}')
