"""Frames of a model, one rule each; the rules together: test_frames_model.py."""

from __future__ import annotations

import pytest

from collector.ingest import Ingest
from collector.limits import Limits
from collector.store import MetricStore
from spark_hooks import frames, records
from spark_hooks.checkpoints import HELD
from spark_hooks.executors import Executors
from spark_hooks.frames import Frames
from spark_hooks.redaction import REPLACEMENT, Redaction
from streamgauge import catalogue, codec, names, wire
from streamgauge.clock import ManualClock
from tests.unit.spark_hooks.spark_events import (
    APP,
    Execution,
    Ids,
    Query,
    Task,
    new_model,
    scan,
    sink,
    stage,
    submitted,
)
from tests.unit.spark_hooks.spark_events import updates as told


class Driver:
    """A query `scan -> filter -> exchange -> aggregate -> sink` with one batch, and its frames."""

    def __init__(self, description: str = "", query: Query | None = None) -> None:
        self.ids, self.model, self.clock = Ids(), new_model(), ManualClock(now_ms=2_000_000)
        self.executors = Executors(APP.id, 1, self.clock)
        self.frames = Frames(APP, 1000, self.clock, Redaction())
        self.query = query or Query(1)
        self.query.batch = 0
        below = self.ids.node("Filter", scan(self.ids), description=description)
        self.plan = sink(self.ids, self.ids.node("HashAggregate", self.ids.shuffle(below)))
        self.execution = Execution(self.ids, self.plan, self.query.describe())
        self.stage = stage(self.ids, 2, shuffles=True)
        self.apply(self.query.started(), self.execution.start(), self.execution.job(self.stage), submitted(self.stage))

    def apply(self, *events: records.Record) -> None:
        self.model.apply(events)
        assert self.model.faults == []

    def read(self, partition: int, rows: int) -> None:
        """A task of the first vertex reads."""
        task = Task(self.ids, self.stage, partition)
        self.apply(task.start(), task.end(told(self.plan, {"MicroBatchScan": rows})))

    def build(self, **hooks: wire.Scalar) -> tuple[wire.Frame, wire.Frame]:
        """The application's frame and the query's."""
        application, job = self.frames.build(self.model, self.executors, {names.HEAP_USED: 1}, hooks)
        return application, job

    def acknowledge(self, *sent: wire.Frame) -> None:
        self.frames.acknowledge(list(sent), self.model, self.executors)


@pytest.fixture
def driver() -> Driver:
    return Driver()


def columns(frame: wire.Frame) -> set[tuple[str, str]]:
    """(operator's name or '', metric) of every column in a frame of a plan that was told."""
    return {
        (group, column.metric)
        for vertex in frame.vertices
        for group, found in [("", vertex.columns), *((each.operator, each.columns) for each in vertex.operators)]
        for column in found
    }


def test_application_speaks_for_itself(driver: Driver) -> None:
    """Its frame has no job, and all of its executors, driver and hooks figures."""
    driver.executors.apply(records.ExecutorAdded("1", "worker.test", 2, 5, 0))
    application, _ = driver.build(events=7)
    assert application.job is None
    assert application.attempt == wire.Attempt(APP.start_ms, APP.id)
    assert [executor.id for executor in application.executors] == ["app-7-1"]
    assert (application.driver, application.hooks) == ({names.HEAP_USED: 1}, {"events": 7})
    assert (application.interval_ms, application.sent_at_ms) == (1000, 2_000_000)


def test_frames_count_up_and_are_full_until_one_is_acknowledged(driver: Driver) -> None:
    """Seq counts within the attempt, and base is 0 while the collector is not known to have anything."""
    for seq in (1, 2, 3):
        for frame in driver.build():
            assert (frame.seq, frame.base) == (seq, 0)
    assert frame.plan is not None


def test_frame_builds_on_the_greatest_acknowledged(driver: Driver) -> None:
    """An acknowledgement that comes late takes nothing back."""
    first, second = driver.build(), driver.build()
    driver.acknowledge(*second)
    driver.acknowledge(*first)
    assert [frame.base for frame in driver.build()] == [2, 2]


