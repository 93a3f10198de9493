"""
Writes the dashboards: `make dashboards`, or `python -m dashboards.grafana.build` in a checkout.

The JSON beside this is what Grafana reads, and is never edited by hand; `--check` tells whether it is what the modules
say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.grafana import event_time, executors, job, latency, overview, vertex
from dashboards.grafana.expressions import panels

FOLDER = Path(__file__).parent
DASHBOARDS: Mapping[str, Callable[[], Dashboard]] = {
    "overview": overview.build,
    "job": job.build,
    "vertex": vertex.build,
    "latency": latency.build,
    "event-time": event_time.build,
    "executors": executors.build,
}
"""Name of a file, without its ending → what makes it."""


def render(name: str) -> str:
    """Return the text of one dashboard's file, the same every time; any thread."""
    board = json.loads(json.dumps(DASHBOARDS[name]().build(), cls=JSONEncoder))
    _strip(board)
    return json.dumps(board, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def differing() -> list[str]:
    """Return the files that are not what the modules say: those that differ, are missing, or are nobody's."""
    there = {path.stem for path in FOLDER.glob("*.json")}
    return sorted(
        {name for name in DASHBOARDS if name not in there or _path(name).read_text(encoding="utf-8") != render(name)}
        | (there - DASHBOARDS.keys())
    )


def _strip(board: dict[str, Any]) -> None:
    """Take out what the SDK writes of its own accord, and Grafana's schema does not have."""
    for variable in board["templating"]["list"]:
        # Settings of an interval variable, written into each.
        for name in ("auto", "auto_count", "auto_min"):
            variable.pop(name, None)
    for link in board["links"]:
        # It would put the links into a menu.
        link.pop("placement", None)
    for panel in panels(board):
        if panel["type"] == "table":
            panel["options"].pop("footer", None)


def _path(name: str) -> Path:
    return FOLDER / f"{name}.json"


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail where a file is not what the modules say.")
def main(check: bool) -> None:
    """Write Grafana's dashboards."""
    if not check:
        for name in DASHBOARDS:
            _path(name).write_text(render(name), encoding="utf-8")
    elif stale := differing():
        click.echo(f"error: {', '.join(stale)} differ from their modules; run `make dashboards`", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
