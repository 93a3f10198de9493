"""Answers as an OpenAPI document tells them: bodies by their types, failures by their errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from service.errors import JSON, TABLE, UnauthorizedRead
from streamgauge.errors import CollectorError, Overloaded, Unauthorized

Json = dict[str, Any]

ERRORS: Json = {
    "title": "Errors",
    "description": "The body of every failure, as Flink's.",
    "type": "object",
    "properties": {"errors": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}},
    "required": ["errors"],
    "additionalProperties": False,
}
_REF = "#/components/schemas/"


def schemas(types: Iterable[Any]) -> tuple[list[Json], Json]:
    """
    Return a schema for each type, and what they refer to, by name.

    An object has the keys of its TypedDict and no others.

    Raises:
        TypeError: a type is none that msgspec knows.
    """
    found, components = msgspec.json.schema_components(types, ref_template=_REF + "{name}")
    for component in components.values():
        if "properties" in component:
            component.setdefault("additionalProperties", False)
    return list(found), {**components, "Errors": ERRORS}


def body(description: str, schema: Mapping[str, object], media_type: str = JSON) -> Json:
    """Return an answer with a body."""
    return {"description": description, "content": {media_type: {"schema": schema}}}


def failures(errors: Iterable[type[CollectorError]], told: Mapping[int, str] | None = None) -> Json:
    """
    Return the answers to errors by status, as `service.errors.TABLE` has them.

    Args:
        told: What else has a status, one line each.
    """
    causes: dict[int, list[str]] = defaultdict(list)
    headers: dict[int, Json] = defaultdict(dict)
    for error in errors:
        status = TABLE[error].status
        causes[status].append(_first_line(error))
        if issubclass(error, Overloaded):
            headers[status]["Retry-After"] = {
                "description": "Seconds to wait.",
                "required": True,
                "schema": {"type": "integer", "minimum": 0},
            }
        if issubclass(error, Unauthorized | UnauthorizedRead):
            headers[status]["WWW-Authenticate"] = {"required": True, "schema": {"type": "string"}}
    for status, cause in (told or {}).items():
        causes[status].append(cause)
    found: Json = {}
    for status, lines in sorted(causes.items()):
        found[str(status)] = body(" ".join(dict.fromkeys(lines)), {"$ref": _REF + "Errors"})
        if headers[status]:
            found[str(status)]["headers"] = headers[status]
    return found


def _first_line(documented: type[CollectorError]) -> str:
    return " ".join((documented.__doc__ or "").strip().partition("\n\n")[0].split())
