"""What of the taps travels, and when."""

from __future__ import annotations

from spark_hooks.redaction import REPLACEMENT, Redaction
from streamgauge import names, wire
from tests.unit.spark_hooks.tapped import Tapped, row


def travelling(frame: wire.Frame) -> dict[str, tuple[list[str], list[str]]]:
    """Vertex → taps and distributions that a delta holds; vertices without any are left out."""
    found = {
        vertex.id: ([tap.name for tap in vertex.taps or ()], [each.metric for each in vertex.distributions])
        for vertex in frame.vertices
    }
    return {vertex: each for vertex, each in found.items() if any(each)}


def test_taps_travel_when_they_have_changed_and_until_acknowledged() -> None:
    """A frame comes every second, a batch now and then."""
    driver = Tapped()
    driver.batch(0, row({"a": (1, 5, 5)}, ("a",), delays={7: 1}))
    first = travelling(driver.frame())
    assert list(first.values()) == [(["tap"], [names.RECORD_QUEUEING, names.RECORD_LATENCY])]
    assert travelling(driver.acknowledged()) == first
    quiet = driver.frame()
    assert travelling(quiet) == {}
    assert all(vertex.taps is None for vertex in quiet.vertices)
    driver.batch(1000, row({"a": (1, 6, 6)}, ("a",), delays={7: 1}))
    assert travelling(driver.frame()) == first


def test_batch_without_records_of_a_tap_tells_no_delays() -> None:
    """Its splits have waited, its distributions are what they were."""
    driver = Tapped()
    driver.batch(0, row({"a": (1, 5, 5)}, ("a",), delays={7: 1}))
    driver.acknowledged()
    driver.batch(1000)
    assert list(travelling(driver.frame()).values()) == [(["tap"], [])]


def test_all_taps_of_a_vertex_travel_when_one_has_changed() -> None:
    """What is left out would be gone."""
    driver = Tapped()
    driver.batch(0, row({"a": (1, 5, 5)}, ("a",)))
    driver.acknowledged()
    driver.tick(5000)
    assert list(travelling(driver.frame()).values()) == [(["tap"], [])]


def test_tap_without_an_event_time_has_no_splits_to_tell() -> None:
    """Its delays alone."""
    driver = Tapped()
    seen = row({}, by=None, delays={7: 1})
    bare = type(seen)(**{each: getattr(seen, each) for each in seen.__slots__} | {"event_time": False})
    driver.batch(0, bare)
    assert list(travelling(driver.frame()).values()) == [([], [names.RECORD_QUEUEING, names.RECORD_LATENCY])]


def test_what_a_user_calls_splits_is_redacted_and_stays_apart() -> None:
    """Two that a secret alone told apart get numbers."""
    driver = Tapped(redact=Redaction(text="card-[0-9]+"))
    splits = ("card-1111", "card-2222", "north")
    driver.batch(0, row({splits[0]: (1, 5, 5)}, splits))
    [found] = [tap for vertex in driver.frame().vertices for tap in vertex.taps or ()]
    assert found.splits == (REPLACEMENT, f"{REPLACEMENT} 2", "north")


def test_collector_that_starts_over_is_told_all() -> None:
    """A full frame needs nothing before it."""
    driver = Tapped()
    driver.batch(0, row({"a": (1, 5, 5)}, ("a",), delays={7: 1}))
    whole = travelling(driver.acknowledged())
    driver.frames.start_over()
    assert travelling(driver.frame()) == whole
