"""Every "copy as PromQL" of the page's tables: it parses, and asks for what /metrics tells, as it is told."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest

from collector.readings import JOB_FIGURES, VERTEX_FIGURES
from streamgauge import catalogue
from tests.contract.exposed import known
from tests.contract.test_dashboard_expressions import kept, nearest, nodes, selectors
from tests.programs import program

FILES = Path(__file__).parents[2] / "service" / "web" / "files"
JOB, VERTEX = "a" * 32, "b" * 32
AT_ONE = ("streamgauge_operator_pending_records", "streamgauge_operator_unread_files")
NAME = 'he said "x\\y"\n\u202e'
"""As a name may be."""

# The modules that are asked touch the page in functions alone.
ASK = """
import { OF_JOB, OF_VERTEX, promql } from "./figures.js";
import { chosen, HOOKS, POOLS, TILES, TOTALS } from "./executors.js";
const [job, vertex, name] = JSON.parse(process.argv[2]);
const told = (vocabulary, ...ids) =>
  Object.entries(vocabulary).map(([id, figure]) => [id, figure.label, promql(figure, ...ids) ?? null]);
const made = (rows, label) => rows.map((row) => [row[1], row[0], row[3](chosen(label, name))]);
console.log(JSON.stringify({
  job: told(OF_JOB, job),
  vertex: told(OF_VERTEX, job, vertex),
  executor: [...made(POOLS, "executor_id"), ...made(TILES, "executor_id")],
  hooks: made(HOOKS, "application_id"),
  cluster: TOTALS.map((row) => [row[1], row[0], row[2]]),
}));
"""

Told = dict[str, list[tuple[str, str, str | None]]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Figure, words and expression of each row of the page's tables."""
    folder = tmp_path_factory.mktemp("page")
    for path in FILES.glob("*.js"):
        shutil.copy(path, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "ask.js").write_text(ASK)
    command = [program("node", "nodejs"), "ask.js", json.dumps([JOB, VERTEX, NAME])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: Told = json.loads(done.stdout)
    return found


def expressions(told: Told, *scopes: str) -> Iterator[tuple[str, Any]]:
    """Each expression that there is, and what it is parsed to."""
    for scope in scopes or told:
        for _, _, asked in told[scope]:
            if asked is not None:
                yield asked, promql.parse(asked)


def test_figures_of_histories_are_all_named(told: Told) -> None:
    """One without words would be shown by its id, and one that the service does not tell is never known."""
    assert {figure for figure, _, _ in told["job"]} == {*JOB_FIGURES}
    assert {figure for figure, _, _ in told["vertex"]} == {*VERTEX_FIGURES}
    for rows in told.values():
        assert len({words for _, words, _ in rows}) == len(rows)


def test_metrics_are_those_of_the_catalogue(told: Told) -> None:
    """What the executors' cards ask for by its name."""
    for scope in ("executor", "hooks"):
        named = {metric.name for metric in catalogue.METRICS if metric.scope == scope}
        assert {name for name, _, _ in told[scope]} - named == set()


def test_only_what_is_told_is_asked_for(told: Told) -> None:
    """Each name is a family of /metrics, and each label that it is chosen by is one of that family, as it is."""
    for asked, parsed in expressions(told):
        chosen = [node for node in nodes(parsed) if isinstance(node, promql.VectorSelector)]
        assert chosen, asked
        for selector in chosen:
            matchers = {each.name: each.value for each in selector.matchers.matchers}
            assert {*matchers} <= known(selector.name).labels, asked
            values = {"job_id": JOB, "vertex_id": VERTEX, "executor_id": NAME, "application_id": NAME}
            assert {name: values.get(name, value) for name, value in matchers.items()} == matchers, asked


def test_only_labels_that_are_there_are_grouped_by(told: Told) -> None:
    """Others would make one of what is apart."""
    for asked, parsed in expressions(told):
        for node in nodes(parsed):
            if isinstance(node, promql.AggregateExpr) and node.modifier:
                assert {*node.modifier.labels} <= kept(node.expr), asked


def test_rates_are_taken_of_counters_and_of_nothing_else(told: Told) -> None:
    """Over time a counter says nothing by itself; a card shows it as it stands."""
    for asked, parsed in expressions(told):
        grown = {node.vector_selector.name for node in nodes(parsed) if isinstance(node, promql.MatrixSelector)}
        assert {known(name).kind for name in grown} <= {"counter"}, asked
    for asked, parsed in expressions(told, "job", "vertex", "cluster"):
        grown = {node.vector_selector.name for node in nodes(parsed) if isinstance(node, promql.MatrixSelector)}
        plain = {selector.name for selector in selectors(asked)} - grown
        assert {known(name).kind for name in plain} <= {"gauge"}, asked


def test_subtasks_are_made_one_as_the_default_page_does(told: Told) -> None:
    """Sums of counters, the greatest gauge, …: the same from a page with a series a subtask."""
    for asked, parsed in expressions(told, "job", "vertex"):
        for selector in [node for node in nodes(parsed) if isinstance(node, promql.VectorSelector)]:
            # The driver tells of these at one subtask alone, so that its greatest is the sum.
            whole = "sum" if selector.name in AT_ONE else known(selector.name).whole
            assert whole in ("", nearest(parsed, selector)), (asked, whole)
