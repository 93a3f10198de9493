"""Sweeps run on, and their end is noticed."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from collector.store import MetricStore
from service import app as app_module
from service.app import create_app
from service.config import Config
from service.sweeps import run_sweeps
from streamgauge.clock import ManualClock


def test_sweeps_run_in_order_again_and_again_until_stopped() -> None:
    """The round under way is ended."""
    seen: list[str] = []
    stopped = asyncio.Event()

    def second() -> None:
        seen.append("second")
        if len(seen) == 6:
            stopped.set()

    asyncio.run(run_sweeps([lambda: seen.append("first"), second], 0, stopped))
    assert seen == ["first", "second"] * 3


def test_stopped_sweeps_do_not_run() -> None:
    """Not even once."""
    stopped = asyncio.Event()
    stopped.set()
    seen: list[int] = []
    asyncio.run(run_sweeps([lambda: seen.append(1)], 0, stopped))
    assert seen == []


async def probes(app: Any, until: str = "") -> dict[str, int]:
    """Status of both probes while the application runs, once /-/healthy says `until`."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        before = (await client.get("/-/ready")).status_code
        async with app.router.lifespan_context(app):
            while until not in (healthy := await client.get("/-/healthy")).text:
                await asyncio.sleep(0)
            ready = await client.get("/-/ready")
        after = (await client.get("/-/ready")).status_code
    return {"before": before, "healthy": healthy.status_code, "ready": ready.status_code, "after": after}


def test_ready_from_startup_to_shutdown(store: MetricStore, clock: ManualClock) -> None:
    """Healthy all the while."""
    told = asyncio.run(probes(create_app(Config(), store, clock)))
    assert told == {"before": 503, "healthy": 200, "ready": 200, "after": 503}


def test_service_whose_sweeps_have_stopped_is_not_healthy(
    store: MetricStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a restart helps, and the probe says why."""

    class Broken:
        def __init__(self, *_: object) -> None:
            pass

        def sweep(self) -> None:
            raise ZeroDivisionError("broken")

    monkeypatch.setattr(app_module, "Liveness", Broken)
    told = asyncio.run(probes(create_app(Config(), store, clock), until="ZeroDivisionError"))
    assert (told["healthy"], told["ready"]) == (503, 503)


def test_silent_driver_is_suspended_by_the_running_service(store: MetricStore, clock: ManualClock) -> None:
    """Liveness is among the sweeps."""

    async def run() -> set[str]:
        app = create_app(Config(), store, clock)
        clock.advance(60_000)
        async with app.router.lifespan_context(app):
            while not any(job.state == "SUSPENDED" for job in store.snapshot().jobs.values()):
                await asyncio.sleep(0)
        return {job.state for job in store.snapshot().jobs.values()}

    assert asyncio.run(run()) == {"SUSPENDED", "FAILED", "FINISHED", "CANCELED"}
