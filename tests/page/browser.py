"""The page in a browser: opens it, and writes down what it complains of and whom it asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.programs import program

WIDE, NARROW = (1280, 800), (390, 844)
TIMEOUT_MS = 15_000

FORMAT = """
    async ([name, value]) => (await import(new URL('web/format.js', location.href.split('#')[0]).href))[name](value)
"""

LOST = ("net::ERR_", "Failed to load resource")
"""What a browser itself says of a service that does not answer."""


@contextmanager
def launched() -> Iterator[Browser]:
    """Run a browser without a window."""
    chromium = program("chromium", "chromium-browser", "google-chrome")
    with sync_playwright() as playwright:
        # Its sandbox needs a kernel that containers, CI's among them, often do not give.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Window:
    """
    One window on a service. Not thread safe.

    Args:
        page: Where it is shown.
        url: Of the service.
        lossy: Whether the service is meant to be away at times.
    """

    page: Page
    url: str
    lossy: bool = False
    asked: list[str] = field(default_factory=list)
    _said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        context = self.page.context
        context.on("request", lambda request: self.asked.append(request.url))
        context.on("console", self._console)
        context.on("weberror", lambda error: self._said.append(f"uncaught: {error.error}"))
        context.on("page", lambda page: self._said.append(f"a new window: {page.url}"))
        self.page.on("dialog", self._dialog)
        self.page.on("requestfailed", lambda request: self._failed(request.url, request.failure or ""))
        self.page.set_default_timeout(TIMEOUT_MS)

    def go(self, route: str = "/") -> None:
        """Load the page anew at a route, and wait for its first figures."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/#{route}")
        self.told()

    def told(self) -> None:
        """Wait until the page says as of when its figures are, and nothing is asked any more."""
        expect(self.page.locator("#told")).not_to_have_text("")
        self.page.wait_for_load_state("networkidle")

    def text(self, selector: str = "main") -> str:
        """Return what a part of the page says; a space that does not break is one."""
        return self.page.locator(selector).first.inner_text().replace("\xa0", " ").replace("\u202f", " ")

    def formatted(self, name: str, value: Any) -> str:
        """Return a value as the page's own format.js writes it."""
        word: str = self.page.evaluate(FORMAT, [name, value])
        return word

    def complaints(self) -> list[str]:
        """Return what went wrong: errors, dialogs, what the page's policy refused, hosts that are not the service's."""
        own = urlsplit(self.url).netloc
        others = [each for each in self.asked if urlsplit(each).netloc.rpartition("@")[2] != own]
        return self._said + [f"asked {each}" for each in others if not each.startswith("data:")]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if not (self.lossy and any(word in message.text for word in LOST)):
            self._said.append(f"console: {message.text[:500]}")

    def _dialog(self, dialog: Any) -> None:
        self._said.append(f"dialog: {dialog.message[:200]}")
        dialog.dismiss()

    def _failed(self, address: str, reason: str) -> None:
        # A view that is left no longer waits for its answers.
        if "ERR_ABORTED" not in reason and not self.lossy:
            self._said.append(f"not answered: {address} {reason}")


@contextmanager
def window(
    browser: Browser,
    url: str,
    size: tuple[int, int] = WIDE,
    scheme: Any = "light",
    *,
    lossy: bool = False,
    **options: Any,
) -> Iterator[Window]:
    """Open a window with nothing left of those before."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        timezone_id="UTC",
        locale="en-US",
        **options,
    )
    yield Window(context.new_page(), url, lossy)
    context.close()
