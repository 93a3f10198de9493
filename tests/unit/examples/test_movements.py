import itertools
from collections import Counter
from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from examples.movements import EARLIEST, Movement, movement_batches, movements
from examples.replay import YEAR, Flight, read_flights, repeated

START = datetime(2013, 1, 1, 10, 15, tzinfo=timezone.utc)


def minutes(count: int) -> timedelta:
    return timedelta(minutes=count)


def flight(number: int, scheduled: int, departs: int | None, block: int, arrives: int | None) -> Flight:
    """Scheduled in minutes from START; departs and arrives with delays; None for cancelled and for diverted."""
    planned = START + minutes(scheduled)
    departed = planned + minutes(departs) if departs is not None else None
    return Flight(planned, departed, planned + minutes(block), departs, arrives, "UA", number, None, "JFK", "IAH", 1)


@st.composite
def years(draw: st.DrawFn) -> list[Flight]:
    """Flights ordered by scheduled departure; any departure delay, and an arrival after it, where there is one."""
    found = []
    for number, scheduled in enumerate(sorted(draw(st.lists(st.integers(0, 364 * 24 * 60), max_size=30)))):
        departs = draw(st.none() | st.integers(int(-EARLIEST.total_seconds() // 60), 1500))
        block = draw(st.integers(1, 700))
        flown = draw(st.none() | st.integers(1, 900))
        arrives = None if departs is None or flown is None else departs + flown - block
        found.append(flight(number, scheduled, departs, block, arrives))
    return found


def expected(flights: list[Flight]) -> list[tuple[datetime, str, int]]:
    departures = [(each.departed, "departure", each.number) for each in flights if each.departed]
    arrivals = [(each.arrived, "arrival", each.number) for each in flights if each.departed and each.arrived]
    return sorted(departures + arrivals)


def told(found: list[Movement]) -> list[tuple[datetime, str, int]]:
    return sorted((each.at, each.kind, each.number) for each in found)


@given(flights=years(), laps=st.integers(1, 2))
def test_movements_are_all_and_in_order(flights: list[Flight], laps: int) -> None:
    """Each flight departs once and arrives once, unless it does not; what happens later comes later, over laps too."""
    replayed = list(repeated(flights, laps))
    found = list(movements(replayed))
    assert told(found) == expected(replayed)
    assert all(one.at <= next_.at for one, next_ in itertools.pairwise(found))


@given(flights=years())
def test_arrival_comes_after_its_departure(flights: list[Flight]) -> None:
    """A query may rely on having met a flight before it lands."""
    gone: set[int] = set()
    for each in movements(flights):
        if each.kind == "departure":
            gone.add(each.number)
        else:
            assert each.number in gone


@given(flights=years().filter(bool), span=st.integers(60, 100 * 24 * 60), laps=st.integers(1, 2))
def test_batches_cover_the_spans_of_the_flights(flights: list[Flight], span: int, laps: int) -> None:
    """Batch n holds what happens in [start + n spans, start + (n + 1) spans); early departures are in the first."""
    width = minutes(span)
    start = flights[0].scheduled
    batches = list(movement_batches(flights, width, laps))
    assert [each for batch in batches for each in batch] == list(movements(repeated(flights, laps)))
    for number, batch in enumerate(batches):
        assert all(each.at < start + (number + 1) * width for each in batch)
        assert all(each.at >= start + number * width for each in batch if number)


def test_movements_hold_no_more_than_is_in_the_air() -> None:
    """A replay without end is cut while it runs, so a movement does not wait for the flights' end."""
    endless = repeated([flight(1, 0, 0, 60, 0)])
    assert [each.at for each in itertools.islice(movements(endless), 3)] == [START, START + minutes(60), START + YEAR]


def test_cancelled_flight_does_not_move_and_diverted_one_does_not_arrive() -> None:
    """NA is absence: no departure, and no arrival where the flight was to arrive."""
    found = list(movements([flight(1, 0, None, 60, None), flight(2, 0, 5, 60, None)]))
    assert [(each.number, each.kind) for each in found] == [(2, "departure")]


def test_movement_tells_its_flight() -> None:
    """Both movements carry what the flight is known by, and when it should have arrived."""
    one = flight(7, 0, 5, 60, 20)
    for each in movements([one]):
        assert (each.carrier, each.number, each.origin, each.destination) == ("UA", 7, "JFK", "IAH")
        assert (each.scheduled, each.scheduled_arrival) == (one.scheduled, one.scheduled_arrival)


def test_year_moves_as_the_data_set_says() -> None:
    """328,521 departed, 327,346 arrived where they should; what a row tells of its flight tells it from all others."""
    flights = read_flights()
    assert max(each.scheduled - each.departed for each in flights if each.departed) <= EARLIEST
    found = list(movements(flights))
    flown = {(each.kind, each.carrier, each.number, each.origin, each.scheduled) for each in found}
    assert Counter(each.kind for each in found) == {"departure": 328_521, "arrival": 327_346}
    assert len(flown) == len(found)
