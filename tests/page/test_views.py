"""From the list to a vertex and back by clicks, addresses that lead to any view, and values that are the REST's."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Rest
from tests.page.browser import NARROW, Window
from tests.page.conftest import Open, latest
from tests.page.driver import BROKEN, COUNT, ENDED, EXECUTORS, HEALTHY, NAMES, ORDERS, SOURCE, SPLITS, WRITE
from tests.page.shots import JOB_TABS, VERTEX_TABS, VIEWS
from tests.page.world import World

FORMATTED = """
    async ([vocabulary, wanted]) => {
        const figures = await import(new URL('web/figures.js', location.href.split('#')[0]).href);
        return Object.fromEntries(wanted.map(([id, value]) => [id, figures[vocabulary][id].format(value)]));
    }
"""
LEGENDS = """
    [...document.querySelectorAll('figure.chart')].filter(chart => chart.closest('aside.drawer') ? %s : !%s)
        .flatMap(chart => [...chart.querySelectorAll('[data-figure]')].map(one =>
            [one.dataset.figure, one.querySelector('output').textContent]))
"""


def words(shown: Window, vocabulary: str, figures: dict[str, float | None], asked: list[str]) -> dict[str, str]:
    """Return how the page is to write these figures."""
    found: dict[str, str] = shown.page.evaluate(FORMATTED, [vocabulary, [[each, figures.get(each)] for each in asked]])
    return found


def test_from_the_list_to_a_vertex_and_back_by_clicks(open_page: Open) -> None:
    """List, job, its batches, a vertex, its latency, and with Escape back; then a job that has ended."""
    shown = open_page()
    page = shown.page
    page.get_by_role("link", name=NAMES[ORDERS]).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(NAMES[ORDERS])
    expect(page.locator(".verdict")).to_contain_text("Backlogged")
    expect(page.locator(".verdict")).to_contain_text("HashAggregate")
    page.get_by_role("tab", name="Batches").click()
    expect(page.locator("tr[data-batch]").first).to_be_visible()
    page.get_by_role("tab", name="Overview").click()
    page.locator(f"a.vertex[data-vertex='{COUNT}']").click()
    drawer = page.locator("aside.drawer")
    expect(drawer.get_by_role("heading", level=2).first).to_contain_text("HashAggregate -> StateStoreSave")
    expect(drawer.locator("figure.chart").first).to_be_visible()
    drawer.get_by_role("link", name="Latency").click()
    expect(drawer.locator("canvas").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    expect(page).to_have_url(re.compile(rf"#/jobs/{ORDERS}$"))
    page.get_by_role("link", name="Jobs", exact=True).click()
    page.get_by_role("link", name=NAMES[ENDED]).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(NAMES[ENDED])
    expect(page.locator(".verdict")).to_contain_text("Finished at")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("size", [(1280, 800), NARROW], ids=["1280", "390"])
def test_an_address_leads_to_its_view(open_page: Open, name: str, size: tuple[int, int]) -> None:
    """In a window that has never been anywhere else; nothing is wider than the window, but what scrolls by itself."""
    shown = open_page(None, size=size)
    page = shown.page
    page.goto(f"{shown.url}/#{VIEWS[name]}")
    page.wait_for_load_state("networkidle")
    expect(page.get_by_role("alert")).to_be_hidden()
    kind, _, tab = name.partition("-")
    if kind == "job":
        expect(page.get_by_role("tab", selected=True)).to_have_text(
            (tab if tab in JOB_TABS else "overview").capitalize()
        )
    elif kind == "vertex":
        expect(page.locator("aside.drawer [aria-current=page]")).to_have_text(tab.capitalize())
        expect(page.locator("aside.drawer .badge").first).to_have_text(re.compile("RUNNING"))
    elif kind == "compare":
        expect(page.locator("[data-part=findings] li").first).to_be_visible()
    else:
        title = {"jobs": "Jobs", "executors": "Executors", "nowhere": "There is nothing at this address"}[kind]
        expect(page.get_by_role("heading", name=title, exact=True).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize("jid", [ORDERS, HEALTHY, ENDED])
def test_a_job_shows_what_the_rest_tells(open_page: Open, rest: Rest, jid: str) -> None:
    """Its tiles and its charts' latest values are the last ones of its history."""
    shown = open_page(f"/jobs/{jid}")
    figures = latest(rest, f"/jobs/{jid}/history")
    shown.page.wait_for_selector("figure.chart")
    told = shown.page.evaluate(LEGENDS % ("false", "false"))
    assert len(told) >= 10
    assert dict(told) == words(shown, "OF_JOB", figures, [figure for figure, _ in told])
    labels = shown.page.evaluate(
        "async () => Object.entries((await import(new URL('web/figures.js', location.href.split('#')[0]).href)).OF_JOB)"
        ".map(([id, {label}]) => [label, id])"
    )
    ids = dict(labels)
    tiles = shown.page.eval_on_selector_all(
        "main header .tile", "tiles => tiles.map(tile => [tile.dataset.name, tile.querySelector('.value').textContent])"
    )
    assert len(tiles) >= 8
    expected = words(shown, "OF_JOB", figures, [ids[name] for name, _ in tiles])
    assert {ids[name]: word for name, word in tiles} == expected
    duration = rest.get(f"/jobs/{jid}")["duration"]
    assert shown.text("[data-fact=up]") == shown.formatted("duration", duration)


