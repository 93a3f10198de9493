"""
Event time whose truth is known: watermarks, drift, late rows and lateness are what Spark did, and what the rows say.

Every figure is read through the REST as users do, and held against Spark's own progress, plan and event log, or against
the rows that the test wrote. Each test prints what it expected and what it measured (pytest -s).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from streamgauge import names, tap
from streamgauge.errors import TapError
from tests.e2e.conftest import Agree, Rest, eventually, told
from tests.e2e.fed import WAIT_S, FedQuery, Feed, Row, dropped, executed_ms, running, thresholds, trigger_ms
from tests.e2e.fed import watermark_ms as spark_watermark_ms
from tests.e2e.test_checkpoints import ROCKSDB
from tests.e2e.timer_model import AFTER_MS, Model

pytestmark = pytest.mark.spark

START_MS = 1_767_225_600_000
"""2026-01-01."""
DELAY_MS = 10_000
BEHIND_MS = 60_000
END_MS = 2**63 - 1
"""Source: Flink, `Watermark.MAX_WATERMARK`."""
IDLENESS_MS = 10_000

needs_timers = pytest.mark.skipif(int(pyspark.__version__.split(".")[0]) < 4, reason="Spark 4 brought timers")


def seconds(file: int, split: int, behind_ms: int = 0) -> list[Row]:
    """Ten rows of a split, one a second: those of one file come right after those of the file before."""
    return [Row(split, START_MS + 1000 * (10 * file + row) - behind_ms) for row in range(10)]


def flink_ms(rows: Iterable[Row], split: int) -> int:
    """A split's watermark as Flink's generator has it: 1 ms below Spark's, which lets a row at the bound be late."""
    return max(row.at_ms for row in rows if row.split == split) - DELAY_MS - 1


def tapped(feed: Feed, spark: SparkSession, **options: Any) -> DataFrame:
    """The fed rows, watched by the split that is a column of theirs."""
    bound = f"{DELAY_MS} milliseconds"
    return tap(
        feed.stream(spark),
        "fed",
        event_time="at",
        partition="split",
        splits=[0, 1, 2],
        max_out_of_orderness=bound,
        **options,
    )


def deduplicated(rows: DataFrame) -> DataFrame:
    """
    Each row once, which each is: late rows are dropped in front of this operator, one by one.

    An aggregation would count them after it has brought together those of a group within a partition.
    """
    return rows.withWatermark("at", f"{DELAY_MS} milliseconds").dropDuplicatesWithinWatermark(["id"])


def by_split(query: FedQuery) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The only tap of a query, and its splits by their ids, from …/splits of the source's vertex."""
    [found] = query.get(f"{query.vertex('Source: ')}/splits")["taps"]
    return found, {split["id"]: split for split in found["splits"]}


def test_rows_of_a_split_behind_are_those_that_spark_drops(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest, agree: Agree
) -> None:
    """Of three splits one is 60 s behind: its drift says so, and its rows at risk are the rows that Spark dropped."""
    feed, rows = Feed(tmp_path / "in"), []

    def add(file: int) -> None:
        found = [*seconds(file, 0), *seconds(file, 1, 3000), *seconds(file, 2, BEHIND_MS)]
        feed.add(found)
        rows.extend(found)

    for file in range(4):
        add(file)
    with running(rest, deduplicated(tapped(feed, attached)), request.node.name, tmp_path) as query:
        query.drain()
        # Spark drops by the watermark of the batch before: what follows a batch without data meets another one.
        for file in (4, 5):
            add(file)
            query.drain()
        batches = query.batches()
        assert [each["numInputRows"] for each in batches] == [30, 30, 30, 30, 0, 30, 0, 30, 0]
        whole, splits = by_split(query)
        source, behind = query.vertex("Source: "), query.vertex("Deduplicate")
        body = query.get(f"{behind}/splits")
        ids = [each["id"] for each in query.get(f"{source}/metrics")]
        [gauge] = [each for each in ids if each.endswith(f".split.2.{names.SPLIT_WATERMARK_DRIFT}")]
        [drift] = query.get(f"{source}/metrics?get={gauge}")
        late = query.columns(behind, names.CURRENT_SPLIT_WATERMARK)
        input_watermarks = query.watermarks(behind)
    lost = dropped(batches)
    # The first two batches ran before there was a watermark to drop by.
    assert lost == sum(row.split == 2 for row in rows) - 2 * 10
    for split in (0, 1, 2):
        agree(f"split {split}: watermark", flink_ms(rows, split), splits[str(split)]["watermark"], within=0)
        agree(f"split {split}: rows", sum(row.split == split for row in rows), splits[str(split)]["records"], within=0)
    for split, at_risk, drift_ms in (("0", 0, 0), ("1", 0, 3000), ("2", lost, BEHIND_MS)):
        agree(
            f"split {split}: rows at risk, as Spark dropped them", at_risk, splits[split]["records-at-risk"], within=0
        )
        agree(f"split {split}: drift, ms", drift_ms, splits[split]["drift-ms"], within=0)
    assert [split["id"] for split in whole["splits"]] == ["2", "1", "0"]
    assert float(drift["value"]) == BEHIND_MS
    assert whole["records-at-risk"] == lost
    assert not any(split["idle"] or split["finished"] for split in splits.values())
    fastest_ms = spark_watermark_ms(batches[-1])
    assert fastest_ms == max(row.at_ms for row in rows) - DELAY_MS
    agree("the watermark of Spark, which follows the fastest", fastest_ms, body["spark"]["watermark"], within=0)
    assert set(input_watermarks) == {fastest_ms}
    agree("the one that follows the slowest", flink_ms(rows, 2), body["combined"]["watermark"], within=0)
    assert set(late) == {whole["watermark"]} == {flink_ms(rows, 2)}
    ended = told(rest, request.node.name, "CANCELED")
    assert not by_split(query)[0]["finished"], ended