def test_unchanged_job_sends_no_columns(driver: Driver) -> None:
    """Only what has changed since the acknowledged frame travels."""
    driver.read(0, 5)
    driver.acknowledge(*driver.build())
    _, job = driver.build()
    assert job.plan is None
    assert columns(job) == set()
    assert all(vertex.subtasks is None for vertex in job.vertices)


def test_delta_holds_what_changed_since_the_acknowledged_frame(driver: Driver) -> None:
    """Also what an unacknowledged frame has told already; a count that moved moves no other vertex."""
    driver.acknowledge(*driver.build())
    driver.read(0, 5)
    driver.acknowledge(*driver.build())
    driver.read(1, 5)
    _, lost = driver.build()
    _, again = driver.build()
    assert columns(lost) == columns(again)
    source = next(iter(driver.model.jobs[driver.query.jid].graph.vertices.values()))
    operators = {operator.name: operator.id for operator in source.operators}
    assert columns(again) == {
        ("", names.NUM_RECORDS_IN),
        ("", names.OUTPUT_BUFFERS + names.OUTPUT_QUEUE_LENGTH),
        ("", names.OLD_BUFFERS + names.OUTPUT_QUEUE_LENGTH),
        (operators["Source: RateStream"], names.NUM_RECORDS_IN),
        (operators["Source: RateStream"], names.NUM_RECORDS_OUT),
        (operators["Filter"], names.NUM_RECORDS_IN),
    }


def test_value_that_came_back_is_sent(driver: Driver) -> None:
    """A rate that rose and fell again is as it was; but the collector may hold the value between."""
    driver.read(0, 600)
    driver.model.tick()
    driver.acknowledge(*driver.build())
    driver.model.tick()
    driver.build()
    for _ in range(13):
        driver.model.tick()
    _, job = driver.build()
    assert ("", names.NUM_RECORDS_IN + names.PER_SECOND) in columns(job)


def test_start_over_sends_everything(driver: Driver) -> None:
    """The collector has lost its state: full frames until one is acknowledged."""
    driver.read(0, 5)
    first = driver.build()
    driver.acknowledge(*first)
    driver.frames.start_over()
    for _ in range(2):
        application, job = driver.build()
        assert (application.base, job.base) == (0, 0)
        assert job.plan == first[1].plan
        assert columns(job) == columns(first[1])
        assert any(vertex.subtasks for vertex in job.vertices)


def test_ended_job_is_told_until_it_is_acknowledged(driver: Driver) -> None:
    """Its last frame may be lost; once it is taken the model forgets the job, and no frame names it any more."""
    driver.acknowledge(*driver.build())
    driver.apply(driver.query.terminated(7_000_000, "it broke"))
    for _ in range(2):
        sent = driver.build()
        assert sent[1].job is not None
        assert (sent[1].job.state, sent[1].job.end_ms, sent[1].job.failure) == ("FAILED", 7_000_000, "it broke")
    driver.acknowledge(*sent)
    assert not driver.model.jobs
    assert len(driver.frames.build(driver.model, driver.executors, {}, {})) == 1


def test_job_that_ended_after_its_frame_is_told_again(driver: Driver) -> None:
    """An acknowledged frame that did not know of the end must not let the job be forgotten."""
    sent = driver.build()
    driver.apply(driver.query.terminated())
    driver.acknowledge(*sent)
    assert driver.query.jid in driver.model.jobs


def test_end_of_an_older_run_forgets_no_newer_one(driver: Driver) -> None:
    """The query was restarted between the push and its answer."""
    driver.apply(driver.query.terminated())
    sent = driver.build()
    driver.apply(Query(1, run=1).started("2026-11-21T10:30:00.000Z"))
    driver.acknowledge(*sent)
    assert driver.model.jobs[driver.query.jid].attempt.run_id == Query(1, run=1).run_id
    _, job = driver.build()
    assert (job.seq, job.base) == (1, 0)


