"""Drivers and what the hooks in them cost: /streamgauge/drivers, which is ours, in Flink's manner."""

from __future__ import annotations

from service.cluster import applications
from service.flink.query import Query


def overview(query: Query) -> dict[str, object]:
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