def test_idle_split_lets_the_others_go_on(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest, agree: Agree
) -> None:
    """They wait for it until it has been silent for the timeout, not less; they wait again when it has caught up."""
    feed, rows = Feed(tmp_path / "in"), []
    stream = deduplicated(tapped(feed, attached, idleness=f"{IDLENESS_MS} milliseconds"))

    def add(files: dict[int, int]) -> None:
        """Feed a batch: of each split the rows of that file."""
        found = [row for split, file in files.items() for row in seconds(file, split)]
        feed.add(found)
        rows.extend(found)

    add({0: 0, 1: 0, 2: 0})
    with running(rest, stream, request.node.name, tmp_path) as query:
        query.drain()
        # The first batch takes its time. In the second one the split is as far as it was, and holds the others up.
        add({0: 1, 1: 1, 2: 0})
        seen_ms, file = trigger_ms(query.drain()[-2]), 1
        behind, held_ms = query.vertex("Deduplicate"), flink_ms(rows, 2)
        while True:
            # A batch tells what there was until its trigger.
            silent_ms = trigger_ms(query.batches()[-1]) - seen_ms
            whole, splits = by_split(query)
            assert splits["2"]["idle"] == (silent_ms > IDLENESS_MS), silent_ms
            if splits["2"]["idle"]:
                break
            assert whole["watermark"] == held_ms < flink_ms(rows, 0)
            assert set(query.columns(behind, names.CURRENT_SPLIT_WATERMARK)) == {held_ms}
            file += 1
            add({0: file, 1: file})
            query.drain()
        print(f"\nidle after {silent_ms} ms", end="")
        assert file > 1
        moved_ms = flink_ms(rows, 0)
        agree("watermark of all, without the idle split", moved_ms, whole["watermark"], within=0)
        assert set(query.columns(behind, names.CURRENT_SPLIT_WATERMARK)) == {moved_ms}
        assert splits["2"]["watermark"] == held_ms
        assert [splits["0"]["idle"], splits["1"]["idle"], whole["idle"]] == [False, False, False]

        # It comes back where it was: no watermark goes back for it, and behind the source nothing waits until it has
        # caught up. Source: Flink, `WatermarkOutputMultiplexer` and `StatusWatermarkValve`.
        add({0: file + 1, 1: file + 1, 2: 1})
        query.drain()
        whole, splits = by_split(query)
        assert splits["2"]["idle"] is False
        assert splits["2"]["watermark"] == flink_ms(rows, 2) < moved_ms
        agree("watermark of all, with the split that is back", moved_ms, whole["watermark"], within=0)
        [passed_ms] = set(query.columns(behind, names.CURRENT_SPLIT_WATERMARK))
        agree("watermark behind the source meanwhile", flink_ms(rows, 0), passed_ms, within=0)

        # It catches up; then the others go ahead of it, and are held up once more.
        add({0: file + 2, 1: file + 2, 2: file + 2})
        add({0: file + 6, 1: file + 6, 2: file + 2})
        query.drain()
        whole, splits = by_split(query)
        [passed_ms] = set(query.columns(behind, names.CURRENT_SPLIT_WATERMARK))
        agree("watermark of all, with the split that caught up", flink_ms(rows, 2), whole["watermark"], within=0)
        agree("watermark behind the source then", flink_ms(rows, 2), passed_ms, within=0)
        agree("its drift, ms", 40_000, splits["2"]["drift-ms"], within=0)


