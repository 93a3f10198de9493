"""What failed in a run: which task caused it, what stands below, what is kept and what is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from spark_hooks import records
from spark_hooks.failures import exception_class, root_cause
from streamgauge import wire
from tests.unit.spark_hooks.spark_events import READER, SOURCE, Execution, Query, Run, Task, completed, stage, submitted

PYTHON = "org.apache.spark.api.python.PythonException"
STACK = "\n\tat org.apache.spark.Task.run(Task.scala:1)\n"
MESSAGE = "[PYTHON_EXCEPTION] An exception was thrown: row 79"


def aborted(task: Task) -> str:
    """What Spark 3 throws where a task has failed too often."""
    return (
        f"org.apache.spark.SparkException: Job aborted due to stage failure: Task {task.partition} in stage 1.0 failed "
        f"4 times, most recent failure: Lost task {task.partition}.3 in stage 1.0 (TID {task.id}) (host executor 1): "
        f"{PYTHON}: row 79{STACK}\nDriver stacktrace:{STACK}Caused by: {PYTHON}: row 79{STACK}\t... 1 more\n"
    )


class Broken(Run):
    """A run whose tasks fail."""

    def fail(self, task: Task, text: str | None = f"{PYTHON}: {MESSAGE}{STACK}", time_ms: int = 5_100_000) -> None:
        name = None if text is None else exception_class(text)
        self.apply(task.end(succeeded=False), task.failed(name, text, time_ms))

    def end_batch(self, error: str = "") -> None:
        self.apply(self.execution.end(error=error))
        if not error:
            self.apply(self.query.progress())

    def end(self, text: str | None) -> None:
        self.apply(self.query.terminated(9_000_000, text))

    @property
    def told(self) -> wire.Failures:
        return self.job.failures.told()

    @property
    def vertex_ids(self) -> dict[str, str]:
        return {vertex.name: vertex.id for vertex in self.job.graph.vertices.values()}


@pytest.fixture
def broken() -> Broken:
    return Broken()


def place(failure: wire.Failure) -> tuple[str, int, int, str]:
    return failure.vertex, failure.subtask, failure.attempt, failure.executor


def test_task_failure_is_an_entry_with_its_place(broken: Broken) -> None:
    """Newest first; a run that goes on is no worse for it."""
    broken.apply(
        records.ExecutorAdded("1", "host.test", 2, 5, 0), records.BlockManagerAdded("1", "host.test:4040", 1_000)
    )
    source = stage(broken.ids, 2, shuffles=True, scopes=["MicroBatchScan"])
    broken.stages(source)
    broken.fail(broken.task(source, 1))
    broken.fail(broken.task(source, 1, attempt=1), "java.lang.IllegalStateException\n\tat x", 5_200_000)
    vertex = broken.vertex_ids[SOURCE]
    assert broken.told == wire.Failures(
        (
            wire.Failure(
                "java.lang.IllegalStateException",
                "java.lang.IllegalStateException\n\tat x",
                5_200_000,
                vertex,
                1,
                1,
                "app-7-1",
                "host.test:4040",
            ),
            wire.Failure(PYTHON, f"{PYTHON}: {MESSAGE}{STACK}", 5_100_000, vertex, 1, 0, "app-7-1", "host.test:4040"),
        )
    )
    assert broken.job.state == "RUNNING"


def test_task_of_an_executor_that_is_gone_keeps_its_address(broken: Broken) -> None:
    """Spark tells of the executor's end before that of its tasks; where it was never known there is none."""
    source = broken.map_stage()
    task, other = broken.task(source), broken.task(source, 1, executor="9")
    broken.apply(
        records.ExecutorAdded("1", "host.test", 2, 5, 0),
        records.BlockManagerAdded("1", "host.test:4040", 1_000),
        records.ExecutorRemoved("1", 7),
    )
    broken.fail(task, "ExecutorLostFailure (executor 1 exited)")
    broken.fail(other)
    assert [(each.executor, each.endpoint) for each in broken.told.latest] == [
        ("app-7-9", ""),
        ("app-7-1", "host.test:4040"),
    ]


