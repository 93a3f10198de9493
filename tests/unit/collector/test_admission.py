"""Every refusal that the frame alone gives rise to, and its message."""

from __future__ import annotations

import re
from dataclasses import fields

import msgspec
import pytest

from collector.limits import Limits
from streamgauge import wire
from streamgauge.errors import FrameTooLarge, InvalidName, MalformedFrame

ALIEN = "d" * 32
LONG = "x" * 9_000


def _vertices(frames, **changes):
    return {"vertices": (frames.figures(**changes),)}


def _plan(frames, **changes):
    return {"plan": frames.plan(frames.vertex(**changes))}


def _operators(frames, *names):
    return tuple(wire.Operator(f"{index:032x}", name, "", "") for index, name in enumerate(names))


def _accumulator(frames, metric, *values):
    return wire.Accumulator(frames.OPERATOR, "size", frames.column(metric, *values))


def _batch(*tasks, **changes):
    batch = wire.Checkpoint(**({"id": 7, "status": "COMPLETED", "trigger_ms": 5, "tasks": tasks} | changes))
    return {"checkpoints": wire.Checkpoints(held=(7,), changed=(batch,))}


def _failure(**changes):
    return {"failures": wire.Failures((wire.Failure(**({"name": "E", "trace": "", "time_ms": 1} | changes)),))}


