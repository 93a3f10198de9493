"""docs/metrics.md: in step with the catalogue, with what is served, and with what a real Flink lists."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from docs.metrics import LEFT, PAGE, PLACES, render, shown
from service.flink.rest import RESOURCES
from service.prometheus import distributions, latencies, splits
from service.prometheus.families import FAMILIES
from service.prometheus.tasks import filtered
from streamgauge import catalogue, names
from tests.conftest import Client
from tests.contract.catalogued import catalogued

Scopes = tuple[catalogue.Scope, ...]
RECORDED = Path(__file__).parent / "flink_names"
OPERATORS = ("Count_Map", "Source__datagen")
"""Of the recorded vertices."""


def sections(page: str) -> dict[str, str]:
    """Heading → what stands below it."""
    return dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", page, re.MULTILINE))


def named(scope: catalogue.Scope) -> list[str]:
    """Every name in the first column of a scope's table."""
    rows = [line for line in sections(render())[PLACES[scope].title].splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def recorded() -> Iterator[tuple[Scopes, str]]:
    """Every metric that Flink listed, without subtask and operator, and the scopes that it may be of here."""
    for file, scopes in (("job", ("job",)), ("jobmanager", ("driver", "cluster")), ("taskmanager", ("executor",))):
        for entry in json.loads((RECORDED / f"{file}.json").read_text()):
            yield scopes, entry["id"]
    for file in ("vertex", "source_vertex"):
        for entry in json.loads((RECORDED / f"{file}.json").read_text()):
            metric = entry["id"].partition(".")[2]
            head, _, rest = metric.partition(".")
            yield (("operator",), rest) if head in OPERATORS else (("vertex",), metric)


def left(scopes: Scopes, name: str) -> list[str]:
    return [each for row in LEFT if row.scope in scopes for each in row.ids if fnmatchcase(name, each)]


def test_page_says_what_the_catalogue_says() -> None:
    """It is made from it, and checked in for readers."""
    assert PAGE.read_text(encoding="utf-8") == render(), "docs/metrics.md is out of date: run `make docs`"


def test_make_docs_makes_the_page() -> None:
    """The remedy that the message names."""
    root = PAGE.parents[1]
    asked = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "docs"], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.splitlines()[-1].endswith("/python -m docs.metrics")


@pytest.mark.parametrize("scope", PLACES)
def test_every_metric_has_a_row(scope: catalogue.Scope) -> None:
    """One each, what is told under two names has both in one."""
    assert sorted(named(scope)) == sorted(metric.name for metric in catalogue.METRICS if metric.scope == scope)


def test_every_scope_has_a_place() -> None:
    """And every scope of a pattern."""
    assert {metric.scope for metric in (*catalogue.METRICS, *catalogue.PATTERNS)} == set(PLACES)


def test_every_name_in_prometheus_is_told() -> None:
    """With the label that tells it from others of its family."""
    page = render()
    for family in FAMILIES.values():
        assert page.count(f"`{shown(family)}`") == 1, family


def test_places_are_those_of_rest() -> None:
    """Every path that answers metrics is told, and no other."""
    paths = {path for place in PLACES.values() for path in place.paths}
    assert paths <= set(RESOURCES)
    answering = {path for path in RESOURCES if path.endswith("metrics")}
    assert answering | {"/streamgauge/drivers"} == paths


def test_every_path_and_series_that_is_named_is_there() -> None:
    """In tables and between them."""
    page = render()
    paths = {path.removeprefix("…").partition("?")[0] for path in re.findall(r"`(…?/[\w/:-]+)`", page)}
    ends = ("/metrics", "/metrics/flink", *RESOURCES)
    assert {path for path in paths if not any(each.endswith(path) for each in ends)} == set()
    families = (*FAMILIES.values(), *latencies.FAMILIES, *splits.FAMILIES, *distributions.FAMILIES.values())
    known = {family.name for family in families}
    assert {family.name for family in splits.FAMILIES} <= set(re.findall(r"streamgauge_\w*\w", page))
    assert set(re.findall(r"streamgauge_\w*\w", page)) - known == {
        # Made of several figures.
        "streamgauge_job_info",
        "streamgauge_job_state",
        "streamgauge_vertex_bottleneck",
        # What the service's own begin with.
        "streamgauge_service_",
        "streamgauge_scrape",
    }


def test_labels_are_those_of_a_scrape(client: Client, recorded_push: bytes) -> None:
    """Whatever the store's jobs, executors and drivers tell has the labels of its scope's place."""
    client.push(recorded_push)
    scopes: dict[str, set[catalogue.Scope]] = {}
    for (scope, _), family in FAMILIES.items():
        scopes.setdefault(family.name, set()).add(scope)
    seen = set()
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            [scope] = scopes.get(sample.name, {None})
            if scope is not None:
                further = {each.label[0] for each in FAMILIES.values() if each.label and each.name == sample.name}
                assert set(sample.labels) == {*PLACES[scope].labels, *further}, sample.name
                seen.add(scope)
    assert seen >= {"vertex", "operator", "job", "cluster", "executor"}


def test_prefixes_are_those_of_flinks_reporter(client: Client, recorded_push: bytes) -> None:
    """What /metrics/flink tells of a scope is called by its prefix and name."""
    client.push(recorded_push)
    page = text_string_to_metric_families(client.get("/metrics/flink").text)
    # The recorded program's own is told of its stand-in too.
    families = {family.name for family in page if family.type == "gauge" and not family.name.endswith("_myNaNGauge")}
    called = {
        scope: {filtered(place.prefix + metric.name) for metric in catalogue.METRICS if metric.scope == scope}
        for scope, place in PLACES.items()
        if place.prefix
    }
    # A split's id is a label there, and no part of the name.
    of_splits = {filtered(f"{PLACES['operator'].prefix}{names.SPLIT}{metric}") for metric in names.SPLIT_METRICS}
    assert of_splits - families == set()
    # What dashboards ask for by names that Flink had before.
    older = {
        filtered(PLACES["job"].prefix + names.FULL_RESTARTS),
        filtered(PLACES["executor"].prefix + names.AVAILABLE_SLOTS),
    }
    assert older <= families <= of_splits.union(older, *called.values())
    assert [scope for scope, its in called.items() if not families & its] == []


@pytest.mark.parametrize(("scopes", "name"), sorted(set(recorded())), ids=str)
def test_flinks_metric_is_told_or_explained(scopes: Scopes, name: str) -> None:
    """Each id that a real Flink listed is in the catalogue or among those that are not here, never in both."""
    assert any(catalogued(scope, name) for scope in scopes) is not bool(left(scopes, name))


def test_nothing_is_explained_in_vain() -> None:
    """What stands in the table of those that are not here is what Flink listed."""
    found = {each for scopes, name in recorded() for each in left(scopes, name)}
    assert found == {each for row in LEFT for each in row.ids}
    assert all(row.why.endswith(".") for row in LEFT)
