"""Services that the made-up driver tells: one whose time stands still, and those that it tells as time goes by."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import uvicorn

from collector.archive import open_archive
from collector.history import SAMPLE_INTERVAL_MS, History
from collector.ingest import Ingest
from collector.limits import Limits
from collector.ring import CAPACITY
from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from service.server import listen, url
from streamgauge import codec, wire
from streamgauge.clock import ManualClock
from tests.conftest import NOW_MS
from tests.page import past
from tests.page.driver import ENDED, HOUR_MS, Driver


@dataclass
class World:
    """
    A service and its driver.

    Args:
        url: Of the service.
        clock: The service's, which stands still unless it is advanced.
    """

    url: str
    driver: Driver
    clock: ManualClock


@contextmanager
def frozen(minutes: float = 15, hostile: bool = True, **settings: Any) -> Iterator[World]:
    """
    A service whose clock stands at NOW_MS, with that many minutes behind it: what it tells is the same for ever.

    Its archive holds what `past` writes.
    """
    samples = min(int(minutes * 60_000 / SAMPLE_INTERVAL_MS), CAPACITY)
    clock = ManualClock(NOW_MS - samples * SAMPLE_INTERVAL_MS)
    store = MetricStore()
    ingest, history = Ingest(store, clock, Limits()), History(store, clock)
    driver = Driver(NOW_MS - 3 * HOUR_MS, hostile)
    for sample in range(samples):
        if sample == samples - 24:
            driver.end(ENDED, "FINISHED", clock.now_ms())
        taken = ingest.push(codec.encode(driver.frames(clock.now_ms())))
        assert not taken.late, taken
        history.sample()
        clock.advance(SAMPLE_INTERVAL_MS)
    ingest.push(codec.encode(driver.frames(clock.now_ms())))
    # The sweep takes the last sample, when the service starts.
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(open_archive(str(Path(folder, "archive.db")), clock)) as archive,
    ):
        past.write(archive, NOW_MS)
        with running(create_app(Config(port=0, **settings), store, clock, history, archive)) as address:
            yield World(address, driver, clock)


@contextmanager
def running(app: Any) -> Iterator[str]:
    """Serve an application from a thread of this process; yields its URL."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    with contextlib.closing(listener):
        thread.start()
        deadline = time.monotonic() + 20
        while not server.started:
            assert time.monotonic() < deadline, "the service did not start"
            time.sleep(0.02)
        yield url("127.0.0.1", listener)
        server.should_exit = True
        thread.join(20)


class Feeder:
    """
    Pushes what a driver has to tell, every second by the machine's clock; a service that is away is tried again.

    Args:
        address: Of the service.
    """

    def __init__(self, address: str, driver: Driver, token: str = "") -> None:
        self._address = address
        self._driver = driver
        self._headers = {"Content-Type": wire.CONTENT_TYPE} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._http = urllib3.PoolManager(timeout=5.0, retries=False)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Feeder:
        self.push()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(20)
        self._http.clear()

    def end(self, jid: str, state: str) -> None:
        """Let a job end, and tell at once."""
        with self._lock:
            self._driver.end(jid, state, _now_ms())
        self.push()

    def push(self) -> None:
        """Tell once."""
        with self._lock:
            body = codec.encode(self._driver.frames(_now_ms()))
        answer = self._http.request("POST", self._address + wire.PUSH_PATH, body=body, headers=self._headers)
        assert answer.status == 202, answer.data[:500]

    def _run(self) -> None:
        while not self._stopped.wait(1.0):
            with contextlib.suppress(urllib3.exceptions.HTTPError):
                self.push()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def live_driver(hostile: bool = False) -> Driver:
    """Return a driver that began two minutes ago by the machine's clock."""
    return Driver(_now_ms() - 120_000, hostile)
