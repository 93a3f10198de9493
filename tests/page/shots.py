"""
Pictures of every view, wide and narrow, light and dark: `python -m tests.page.shots DIR`.

They are of the made-up world, or, with --url, of every running job of a service: of its job's tabs, and of the first
and the last of its vertices.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import click
import httpx

from tests.page.browser import NARROW, WIDE, launched, window
from tests.page.driver import BROKEN, COUNT, ENDED, ORDERS, SOURCE
from tests.page.past import ARCHIVED
from tests.page.world import frozen

JOB_TABS = ("overview", "batches", "exceptions", "configuration")
VERTEX_TABS = ("charts", "subtasks", "operators", "latency", "splits", "timers")

VIEWS = {
    "jobs": "/",
    **{f"job-{tab}": f"/jobs/{BROKEN if tab == 'exceptions' else ORDERS}?tab={tab}" for tab in JOB_TABS},
    "job-ended": f"/jobs/{ENDED}",
    **{
        f"vertex-{tab}": f"/jobs/{ORDERS}/vertices/{SOURCE if tab == 'splits' else COUNT}?tab={tab}"
        for tab in VERTEX_TABS
    },
    "job-archived": f"/jobs/{ARCHIVED}",
    "compare": f"/jobs/{ORDERS}/compare",
    "executors": "/executors",
    "nowhere": "/no/such/place",
}
"""Name of a view → its route."""

SIZES = {"1280": WIDE, "390": NARROW}
SCHEMES = ("light", "dark")


def views_of(url: str) -> Iterator[tuple[str, str]]:
    """Return the views of the jobs that run in a service: name → route."""

    def ask(path: str) -> Any:
        return httpx.get(url + path).raise_for_status().json()

    yield "jobs", "/"
    yield "executors", "/executors"
    for job in ask("/jobs/overview")["jobs"]:
        if job["state"] != "RUNNING":
            continue
        place = f"/jobs/{job['jid']}"
        for tab in JOB_TABS:
            yield f"{job['name']}-{tab}", f"{place}?tab={tab}"
        vertices = ask(place)["vertices"]
        for which, vertex in {"first": vertices[0], "last": vertices[-1]}.items():
            for tab in VERTEX_TABS:
                yield f"{job['name']}-{which}-{tab}", f"{place}/vertices/{vertex['id']}?tab={tab}"


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("views", nargs=-1)
@click.option("--plain", is_flag=True, help="Without the jobs whose names are hostile.")
@click.option("--url", help="Of a service that runs; else the made-up world.")
def main(folder: Path, views: tuple[str, ...], plain: bool, url: str | None) -> None:
    """Write the pictures of VIEWS, or of all; what a picture does not hold is below the window."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        browser = held.enter_context(launched())
        address = url or held.enter_context(frozen(hostile=not plain)).url
        routes = dict(views_of(url)) if url else VIEWS
        if unknown := set(views) - set(routes):
            raise click.BadParameter(f"no view is called {', '.join(unknown)}: there are {', '.join(routes)}")
        for scheme, (width, size) in product(SCHEMES, SIZES.items()):
            with window(browser, address, size, scheme) as shown:
                for name in views or routes:
                    shown.page.goto("about:blank")
                    shown.page.goto(f"{address}/#{routes[name]}")
                    shown.page.wait_for_load_state("networkidle")
                    # What has taken the focus by itself is no part of the picture.
                    shown.page.evaluate("document.activeElement?.blur()")
                    shown.page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
                shown.page.goto("about:blank")
                for complaint in shown.complaints():
                    click.echo(complaint, err=True)


if __name__ == "__main__":
    main()
