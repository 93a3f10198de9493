"""What happens to flights, one row at the instant at which it happens: departures and arrivals."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Literal

import msgspec

from examples.replay import Flight, in_spans, repeated

Kind = Literal["departure", "arrival"]

EARLIEST = timedelta(hours=1)
"""No flight departs longer than this before it should; in the data of 2013 the earliest is 43 minutes early."""


class Movement(msgspec.Struct, frozen=True, gc=False, order=True):
    """
    A departure or an arrival, and one line of the stream.

    Args:
        at: When it happens, UTC.
        kind: What happens.
        scheduled: The flight's planned departure, UTC; with carrier, number and origin it tells the flight.
        scheduled_arrival: Its planned arrival, UTC.
        carrier, number, origin, destination: As of the flight.
    """

    at: datetime
    kind: Kind
    scheduled: datetime
    scheduled_arrival: datetime
    carrier: str
    number: int
    origin: str
    destination: str


def movements(flights: Iterable[Flight]) -> Iterator[Movement]:
    """
    Yield departures and arrivals in the order in which they happen.

    A cancelled flight does neither, a diverted one departs and does not arrive. No more is held than flights that
    are in the air or should have departed.

    Args:
        flights: Ordered by scheduled departure, without end perhaps; none departs more than EARLIEST early, and each
            arrives after it has departed.
    """
    coming: list[Movement] = []
    for flight in flights:
        while coming and coming[0].at < flight.scheduled - EARLIEST:
            yield heapq.heappop(coming)
        for movement in _of(flight):
            heapq.heappush(coming, movement)
    while coming:
        yield heapq.heappop(coming)


def movement_batches(flights: Sequence[Flight], span: timedelta, laps: int | None = None) -> Iterator[list[Movement]]:
    """
    Cut the movements of replayed flights into the spans of simulated time that `replay_batches` cuts flights into.

    Args:
        flights: Ordered by scheduled departure, within one YEAR; at least one.
        span: Simulated time that a batch covers, > 0. The first batch starts with the first flight.
        laps: How often the flights are replayed; None for without end.

    Returns:
        One list a span, empty where nothing happened in it.
    """
    return in_spans(movements(repeated(flights, laps)), attrgetter("at"), flights[0].scheduled, span)


def _of(flight: Flight) -> Iterator[Movement]:
    moments: tuple[tuple[Kind, datetime | None], ...] = (("departure", flight.departed), ("arrival", flight.arrived))
    for kind, at in moments:
        if at is not None:
            yield Movement(
                at=at,
                kind=kind,
                scheduled=flight.scheduled,
                scheduled_arrival=flight.scheduled_arrival,
                carrier=flight.carrier,
                number=flight.number,
                origin=flight.origin,
                destination=flight.destination,
            )
