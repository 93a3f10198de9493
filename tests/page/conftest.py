"""A browser, a service with a made-up driver's jobs in it, and windows on it that are held to have no faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.e2e.conftest import Rest
from tests.page.browser import Window, launched, window
from tests.page.world import World, frozen

Open = Callable[..., Window]


def latest(rest: Rest, path: str) -> dict[str, float | None]:
    """Return the last value of each figure of a job's or a vertex' history."""
    return {one["id"]: one["values"][-1] for one in rest.get(path)["series"]}


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(scope="package")
def world() -> Iterator[World]:
    """What never changes."""
    with frozen() as found:
        yield found


@pytest.fixture(scope="package")
def rest(world: World) -> Iterator[Rest]:
    client = Rest(world.url)
    yield client
    client.close()


@pytest.fixture
def open_page(browser: Browser, world: World) -> Iterator[Open]:
    """Opens windows, at a route where one is given; in the end none of them may have complained."""
    opened: list[Window] = []
    with ExitStack() as stack:

        def open_one(route: str | None = "/", url: str = "", **options: Any) -> Window:
            found = stack.enter_context(window(browser, url or world.url, **options))
            opened.append(found)
            if route is not None:
                found.go(route)
            return found

        yield open_one
        assert [complaint for each in opened for complaint in each.complaints()] == []
