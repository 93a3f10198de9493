"""…/vertices/:vertexid/splits: taps and their splits, worst first, and Spark's watermark beside them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from collector.histogram import BOUNDS_MS
from collector.taps import Taps
from service.errors import Missing
from service.flink import splits
from service.flink.query import Query
from streamgauge import names, wire
from streamgauge.errors import UnknownJob

JID, VERTEX, SOURCE, OTHER = "d" * 32, "c" * 32, "a" * 32, "b" * 32
NOW_MS, NONE_MS, END_MS = 100_000, -(2**63), 2**63 - 1
COLUMNS: dict[str, list[int | None]] = {
    names.SPLIT_CURRENT_WATERMARK: [90_000, 30_000, 90_000],
    names.SPLIT_IDLE: [0, 0, 1],
    names.SPLIT_WATERMARK_DRIFT: [0, 60_000, None],
    names.SPLIT_RECORDS: [10, 20, 30],
    names.SPLIT_RECORDS_AT_RISK: [0, 15, None],
    names.SPLIT_ACTIVE_TIME: [990, 900, 0],
    names.SPLIT_PAUSED_TIME: [0, 0, 0],
    names.SPLIT_IDLE_TIME: [10, 100, 1_000],
    names.SPLIT_ACCUMULATED_ACTIVE_TIME: [5, 6, 7],
    names.SPLIT_ACCUMULATED_PAUSED_TIME: [0, 0, 0],
    names.SPLIT_ACCUMULATED_IDLE_TIME: [8, 9, 10],
}


def edge(source: str) -> tuple[wire.Edge, ...]:
    return (wire.Edge(source, "HASH", ""),)


def tapped(states: Any, *taps: wire.Tap, **distributions: wire.Buckets) -> Any:
    told = {(f"{0:032x}", metric): buckets for metric, buckets in distributions.items()}
    return states.vertex(id=SOURCE, name="Source", operators={"Source: rate": {}}, taps=Taps(taps, told))


def behind(
    states: Any, spark_ms: list[int | None] | None = None, split_ms: list[int] | None = None, **given: Any
) -> Any:
    columns = {} if spark_ms is None else {names.CURRENT_INPUT_WATERMARK: states.column(*spark_ms)}
    if split_ms is not None:
        columns[names.CURRENT_SPLIT_WATERMARK] = states.column(*split_ms)
    return states.vertex(columns=columns, **({"inputs": edge(SOURCE)} | given))


def ask(states: Any, *vertices: Any, vertex: str = SOURCE, **changes: Any) -> Any:
    """The body as it is sent."""
    snapshot = states.snapshot(states.job(*vertices, **changes))
    body = splits.vertex(Query.parse(snapshot, NOW_MS, {"jobid": JID, "vertexid": vertex}, b""))
    return msgspec.json.decode(msgspec.json.encode(body))


def test_tap_is_told_with_what_it_is_set_to(states: Any) -> None:
    """Its operator by name, its own watermark and lag, and what of its splits is worst."""
    tap = states.tap(
        "0",
        "1",
        "2",
        columns=COLUMNS,
        watermark_ms=30_000,
        max_out_of_orderness_ms=2_000,
        idleness_ms=5_000,
        unwatched=4,
    )
    [told] = ask(states, tapped(states, tap))["taps"]
    del told["splits"]
    assert told == {
        "name": "fed",
        "operator-id": f"{0:032x}",
        "operator-name": "Source: rate",
        "watermark": 30_000,
        "finished": False,
        "lag-ms": 70_000,
        "idle": False,
        "max-out-of-orderness-ms": 2_000,
        "idleness-ms": 5_000,
        "by-subtask": False,
        "unwatched-records": 4,
        "records-at-risk": 15,
        "max-drift-ms": 60_000,
    }


def test_split_has_all_of_its_figures(states: Any) -> None:
    """Named by what they are, ms and counts; the one that drifts most stands first, one without a drift last."""
    [told] = ask(states, tapped(states, states.tap("0", "1", "2", columns=COLUMNS)))["taps"]
    worst, _, last = told["splits"]
    assert worst == {
        "id": "1",
        "watermark": 30_000,
        "finished": False,
        "lag-ms": 70_000,
        "idle": False,
        "drift-ms": 60_000,
        "records": 20,
        "records-at-risk": 15,
        "active-ms-per-second": 900,
        "paused-ms-per-second": 0,
        "idle-ms-per-second": 100,
        "accumulated-active-ms": 6,
        "accumulated-paused-ms": 0,
        "accumulated-idle-ms": 9,
    }
    assert (last["id"], last["idle"], last["drift-ms"], last["records-at-risk"]) == ("2", True, None, None)


def test_equal_drifts_stay_in_order(states: Any) -> None:
    """As the splits are watched."""
    columns = {names.SPLIT_WATERMARK_DRIFT: [1, 5, 1, 5, None, None]}
    [told] = ask(states, tapped(states, states.tap(*"abcdef", columns=columns)))["taps"]
    assert [split["id"] for split in told["splits"]] == list("bdacef")


def test_what_is_not_told_is_null(states: Any) -> None:
    """Not 0: nothing is known of it."""
    [told] = ask(states, tapped(states, states.tap("0")))["taps"]
    [split] = told["splits"]
    assert {key for key, value in split.items() if value is not None} == {"id", "finished"}
    assert (told["idleness-ms"], told["records-at-risk"], told["max-drift-ms"]) == (None, None, None)


@pytest.mark.parametrize(
    ("watermark_ms", "told"),
    [
        (NONE_MS, (None, False, None)),
        # Where Flink's generator begins.
        (NONE_MS + 2_000 + 1, (None, False, None)),
        (NONE_MS + 2_000 + 2, (NONE_MS + 2_002, False, NOW_MS - (NONE_MS + 2_002))),
        (-5, (-5, False, NOW_MS + 5)),
        (NOW_MS + 7, (NOW_MS + 7, False, -7)),
        (END_MS, (END_MS, True, None)),
    ],
    ids=["none", "generator's start", "first", "before 1970", "future", "end"],
)
def test_watermark_at_the_ends_of_time(states: Any, watermark_ms: int, told: tuple[Any, ...]) -> None:
    """Null before there is one; Long.MAX_VALUE is the end of input, and lags behind nothing."""
    columns = {names.SPLIT_CURRENT_WATERMARK: [watermark_ms]}
    tap = states.tap("0", columns=columns, watermark_ms=watermark_ms, max_out_of_orderness_ms=2_000)
    [found] = ask(states, tapped(states, tap))["taps"]
    for each in (found, *found["splits"]):
        assert (each["watermark"], each["finished"], each["lag-ms"]) == told


def test_job_that_has_ended_lags_behind_nothing(states: Any) -> None:
    """Its watermarks stay, its lags would grow for ever."""
    tap = states.tap("0", columns={names.SPLIT_CURRENT_WATERMARK: [5]}, watermark_ms=5)
    vertices = (tapped(states, tap), behind(states, [7, 7]))
    [told] = ask(states, *vertices, state="CANCELED")["taps"]
    assert (told["watermark"], told["lag-ms"], told["splits"][0]["lag-ms"]) == (5, None, None)
    assert ask(states, *vertices, state="SUSPENDED")["spark"] == {
        "watermark": 7,
        "finished": False,
        "lag-ms": NOW_MS - 7,
    }


def test_spark_is_that_of_the_nearest_vertices_behind_a_source(states: Any) -> None:
    """A source has no watermark of its own; of several the least, and what is farther off does not matter."""
    near = behind(states, id=VERTEX)
    first = behind(states, [60, None], id="1" * 32, inputs=edge(VERTEX))
    second = behind(states, [50, 70], id="2" * 32, inputs=edge(VERTEX))
    far = behind(states, [10, 10], id="3" * 32, inputs=edge("1" * 32))
    vertices = (tapped(states), near, first, second, far)
    assert ask(states, *vertices)["spark"]["watermark"] == 50
    assert ask(states, *vertices, vertex="1" * 32)["spark"]["watermark"] == 60
    assert ask(states, *vertices, vertex="3" * 32)["spark"] == {
        "watermark": 10,
        "finished": False,
        "lag-ms": NOW_MS - 10,
    }


def test_vertex_behind_taps_tells_what_it_would_follow(states: Any) -> None:
    """The least of its subtasks, and every tap whose records reach it, the nearest first; one of no event time none."""
    first = tapped(states, states.tap("0"), states.tap(name="no splits"))
    between = states.vertex(
        id=OTHER, name="Join", operators={"Join": {}}, inputs=edge(SOURCE), taps=Taps((states.tap("x", name="late"),))
    )
    last = behind(states, [40, 50], [30, 20], inputs=(*edge(OTHER), *edge(SOURCE)))
    told = ask(states, first, between, last, vertex=VERTEX)
    assert told["combined"] == {
        "watermark": 20,
        "finished": False,
        "lag-ms": NOW_MS - 20,
        "taps": [
            {"vertex-id": OTHER, "vertex-name": "Join", "name": "late"},
            {"vertex-id": SOURCE, "vertex-name": "Source", "name": "fed"},
        ],
    }
    assert (told["spark"]["watermark"], told["taps"]) == (40, [])


def test_without_taps_there_is_nothing_to_tell(states: Any) -> None:
    """200, empty lists, no watermark: nobody has tapped the query."""
    none = {"watermark": None, "finished": False, "lag-ms": None}
    assert ask(states, states.vertex(), vertex=VERTEX) == {
        "spark": none,
        "combined": {**none, "taps": []},
        "taps": [],
        "bounds-ms": list(BOUNDS_MS),
        "records": [],
    }


def test_how_late_records_were(states: Any) -> None:
    """By operator: of the whole and of the part until the trigger; timers' lateness is told elsewhere."""
    told = {names.RECORD_LATENCY: states.buckets(30, 50), names.TIMER_LATENESS: states.buckets(7)}
    [records] = ask(states, tapped(states, **told))["records"]
    assert (records["operator-id"], records["operator-name"]) == (f"{0:032x}", "Source: rate")
    assert (records["latency"]["count"], records["latency"]["mean-ms"], records["queueing"]) == (2, 40.0, None)
    assert ask(states, tapped(states, **{names.TIMER_LATENESS: states.buckets(7)}))["records"] == []


def test_unknown_job_and_vertex_are_refused(states: Any) -> None:
    """As by the other resources of a vertex."""
    snapshot = states.snapshot(states.job(states.vertex()))
    with pytest.raises(UnknownJob):
        splits.vertex(Query.parse(snapshot, 0, {"jobid": "e" * 32, "vertexid": VERTEX}, b""))
    with pytest.raises(Missing, match=r"No vertex with ID 'e+' exists"):
        splits.vertex(Query.parse(snapshot, 0, {"jobid": JID, "vertexid": "e" * 32}, b""))