@pytest.mark.parametrize("named", [True, False], ids=["by its number", "by its words"])
def test_failed_run_stands_on_top_where_its_task_was(broken: Broken, named: bool) -> None:
    """Spark 3 names the task, Spark 4 throws what the task has thrown; other failures of the batch stand below."""
    source = stage(broken.ids, 2, shuffles=True, scopes=["MicroBatchScan"])
    broken.stages(source)
    other, task = broken.task(source), broken.task(source, 1, attempt=3)
    broken.fail(other)
    broken.fail(task, time_ms=5_200_000)
    text = aborted(task) if named else f"{PYTHON}: {MESSAGE}{STACK}\tat org.apache.spark.DAGScheduler.abort{STACK}"
    broken.apply(
        completed(source, failure=text.removeprefix("org.apache.spark.SparkException: ") if named else MESSAGE)
    )
    broken.end_batch(text)
    broken.end(text)
    [top] = broken.told.latest
    assert (top.name, top.trace, top.time_ms) == (text.partition(":")[0], text, 9_000_000)
    assert place(top) == (broken.vertex_ids[SOURCE], 1, 3, "app-7-1")
    assert [(each.time_ms, each.subtask) for each in top.concurrent] == [(5_200_000, 1), (5_100_000, 0)]
    assert broken.job.failure == f"{PYTHON}: {'row 79' if named else MESSAGE}"
    assert broken.told.forgotten == 0


def test_task_that_is_told_after_the_end_stands_below_it(broken: Broken) -> None:
    """Tasks that run at once fail at once, and Spark tells of the later ones when the query has ended."""
    source = broken.map_stage()
    first, late = broken.task(source), broken.task(source, 1)
    broken.fail(first)
    broken.apply(completed(source, failure=MESSAGE))
    broken.end_batch("x")
    broken.end(f"{PYTHON}: {MESSAGE}{STACK}")
    broken.fail(late)
    [top] = broken.told.latest
    assert [each.subtask for each in top.concurrent] == [1, 0]
    assert top.subtask == 0


def test_failures_that_were_overcome_stay_where_they_are(broken: Broken) -> None:
    """A later batch that breaks takes nothing of an earlier one below it."""
    broken.fail(broken.task(broken.map_stage()))
    broken.end_batch()
    broken.begin()
    broken.fail(broken.task(broken.map_stage(), 1))
    broken.end_batch("x")
    broken.end("java.lang.IllegalStateException: the sink is gone")
    top, before = broken.told.latest
    assert (top.name, [each.subtask for each in top.concurrent]) == ("java.lang.IllegalStateException", [1])
    assert (before.subtask, before.concurrent) == (0, ())


def test_run_that_fails_between_batches_has_nothing_below(broken: Broken) -> None:
    """The batch whose tasks failed was executed; a source that cannot be asked is another matter."""
    broken.fail(broken.task(broken.map_stage()))
    broken.end_batch()
    broken.end("java.io.FileNotFoundException: no such offset")
    top, overcome = broken.told.latest
    assert (top.concurrent, place(top)) == ((), ("", -1, -1, ""))
    assert overcome.name == PYTHON


def test_stage_that_ran_again_did_not_fail_the_run(broken: Broken) -> None:
    """A shuffle that was lost and written again is not what ended the run later in the same batch."""
    source = broken.map_stage()
    lost = broken.task(source)
    text = "FetchFailed(null, message=\norg.apache.spark.shuffle.FetchFailedException: gone\n)"
    broken.fail(lost, text)
    broken.apply(completed(source, failure="org.apache.spark.shuffle.FetchFailedException: gone" + STACK))
    broken.apply(completed(source, attempt=1))
    broken.end_batch("x")
    broken.end("java.lang.IllegalStateException: the sink is gone")
    [top] = broken.told.latest
    assert place(top) == ("", -1, -1, "")
    assert [each.trace for each in top.concurrent] == [text]


