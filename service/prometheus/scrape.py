"""The two pages that Prometheus scrapes."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from fastapi import Query
from prometheus_client import generate_latest
from starlette.responses import Response

from collector.store import MetricStore
from service.prometheus import exposition, flink
from service.prometheus.text import CONTENT_TYPE
from service.self_metrics import SelfMetrics
from streamgauge.clock import Clock

Granularity = Literal["vertex", "subtask"]
GRANULARITIES: tuple[str, ...] = get_args(Granularity)
"""The first is what is told without a word."""


class Scrape:
    """
    Answers scrapes; any thread, and a large store takes a while, so not in the event loop.

    Args:
        store: What is exposed.
        clock: Times the states of jobs.
        figures: The service's own, at the end of /metrics.
    """

    def __init__(self, store: MetricStore, clock: Clock, figures: SelfMetrics) -> None:
        self._store = store
        self._clock = clock
        self._figures = figures

    def metrics(self, granularity: Annotated[Granularity, Query()] = "vertex") -> Response:
        """Answer /metrics; `granularity=subtask` gives each subtask its series."""
        text = exposition.expose(self._store.snapshot(), self._clock.now_ms(), granularity == "subtask")
        return Response(text + generate_latest(self._figures), media_type=CONTENT_TYPE)

    def flink(self) -> Response:
        """Answer /metrics/flink."""
        return Response(flink.expose(self._store.snapshot(), self._clock.now_ms()), media_type=CONTENT_TYPE)
