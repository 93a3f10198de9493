"""Any course of frames over a bad network leaves exactly the state that a plain model has."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.store import Snapshot
from collector.taps import figures
from streamgauge import names, wire
from streamgauge.errors import NeedsFullFrame

VERTICES = tuple(f"{number:032x}" for number in range(3))
OPERATORS = tuple(f"{number:032x}" for number in range(8, 10))
UNTOLD = {"configuration": {}, "observed": {}, "failures": wire.Failures()}
METRICS = ("numRecordsIn", "numRecordsOut", "busyTimeMsPerSecond")


@dataclass
class Vertex:
    """What the sender knows of a vertex; each thing with the seq of the frame that first told it."""

    operators: int
    changed: int
    size: int = 0
    resized: int = 0
    parallelism: int = 0
    # (operator or '', metric) -> (values, present, changed)
    columns: dict[tuple[str, str], tuple[list[int], list[bool], int]] = field(default_factory=dict)
    # The same for native metrics.
    accumulators: dict[tuple[str, str], tuple[list[int], int]] = field(default_factory=dict)
    starts: tuple[list[int], int] | None = None
    # (operator, source, source's subtask) -> (counts, changed); (operator, source) -> (values, changed).
    latencies: dict[tuple[str, str, int], tuple[list[int], int]] = field(default_factory=dict)
    histograms: dict[tuple[str, str], tuple[list[int], int]] = field(default_factory=dict)
    # Whole: (operator, watermarks of its splits) of each tap; (operator, metric) -> (values, changed).
    taps: tuple[list[tuple[str, list[int]]], int] = ([], 0)
    distributions: dict[tuple[str, str], tuple[list[int], int]] = field(default_factory=dict)

    def grow(self, more: int, seq: int) -> None:
        self.size += more
        self.resized = seq
        for key, (values, present, changed) in self.columns.items():
            self.columns[key] = ([*values, *[0] * more], [*present, *[False] * more], changed)
        for whole in (self.accumulators, self.latencies):
            for key, (values, changed) in whole.items():
                whole[key] = ([*values, *[0] * more], changed)
        if self.starts is not None:
            self.starts = ([*self.starts[0], *[-1] * more], self.starts[1])


class Sender:
    """
    One query's driver, following the protocol; `state` is the whole truth that the collector should reach.

    A column counts as changed since a frame if it was written since, even if it has the old value again:
    the collector may hold a value from between.
    """

    def __init__(self, jid: str) -> None:
        self.jid = jid
        self.run = 0
        self.restart()

    def restart(self) -> None:
        self.run += 1
        self.seq = 0
        self.acknowledged = 0
        self.state = "RUNNING"
        self.rows = 0
        self.plan_changed = 1
        self.vertices: dict[str, Vertex] = {}
        # What travels whole when it changes, and the seq of the frame that first told its latest value.
        self.whole: dict[str, tuple[Any, int]] = dict.fromkeys(UNTOLD, (None, 0))
        # Batch id -> (micro-batch, changed), newest first.
        self.batches: dict[int, tuple[wire.Checkpoint, int]] = {}
        self.batches_changed = 0

    def acknowledge(self, frame: wire.Frame) -> None:
        if frame.attempt.start_ms == self.run:
            self.acknowledged = max(self.acknowledged, frame.seq)

    def truth(self) -> dict:
        ended = self.state in wire.ENDED_STATES
        return {
            "state": self.state,
            "metrics": {"numInputRows": self.rows},
            "whole": {name: UNTOLD[name] if value is None else value for name, (value, _) in self.whole.items()},
            "batches": [batch for batch, _ in self.batches.values()],
            "vertices": {
                vertex_id: {
                    "parallelism": vertex.parallelism,
                    "size": vertex.size,
                    "operators": vertex.operators,
                    "accumulators": {key: values for key, (values, _) in vertex.accumulators.items()},
                    "columns": {
                        key: list(zip(values, present, strict=True))
                        for key, (values, present, _) in vertex.columns.items()
                        if not (ended and key[1] in names.TRANSIENT)
                    },
                    "starts": vertex.starts and vertex.starts[0],
                    "latencies": {key: counts for key, (counts, _) in vertex.latencies.items()},
                    "histograms": {key: values for key, (values, _) in vertex.histograms.items()},
                    "taps": [(*tap, not ended) for tap in vertex.taps[0]],
                    "distributions": {key: values for key, (values, _) in vertex.distributions.items()},
                }
                for vertex_id, vertex in self.vertices.items()
            },
        }

    def frame(self, frames) -> wire.Frame:
        self.seq += 1
        base = self.acknowledged
        figures = []
        for vertex_id, vertex in self.vertices.items():
            if vertex.size and vertex.changed > base:
                since = 0 if vertex.resized > base else base
                figures.append(self._figures(frames, vertex_id, vertex, since))
        return frames.frame(
            attempt=wire.Attempt(self.run, f"run-{self.run}"),
            seq=self.seq,
            base=base,
            job=frames.job(self.jid, state=self.state, metrics={"numInputRows": self.rows}),
            plan=self._plan(frames) if self.plan_changed > base else None,
            vertices=tuple(figures),
            checkpoints=self._checkpoints(base) if self.batches_changed > base else None,
            **{name: value for name, (value, changed) in self.whole.items() if changed > base},
        )

    def _checkpoints(self, base: int) -> wire.Checkpoints:
        changed = tuple(batch for batch, seq in self.batches.values() if seq > base)
        return wire.Checkpoints(completed=len(self.batches), held=tuple(self.batches), changed=changed)

    def _plan(self, frames) -> wire.Plan:
        return wire.Plan(
            tuple(
                frames.vertex(vertex_id, operators=OPERATORS[: vertex.operators])
                for vertex_id, vertex in self.vertices.items()
            )
        )

    def _figures(self, frames, vertex_id: str, vertex: Vertex, since: int) -> wire.VertexColumns:
        groups: dict[str, list[wire.Column]] = {}
        for (operator, metric), (values, present, changed) in vertex.columns.items():
            if changed > since:
                groups.setdefault(operator, []).append(frames.column(metric, *values, present=present))
        subtasks = None
        if vertex.starts is not None and vertex.starts[1] > since:
            starts = np.array(vertex.starts[0], dtype="<i8").tobytes()
            subtasks = wire.Subtasks(starts, bytes(len(starts)), starts, starts, ("app-1-1",))
        return frames.figures(
            vertex_id,
            size=vertex.size,
            parallelism=vertex.parallelism,
            columns=tuple(groups.pop("", ())),
            operators=tuple(wire.OperatorColumns(operator, tuple(columns)) for operator, columns in groups.items()),
            subtasks=subtasks,
            accumulators=tuple(
                wire.Accumulator(operator, "sum", frames.column(metric, *values))
                for (operator, metric), (values, changed) in vertex.accumulators.items()
                if changed > since
            ),
            latencies=tuple(
                frames.latency(*counts, source=source, subtask=subtask, operators=operators)
                for (source, subtask, counts), operators in _alike(vertex.latencies, since)
            ),
            histograms=tuple(
                frames.histogram(*values, source=source, operators=operators)
                for (source, values), operators in _alike(vertex.histograms, since)
            ),
            taps=_taps(frames, vertex.taps[0]) if vertex.taps[1] > since else None,
            distributions=tuple(
                frames.distribution(*values, operator=operator, metric=metric)
                for (operator, metric), (values, changed) in vertex.distributions.items()
                if changed > since
            ),
        )


def _taps(frames, told: list[tuple[str, list[int]]]) -> tuple[wire.Tap, ...]:
    taps = []
    for number, (operator, watermarks) in enumerate(told):
        tap = frames.tap(*watermarks, name=f"tap {number}", operator=operator)
        shares = frames.column(names.SPLIT_IDLE_TIME, *[5] * len(watermarks))
        taps.append(msgspec.structs.replace(tap, columns=(*tap.columns, shares)))
    return tuple(taps)


def _alike(told: dict[Any, tuple[list[int], int]], since: int) -> Iterator[tuple[tuple, tuple[str, ...]]]:
    """What has changed, operators of which the same is to be told together: as the hooks send it."""
    groups: dict[tuple, list[str]] = {}
    for (operator, *whose), (values, changed) in told.items():
        if changed > since:
            groups.setdefault((*whose, tuple(values)), []).append(operator)
    yield from ((key, tuple(operators)) for key, operators in groups.items())


def _values(buckets: wire.Buckets) -> list[int]:
    """Values below 256 ms have a bucket each."""
    indices, counts = (np.frombuffer(data, kind) for data, kind in ((buckets.indices, "<u2"), (buckets.counts, "<i8")))
    return np.repeat(indices, counts).tolist()


def _tap(tap: wire.Tap) -> tuple[str, list[int], bool]:
    """Its operator, its splits' watermarks, and whether it has their shares of time."""
    told = figures(tap)
    return tap.operator, told[names.SPLIT_CURRENT_WATERMARK], names.SPLIT_IDLE_TIME in told


