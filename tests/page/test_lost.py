"""What the page says while the service is away, refuses, or comes back with nothing; and that it goes on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import serving
from tests.page.conftest import Open
from tests.page.driver import COUNT, ENDED, HEALTHY, HOUR_MS, ORDERS, Driver
from tests.page.world import Feeder, World, frozen, live_driver

SOON_MS = 15_000
"""Within two refreshes and what a busy machine adds."""


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


class Service:
    """A service of its own process that can be ended and started again at the same address."""

    def __init__(self, *options: str) -> None:
        self._options = ("--port", str(free_port()), *options)
        self._stack = ExitStack()
        self.url = ""

    def start(self) -> None:
        self.url = self._stack.enter_context(serving(*self._options))

    def stop(self) -> None:
        self._stack.close()


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    found.start()
    yield found
    found.stop()


def test_figures_go_on_without_a_reload(open_page: Open, service: Service) -> None:
    """The page's own memory shows that it is the same page; a new job and a job's end come by themselves."""
    driver = live_driver()
    with Feeder(service.url, driver) as feeder:
        shown = open_page(url=service.url)
        shown.page.evaluate("window.sameOne = true")
        row = shown.page.locator(f"tr[data-job='{HEALTHY}']")
        expect(row).to_contain_text("RUNNING")
        before = row.locator("td[data-figure=up]").inner_text()
        expect(row.locator("td[data-figure=up]")).not_to_have_text(before, timeout=SOON_MS)
        feeder.end(HEALTHY, "FAILED")
        expect(row).to_contain_text("FAILED", timeout=SOON_MS)
        expect(row.locator("td[data-figure=ended]")).to_be_visible()
        with Feeder(service.url, Driver(driver.start_ms - HOUR_MS, hostile=True)):
            expect(shown.page.locator("tr[data-job]", has_text="<script>")).to_have_count(1, timeout=SOON_MS)
        assert shown.page.evaluate("window.sameOne")


def test_a_service_that_was_restarted_is_found_again(open_page: Open, service: Service) -> None:
    """Meanwhile it is said that there is no answer, since when, and that the figures are old; they stay on screen."""
    with Feeder(service.url, live_driver()):
        shown = open_page(url=service.url, lossy=True)
        row = shown.page.locator(f"tr[data-job='{ORDERS}']")
        expect(row).to_contain_text("RUNNING")
        service.stop()
        alarm = shown.page.get_by_role("alert")
        expect(alarm).to_contain_text("No answer from the service since", timeout=SOON_MS)
        expect(alarm).to_contain_text("What is shown is older")
        expect(row).to_contain_text("RUNNING")
        expect(shown.page.locator("#told")).to_have_class("told stale")
        service.start()
        expect(alarm).to_be_hidden(timeout=SOON_MS)
        expect(shown.page.locator("#told")).to_have_class("told")
        expect(row).to_contain_text("RUNNING", timeout=SOON_MS)


def test_a_job_ends_while_one_looks_at_it(open_page: Open, service: Service) -> None:
    """Its vertex is open, and stays so; after a restart of the service both are found again, once the driver speaks."""
    with Feeder(service.url, live_driver()) as feeder:
        shown = open_page(f"/jobs/{HEALTHY}/vertices/{COUNT}", url=service.url, lossy=True)
        drawer = shown.page.locator("aside.drawer")
        expect(drawer.locator(".badge").first).to_contain_text("RUNNING")
        service.stop()
        alarm = shown.page.get_by_role("alert")
        expect(alarm).to_contain_text("No answer from the service since", timeout=SOON_MS)
        service.start()
        expect(alarm).to_be_hidden(timeout=SOON_MS)
        expect(shown.page.get_by_text("The service does not know this job")).to_have_count(0, timeout=SOON_MS)
        expect(drawer.locator(".badge").first).to_contain_text("RUNNING")
        feeder.end(HEALTHY, "FINISHED")
        expect(shown.page.locator(".verdict")).to_contain_text("Finished at", timeout=SOON_MS)
        expect(drawer.locator(".badge").first).to_contain_text("FINISHED")


def test_a_silent_driver_is_told(open_page: Open) -> None:
    """Since when, and that figures are of then; the list no longer tells what nobody knows."""
    with frozen(minutes=1) as silent:
        shown = open_page(f"/jobs/{ORDERS}", url=silent.url)
        expect(shown.page.locator(".verdict")).to_contain_text("Backlogged")
        silent.clock.advance(60_000)
        expect(shown.page.locator(".verdict")).to_contain_text("silent since", timeout=SOON_MS)
        shown.go("/")
        row = shown.page.locator(f"tr[data-job='{ORDERS}']")
        expect(row).to_contain_text("SUSPENDED")
        assert row.locator("td[data-figure='latency.p99']").inner_text() == "–"
        shown.page.goto("about:blank")


def test_a_network_that_drops_is_told(open_page: Open, world: World) -> None:
    """And when it is back, the page is."""
    shown = open_page(lossy=True)
    shown.page.context.set_offline(True)
    alarm = shown.page.get_by_role("alert")
    expect(alarm).to_contain_text("No answer from the service since", timeout=SOON_MS)
    expect(shown.page.locator(f"tr[data-job='{ENDED}']")).to_be_visible()
    shown.page.context.set_offline(False)
    expect(alarm).to_be_hidden(timeout=SOON_MS)


def test_a_refusal_is_told_in_the_service_words(open_page: Open, world: World) -> None:
    """With its status, as text."""
    shown = open_page(lossy=True)
    body = {"errors": ["the disk is <b>full</b>"]}
    shown.page.route("**/jobs/overview", lambda route: route.fulfill(status=503, json=body))
    alarm = shown.page.get_by_role("alert")
    expect(alarm).to_contain_text("The service answers 503 since", timeout=SOON_MS)
    expect(alarm).to_contain_text("the disk is <b>full</b>")
    assert alarm.locator("b").count() == 0
    shown.page.unroute("**/jobs/overview")
    expect(alarm).to_be_hidden(timeout=SOON_MS)


def test_a_read_token_guards_the_page(open_page: Open) -> None:
    """Without it there is no page; as the password that a browser asks for it is enough for all that follows."""
    with frozen(minutes=1, read_token="secret") as guarded:
        answer = httpx.get(guarded.url)
        assert answer.status_code == 401
        assert "basic" in answer.headers["www-authenticate"].lower()
        credentials = {"username": "anyone", "password": "secret"}
        shown = open_page(url=guarded.url, http_credentials=credentials)
        expect(shown.page.locator(f"tr[data-job='{ORDERS}']")).to_be_visible()
        # So it also comes to pass in an address that somebody has kept.
        kept = open_page(None, url=guarded.url)
        kept.page.goto(guarded.url.replace("://", "://anyone:secret@"))
        expect(kept.page.locator(f"tr[data-job='{ORDERS}']")).to_be_visible()
        for each in (shown, kept):
            each.page.goto("about:blank")
