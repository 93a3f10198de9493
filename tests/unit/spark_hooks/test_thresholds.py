"""What Spark 3.5.9 and 4.3.0 were seen to print at stateful operators, of every kind."""

import pytest

from spark_hooks.thresholds import Thresholds, thresholds

L, E = 1_795_255_220_000, 1_795_255_290_000
BOTH = Thresholds(L, E, E)

_STATE = ", state info [ checkpoint = file:/data/cp/state, runId = 382bd74b-213c-4a26-89e3-d55c99dd88ee, opId = 0,"
STATE_3 = f"{_STATE} ver = 3, numPartitions = 2]"
STATE_4 = f"{STATE_3} stateStoreCkptIds = None"

_RANGE = "((u#669-T30000ms >= t#663-T10000ms) AND (u#669-T30000ms <= t#663-T10000ms + INTERVAL '20' SECOND))"
CONDITION = f"condition = [ leftOnly = null, rightOnly = null, both = {_RANGE}, full = {_RANGE} ]"
PLAIN = "condition = [ leftOnly = null, rightOnly = null, both = null, full = null ]"
JOIN = "StreamingSymmetricHashJoin [k#661], [j#670]"
LEFT_BOUND = "left value predicate: (t#663-T10000ms <= 1795255269999000)"
CLEANUP = f"state cleanup [ {LEFT_BOUND}, right value predicate: (u#669-T30000ms <= 1795255289999000) ]"
NO_LEFT = "state cleanup [ left = null, right value predicate: (u#669-T30000ms <= 1795255289999000) ]"
FAR_RIGHT = f"state cleanup [ {LEFT_BOUND}, right value predicate: (u#669-T30000ms <= 1795255169999000) ]"
KEYS = (
    "state cleanup [ left key predicate: (input[1, timestamp, true] <= 1795255290000000), "
    "right key predicate: (input[1, timestamp, true] <= 1795255290000000) ]"
)
WINDOWS = (
    "state cleanup [ left key predicate: (input[1, struct<start:timestamp,end:timestamp>, false].end <= "
    "1795255290000000), right key predicate: (input[1, struct<start:timestamp,end:timestamp>, false].end <= "
    "1795255290000000) ]"
)
SESSION = "[k#310], session_window#322: struct<start: timestamp, end: timestamp>"
FUNCTION = (
    "!FlatMapGroupsInPandasWithState fn(k#2755, v#2756, t#2757-T10000ms)#2762, [k#2755], [k#2763, n#2764], "
    "[StructField(n,IntegerType,true)]"
)

PROCESSOR = (
    "!TransformWithStateInPySpark transformWithStateUDF(k#512, v#513, t#514-T10000ms)#519, [k#512], "
    "[k#520, n#521, t#522], Update"
)

SEEN = {
    "append 3.5": f"StateStoreSave [window#19-T10000ms, k#1]{STATE_3}, Append, {L}, {E}, 2",
    "append 4.3": f"StateStoreSave [window#12-T10000ms, k#16]{STATE_4}, Append, {L}, {E}, 2",
    "update": f"StateStoreSave [window#12-T10000ms, k#16]{STATE_4}, Update, {L}, {E}, 2",
    "complete": f"StateStoreSave [window#96-T10000ms, k#116]{STATE_4}, Complete, {L}, {E}, 2",
    "session save 3.5": f"SessionWindowStateStoreSave {SESSION}{STATE_3}, Append, {L}, {E}, 1",
    "session save 4.3": f"SessionWindowStateStoreSave {SESSION}{STATE_4}, Append, {L}, {E}, 1",
    "session restore 3.5": f"SessionWindowStateStoreRestore {SESSION}{STATE_3}, {L}, {E}, 1",
    "session restore 4.3": f"SessionWindowStateStoreRestore {SESSION}{STATE_4}, {L}, {E}, 1",
    "deduplicate 3.5": f"StreamingDeduplicate [k#616, t#618-T10000ms]{STATE_3}, {L}, {E}",
    "deduplicate 4.3": f"StreamingDeduplicate [k#616, t#618-T10000ms]{STATE_4}, {L}, {E}",
    "deduplicate within": f"StreamingDeduplicateWithinWatermark [k#465]{STATE_4}, {L}, {E}",
    "processor": f"{PROCESSOR}, EventTime{STATE_4}, 1795306462665, 1795306432732, {L}, {E}, pandas, true, false, [k#5]",
    "first batch": f"{PROCESSOR}, NoTime{STATE_4}, 1795306462665, {L}, {E}, pandas, true, false, [k#5]",
    "join of all 3.5": f"{JOIN}, Inner, {PLAIN}{STATE_3}, {L}, {E}, state cleanup [ left = null, right = null ], 2",
    "join by time 4.3": f"{JOIN}, Inner, {PLAIN}{STATE_4}, {L}, {E}, {KEYS}, 2, Append",
    "join by window 3.5": f"{JOIN}, Inner, {PLAIN}{STATE_3}, {L}, {E}, {WINDOWS}, 2",
}


def _node(description: str) -> str:
    return description.split(" ", 1)[0].removeprefix("!")


@pytest.mark.parametrize("description", SEEN.values(), ids=SEEN.keys())
def test_output_watermark_is_the_eviction_threshold(description: str) -> None:
    """Spark passes on what an operator evicts by, where nothing older can still come out of it."""
    assert thresholds(_node(description), description) == BOTH