def test_stage_of_another_job_that_ends_well_hides_no_task(broken: Broken) -> None:
    """Jobs of one batch run at once; the query throws the words of the stage that failed."""
    source, beside = broken.map_stage(), broken.map_stage()
    broken.fail(broken.task(source, 1))
    broken.apply(completed(source, failure=MESSAGE), completed(beside))
    broken.end_batch("x")
    broken.end(f"{PYTHON}: {MESSAGE}{STACK}")
    assert broken.told.latest[0].subtask == 1


def test_words_of_user_code_do_not_hide_the_task(broken: Broken) -> None:
    """What foreachBatch throws need not say what Spark said; the stage that failed last ended the batch."""
    source = broken.map_stage()
    broken.fail(broken.task(source, 1))
    broken.apply(completed(source, failure=MESSAGE))
    broken.end_batch("x")
    broken.end("py4j.Py4JException: An exception was raised by the Python Proxy")
    assert broken.told.latest[0].subtask == 1


def test_stage_that_no_task_failed_is_an_entry(broken: Broken) -> None:
    """Below the run's own, once for all stages of the job; of what was stopped there is none."""
    big = "Job aborted due to stage failure: Total size of serialized results is bigger than spark.driver.maxResultSize"
    one, two, three = broken.map_stage(), broken.map_stage(), broken.map_stage()
    broken.fail(broken.task(one))
    broken.apply(completed(one, failure=big), completed(two, failure=big))
    broken.apply(completed(three, failure="Job 3 cancelled part of cancelled job group"))
    broken.end_batch("x")
    broken.end(f"org.apache.spark.SparkException: {big}{STACK}")
    [top] = broken.told.latest
    assert [(each.name, each.trace) for each in top.concurrent] == [
        ("org.apache.spark.SparkException", big),
        (PYTHON, f"{PYTHON}: {MESSAGE}{STACK}"),
    ]
    assert place(top) == ("", -1, -1, "")


def test_query_that_was_stopped_has_no_failure(broken: Broken) -> None:
    """Its stages end with a reason all the same."""
    broken.apply(completed(broken.map_stage(), failure="Job 3 cancelled part of cancelled job group 7"))
    broken.end_batch("org.apache.spark.SparkException: Job 3 cancelled")
    broken.end(None)
    assert broken.told == wire.Failures()
    assert broken.job.state == "CANCELED"


def test_as_many_as_flink_keeps_are_held(broken: Broken) -> None:
    """The newest; of the older ones, and of those without a text, it is known how many there were."""
    source = broken.map_stage()
    for number in range(20):
        broken.fail(broken.task(source, number % 2, attempt=number))
    for number in range(3):
        broken.fail(broken.task(source, 0, attempt=20 + number), None)
    assert [each.attempt for each in broken.told.latest] == list(range(19, 3, -1))
    assert broken.told.forgotten == 7


def test_run_takes_the_place_of_the_oldest(broken: Broken) -> None:
    """Sixteen were overcome before the one that ends the run."""
    for number in range(wire.FAILURES):
        broken.fail(broken.task(broken.map_stage(), 0, attempt=number))
    broken.end_batch()
    broken.end("java.io.IOException: no")
    assert [each.attempt for each in broken.told.latest] == [-1, *range(15, 0, -1)]
    assert broken.told.forgotten == 1


def test_storm_that_ends_the_run_is_bounded_below_it(broken: Broken) -> None:
    """Sixteen below, the rest counted, those that come late too; and the place is that of the last one, told or not."""
    source = stage(broken.ids, 40, shuffles=True, scopes=["MicroBatchScan"])
    broken.stages(source)
    tasks = [broken.task(source, partition) for partition in range(40)]
    for task in tasks[:29]:
        broken.fail(task)
    broken.fail(tasks[29], None)
    broken.apply(completed(source, failure=MESSAGE))
    broken.end_batch("x")
    broken.end(f"{PYTHON}: {MESSAGE}{STACK}")
    for task in tasks[30:]:
        broken.fail(task)
    [top] = broken.told.latest
    assert [each.subtask for each in top.concurrent] == list(range(28, 12, -1))
    assert place(top) == (broken.vertex_ids[SOURCE], 29, 0, "app-7-1")
    assert broken.told.forgotten == 40 - 16


