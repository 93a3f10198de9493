"""What is not Flink's as an OpenAPI document tells it: the page, pushes, what Prometheus scrapes, probes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from collector.ingest import Outcome
from service.config import BODY_TIMEOUT_S
from service.errors import JSON, BodyTimeout, ForbiddenOrigin, TooManyPushes
from service.openapi.answers import Json, body, failures
from service.prometheus.granularity import GRANULARITIES
from service.prometheus.negotiation import CONTENT_TYPES
from service.prometheus.scrape import DEFAULTS, FLINK, METRICS
from service.web.site import FILES, INDEX, MEDIA_TYPES
from streamgauge import errors
from streamgauge.wire import CONTENT_TYPE, PUSH_PATH

OPENAPI_PATH = "/openapi.json"

_TEXT: Json = {"type": "string"}
_PUSH_ERRORS = (
    errors.MalformedFrame,
    errors.UnsupportedVersion,
    errors.InvalidName,
    errors.Unauthorized,
    ForbiddenOrigin,
    BodyTimeout,
    errors.NeedsFullFrame,
    errors.FrameTooLarge,
    errors.WrongType,
    TooManyPushes,
    errors.Overloaded,
)


def paths() -> Json:
    """Return every path that is not Flink's."""
    return {
        INDEX: {"get": _page()},
        FILES: {"get": _file()},
        PUSH_PATH: {"post": _push()},
        METRICS: {"get": _scrape("metrics", METRICS, "Everything, as Prometheus names it")},
        FLINK: {"get": _scrape("flink", FLINK, "Everything, as Flink's Prometheus reporter names it")},
        "/-/healthy": {"get": _probe("healthy", "Whether the service need not be restarted.")},
        "/-/ready": {"get": _probe("ready", "Whether the service can be asked.")},
        OPENAPI_PATH: {"get": _itself()},
    }


def _page() -> Json:
    return {
        "operationId": "page",
        "summary": "The page that shows all that is known",
        "description": "HEAD is answered likewise, without the body.",
        "tags": ["Page"],
        "responses": _of_the_page([MEDIA_TYPES["html"]]),
    }


def _file() -> Json:
    return {
        "operationId": "page.file",
        "summary": "A file of the page",
        "description": "HEAD is answered likewise, without the body.",
        "tags": ["Page"],
        "parameters": [
            {
                "in": "path",
                "name": "name",
                "required": True,
                "description": "What the page loads; which files there are is its own matter.",
                "schema": _TEXT,
            }
        ],
        "responses": {**_of_the_page(MEDIA_TYPES.values()), **failures((), {404: "There is no such file."})},
    }


def _of_the_page(media_types: Iterable[str]) -> Json:
    headers = {
        **{
            name: {"required": True, "schema": _TEXT}
            for name in ("Cache-Control", "Content-Security-Policy", "ETag", "Vary", "X-Content-Type-Options")
        },
        "Content-Encoding": {"schema": {"const": "gzip"}},
    }
    return {
        "200": {
            "description": "Its bytes, as gzip where that is taken.",
            "content": {media_type: {"schema": _TEXT} for media_type in media_types},
            "headers": headers,
        },
        "304": {"description": "It is what `If-None-Match` names."},
    }


def _push() -> Json:
    outcomes = get_args(Outcome)
    taken = {
        "type": "object",
        "properties": {outcome: {"type": "integer", "minimum": 0} for outcome in outcomes},
        "required": list(outcomes),
        "additionalProperties": False,
    }
    refusals = failures(_PUSH_ERRORS)
    return {
        "operationId": "push",
        "summary": "Take frames in",
        "description": f"What the hooks send. All of it is taken or nothing. The body has {BODY_TIMEOUT_S} s to come.",
        "tags": ["Push"],
        "requestBody": {
            "description": "One MessagePack array of frames; see streamgauge.wire.",
            "required": True,
            "content": {CONTENT_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": {"202": body("What became of the frames.", taken), **refusals},
    }


def _scrape(name: str, path: str, summary: str) -> Json:
    told = {
        "description": "Prometheus' text format, or OpenMetrics where it is asked for; as gzip where that is taken.",
        "content": {content_type: {"schema": _TEXT} for content_type in CONTENT_TYPES},
        "headers": {
            "Vary": {"required": True, "schema": {"type": "string"}},
            "Content-Encoding": {"schema": {"const": "gzip"}},
        },
    }
    return {
        "operationId": f"scrape.{name}",
        "summary": summary,
        "description": "HEAD is answered likewise, without the body.",
        "tags": ["Prometheus"],
        "parameters": [
            {
                "in": "query",
                "name": "granularity",
                "required": False,
                "description": "How finely things are told apart; each tells what the one before it tells, and more.",
                "schema": {"enum": list(GRANULARITIES), "default": DEFAULTS[path]},
            }
        ],
        "responses": {"200": told, **failures((), {400: "`granularity` is none of these."})},
    }


def _probe(word: str, summary: str) -> Json:
    told = {
        "type": "object",
        "properties": {"status": {"const": word}},
        "required": ["status"],
        "additionalProperties": False,
    }
    return {
        "operationId": f"probe.{word}",
        "summary": summary.rstrip("."),
        "tags": ["Probes"],
        "security": [],
        "responses": {"200": body("It is.", told), **failures((), {503: "It is not; the message says why."})},
    }


def _itself() -> Json:
    return {
        "operationId": "openapi",
        "summary": "This document",
        "tags": ["Streamgauge"],
        "responses": {"200": body("OpenAPI 3.1.", {"type": "object"}, JSON)},
    }
