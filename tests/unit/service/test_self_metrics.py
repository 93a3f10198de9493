"""What the service tells about itself."""

from __future__ import annotations

from typing import Any

import pytest

from service.app import create_app
from service.config import Config
from service.flink import rest


def requests(client: Any) -> dict[str, float]:
    prefix = "streamgauge_service_requests_total"
    lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith(prefix)]
    return {line[len(prefix) :].rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_requests_are_counted_by_handler_and_status(client: Any) -> None:
    """A handler is a route, not a path: ids and nonsense make no series."""
    main = "9e283f61da6ac64998d5e31ca6520bee"
    for path in (f"/jobs/{main}", f"/v1/jobs/{'0' * 32}", "/jobs/xyz", "/nope", "/nope/again", "/-/healthy"):
        client.get(path)
    client.push(b"")
    assert requests(client) == {
        '{code="200",handler="/jobs/:jobid"}': 1.0,
        '{code="404",handler="/jobs/:jobid"}': 1.0,
        '{code="400",handler="/jobs/:jobid"}': 1.0,
        '{code="404",handler="unrouted"}': 2.0,
        '{code="200",handler="/-/healthy"}': 1.0,
        '{code="400",handler="/push/v1/frames"}': 1.0,
    }


def test_a_fault_counts_as_500(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its answer is made further out."""

    def broken(_query: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setitem(rest.RESOURCES, "/jobs", broken)
    assert client.get("/jobs").status_code == 500
    assert requests(client)['{code="500",handler="/jobs"}'] == 1.0


def test_two_services_in_one_process_count_apart(client: Any, store: Any, clock: Any) -> None:
    """Nothing of it is global."""
    other = type(client)(create_app(Config(), store, clock))
    other.get("/-/healthy")
    assert requests(client) == {}
