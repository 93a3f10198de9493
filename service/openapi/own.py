"""What is not Flink's as an OpenAPI document tells it: pushes, the pages that Prometheus scrapes, probes."""

from __future__ import annotations

from typing import get_args

from collector.ingest import Outcome
from service.config import BODY_TIMEOUT_S
from service.errors import JSON, BodyTimeout, ForbiddenOrigin, TooManyPushes
from service.openapi.answers import Json, body, failures
from service.prometheus.scrape import GRANULARITIES
from service.prometheus.text import CONTENT_TYPE as EXPOSITION
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
        PUSH_PATH: {"post": _push()},
        "/metrics": {"get": _scrape("metrics", "Everything, as Prometheus names it.", granular=True)},
        "/metrics/flink": {"get": _scrape("flink", "Everything, as Flink's Prometheus reporter names it.")},
        "/-/healthy": {"get": _probe("healthy", "Whether the service need not be restarted.")},
        "/-/ready": {"get": _probe("ready", "Whether the service can be asked.")},
        OPENAPI_PATH: {"get": _itself()},
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


def _scrape(name: str, summary: str, granular: bool = False) -> Json:
    operation: Json = {
        "operationId": f"scrape.{name}",
        "summary": summary.rstrip("."),
        "tags": ["Prometheus"],
        "responses": {"200": body("Prometheus' text format.", _TEXT, EXPOSITION)},
    }
    if granular:
        operation["parameters"] = [
            {
                "in": "query",
                "name": "granularity",
                "required": False,
                "description": "'subtask' gives each subtask its series.",
                "schema": {"enum": list(GRANULARITIES), "default": GRANULARITIES[0]},
            }
        ]
        operation["responses"] |= failures((), {400: "`granularity` is neither."})
    return operation


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
