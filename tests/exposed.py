"""A page that Prometheus scrapes, as text, without the service around it."""

from __future__ import annotations

from collector.store import Snapshot
from service.prometheus import exposition, flink
from service.prometheus.blocks import Blocks
from service.prometheus.granularity import Granularity
from service.prometheus.text import Exposition

NOW_MS = 5_000


def idiomatic(
    snapshot: Snapshot, granularity: Granularity = "operator", now_ms: int = NOW_MS, openmetrics: bool = False
) -> str:
    """What of /metrics tells the store."""
    page = Exposition(openmetrics)
    exposition.expose(page, snapshot, now_ms, granularity, Blocks())
    return page.render().decode()


def flinks(
    snapshot: Snapshot, granularity: Granularity = "subtask", now_ms: int = NOW_MS, openmetrics: bool = False
) -> str:
    """/metrics/flink, without OpenMetrics' end."""
    page = Exposition(openmetrics)
    flink.expose(page, snapshot, now_ms, granularity, Blocks())
    return page.render().decode()
