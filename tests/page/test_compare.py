"""Two runs beside each other on the page: what it says is what the REST tells, whichever runs are chosen."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Rest
from tests.page.browser import NARROW, Window
from tests.page.conftest import Open
from tests.page.driver import BROKEN, ENDED, HEALTHY, HOSTILE, ORDERS, WRITE
from tests.page.past import ARCHIVED, NAMES, RUNS, WRITTEN

PATH = f"/jobs/{ORDERS}/compare"
EARLIER = RUNS[ORDERS].replace("-", "")
UNITS = {
    "count": "count",
    "records": "count",
    "records/s": "rate",
    "bytes": "bytes",
    "bytes/s": "byteRate",
    "ms": "duration",
    "ms/s": "msPerSecond",
    "percent": "percent",
}
ROWS = """
    [...document.querySelectorAll('[data-compared]')].map(table => [table.dataset.compared,
        [...table.querySelectorAll('tr[data-id]')].map(row =>
            [row.dataset.id, ...[...row.querySelectorAll('[data-figure]')].map(cell => cell.textContent)])])
"""
PLANTED = "document.querySelectorAll('main script, main img, main iframe, [onerror]').length"


def words(shown: Window, figure: dict[str, Any]) -> list[str]:
    """How the page is to write a figure before and after."""
    return [shown.formatted(UNITS[figure["unit"]], figure[side]) for side in ("before", "after")]


def test_every_figure_is_the_rests(open_page: Open, rest: Rest) -> None:
    """Of the job and of each vertex, in its words; a change has a sign, and what is a finding a word, too."""
    shown = open_page(PATH)
    body = rest.get(PATH)
    told = {table: {row[0]: row[1:] for row in rows} for table, rows in shown.page.evaluate(ROWS)}
    expected = {"job": body["figures"]} | {
        f"{each['id-before']} {each['id-after']}".replace("None", "null"): each["figures"] for each in body["vertices"]
    }
    assert set(told) == set(expected)
    signed = 0
    for table, figures in expected.items():
        assert set(told[table]) == {figure["id"] for figure in figures}
        for figure in figures:
            before, after, change = told[table][figure["id"]]
            assert [before, after] == words(shown, figure), figure
            difference = figure["difference"]
            start = "not known" if difference is None else "=" if difference == 0 else "▲" if difference > 0 else "▼"
            if figure["ratio"] is not None and 0 < abs(figure["ratio"] - 1) < 0.001:
                start = "≈"
            assert change.startswith(start), figure
            signed += start in "▲▼"
            least = body["findings"]["relative-change"] * max(abs(figure["before"] or 0), abs(figure["after"] or 0))
            found = difference is not None and figure["floor"] is not None and abs(difference) > figure["floor"]
            score = difference * figure["direction"] if found and abs(difference) >= least else 0
            assert change.endswith(" worse") == (score > 0), figure
            assert change.endswith(" better") == (score < 0), figure
    assert signed > 20


def test_what_has_changed_is_told_first_the_worst_first(open_page: Open, rest: Rest) -> None:
    """Each finding of the REST in its order, and behind them the Spark, the plan and the settings."""
    shown = open_page(PATH)
    entries = rest.get(PATH)["findings"]["entries"]
    lines = shown.page.locator("[data-part=findings] li")
    told = lines.evaluate_all("lines => lines.map(line => line.dataset.finding)")
    assert told[: len(entries)] == [f"{each['figure']} {each['id-after'] or ''}" for each in entries]
    for place, each in enumerate(entries):
        text = lines.nth(place).inner_text().replace("\xa0", " ")
        assert " → ".join(words(shown, each)) in text
        assert text.endswith("worse") == (each["score"] > 0)
    text = shown.text("[data-part=findings]")
    for sentence in ("Spark: 4.2.0 → 4.3.0", "1 vertex has other operators: Sort -> Sink: parquet", "settings differ"):
        assert sentence in text, sentence
    assert "state:" not in text, "that it still runs is no change"


def test_both_runs_are_told(open_page: Open, rest: Rest) -> None:
    """With their states, and links to each of them as it was."""
    shown = open_page(PATH)
    body = rest.get(PATH)
    for side in ("before", "after"):
        card = shown.page.locator(f"[data-run={side}]")
        expect(card.locator(".badge")).to_contain_text(body[side]["state"])
        expect(card.locator("[data-fact=run]")).to_have_text(body[side]["run"])
        expect(card.locator("[data-fact=duration]")).to_have_text(shown.formatted("duration", body[side]["duration"]))
    assert body["before"]["run"] == EARLIER
    shown.page.locator("[data-run=before] a").click()
    expect(shown.page).to_have_url(re.compile(f"#/jobs/{EARLIER}$"))
    expect(shown.page.locator(".verdict")).to_contain_text("all figures are its last ones")


def test_plans_and_settings_that_differ_are_told(open_page: Open, rest: Rest) -> None:
    """As the REST tells them: the vertex that was another one, an operator that is gone, what was set otherwise."""
    shown = open_page(PATH)
    body = rest.get(PATH)
    [vertex] = [each for each in body["vertices"] if each["operators"]]
    assert (vertex["id-before"], vertex["id-after"], vertex["rule"]) == (WRITTEN, WRITE, "operators")
    text = shown.text("[data-part=plans]")
    for operator in vertex["operators"]:
        assert operator["name"] in text
        for side, sign in (("before", "−"), ("after", "+")):
            assert operator[side] is None or f"{sign} {operator[side]}" in text
    assert "GlobalLimit is gone" in text
    rows = shown.page.locator("[data-part=settings] tbody tr")
    told = rows.evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
    none = shown.formatted("count", None)
    assert told == [[each["key"], each["before"] or none, each["after"] or none] for each in body["configuration"]]
    assert ["spark.sql.shuffle.partitions", "4", "8"] in told


def test_another_run_is_chosen_by_keys_alone(open_page: Open, rest: Rest) -> None:
    """Any job by a part of its name, Enter; the address leads there again, and back to the first."""
    shown = open_page(PATH)
    page = shown.page
    select = page.get_by_label("Run to compare with")
    assert select.input_value() == EARLIER
    page.get_by_label("Search jobs to compare with").focus()
    page.keyboard.type(NAMES[ARCHIVED].upper())
    assert select.locator("optgroup").last.locator("option").all_inner_texts() == [f"{NAMES[ARCHIVED]} · FINISHED"]
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"#{PATH}\?with={ARCHIVED}$"))
    expect(page.locator("[data-run=before] .named a")).to_have_text(NAMES[ARCHIVED])
    expect(page.locator("[data-run=before] [data-fact=run]")).to_have_text(RUNS[ARCHIVED].replace("-", ""))
    assert page.get_by_label("Run to compare with").input_value() == ARCHIVED
    page.go_back()
    expect(page.locator("[data-run=before] [data-fact=run]")).to_have_text(EARLIER)


@pytest.mark.parametrize("other", [EARLIER, RUNS[ORDERS]])
def test_an_address_with_both_ids_leads_there(open_page: Open, other: str) -> None:
    """Also with the run's id as Spark writes it, and with that run as the later one."""
    shown = open_page(f"/jobs/{HEALTHY}/compare?with={other}")
    expect(shown.page.locator("[data-run=before] [data-fact=run]")).to_have_text(EARLIER)
    shown.go(f"/jobs/{EARLIER}/compare?with={HEALTHY}")
    expect(shown.page.locator("[data-run=after] [data-fact=run]")).to_have_text(EARLIER)


