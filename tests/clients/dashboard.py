"""Flink's web dashboard in a browser: opens its pages, reads what they show, and collects what they complain of."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import msgspec
from playwright.sync_api import ConsoleMessage, Page, sync_playwright

from tests.clients.maven import jars
from tests.clients.proxy import Exchange, Proxy
from tests.e2e.conftest import eventually
from tests.programs import program

WINDOW = {"width": 1920, "height": 1200}
PREFIX = "web/"
ID = re.compile(r"[0-9a-f]{32}")

# The pages take a notice away after some seconds, so each is written down when it comes.
KEEP_NOTICES = """
    window.notices = [];
    new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(node => {
        const notice = node.querySelector?.('.ant-notification-notice-message')?.closest('.ant-notification-notice');
        if (notice) window.notices.push(notice.innerText);
    }))).observe(document, {childList: true, subtree: true});
"""
ROWS = """
    [...document.querySelectorAll('.ant-table-tbody tr.ant-table-row')]
        .map(row => [...row.cells].map(cell => cell.innerText.trim()))
"""

_NOT_ASKED = "a push is one-way: nobody can ask the driver for it"
_NO_PROFILER = "as a Flink whose profiler is switched off, which is its default"
_PROCESSES = ("/jobmanager", "/taskmanagers/:taskmanagerid")
ALLOWED = {
    **{f"{process}/{file}": _NOT_ASKED for process in _PROCESSES for file in ("log", "stdout", "thread-dump")},
    **{f"{process}/profiler": _NO_PROFILER for process in _PROCESSES},
}
"""Path that is answered with a refusal though the dashboard asks for it → why."""


def files() -> dict[str, bytes]:
    """Return the dashboard's static files by path, as its jar has them."""
    (jar,) = jars("dashboard").glob("flink-runtime-web-*.jar")
    with zipfile.ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if name.startswith(PREFIX) and not name.endswith("/")]
        return {"/" + name.removeprefix(PREFIX): archive.read(name) for name in names}


def moment(time_ms: int) -> str:
    """Return a time as the dashboard writes it, in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


@dataclass
class Dashboard:
    """
    One browser window. Not thread safe.

    Args:
        page: Where the dashboard is shown.
        proxy: What its requests go through.
        screenshots: Folder that each page's picture is put into; None for none.
    """

    page: Page
    proxy: Proxy
    screenshots: Path | None = None
    _said: list[str] = field(default_factory=list)
    _seen: int = 0

    def __post_init__(self) -> None:
        self.page.on("console", self._remember)
        self.page.on("pageerror", lambda error: self._said.append(f"uncaught: {error}"))

    def _remember(self, message: ConsoleMessage) -> None:
        # Of a refused request the browser says so itself; what is refused is told by the proxy.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self._said.append(f"console: {message.text}")

    def open(self, route: str) -> None:
        """Load a page anew, with nothing left of the one before, and wait for its first answers."""
        self._said.clear()
        self._seen = len(self.proxy.exchanges)
        self.page.goto("about:blank")
        self.page.goto(f"{self.proxy.url}/#{route}")
        self.page.wait_for_load_state("networkidle")

    def shows(self, check: Callable[[], bool], picture: str) -> None:
        """Wait until the page shows what it should, and take its picture; AssertionError with what it shows instead."""
        try:
            eventually(check, 15.0)
        except AssertionError:
            raise AssertionError(f"{self.page.url} shows {self.text()!r} and {self.rows()}") from None
        finally:
            if self.screenshots is not None:
                self.page.screenshot(path=self.screenshots / f"{picture}.png")

    def text(self) -> str:
        """Return what the page says, without the navigation beside it; a space that does not break is one."""
        return self.page.locator(".ant-layout-content").first.inner_text().replace("\xa0", " ")

    def rows(self) -> list[list[str]]:
        """Return the rows of all tables of the page."""
        rows: list[list[str]] = self.page.evaluate(ROWS)
        return rows

    def tab(self, name: str) -> None:
        """Choose a tab of the page, the innermost of that name."""
        self.page.get_by_role("tab", name=name, exact=True).last.click()

    def asked(self, ending: str) -> list[Exchange]:
        """Return this page's requests whose path ends so."""
        return [each for each in self.proxy.exchanges[self._seen :] if each.path.endswith(ending)]

    def complaints(self) -> list[str]:
        """
        Return what went wrong on this page: refused requests, notices, errors.

        A refusal that ALLOWED explains is none, nor is the notice of it, nor what the dashboard stumbles over then.
        """
        refused = [each for each in self.proxy.exchanges[self._seen :] if each.status >= 400]
        allowed = [each for each in refused if shape(each.path) in ALLOWED]
        unexpected = [f"{each.status} {each.target}" for each in refused if each not in allowed]
        notices: list[str] = self.page.evaluate("window.notices")
        explained = {error for each in allowed for error in msgspec.json.decode(each.body)["errors"]}
        unexpected += [notice for notice in notices if notice.partition("\n")[2] not in explained]
        return unexpected + ([] if allowed else self._said)


def shape(path: str) -> str:
    """Return a path with its ids taken out, in Flink's notation."""
    short = re.sub(r"/taskmanagers/[^/]+", "/taskmanagers/:taskmanagerid", path)
    short = re.sub(r"/jobs/" + ID.pattern, "/jobs/:jobid", short)
    return re.sub(r"/vertices/" + ID.pattern, "/vertices/:vertexid", short)


@contextmanager
def browsing(proxy: Proxy, screenshots: Path | None) -> Iterator[Dashboard]:
    """Run a browser without a window on what `proxy` serves."""
    chromium = program("chromium", "chromium-browser", "google-chrome")
    with sync_playwright() as playwright:
        # Its sandbox needs a kernel that containers, CI's among them, often do not give.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW, timezone_id="UTC", locale="en-US")
        page.add_init_script(KEEP_NOTICES)
        yield Dashboard(page, proxy, screenshots)
        browser.close()