def _held(job) -> dict:
    return {
        "state": job.state,
        "metrics": dict(job.job.metrics),
        "whole": {name: getattr(job, name) for name in UNTOLD},
        "batches": list(job.checkpoints.held.values()),
        "vertices": {
            vertex_id: {
                "parallelism": vertex.parallelism,
                "size": vertex.size,
                "operators": len(vertex.operators),
                "accumulators": {key: one.column.values.tolist() for key, one in vertex.accumulators.items()},
                "columns": {
                    (operator, metric): list(
                        zip(
                            column.values.tolist(),
                            [True] * vertex.size if column.present is None else column.present.tolist(),
                            strict=True,
                        )
                    )
                    for operator, columns in (("", vertex.columns), *vertex.operators.items())
                    for metric, column in columns.items()
                },
                "starts": None if vertex.subtasks is None else vertex.subtasks.start_ms.tolist(),
                "latencies": {tuple(key): one.counts.tolist() for key, one in vertex.latencies.windows.items()},
                "histograms": {key: _values(one.total) for key, one in vertex.latencies.histograms.items()},
                "taps": [_tap(tap) for tap in vertex.taps.taps],
                "distributions": {key: _values(one) for key, one in vertex.taps.distributions.items()},
            }
            for vertex_id, vertex in job.vertices.items()
        },
    }


