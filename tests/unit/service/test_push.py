"""Pushes: what is taken, what is refused, and what it leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from collector.store import MetricStore
from service import push as push_module
from service.app import create_app
from service.config import PUSHES_AT_ONCE, THREAD_FROM_BYTES, Config
from streamgauge import codec, wire
from streamgauge.clock import ManualClock
from streamgauge.errors import Overloaded

FRAMES = codec.encode(
    [wire.Frame(wire.WIRE_VERSION, wire.App("a", "a", 1, "h", "4", "0"), wire.Attempt(1, "a"), 1, 0, 1, 1000)]
)


@pytest.fixture
def empty() -> MetricStore:
    return MetricStore()


def service(store: MetricStore, clock: ManualClock, client: Any, **settings: Any) -> Any:
    return type(client)(create_app(Config(**settings), store, clock))


def figures(client: Any, name: str) -> list[str]:
    return [line for line in client.get("/metrics").text.splitlines() if line.startswith(f"streamgauge_service_{name}")]


def test_push_is_taken_in_and_counted(empty: MetricStore, clock: ManualClock, client: Any) -> None:
    """202 with the outcomes; the same again is repeated, and both are counted."""
    client = service(empty, clock, client)
    assert client.push(FRAMES).json() == {"accepted": 1, "repeated": 0, "late": 0}
    again = client.push(FRAMES)
    assert (again.status_code, again.json()) == (202, {"accepted": 0, "repeated": 1, "late": 0})
    assert "a" in empty.snapshot().apps
    assert figures(client, "frames_total") == [
        'streamgauge_service_frames_total{outcome="accepted"} 1.0',
        'streamgauge_service_frames_total{outcome="repeated"} 1.0',
        'streamgauge_service_frames_total{outcome="late"} 0.0',
    ]


def test_long_push_is_taken_in_by_a_thread(empty: MetricStore, clock: ManualClock, client: Any) -> None:
    """With the same outcome."""
    apps = [wire.App(f"app-{number}", "x" * 8_000, 1, "h", "4", "0") for number in range(40)]
    body = codec.encode([wire.Frame(wire.WIRE_VERSION, app, wire.Attempt(1, "a"), 1, 0, 1, 1000) for app in apps])
    assert len(body) > THREAD_FROM_BYTES
    assert service(empty, clock, client).push(body).json()["accepted"] == 40


@pytest.mark.parametrize("content_type", ["application/msgpack", "Application/MsgPack; charset=binary"])
def test_content_type_is_msgpack(client: Any, content_type: str) -> None:
    """In any case, with parameters."""
    assert client.push(FRAMES, Content_Type=content_type).status_code == 202


def test_body_of_the_greatest_length_is_taken_and_one_byte_more_is_not(
    empty: MetricStore, clock: ManualClock, client: Any
) -> None:
    """Whether its length is announced or found out while it arrives."""
    assert service(empty, clock, client, max_push_bytes=len(FRAMES)).push(FRAMES).status_code == 202
    client = service(empty, clock, client, max_push_bytes=len(FRAMES) - 1)
    assert client.push(FRAMES).status_code == 413

    async def chunks() -> AsyncIterator[bytes]:
        yield FRAMES[:5]
        yield FRAMES[5:]

    assert client.push(chunks()).status_code == 413


def test_refusal_leaves_a_timestamp_and_a_reason(empty: MetricStore, clock: ManualClock, client: Any) -> None:
    """As Pushgateway's: a failed push is seen in the next scrape."""
    client = service(empty, clock, client)
    assert figures(client, "last_push_failure_timestamp_seconds")[0].endswith(" 0.0")
    clock.advance(1_000)
    client.push(b"nonsense")
    assert figures(client, "pushes_refused_total") == [
        'streamgauge_service_pushes_refused_total{reason="MalformedFrame"} 1.0'
    ]
    assert float(figures(client, "last_push_failure_timestamp_seconds")[0].split()[1]) == clock.now_ms() / 1000
    assert figures(client, "last_push_timestamp_seconds")[0].endswith(" 0.0")


def test_slow_body_times_out(
    empty: MetricStore, clock: ManualClock, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender that never ends does not hold its place for ever."""
    monkeypatch.setattr(push_module, "BODY_TIMEOUT_S", 0)

    async def never() -> AsyncIterator[bytes]:
        yield FRAMES[:5]
        await asyncio.Event().wait()

    answer = service(empty, clock, client).push(never())
    assert (answer.status_code, answer.json()) == (408, {"errors": ["the body did not arrive within 0 s"]})


async def beside(app: Any, waiting: int) -> tuple[httpx.Response, set[int], int]:
    """A push while `waiting` others have sent but 5 bytes; then those, and one more when they are through."""
    more = asyncio.Event()
    arrived: list[int] = []

    async def slow() -> AsyncIterator[bytes]:
        yield FRAMES[:5]
        arrived.append(1)
        await more.wait()
        yield FRAMES[5:]

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:

        def post(body: Any) -> Any:
            return client.post(wire.PUSH_PATH, content=body, headers={"Content-Type": wire.CONTENT_TYPE})

        others = [asyncio.create_task(post(slow())) for _ in range(waiting)]
        while len(arrived) < waiting:
            await asyncio.sleep(0)
        answer = await post(FRAMES)
        more.set()
        return answer, {(await each).status_code for each in others}, (await post(FRAMES)).status_code


def test_pushes_past_those_under_way_may_try_again(empty: MetricStore, clock: ManualClock) -> None:
    """429 with Retry-After; when one has ended there is room again."""
    app = create_app(Config(), empty, clock)
    refused, others, after = asyncio.run(beside(app, PUSHES_AT_ONCE))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert (others, after) == ({202}, 202)
    assert asyncio.run(beside(app, PUSHES_AT_ONCE - 1))[0].status_code == 202


def test_bytes_of_all_bodies_are_bounded(
    empty: MetricStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The push that goes past the bound may try again; alone it is taken, for else it never would be."""
    app = create_app(Config(), empty, clock)
    monkeypatch.setattr(push_module, "PUSH_BYTES_AT_ONCE", len(FRAMES) + 9)
    assert asyncio.run(beside(app, 2))[0].status_code == 429
    assert asyncio.run(beside(app, 1))[0].status_code == 202
    monkeypatch.setattr(push_module, "PUSH_BYTES_AT_ONCE", 1)
    answer, others, after = asyncio.run(beside(app, 1))
    assert (answer.status_code, others, after) == (429, {202}, 202)


def test_full_collector_is_503_with_its_own_delay(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long to wait is the collector's to say."""

    def refuse(_self: object, _body: bytes) -> None:
        raise Overloaded("too many jobs", 10)

    monkeypatch.setattr("collector.ingest.Ingest.push", refuse)
    answer = client.push(FRAMES)
    assert (answer.status_code, answer.headers["retry-after"], answer.json()) == (
        503,
        "10",
        {"errors": ["too many jobs"]},
    )


def test_token_is_asked_for_before_the_body_is_read(empty: MetricStore, clock: ManualClock, client: Any) -> None:
    """With the right one the push is taken."""
    client = service(empty, clock, client, push_token="secret")
    refused = client.push(b"nonsense")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert client.push(FRAMES, Authorization="Bearer secret").status_code == 202
