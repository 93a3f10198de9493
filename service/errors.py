"""
What a failure looks like from outside: one table from error to status, one body for all of them.

CollectorError (streamgauge.errors)
  RequestError     UnauthorizedRead 401 · ForbiddenHost · ForbiddenOrigin 403 · BodyTimeout 408
  QueryError       Missing 404
  CapacityError    TooManyPushes 429
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from starlette.responses import Response

from streamgauge import errors
from streamgauge.errors import CollectorError, UnresolvableParameter

JSON = "application/json; charset=UTF-8"
"""Flink's Content-Type, to the letter."""

NOT_FOUND = "org.apache.flink.runtime.rest.NotFoundException: "
HANDLER = "org.apache.flink.runtime.rest.handler.RestHandlerException: "
_PARAMETERS = HANDLER + "Bad request, could not parse parameters: "


class RequestError(CollectorError):
    """A request that is refused for how it came, not for what it asks."""


class UnauthorizedRead(RequestError):
    """The read token is missing or wrong."""


class ForbiddenHost(RequestError):
    """The Host header names no host that this service answers for."""


class ForbiddenOrigin(RequestError):
    """A page of another site tried to push."""


class BodyTimeout(RequestError):
    """The body did not arrive in time."""


class Missing(errors.QueryError):
    """
    What Flink answers 404 to in the words of one handler.

    Args:
        prefix: The exception that Flink names, as NOT_FOUND and HANDLER; '' where it names none.
        message: The handler's words.
    """

    def __init__(self, prefix: str, message: str) -> None:
        super().__init__(prefix + message)


class TooManyPushes(errors.Overloaded):
    """As many pushes as may be under way at once are."""


@dataclass(frozen=True, slots=True)
class Row:
    """
    How one error is answered.

    Args:
        prefix: What Flink writes in front of the message; '' for errors that Flink does not have.
    """

    status: int
    prefix: str = ""


TABLE: dict[type[CollectorError], Row] = {
    errors.MalformedFrame: Row(400),
    errors.UnsupportedVersion: Row(400),
    errors.InvalidName: Row(400),
    errors.Unauthorized: Row(401),
    errors.NeedsFullFrame: Row(409),
    errors.WrongType: Row(415),
    errors.UnknownJob: Row(404, NOT_FOUND),
    errors.UnknownVertex: Row(404, NOT_FOUND),
    errors.UnknownSubtask: Row(404, HANDLER),
    errors.UnknownAttempt: Row(404, HANDLER),
    errors.UnknownTaskManager: Row(404, NOT_FOUND),
    Missing: Row(404),
    UnresolvableParameter: Row(400, _PARAMETERS),
    errors.Overloaded: Row(503),
    errors.ArchiveError: Row(500),
    errors.CorruptSegment: Row(500),
    errors.ArchiveAway: Row(503),
    errors.FrameTooLarge: Row(413),
    UnauthorizedRead: Row(401),
    ForbiddenHost: Row(403),
    ForbiddenOrigin: Row(403),
    BodyTimeout: Row(408),
    TooManyPushes: Row(429),
}
"""Every error that a request can meet; a subclass without a row of its own is answered as its base."""


def body(*messages: str) -> bytes:
    """Return the body of every failure: Flink's `{"errors": [message, …]}`."""
    return msgspec.json.encode({"errors": messages})


def refusal(status: int, *messages: str) -> Response:
    """Return a failure that is no CollectorError; any thread."""
    return Response(body(*messages), status, media_type=JSON)


def answer(error: CollectorError) -> Response:
    """
    Return the answer to `error`, by the table; any thread.

    An Overloaded carries Retry-After (seconds), an Unauthorized and an UnauthorizedRead WWW-Authenticate.
    """
    row = next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), None)
    if row is None:
        return internal()
    response = refusal(row.status, row.prefix + str(error))
    if isinstance(error, errors.Overloaded):
        response.headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.Unauthorized):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, UnauthorizedRead):
        # Browsers ask for a password then; they cannot be made to send a bearer token.
        response.headers["WWW-Authenticate"] = 'Basic realm="Streamgauge", charset="UTF-8"'
    return response


def internal() -> Response:
    """Return the answer to a fault of our own: Flink's words, and nothing about the fault."""
    return refusal(500, "Internal server error.")


def unrouted(method: str, path: str) -> Response:
    """
    Return Flink's answer to a request that nothing handles.

    Any GET falls through to Flink's file server; any other method is not found, whether or not the path is.
    """
    if method == "GET":
        return refusal(404, f"Unable to load requested file {path}.")
    return refusal(404, f"Not found: {path}")
