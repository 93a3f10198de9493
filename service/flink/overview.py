"""The cluster at a glance: /config, /overview and /datasets."""

from __future__ import annotations

import time
from collections import Counter

from typing_extensions import TypedDict

from service.cluster import connected, executors, free_slots
from service.config import REFRESH_INTERVAL_MS
from service.flink.query import Query
from streamgauge.version import __version__
from streamgauge.wire import ENDED_STATES

FLINK_VERSION = "2.3.0"
"""Whose REST this is; clients choose by it what they ask for."""
_REVISION = f"streamgauge-{__version__}"

Features = TypedDict("Features", {"web-submit": bool, "web-cancel": bool, "web-rescale": bool, "web-history": bool})
DashboardConfig = TypedDict(
    "DashboardConfig",
    {
        "refresh-interval": int,
        "timezone-name": str,
        "timezone-offset": int,
        "flink-version": str,
        "flink-revision": str,
        "features": Features,
    },
)
ClusterOverview = TypedDict(
    "ClusterOverview",
    {
        "taskmanagers": int,
        "slots-total": int,
        "slots-available": int,
        "jobs-running": int,
        "jobs-finished": int,
        "jobs-cancelled": int,
        "jobs-failed": int,
        "flink-version": str,
        "flink-commit": str,
    },
)


class DataSet(TypedDict):
    """A result that Flink keeps between jobs."""

    id: str
    isComplete: bool


class DataSets(TypedDict):
    """The body of /datasets."""

    dataSets: list[DataSet]


def config(_query: Query) -> DashboardConfig:
    """Answer /config. Whatever would change a job is switched off."""
    local = time.localtime()
    return {
        "refresh-interval": REFRESH_INTERVAL_MS,
        "timezone-name": local.tm_zone,
        "timezone-offset": local.tm_gmtoff * 1000,
        "flink-version": FLINK_VERSION,
        "flink-revision": _REVISION,
        "features": {"web-submit": False, "web-cancel": False, "web-rescale": False, "web-history": False},
    }


def overview(query: Query) -> ClusterOverview:
    """Answer /overview. As in Flink, every job that has not ended counts as running."""
    known = executors(connected(query.snapshot))
    live = Counter(state.state for state in query.snapshot.jobs.values())
    running = sum(count for state, count in live.items() if state not in ENDED_STATES)
    ended = live + Counter(entry.state for entry in query.archived_jobs())
    return {
        "taskmanagers": len(known),
        "slots-total": sum(executor.slots for executor in known),
        "slots-available": sum(free_slots(executor) for executor in known),
        "jobs-running": running,
        "jobs-finished": ended["FINISHED"],
        "jobs-cancelled": ended["CANCELED"],
        "jobs-failed": ended["FAILED"],
        "flink-version": FLINK_VERSION,
        "flink-commit": _REVISION,
    }


def datasets(_query: Query) -> DataSets:
    """Answer /datasets: Spark's caches belong to their application, none is kept between jobs."""
    return {"dataSets": []}
