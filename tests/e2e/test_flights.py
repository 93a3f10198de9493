from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from itertools import islice, pairwise
from pathlib import Path
from statistics import fmean

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from examples import flights, queries
from examples.movements import Movement, movement_batches
from examples.replay import Flight, read_flights, replay_batches, write_batch

pytestmark = pytest.mark.spark

SPAN = timedelta(hours=6)
BATCHES = 10
"""Within these, long delays push the watermark past flights that are yet to come."""


@pytest.fixture(scope="module")
def batches() -> list[list[Flight]]:
    return list(replay_batches(read_flights(), SPAN, laps=1))[:BATCHES]


def flown(batches: list[list[Flight]]) -> list[Flight]:
    return [each for batch in batches for each in batch if each.departed is not None]


def hour(moment: datetime | None) -> datetime:
    assert moment is not None
    return moment.replace(minute=0, second=0)


def static(spark: SparkSession, folder: Path, batches: list[list[Flight]]) -> DataFrame:
    for number, batch in enumerate(batches):
        write_batch(batch, folder, f"{number:08d}.json")
    return spark.read.schema(queries.SCHEMA).json(str(folder))


def test_departures_are_those_of_a_plain_count(
    spark: SparkSession, batches: list[list[Flight]], tmp_path: Path
) -> None:
    """Per hour of actual departure, origin and airline: how many, and their mean delay; cancelled flights are out."""
    counted = queries.departures(static(spark, tmp_path, batches), queries.read_airlines(spark)).collect()
    codes = {row.airline: row.carrier for row in queries.read_airlines(spark).collect()}
    assert len(codes) == 16
    delays: dict[tuple[datetime, str, str], list[int]] = defaultdict(list)
    for each in flown(batches):
        assert each.departure_delay_minutes is not None
        delays[hour(each.departed), each.origin, each.carrier].append(each.departure_delay_minutes)
    found = {
        (datetime.fromtimestamp(row.window.start.timestamp(), timezone.utc), row.origin, codes[row.airline]): (
            row.flights,
            pytest.approx(row.mean_delay_minutes),
        )
        for row in counted
    }
    assert found == {key: (len(minutes), fmean(minutes)) for key, minutes in delays.items()}


def streamed(
    build: Callable[[DataFrame], DataFrame], spark: SparkSession, batches: list[list[Flight]], folder: Path
) -> tuple[list[Row], int]:
    """Feed one batch after another; returns all that the query put out, and the rows it dropped for being late."""
    inputs = folder / "in"
    inputs.mkdir()
    writer = build(queries.read_stream(spark, inputs)).writeStream.option("checkpointLocation", str(folder / "state"))
    query = writer.outputMode("update").queryName("streamed").format("memory").start()
    try:
        for number, batch in enumerate(batches):
            write_batch(batch, inputs, f"{number:08d}.json")
            query.processAllAvailable()
        dropped = [
            operator["numRowsDroppedByWatermark"]
            for progress in query.recentProgress
            for operator in progress["stateOperators"]
        ]
        return spark.table("streamed").collect(), sum(dropped)
    finally:
        query.stop()


def too_late(batches: list[list[Flight]]) -> int:
    """Flights whose hour was over when their batch began: the watermark is 4 hours behind the latest departure."""
    count = 0
    latest: datetime | None = None
    for batch in batches:
        departed = [each.departed for each in batch if each.departed is not None]
        if latest is not None:
            watermark = latest - timedelta(hours=4)
            count += sum(hour(moment) + timedelta(hours=1) <= watermark for moment in departed)
        latest = max([*departed, *([latest] if latest else [])], default=None)
    return count


def test_streamed_departures_lose_only_what_is_late(
    spark: SparkSession, batches: list[list[Flight]], tmp_path: Path
) -> None:
    """What the last counts miss is what a plain model of the watermark calls late, and Spark says it dropped some."""
    airlines = queries.read_airlines(spark)
    rows, dropped = streamed(lambda frame: queries.departures(frame, airlines), spark, batches, tmp_path)
    latest: dict[tuple[object, ...], int] = {}
    for row in rows:
        key = (row.window.start, row.origin, row.airline)
        latest[key] = max(latest.get(key, 0), row.flights)
    lost = len(flown(batches)) - sum(latest.values())
    assert lost == too_late(batches)
    assert 0 < dropped <= lost


def late_legs(batches: list[list[Flight]]) -> Counter[tuple[str, str]]:
    late = Counter[tuple[str, str]]()
    for each in flown(batches):
        for leg, minutes in (("departure", each.departure_delay_minutes), ("arrival", each.arrival_delay_minutes)):
            if each.tail is not None and minutes is not None and minutes >= queries.LATE_MINUTES:
                late[each.tail, leg] += 1
    return late