def test_finished_source_ends_at_the_end_of_time(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest, agree: Agree
) -> None:
    """No row can come that would be late: the source and what is behind it are at Long.MAX_VALUE; splits stay."""
    feed, rows = Feed(tmp_path / "in"), []
    for file in range(2):
        rows += (found := [*seconds(file, 0), *seconds(file, 1), *seconds(file, 2, BEHIND_MS)])
        feed.add(found)
    name = request.node.name
    with running(rest, deduplicated(tapped(feed, attached)), name, tmp_path, availableNow=True) as query:
        assert query.query.awaitTermination(WAIT_S)
    told(rest, name, "FINISHED")
    whole, splits = by_split(query)
    agree("watermark of all", END_MS, whole["watermark"], within=0)
    assert (whole["finished"], whole["idle"], whole["lag-ms"]) == (True, False, None)
    behind = query.vertex("Deduplicate")
    [passed_ms] = set(query.columns(behind, names.CURRENT_SPLIT_WATERMARK))
    agree("watermark behind the source", END_MS, passed_ms, within=0)
    combined = query.get(f"{behind}/splits")["combined"]
    assert (combined["watermark"], combined["finished"]) == (END_MS, True)
    # So that one can see afterwards which split rows were lost of.
    for split in (0, 1, 2):
        agree(f"split {split}: last watermark", flink_ms(rows, split), splits[str(split)]["watermark"], within=0)
    agree("split 2: drift, ms", BEHIND_MS, splits["2"]["drift-ms"], within=0)


def test_record_latency_is_the_rows_own(
    attached: SparkSession,
    rest: Rest,
    event_log: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    agree: Agree,
) -> None:
    """From when a row was made to the end of its micro-batch, and of it until the trigger: of each of all rows."""
    feed, made = Feed(tmp_path / "in"), []
    stream = tap(feed.stream(attached), "made", ingest_time="made")
    random = np.random.default_rng(6)
    with running(rest, stream, request.node.name, tmp_path) as query:
        for _ in range(4):
            now_ms = int(time.time() * 1000)
            made.append([now_ms - int(age) for age in random.gamma(2, 4000, 2000)])
            feed.add(Row(0, START_MS, made_ms) for made_ms in made[-1])
            query.drain()
        batches = query.batches()
        [records] = query.get(f"{query.vertex('Source: ')}/splits")["records"]
    ends = eventually(lambda: len(found := executed_ms(event_log, query.run_id)) == len(batches) and found, WAIT_S)
    assert len(batches) == len(made)
    # Spark takes a batch's time when it has asked the source for what there is.
    triggers = [trigger_ms(batch) + batch["durationMs"]["latestOffset"] for batch in batches]
    for what, instants, told_ms in (
        ("latency", [ends[batch["batchId"]] for batch in batches], records["latency"]),
        ("queueing", triggers, records["queueing"]),
    ):
        truth = np.concatenate([instant - np.array(rows) for instant, rows in zip(instants, made, strict=True)])
        agree(f"rows with a {what}", truth.size, told_ms["count"], within=0)
        for percentile in (50, 75, 90, 95, 98, 99):
            expected = float(np.percentile(truth, percentile))
            agree(f"p{percentile} of {what}, ms: the rows' own", expected, told_ms[f"p{percentile}-ms"], within=0.05)
        agree(f"mean {what}, ms: the rows' own", float(truth.mean()), told_ms["mean-ms"], within=0.05)