class Network:
    """
    Two queries, a network that loses, repeats, reorders and bundles, and the model: of each job the whole
    state at the newest frame that could be applied, and how often its attempt rose.
    """

    def __init__(self, frames, collector) -> None:
        self.frames = frames
        self.collector = collector
        self.senders = [Sender(f"{number:032x}") for number in (1, 2)]
        self.in_flight: list[tuple[Sender, wire.Frame, dict]] = []
        self.model: dict[str, dict] = {}

    def plan(self, random: Random, one: Sender) -> Vertex:
        """A vertex appears in the plan, or gains an operator."""
        vertex = one.vertices.setdefault(random.choice(VERTICES), Vertex(operators=0, changed=one.seq + 1))
        vertex.operators = min(vertex.operators + 1, len(OPERATORS))
        one.plan_changed = one.seq + 1
        return vertex

    def measure(self, random: Random, one: Sender) -> None:
        """Some columns are written, perhaps after more subtasks appeared; values repeat often."""
        vertex = random.choice(list(one.vertices.values())) if one.vertices else self.plan(random, one)
        now = one.seq + 1
        if not vertex.size or random.random() < 0.2:
            vertex.grow(random.randint(1, 9), now)
        vertex.changed = now
        vertex.parallelism = random.randint(0, vertex.size)
        for operator in ("", *OPERATORS[: vertex.operators]):
            for metric in METRICS:
                if random.random() < 0.3:
                    values = random.choices(range(3), k=vertex.size)
                    present = random.choices([True, False], weights=[3, 1], k=vertex.size)
                    vertex.columns[operator, metric] = (values, present, now)
            if random.random() < 0.3:
                vertex.accumulators[operator, "spill size"] = (random.choices(range(3), k=vertex.size), now)
            if not operator:
                continue
            source, subtask = random.choice([("", -1), *((each, n) for each in one.vertices for n in (-1, 0))])
            if random.random() < 0.3:
                vertex.latencies[operator, source, subtask] = (random.choices(range(3), k=vertex.size), now)
            if random.random() < 0.3:
                metric = random.choice(sorted(names.DISTRIBUTIONS))
                values = sorted(random.choices(range(200), k=random.randint(0, 3)))
                vertex.distributions[operator, metric] = (values, now)
            if random.random() < 0.3:
                kept = vertex.taps[0][: random.randint(0, 2)]
                vertex.taps = ([*kept, (operator, random.choices(range(3), k=random.randint(1, 9)))], now)
            if source and random.random() < 0.3:
                vertex.histograms[operator, source] = (sorted(random.choices(range(200), k=random.randint(0, 3))), now)
        if random.random() < 0.3:
            vertex.starts = (random.choices(range(-1, 3), k=vertex.size), now)

    def read_rows(self, random: Random, one: Sender) -> None:
        """A figure of the job itself moves, which every frame tells."""
        one.rows += 1

    def tell(self, random: Random, one: Sender) -> None:
        """Something changes that travels whole."""
        told = {
            "configuration": {"spark.sql.shuffle.partitions": str(one.seq)},
            "observed": {"seen.rows": one.seq},
            "failures": wire.Failures((wire.Failure("E", "E: it broke", one.seq),)),
        }
        name = random.choice(list(told))
        one.whole[name] = (told[name], one.seq + 1)

    def batch(self, random: Random, one: Sender) -> None:
        """A micro-batch begins, or the latest one ends; three are held."""
        now = one.batches_changed = one.seq + 1
        latest = max(one.batches, default=0)
        if one.batches and one.batches[latest][0].status == "IN_PROGRESS":
            one.batches[latest] = (wire.Checkpoint(latest, "COMPLETED", 5, 6), now)
            return
        tasks = wire.CheckpointTasks(VERTICES[0], *[bytes(16)] * 4)
        begun = {latest + 1: (wire.Checkpoint(latest + 1, "IN_PROGRESS", 5, tasks=(tasks,)), now)}
        one.batches = dict(list((begun | one.batches).items())[:3])

    def end(self, random: Random, one: Sender) -> None:
        """The query fails."""
        one.state = "FAILED"

    def restart(self, random: Random, one: Sender) -> None:
        """A new run of the same query."""
        one.restart()

    def send(self, random: Random, one: Sender) -> None:
        """A frame goes out."""
        self.in_flight.append((one, one.frame(self.frames), one.truth()))

    def lose(self, random: Random, one: Sender) -> None:
        """A frame never arrives."""
        if self.in_flight:
            self.in_flight.pop(random.randrange(len(self.in_flight)))

    def deliver(self, random: Random, one: Sender) -> None:
        """Some frames arrive in one body, in any order; they may arrive again, and the answer may be lost."""
        if self.in_flight:
            arriving = random.choices(self.in_flight, k=random.randint(1, 3))
            if random.random() < 0.6:
                self.in_flight = [sent for sent in self.in_flight if all(sent is not gone for gone in arriving)]
            self.arrive(arriving, answered=random.random() < 0.7)

    def forget(self, random: Random, one: Sender) -> None:
        """The collector loses a job, by eviction or because it started anew; the sender does not know."""
        store = self.collector.store
        with store.lock:
            held = store.snapshot()
            store.swap(Snapshot({jid: job for jid, job in held.jobs.items() if jid != one.jid}, held.apps))
        self.model.pop(one.jid, None)

    def converse(self, random: Random, one: Sender) -> None:
        """A frame goes out, arrives and is answered, again in full if need be: how it is on most days."""
        for _ in range(2):
            self.send(random, one)
            if self.arrive([self.in_flight.pop()], answered=True):
                return
        raise AssertionError("a full frame was refused")

    def arrive(self, arriving: list[tuple[Sender, wire.Frame, dict]], answered: bool) -> bool:
        """Push one body and compare its outcomes with the model's; return whether it was taken."""
        model, expected = copy.deepcopy(self.model), [0, 0, 0]
        before = self.collector.store.snapshot()
        pushed = [frame for _, frame, _ in arriving]
        for index, (sender, frame, truth) in enumerate(arriving):
            outcome = _model_apply(model, sender.jid, frame, truth)
            if outcome is None:
                with pytest.raises(NeedsFullFrame, match=f"^frame {index} "):
                    self.collector.push(*pushed)
                assert self.collector.store.snapshot() is before
                if answered:
                    for refused, _, _ in arriving:
                        refused.acknowledged = 0
                return False
            expected[outcome] += 1
        self.model = model
        assert self.collector.push(*pushed) == tuple(expected)
        assert expected[0] or self.collector.store.snapshot() is before
        if answered:
            for sender, frame, _ in arriving:
                sender.acknowledge(frame)
        return True

    def check(self) -> None:
        held = {jid: (_held(job), job.restarts, job.seq) for jid, job in self.collector.store.snapshot().jobs.items()}
        assert held == {jid: (one["truth"], one["restarts"], one["seq"]) for jid, one in self.model.items()}


