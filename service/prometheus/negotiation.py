"""What a scraper asks for: text format or OpenMetrics, compressed or not."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, CONTENT_TYPE_PLAIN_1_0_0, choose_encoder
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

_OPENMETRICS = "application/openmetrics-text"
_TEXT = "text/plain"
_KNOWN = {_OPENMETRICS: frozenset({"", "1.0.0"}), _TEXT: frozenset({"1.0.0"})}
"""Versions that are looked at; the library would take any number, and fail at what is none."""
_WILDCARDS = ("*/*", "text/*")
_ESCAPING = frozenset({"allow-utf-8", "underscores"})
"""
Ways to escape names. All names here are letters, digits, ':' and '_', which each of these leaves as they are; of the
others, dots would double every '_', and values changes the library's own samples in OpenMetrics.
"""
CONTENT_TYPES = (CONTENT_TYPE_PLAIN_0_0_4, CONTENT_TYPE_PLAIN_1_0_0, CONTENT_TYPE_LATEST)
"""What is answered; the latter two with the escaping that was asked for."""
GZIP_LEVEL = 1
"""benchmarks/bench_exposition.py compares them."""


@dataclass(frozen=True, slots=True)
class Form:
    """
    How a page is written.

    Args:
        openmetrics: OpenMetrics 1.0, else the text format.
        encode: Renders a registry so, with the end that the format asks for.
    """

    openmetrics: bool
    content_type: str
    encode: Callable[[Collector], bytes]


def form(accept: str) -> Form:
    """
    Return what an Accept header asks for, by `prometheus_client.exposition.choose_encoder`; any thread.

    The format with the greatest q is chosen, of equals the first one that is named; the text format where a wildcard is
    liked best, or none is known.
    """
    encode, content_type = choose_encoder(_understood(accept))
    return Form(content_type.startswith(_OPENMETRICS), content_type, encode)


def _understood(accept: str) -> str:
    """Return the ranges that the library can choose from, best first."""
    ranked = []
    for listed in accept.split(","):
        kind, parameters = _range(listed)
        quality = _quality(parameters)
        is_wild = kind in _WILDCARDS
        if quality > 0 and (is_wild or kind in _KNOWN):
            ranked.append((-quality, is_wild, *((_TEXT, {}) if is_wild else (kind, parameters))))
    ranked.sort(key=lambda each: each[:2])
    found = []
    for _, _, kind, parameters in ranked:
        version, escaping = parameters.get("version", ""), parameters.get("escaping", "")
        if version in _KNOWN[kind]:
            told = {"version": version, "escaping": escaping if escaping in _ESCAPING else ""}
            found.append("; ".join([kind, *(f"{name}={value}" for name, value in told.items() if value)]))
        elif kind == _TEXT:
            # The plain text format, which is what is left when nothing was found before it.
            break
    return ", ".join(found)


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether an Accept-Encoding header takes gzip; any thread."""
    told = {coding: _quality(parameters) for coding, parameters in map(_range, accept_encoding.split(","))}
    return told.get("gzip", told.get("*", 0.0)) > 0


def compressed(page: bytes) -> bytes:
    """Return a page as gzip; any thread, and other threads go on meanwhile."""
    return gzip.compress(page, GZIP_LEVEL, mtime=0)


def _range(listed: str) -> tuple[str, dict[str, str]]:
    what, *rest = (word.strip() for word in listed.split(";"))
    pairs = (word.partition("=") for word in rest)
    return what.lower(), {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}


def _quality(parameters: dict[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0
