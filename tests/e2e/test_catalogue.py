"""Every metric that a real driver's REST lists is in the catalogue, and is what the catalogue says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamgauge import catalogue, names
from tests.contract.catalogued import catalogued
from tests.e2e.conftest import Rest, eventually

pytestmark = pytest.mark.spark

FORMS: dict[catalogue.Type, str] = {
    "counter": r"\d+",
    "meter": r"NaN|\d+\.\d+(E-?\d+)?",
    "gauge": r"NaN|-?\d+(\.\d+)?(E-?\d+)?",
    "bool": "true|false",
    "string": r"\{.*\}",
}
"""Type → how its values are written."""

Told = tuple[catalogue.Scope, str, str]


def told(rest: Rest, jid: str) -> Iterator[Told]:
    """Scope, name and value of everything that the REST lists of a job, its driver and its executors."""
    for path, scopes in (
        (f"/jobs/{jid}/metrics", ("job",)),
        ("/jobmanager/metrics", ("cluster", "driver")),
        *((f"/taskmanagers/{each['id']}/metrics", ("executor",)) for each in rest.get("/taskmanagers")["taskmanagers"]),
    ):
        listed = ",".join(metric["id"] for metric in rest.get(path))
        for metric in rest.get(f"{path}?get={listed}"):
            scope = scopes[0] if catalogue.find(scopes[0], metric["id"]) is not None else scopes[-1]
            yield scope, metric["id"], metric["value"]
    for vertex in rest.get(f"/jobs/{jid}")["vertices"]:
        operators = {names.filtered(each) for each in vertex["name"].split(" -> ")}
        for name, values in rest.columns(jid, vertex["id"]).items():
            head, _, metric = name.partition(".")
            own = head in operators
            for value in values.values():
                yield ("operator", metric, value) if own else ("vertex", name, value)
        path = f"/jobs/{jid}/vertices/{vertex['id']}/jm-operator-metrics"
        listed = ",".join(metric["id"] for metric in rest.get(path))
        for metric in rest.get(f"{path}?get={listed}"):
            yield "coordinator", metric["id"].partition(f".{names.COORDINATOR}")[2], metric["value"]
    for driver in rest.get("/streamgauge/drivers")["drivers"]:
        for name, value in driver["hooks"].items():
            yield "hooks", name, str(value)


@pytest.fixture(scope="module")
def figures(attached: SparkSession, rest: Rest, tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """Of a query with a shuffle and a watermark that writes files, in its third batch or later."""
    folder: Path = tmp_path_factory.mktemp("catalogue")
    rows = attached.readStream.format("rate").option("rowsPerSecond", 50).load()
    counted = rows.withWatermark("timestamp", "1 second").groupBy("timestamp").count()
    written = counted.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = written.queryName("all metrics").start(str(folder / "rows"))

    def ran() -> bool:
        assert query.exception() is None
        return len([each for each in query.recentProgress if each["numInputRows"]]) >= 3

    try:
        eventually(ran, 120)

        def listed() -> list[Told]:
            job = rest.job("all metrics")
            found = [] if job is None else list(told(rest, job["jid"]))
            there = {(scope, name) for scope, name, _ in found}
            # The JobManager's figures are those of the latest driver. One that has just come has told none yet; a
            # script that has left so soon counts as there until it has been silent for three pushes and 10 s.
            return found if {("vertex", names.CURRENT_INPUT_WATERMARK), ("driver", names.HEAP_USED)} <= there else []

        return list(eventually(listed, 120))
    finally:
        query.stop()


def test_everything_is_in_the_catalogue(figures: list[Told]) -> None:
    """What is listed without being described would be a figure that nobody can read."""
    assert {(scope, name) for scope, name, _ in figures if not catalogued(scope, name)} == set()
    assert {scope for scope, *_ in figures} == {metric.scope for metric in catalogue.METRICS}


def test_values_are_of_their_types(figures: list[Told]) -> None:
    """As Flink writes them: whole numbers, doubles, NaN, true and false."""
    for scope, name, value in figures:
        metric = catalogue.find(scope, name)
        if metric is not None:
            assert re.fullmatch(FORMS[metric.type], value), (scope, name, metric.type, value)
