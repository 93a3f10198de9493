"""Any course of frames over a bad network leaves exactly the state that a plain model has."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from streamgauge import names, wire
from streamgauge.errors import NeedsFullFrame

VERTICES = tuple(f"{number:032x}" for number in range(3))
OPERATORS = tuple(f"{number:032x}" for number in range(8, 10))
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
    starts: tuple[list[int], int] | None = None


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

    def acknowledge(self, frame: wire.Frame) -> None:
        if frame.attempt.start_ms == self.run:
            self.acknowledged = max(self.acknowledged, frame.seq)

    def truth(self) -> dict:
        ended = self.state in wire.ENDED_STATES
        return {
            "state": self.state,
            "metrics": {"numInputRows": self.rows},
            "vertices": {
                vertex_id: {
                    "parallelism": vertex.parallelism,
                    "size": vertex.size,
                    "operators": vertex.operators,
                    "columns": {
                        key: list(zip(values, present, strict=True))
                        for key, (values, present, _) in vertex.columns.items()
                        if not (ended and key[1] in names.TRANSIENT)
                    },
                    "starts": vertex.starts and vertex.starts[0],
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
        )

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
        )


def _held(job) -> dict:
    return {
        "state": job.state,
        "metrics": dict(job.job.metrics),
        "vertices": {
            vertex_id: {
                "parallelism": vertex.parallelism,
                "size": vertex.size,
                "operators": len(vertex.operators),
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
            }
            for vertex_id, vertex in job.vertices.items()
        },
    }


senders = st.integers(0, 1)
seeds = st.integers(0, 2**20)


class Network(RuleBasedStateMachine):
    """
    Two queries, a network that loses, repeats, reorders and bundles, and the model: of each job the whole
    state at the newest frame that could be applied, and how often its attempt rose.
    """

    frames = None
    collector_of = None
    check_snapshot = None

    def __init__(self) -> None:
        super().__init__()
        self.collector = type(self).collector_of()
        self.senders = [Sender(f"{number:032x}") for number in (1, 2)]
        self.in_flight: list[tuple[Sender, wire.Frame, dict]] = []
        self.model: dict[str, dict] = {}

    @rule(sender=senders, vertex=st.integers(0, 2))
    def plan(self, sender, vertex):
        """A vertex appears in the plan, or gains an operator."""
        one = self.senders[sender]
        held = one.vertices.setdefault(VERTICES[vertex], Vertex(operators=0, changed=one.seq + 1))
        held.operators = min(held.operators + 1, len(OPERATORS))
        one.plan_changed = one.seq + 1

    @precondition(lambda self: any(sender.vertices for sender in self.senders))
    @rule(data=st.data(), grow=st.integers(0, 3))
    def measure(self, data, grow):
        """Some columns are written, perhaps after more subtasks appeared; values repeat often."""
        one = data.draw(st.sampled_from([sender for sender in self.senders if sender.vertices]))
        vertex = one.vertices[data.draw(st.sampled_from(list(one.vertices)))]
        now = one.seq + 1
        if grow or not vertex.size:
            vertex.size += max(grow, 1)
            vertex.resized = now
            for key, (values, present, changed) in vertex.columns.items():
                more = vertex.size - len(values)
                vertex.columns[key] = ([*values, *[0] * more], [*present, *[False] * more], changed)
            if vertex.starts is not None:
                starts = vertex.starts[0]
                vertex.starts = ([*starts, *[-1] * (vertex.size - len(starts))], vertex.starts[1])
        vertex.changed = now
        vertex.parallelism = data.draw(st.integers(0, vertex.size))
        keys = [(operator, metric) for operator in ("", *OPERATORS[: vertex.operators]) for metric in METRICS]
        for key in data.draw(st.lists(st.sampled_from(keys), max_size=4)):
            values = data.draw(st.lists(st.integers(0, 2), min_size=vertex.size, max_size=vertex.size))
            present = data.draw(st.lists(st.booleans(), min_size=vertex.size, max_size=vertex.size))
            vertex.columns[key] = (values, present, now)
        if data.draw(st.booleans()):
            starts = data.draw(st.lists(st.integers(-1, 2), min_size=vertex.size, max_size=vertex.size))
            vertex.starts = (starts, now)

    @rule(sender=senders)
    def read_rows(self, sender):
        """A figure of the job itself, which every frame tells."""
        self.senders[sender].rows += 1

    @rule(sender=senders)
    def end(self, sender):
        """The query fails."""
        self.senders[sender].state = "FAILED"

    @rule(sender=senders)
    def restart(self, sender):
        """A new run of the same query."""
        self.senders[sender].restart()

    @rule(sender=senders)
    def send(self, sender):
        """A frame goes out."""
        one = self.senders[sender]
        frame = one.frame(type(self).frames)
        self.in_flight.append((one, frame, one.truth()))

    @precondition(lambda self: self.in_flight)
    @rule(seed=seeds)
    def lose(self, seed):
        """A frame never arrives."""
        self.in_flight.pop(seed % len(self.in_flight))

    @precondition(lambda self: self.in_flight)
    @rule(picks=st.lists(seeds, min_size=1, max_size=3), again=st.booleans(), answered=st.booleans())
    def deliver(self, picks, again, answered):
        """Some frames arrive in one body, in any order; they may arrive again, and the answer may be lost."""
        arriving = [self.in_flight[pick % len(self.in_flight)] for pick in picks]
        if not again:
            self.in_flight = [sent for sent in self.in_flight if all(sent is not one for one in arriving)]
        model, expected = copy.deepcopy(self.model), [0, 0, 0]
        refused = None
        for index, (sender, frame, truth) in enumerate(arriving):
            outcome = _model_apply(model, sender.jid, frame, truth)
            if outcome is None:
                refused = index
                break
            expected[outcome] += 1
        before = self.collector.store.snapshot()
        if refused is not None:
            with pytest.raises(NeedsFullFrame, match=f"^frame {refused} "):
                self.collector.push(*(frame for _, frame, _ in arriving))
            if answered:
                for sender, _, _ in arriving:
                    sender.acknowledged = 0
        else:
            self.model = model
            assert self.collector.push(*(frame for _, frame, _ in arriving)) == tuple(expected)
            if answered:
                for sender, frame, _ in arriving:
                    sender.acknowledge(frame)
        if refused is not None or not expected[0]:
            assert self.collector.store.snapshot() is before

    @rule(sender=senders)
    def converse(self, sender):
        """A frame goes out, arrives and is answered, again in full if need be: how it is on most days."""
        for _ in range(2):
            self.send(sender)
            one, frame, truth = self.in_flight.pop()
            if _model_apply(self.model, one.jid, frame, truth) is None:
                with pytest.raises(NeedsFullFrame):
                    self.collector.push(frame)
                one.acknowledged = 0
                continue
            assert self.collector.push(frame) == (1, 0, 0)
            one.acknowledge(frame)
            return
        raise AssertionError("a full frame was refused")

    @invariant()
    def the_store_is_the_model(self):
        snapshot = self.collector.store.snapshot()
        assert {jid: (_held(job), job.restarts, job.seq) for jid, job in snapshot.jobs.items()} == {
            jid: (one["truth"], one["restarts"], one["seq"]) for jid, one in self.model.items()
        }
        type(self).check_snapshot(snapshot)


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


def test_any_course_of_frames_gives_the_models_state(frames, new_collector, check_snapshot):
    """Delta against the last acknowledged frame, full after NeedsFullFrame: the collector always converges."""
    machine = type(
        "BoundNetwork",
        (Network,),
        {
            "frames": frames,
            "collector_of": staticmethod(new_collector),
            "check_snapshot": staticmethod(check_snapshot),
        },
    )
    run_state_machine_as_test(machine, settings=settings(max_examples=150, stateful_step_count=40, deadline=None))