def test_gone_executor_is_told_until_it_is_acknowledged(driver: Driver) -> None:
    """The collector drops it; after that nothing names it."""
    driver.executors.apply(records.ExecutorAdded("1", "worker.test", 2, 5, 0))
    driver.acknowledge(*driver.build())
    driver.executors.apply(records.ExecutorRemoved("1", 6))
    for _ in range(2):
        sent = driver.build()
        assert [(executor.id, executor.gone) for executor in sent[0].executors] == [("app-7-1", True)]
    driver.acknowledge(*sent)
    assert driver.build()[0].executors == ()


def test_drops_are_told_with_every_frame(driver: Driver) -> None:
    """`incomplete` is the same in all frames of a push: records and live updates dropped, updates no plan names."""
    task = Task(driver.ids, driver.stage, 0)
    driver.apply(task.start(), task.end((999_999, 1)), driver.execution.end())
    for frame in driver.build(**{names.HOOKS_DROPPED_RECORDS: 3, names.HOOKS_DROPPED_LIVE: 4}):
        assert frame.incomplete == wire.Incomplete(3, 4, 1)


def test_unknown_counts_are_absent(driver: Driver) -> None:
    """What Spark does not tell has no column: no bytes of a no-op sink; busy time and the rate in are NaN."""
    reader = stage(driver.ids, 1, scopes=["HashAggregate"])
    driver.apply(driver.execution.job(reader), submitted(reader))
    _, job = driver.build()
    last = job.vertices[-1]
    assert names.NUM_BYTES_OUT not in {column.metric for column in last.columns}
    [busy] = [column for column in last.columns if column.metric == names.BUSY_TIME]
    assert str(busy.values().tolist()) == "[nan]"


def test_every_column_is_in_the_catalogue(driver: Driver) -> None:
    """A metric without an entry has no type, unit or help."""
    driver.read(0, 5)
    _, job = driver.build()
    found = columns(job)
    assert len(found) > 20
    for operator, metric in found:
        assert catalogue.find("operator" if operator else "vertex", metric) is not None, metric


def test_what_users_wrote_is_redacted() -> None:
    """Names, descriptions and failures leave the driver without secrets."""
    driver = Driver("Filter (password=hunter2)", Query(1, name="token=hunter2"))
    driver.apply(driver.query.terminated(exception="could not open jdbc:x://me:hunter2@db"))
    body = codec.encode(list(driver.build()))
    assert b"hunter2" not in body
    assert REPLACEMENT.encode() in body


def test_why_a_batch_failed_and_where_checkpoints_lie_is_redacted() -> None:
    """An exception's text, and a path with a key in it; they leave the driver cut."""
    driver = Driver(query=Query(1, checkpoint="s3a://key:hunter2@bucket/" + "x" * 100_000))
    driver.apply(driver.query.terminated(exception="could not open jdbc:x://me:hunter2@db " + "e" * 100_000))
    _, sent = driver.build()
    assert sent.job is not None
    assert sent.checkpoints is not None
    [failed] = sent.checkpoints.changed
    assert failed.status == "FAILED"
    for text in (sent.job.checkpoint_path, failed.failure):
        assert "hunter2" not in text
        assert REPLACEMENT in text
        assert len(text) == frames.NAME_CHARS


def test_batches_travel_where_they_have_changed(driver: Driver) -> None:
    """None where nothing has; the totals and the one micro-batch whose task has ended, where one has."""
    driver.acknowledge(*driver.build())
    assert driver.build()[1].checkpoints is None
    driver.apply(driver.execution.end(), driver.query.progress())
    driver.query.batch += 1
    driver.apply(Execution(driver.ids, driver.plan, driver.query.describe()).start())
    driver.acknowledge(*driver.build())
    driver.query.batch += 1
    driver.apply(driver.query.progress())
    _, sent = driver.build()
    assert sent.checkpoints is not None
    assert sent.checkpoints.held == (2, 1, 0)
    assert [each.id for each in sent.checkpoints.changed] == [2, 1]


