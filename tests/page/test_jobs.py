"""The list of jobs: what it says of each, how one finds one, and what it says where there is none."""

from __future__ import annotations

import re
from typing import Any

import httpx
from playwright.sync_api import expect

from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from streamgauge.clock import SystemClock
from tests.e2e.conftest import Rest
from tests.page.browser import NARROW
from tests.page.conftest import Open, latest
from tests.page.driver import BROKEN, ENDED, HEALTHY, HOSTILE, NAMES, ORDERS
from tests.page.world import World, running

RUNNING = (ORDERS, HEALTHY)
WORDS = """
    async ([id, value]) => {
        const {OF_JOB} = await import(new URL('web/figures.js', location.href.split('#')[0]).href);
        return OF_JOB[id].format(value);
    }
"""


def test_every_job_is_listed_with_its_latest_figures(open_page: Open, rest: Rest) -> None:
    """As the REST tells them, in the words of format.js; running ones apart from those that have ended."""
    shown = open_page()
    overview = {job["jid"]: job for job in rest.get("/jobs/overview")["jobs"]}
    told = shown.page.eval_on_selector_all("tr[data-job]", "rows => rows.map(row => row.dataset.job)")
    assert sorted(told) == sorted(overview)
    for jid in RUNNING:
        row = shown.page.locator(f"tr[data-job='{jid}']")
        assert row.locator("a").inner_text() == NAMES[jid]
        assert "RUNNING" in row.inner_text()
        assert row.locator("td[data-figure=up]").inner_text() == shown.formatted("duration", overview[jid]["duration"])
        figures = latest(rest, f"/jobs/{jid}/history")
        cells = row.locator("td[data-figure]")
        asked = [each for each in cells.evaluate_all("cells => cells.map(cell => cell.dataset.figure)") if each != "up"]
        assert len(asked) == 6
        for figure in asked:
            expected = shown.page.evaluate(WORDS, [figure, figures.get(figure)])
            assert row.locator(f"td[data-figure='{figure}']").inner_text() == expected, figure
    # And so it is not empty on both sides.
    assert re.fullmatch(r"[\d.]+( k)?/s", shown.text(f"tr[data-job='{ORDERS}'] td[data-figure=numRecordsInPerSecond]"))
    assert "bad" in (shown.page.get_attribute(f"tr[data-job='{ORDERS}'] td.number >> nth=-1", "class") or "")
    for jid, state in ((ENDED, "FINISHED"), (BROKEN, "FAILED")):
        row = shown.page.locator(f"tr[data-job='{jid}']")
        assert state in row.inner_text()
        assert row.locator("td[data-figure=lasted]").inner_text() == shown.formatted(
            "duration", overview[jid]["duration"]
        )


def test_a_job_is_found_by_its_name_or_id(open_page: Open) -> None:
    """While one types; what finds none says what is looked for, and nothing is lost."""
    shown = open_page()
    search = shown.page.get_by_role("searchbox", name="Search jobs")
    rows = shown.page.locator("tr[data-job]")
    everything = rows.count()
    for typed, found in (("ORDERS by", ORDERS), (HEALTHY, HEALTHY), ("<script>", next(iter(HOSTILE)))):
        search.fill(typed)
        assert rows.evaluate_all("rows => rows.map(row => row.dataset.job)") == [found], typed
    search.fill("no job has such a name")
    expect(shown.page.get_by_role("heading", name="No job is called so")).to_be_visible()
    search.fill("")
    assert rows.count() == everything


def test_without_a_job_it_says_what_to_do(open_page: Open) -> None:
    """The two lines to paste name this very service."""
    with running(create_app(Config(), MetricStore(), SystemClock())) as url:
        shown = open_page(url=url)
        expect(shown.page.get_by_role("heading", name="No job has told of itself yet")).to_be_visible()
        lines = shown.text("pre").splitlines()
        assert lines == ["import streamgauge", f'streamgauge.attach(spark, url="{url}")']
        shown.page.goto("about:blank")


def test_the_list_is_asked_for_as_it_was_copied(open_page: Open, world: World) -> None:
    """The address behind "copy as curl" answers what stands in the column, and PromQL has its words."""
    shown = open_page(permissions=["clipboard-read", "clipboard-write"])
    shown.page.locator("th details.copy summary").first.click()
    shown.page.get_by_role("button", name="copy as curl").first.click()
    expect(shown.page.locator("#toast")).to_have_text("copied as curl")
    command = shown.page.evaluate("navigator.clipboard.readText()")
    found = re.fullmatch(r"curl -s '(http://[^']+)'", command)
    assert found, command
    assert found[1].startswith(world.url)
    jobs: dict[str, Any] = {job["id"]: job for job in httpx.get(found[1]).json()["jobs"]}
    [series] = jobs[ORDERS]["series"]
    cell = shown.text(f"tr[data-job='{ORDERS}'] td[data-figure='{series['id']}']")
    assert cell == shown.page.evaluate(WORDS, [series["id"], series["values"][-1]])
    summary = shown.page.locator("th", has_text="watermark lag").locator("summary")
    summary.click()
    shown.page.locator("th", has_text="watermark lag").get_by_role("button", name="copy as PromQL").click()
    expect(shown.page.locator("#toast")).to_have_text("copied as PromQL")
    assert shown.page.evaluate("navigator.clipboard.readText()").startswith("max by (job_name) (streamgauge_")


def test_every_menu_opens_where_it_can_be_read(open_page: Open) -> None:
    """Nothing of it lies outside the window, or under the edge of what scrolls: what is seen is what is clicked."""
    for size in ((1280, 800), NARROW):
        shown = open_page(size=size)
        for menu in shown.page.locator("details.copy").all():
            summary = menu.locator("summary")
            if not summary.is_visible():
                continue
            summary.click()
            for button in menu.locator("button").all():
                button.click(trial=True)
            shown.page.keyboard.press("Escape")
            expect(menu).not_to_have_attribute("open", "")
