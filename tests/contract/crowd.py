"""A store with a job in every state, a batch, a vertex of many subtasks, and names that try to break an answer."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import numpy as np

from collector.ingest import Ingest
from collector.limits import Limits
from collector.liveness import Liveness
from collector.store import MetricStore
from streamgauge import codec, names, wire
from streamgauge.clock import ManualClock
from tests.conftest import APP, EXECUTORS, job_frame, longs, recorded_frames, recording

SILENCE_MS = 60_000
SUBTASKS = 200
HOSTILE = (
    '"\\\n\t\x00',
    "</script><img src=x onerror=alert(1)>",
    "%2F..%2f/../;?#&=+,",
    "\u202egnol yrev\U0001f4a5\ud7ff",
    "{jobid}",
    "x" * 2_000,
)


def crowd(clock: ManualClock) -> MetricStore:
    """Take the crowd in; the clock goes on by SILENCE_MS, so that one driver is silent at the end."""
    store = MetricStore()
    ingest = Ingest(store, clock, Limits())
    silent = msgspec.structs.replace(APP, id="silent", name=HOSTILE[1])
    main = recording("main__job.json")
    ingest.push(codec.encode([_renamed(job_frame(main, app=silent), "a" * 32, "RUNNING", 0)]))
    clock.advance(SILENCE_MS)
    states = [state for state in get_args(wire.JobState) if state != "SUSPENDED"]
    others = [
        _renamed(job_frame(main), f"{number:032x}", state, number, type="BATCH" if number % 2 else "STREAMING")
        for number, state in enumerate(states, start=1)
    ]
    ingest.push(codec.encode([*recorded_frames(), *others, _wide(job_frame(main), "e" * 32)]))
    Liveness(store, clock).sweep()
    return store


def _renamed(frame: wire.Frame, jid: str, state: str, number: int, **changes: Any) -> wire.Frame:
    """The same job under another id, in `state`, with one of HOSTILE wherever a name or a text is told."""
    text = HOSTILE[number % len(HOSTILE)]
    replace = msgspec.structs.replace
    assert frame.job is not None
    assert frame.plan is not None
    job = replace(
        frame.job,
        jid=jid,
        name=text,
        state=state,
        since_ms={state: frame.sent_at_ms},
        end_ms=frame.sent_at_ms if state in wire.ENDED_STATES else -1,
        trigger=text,
        failure=text if state == "FAILED" else "",
        metrics={**frame.job.metrics, "text": text, "nan": float("nan"), "whole": 2**63, text[:500]: True},
        latency=(None, *get_args(wire.LatencyGranularity))[number % 4],
        **changes,
    )
    plan = wire.Plan(
        tuple(
            replace(
                vertex,
                name=text,
                operators=tuple(
                    replace(each, name=f"{'Sink: ' * (not number % 3)}{text}", description=text)
                    for each in vertex.operators
                ),
                inputs=tuple(replace(edge, description=text) for edge in vertex.inputs),
            )
            for vertex in frame.plan.vertices
        )
    )
    vertices = tuple(
        replace(
            vertex,
            columns=(*vertex.columns, wire.column(text[:500], np.arange(vertex.size) * 1e300)),
            taps=tuple(
                replace(tap, name=text, by_subtask=bool(number % 2), splits=(text[:500],) * len(tap.splits))
                for tap in vertex.taps or ()
            ),
            latencies=tuple(
                replace(each, source=source, source_subtask=subtask)
                for each in vertex.latencies
                for source, subtask in ((each.source, -1), (each.source, 1), ("", -1))
            ),
        )
        for vertex in frame.vertices
    )
    return replace(frame, job=job, plan=plan, vertices=vertices)


def _wide(frame: wire.Frame, jid: str) -> wire.Frame:
    """The same job with SUBTASKS subtasks in its first vertex, some of which have not run."""
    replace = msgspec.structs.replace
    assert frame.job is not None
    first, *rest = frame.vertices
    seats = [number % 3 - 1 for number in range(SUBTASKS)]
    times = [frame.sent_at_ms if seat >= 0 else -1 for seat in seats]
    subtasks = wire.Subtasks(longs(*[0] * SUBTASKS), longs(*seats), longs(*times), longs(*[-1] * SUBTASKS), EXECUTORS)
    rows = wire.column(names.NUM_RECORDS_IN, np.arange(SUBTASKS), np.arange(SUBTASKS) % 2 == 0)
    wide = wire.VertexColumns(first.id, SUBTASKS // 2, SUBTASKS, first.start_ms, (rows,), (), subtasks)
    return replace(frame, job=replace(frame.job, jid=jid), vertices=(wide, *rest))