def test_batches_that_are_held_no_more_are_forgotten(driver: Driver) -> None:
    """What is remembered of the collector is as long as what is held."""
    for batch in range(50):
        driver.query.batch = batch
        driver.apply(driver.query.progress())
        driver.acknowledge(*driver.build())
    [channel] = [one for (jid, _), one in driver.frames._channels.items() if jid]
    assert sum(key[0] == "checkpoints" for key in channel.parts) == HELD + 1


def test_watermark_is_of_vertices_with_inputs(driver: Driver) -> None:
    """Long.MIN_VALUE where none flows, as in Flink, under both of its names; a source vertex has none."""
    reader = stage(driver.ids, 2, scopes=["HashAggregate"])
    driver.apply(driver.execution.job(reader), submitted(reader))
    source, last = driver.build()[1].vertices
    found = {column.metric: column.values().tolist() for column in last.columns if "Watermark" in column.metric}
    assert found == {names.CURRENT_INPUT_WATERMARK: [-(2**63)] * 2, names.CURRENT_LOW_WATERMARK: [-(2**63)] * 2}
    assert not any("Watermark" in column.metric for column in source.columns)


def test_batch_execution_has_no_checkpoints() -> None:
    """It is not a query."""
    driver = Driver()
    batch = Execution(driver.ids, scan(driver.ids), "count at app.py:7")
    driver.apply(batch.start(), batch.job(stage(driver.ids, 1)))
    *_, sent = driver.frames.build(driver.model, driver.executors, {}, {})
    assert sent.job is not None
    assert (sent.job.type, sent.checkpoints) == ("BATCH", None)


def test_long_texts_do_not_cost_the_push() -> None:
    """A collector refuses a whole push for one name or text past its limits: they are cut."""
    driver = Driver("Filter " + "x" * 100_000, Query(1, name="n" * 100_000))
    driver.apply(driver.query.terminated(exception="e" * 1_000_000))
    sent = driver.build()
    Ingest(MetricStore(), driver.clock, Limits()).push(codec.encode(list(sent)))
    job = sent[1].job
    assert job is not None
    assert (len(job.name), len(job.failure)) == (frames.NAME_CHARS, frames.TEXT_CHARS)
    assert job.name.endswith("n…")


def fail(driver: Driver, partition: int, text: str) -> None:
    task = Task(driver.ids, driver.stage, partition)
    driver.apply(task.start(), task.end(succeeded=False), task.failed("a.B", text, 5_000_000))


def test_failures_travel_when_there_are_new_ones(driver: Driver) -> None:
    """All that are held, until the collector has them; nothing while nothing fails."""
    fail(driver, 0, "a.B: one")
    for _ in range(2):
        sent = driver.build()
        assert sent[1].failures is not None
        assert [failure.trace for failure in sent[1].failures.latest] == ["a.B: one"]
    driver.acknowledge(*sent)
    assert driver.build()[1].failures is None
    fail(driver, 1, "a.B: two")
    _, job = driver.build()
    assert job.failures is not None
    assert [failure.trace for failure in job.failures.latest] == ["a.B: two", "a.B: one"]
    driver.frames.start_over()
    assert driver.build()[1].failures == job.failures


def test_failures_leave_without_secrets(driver: Driver) -> None:
    """Those of tasks, of the run and what stands below it; what is cut is cut afterwards."""
    long = "\tat a.B.c(D.java:1)\n" * 2_000
    fail(driver, 0, "a.B: could not open jdbc:x://me:hunter2@db\n")
    fail(driver, 1, f"a.B: \0<script>password=hunter2\n{long}Caused by: a.C: token=hunter2\n\tat a.B.c(D.java:1)\n")
    driver.apply(driver.query.terminated(exception=f"a.B: secret=hunter2\n{long}Caused by: a.C: secret=hunter2\n"))
    sent = driver.build()
    body = codec.encode(list(sent))
    assert b"hunter2" not in body
    Ingest(MetricStore(), driver.clock, Limits()).push(body)
    assert sent[1].failures is not None
    [top] = sent[1].failures.latest
    below, _ = top.concurrent
    assert below.trace.startswith("a.B: \0<script>password=")
    for failure in (top, below):
        assert len(failure.trace) == frames.TEXT_CHARS
        assert f"\nCaused by: a.C: {'secret' if failure is top else 'token'}={REPLACEMENT}" in failure.trace


