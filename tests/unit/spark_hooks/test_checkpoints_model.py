"""Whatever the course of a run's micro-batches, they are told as a list of them would tell."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import given, settings

from spark_hooks import records
from spark_hooks.checkpoints import HELD, Checkpoints
from spark_hooks.progress import read
from streamgauge import names


@dataclass
class Batch:
    """A micro-batch as the list has it; `figures` are duration, state and written bytes where Spark told them."""

    id: int
    status: str
    reason: str = ""
    figures: tuple[int, int, int] | None = None


@dataclass
class Course:
    """A run, kept whole, and the class that keeps a part of it."""

    from_start: bool
    checkpoints: Checkpoints = field(init=False)
    batches: list[Batch] = field(default_factory=list)
    broken_off: str = ""
    now_ms: int = 10_000

    def __post_init__(self) -> None:
        self.checkpoints = Checkpoints(1_000, self.from_start)

    @property
    def running(self) -> Batch | None:
        last = self.batches[-1] if self.batches else None
        return last if last is not None and last.status == "IN_PROGRESS" else None

    @property
    def next_id(self) -> int:
        return self.batches[-1].id + 1 if self.batches else 0

    def overtake(self) -> None:
        if self.running is not None:
            self.running.reason = self.broken_off
            self.batches[-1].status = "FAILED" if self.broken_off else "COMPLETED"
        self.broken_off = ""

    def begin(self, skipped: int) -> None:
        batch_id = self.next_id + skipped
        self.overtake()
        self.batches.append(Batch(batch_id, "IN_PROGRESS"))
        self.checkpoints.begin(batch_id, self.now_ms)

    def begin_again(self, back: int) -> None:
        """Another execution of a batch that has begun already."""
        if self.batches:
            self.checkpoints.begin(self.batches[-1 - back % len(self.batches)].id, self.now_ms)

    def complete(self, figures: tuple[int, int, int]) -> None:
        """The one under way; where none is, one whose beginning was not seen."""
        if self.running is None:
            self.batches.append(Batch(self.next_id, "IN_PROGRESS"))
        batch = self.batches[-1]
        batch.status, batch.figures = "COMPLETED", figures
        self.broken_off = ""
        duration, state, written = figures
        store = {"rocksdbBytesCopied": written, "rocksdbChangeLogWriterCommitLatencyMs": 0}
        told = {
            "id": "q",
            "runId": "r",
            "batchId": batch.id,
            "timestamp": "2026-11-21T10:00:01.000Z",
            "durationMs": {"triggerExecution": duration},
            "stateOperators": [{"memoryUsedBytes": state, "customMetrics": store}],
        }
        self.checkpoints.complete(read(records.QueryProgress(json.dumps(told))), self.now_ms)

    def break_off(self) -> None:
        if self.running is not None:
            self.broken_off = f"error at {self.now_ms}"
        self.checkpoints.break_off(self.now_ms, f"error at {self.now_ms}")

    def end(self) -> None:
        """The run ends; no class would be told more, but it must stand it."""
        if self.running is not None:
            self.batches[-1] = Batch(self.running.id, "FAILED", "the run ended")
        self.broken_off = ""
        self.checkpoints.fail(self.now_ms, "the run ended")

    def check(self) -> None:
        told, found = self.checkpoints.told(), self.checkpoints.metrics()
        by_status = {
            status: [batch.id for batch in self.batches if batch.status == status]
            for status in ("IN_PROGRESS", "COMPLETED", "FAILED")
        }
        assert (told.completed, told.failed) == (len(by_status["COMPLETED"]), len(by_status["FAILED"]))
        assert found[names.NUM_IN_PROGRESS_CHECKPOINTS] == len(by_status["IN_PROGRESS"]) <= 1
        assert found[names.TOTAL_CHECKPOINTS] == len(self.batches)
        latest_completed, latest_failed = ((by_status[each] or [-1])[-1] for each in ("COMPLETED", "FAILED"))
        assert (told.latest_completed, told.latest_failed) == (latest_completed, latest_failed)
        kept = {batch.id for batch in self.batches[-HELD:]} | {latest_completed, latest_failed}
        expected = [batch for batch in reversed(self.batches) if batch.id in kept]
        assert told.held == tuple(batch.id for batch in expected)
        assert [(each.id, each.status, each.failure) for each in told.changed] == [
            (batch.id, batch.status, batch.reason) for batch in expected
        ]
        first = self.batches[0].id if self.batches else 0
        assert told.restored == (first - 1 if self.from_start and first else -1)
        for index, spread in enumerate((told.duration_ms, told.state_bytes, told.checkpointed_bytes)):
            values = [batch.figures[index] for batch in self.batches if batch.figures is not None]
            assert (spread is None) == (not values)
            if spread is not None:
                assert (spread.min, spread.max, spread.avg) == (min(values), max(values), sum(values) // len(values))
        assert self.checkpoints.told() == told


FIGURE = st.integers(0, 10**12)
STEPS = st.one_of(
    st.tuples(st.just("begin"), st.integers(0, 2)),
    st.tuples(st.just("begin_again"), st.integers(0, 20)),
    st.tuples(st.just("complete"), st.tuples(FIGURE, FIGURE, FIGURE)),
    st.tuples(st.just("complete"), st.tuples(FIGURE, FIGURE, FIGURE)),
    st.tuples(st.just("break_off")),
    st.tuples(st.just("end")),
)


@settings(max_examples=300, deadline=None)
@given(st.booleans(), st.lists(STEPS, max_size=60))
def test_checkpoints_are_those_of_a_list(from_start: bool, steps: list[tuple[object, ...]]) -> None:
    """After every step: counts, what is held and in which order, the latest of each kind, restored, spreads."""
    course = Course(from_start)
    for name, *arguments in steps:
        course.now_ms += 10
        getattr(course, str(name))(*arguments)
        course.check()
