"""The Flink REST as an OpenAPI document tells it: an operation for each of its resources."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, get_type_hints

from service.errors import TABLE
from service.flink.parameters import PATH, QUERY, READ_BY, Parameter
from service.flink.rest import OURS, RESOURCES
from service.openapi.answers import Json, body, failures
from streamgauge.errors import CollectorError, UnresolvableParameter

_NAME = re.compile(r":(\w+)")
_RAISED = re.compile(r"^    (\w+):", re.MULTILINE)
_ERRORS = {error.__name__: error for error in TABLE}
SERVERS = [{"url": "/"}, {"url": "/v1", "description": "The same, as Flink's clients ask for it."}]


def bodies() -> dict[str, Any]:
    """Return the type of the body of every resource that has one; some only ever refuse."""
    types = {
        resource: get_type_hints(handler, include_extras=True)["return"] for resource, handler in RESOURCES.items()
    }
    return {resource: told for resource, told in types.items() if told is not NoReturn}


def paths(schemas: Mapping[str, Json]) -> Json:
    """
    Return every resource by its path in OpenAPI's notation.

    Args:
        schemas: Of `bodies`.
    """
    return {
        _NAME.sub(r"{\1}", resource): {"servers": SERVERS, "get": _operation(resource, handler, schemas.get(resource))}
        for resource, handler in RESOURCES.items()
    }


def _operation(resource: str, handler: Callable[..., object], schema: Json | None) -> Json:
    words = inspect.cleandoc(handler.__doc__ or "").partition("\n\n")[0]
    answers = {} if schema is None else {"200": body("As asked.", schema)}
    return {
        "operationId": resource.strip("/").replace(":", "").replace("/", "."),
        "summary": " ".join(words.split()).rstrip("."),
        "tags": ["Streamgauge" if resource in OURS else "Flink"],
        "parameters": [*_path_parameters(resource), *_query_parameters(resource)],
        "responses": {**answers, **_refusals(resource, handler)},
    }


def _path_parameters(resource: str) -> Iterator[Json]:
    for name in _NAME.findall(resource):
        yield {"in": "path", "required": True, **_parameter(name, PATH[name])}


def _query_parameters(resource: str) -> Iterator[Json]:
    for name in READ_BY.get(resource, ()):
        # Commas between the values of one: `get=a,b`.
        commas = {"style": "form", "explode": False} if QUERY[name].schema.get("type") == "array" else {}
        yield {"in": "query", "required": False, **commas, **_parameter(name, QUERY[name])}


def _parameter(name: str, parameter: Parameter) -> Json:
    return {"name": name, "description": parameter.description, "schema": dict(parameter.schema)}


def _refusals(resource: str, handler: Callable[..., object]) -> Json:
    """Return what is refused: what the handler's docstring says that it raises, and what does not parse."""
    raised: list[type[CollectorError]] = [
        _ERRORS[name] for name in _RAISED.findall(_raises(handler)) if name in _ERRORS
    ]
    names = _NAME.findall(resource)
    if any(PATH[name].checked for name in names) and UnresolvableParameter not in raised:
        raised.append(UnresolvableParameter)
    # A value with a slash in it makes another path of it, one that is none of ours.
    return failures(raised, {404: "No such path: a value holds a slash, or is empty."} if names else {})


def _raises(handler: Callable[..., object]) -> str:
    return inspect.cleandoc(handler.__doc__ or "").partition("\nRaises:\n")[2]
