"""Whatever would change a cluster, or is switched off in it, is not there: as in a Flink without those handlers."""

from __future__ import annotations

from typing import Any

import pytest

JOB = "/jobs/9e283f61da6ac64998d5e31ca6520bee"
TRIGGER = "0123456789abcdef0123456789abcdef"
CHANGES: list[tuple[str, str]] = [
    ("POST", f"/applications/{TRIGGER}/cancel"),
    ("DELETE", "/cluster"),
    ("DELETE", f"/datasets/{TRIGGER}"),
    ("DELETE", "/jars/a.jar"),
    ("POST", "/jars/a.jar/plan"),
    ("POST", "/jars/a.jar/run"),
    ("POST", "/jars/a.jar/run-application"),
    ("POST", "/jars/upload"),
    ("POST", "/jobmanager/profiler"),
    ("POST", "/jobs"),
    ("PATCH", f"{JOB}?mode=cancel"),
    ("PATCH", f"{JOB}?mode=foo"),
    ("POST", f"{JOB}/checkpoints"),
    ("PATCH", f"{JOB}/clientHeartbeat"),
    ("POST", f"{JOB}/coordinators/uid"),
    ("PATCH", f"{JOB}/rescaling?parallelism=2"),
    ("PUT", f"{JOB}/resource-requirements"),
    ("POST", f"{JOB}/savepoints"),
    ("POST", f"{JOB}/stop"),
    ("POST", "/savepoint-disposal"),
    ("POST", "/taskmanagers/a/profiler"),
]
"""Every row of Flink's list of endpoints whose method is not GET."""

UNSERVED = [
    # web.submit.enable: false
    "/jars",
    "/jars/a.jar/plan",
    # web.cancel.enable: false; in these a GET would cancel.
    f"{JOB}/yarn-cancel",
    f"{JOB}/yarn-stop",
    # rest.profiling.enabled: false
    "/jobmanager/profiler",
    "/jobmanager/profiler/a.html",
    "/taskmanagers/a/profiler",
    "/taskmanagers/a/profiler/a.html",
]
"""Every GET of it that is switched off."""


@pytest.mark.parametrize("prefix", ["", "/v1"])
@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_what_would_change_a_cluster_is_not_found(client: Any, prefix: str, method: str, path: str) -> None:
    """404 'Not found', whatever the body, and the job is as it was."""
    got = client.request(method, prefix + path, content=b"{}")
    assert (got.status_code, got.json()) == (404, {"errors": [f"Not found: {prefix}{path.partition('?')[0]}"]})
    assert client.get(f"{JOB}/status").json() == {"status": "RUNNING"}


@pytest.mark.parametrize("path", UNSERVED)
def test_what_is_switched_off_is_a_file_that_is_missing(client: Any, path: str) -> None:
    """A GET that no handler takes is one for Flink's file server."""
    got = client.get(path)
    assert (got.status_code, got.json()) == (404, {"errors": [f"Unable to load requested file {path}."]})
    assert client.get(f"{JOB}/status").json() == {"status": "RUNNING"}


def test_config_says_that_it_is_switched_off(client: Any) -> None:
    """The dashboard hides its buttons by it."""
    features = client.get("/config").json()["features"]
    assert features == {"web-submit": False, "web-cancel": False, "web-rescale": False, "web-history": False}