def test_where_there_is_no_run_before_it_says_what_to_do(open_page: Open) -> None:
    """And from there one may choose."""
    shown = open_page(f"/jobs/{ARCHIVED}/compare", lossy=True)
    expect(shown.page.get_by_role("heading", name="There are no two runs to compare")).to_be_visible()
    expect(shown.page.locator(".empty")).to_contain_text("?with=")
    shown.page.get_by_label("Run to compare with").select_option(ENDED)
    shown.page.get_by_role("button", name="Compare", exact=True).click()
    expect(shown.page.locator("[data-part=findings]")).to_be_visible()
    shown.page.goto(f"{shown.url}/#/jobs/not-an-id/compare")
    expect(shown.page.get_by_role("heading", name="There is nothing at this address")).to_be_visible()


def test_a_job_leads_to_its_comparison_where_there_is_one(open_page: Open) -> None:
    """Of a job that runs for the first time there is none."""
    shown = open_page(f"/jobs/{ORDERS}")
    link = shown.page.get_by_role("link", name="Compare with another run")
    link.click()
    expect(shown.page).to_have_url(re.compile(rf"#{PATH}$"))
    expect(shown.page.locator("[data-part=findings]")).to_be_visible()
    shown.page.get_by_role("link", name="Back to the job").click()
    expect(shown.page).to_have_url(re.compile(rf"#/jobs/{ORDERS}$"))
    for jid, there in ((ENDED, True), (BROKEN, True), (HEALTHY, False)):
        shown.go(f"/jobs/{jid}")
        expect(link).to_be_visible() if there else expect(link).to_be_hidden()


def test_runs_that_have_ended_are_asked_for_once(open_page: Open) -> None:
    """They stay as they are; a run that goes on is asked for again."""
    again = "document.dispatchEvent(new Event('visibilitychange'))"
    for route, most in ((f"/jobs/{ENDED}/compare?with={ARCHIVED}", 1), (PATH, 2)):
        shown = open_page(route)
        before = shown.text("[data-part=findings]")
        shown.page.evaluate(again)
        shown.page.wait_for_load_state("networkidle")
        asked = [each for each in shown.asked if "/compare?" in each or each.endswith("/compare")]
        assert len(asked) == most, asked
        assert shown.text("[data-part=findings]") == before


@pytest.mark.parametrize("jid", HOSTILE)
@pytest.mark.parametrize("size", [(1280, 800), NARROW], ids=["1280", "390"])
def test_hostile_names_are_text(open_page: Open, jid: str, size: tuple[int, int]) -> None:
    """In names, operators, settings and the choice of jobs; nothing is wider than the window."""
    shown = open_page(f"/jobs/{jid}/compare?with={HEALTHY}", size=size)
    expect(shown.page.locator("[data-run=after] .named a")).to_have_text(HOSTILE[jid])
    expect(shown.page.locator("[data-part=settings]")).to_contain_text(HOSTILE[jid][:40])
    assert shown.page.evaluate(PLANTED) == 0
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= size[0]
