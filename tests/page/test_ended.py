"""What has ended: that it says so, that its last minutes stay, and that a thousand of them cost nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.e2e.conftest import Rest
from tests.page.browser import Window
from tests.page.conftest import Open
from tests.page.driver import BROKEN, COUNT, ENDED, HEALTHY, LONG_TEXT, ORDERS
from tests.page.past import ARCHIVED, LOST, NAMES, RUNS

MANY = 1_000
AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"
WATCH = """
    () => {
        window.changes = [];
        new MutationObserver(found => window.changes.push(...found.map(one => one.target.nodeName)))
            .observe(document.querySelector('[aria-label="Ended jobs"]'), {
                childList: true, subtree: true, characterData: true,
            });
    }
"""


def once_more(shown: Window) -> None:
    """Let the view be refreshed, and wait until it is."""
    with shown.page.expect_response(lambda answer: "/overview" in answer.url or "/history" in answer.url):
        shown.page.evaluate(AGAIN)
    shown.page.wait_for_load_state("networkidle")


@pytest.mark.parametrize(
    ("jid", "word"), [(ENDED, "Finished at"), (ARCHIVED, "Finished at"), (RUNS[ORDERS].replace("-", ""), "Finished at")]
)
def test_a_job_that_has_ended_says_when_and_as_of_when_its_figures_are(
    open_page: Open, rest: Rest, jid: str, word: str
) -> None:
    """In one line, live or archived, by the job's id or by the run's."""
    shown = open_page(f"/jobs/{jid}")
    detail, history = rest.get(f"/jobs/{jid}"), rest.get(f"/jobs/{jid}/history")
    assert shown.text(".verdict") == (
        f"{word} {shown.formatted('moment', detail['end-time'])}; all figures are its last ones, "
        f"as of {shown.formatted('moment', history['timestamps'][-1])}."
    )


def test_a_job_that_has_failed_says_why_in_the_same_line(open_page: Open, rest: Rest) -> None:
    """The first line of what was at the root of it, cut; below it stands the whole."""
    shown = open_page(f"/jobs/{BROKEN}")
    expect(shown.page.locator(".failure")).to_be_visible()
    text = shown.text(".verdict")
    when = shown.formatted("moment", rest.get(f"/jobs/{BROKEN}")["end-time"])
    assert text.startswith(f"Failed at {when}: {LONG_TEXT[:100]}")
    assert "all figures are its last ones, as of" in text
    assert len(text) < 300


def test_a_driver_that_never_came_back_is_told_with_what_has_ended(open_page: Open, rest: Rest) -> None:
    """It is SUSPENDED, and not among what runs; its figures are of then."""
    shown = open_page()
    row = shown.page.locator("[aria-label='Ended jobs'] tr[data-job]").filter(has_text=NAMES[LOST])
    expect(row).to_contain_text("SUSPENDED")
    [told] = [job for job in rest.get("/jobs/overview")["jobs"] if job["jid"] == LOST]
    expect(row.locator("[data-figure=ended]")).to_have_text(shown.formatted("moment", told["last-modification"]))
    shown.go(f"/jobs/{LOST}")
    expect(shown.page.locator(".verdict")).to_contain_text("The driver has been silent since")


def test_the_last_minutes_of_what_has_ended_stay(open_page: Open) -> None:
    """Charts and the heat map hold them at every refresh, however long ago they were."""
    shown = open_page(f"/jobs/{LOST}/vertices/{COUNT}?tab=latency")
    expect(shown.page.locator("aside.drawer canvas")).to_be_visible()
    once_more(shown)
    expect(shown.page.locator("aside.drawer canvas")).to_be_visible()
    shown.go(f"/jobs/{ARCHIVED}")
    charts = shown.page.locator("figure.chart:visible")
    before = charts.evaluate_all("charts => charts.map(chart => chart.querySelector('.legend').textContent)")
    assert len(before) == 2
    assert "–" not in before[0]
    for _ in range(3):
        once_more(shown)
        assert charts.evaluate_all("all => all.map(one => one.querySelector('.legend').textContent)") == before


def thousand(route: Route, last: str = "") -> None:
    """Answer as a service with a thousand ended jobs would."""
    answer = route.fetch()
    body = answer.json()
    [one] = [job for job in body["jobs"] if job["jid"] == ARCHIVED]
    many = [
        {
            **one,
            "jid": f"{0xF0000 + place:032x}",
            "name": f"import {place:04d}{last if place == MANY - 1 else ''}",
            "end-time": one["end-time"] - place,
        }
        for place in range(MANY)
    ]
    route.fulfill(response=answer, body=json.dumps({"jobs": body["jobs"] + many}))


def test_a_thousand_ended_jobs_are_neither_drawn_anew_nor_lost(open_page: Open) -> None:
    """The latest are there, the others by the button or the search; a refresh without news changes nothing."""
    shown = open_page(None)
    shown.page.route("**/jobs/overview", thousand)
    shown.go()
    rows = shown.page.locator("[aria-label='Ended jobs'] tr[data-job]")
    expect(rows).to_have_count(100)
    shown.page.evaluate(WATCH)
    once_more(shown)
    assert shown.page.evaluate("window.changes") == []
    shown.page.get_by_role("button", name="Show 100 more of").click()
    expect(rows).to_have_count(200)
    search = shown.page.get_by_role("searchbox", name="Search jobs")
    search.fill("import 0999")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("import 0999")
    expect(shown.page.get_by_role("button", name="more of")).to_be_hidden()
    search.fill("")
    expect(rows).to_have_count(100)
    # And so the watch above would have seen something.
    assert shown.page.evaluate("window.changes.length") > 0
    shown.page.unroute("**/jobs/overview")
    shown.page.route("**/jobs/overview", lambda route: thousand(route, " renamed"))
    search.fill("renamed")
    once_more(shown)
    expect(rows).to_have_count(1)


def test_a_batch_job_tells_what_it_has(open_page: Open) -> None:
    """Records and how busy it was; nothing of micro-batches, event time or markers, and no fault over that."""
    shown = open_page(f"/jobs/{ARCHIVED}")
    page = shown.page
    tiles = page.eval_on_selector_all("main header .tile", "tiles => tiles.map(tile => tile.dataset.name)")
    assert tiles == ["records in", "records out"]
    assert re.fullmatch(r"[\d.]+( k)?/s", shown.text("main header .tile .value"))
    expect(page.locator("a.vertex")).to_have_count(3)
    titles = page.locator("figure.chart:visible h3").all_inner_texts()
    assert titles == ["Records in and out", "Busy and back-pressured, busiest subtask"]
    page.get_by_role("tab", name="Batches").click()
    expect(page.locator("#job-panel h2")).to_be_visible()
    expect(page.locator("tr[data-batch]")).to_have_count(0)
    for tab in ("Exceptions", "Configuration"):
        page.get_by_role("tab", name=tab).click()
        expect(page.locator("#job-panel")).not_to_be_empty()
    shown.go(f"/jobs/{ARCHIVED}/vertices/{COUNT}?tab=latency")
    expect(page.locator("aside.drawer .empty, aside.drawer .card").first).to_be_visible()


def test_a_batch_job_that_runs_says_so(open_page: Open) -> None:
    """Until its input is read; whether it keeps up is nobody's question."""

    def batch(route: Route) -> None:
        answer = route.fetch()
        body: dict[str, Any] = {**answer.json(), "job-type": "BATCH"}
        route.fulfill(response=answer, body=json.dumps(body))

    shown = open_page(None)
    shown.page.route(f"**/jobs/{HEALTHY}", batch)
    shown.go(f"/jobs/{HEALTHY}")
    expect(shown.page.locator(".verdict")).to_have_text("A batch job: it runs until its input is read.")
    expect(shown.page.get_by_role("link", name="Compare with another run")).to_be_hidden()
