"""/openapi.json: whole, valid, and in step with what it tells of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import schemathesis
from fastapi.routing import APIRoute

from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from service.errors import JSON
from service.flink.parameters import PATH, READ_BY
from service.flink.query import Query
from service.flink.rest import OURS, RESOURCES
from service.openapi.document import document
from service.openapi.reads import bodies
from streamgauge.clock import ManualClock
from streamgauge.errors import QueryError
from tests.conftest import APP, EXECUTORS, Client, recording
from tests.contract.recordings import recordings

MAIN = recording("main__job.json")
KNOWN = {
    "applicationid": APP.id,
    "attempt": "0",
    "checkpointid": "47",
    "filename": "spark.log",
    "jobid": MAIN["jid"],
    "name": "main.js",
    "rescaleuuid": "0" * 32,
    "subtaskindex": "0",
    "taskmanagerid": EXECUTORS[0],
    "triggerid": "0" * 32,
    "vertexid": MAIN["vertices"][1]["id"],
}


class Asked(Mapping[str, list[str]]):
    """Query parameters that note which of them are read; none is there."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> list[str]:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def operations(told: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in told["paths"].items():
        for method in ("get", "post"):
            if method in item:
                yield path, item[method]


def test_it_is_served_as_everything_else(client: Client) -> None:
    """JSON, open to other origins, and what the document is made of."""
    got = client.get("/openapi.json")
    assert (got.status_code, got.headers["content-type"]) == (200, JSON)
    assert got.headers["access-control-allow-origin"] == "*"
    assert got.json() == document()


@pytest.mark.parametrize("guarded", [False, True], ids=["open", "guarded"])
def test_it_is_valid(guarded: bool) -> None:
    """OpenAPI 3.1, by its own schema; every reference leads somewhere."""
    told = document(guarded, guarded)
    schemathesis.openapi.from_dict(told).validate()
    assert told["openapi"] == "3.1.0"


def test_every_path_is_told_and_nothing_else() -> None:
    """The routes of the application and the resources of the Flink REST."""
    app = create_app(Config(), MetricStore(), ManualClock())
    routes = {route.path for route in app.routes if isinstance(route, APIRoute)}
    resources = {re.sub(r":(\w+)", r"{\1}", path) for path in RESOURCES}
    assert set(document()["paths"]) == routes | resources


def test_every_operation_has_a_name_of_its_own_and_a_summary() -> None:
    """By which generated clients call it."""
    told = list(operations(document()))
    assert len({operation["operationId"] for _, operation in told}) == len(told)
    assert all(operation["summary"] for _, operation in told)


@pytest.mark.parametrize("resource", bodies())
def test_query_parameters_are_those_that_are_read(resource: str, store: MetricStore) -> None:
    """A handler reads what the document says that it reads, no more and no less."""
    asked = Asked()
    path = {name: KNOWN[name] for name in PATH if f":{name}" in resource}
    try:
        RESOURCES[resource](Query(store.snapshot(), 0, path, asked))
    except QueryError as error:
        # Where no run was before there is nothing to compare with, and that is the answer.
        if resource != "/jobs/:jobid/compare":
            pytest.fail(f"the store of the tests has nothing to answer {resource} from: {error}")
    assert asked.names == set(READ_BY.get(resource, ()))


def test_no_parameter_is_told_of_a_resource_that_flink_has_not() -> None:
    """A path that is misspelt in the table would tell nothing."""
    assert set(READ_BY) - OURS <= {recording.resource for recording in recordings()}
    assert set(RESOURCES) >= OURS


@pytest.mark.parametrize("resource", [path for path in RESOURCES if ":" in path])
def test_malformed_path_is_refused_where_it_is_told(resource: str, client: Client) -> None:
    """400 of a parameter that does not parse is in the document exactly where it is answered."""
    for name in PATH:
        if f":{name}" not in resource:
            continue
        path = resource
        for other in PATH:
            path = path.replace(f":{other}", "%00" if other == name else KNOWN[other])
        assert (client.get(path).status_code == 400) == PATH[name].checked, path


def test_objects_are_closed() -> None:
    """An object has the keys that are told and no others, unless its keys are data."""
    for name, schema in document()["components"]["schemas"].items():
        assert schema["additionalProperties"] is False or "properties" not in schema, name


def test_tokens_are_told_where_they_are_asked_for() -> None:
    """Reads take the read token in either form, pushes theirs, probes none."""
    told = dict(operations(document(reads_guarded=True, pushes_guarded=True)))
    assert told["/overview"]["security"] == [{"bearer": []}, {"basic": []}]
    assert told["/push/v1/frames"]["security"] == [{"push": []}]
    assert told["/-/healthy"]["security"] == []
    assert "401" in told["/overview"]["responses"]
    assert "401" not in told["/-/healthy"]["responses"]
    assert not any("security" in operation and operation["security"] for _, operation in operations(document()))


@pytest.mark.parametrize("path", document()["paths"])
def test_a_read_without_a_token_is_refused_where_it_is_told(path: str, store: MetricStore, clock: ManualClock) -> None:
    """401 of a service with a read token, and that the document of such a service says so."""
    guarded = Client(create_app(Config(read_token="secret"), store, clock))
    operation = document(reads_guarded=True)["paths"][path].get("get")
    if operation is not None:
        asked = re.sub(r"\{(\w+)\}", lambda name: KNOWN[name[1]], path)
        assert (guarded.get(asked).status_code == 401) == bool(operation["security"])


def test_a_push_says_when_to_come_back() -> None:
    """Retry-After on what is answered when too much comes at once."""
    answers = dict(operations(document()))["/push/v1/frames"]["responses"]
    assert {status for status, answer in answers.items() if "Retry-After" in answer.get("headers", {})} == {
        "429",
        "503",
    }
    assert set(answers) == {"202", "400", "401", "403", "408", "409", "413", "414", "415", "429", "503"}