def test_two_queries_keep_their_failures_apart(broken: Broken) -> None:
    """What fails in one is none of the other's."""
    other = Query(2)
    broken.apply(other.started())
    broken.fail(broken.task(broken.map_stage()))
    assert broken.model.jobs[other.jid].failures.told() == wire.Failures()
    assert len(broken.told.latest) == 1


def test_failures_of_what_runs_in_foreach_batch_are_the_querys(broken: Broken) -> None:
    """The vertex is that of the plan that user code ran."""
    inner = Execution(broken.ids, broken.new_plan(), "a write", root=broken.execution.id)
    reader = stage(broken.ids, 2, scopes=["HashAggregate"])
    broken.apply(inner.start(), inner.job(reader), submitted(reader))
    broken.fail(broken.task(reader, 1))
    broken.apply(completed(reader, failure=MESSAGE), inner.end(error="x"))
    broken.end_batch("x")
    broken.end("py4j.Py4JException: no")
    [top] = broken.told.latest
    [vertex] = [vertex for vertex in broken.job.graph.vertices.values() if vertex.id == top.vertex]
    assert vertex.name == READER
    assert len(top.concurrent) == 1


def test_batch_query_fails_like_a_run(broken: Broken) -> None:
    """With all of its tasks below."""
    alone = Execution(broken.ids, broken.new_plan(), "a batch")
    of = stage(broken.ids, 2, shuffles=True, scopes=["MicroBatchScan"])
    broken.apply(alone.start(), alone.job(of), submitted(of))
    broken.fail(broken.task(of, 1))
    broken.apply(completed(of, failure=MESSAGE), alone.end(error=f"{PYTHON}: {MESSAGE}{STACK}"))
    [job] = [job for job in broken.model.jobs.values() if job.kind == "BATCH"]
    [top] = job.failures.told().latest
    assert (job.state, job.failure, top.subtask, len(top.concurrent)) == ("FAILED", f"{PYTHON}: {MESSAGE}", 1, 1)


def test_told_is_the_same_object_while_nothing_failed(broken: Broken) -> None:
    """So that looking for a change costs nothing."""
    broken.fail(broken.task(broken.map_stage()))
    told = broken.told
    broken.task(broken.map_stage())
    assert broken.told is told


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("java.io.IOException: no\n\tat a.B.c(D.java:1)\n", "java.io.IOException: no"),
        ("a.B: x\n\tat y\nCaused by: c.D: z\nmore of it\n\tat y\n\t... 3 more\n", "c.D: z\nmore of it"),
        ("a.B: x\n\tat y\nCaused by: c.D\n\t... 3 more\n", "c.D"),
        ("a.B: lost\n\nDriver stacktrace:\n\tat y\n", "a.B: lost"),
        ("it broke", "it broke"),
        ("", ""),
    ],
)
def test_root_cause_is_the_last_cause_without_its_stack(text: str, cause: str) -> None:
    """Class and message, all lines of it."""
    assert root_cause(text) == cause


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("java.io.IOException: no", "java.io.IOException"),
        ("java.lang.NullPointerException\n\tat x", "java.lang.NullPointerException"),
        ("a.b.Outer$Inner", "a.b.Outer$Inner"),
        ("Job aborted due to stage failure: x", "org.apache.spark.SparkException"),
        ("[X] no", "org.apache.spark.SparkException"),
        ("see example.com/x", "org.apache.spark.SparkException"),
        ("", "org.apache.spark.SparkException"),
    ],
)
def test_class_is_what_the_text_begins_with(text: str, name: str) -> None:
    """Where there is none it is what Spark throws."""
    assert exception_class(text) == name


def test_failure_of_an_unknown_stage_is_none_of_ours(run: Any) -> None:
    """Of a job that has no SQL execution, or that ran before the hooks came."""
    run.apply(records.TaskFailure(99, 0, 1, 0, 0, "1", 5, "a.B", "a.B: x"))
    assert run.job.failures.told() == wire.Failures()