@pytest.mark.parametrize("policy", ["min", "max"])
def test_watermarks_of_operators_are_those_of_sparks_plan(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest, agree: Agree, policy: str
) -> None:
    """Two streams, one 20 s behind, a join, an aggregation: by either policy, each operator has its own."""
    left, right = Feed(tmp_path / "left"), Feed(tmp_path / "right")
    for file in range(2):
        left.add(seconds(file, 0))
        right.add(seconds(file, 0, 20_000))
    here = left.stream(attached).withWatermark("at", "5 seconds")
    there = right.stream(attached).withWatermark("at", "10 seconds").select(f.col("id").alias("other"), "at")
    there = there.withColumnRenamed("at", "then")
    joined = here.join(there, f.expr("id = other AND at >= then AND at <= then + INTERVAL 30 SECONDS"))
    windows = joined.groupBy(f.window("at", "10 seconds")).count()
    settings = {"streaming.multipleWatermarkPolicy": policy}
    with running(rest, windows, request.node.name, tmp_path, settings) as query:
        batches = query.drain()
        truth = dict(thresholds(attached, query.query))
        measured, behind, lags = {}, {}, {}
        for node in truth:
            vertex = query.vertex(node)
            ids = {
                name: f"{node}.{name}"
                for name in (names.CURRENT_INPUT_WATERMARK, names.CURRENT_OUTPUT_WATERMARK, names.WATERMARK_LAG)
            }
            found = query.subtask(vertex, *ids.values())
            now_ms = time.time() * 1000
            measured[node] = found[ids[names.CURRENT_INPUT_WATERMARK]]
            lags[node] = found[ids[names.WATERMARK_LAG]]
            behind[node] = query.watermarks(vertex)
    assert truth.keys() == {"StateStoreSave", "StreamingSymmetricHashJoin"}
    ends_ms = {"min": 19_000 - 20_000 - 10_000, "max": 19_000 - 5000}
    assert spark_watermark_ms(batches[-1]) == START_MS + ends_ms[policy] == truth["StreamingSymmetricHashJoin"]
    # What the join passes on may still be joined with rows of its range: the aggregation has another watermark.
    assert truth["StateStoreSave"] < truth["StreamingSymmetricHashJoin"]
    for node, expected in truth.items():
        agree(f"{node}: input watermark", expected, measured[node], within=0)
        assert set(behind[node]) == {expected}
        started_ms = trigger_ms(batches[0])
        agree(f"{node}: when it was so late", now_ms, lags[node] + expected, within=0, least=now_ms - started_ms)


@needs_timers
def test_timers_fire_and_wait_as_a_model_of_them_does(
    attached: SparkSession, rest: Rest, tmp_path: Path, request: pytest.FixtureRequest, agree: Agree
) -> None:
    """Registered, deleted, pending and fired ones, and by how much the watermark had passed those that fired."""
    feed, fed = Feed(tmp_path / "in"), []
    random = np.random.default_rng(6)
    for file in range(5):
        keys, begin_ms = random.permutation(20).tolist(), START_MS + 10_000 * file
        rows = [Row(key, begin_ms + int(random.integers(10_000))) for key in keys[:12]]
        # Some timers of the file before are deleted; some that never were, too.
        for before, key in zip(fed[-1][:4] if fed else [], keys[12:], strict=False):
            late_ms = before.at_ms + AFTER_MS
            rows += [Row(before.split, before.at_ms + 10_000, late_ms), Row(key, before.at_ms + 10_000, late_ms + 1)]
        feed.add(rows)
        fed.append(rows)
    stream = feed.stream(attached).withWatermark("at", f"{DELAY_MS} milliseconds")
    stream = stream.withColumn("at_ms", f.unix_millis("at")).withColumn("deletes_ms", f.unix_millis("made"))
    name = request.node.name
    settings = {"streaming.stateStore.providerClass": ROCKSDB}
    with running(rest, reminded(stream), name, tmp_path, settings) as query:
        batches = query.drain()
        model, waiting = Model(), list(fed)
        for batch in batches:
            rows = waiting.pop(0) if batch["numInputRows"] else []
            model.run([(row.split, row.at_ms, row.made_ms) for row in rows], max(spark_watermark_ms(batch), 0))
        vertex = query.vertex("TransformWithState")
        [timers] = query.get(f"{vertex}/timers")["operators"]
    assert not waiting
    assert dropped(batches) == 0
    assert min(len(model.lateness), len(model.pending), model.deleted) > 5
    agree("timers registered", model.registered, timers["registered"], within=0)
    agree("timers pending", len(model.pending), timers["pending"], within=0)
    agree("timers fired", len(model.lateness), timers["fired"], within=0)
    agree("timers with a lateness", len(model.lateness), timers["lateness"]["count"], within=0)
    for percentile, key in ((0, "min-ms"), (50, "p50-ms"), (95, "p95-ms"), (100, "max-ms")):
        expected = float(np.percentile(model.lateness, percentile, method="inverted_cdf"))
        agree(f"{key} of lateness", expected, timers["lateness"][key], within=0.05)


