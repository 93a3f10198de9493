"""Pictures of every view of the made-up world, wide and narrow, light and dark: `python -m tests.page.shots DIR`."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import click

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


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("views", nargs=-1, type=click.Choice(list(VIEWS)))
@click.option("--plain", is_flag=True, help="Without the jobs whose names are hostile.")
def main(folder: Path, views: tuple[str, ...], plain: bool) -> None:
    """Write the pictures of VIEWS, or of all; what a picture does not hold is below the window."""
    folder.mkdir(parents=True, exist_ok=True)
    with frozen(hostile=not plain) as world, launched() as browser:
        for scheme, (width, size) in product(SCHEMES, SIZES.items()):
            with window(browser, world.url, size, scheme) as shown:
                for name in views or VIEWS:
                    shown.page.goto("about:blank")
                    shown.page.goto(f"{world.url}/#{VIEWS[name]}")
                    shown.page.wait_for_load_state("networkidle")
                    # What has taken the focus by itself is no part of the picture.
                    shown.page.evaluate("document.activeElement?.blur()")
                    shown.page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
                shown.page.goto("about:blank")
                for complaint in shown.complaints():
                    click.echo(complaint, err=True)


if __name__ == "__main__":
    main()