def test_late_aircraft_are_reported_once(spark: SparkSession, batches: list[list[Flight]], tmp_path: Path) -> None:
    """Within one batch the watermark stands still: each registration once for departures and once for arrivals."""
    everything = [[each for batch in batches for each in batch]]
    rows, dropped = streamed(queries.late_aircraft, spark, everything, tmp_path)
    assert dropped == 0
    assert sorted((row.tail, row.leg) for row in rows) == sorted(late_legs(batches))
    assert max(late_legs(batches).values()) > 1
    assert all(row.delay_minutes >= queries.LATE_MINUTES for row in rows)


def test_late_aircraft_are_reported_again_when_the_time_is_over(
    spark: SparkSession, batches: list[list[Flight]], tmp_path: Path
) -> None:
    """As the watermark passes on, the same aircraft may be reported anew, but never twice in REPORT_ONCE_IN."""
    rows, _ = streamed(queries.late_aircraft, spark, batches, tmp_path)
    reports: dict[tuple[str, str], list[datetime]] = defaultdict(list)
    for row in rows:
        reports[row.tail, row.leg].append(row.departed)
    gaps = [late - early for times in reports.values() for early, late in pairwise(sorted(times))]
    assert reports.keys() <= late_legs(batches).keys()
    assert gaps
    assert min(gaps) > timedelta(hours=12)
    assert len(rows) < sum(late_legs(batches).values())


needs_timers = pytest.mark.skipif(flights.lacking() is not None, reason=str(flights.lacking()))


def pieces(count: int) -> list[list[Movement]]:
    """All that happens in BATCHES spans, in `count` pieces that follow each other."""
    spans = list(islice(movement_batches(read_flights(), SPAN, laps=1), BATCHES))
    size = BATCHES // count
    return [[each for span in spans[start : start + size] for each in span] for start in range(0, BATCHES, size)]


def due(flight: Flight | Movement) -> datetime:
    return flight.scheduled_arrival + timedelta(minutes=15)


@needs_timers
@pytest.mark.parametrize("count", [BATCHES, 2, 1])
def test_overdue_flights_are_those_that_landed_too_late_or_never(
    spark: SparkSession, tmp_path: Path, count: int
) -> None:
    """
    However the stream is cut: once each, every flight that was in the air, or not yet off, when its timer was due.

    Both kinds of it are there: flights that left when they were overdue already, and such as never landed where they
    should. Timers that the watermark has not reached are still pending, and no row was too late.
    """
    from examples.overdue import overdue

    inputs = tmp_path / "in"
    inputs.mkdir()
    session = queries.timer_session(spark)
    result = overdue(queries.read_stream(session, inputs, queries.MOVEMENT_SCHEMA))
    writer = result.writeStream.option("checkpointLocation", str(tmp_path / "state"))
    query = writer.outputMode("append").queryName("overdue_flights").format("memory").start()
    fed = pieces(count)
    try:
        for number, piece in enumerate(fed):
            write_batch(piece, inputs, f"{number:08d}.json")
            query.processAllAvailable()
        progress = query.recentProgress
        rows = session.table("overdue_flights").collect()
    finally:
        query.stop()

    watermark = datetime.fromisoformat(progress[-1]["eventTime"]["watermark"].replace("Z", "+00:00"))
    gone = {known(each): due(each) for piece in fed for each in piece if each.kind == "departure"}
    landed = {known(each): each.arrived for each in read_flights() if each.arrived is not None}
    expected = {
        key: moment for key, moment in gone.items() if moment <= watermark and not lands_by(landed, key, moment)
    }
    found = {known(row): utc(row.due) for row in rows}
    assert found == expected
    assert len(rows) == len(found)
    assert any(landed.get(key) is None for key in found)
    departed = {known(each): each.at for piece in fed for each in piece if each.kind == "departure"}
    assert any(departed[key] > moment for key, moment in found.items())

    executed = [each for each in progress if "addBatch" in each["durationMs"]]
    operators = [operator for each in executed for operator in each["stateOperators"]]
    assert sum(each["numRowsDroppedByWatermark"] for each in operators) == 0
    assert sum(each["customMetrics"]["numRegisteredTimers"] for each in operators) == len(gone)


def known(row: Flight | Movement | Row) -> tuple[object, ...]:
    """What tells a flight from all others."""
    return row.carrier, row.number, row.origin, row.destination, utc(row.scheduled)


def utc(moment: datetime) -> datetime:
    return datetime.fromtimestamp(moment.timestamp(), timezone.utc)


def lands_by(landed: dict[tuple[object, ...], datetime], key: tuple[object, ...], moment: datetime) -> bool:
    return key in landed and landed[key] <= moment


def test_movements_that_are_streamed_are_whole(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads of the files what was written into them, column by column."""
    fed = [each for piece in pieces(1) for each in piece]
    write_batch(fed, tmp_path, "00000000.json")
    rows = spark.read.schema(queries.MOVEMENT_SCHEMA).json(str(tmp_path)).collect()
    assert [(row.kind, utc(row.at), utc(row.scheduled_arrival), known(row)) for row in rows] == [
        (each.kind, each.at, each.scheduled_arrival, known(each)) for each in fed
    ]
