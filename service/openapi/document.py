"""GET /openapi.json: everything that the service answers, told from what answers it."""

from __future__ import annotations

import functools

import msgspec
from starlette.responses import Response

from service.config import MAX_REQUEST_LINE_BYTES
from service.errors import JSON, ForbiddenHost, UnauthorizedRead
from service.openapi import own, reads
from service.openapi.answers import Json, failures, schemas
from streamgauge.version import __version__

_ABOUT = (
    "The monitoring REST of Flink 2.3 over Spark Structured Streaming, and the pages that Prometheus scrapes. Of the "
    "Flink REST doubled and trailing slashes do not matter, unknown query parameters are ignored, and every other "
    "path, or method, is answered 404, HEAD and OPTIONS too."
)
_READ_SCHEMES: Json = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "The read token."},
    "basic": {"type": "http", "scheme": "basic", "description": "The read token as the password; any user name."},
}
_PUSH_SCHEME: Json = {"push": {"type": "http", "scheme": "bearer", "description": "The push token."}}


class OpenApi:
    """
    Answers /openapi.json; any thread.

    Args:
        reads_guarded: Whether reads ask for a token.
        pushes_guarded: Whether pushes do.
    """

    def __init__(self, reads_guarded: bool, pushes_guarded: bool) -> None:
        self._guarded = (reads_guarded, pushes_guarded)

    async def __call__(self) -> Response:
        """Answer /openapi.json, which is made when it is first asked for."""
        return Response(_encoded(*self._guarded), media_type=JSON)


@functools.cache
def _encoded(reads_guarded: bool, pushes_guarded: bool) -> bytes:
    return msgspec.json.encode(document(reads_guarded, pushes_guarded))


def document(reads_guarded: bool = False, pushes_guarded: bool = False) -> Json:
    """Return the document, OpenAPI 3.1: its schemas are JSON Schema 2020-12, made from the types of the bodies."""
    bodies = reads.bodies()
    told, components = schemas(bodies.values())
    found = {**own.paths(), **reads.paths(dict(zip(bodies, told, strict=True)))}
    for item in found.values():
        for method, operation in item.items():
            if method in ("get", "post"):
                _complete(operation, reads_guarded if method == "get" else pushes_guarded, method)
    schemes = (_READ_SCHEMES if reads_guarded else {}) | (_PUSH_SCHEME if pushes_guarded else {})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Streamgauge",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": dict(sorted(found.items())),
        "components": {"schemas": components, **({"securitySchemes": schemes} if schemes else {})},
    }


def _complete(operation: Json, guarded: bool, method: str) -> None:
    """Add what every operation has: the host rule, the bound on the target, the token where one is asked for."""
    open_to_all = operation.get("security") == []
    doors: list[type[ForbiddenHost | UnauthorizedRead]] = [ForbiddenHost]
    if guarded and not open_to_all:
        operation["security"] = [{"push": []}] if method == "post" else [{"bearer": []}, {"basic": []}]
        if method == "get":
            doors.append(UnauthorizedRead)
    told = {414: f"The request target is longer than {MAX_REQUEST_LINE_BYTES} bytes."}
    responses = operation["responses"]
    for status, answer in failures(doors, told).items():
        if status in responses:
            responses[status]["description"] += f" {answer['description']}"
        else:
            responses[status] = answer
    operation["responses"] = dict(sorted(responses.items()))
