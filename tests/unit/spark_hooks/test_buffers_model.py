"""Property: in any order of what goes on, the queues are those of a slow model that knows every block."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_hooks import records
from streamgauge import names
from tests.unit.spark_hooks.spark_events import READER, SOURCE, Task
from tests.unit.spark_hooks.spark_shuffles import Shuffled

EXECUTORS = ("1", "2", "3")


class Batch:
    """
    One batch of a query, task by task, and every block that its shuffle holds.

    Blocks are of any size; a downstream task reads those that are addressed to it, all of them, when it finishes.
    """

    def __init__(self, run: Shuffled, random: Random, executors: int) -> None:
        self.run, self.random, self.executors = run, random, EXECUTORS[:executors]
        self.now_ms = 0
        self.up, self.down = random.randint(1, 5), random.randint(1, 5)
        self.map: records.Stage = run.map_stage(self.up)
        self.reduce: records.Stage | None = None
        self.running: dict[tuple[str, int], tuple[Task, int]] = {}
        self.blocks: dict[int, list[int]] = {}
        """Upstream subtask → bytes for each downstream one; once it has finished."""
        self.places: dict[tuple[str, int], str] = {}
        self.finishes: list[int] = []
        self.read: set[int] = set()

    def step(self) -> None:
        """A task is launched or finishes, if it can; time passes."""
        self.now_ms += self.random.randint(0, 50)
        steps = [self.launch_up, self.launch_down, self.finish, self.finish]
        self.random.choice(steps)()
        self.run.now(self.now_ms)

    def launch_up(self) -> None:
        free = [each for each in range(self.up) if ("up", each) not in self.places]
        if free:
            self.launch("up", self.map, self.random.choice(free))

    def launch_down(self) -> None:
        if len(self.blocks) < self.up:
            return
        if self.reduce is None:
            self.run.complete(self.map, self.now_ms)
            self.reduce = self.run.reduce_stage(self.down)
        free = [each for each in range(self.down) if ("down", each) not in self.places]
        if free:
            self.launch("down", self.reduce, self.random.choice(free))

    def launch(self, side: str, of: records.Stage, subtask: int) -> None:
        executor = self.random.choice(self.executors)
        self.running[side, subtask] = (self.run.launch(of, subtask, self.now_ms, executor), self.now_ms)
        self.places[side, subtask] = executor

    def finish(self) -> None:
        if not self.running:
            return
        side, subtask = self.random.choice(list(self.running))
        task, launched_ms = self.running.pop((side, subtask))
        if side == "up":
            self.blocks[subtask] = [self.random.choice((0, 0, 1, 7, 1000)) for _ in range(self.down)]
            self.finishes.append(self.now_ms)
            self.run.wrote(task, sum(self.blocks[subtask]), self.now_ms - launched_ms)
        else:
            self.read.add(subtask)
            came = {True: 0, False: 0}
            for source, sizes in self.blocks.items():
                came[self.places["up", source] == self.places["down", subtask]] += sizes[subtask]
            self.run.read(task, came[True], came[False], self.now_ms - launched_ms)

    # ---- What is to be told

    def waiting(self, rows: int) -> list[int]:
        """Downstream subtasks that have not finished; before any was launched as many as there were before."""
        tasks = self.down if any(side == "down" for side, _ in self.places) else rows
        return [each for each in range(tasks) if each not in self.read]

    def left(self) -> int:
        """Bytes that nobody has read."""
        return sum(size for sizes in self.blocks.values() for each, size in enumerate(sizes) if each not in self.read)

    def remote(self, subtask: int) -> list[int]:
        """Upstream subtasks that have finished on another executor than the downstream one is on, if it is placed."""
        if len(self.executors) == 1:
            return []
        place = self.places.get(("down", subtask))
        return [each for each in self.blocks if self.places["up", each] != place]

    def check(self, rows: int) -> None:
        waiting, left, run = self.waiting(rows), self.left(), self.run
        written = sum(map(sum, self.blocks.values()))
        lengths, sizes = run.queued()["behind"] if self.places else ([], [])
        for subtask, (length, size) in enumerate(zip(lengths, sizes, strict=True)):
            assert length == (len(waiting) if subtask in self.blocks else 0)
            share = sum(self.blocks.get(subtask, ())) * left / max(written, 1)
            assert share - 1 <= size <= share + 1e-6
        assert sum(sizes) <= left <= written
        before = (
            run.queued()["before"] if READER in {each.name for each in run.job.graph.vertices.values()} else [[], []]
        )
        for subtask, (length, size) in enumerate(zip(*before, strict=True)):
            remote = self.remote(subtask) if subtask in waiting else []
            assert length == len(remote)
            there = sum(sum(self.blocks[each]) for each in remote)
            share = left / max(len(waiting), 1) * there / max(written, 1)
            assert share - 1 <= size <= share + 1e-6
        assert all(0 <= usage <= 1 for usage in run.told(READER, "inPoolUsage") if rows)


@settings(max_examples=60, deadline=None)
@given(random=st.randoms(use_true_random=False), executors=st.integers(1, 3), steps=st.integers(1, 40))
def test_queues_are_those_of_every_block(random: Random, executors: int, steps: int) -> None:
    """At every step of several batches; never more than was written, never less than 0, and 0 when all is over."""
    run = Shuffled(executors)
    rows = 0
    for _ in range(3):
        batch = Batch(run, random, executors)
        aligned: list[int] = []
        for _ in range(steps):
            batch.step()
            if batch.places:
                batch.check(rows or 3)
            if rows:
                told = run.told(READER, names.CHECKPOINT_ALIGNMENT_TIME)[0] if batch.places else None
                aligned += [] if told is None or not batch.blocks else [told]
        assert aligned == sorted(aligned)
        if rows and len(batch.blocks) == batch.up:
            assert run.told(READER, names.CHECKPOINT_ALIGNMENT_TIME)[0] == 1_000_000 * (
                max(batch.finishes) - min(batch.finishes)
            )
        run.commit()
        if batch.places:
            assert not any(map(sum, run.queued()["behind"]))
        ran = any(side == "down" for side, _ in batch.places)
        rows = batch.down if ran else rows
        if rows:
            assert not any(map(sum, run.queued()["before"]))
            assert run.vertex(SOURCE).size
        run.begin()