def reminded(stream: DataFrame, *modes: Any) -> DataFrame:
    """The timers of `Reminders`, in a query of event time."""
    from tests.e2e.reminders import Reminders

    keyed = stream.select("split", "at", "at_ms", "deletes_ms").groupBy("split")
    schema = "split INT, due_ms BIGINT"
    return keyed.transformWithStateInPandas(Reminders(*modes), schema, "Append", "EventTime")


def twice(stream: DataFrame) -> None:
    tap(tap(stream, "fed").where("split = 1"), "fed")


WRONG: dict[str, tuple[Callable[[DataFrame], object], tuple[str, ...]]] = {
    "no such column": (
        lambda stream: tap(stream, "fed", event_time="departed"),
        ("event_time='departed'", "expected a column", "id, split, at, made"),
    ),
    "no timestamp": (
        lambda stream: tap(stream, "fed", event_time="id"),
        ("event_time='id'", "bigint", "expected timestamp"),
    ),
    "ingest time is no timestamp": (
        lambda stream: tap(stream, "fed", ingest_time="split"),
        ("ingest_time='split'", "int", "expected timestamp"),
    ),
    "duplicate name": (twice, ("name='fed'", "this name already")),
    "batch": (
        lambda stream: tap(stream.sparkSession.range(3), "fed"),
        ("tap(df", "batch"),
    ),
    "too many splits": (
        lambda stream: tap(stream, "fed", event_time="at", partition="split", splits=65),
        ("splits=65", "1 to 64"),
    ),
    "too many listed splits": (
        lambda stream: tap(stream, "fed", event_time="at", partition="split", splits=list(range(65))),
        ("splits", "65", "1 to 64"),
    ),
    "no partition of this type": (
        lambda stream: tap(stream, "fed", event_time="at", partition="made"),
        ("partition='made'", "timestamp", "expected a column of integers or of strings"),
    ),
    "idleness is no duration": (
        lambda stream: tap(stream, "fed", event_time="at", idleness="soon"),
        ("idleness='soon'", "expected a duration"),
    ),
}


@pytest.mark.parametrize(("use", "words"), WRONG.values(), ids=WRONG.keys())
def test_wrong_tap_raises_at_once(
    attached: SparkSession, tmp_path: Path, use: Callable[[DataFrame], object], words: tuple[str, ...]
) -> None:
    """Not when the query runs; the message names the argument or the column, and the rule."""
    with pytest.raises(TapError) as raised:
        use(Feed(tmp_path / "in").stream(attached))
    for word in words:
        assert word in str(raised.value)


@needs_timers
@pytest.mark.parametrize(
    ("mode", "calls", "words"),
    [
        ("EventTime", "ProcessingTime", ("register_processing_time_timer", "'ProcessingTime'", "'EventTime'")),
        ("ProcessingTime", "ProcessingTime", ("'reminders'", "'ProcessingTime'", "'EventTime'")),
    ],
    ids=["registered", "service"],
)
def test_timer_of_the_other_time_mode_raises_at_once(
    attached: SparkSession,
    rest: Rest,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    mode: str,
    calls: str,
    words: tuple[str, ...],
) -> None:
    """A query of event time fails in its first batch; the message names the call, and both modes."""
    feed = Feed(tmp_path / "in")
    feed.add(seconds(0, 0))
    stream = feed.stream(attached).withWatermark("at", "1 second")
    stream = stream.withColumn("at_ms", f.unix_millis("at")).withColumn("deletes_ms", f.unix_millis("made"))
    settings = {"streaming.stateStore.providerClass": ROCKSDB}
    name = request.node.name
    with running(rest, reminded(stream, mode, calls), name, tmp_path, settings) as query:
        with pytest.raises(StreamingQueryException):
            query.query.awaitTermination(WAIT_S)
        assert not query.batches()
    told(rest, name, "FAILED")
    [failure] = query.get(f"{query.base}/exceptions")["exceptionHistory"]["entries"]
    for word in ("TimerError", *words):
        assert word in failure["stacktrace"]
