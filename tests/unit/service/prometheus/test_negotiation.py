"""What is answered to which Accept and Accept-Encoding."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge

from service.prometheus.negotiation import CONTENT_TYPES, accepts_gzip, compressed, form

PLAIN, NEW_PLAIN, OPENMETRICS = CONTENT_TYPES
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        ("text/html,application/xhtml+xml,*/*;q=0.8", PLAIN),
        ("text/plain", PLAIN),
        ("text/plain;version=0.0.4", PLAIN),
        ("text/plain;version=1.0.0", f"{NEW_PLAIN}; escaping=underscores"),
        ("application/openmetrics-text", OPENMETRICS),
        (PROMETHEUS_2, f"{OPENMETRICS}; escaping=underscores"),
        (PROMETHEUS_3, f"{OPENMETRICS}; escaping=allow-utf-8"),
        ("application/openmetrics-text;version=1.0.0;escaping=values", f"{OPENMETRICS}; escaping=underscores"),
        ("application/openmetrics-text;version=1.0.0;escaping=dots", f"{OPENMETRICS}; escaping=underscores"),
        ("application/openmetrics-text;version=1.0.0;escaping=x", f"{OPENMETRICS}; escaping=underscores"),
        ("application/openmetrics-text;version=0.0.1", PLAIN),
        ("application/openmetrics-text;version=9.9.9", PLAIN),
        ("application/openmetrics-text;version=x", PLAIN),
        ("application/openmetrics-text;q=0", PLAIN),
        ("application/openmetrics-text;q=x", PLAIN),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.9", PLAIN),
        ("*/*, application/openmetrics-text;q=0.1", PLAIN),
        ("text/*, application/openmetrics-text;version=1.0.0;q=0.2", PLAIN),
        ("*/*;q=0.1, application/openmetrics-text;q=0.1", OPENMETRICS),
        ("Application/OpenMetrics-Text;version=1.0.0", f"{OPENMETRICS}; escaping=underscores"),
        ("text/plain;version=0.0.4;q=0.2,application/openmetrics-text;q=0.9", OPENMETRICS),
        ('application/openmetrics-text; version="1.0.0"', f"{OPENMETRICS}; escaping=underscores"),
    ],
)
def test_form_is_what_the_scraper_likes_best(accept: str, content_type: str) -> None:
    """And the format is that of the content type."""
    chosen = form(accept)
    assert chosen.content_type == content_type
    assert chosen.openmetrics == content_type.startswith("application/openmetrics-text")
    registry = CollectorRegistry()
    Gauge("names_as_they_are", "", registry=registry)
    lines = chosen.encode(registry).decode().splitlines()
    assert lines[2:] == ["names_as_they_are 0.0", *(["# EOF"] if chosen.openmetrics else [])]


@given(st.text(alphabet='atxplin/;=,q.0159 version-mcope"', max_size=60) | st.text(max_size=20))
def test_no_header_breaks_a_scrape(header: str) -> None:
    """Nor is anything of it but a known escaping in the answer."""
    assert form(header).content_type.partition("; escaping")[0] in CONTENT_TYPES
    assert (
        form(f"application/openmetrics-text;version={header}").content_type.partition("; escaping")[0] in CONTENT_TYPES
    )
    accepts_gzip(header)


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("", False),
        ("gzip", True),
        ("deflate, GZip;q=0.5", True),
        ("*", True),
        ("br", False),
        ("gzip;q=0, *", False),
        ("*;q=0", False),
        ("gzip;q=x", False),
        ("identity", False),
    ],
)
def test_gzip_is_sent_to_whom_it_is_welcome(header: str, accepted: bool) -> None:
    """q=0 means: not that one."""
    assert accepts_gzip(header) is accepted


def test_compressed_page_is_the_page() -> None:
    """And always the same bytes: it carries no time."""
    assert gzip.decompress(compressed(b"page" * 99)) == b"page" * 99
    assert compressed(b"page")[4:8] == bytes(4)
