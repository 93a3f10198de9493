"""Drivers and what the hooks in them cost: /streamgauge/drivers, which is ours, in Flink's manner."""

from __future__ import annotations

from typing_extensions import TypedDict

from service.cluster import applications
from service.flink.ids import Id
from service.flink.query import Query
from streamgauge.wire import Scalar

Driver = TypedDict(
    "Driver",
    {
        "id": str,
        "name": str,
        "host": str,
        "spark-version": str,
        "hooks-version": str,
        "start-time": int,
        "last-frame": int,
        "silent": bool,
        "jobs": list[Id],
        "hooks": dict[str, Scalar],
    },
)


class Drivers(TypedDict):
    """The body of /streamgauge/drivers."""

    drivers: list[Driver]


def overview(query: Query) -> Drivers:
    """Answer /streamgauge/drivers: every driver that is held, the latest started first, with its hooks' own figures."""
    jobs: dict[str, list[str]] = {}
    for job in query.snapshot.jobs.values():
        jobs.setdefault(job.app.id, []).append(job.job.jid)
    return {
        "drivers": [
            {
                "id": app.app.id,
                "name": app.app.name,
                "host": app.app.host,
                "spark-version": app.app.spark_version,
                "hooks-version": app.app.hooks_version,
                "start-time": app.app.start_ms,
                "last-frame": app.heard_ms,
                "silent": app.suspended,
                "jobs": jobs.get(app.app.id, []),
                "hooks": dict(app.hooks),
            }
            for app in applications(query.snapshot)
        ]
    }
