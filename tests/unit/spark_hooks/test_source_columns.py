"""What a run tells of its sources and of whether it keeps up, from Spark's events on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spark_hooks import records
from spark_hooks.frames import Frames
from spark_hooks.progress import milliseconds
from spark_hooks.redaction import REPLACEMENT, Redaction
from spark_hooks.vertex_columns import groups
from streamgauge import catalogue, names
from streamgauge.clock import ManualClock
from tests.unit.spark_hooks.spark_events import APP, SOURCE, Execution, Run, updates

TRIGGER = "2026-11-21T10:00:00.000Z"
TRIGGER_MS = milliseconds(TRIGGER)
HOUR_MS = 3_600_000
NS = 1_000_000


class Reading(Run):
    """A query on one source whose first batch ran two map tasks, and a driver's two clocks."""

    def __init__(self, tasks: int = 2) -> None:
        super().__init__()
        self.wall_ms, self.monotonic_ms = TRIGGER_MS, 5_000
        self.look()
        self.work(tasks)

    def begin(self, wrap: bool = False, source: records.PlanNode | None = None) -> None:
        """The next batch begins, at the trigger."""
        self.query.batch += 1
        self.plan = self.new_plan(source, wrap)
        self.execution = Execution(self.ids, self.plan, self.query.describe())
        self.apply(self.execution.start(TRIGGER_MS + 1000 * self.query.batch))

    def look(self, after_ms: int = 0) -> None:
        """The drain tells the clocks."""
        self.wall_ms += after_ms
        self.monotonic_ms += after_ms
        self.model.time.look(self.wall_ms, self.monotonic_ms * NS)

    def work(self, tasks: int = 2) -> None:
        """The batch's map stage runs."""
        told = self.map_stage(2)
        for partition in range(tasks):
            task = self.task(told, partition)
            self.apply(task.end(updates(self.plan, {"MicroBatchScan": 3})))

    def end(self, source: dict[str, Any], **more: Any) -> None:
        """The batch ends, and Spark tells of its one source."""
        self.apply(
            self.execution.end(),
            self.query.progress(
                source["numInputRows"],
                timestamp=f"2026-11-21T10:00:0{self.query.batch}.000Z",
                durationMs={"triggerExecution": 250},
                **{"sources": [source], **more},
            ),
        )

    def told(self, vertex: str = SOURCE) -> dict[str, list[int | None]]:
        """Metric of a source operator → its values, None where a subtask has none."""
        [found] = [each for each in self.job.graph.vertices.values() if each.name == vertex]
        [operator] = [each.id for each in found.operators if each.is_source]
        table: dict[str, list[int | None]] = {}
        for group in groups(found):
            for each in group.columns() if group.name == "sources" else ():
                assert each.operator == operator
                assert each.present is not None
                assert each.values.dtype == np.int64
                table[each.metric] = [
                    value if there else None for value, there in zip(each.values.tolist(), each.present, strict=True)
                ]
        return table


def kafka(end: int, latest: int, rows: int = 3) -> dict[str, Any]:
    return {
        "description": "KafkaV2[Subscribe[flights]]",
        "startOffset": {"flights": {"0": 0}},
        "endOffset": {"flights": {"0": end}},
        "latestOffset": {"flights": {"0": latest}},
        "numInputRows": rows,
    }


def files(offset: int, rows: int = 3) -> dict[str, Any]:
    return {
        "description": "FileStreamSource[file:/data/in]",
        "endOffset": {"logOffset": offset},
        "latestOffset": None,
        "numInputRows": rows,
    }


def test_pending_rows_are_told_once() -> None:
    """Readers add subtasks up, so subtask 0 alone has them."""
    run = Reading()
    run.end(kafka(3, 10))
    assert run.told()[names.PENDING_RECORDS] == [7, None]


def test_nothing_is_told_before_the_first_progress() -> None:
    """No zero stands for what is not known."""
    assert Reading().told() == {}


def test_what_a_source_does_not_tell_is_absent() -> None:
    """Of a stream of files without event times only how long it has been idle is known."""
    run = Reading()
    run.end(files(0))
    assert run.told() == {names.SOURCE_IDLE_TIME: [0, 0]}


def test_files_left_are_told_once() -> None:
    """As they were when the batch's first job began; a run that nobody knows is passed over."""
    run = Reading()
    run.apply(
        records.SourceBacklog(run.query.run_id, 0, ("FileStreamSource[file:/data/in]", 4, 0)),
        records.SourceBacklog("10000000-0000-0000-0000-00000000dead", 0, ("FileStreamSource[file:/data/in]", 9, 0)),
    )
    run.end(files(0))
    assert run.told()[names.UNREAD_FILES] == [4, None]
    assert names.PENDING_RECORDS not in run.told()
    assert run.job.course.sources.unread_files == {"FileStreamSource[file:/data/in]": 4}
    assert run.job.course.sources.intakes[0].position == (0, 4)


def test_figure_that_is_known_no_more_is_taken_back() -> None:
    """Told once more without a value: else the collector would keep the last one."""
    run = Reading()
    run.end(kafka(3, 10))
    assert run.told()[names.PENDING_RECORDS] == [7, None]
    run.begin()
    run.end(kafka(5, 10) | {"latestOffset": None})
    assert run.told() == {names.SOURCE_IDLE_TIME: [0, 0], names.PENDING_RECORDS: [None, None]}


def test_figures_of_a_source_that_cannot_be_told_any_more_are_taken_back() -> None:
    """From now on the query reads two, and the plan has one scan."""
    run = Reading()
    run.end(kafka(3, 10))
    assert run.told()[names.PENDING_RECORDS] == [7, None]
    run.begin()
    run.end(kafka(4, 10), sources=[kafka(4, 10), files(0)])
    assert run.told() == {names.SOURCE_IDLE_TIME: [None, None], names.PENDING_RECORDS: [None, None]}
    assert run.job.course.coordinators() == {}


