"""Split gauges and histograms as metrics: Flink's ids, the subtask that they belong to, numbers as in Flink."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collector.taps import Taps
from service.flink import aggregates, metrics
from service.flink.query import Query
from streamgauge import names

JID, VERTEX = "d" * 32, "c" * 32
COLUMNS = {
    names.SPLIT_CURRENT_WATERMARK: [-(2**63), 2**63 - 1],
    names.SPLIT_ACTIVE_TIME: [990, None],
    names.SPLIT_PAUSED_TIME: [0, 0],
    names.SPLIT_IDLE: [0, 1],
}
BY_SUBTASK = {
    "0.Source__x.split.p_1.watermark.currentWatermark": "-9223372036854775808",
    "1.Source__x.split.p_2.watermark.currentWatermark": "9223372036854775807",
    "0.Source__x.split.p_1.watermark.activeTimeMsPerSecond": "990.0",
    "0.Source__x.split.p_1.watermark.pausedTimeMsPerSecond": "0",
    "1.Source__x.split.p_2.watermark.pausedTimeMsPerSecond": "0",
    "0.Source__x.split.p_1.isIdle": "false",
    "1.Source__x.split.p_2.isIdle": "true",
}


def query(states: Any, taps: Taps, query_string: str = "", **path: str) -> Query:
    vertex = states.vertex(operators={"Source: x": {}, "Tap": {}}, columns={"x": states.column(1, 2)}, taps=taps)
    snapshot = states.snapshot(states.job(vertex))
    return Query.parse(snapshot, 5_000, {"jobid": JID, "vertexid": VERTEX, **path}, query_string.encode())


def told(states: Any, taps: Taps) -> dict[str, str]:
    """Every id of the vertex but its own column's, with its value."""
    listed = [each["id"] for each in metrics.vertex(query(states, taps))]
    asked = metrics.vertex(query(states, taps, "get=" + ",".join(listed)))
    assert [each["id"] for each in asked] == listed
    return {each["id"]: each["value"] for each in asked if not each["id"].endswith(".x")}


def split_tap(states: Any, **changes: Any) -> Any:
    return states.tap("p.1", "p:2", **({"columns": COLUMNS, "by_subtask": True} | changes))


def test_split_of_a_subtask_is_that_subtasks(states: Any) -> None:
    """Flink's ids with the split's name filtered; what is active is a double there; what is not known is absent."""
    assert told(states, Taps((split_tap(states),))) == BY_SUBTASK


def test_split_of_no_subtask_is_the_first_ones(states: Any) -> None:
    """A partition is read by whichever task; so is a split past the vertex' subtasks."""
    first = {f"0{name[1:]}": value for name, value in BY_SUBTASK.items()}
    assert told(states, Taps((split_tap(states, by_subtask=False),))) == first
    columns = {names.SPLIT_RECORDS: [5, 6, 7]}
    wider = states.tap("a", "b", "c", columns=columns, by_subtask=True)
    assert told(states, Taps((wider,))) == {
        f"{subtask}.Source__x.split.{name}.numRecordsIn": value
        for subtask, name, value in ((0, "a", "5"), (1, "b", "6"), (0, "c", "7"))
    }


def test_first_of_two_splits_of_one_name_is_told(states: Any) -> None:
    """Two taps at one operator, or names that are the same once filtered."""
    first = states.tap("a.b", "a b", columns={names.SPLIT_RECORDS: [1, 2]})
    second = states.tap("a_b", columns={names.SPLIT_RECORDS: [3]})
    assert told(states, Taps((first, second))) == {"0.Source__x.split.a_b.numRecordsIn": "1"}


def test_stream_that_is_not_parted_has_no_split_gauges(states: Any) -> None:
    """Its one split has no name: `Source__x.split..numRecordsIn` would be nobody's id."""
    assert told(states, Taps((states.tap("", columns={names.SPLIT_RECORDS: [1]}),))) == {}


def test_taps_of_other_operators_have_their_names(states: Any) -> None:
    """A tap that stands in for a source has ids of its own operator."""
    tap = states.tap("a", columns={names.SPLIT_RECORDS: [1]}, operator=f"{1:032x}")
    assert told(states, Taps((tap,))) == {"0.Tap.split.a.numRecordsIn": "1"}


def test_subtask_tells_its_own_splits(states: Any) -> None:
    """Ids without the subtask, listed and asked for; a subtask that has none tells none."""
    taps = Taps((split_tap(states),))
    for subtask in ("0", "1", "2"):
        own = {name[2:]: value for name, value in BY_SUBTASK.items() if name[0] == subtask}
        listed = [each["id"] for each in metrics.subtask(query(states, taps, subtaskindex=subtask))]
        assert [name for name in listed if name != "x"] == list(own)
        asked = metrics.subtask(
            query(states, taps, "get=" + ",".join(BY_SUBTASK).replace("0.S", "S"), subtaskindex="2")
        )
        assert asked == []
        asked = metrics.subtask(query(states, taps, "get=" + ",".join(own), subtaskindex=subtask))
        assert {each["id"]: each["value"] for each in asked} == own


def test_splits_are_aggregated_as_other_metrics(states: Any) -> None:
    """Over the subtasks that have the split; what is a boolean is left out, as in Flink."""
    taps = Taps((split_tap(states),))
    paused, idle = "Source__x.split.p_1.watermark.pausedTimeMsPerSecond", "Source__x.split.p_1.isIdle"
    listed = {each["id"] for each in aggregates.subtasks(query(states, taps))}
    assert listed == {"x", *(name[2:] for name in BY_SUBTASK)}
    second = {each["id"] for each in aggregates.subtasks(query(states, taps, "subtasks=1"))}
    assert second == {"x", *(name[2:] for name in BY_SUBTASK if name[0] == "1")}
    [answer] = aggregates.subtasks(query(states, taps, f"agg=max&get={idle},{paused}"))
    assert answer["id"] == paused
    assert aggregates.subtasks(query(states, taps, f"subtasks=1&get={paused}")) == []


VALUES = (10, 20, 20, 90, 900)


def test_histogram_has_flinks_eleven_statistics(states: Any) -> None:
    """Under `<operator>.<metric>_<statistic>` at subtask 0: the whole numbers are the ends, the rest are doubles."""
    distributions = {(f"{1:032x}", names.TIMER_LATENESS): states.buckets(*VALUES)}
    found = told(states, Taps((), distributions))
    assert list(found) == [f"0.Tap.timerLateness_{each}" for each in names.LATENCY_STATISTICS]
    named = {name.rpartition("_")[2]: value for name, value in found.items()}
    assert (named["min"], named["mean"], named["median"], named["p75"]) == ("10", "208.0", "20.0", "90.0")
    # From 512 ms on a bucket is 4 ms wide.
    assert (named["max"], named["p999"]) == ("903", "903.0")
    assert float(named["stddev"]) == pytest.approx(np.std(VALUES), rel=0.01)


def test_histogram_of_nothing_has_no_statistics(states: Any) -> None:
    """No timer has fired: nothing is known."""
    distributions = {(f"{1:032x}", names.TIMER_LATENESS): states.buckets(-1)}
    assert told(states, Taps((), distributions)) == {}


@pytest.mark.parametrize("name", ["0.Tap.timerLateness", "0.Tap.timerLateness_p50", "1.Tap.timerLateness_min"])
def test_id_that_is_not_listed_has_no_value(states: Any, name: str) -> None:
    """Left out, as every unknown metric."""
    distributions = {(f"{1:032x}", names.TIMER_LATENESS): states.buckets(*VALUES)}
    assert metrics.vertex(query(states, Taps((), distributions), f"get={name}")) == []
