"""Drivers and their hooks' own figures."""

from __future__ import annotations

from typing import Any

from service.flink import drivers
from service.flink.query import Query


def test_drivers_tell_what_their_hooks_cost(states: Any) -> None:
    """The latest started first, a silent one too; each with its jobs, and with what its hooks have told only."""
    job = states.job()
    speaking = states.app(id=job.app.id, start_ms=2_000, hooks={"events": 12, "acknowledgedAgeMs": 1_001})
    silent = states.app(id="b", start_ms=1_000, suspended=True)
    body: Any = drivers.overview(Query.parse(states.snapshot(silent, speaking, job), 9_000, {}, b""))
    first, second = body["drivers"]
    assert first == {
        "id": job.app.id,
        "name": "flights",
        "host": "driver.test",
        "spark-version": "4.3.0",
        "hooks-version": "0.1.0",
        "start-time": 2_000,
        "last-frame": 5_000,
        "silent": False,
        "jobs": [job.job.jid],
        "hooks": {"events": 12, "acknowledgedAgeMs": 1_001},
    }
    assert (second["id"], second["silent"], second["jobs"], second["hooks"]) == ("b", True, [], {})
