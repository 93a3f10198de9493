"""
What one open page costs: scripting in the browser at each refresh, and the service's processor while it is read.

Promise: less than 50 ms of scripting a refresh over a job of 60 vertices of 200 subtasks. It needs Chromium. From the
root of the project: `python -m benchmarks.bench_page`.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from typing import Any

import click
import msgspec
import urllib3
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks.bench_rest_overview import job_frame
from benchmarks.spread import Spread, spread
from streamgauge import codec, names, wire
from streamgauge.wire import PUSH_PATH

REFRESH_S = 5.0
"""As the page has it."""
PUSH_S = 1.0
SAMPLED_US = 200
NOT_SCRIPT = frozenset({"(root)", "(program)", "(idle)"})
TOLD = """
    () => new Promise((done, failed) => {
        setTimeout(() => failed(new Error(document.getElementById('alarm').textContent || 'no refresh')), 30_000);
        new MutationObserver((_, watch) => { watch.disconnect(); done(); })
            .observe(document.getElementById('told'), {childList: true, characterData: true, subtree: true});
    })
"""
"""A refresh ends when the page says as of when its figures are; what is drawn then is drawn in the next frames."""


def wide_frame(vertices: int, subtasks: int, seq: int, start_ms: int) -> wire.Frame:
    """Return a running job whose figures are others with each `seq`."""
    replace = msgspec.structs.replace
    frame = job_frame(1, vertices, subtasks, start_ms)
    assert frame.job is not None
    drawn = job_frame(1 + seq, 1, subtasks, start_ms).vertices[0].columns
    rates = tuple(
        replace(column, metric=column.metric + names.PER_SECOND)
        for column in drawn
        if column.metric in (names.NUM_RECORDS_IN, names.NUM_RECORDS_OUT)
    )
    columns = (*drawn, *rates)
    job = replace(frame.job, metrics={names.BACKLOGGED: True, names.BACKLOG_ROWS: 1_000 + seq})
    return replace(
        frame,
        seq=seq,
        sent_at_ms=_now_ms(),
        job=job,
        vertices=tuple(replace(vertex, columns=columns) for vertex in frame.vertices),
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Driver:
    """Pushes a job every second from a thread of its own."""

    def __init__(self, url: str, vertices: int, subtasks: int) -> None:
        self._url = url + PUSH_PATH
        self._shape = (vertices, subtasks)
        self._start_ms = _now_ms() - 600_000
        self._stopped = threading.Event()
        self._http = urllib3.PoolManager()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Driver:
        self._push(1)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._http.clear()

    def _push(self, seq: int) -> None:
        body = codec.encode([wide_frame(*self._shape, seq, self._start_ms)])
        taken = self._http.request("POST", self._url, body=body, headers={"Content-Type": wire.CONTENT_TYPE})
        if taken.status != 202:
            raise RuntimeError(f"a push was answered {taken.status}: {taken.data.decode()}")

    def _run(self) -> None:
        seq = 1
        while not self._stopped.wait(PUSH_S):
            seq += 1
            with suppress(urllib3.exceptions.HTTPError):
                self._push(seq)


@contextmanager
def service() -> Iterator[tuple[str, int]]:
    """A service of its own process; yields its URL and process id."""
    command = [sys.executable, "-m", "streamgauge", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found
            yield found.group(), process.pid
        finally:
            process.terminate()


def spent_s(process: int) -> float:
    """Return the processor time of a process, seconds; of Linux alone."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_share(process: int, seconds: float) -> float:
    """Return the share of one processor that a process takes."""
    before, began = spent_s(process), time.monotonic()
    time.sleep(seconds)
    return (spent_s(process) - before) / (time.monotonic() - began)


def figures(session: CDPSession) -> dict[str, float]:
    """Return what the browser counts of a page's work, seconds."""
    told = session.send("Performance.getMetrics")["metrics"]
    return {one["name"]: one["value"] for one in told}


def scripted_ms(profile: dict[str, Any]) -> float:
    """
    Return how long JavaScript ran, its garbage collection included, by a sampled profile.

    Chromium's ScriptDuration leaves out what runs behind an `await`, which is nearly all of a refresh.
    """
    quiet = {node["id"] for node in profile["nodes"] if node["callFrame"]["functionName"] in NOT_SCRIPT}
    samples = zip(profile["samples"], profile["timeDeltas"], strict=True)
    spent_us: int = sum(delta for node, delta in samples if node not in quiet)
    return spent_us / 1000


def refreshes(browser: Browser, url: str, route: str, process: int, rounds: int) -> tuple[Spread, Spread, float]:
    """Return scripting and all work of a refresh, ms, and the share of a processor that the service takes meanwhile."""
    page: Page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{url}/#{route}")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("Profiler.enable")
    session.send("Profiler.setSamplingInterval", {"interval": SAMPLED_US})
    page.wait_for_timeout(2 * REFRESH_S * 1000)
    scripting, working = [], []
    began, before_s = time.monotonic(), spent_s(process)
    for _ in range(rounds):
        session.send("Profiler.start")
        before = figures(session)
        page.evaluate(TOLD)
        page.wait_for_timeout(500)
        after = figures(session)
        scripting.append(scripted_ms(session.send("Profiler.stop")["profile"]))
        working.append((after["TaskDuration"] - before["TaskDuration"]) * 1000)
    share = (spent_s(process) - before_s) / (time.monotonic() - began)
    page.close()
    return spread(scripting), spread(working), share


@click.command()
@click.option("--rounds", default=11, show_default=True, help="Refreshes of each view.")
@click.option("--vertices", default=60, show_default=True)
@click.option("--subtasks", default=200, show_default=True, help="Of a vertex.")
def main(rounds: int, vertices: int, subtasks: int) -> None:
    """Open each view on a wide job that changes every second, and print a table."""
    chromium = which("chromium") or which("chromium-browser") or which("google-chrome")
    if chromium is None:
        raise click.ClickException("there is no Chromium: install it (Debian: the package chromium)")
    jid = f"{1:032x}"
    vertex = f"/jobs/{jid}/vertices/{1:08x}{1:024x}"
    routes = {
        "jobs": "/",
        "job, with its graph": f"/jobs/{jid}",
        "vertex, charts": vertex,
        "vertex, subtasks": f"{vertex}?tab=subtasks",
        "executors": "/executors",
    }
    with service() as (url, process), Driver(url, vertices, subtasks), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        alone = busy_share(process, 3 * REFRESH_S)
        click.echo(
            f"{vertices} vertices × {subtasks} subtasks, {rounds} refreshes, a push every second; Chromium "
            f"{browser.version}, Python {platform.python_version()}, {platform.machine()}; without a page the service "
            f"takes {alone:.1%} of one processor"
        )
        click.echo(f"{'a refresh':22} {'scripting, ms':>14} {'least..most':>16} {'all work, ms':>13} {'service':>8}")
        for name, route in routes.items():
            scripting, working, share = refreshes(browser, url, route, process, rounds)
            held = f"{scripting.least:.1f}..{scripting.greatest:.1f}"
            click.echo(f"{name:22} {scripting.median:14.1f} {held:>16} {working.median:13.1f} {share:8.1%}")
        browser.close()


if __name__ == "__main__":
    main()
