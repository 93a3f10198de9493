"""A secret that a user has put anywhere is in no push and in no answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
import urllib3

from service.flink.rest import RESOURCES
from spark_hooks.redaction import REPLACEMENT
from streamgauge import codec
from tests.e2e.conftest import Rest, eventually
from tests.e2e.relay import Relay, relaying
from tests.e2e.secrets_driver import MARK, SETTINGS

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
OTHERS = ("/metrics", "/metrics/flink", "/openapi.json", "/", "/health")


def paths(rest: Rest, app: str) -> list[str]:
    """Every resource of every job, vertex and executor of an application."""
    jobs = [job["jid"] for job in rest.get("/jobs/overview")["jobs"]]
    jobs = [jid for jid in jobs if rest.get(f"/jobs/{jid}")["streamgauge"]["application"] == app]
    executors = [each["id"] for each in rest.get("/taskmanagers")["taskmanagers"] if each["id"].startswith(app)]
    given = {
        ":jobid": jobs,
        ":taskmanagerid": [quote(each, safe="") for each in executors],
        ":applicationid": [app],
        ":subtaskindex": ["0"],
        ":attempt": ["0"],
        ":checkpointid": ["0", "1"],
    }
    found = []
    for resource in RESOURCES:
        partial = [resource]
        for parameter, values in given.items():
            partial = [path.replace(parameter, value) for path in partial for value in (values or ["x"])]
        for path in partial:
            vertices = [""]
            if ":vertexid" in path:
                vertices = [each["id"] for each in rest.get(f"/jobs/{path.split('/')[2]}")["vertices"]]
            for vertex in vertices:
                filled = path.replace(":vertexid", vertex)
                found.append("/".join("0" * 32 if part.startswith(":") else part for part in filled.split("/")))
    return found


def answers(url: str, asked: list[str]) -> dict[str, str]:
    """The text of every answer, and of those that ask for every metric that an answer lists."""
    http = urllib3.PoolManager(timeout=10.0, retries=False)
    found = {}
    for path in asked:
        found[path] = http.request("GET", url + path).data.decode()
        if path.endswith("/metrics") and path != "/metrics":
            ids = ",".join(quote(each["id"]) for each in http.request("GET", url + path).json())
            found[f"{path}?get"] = http.request("GET", f"{url}{path}?get={ids[:60_000]}").data.decode()
    http.clear()
    return found


@pytest.fixture(scope="module")
def told(service: str, rest: Rest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Relay, dict[str, str]]:
    """What a job with secrets has pushed until it ended, and what the service tells of it while it runs."""
    folder = tmp_path_factory.mktemp("secrets")
    with relaying(service) as relay, (folder / "stderr").open("w") as stderr:
        command = [sys.executable, *(f"-W{each}" for each in sys.warnoptions), "-m", "tests.e2e.secrets_driver"]
        process = subprocess.Popen(
            [*command, relay.url, str(folder)],
            cwd=ROOT,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        with process:
            try:
                assert process.stdout is not None
                said = []
                while not said or not said[-1].startswith("done"):
                    said.append(process.stdout.readline())
                    assert said[-1], (folder / "stderr").read_text()
                # The query fails by what it raises, and the one that writes does write.
                assert said == ["StreamingQueryException\n", "done True\n"]
                app = codec.decode(relay.bodies[0])[0].app.id

                def failed() -> bool:
                    jobs = rest.get("/jobs/overview")["jobs"]
                    return {"failing"} <= {job["name"] for job in jobs if job["state"] == "FAILED"}

                eventually(failed)
                found = answers(service, [*paths(rest, app), *OTHERS])
                process.communicate("\n", timeout=60)
            finally:
                process.kill()
    return relay, found


def test_no_push_has_a_secret(told: tuple[Relay, dict[str, str]]) -> None:
    """Neither in its bytes nor in what they say."""
    relay, _ = told
    assert len(relay.bodies) > 3
    for body in relay.bodies:
        assert MARK.encode() not in body
        assert MARK not in str(codec.decode(body))


def test_no_answer_has_a_secret(told: tuple[Relay, dict[str, str]]) -> None:
    """Of any resource, of the scrapes, of the page."""
    _, found = told
    assert [path for path, text in found.items() if MARK in text] == []


def test_what_had_a_secret_was_told_without_it(told: tuple[Relay, dict[str, str]]) -> None:
    """What is left out altogether would prove nothing."""
    relay, found = told
    frames = [frame for body in relay.bodies for frame in codec.decode(body)]
    shared = next(frame.configuration for frame in frames if frame.job is None and frame.configuration)
    whole = ("spark.sql.catalog.pg.url", "spark.driver.extraClassPath")
    assert {shared[name] for name in SETTINGS if name not in whole} == {REPLACEMENT}
    assert shared["spark.sql.catalog.pg.url"].replace(REPLACEMENT, "") == "jdbc:postgresql://me:@h/db"
    environment = next(frame.environment for frame in frames if frame.environment)
    assert {f"-Dmy.secret={REPLACEMENT}", "-Dplain=seen"} <= set(environment.java_options)
    assert any(entry.startswith("/nowhere/password=") for entry in environment.class_path)
    assert {frame.app.name for frame in frames} == {f"secrets token={REPLACEMENT}"}
    jobs = {frame.job.name: frame for frame in frames if frame.job}
    assert {f"written token={REPLACEMENT}", "failing", f"load password={REPLACEMENT}"} <= jobs.keys()
    own = next(frame.configuration for frame in frames if frame.job and frame.configuration)
    assert (own["spark.y.token"], own["spark.y.plain"]) == (REPLACEMENT, "seen")
    assert own["spark.y.endpoint"] == f"https://me:{REPLACEMENT}@h/"
    descriptions = [
        operator.description
        for frame in frames
        if frame.plan
        for vertex in frame.plan.vertices
        for operator in vertex.operators
    ]
    assert any(f"user=a&password={REPLACEMENT}" in each for each in descriptions)
    assert any(each.startswith(f"CollectMetrics rows password={REPLACEMENT}") for each in descriptions)
    failure = next(frame.job.failure for frame in frames if frame.job and frame.job.failure)
    assert f"no login with password={REPLACEMENT}, nor with {REPLACEMENT}" in failure
    assert any(path.endswith("/jobmanager/config") and REPLACEMENT in text for path, text in found.items())
