"""…/history: what was sampled, as REST tells it."""

from __future__ import annotations

from typing import Any

import pytest

from collector.histogram import BOUNDS_MS
from collector.history import SAMPLE_INTERVAL_MS, History
from collector.latencies import Latencies
from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from streamgauge import names, wire
from streamgauge.clock import ManualClock
from tests.conftest import Client

JID, VERTEX = "d" * 32, "c" * 32
NOW_MS = 1_000_000
IN = names.NUM_RECORDS_IN + names.PER_SECOND
TIMES = [NOW_MS, NOW_MS + SAMPLE_INTERVAL_MS, NOW_MS + 2 * SAMPLE_INTERVAL_MS]
ASKED = f"/jobs/{JID}/vertices/{VERTEX}/history"


@pytest.fixture
def client(states: Any) -> Client:
    """Three samples of a job; 0.1 has no digits of its own in binary."""
    store, clock = MetricStore(), ManualClock(NOW_MS)
    history = History(store, clock)
    for rate, values in ((0.1, (3,)), (None, (3, 40)), (2.0, (3, 40, 40))):
        told = wire.LatencyHistogram("f" * 32, (f"{0:032x}",), *(states.buckets(*values) for _ in range(3)))
        held = Latencies(histograms={(f"{0:032x}", "f" * 32): told})
        columns = {IN: states.column(rate), names.BUSY_TIME: states.column(5)}
        vertex = states.vertex(1, columns=columns, operators={"Sink": {}}, latencies=held, feeds=False)
        other = states.job(jid="e" * 32, state="CANCELED", since_ms={"CANCELED": 1})
        store.swap(states.snapshot(states.job(vertex, metrics={names.BACKLOGGED: False}), other))
        history.sample()
        clock.advance(SAMPLE_INTERVAL_MS)
    return Client(create_app(Config(), store, clock, history))


def series(body: dict[str, Any]) -> dict[str, list[float | None]]:
    return {each["id"]: each["values"] for each in body["series"]}


def test_a_vertex_tells_its_figures_at_each_moment(client: Client) -> None:
    """Null where a figure was not known; one that never was is left out."""
    body = client.get(ASKED).json()
    assert (body["now"], body["interval-ms"], body["timestamps"]) == (NOW_MS + 15_000, SAMPLE_INTERVAL_MS, TIMES)
    told = series(body)
    assert (told[IN], told[f"{names.BUSY_TIME}.max"]) == ([0.1, None, 2.0], [5.0] * 3)
    assert told["latency.p50"] == [None, 40.0, 40.0]
    assert names.WATERMARK_LAG not in told


def test_heat_is_told_with_its_own_moments(client: Client) -> None:
    """From the second look on, one count more than there are bounds."""
    heat = client.get(ASKED).json()["latency-heat"]
    assert (heat["timestamps"], heat["bounds-ms"]) == (TIMES[1:], list(BOUNDS_MS))
    expected = [0] * (len(BOUNDS_MS) + 1)
    expected[BOUNDS_MS.index(50)] = 1
    assert heat["counts"] == [expected, expected]


def test_figures_are_chosen_by_get(client: Client) -> None:
    """In the order asked for, each once, unknown ones left out; the heat only where it is named."""
    body = client.get(f"{ASKED}?get=latency.p50,x,{IN},latency.p50").json()
    assert list(series(body)) == ["latency.p50", IN]
    assert body["latency-heat"] is None
    body = client.get(f"{ASKED}?get=latency-heat").json()
    assert body["series"] == []
    assert body["timestamps"] == TIMES
    assert len(body["latency-heat"]["counts"]) == 2


def test_since_leaves_out_what_the_asker_has(client: Client) -> None:
    """Moments after it alone, of figures and heat."""
    body = client.get(f"{ASKED}?since={TIMES[1]}").json()
    assert body["timestamps"] == body["latency-heat"]["timestamps"] == TIMES[2:]
    assert series(body)[IN] == [2.0]
    assert client.get(f"{ASKED}?since={TIMES[2]}").json()["series"] == []
    assert client.get(f"/jobs/{JID}/history?since={TIMES[1]}").json()["timestamps"] == TIMES[2:]


@pytest.mark.parametrize("since", ["", "soon", "1.5", "1,2", str(2**63)])
def test_a_moment_that_is_none_is_refused(client: Client, since: str) -> None:
    """In Flink's words for a query parameter."""
    for path in (ASKED, f"/jobs/{JID}/history", "/jobs/history"):
        answer = client.get(f"{path}?since={since}")
        assert answer.status_code == 400
        assert answer.json()["errors"][0].endswith(f'Cannot resolve query parameter (since) from value "{since}".')


def test_a_job_tells_its_own(client: Client) -> None:
    """A flag is 0 or 1."""
    told = series(client.get(f"/jobs/{JID}/history").json())
    assert told[names.BACKLOGGED] == [0.0] * 3
    assert told["latency.p99"] == [None, 40.0, 40.0]


def test_all_jobs_are_told_together(client: Client) -> None:
    """Those that have a history: one that had ended when it was first seen has none."""
    body = client.get(f"/jobs/history?get={IN}&since={TIMES[0]}").json()
    assert body["jobs"] == [{"id": JID, "timestamps": TIMES[1:], "series": [{"id": IN, "values": [None, 2.0]}]}]
    alone = client.get(f"/jobs/{'e' * 32}/history").json()
    assert (alone["timestamps"], alone["series"]) == ([], [])


def test_what_is_unknown_is_refused(client: Client) -> None:
    """As everywhere."""
    assert client.get(f"/jobs/{'0' * 32}/history").status_code == 404
    assert client.get(f"/jobs/{JID}/vertices/{'0' * 32}/history").status_code == 404


def test_size_is_told(client: Client) -> None:
    """On the service's own page."""
    page = client.get("/metrics").text
    assert "streamgauge_service_history_left_out 0.0" in page
    size = next(line for line in page.splitlines() if line.startswith("streamgauge_service_history_bytes "))
    assert float(size.split()[1]) > 10_000