def test_the_graph_shows_the_plan(open_page: Open, rest: Rest) -> None:
    """Every vertex with its operators, every edge with how it is shipped, and in words which one holds all up."""
    shown = open_page(f"/jobs/{ORDERS}")
    detail = rest.get(f"/jobs/{ORDERS}")
    drawn = shown.page.locator("svg.plan")
    expect(drawn.locator("a.vertex")).to_have_count(len(detail["vertices"]))
    text = drawn.evaluate("graph => graph.textContent")
    for word in ("KafkaV2", "HashAggregate", "parquet", "HASH", "RANGE"):
        assert word in text, word
    assert (
        "bottleneck" in drawn.locator(f"a.vertex[data-vertex='{COUNT}']").evaluate("node => node.textContent").lower()
    )
    assert (
        "bottleneck" not in drawn.locator(f"a.vertex[data-vertex='{WRITE}']").evaluate("one => one.textContent").lower()
    )
    assert detail["streamgauge"]["bottleneck"]["id"] == COUNT


@pytest.mark.parametrize("vertex", [SOURCE, COUNT, WRITE])
def test_a_vertex_shows_what_the_rest_tells(open_page: Open, rest: Rest, vertex: str) -> None:
    """Its charts' latest values are the last ones of its history; what is not known has no chart."""
    shown = open_page(f"/jobs/{ORDERS}/vertices/{vertex}")
    shown.page.wait_for_selector("aside.drawer figure.chart")
    told = shown.page.evaluate(LEGENDS % ("true", "true"))
    figures = latest(rest, f"/jobs/{ORDERS}/vertices/{vertex}/history")
    assert dict(told) == words(shown, "OF_VERTEX", figures, [figure for figure, _ in told])
    assert set(figures) <= {figure for figure, _ in told}


def test_every_subtask_has_its_line(open_page: Open, rest: Rest) -> None:
    """And what is made of all of them is the REST's; a click on a column's name sorts by it."""
    shown = open_page(f"/jobs/{ORDERS}/vertices/{COUNT}?tab=subtasks")
    rows = shown.page.locator("aside.drawer tr[data-subtask]")
    subtasks = rest.get(f"/jobs/{ORDERS}/vertices/{COUNT}")["subtasks"]
    expect(rows).to_have_count(len(subtasks))
    for subtask in subtasks:
        row = shown.page.locator(f"tr[data-subtask='{subtask['subtask']}']").inner_text().replace("\xa0", " ")
        assert shown.formatted("count", subtask["metrics"]["read-records"]) in row
    sorter = shown.page.locator("aside.drawer th button").filter(has_text=re.compile("read|records", re.I)).first
    sorter.click()
    expect(shown.page.locator("aside.drawer th[aria-sort]")).to_have_count(1)
    order = rows.evaluate_all("rows => rows.map(row => Number(row.dataset.subtask))")
    sorter.click()
    turned = rows.evaluate_all("rows => rows.map(row => Number(row.dataset.subtask))")
    assert order != turned
    assert sorted(order) == sorted(turned) == list(range(len(subtasks)))


def test_every_operator_has_its_native_metrics(open_page: Open, rest: Rest) -> None:
    """All that …/accumulators tells is there by its name."""
    shown = open_page(f"/jobs/{ORDERS}/vertices/{COUNT}?tab=operators")
    expect(shown.page.locator("aside.drawer [data-metric]").first).to_be_visible()
    text = shown.text("aside.drawer")
    for word in ("HashAggregate", "StateStoreSave", "memory used by state", "time to update", "shuffle write time"):
        assert word in text, word


def test_splits_and_timers_are_told(open_page: Open, rest: Rest) -> None:
    """The split that lags is told with its lag, as text; timers with how late they fire."""
    shown = open_page(f"/jobs/{ORDERS}/vertices/{SOURCE}?tab=splits")
    drawer = shown.page.locator("aside.drawer")
    expect(drawer.locator("[data-tap='by partition']")).to_be_visible()
    text = shown.text("aside.drawer")
    [tap] = rest.get(f"/jobs/{ORDERS}/vertices/{SOURCE}/splits")["taps"]
    for split in tap["splits"]:
        assert split["id"] in text
        assert shown.formatted("duration", split["lag-ms"]) in text
    assert {split["id"] for split in tap["splits"]} == set(SPLITS)
    shown.go(f"/jobs/{ORDERS}/vertices/{COUNT}?tab=timers")
    [timers] = rest.get(f"/jobs/{ORDERS}/vertices/{COUNT}/timers")["operators"]
    text = shown.text("aside.drawer")
    for figure in ("registered", "pending", "fired", "deleted"):
        assert shown.formatted("count", timers[figure]) in text, figure


