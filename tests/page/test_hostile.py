"""Whatever a job is called: it is text, it changes nothing else, and it does not push the page apart."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.browser import NARROW
from tests.page.conftest import Open
from tests.page.driver import BROKEN, COUNT, HOSTILE, SOURCE
from tests.page.shots import JOB_TABS, VERTEX_TABS

PLANTED = "document.querySelectorAll('main script, main img:not(.brand img), main iframe, main b b, [onerror]').length"


@pytest.mark.parametrize("size", [(1280, 800), NARROW], ids=["1280", "390"])
def test_the_list_shows_names_as_they_are(open_page: Open, size: tuple[int, int]) -> None:
    shown = open_page(size=size)
    for jid, name in HOSTILE.items():
        link = shown.page.locator(f"tr[data-job='{jid}'] a")
        # As it is in the page, for what is shown of white space and of the direction differs.
        assert link.evaluate("link => link.textContent") == name
        box = link.locator("xpath=ancestor::tr").bounding_box()
        assert box is not None
        assert box["height"] < 120, "one job must not fill the list"
    assert shown.page.evaluate(PLANTED) == 0
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize("jid", HOSTILE)
@pytest.mark.parametrize("size", [(1280, 800), NARROW], ids=["1280", "390"])
def test_every_view_shows_it_as_text(open_page: Open, jid: str, size: tuple[int, int]) -> None:
    """In the title too; nothing of it has become an element, and nothing is wider than the window."""
    shown = open_page(f"/jobs/{jid}", size=size)
    name = HOSTILE[jid]
    assert shown.page.locator("h1").evaluate("title => title.textContent") == name
    assert shown.page.title().startswith(" ".join(name[:60].split()))
    routes = [f"/jobs/{jid}?tab={tab}" for tab in JOB_TABS]
    routes += [f"/jobs/{jid}/vertices/{SOURCE if tab == 'splits' else COUNT}?tab={tab}" for tab in VERTEX_TABS]
    for route in routes:
        shown.page.goto(f"{shown.url}/#{route}")
        shown.page.wait_for_load_state("networkidle")
        expect(shown.page.get_by_role("alert")).to_be_hidden()
        assert name[:40] in shown.page.locator("main").evaluate("main => main.textContent"), route
        assert shown.page.evaluate(PLANTED) == 0, route
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= size[0], route


def test_a_failure_of_ten_thousand_characters_is_told_whole(open_page: Open) -> None:
    """It is text in the trace, and above the tabs it takes no more room than the window has."""
    shown = open_page(f"/jobs/{BROKEN}?tab=exceptions")
    box = shown.page.locator(".failure").bounding_box()
    assert box is not None
    assert box["height"] < 400
    assert shown.page.evaluate(PLANTED) == 0
    text = shown.page.locator("main").evaluate("main => main.textContent")
    assert text.count("long <b>text</b> ") >= 600


def test_executors_of_a_hostile_driver_are_text(open_page: Open) -> None:
    shown = open_page("/executors")
    text = shown.page.locator("[data-driver='app-strange']").evaluate("card => card.textContent")
    assert next(iter(HOSTILE.values())) in text
    assert "<b>host" in text
    assert shown.page.evaluate(PLANTED) == 0