def test_lags_are_told_of_subtasks_that_ran() -> None:
    """Fetched when the batch began, put out when it ended; the other subtask has read nothing."""
    run = Reading(tasks=1)
    run.look(250)
    run.end(kafka(3, 3), eventTime={"max": "2026-11-21T09:59:59.000Z", "watermark": "2026-11-21T09:59:57.000Z"})
    assert run.told() == {
        names.PENDING_RECORDS: [0, None],
        names.FETCH_LAG: [1000, None],
        names.EMIT_LAG: [1250, None],
        names.WATERMARK_LAG: [3250, None],
        names.SOURCE_IDLE_TIME: [0, None],
    }


def test_lags_grow_while_nothing_comes() -> None:
    """Looked at once every 5 s: how long it has been idle, and how far the watermark is behind."""
    run = Reading()
    run.look(250)
    run.end(kafka(3, 3), eventTime={"watermark": "2026-11-21T09:59:57.000Z"})
    run.look(5_000)
    before = run.told()
    run.model.tick()
    assert before[names.SOURCE_IDLE_TIME] == [0, 0]
    assert run.told() == before | {names.SOURCE_IDLE_TIME: [5000, 5000], names.WATERMARK_LAG: [8250, 8250]}


def test_source_is_not_idle_while_it_is_read() -> None:
    """A batch runs its vertex; one that has not come so far tells nothing yet."""
    run = Reading()
    run.look(250)
    run.end(kafka(3, 3))
    run.look(4_750)
    run.begin()
    run.model.tick()
    assert run.told()[names.SOURCE_IDLE_TIME] == [4750, 4750]
    run.work()
    run.model.tick()
    assert run.told()[names.SOURCE_IDLE_TIME] == [0, 0]
    run.end(kafka(3, 3, rows=0))
    assert run.told()[names.SOURCE_IDLE_TIME] == [1000, 1000]


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS], ids=["back", "ahead"])
def test_clock_that_is_set_moves_no_duration(step_ms: int) -> None:
    """How long it has been idle is steady; a watermark is a time of day, and is behind the clock of the wall."""
    run = Reading()
    run.look(250)
    run.end(kafka(3, 3), eventTime={"watermark": "2026-11-21T09:59:57.000Z"})
    run.wall_ms += step_ms
    run.look(5_000)
    run.model.tick()
    assert run.told()[names.SOURCE_IDLE_TIME] == [5000, 5000]
    assert run.told()[names.WATERMARK_LAG] == [8250 + step_ms, 8250 + step_ms]


@pytest.mark.parametrize("which", ["max", "watermark"])
def test_event_time_of_no_calendar_costs_no_progress(which: str) -> None:
    """Spark writes what a row claims, five digits of a year too."""
    run = Reading()
    run.end(kafka(3, 10), eventTime={which: "10000-01-01T00:00:00.000Z"})
    assert run.told().keys() == {names.PENDING_RECORDS, names.SOURCE_IDLE_TIME}
    assert run.job.metrics()[names.INPUT_ROWS] == 3


def test_job_tells_whether_it_keeps_up() -> None:
    """Two batches a second apart, of 250 ms each: 3 rows read, 7 more are there, and the catalogue knows all of it."""
    run = Reading()
    run.end(kafka(3, 10))
    run.begin()
    run.look(1_250)
    run.end(kafka(6, 20))
    found = run.job.metrics()
    expected = {
        names.BACKLOG_ROWS: 14,
        names.BACKLOG_ROWS_TREND: 7.0,
        names.KEEP_UP_RATIO: pytest.approx(12 / 10),
        names.BACKLOG_TIME: pytest.approx(14 / 12 * 1000),
    }
    assert {name: found[name] for name in expected} == expected
    assert all(catalogue.find("job", name) for name in found)
    run.look(HOUR_MS)
    assert run.job.metrics().keys() & expected.keys() == {names.BACKLOG_ROWS}


def test_every_metric_of_a_source_is_in_the_catalogue() -> None:
    """A name that the catalogue does not have has no type and no help."""
    run = Reading()
    run.look(250)
    run.apply(records.SourceBacklog(run.query.run_id, 0, ("FileStreamSource[file:/data/in]", 4, 0)))
    run.end(
        kafka(3, 10) | {"description": "FileStreamSource[file:/data/in]"},
        eventTime={"max": TRIGGER, "watermark": TRIGGER},
    )
    assert len(run.told()) == 5
    assert all(catalogue.find("operator", metric) for metric in run.told())


def test_names_of_topics_are_redacted_and_sent_once() -> None:
    """A topic is called as its users like; what has not changed travels no second time."""
    run = Reading()
    secret = "mysecrettopic"
    run.end(kafka(3, 10) | {"endOffset": {f"the-{secret}": {"0": 3}}, "latestOffset": {f"the-{secret}": {"0": 10}}})
    frames = Frames(APP, 1000, ManualClock(now_ms=2_000_000), Redaction(known=[secret]))
    sent = frames.build(run.model, run.model._executors, {}, {})
    [told] = [each for vertex in sent[1].vertices for each in vertex.coordinators or ()]
    assert told.metrics == {names.INPUT_ROWS: 3, f"pendingRecords.the-{REPLACEMENT}.0": 7}
    assert secret not in str(sent)
    frames.acknowledge(sent, run.model, run.model._executors)
    again = frames.build(run.model, run.model._executors, {}, {})
    assert [vertex.coordinators for vertex in again[1].vertices] == [None, None]
    assert [each for vertex in again[1].vertices for each in vertex.operators] == []
