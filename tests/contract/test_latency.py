"""Latencies against what a real Flink lists of its own, and over the life of a collector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from streamgauge import codec, names, wire
from streamgauge.clock import ManualClock
from tests.conftest import LATENCIES_MS, Client, job_frame, recorded_frames, recording

JOB = recording("main__job.json")
PATH = f"/jobs/{JOB['jid']}"
SOURCE, VERTEX, WINDOW = (vertex["id"] for vertex in JOB["vertices"][:3])
RECORDED = {VERTEX: "v1", WINDOW: "v2"}


def latencies(ids: list[Mapping[str, str]]) -> set[str]:
    return {each["id"] for each in ids if f".{names.LATENCY}_" in f".{each['id']}" and "operator_id" in each["id"]}


@pytest.mark.parametrize("vertex", RECORDED, ids=RECORDED.values())
@pytest.mark.parametrize("where", ["metrics", "subtasks/metrics", "subtasks/0/metrics"])
def test_ids_are_the_recorded_ones(client: Client, vertex: str, where: str) -> None:
    """Flink 2.3's, to the letter: of the vertex with the subtask in front, elsewhere without."""
    file = f"main__{RECORDED[vertex]}__{where.replace('/', '_')}.json"
    recorded = latencies(recording(file))
    assert len(recorded) == 11 * (1 if where == "subtasks/0/metrics" else 2)
    assert latencies(client.get(f"{PATH}/vertices/{vertex}/{where}").json()) == recorded


def test_a_source_has_no_latency(client: Client) -> None:
    """As in Flink: it emits markers, and observes none."""
    assert not latencies(client.get(f"{PATH}/vertices/{SOURCE}/metrics").json())
    told = client.get(f"{PATH}/vertices/{SOURCE}/latency").json()
    assert (told["granularity"], told["paths"], told["windows"]) == ("operator", [], [])


def test_refusals_have_the_one_shape(client: Client) -> None:
    """An unknown form is 400, one that is not recorded 404, as are an unknown job and vertex."""
    vertex = f"{PATH}/vertices/{VERTEX}/latency"
    statuses = {
        f"{vertex}?granularity=nope": 400,
        f"{vertex}?granularity=single": 404,
        f"/jobs/{'0' * 32}/latency": 404,
        f"/jobs/{'0' * 32}/vertices/{VERTEX}/latency": 404,
        f"{PATH}/vertices/{'0' * 32}/latency": 404,
        "/jobs/nope/latency": 400,
    }
    for path, status in statuses.items():
        answer = client.get(path)
        assert (answer.status_code, list(answer.json())) == (status, ["errors"]), path


ASKED = (
    "/latency",
    *(f"/vertices/{vertex}/latency?granularity={form}" for vertex in RECORDED for form in ("operator", "legacy")),
    *(f"/vertices/{vertex}/{where}" for vertex in RECORDED for where in ("metrics", "subtasks/metrics")),
)


def answers(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for asked in ASKED:
        got = client.get(PATH + asked)
        assert got.status_code == 200
        found[asked] = got.json()
        if asked.endswith("metrics"):
            ids = sorted(latencies(found[asked]))
            found[asked] = client.get(f"{PATH}{asked}?get={','.join(ids)}").json()
            assert {each["id"] for each in found[asked]} == set(ids)
    return found


def test_what_was_recorded_survives_a_collector(store: MetricStore, clock: ManualClock) -> None:
    """A collector that has lost everything asks for a full frame; ids, counts and percentiles are then as they were."""
    before = answers(Client(create_app(Config(), store, clock)))
    anew = Client(create_app(Config(), MetricStore(), clock))
    delta = msgspec.structs.replace(job_frame(JOB, seq=2), base=1, plan=None, vertices=(), checkpoints=None)
    assert anew.push(codec.encode([delta])).status_code == 409
    full = [msgspec.structs.replace(frame, seq=3) for frame in recorded_frames()]
    assert anew.push(codec.encode(full)).status_code == 202
    assert answers(anew) == before
    [path] = before[f"/vertices/{VERTEX}/latency?granularity=operator"]["paths"]
    assert path["markers"] == 2 * len(LATENCIES_MS)
    assert path["latency"]["p50-ms"] == 20_095


def test_a_delta_goes_on_from_there(store: MetricStore, clock: ManualClock) -> None:
    """What it does not tell anew stays, what it tells is replaced."""
    client = Client(create_app(Config(), store, clock))
    before = answers(client)
    one = job_frame(JOB).vertices[1]
    more = msgspec.structs.replace(
        wire.VertexColumns(VERTEX, one.parallelism, one.size, one.start_ms),
        latencies=tuple(msgspec.structs.replace(each, counts=bytes(8 * one.size)) for each in one.latencies),
    )
    delta = msgspec.structs.replace(job_frame(JOB, seq=2), base=1, plan=None, vertices=(more,), checkpoints=None)
    assert client.push(codec.encode([delta])).status_code == 202
    assert not latencies(client.get(f"{PATH}/vertices/{VERTEX}/metrics").json())
    told = client.get(f"{PATH}/vertices/{VERTEX}/latency").json()
    assert told["paths"] == before[f"/vertices/{VERTEX}/latency?granularity=operator"]["paths"]
    kept = f"/vertices/{WINDOW}/latency?granularity=operator"
    assert client.get(PATH + kept).json() == before[kept]
