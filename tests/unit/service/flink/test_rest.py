"""Paths and methods are resolved as Flink's router resolves them."""

from __future__ import annotations

from typing import Any

import pytest

from collector.store import MetricStore
from service.flink.rest import RESOURCES, FlinkRest
from streamgauge.clock import ManualClock

JOB = "0" * 32


@pytest.fixture
def rest() -> FlinkRest:
    return FlinkRest(MetricStore(), ManualClock())


@pytest.mark.parametrize("resource", RESOURCES)
def test_every_resource_resolves_to_itself(rest: FlinkRest, resource: str) -> None:
    """With its parameters bound, and the same under /v1, with doubled and trailing slashes."""
    names = [segment[1:] for segment in resource.split("/") if segment.startswith(":")]
    path = resource.replace(":", "some-")
    found = (resource, {name: f"some-{name}" for name in names})
    assert [rest.resolve(each) for each in (path, f"/v1{path}", path.replace("/", "//"), f"{path}/")] == [found] * 4


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v2/overview", "/v1/v1/overview", "/overview/x", f"/jobs/{JOB}/vertices", "/taskmanagers/:/x"],
)
def test_unknown_path_resolves_to_nothing(rest: FlinkRest, path: str) -> None:
    """A part of a path is no path."""
    assert rest.resolve(path) is None


def test_literal_goes_before_parameter(rest: FlinkRest) -> None:
    """/jobs/overview is no job of that name, but /jobs/overview/plan can only be one's plan."""
    assert rest.resolve("/jobs/overview") == ("/jobs/overview", {})
    assert rest.resolve("/jobs/overview/plan") == ("/jobs/:jobid/plan", {"jobid": "overview"})


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("path", ["/overview", "/nope"])
def test_other_methods_are_not_found(client: Any, method: str, path: str) -> None:
    """Whether the path is known or not; and without CORS, so no other site's page may try."""
    answer = client.request(method, path)
    assert answer.status_code == 404
    assert method == "HEAD" or answer.json() == {"errors": [f"Not found: {path}"]}
    assert "access-control-allow-origin" not in answer.headers


def test_body_of_a_get_is_ignored(client: Any) -> None:
    """The flink command sends {} with its GETs."""
    answer = client.request("GET", "/v1/jobs/overview", content=b"{}", headers={"Content-Type": "application/json"})
    assert len(answer.json()["jobs"]) == 6


def test_percent_encoding_is_decoded(client: Any) -> None:
    """A TaskManager's id has a colon."""
    encoded = client.get("/taskmanagers/127.0.0.1%3A33081-ee3b94")
    assert encoded.json()["id"] == "127.0.0.1:33081-ee3b94"
