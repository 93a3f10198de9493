"""What the service does every second without being asked: judge who is silent, drop what is past its time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from starlette.concurrency import run_in_threadpool

Sweep = Callable[[], object]


async def run_sweeps(sweeps: Sequence[Sweep], interval_s: float, stopped: asyncio.Event) -> None:
    """
    Run `sweeps` one after the other, first at once, then with a fixed delay, until `stopped` is set.

    Args:
        sweeps: Run by a worker thread, for they wait for the store's lock.
        interval_s: Delay between two rounds, seconds.
        stopped: Ends it, within the round under way.

    Raises:
        Exception: whatever a sweep raises; nothing is swept after it.
    """
    while not stopped.is_set():
        for sweep in sweeps:
            await run_in_threadpool(sweep)
        try:
            await asyncio.wait_for(stopped.wait(), interval_s)
        except asyncio.TimeoutError:
            continue