def test_latency_is_told_by_its_parts(open_page: Open, rest: Rest) -> None:
    """The percentiles of every path are those of …/latency."""
    shown = open_page(f"/jobs/{ORDERS}/vertices/{COUNT}?tab=latency")
    expect(shown.page.locator("aside.drawer canvas")).to_be_visible()
    text = shown.text("aside.drawer")
    told = rest.get(f"/jobs/{ORDERS}/vertices/{COUNT}/latency")["paths"]
    assert told
    for path in told:
        for part in ("latency", "queueing", "processing"):
            figure = next(value for key, value in path[part].items() if key.startswith("p99"))
            assert shown.formatted("duration", figure) in text, (part, figure)


def test_batches_are_told(open_page: Open, rest: Rest) -> None:
    """Each that is held, with its duration, rows, phases and, where it failed, why."""
    shown = open_page(f"/jobs/{ORDERS}?tab=batches")
    body = rest.get(f"/jobs/{ORDERS}/checkpoints")
    expect(shown.page.locator("tr[data-batch]").first).to_be_visible()
    text = shown.text("main")
    for batch in body["history"]:
        row = shown.page.locator(f"tr[data-batch='{batch['id']}']").last.inner_text().replace("\xa0", " ")
        assert batch["status"] in row
        if batch["status"] == "COMPLETED":
            assert shown.formatted("duration", batch["end_to_end_duration"]) in row
            assert shown.formatted("bytes", batch["state_size"]) in row
    for word in ("addBatch", "queryPlanning", "walCommit", "latestOffset", "the sink was away"):
        assert word in text, word


def test_a_failure_is_told_in_the_open(open_page: Open) -> None:
    """Its root cause above everything, the traces behind a link."""
    shown = open_page(f"/jobs/{BROKEN}")
    expect(shown.page.locator(".failure")).to_be_visible()
    shown.page.locator(".failure a").click()
    expect(shown.page.get_by_role("tab", selected=True)).to_have_text("Exceptions")
    expect(shown.page.get_by_text("java.io.IOException").first).to_be_attached()
    shown.go(f"/jobs/{HEALTHY}?tab=exceptions")
    expect(shown.page.get_by_role("heading", name="Nothing has failed")).to_be_visible()


def test_executors_are_told(open_page: Open, rest: Rest) -> None:
    """Each with its memory, its slots and what runs on it; a driver that dropped something in red, with advice."""
    shown = open_page("/executors")
    expect(shown.page.locator("[data-executor]")).to_have_count(len(EXECUTORS))
    for executor in rest.get("/taskmanagers")["taskmanagers"]:
        card = shown.page.locator(f"[data-executor='{executor['id']}']")
        text = card.inner_text().replace("\xa0", " ")
        metric = "Status.JVM.Memory.Heap.Used"
        [heap] = rest.get(f"/taskmanagers/{executor['id']}/metrics?get={metric}")
        assert shown.formatted("bytes", float(heap["value"])) in text
        assert f"{executor['slotsNumber'] - executor['freeSlots']} of {executor['slotsNumber']}" in text
    expect(shown.page.locator("[data-driver='app-strange'] .tile.bad")).to_have_count(2)
    expect(shown.page.locator("[data-driver='app-strange'] .advice li")).to_have_count(2)


@pytest.mark.parametrize(
    "route",
    [
        f"/jobs/{ORDERS}",
        *(f"/jobs/{ORDERS}/vertices/{COUNT}?tab={tab}" for tab in VERTEX_TABS),
        "/executors",
        VIEWS["compare"],
    ],
)
def test_whatever_is_copied_is_answered(open_page: Open, world: World, route: str) -> None:
    """Each "copy as curl" of a view is an address that answers 200, and PromQL names our families alone."""
    shown = open_page(route, permissions=["clipboard-read", "clipboard-write"])
    # What is asked is the same for each; the clipboard would be asked a hundred times.
    shown.page.evaluate(
        "() => { window.copied = []; navigator.clipboard.writeText = async text => void window.copied.push(text); }"
    )
    shown.page.evaluate("document.querySelectorAll('details.copy button').forEach(button => button.click())")
    copied = shown.page.evaluate("window.copied")
    commands = [text for text in copied if text.startswith("curl ")]
    queries = [text for text in copied if not text.startswith("curl ")]
    assert commands
    for command in commands:
        found = re.fullmatch(r"curl -s '([^']+)'", command)
        assert found, command
        assert found[1].startswith(world.url + "/")
        assert httpx.get(found[1]).status_code == 200, command
    assert all("streamgauge_" in query for query in queries)