@pytest.mark.parametrize(
    ("description", "output_ms"),
    [
        (f"{JOIN}, Inner, {CONDITION}{STATE_3}, {L}, {E}, {CLEANUP}, 2", E - 20_001),
        (f"{JOIN}, LeftOuter, {CONDITION}{STATE_4}, {L}, {E}, {CLEANUP}, 2, Append", E - 20_001),
        (f"{JOIN}, FullOuter, {CONDITION}{STATE_4}, {L}, {E}, {FAR_RIGHT}, 2, Append", E - 120_001),
        (f"{JOIN}, Inner, {CONDITION}{STATE_4}, {L}, {E}, {NO_LEFT}, 2, Append", E - 1),
        (f"{JOIN}, LeftSemi, {CONDITION}{STATE_4}, {L}, {E}, {FAR_RIGHT}, 2, Append", E - 20_001),
        (f"{JOIN}, LeftSemi, {CONDITION}{STATE_3}, {L}, {E}, {FAR_RIGHT}, 2", E - 120_001),
    ],
    ids=["inner 3.5", "left outer 4.3", "the other side", "one side alone", "left semi 4.3", "left semi 3.5"],
)
def test_join_puts_out_what_it_still_keeps(description: str, output_ms: int) -> None:
    """The least of its threshold and of what its sides are cleaned up to; of a semi join only the left comes out."""
    assert thresholds("StreamingSymmetricHashJoin", description) == Thresholds(L, E, output_ms)


@pytest.mark.parametrize(
    "description",
    [
        f"{FUNCTION}{STATE_4}, 2, Update, EventTimeTimeout, 1795305062825, {L}, {E}, false",
        f"{FUNCTION}{STATE_3}, 2, Update, EventTimeTimeout, 1795306221121, {L}, {E}",
        f"{FUNCTION}{STATE_4}, 2, Update, NoTimeout, 1795305062825, {L}, {E}, false",
    ],
    ids=["4.3", "3.5", "no timeout"],
)
def test_of_what_a_function_puts_out_nothing_is_assumed(description: str) -> None:
    """Spark lets no watermark through user code that makes rows of its own."""
    assert thresholds("FlatMapGroupsInPandasWithState", description) == Thresholds(L, E, None)


def test_processor_of_processing_time_lets_no_watermark_through() -> None:
    """As Spark has it: what it puts out follows from no event time."""
    told = f"{PROCESSOR}, ProcessingTime{STATE_4}, 1795306462665, 1795306432732, {L}, {E}, pandas, true, false, [k#5]"
    assert thresholds("TransformWithStateInPySpark", told) == Thresholds(L, E, None)


def test_zero_is_told_as_it_is() -> None:
    """Before there is a watermark a join's follows from 0, as Spark's own does."""
    cleanup = "state cleanup [ left value predicate: (t#524-T10000ms <= -20001000), right = null ]"
    description = f"{JOIN}, Inner, {CONDITION}{STATE_4}, 0, 0, {cleanup}, 2, Append"
    assert thresholds("StreamingSymmetricHashJoin", description) == Thresholds(0, 0, -20_001)


@pytest.mark.parametrize(
    ("node", "description"),
    [
        ("StateStoreRestore", f"StateStoreRestore [k#219]{STATE_4}, 2"),
        ("StreamingGlobalLimit", f"StreamingGlobalLimit 5{STATE_4}, Append"),
        ("Project", f"Project [1 AS a, Append, {L}, {E}, 2"),
        ("StateStoreSave", f"StateStoreSave [k#219], Append, {L}, {E}, 2, something new"),
        ("StateStoreSave", ""),
        ("StreamingSymmetricHashJoin", f"{JOIN}, Inner, {PLAIN}{STATE_3}, {L}, {E}, something new"),
        ("TransformWithStateInPySpark", "TransformWithStateInPySpark something new"),
        ("FlatMapGroupsWithState", "FlatMapGroupsWithState something new"),
    ],
    ids=["restore", "limit", "stateless", "unknown", "empty", "unknown join", "unknown processor", "unknown function"],
)
def test_nothing_is_read_where_spark_prints_none(node: str, description: str) -> None:
    """Nor where another version prints something else."""
    assert thresholds(node, description) is None


def test_columns_that_look_like_thresholds_are_none() -> None:
    """What a user has called a column stands before what Spark prints."""
    column = "a, Append, 1, 2, 2, EventTimeTimeout, 1, 3, 4, state cleanup [ left = null, right = null ], 2#1"
    assert thresholds("StateStoreSave", f"StateStoreSave [{column}]{STATE_4}, Append, {L}, {E}, 2") == BOTH
    join = f"StreamingSymmetricHashJoin [{column}], [j#2], Inner, {PLAIN}{STATE_3}, {L}, {E}, {KEYS}, 2"
    assert thresholds("StreamingSymmetricHashJoin", join) == BOTH
    function = f"!FlatMapGroupsInPandasWithState fn({column}){STATE_4}, 2, Update, NoTimeout, 17, {L}, {E}, false"
    assert thresholds("FlatMapGroupsInPandasWithState", function) == Thresholds(L, E, None)
