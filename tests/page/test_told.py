"""Tabs whose every value is the REST's, and charts that follow the theme."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.conftest import Rest
from tests.page.conftest import Open
from tests.page.driver import COUNT, OPERATORS, ORDERS

SETTINGS = (
    "tables => tables.map(table => [...table.rows].slice(1).map(row => [...row.cells].map(cell => cell.textContent)))"
)
DRAWN = """
    async names => {
        const canvas = document.querySelector('figure.chart canvas');
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true});
        for (let round = 0; round < 300; round++) {
            copy.clearRect(0, 0, canvas.width, canvas.height);
            copy.drawImage(canvas, 0, 0);
            const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
            const found = new Set();
            for (let at = 0; at < data.length; at += 4) {
                if (data[at + 3] === 255) found.add(data.slice(at, at + 3).join(' '));
            }
            const wanted = names.map(name => {
                const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1);
                return [0, 2, 4].map(at => parseInt(hex.slice(at, at + 2), 16)).join(' ');
            });
            if (wanted.every(colour => found.has(colour))) return wanted;
            await new Promise(requestAnimationFrame);
        }
        return [];
    }
"""
"""Waits for lines of these colours of the theme, and returns which they are; [] if they do not come."""


def test_every_setting_is_the_rests(open_page: Open, rest: Rest) -> None:
    """The job's own, and its driver's, each with its value, none left out and none besides."""
    shown = open_page(f"/jobs/{ORDERS}?tab=configuration")
    expect(shown.page.locator(".settings table")).to_have_count(2)
    own, driver = shown.page.locator(".settings table").evaluate_all(SETTINGS)
    execution = rest.get(f"/jobs/{ORDERS}/config")["execution-config"]
    assert own == [
        ["restarts", execution["restart-strategy"]],
        ["parallelism", str(execution["job-parallelism"])],
        *([key, value] for key, value in execution["user-config"].items()),
    ]
    told = rest.get(f"/jobs/{ORDERS}/jobmanager/config")
    assert driver == [[each["key"], each["value"]] for each in told]
    assert len(driver) >= 4
    shown.page.get_by_role("searchbox", name="Search settings").fill("shuffle.partitions")
    expect(shown.page.locator(".settings tbody tr:visible")).to_have_count(2)


def test_every_operators_numbers_are_the_rests(open_page: Open, rest: Rest) -> None:
    """Records of each, and each of Spark's own metrics: exact where the mouse stays, in words where one looks."""
    path = f"/jobs/{ORDERS}/vertices/{COUNT}"
    shown = open_page(f"{path}?tab=operators")
    expect(shown.page.locator("aside.drawer [data-metric]").first).to_be_visible()
    for name in OPERATORS[COUNT]:
        card = shown.page.locator(f"[data-operator='{name}']")
        for figure in ("numRecordsIn", "numRecordsOut"):
            [told] = rest.get(f"{path}/subtasks/metrics?get={name}.{figure}&agg=sum")
            word = shown.formatted("count", told["sum"])
            assert card.locator(f"[data-figure={figure}] output").inner_text() == word != "–", (name, figure)
    body = rest.get(f"{path}/accumulators")
    cells = shown.page.locator("aside.drawer [data-metric] output")
    exact = cells.evaluate_all("cells => cells.map(cell => cell.title)")
    units = body["streamgauge"]["units"]
    assert sorted(exact) == sorted(
        f"{each['value']} {units.get(each['name'], '')}".strip() for each in body["user-accumulators"]
    )
    formats = {"bytes": ("bytes", 1), "ms": ("duration", 1), "ns": ("duration", 1e6)}
    plain = 0
    for each in body["user-accumulators"]:
        if each["value"].startswith("("):
            continue
        form, part = formats.get(units.get(each["name"], ""), ("count", 1))
        metric = each["name"].split(".", 1)[1]
        word = shown.formatted(form, float(each["value"]) / part)
        assert word in shown.page.locator(f"aside.drawer [data-metric='{metric}'] output").all_inner_texts(), each
        plain += 1
    assert plain >= 4


def test_charts_follow_the_theme_while_the_page_is_open(open_page: Open) -> None:
    """Lines are of the new colours at once, and of the old ones again."""
    shown = open_page(f"/jobs/{ORDERS}")
    expect(shown.page.locator("figure.chart canvas").first).to_be_visible()
    seen = []
    for scheme in ("light", "dark", "light"):
        shown.page.emulate_media(color_scheme=scheme)
        seen.append(shown.page.evaluate(DRAWN, ["--series-1", "--series-2"]))
    assert seen[0] == seen[2] != seen[1]
    assert all(len(colours) == 2 for colours in seen)