MALFORMED = {
    "seq 0": (lambda f: {"seq": 0}, "seq 0 with base 0, expected 0 <= base < seq"),
    "base is seq": (lambda f: {"seq": 2, "base": 2}, "seq 2 with base 2"),
    "negative base": (lambda f: {"base": -1}, "seq 1 with base -1"),
    "interval 0": (lambda f: {"interval_ms": 0}, "interval_ms 0, expected 1 to 600000"),
    "interval of years": (lambda f: {"interval_ms": 10**12}, "interval_ms 1000000000000"),
    "jid in capitals": (lambda f: {"job": f.job("C" * 32)}, "jid is 'CCC"),
    "jid too short": (lambda f: {"job": f.job("c" * 31)}, "expected 32 lower-case hex digits"),
    "jid with newline": (lambda f: {"job": f.job("c" * 32 + "\n")}, "expected 32 lower-case hex digits"),
    "state": (lambda f: {"job": f.job(since_ms={"LOST": 1})}, "since_ms names 'LOST', expected one of"),
    "executors in a job": (lambda f: {"executors": (f.executor(),)}, "belong to the application"),
    "driver in a job": (lambda f: {"driver": {"x": 1}}, "belong to the application"),
    "hooks in a job": (lambda f: {"hooks": {"x": 1}}, "belong to the application"),
    "vertex id": (lambda f: _plan(f, vertex_id="V"), "vertex 'V': id is 'V'"),
    "operator id": (lambda f: _plan(f, operators=("O",)), "operator id is 'O'"),
    "vertex twice": (lambda f: {"plan": f.plan(f.vertex(), f.vertex())}, f"vertex '{'a' * 32}' is there twice"),
    "operator twice": (lambda f: _plan(f, operators=("b" * 32,) * 2), f"operator '{'b' * 32}' is there twice"),
    "edge from nowhere": (
        lambda f: _plan(f, inputs=(wire.Edge(ALIEN, "HASH", ""),)),
        f"reads vertex '{ALIEN}', which the plan does not have: send the whole plan",
    ),
    "cycle": (lambda f: _plan(f, inputs=(wire.Edge("a" * 32, "HASH", ""),)), "edges form a cycle through 'aaa"),
    "figures twice": (lambda f: {"vertices": (f.figures(), f.figures())}, f"vertex '{'a' * 32}' is there twice"),
    "id of figures": (lambda f: _vertices(f, vertex_id="V"), "id is 'V'"),
    "parallelism past size": (lambda f: _vertices(f, parallelism=3), "parallelism 3 of size 2"),
    "negative parallelism": (lambda f: _vertices(f, parallelism=-1), "parallelism -1 of size 2"),
    "column too short": (
        lambda f: _vertices(f, columns=(f.column("numRecordsIn", 1),)),
        "column 'numRecordsIn' has 8 bytes for 2 subtasks, expected 16: 8 bytes a subtask",
    ),
    "column not of 8": (
        lambda f: _vertices(f, columns=(wire.Column("numRecordsIn", "i8", b"12345"),)),
        "has 5 bytes for 2 subtasks",
    ),
    "bitmap too long": (
        lambda f: _vertices(f, columns=(wire.Column("numRecordsIn", "i8", bytes(16), bytes(2)),)),
        "has a bitmap of 2 bytes for 2 subtasks, expected 1: 1 bit a subtask",
    ),
    "metric twice": (
        lambda f: _vertices(f, columns=(f.column("numRecordsIn", 1, 2),) * 2),
        "two columns of 'numRecordsIn'",
    ),
    "operator's column too short": (
        lambda f: _vertices(f, operators=(wire.OperatorColumns("b" * 32, (f.column("numRecordsIn", 1),)),)),
        f"operator '{'b' * 32}': column 'numRecordsIn' has 8 bytes",
    ),
    "operator's columns twice": (
        lambda f: _vertices(f, operators=(wire.OperatorColumns("b" * 32, ()),) * 2),
        f"operator '{'b' * 32}' is there twice",
    ),
    "subtasks too short": (
        lambda f: _vertices(f, subtasks=f.subtasks(0)),
        "subtasks.attempt has 8 bytes for 2 subtasks, expected 16",
    ),
    "accumulator too short": (
        lambda f: _vertices(f, accumulators=(_accumulator(f, "spill size", 1),)),
        f"accumulators of operator '{'b' * 32}': column 'spill size' has 8 bytes for 2 subtasks",
    ),
    "accumulator twice": (
        lambda f: _vertices(f, accumulators=(_accumulator(f, "spill size", 1, 2),) * 2),
        f"accumulators of operator '{'b' * 32}': two columns of 'spill size'",
    ),
    "environment in a job": (lambda f: {"environment": wire.Environment("", "", (), ())}, "belong to the application"),
    "coordinator twice": (
        lambda f: _vertices(f, coordinators=(wire.Coordinator(f.OPERATOR, {}),) * 2),
        f"coordinator '{'b' * 32}' is there twice",
    ),
    "coordinator": (lambda f: _vertices(f, coordinators=(wire.Coordinator("O", {}),)), "coordinator is 'O'"),
    "micro-batch twice": (
        lambda f: {"checkpoints": wire.Checkpoints(held=(7, 7))},
        "micro-batch '7' is there twice",
    ),
    "vertex of a micro-batch": (lambda f: _batch(wire.CheckpointTasks("V", b"", b"", b"", b"")), "id is 'V'"),
    "vertex of a micro-batch twice": (
        lambda f: _batch(*[wire.CheckpointTasks(f.VERTEX, *[bytes(8)] * 4)] * 2),
        f"micro-batch 7: vertex '{'a' * 32}' is there twice",
    ),
    "tasks of a micro-batch": (
        lambda f: _batch(wire.CheckpointTasks(f.VERTEX, bytes(16), bytes(16), bytes(8), bytes(16))),
        "state_bytes has 8 bytes for 2 subtasks, expected 16",
    ),
    "failures in depth": (
        lambda f: _failure(concurrent=(wire.Failure("E", "", 1, concurrent=(wire.Failure("E", "", 1),)),)),
        "failure 0: failure 0: it stands below another one and has some below itself",
    ),
    "vertex of a failure": (lambda f: _failure(vertex="V"), "failure 0: vertex is 'V'"),
    "executor index past the end": (
        lambda f: _vertices(f, subtasks=f.subtasks(0, 1)),
        "subtasks.executor has indices from 0 to 1, expected -1 to 0",
    ),
    "executor index below -1": (
        lambda f: _vertices(f, subtasks=f.subtasks(-2, 0)),
        "indices from -2 to 0, expected -1 to 0",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_contradiction_is_malformed(collector, frames, case):
    """The message names the frame, the place, the value and what was expected."""
    changes, message = MALFORMED[case]
    with pytest.raises(MalformedFrame, match=re.escape(message)) as caught:
        collector.push(frames.frame(**changes(frames)))
    assert str(caught.value).startswith("frame 0 (job '")


@pytest.mark.parametrize("field", ["attempt", "executor", "start_ms", "end_ms"])
def test_each_subtask_array_is_as_long_as_the_vertex(collector, frames, field):
    """All four arrays of Subtasks hold one value a subtask."""
    subtasks = msgspec.structs.replace(frames.subtasks(0, 0), **{field: bytes(24)})
    with pytest.raises(MalformedFrame, match=f"subtasks.{field} has 24 bytes for 2 subtasks"):
        collector.push(frames.frame(vertices=(frames.figures(subtasks=subtasks),)))


APPLICATION = {
    "observed": (lambda f: {"observed": {"a.b": 1}}, MalformedFrame, "send them with their job"),
    "checkpoints": (lambda f: {"checkpoints": wire.Checkpoints()}, MalformedFrame, "send them with their job"),
    "failures": (lambda f: {"failures": wire.Failures()}, MalformedFrame, "send them with their job"),
    "java version": (
        lambda f: {"environment": wire.Environment(LONG, "", (), ())},
        InvalidName,
        "environment: java_version 'xxx",
    ),
    "architecture": (
        lambda f: {"environment": wire.Environment("", LONG, (), ())},
        InvalidName,
        "environment: architecture 'xxx",
    ),
    "java option": (
        lambda f: {"environment": wire.Environment("", "", (LONG * 8,), ())},
        InvalidName,
        "environment: option 'xxx",
    ),
    "class path": (
        lambda f: {"environment": wire.Environment("", "", (), (LONG * 8,))},
        InvalidName,
        "environment: option 'xxx",
    ),
    "setting": (lambda f: {"configuration": {LONG: ""}}, InvalidName, "configuration: setting 'xxx"),
    "setting's value": (lambda f: {"configuration": {"k": LONG * 8}}, InvalidName, "setting 'k' 'xxx"),
    "plan": (lambda f: {"plan": f.plan()}, MalformedFrame, "has no plan, vertices, observed metrics"),
    "vertices": (lambda f: {"vertices": (f.figures(),)}, MalformedFrame, "has no plan, vertices, observed metrics"),
    "executor twice": (
        lambda f: {"executors": (f.executor(),) * 2},
        MalformedFrame,
        "executor 'app-1-1' is there twice",
    ),
    "cores": (lambda f: {"executors": (f.executor(cores=-1),)}, MalformedFrame, "-1 cores and 4 slots"),
    "slots": (lambda f: {"executors": (f.executor(slots=-1),)}, MalformedFrame, "4 cores and -1 slots"),
    "running jid": (lambda f: {"executors": (f.executor(running={"J": 1}),)}, MalformedFrame, "running is 'J'"),
    "running tasks": (lambda f: {"executors": (f.executor(running={"": -1}),)}, MalformedFrame, "-1 running tasks"),
    "endpoint": (lambda f: {"executors": (f.executor(endpoint=LONG),)}, InvalidName, "endpoint 'xxx"),
    "executor without id": (lambda f: {"executors": (f.executor(""),)}, InvalidName, "executor '': id is empty"),
    "driver metric": (lambda f: {"driver": {"": 1}}, InvalidName, "driver: metric name '' has 0 characters"),
    "hooks metric": (lambda f: {"hooks": {"x" * 513: 1}}, InvalidName, "has 513 characters, expected 1 to 512"),
    "executor's metric": (lambda f: {"executors": (f.executor(metrics={"": 1}),)}, InvalidName, "metric name ''"),
}


@pytest.mark.parametrize("case", APPLICATION)
def test_application_frame_is_checked(collector, frames, case):
    """An application's frame has executors and scalars, and nothing of a job."""
    changes, error, message = APPLICATION[case]
    with pytest.raises(error, match=re.escape(message)) as caught:
        collector.push(frames.app_frame(**changes(frames)))
    assert str(caught.value).startswith("frame 0 (application 'app-1'): ")


NAMES = {
    "job": (lambda f: {"job": f.job(name="")}, "name is empty"),
    "long job": (lambda f: {"job": f.job(name=LONG)}, "has 9000 characters, at most 8192 are taken"),
    "trigger": (lambda f: {"job": f.job(trigger=LONG)}, "trigger 'xxx"),
    "failure": (lambda f: {"job": f.job(failure=LONG * 8)}, "failure 'xxx"),
    "checkpoint path": (lambda f: {"job": f.job(checkpoint_path=LONG)}, "checkpoint_path 'xxx"),
    "coordinator": (
        lambda f: _vertices(f, coordinators=(wire.Coordinator(f.OPERATOR, {"": 1}),)),
        f"coordinator '{'b' * 32}': metric name ''",
    ),
    "observed": (lambda f: {"observed": {"": 1}}, "observed: metric name '' has 0 characters"),
    "batch's failure": (lambda f: _batch(failure=LONG * 8), "micro-batch 7: failure 'xxx"),
    "batch's phase": (lambda f: _batch(phases={"": 1}), "micro-batch 7: phases: metric name ''"),
    "failure's name": (lambda f: _failure(name=LONG), "failure 0: name 'xxx"),
    "failure's trace": (lambda f: _failure(trace=LONG * 8), "failure 0: trace 'xxx"),
    "failure's executor": (lambda f: _failure(executor=LONG), "failure 0: executor 'xxx"),
    "failure's endpoint": (lambda f: _failure(endpoint=LONG), "failure 0: endpoint 'xxx"),
    "text metric": (lambda f: {"job": f.job(metrics={"bottleneck": LONG * 8})}, "metric 'bottleneck' 'xxx"),
    "metric": (lambda f: {"job": f.job(metrics={"": 1})}, "metric name '' has 0 characters, expected 1 to 512"),
    "long metric": (lambda f: _vertices(f, columns=(f.column("m" * 513, 1, 2),)), "has 513 characters"),
    "vertex": (lambda f: _plan(f, name=""), "name is empty"),
    "operator": (
        lambda f: {"plan": f.plan(wire.Vertex("a" * 32, "v", _operators(f, ""), ()))},
        "operator name is empty",
    ),
    "operators alike": (
        lambda f: {"plan": f.plan(wire.Vertex("a" * 32, "v", _operators(f, "Filter", "Filter"), ()))},
        "two operators are called 'Filter'",
    ),
    "node": (
        lambda f: {"plan": f.plan(wire.Vertex("a" * 32, "v", (wire.Operator("b" * 32, "o", LONG, ""),), ()))},
        "node 'xxx",
    ),
    "description": (
        lambda f: {"plan": f.plan(wire.Vertex("a" * 32, "v", (wire.Operator("b" * 32, "o", "", LONG * 8),), ()))},
        "description 'xxx",
    ),
    "ship strategy": (
        lambda f: {"plan": f.plan(f.vertex(), f.vertex(ALIEN, inputs=(wire.Edge("a" * 32, LONG, ""),)))},
        "ship_strategy 'xxx",
    ),
    "edge": (
        lambda f: {"plan": f.plan(f.vertex(), f.vertex(ALIEN, inputs=(wire.Edge("a" * 32, "HASH", LONG * 8),)))},
        "edge description 'xxx",
    ),
    "run id": (lambda f: {"attempt": wire.Attempt(1, "")}, "attempt.run_id is empty"),
    "application": (lambda f: {"app": msgspec.structs.replace(f.APP, id="")}, "app.id is empty"),
    "host": (lambda f: {"app": msgspec.structs.replace(f.APP, host=LONG)}, "app.host 'xxx"),
    "executor": (lambda f: _vertices(f, subtasks=f.subtasks(0, 0, executors=("",))), "executor id is empty"),
}


@pytest.mark.parametrize("case", NAMES)
def test_name_is_neither_empty_nor_too_long(collector, frames, case):
    """Names and texts are bounded; the message shows at most 80 characters of them."""
    changes, message = NAMES[case]
    with pytest.raises(InvalidName, match=re.escape(message)) as caught:
        collector.push(frames.frame(**changes(frames)))
    assert len(str(caught.value)) < 500


BOUNDS = {
    "frames": (lambda f: [f.frame(), f.app_frame()], "the body: 2 frames, at most 1"),
    "vertices": (lambda f: [f.frame(plan=f.plan(f.vertex(), f.vertex(ALIEN)))], "2 vertices, at most 1"),
    "operators": (lambda f: [f.frame(**_plan(f, operators=("b" * 32, ALIEN)))], "2 operators, at most 1"),
    "inputs": (
        lambda f: [f.frame(plan=f.plan(f.vertex(), f.vertex(ALIEN, inputs=(wire.Edge("a" * 32, "HASH", ""),) * 2)))],
        "2 inputs, at most 1",
    ),
    "subtasks": (lambda f: [f.frame(**_vertices(f))], "2 subtasks, at most 1"),
    "columns": (
        lambda f: [f.frame(**_vertices(f, columns=(f.column("numRecordsIn", 1, 2), f.column("numRecordsOut", 1, 2))))],
        "2 columns, at most 1",
    ),
    "accumulators": (
        lambda f: [f.frame(**_vertices(f, accumulators=(_accumulator(f, "a", 1, 2), _accumulator(f, "b", 1, 2))))],
        "2 accumulators, at most 1",
    ),
    "checkpoints": (
        lambda f: [
            f.frame(
                checkpoints=wire.Checkpoints(
                    held=(8, 7), changed=tuple(wire.Checkpoint(i, "FAILED", 5) for i in (8, 7))
                )
            )
        ],
        "2 checkpoints, at most 1",
    ),
    "failures": (lambda f: [f.frame(**_failure(concurrent=(wire.Failure("E", "", 1),) * 2))], "2 failures, at most 1"),
    "settings": (lambda f: [f.frame(configuration={"a": "1", "b": "2"})], "2 settings, at most 1"),
    "executors": (lambda f: [f.app_frame(executors=(f.executor("1"), f.executor("2")))], "2 executors, at most 1"),
    "scalars": (lambda f: [f.frame(job=f.job(metrics={"uptime": 1, "downtime": 2}))], "2 scalars, at most 1"),
    "jobs": (
        lambda f: [f.app_frame(executors=(f.executor(running={"": 1, ALIEN: 1}),))],
        "tasks of 2 jobs, at most 1 are held",
    ),
}


FIGURES = {
    "checkpoints": lambda f: {"checkpoints": wire.Checkpoints(held=(8, 7))},
    "vertices": lambda f: {"plan": None, "vertices": (f.figures(), f.figures(ALIEN))},
    "operators": lambda f: _vertices(
        f, operators=(wire.OperatorColumns("b" * 32, ()), wire.OperatorColumns(ALIEN, ()))
    ),
    "executors": lambda f: _vertices(f, subtasks=f.subtasks(0, 1, executors=("app-1-1", "app-1-2"))),
}


@pytest.mark.parametrize("limit", FIGURES)
def test_more_figures_than_a_limit_are_too_large(new_collector, frames, limit):
    """Figures are bounded before they are compared with the plan."""
    with pytest.raises(FrameTooLarge, match=f"2 {limit}, at most 1 are taken"):
        new_collector(**{limit: 1}).push(frames.frame(**FIGURES[limit](frames)))


@pytest.mark.parametrize("limit", BOUNDS)
def test_more_than_a_limit_is_too_large(new_collector, frames, limit):
    """Each bound of a push is inclusive, and its message names the limit's setting or subject."""
    build, message = BOUNDS[limit]
    pushed = build(frames)
    with pytest.raises(FrameTooLarge, match=re.escape(message)):
        new_collector(**{limit: 1}).push(*pushed)
    assert new_collector(**{limit: 2}).push(*pushed)[0] == len(pushed)


def test_limits_are_inclusive_for_every_name(new_collector, frames):
    """A name of exactly the limit's length is taken."""
    job = frames.job(name="n" * 20, metrics={"m" * 20: "t" * 20}, failure="f" * 20)
    vertex = wire.Vertex("a" * 32, "v", (wire.Operator("b" * 32, "o", "", "d" * 20),), ())
    collector = new_collector(name_chars=20, metric_chars=20, text_chars=20)
    assert collector.push(frames.frame(job=job, plan=frames.plan(vertex))) == (1, 0, 0)


@pytest.mark.parametrize("limit", [field.name for field in fields(Limits)])
def test_limit_below_one_is_refused(limit):
    """A limit of 0 would refuse everything; the message names it."""
    with pytest.raises(ValueError, match=f"limit {limit} is 0, but must be at least 1"):
        Limits(**{limit: 0})