def _model_apply(model: dict[str, dict], jid: str, frame: wire.Frame, truth: dict) -> int | None:
    """Return 0 accepted, 1 repeated, 2 late, None for a frame that cannot be applied; `truth` is whole."""
    held = model.get(jid)
    run = frame.attempt.start_ms
    if held is not None and run < held["run"]:
        return 2
    if held is not None and run == held["run"]:
        if frame.seq <= held["seq"]:
            return 1 if frame.seq == held["seq"] else 2
        if frame.base > held["seq"]:
            return None
    elif frame.base:
        return None
    restarts = 0 if held is None else held["restarts"] + (run > held["run"])
    model[jid] = {"run": run, "seq": frame.seq, "truth": truth, "restarts": restarts}
    return 0


WEIGHTS = {
    "plan": 1,
    "measure": 6,
    "read_rows": 1,
    "tell": 2,
    "batch": 2,
    "end": 1,
    "restart": 1,
    "forget": 1,
    "send": 6,
    "lose": 1,
    "deliver": 5,
    "converse": 4,
}
steps = st.tuples(
    st.sampled_from([name for name, weight in WEIGHTS.items() for _ in range(weight)]),
    st.integers(0, 1),
    st.integers(0, 2**32).map(Random),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, min_size=20, max_size=80))
def test_any_course_of_frames_gives_the_models_state(frames, new_collector, check_snapshot, steps):
    """Delta against the last acknowledged frame, full after NeedsFullFrame: the store is the model at every step."""
    network = Network(frames, new_collector())
    for name, sender, random in steps:
        held = network.collector.store.snapshot()
        plain = {jid: _held(job) for jid, job in held.jobs.items()}
        getattr(network, name)(random, network.senders[sender])
        network.check()
        check_snapshot(network.collector.store.snapshot())
        assert {jid: _held(job) for jid, job in held.jobs.items()} == plain
