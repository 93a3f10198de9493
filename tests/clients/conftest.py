"""A service with a real Spark job's queries in it, for Flink's own clients to read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients import driver
from tests.e2e.conftest import Rest, eventually, serving
from tests.programs import program

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def service() -> Iterator[str]:
    """The URL of the service that the driver pushes to."""
    with serving("--port", "0") as url:
        yield url


@dataclass(frozen=True)
class Jobs:
    """
    The driver's queries as the service tells of them.

    Args:
        rest: Reads the service.
        ids: Query name → jid, of all of driver.NAMES.
    """

    rest: Rest
    ids: dict[str, str]

    def detail(self, name: str) -> dict[str, Any]:
        """Return /jobs/:jobid of one."""
        body: dict[str, Any] = self.rest.get(f"/jobs/{self.ids[name]}")
        return body

    def vertices(self, name: str) -> list[dict[str, Any]]:
        """Return the vertices of one, sources first."""
        found: list[dict[str, Any]] = self.detail(name)["vertices"]
        return found


@pytest.fixture(scope="package")
def jobs(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """A running driver, and its queries once each has met its fate and the service was told so."""
    folder = tmp_path_factory.mktemp("clients")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMGAUGE_")}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(folder / "local")}
    program("java")
    command = [sys.executable, "-m", "tests.clients.driver", service, str(folder)]
    pipe = subprocess.PIPE
    rest = Rest(service)
    with (
        Path(folder, "stderr").open("w") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=errors, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", Path(folder, "stderr").read_text()[-2000:]
            expected = dict.fromkeys((driver.FLOWS, driver.STILL), "RUNNING")
            expected |= {driver.FINISHED: "FINISHED", driver.FAILED: "FAILED", driver.STOPPED: "CANCELED"}

            def states() -> dict[str, str]:
                return {job["name"]: job["state"] for job in rest.get("/jobs/overview")["jobs"]}

            eventually(lambda: states() == expected)
            yield Jobs(rest, {job["name"]: job["jid"] for job in rest.get("/jobs/overview")["jobs"]})
            process.communicate("\n", timeout=60)
            assert process.returncode == 0
        finally:
            process.kill()
            rest.close()