def test_failures_are_redacted_once(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks are long, and stand in every full frame; also when they have come to stand below the run's."""
    redacted: list[str] = []
    frames_ = Frames(APP, 1000, driver.clock, Redaction())
    monkeypatch.setattr(frames_, "_redact", lambda text: redacted.append(text) or text)
    driver.frames = frames_
    fail(driver, 0, "a.B: one")
    driver.build()
    driver.build()
    driver.apply(driver.query.terminated(exception="a.B: one\n\tat x"))
    driver.build()
    # The task's, the run's root cause, and why the micro-batch failed.
    assert redacted.count("a.B: one") == 1 + 1 + 1
    assert redacted.count("a.B: one\n\tat x") == 1


def test_vertices_that_left_are_forgotten(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a job drops vertices the next plan is without them, and so is what is remembered of the collector."""
    monkeypatch.setattr("spark_hooks.job_graph.VERTICES", 4)
    store = MetricStore()
    ingest = Ingest(store, driver.clock, Limits())
    remembered = set()
    for number in range(12):
        plan = sink(driver.ids, driver.ids.node(f"Filter{number}x", scan(driver.ids)))
        execution = Execution(driver.ids, plan, driver.query.describe())
        of = stage(driver.ids, 1, scopes=["MicroBatchScan"])
        driver.apply(execution.start(), execution.job(of), submitted(of), execution.end())
        sent = driver.build()
        ingest.push(codec.encode(list(sent)))
        driver.acknowledge(*sent)
        job = driver.model.jobs[driver.query.jid]
        assert list(store.snapshot().job(job.jid).vertices) == list(job.graph.vertices)
        remembered = {key[0] for channel in driver.frames._channels.values() for key in channel.parts}
    assert remembered == {*job.graph.vertices, "plan", "observed", "configuration", "checkpoints", "failures"}


def test_native_metrics_travel_when_they_change(driver: Driver) -> None:
    """Those of a vertex whose tasks told nothing new stay; where its size changes, all travel."""

    def sent(frame: wire.Frame) -> tuple[wire.Accumulator, ...]:
        return tuple(each for vertex in frame.vertices for each in vertex.accumulators)

    driver.read(0, 5)
    *_, first = driver.build()
    everything = {(each.operator, each.column.metric) for each in sent(first)}
    assert "number of output rows" in {metric for _, metric in everything}
    *_, again = driver.build()
    assert sent(again) == sent(first)
    driver.acknowledge(again)
    assert sent(driver.build()[1]) == ()
    driver.read(0, 2)
    driver.apply(driver.execution.end())
    driver.read(1, 5)
    *_, changed = driver.build()
    assert [each.column.values().tolist() for each in sent(changed)] == [[5, 5]]
    driver.acknowledge(changed)
    driver.apply(Task(driver.ids, driver.stage, 4).start())
    *_, grown = driver.build()
    assert {(each.operator, each.column.metric) for each in sent(grown)} == everything
    assert {len(each.column.values()) for each in sent(grown)} == {5}


def test_observed_metrics_travel_when_they_change_redacted_and_cut(driver: Driver) -> None:
    """Names and texts are a user's; numbers are as they are."""
    row = {"rows": 3, "word": "password=swordfish", "long": "x" * 90_000, "n" * 900: 1}
    driver.apply(driver.query.progress(observedMetrics={"seen": row}))
    _, sent = driver.build()
    assert sent.observed is not None
    assert sent.observed["seen.rows"] == 3
    assert sent.observed["seen.word"] == f"password={REPLACEMENT}"
    assert len(str(sent.observed["seen.long"])) == frames.TEXT_CHARS
    assert max(map(len, sent.observed)) == frames.METRIC_CHARS
    driver.acknowledge(sent)
    assert driver.build()[1].observed is None
    driver.apply(driver.query.progress(observedMetrics={"seen": {"rows": 4}}))
    assert driver.build()[1].observed == {"seen.rows": 4}
