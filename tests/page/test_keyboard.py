"""Everything can be reached and left without a mouse."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.page.browser import NARROW, Window
from tests.page.conftest import Open
from tests.page.driver import COUNT, NAMES, ORDERS
from tests.page.shots import VIEWS

FOCUSED = """
    (() => {
        const one = document.activeElement;
        window.stops ??= new Map();
        if (!window.stops.has(one)) window.stops.set(one, window.stops.size);
        return one === document.body ? -1 : window.stops.get(one);
    })()
"""
REACHABLE = "a[href], button, input, select, summary, [tabindex='0']"
UNREACHED = f"""
    [...document.querySelectorAll({REACHABLE!r})]
        .filter(one => one.checkVisibility({{visibilityProperty: true}}) && one.tabIndex >= 0 && !window.stops.has(one))
        .map(one => one.outerHTML.slice(0, 200))
"""


def tab_through(shown: Window) -> int:
    """Press Tab until the page's end; return at how many places it came by."""
    # An open drawer has taken the focus: this is the page's first place.
    shown.page.locator("a.skip").focus()
    last = int(shown.page.evaluate(FOCUSED))
    for _ in range(600):
        shown.page.keyboard.press("Tab")
        place = int(shown.page.evaluate(FOCUSED))
        if place < last or place == -1:
            break
        last = place
    return last + 1


@pytest.mark.parametrize("name", [name for name in VIEWS if name not in ("nowhere", "job-ended")])
def test_tab_reaches_everything(open_page: Open, name: str) -> None:
    """That can be clicked and is seen; where it is, is seen as well."""
    shown = open_page(VIEWS[name])
    # A refresh in between may show more.
    shown.page.clock.install()
    assert tab_through(shown) > 3
    assert shown.page.evaluate(UNREACHED) == []


def test_a_job_is_found_and_left_by_keys_alone(open_page: Open) -> None:
    """Search, Enter on what is found, arrows between tabs, Enter on a vertex, Escape back to it."""
    shown = open_page()
    page = shown.page
    page.get_by_role("searchbox").focus()
    page.keyboard.type(NAMES[ORDERS])
    link = page.get_by_role("link", name=NAMES[ORDERS])
    for _ in range(30):
        page.keyboard.press("Tab")
        if link.evaluate("link => link === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(NAMES[ORDERS])
    page.get_by_role("tab", name="Overview").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Batches")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", selected=True)).to_have_text("Batches")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    node = page.locator(f"a.vertex[data-vertex='{COUNT}']")
    node.focus()
    page.keyboard.press("Enter")
    drawer = page.locator("aside.drawer")
    expect(drawer).to_be_focused()
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    expect(page.locator(f"[data-vertex='{COUNT}']").first).to_be_focused()


def test_escape_closes_the_menu_and_not_the_drawer(open_page: Open) -> None:
    """The innermost goes first."""
    shown = open_page(f"/jobs/{ORDERS}/vertices/{COUNT}")
    page = shown.page
    summary = page.locator("aside.drawer details.copy summary").first
    summary.focus()
    page.keyboard.press("Enter")
    menu = page.locator("aside.drawer details.copy").first
    expect(menu).to_have_attribute("open", "")
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(summary).to_be_focused()
    expect(page.locator("aside.drawer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("aside.drawer")).to_have_count(0)


def test_the_skip_link_leads_to_the_figures(open_page: Open) -> None:
    """The first stop of all; it does not lead away from the view that is shown."""
    shown = open_page(f"/jobs/{ORDERS}", size=NARROW)
    page = shown.page
    page.keyboard.press("Tab")
    expect(page.locator("a.skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#view")).to_be_focused()
    expect(page).to_have_url(re.compile(rf"#/jobs/{ORDERS}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text(NAMES[ORDERS])
