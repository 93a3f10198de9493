"""Random lives of jobs, and all that the service's REST tells of a job: for what has to come back from the archive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from random import Random
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
from fastapi import FastAPI
from hypothesis import strategies as st

from collector.archive import Archive
from collector.archiving import Archiving
from collector.history import History
from collector.ingest import Ingest
from collector.limits import Limits
from collector.liveness import Liveness
from collector.retention import Keep
from collector.store import JobState, MetricStore
from service.flink.rest import RESOURCES
from streamgauge import codec, names, wire
from streamgauge.clock import ManualClock
from tests.contract.crowd import HOSTILE
from tests.unit.collector.conftest import Frames
from tests.unit.collector.test_ingest_model import Network, Sender

STEPS = (
    "plan",
    "measure",
    "measure",
    "measure",
    "read_rows",
    "tell",
    "tell",
    "batch",
    "batch",
    "restart",
    "send",
    "pass_",
)
OVER_JOBS = ("/jobs", "/jobs/overview", "/overview")
_OF_RUN = ("/jobs/:jobid/runs",)
steps = st.lists(
    st.tuples(st.sampled_from(STEPS), st.integers(0, 1), st.integers(0, 2**32).map(Random)), min_size=5, max_size=50
)
texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40))


class Collector:
    """A collector with its history and, where one is given, its archive; swept by hand."""

    def __init__(self, clock: ManualClock, archive: Archive | None = None) -> None:
        self.clock = clock
        self.store = MetricStore()
        self.history = History(self.store, clock)
        self.ingest = Ingest(self.store, clock, Limits())
        self.archive = archive
        self.archiving = None if archive is None else Archiving(archive, self.store, self.history, clock, Keep())

    def push(self, *frames: wire.Frame) -> tuple[int, int, int]:
        outcomes = self.ingest.push(codec.encode(list(frames)))
        return outcomes.accepted, outcomes.repeated, outcomes.late

    def sweep(self) -> None:
        Liveness(self.store, self.clock).sweep()
        self.history.sweep()
        if self.archiving is not None:
            self.archiving.sweep()


class Unusual(Sender):
    """A query whose name and failure are anyone's words; its figures are of both kinds, and not all are known."""

    def __init__(self, jid: str, name: str, trouble: str) -> None:
        self.name = name
        self.trouble = trouble
        super().__init__(jid)

    def frame(self, frames: Frames) -> wire.Frame:
        found = super().frame(frames)
        assert found.job is not None
        job = msgspec.structs.replace(
            found.job,
            name=self.name,
            metrics={**found.job.metrics, self.name[:100]: self.trouble, "rate": self.rows / 3, "odd": float("nan")},
            since_ms={"RUNNING": 3, self.state: 4_000},
            end_ms=5_000 + self.rows if self.state in wire.ENDED_STATES else -1,
            failure=self.trouble if self.state == "FAILED" else "",
            latency="operator",
        )
        return msgspec.structs.replace(found, job=job)


class Life:
    """Two queries that live on a collector, after `Network`; what each of `STEPS` does is said there."""

    def __init__(self, collector: Collector, name: str, trouble: str) -> None:
        self.network = Network(Frames(), collector)
        self.network.senders = [Unusual(f"{number:032x}", name, trouble) for number in (1, 2)]
        self.collector = collector

    def live(self, taken: Iterable[tuple[str, int, Random]]) -> None:
        frames = self.network.frames
        self.collector.push(
            frames.app_frame(
                executors=(frames.executor(),),
                driver={names.HEAP_USED: 7},
                configuration={"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"},
                environment=wire.Environment("17", "amd64", ("-Xmx1g",), ("/a.jar",)),
            )
        )
        for name, number, random in taken:
            one = self.network.senders[number]
            if name == "pass_":
                self.collector.clock.advance(random.choice((300, 1_000, 5_000)))
                self.collector.sweep()
            else:
                getattr(self.network, name)(random, one)
            self.network.converse(random, one)

    def end(self, random: Random) -> None:
        """Each query ends somehow, or its driver falls silent."""
        for one in self.network.senders:
            state = random.choice(("FINISHED", "FAILED", "CANCELED", ""))
            if state:
                one.state = state
                self.network.converse(random, one)
        self.collector.clock.advance(60_000)
        self.collector.sweep()


def targets(state: JobState) -> list[str]:
    """Return everything that can be asked of a job, and of what it has not."""
    vertices = [*state.vertices, "f" * 32]
    found = []
    for resource in RESOURCES:
        if not resource.startswith("/jobs/:jobid") or resource in _OF_RUN or "/compare" in resource:
            continue
        path = resource.replace(":jobid", state.job.jid).replace(":taskmanagerid", "app-1-1")
        for name in (":triggerid", ":rescaleuuid"):
            path = path.replace(name, "e" * 32)
        several = [path]
        for name, values in (
            (":vertexid", vertices),
            (":subtaskindex", ("0", "3")),
            (":attempt", ("0", "1")),
            (":checkpointid", [*map(str, state.checkpoints.held), "999"]),
        ):
            several = [each.replace(name, value) for each in several for value in values] if name in path else several
        found += several
    return found


def ask(app: FastAPI, paths: Iterable[str]) -> dict[str, Any]:
    """Return what a service answers to each path; of a list of metrics the values, too."""

    async def answers() -> dict[str, Any]:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        found: dict[str, Any] = {}
        async with httpx.AsyncClient(transport=transport) as client:
            for path in paths:
                answer = await client.get(f"http://127.0.0.1:8081{path}")
                found[path] = (answer.status_code, comparable(answer.json()))
                if path.endswith("/metrics") and answer.json():
                    ids = [quote(each["id"], safe="") for each in answer.json() if "," not in each["id"]]
                    for start in range(0, len(ids), 20):
                        values = await client.get(
                            f"http://127.0.0.1:8081{path}?get={','.join(ids[start : start + 20])}"
                        )
                        found[f"{path}?get {start}"] = (values.status_code, values.json())
        return found

    return asyncio.run(answers())


def comparable(body: Any) -> Any:
    """Return an answer without the one thing in which the archive may differ: that it is the archive."""
    text = json.dumps(body).replace('"archived": true', '"archived": false')
    found = json.loads(text)
    if isinstance(found, dict) and set(found) == {"jobs"} and isinstance(found["jobs"], list):
        # Who is silent stands among the live ones, and behind them once archived.
        found["jobs"].sort(key=lambda job: str(job.get("jid", job.get("id"))))
    return found
