"""When micro-batches ran."""

from spark_hooks.plan import Graph
from spark_hooks.stages import Execution, Stage
from spark_hooks.timeline import Batch, Timeline


def execution(number: int) -> Execution:
    return Execution(number, None, "", 0, None, True, Graph([], ()), False)


def span(batch: Batch) -> tuple[int, int, int]:
    return batch.begin_ms, batch.executed_ms, batch.end_ms


def test_a_batch_has_its_triggers_times() -> None:
    """Its executions begin after the trigger does and end before it."""
    timeline, first = Timeline(), execution(1)
    assert timeline.begin(7, 120, first) is None
    assert timeline.batch is not None
    assert span(timeline.batch) == (120, -1, -1)
    timeline.executed(first, 400)
    passed, batch = timeline.complete(7, 100, 450)
    assert (passed, batch.id, batch.executions, span(batch)) == (None, 7, [first], (100, 400, 450))
    assert timeline.batch is None


def test_a_batch_has_executed_when_its_last_execution_has() -> None:
    """A sink may execute several; while one of them runs the batch has not."""
    timeline, first, second = Timeline(), execution(1), execution(2)
    timeline.begin(0, 10, first)
    timeline.executed(first, 20)
    assert timeline.begin(0, 30, second) is None
    assert timeline.batch is not None
    assert timeline.batch.executed_ms == -1
    timeline.executed(second, 40)
    timeline.executed(execution(9), 99)
    assert timeline.batch.executed_ms == 40
    assert timeline.batch.executions == [first, second]


def test_a_batch_ends_where_another_begins() -> None:
    """Its own end may have been lost."""
    timeline = Timeline()
    timeline.begin(3, 10, execution(1))
    passed = timeline.begin(4, 60, execution(2))
    assert passed is not None
    assert (passed.id, span(passed)) == (3, (10, -1, 60))
    also, batch = timeline.complete(5, 80, 90)
    assert also is not None
    assert (also.id, also.end_ms, batch.id, batch.executions, span(batch)) == (4, 80, 5, [], (80, 90, 90))


def test_what_a_batch_left_behind_is_of_no_batch() -> None:
    """A thread of user code may begin an execution when its batch has ended; the next one goes on."""
    timeline, late, second = Timeline(), execution(1), execution(2)
    timeline.complete(3, 10, 50)
    assert timeline.begin(3, 55, late) is None
    assert timeline.batch is None
    timeline.begin(4, 60, second)
    assert timeline.begin(3, 65, late) is None
    assert timeline.batch is not None
    assert (timeline.batch.id, timeline.batch.executions) == (4, [second])


def test_a_committed_batch_has_executed() -> None:
    """Though the end of its execution was lost: what it puts out is there when it has ended."""
    timeline = Timeline()
    timeline.begin(0, 10, execution(1))
    _, batch = timeline.complete(0, 10, 70)
    assert span(batch) == (10, 70, 70)


def test_a_run_ends_the_batch_that_is_under_way() -> None:
    """And no other."""
    timeline = Timeline()
    assert timeline.end(5) is None
    timeline.begin(0, 10, execution(1))
    batch = timeline.end(70)
    assert batch is not None
    assert (batch.end_ms, timeline.batch) == (70, None)


def test_stages_are_those_that_began_in_order() -> None:
    """Of nested executions too, each vertex's in the order of their launches."""
    outer, inner = execution(1), execution(2)
    outer.inner.append(inner)
    late, unborn, early = (
        Stage([number], each, 1, -1, frozenset()) for number, each in ((1, outer), (2, outer), (3, inner))
    )
    late.first_ms, early.first_ms = 20, 10
    outer.stages += [late, unborn]
    inner.stages.append(early)
    batch = Batch(0, 5, executions=[outer])
    assert list(batch.stages()) == [late, early]
    assert batch.by_vertex() == {}
