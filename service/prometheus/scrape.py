"""The two pages that Prometheus scrapes."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Annotated, Protocol

from fastapi import Query, Request
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from collector.store import MetricStore, Snapshot
from service.prometheus import exposition, flink
from service.prometheus.blocks import Blocks, KeptBlocks
from service.prometheus.granularity import Granularity, coarsening
from service.prometheus.negotiation import accepts_gzip, compressed, form
from service.prometheus.text import Exposition, TooManySeries
from service.self_metrics import SelfMetrics
from streamgauge.clock import Clock

METRICS, FLINK = "/metrics", "/metrics/flink"
DEFAULTS: dict[str, Granularity] = {METRICS: "operator", FLINK: "subtask"}
"""How finely each page tells what it has without a word. Flink's reporter tells every subtask."""

AT_ONCE = 2
"""Scrapes that are rendered at a time: each holds a page of up to some 100 MB, and pushes want the threads, too."""

_log = logging.getLogger("streamgauge.service")


class Expose(Protocol):
    """`exposition.expose` or `flink.expose`."""

    def __call__(
        self, exposition: Exposition, snapshot: Snapshot, now_ms: int, granularity: Granularity, blocks: Blocks
    ) -> None:
        """Add a snapshot to a page."""


class Page:
    """
    Renders one page of the store; any thread.

    Args:
        path: Under which figures and log call it.
        expose: What it tells.
        most: How many series it may have. One that would have more is told at the next coarser granularity, and so
            on; `job` has as many as there are.
        figures: Where its series are counted.
    """

    def __init__(self, path: str, expose: Expose, most: int, figures: SelfMetrics) -> None:
        self._path = path
        self._expose = expose
        self._most = most
        self._figures = figures
        self._kept = KeptBlocks()
        self._lock = threading.Lock()
        self._told: dict[Granularity, Granularity] = {}

    def render(self, snapshot: Snapshot, now_ms: int, asked: Granularity, openmetrics: bool) -> bytes:
        """
        Return the page, without OpenMetrics' end.

        Args:
            snapshot: What is exposed.
            now_ms: Wall time.
            asked: The granularity.
            openmetrics: Else the text format.
        """
        for told in coarsening(asked):
            page = Exposition(openmetrics, None if told == "job" else self._most)
            blocks = self._kept.begin()
            try:
                self._expose(page, snapshot, now_ms, told, blocks)
            except TooManySeries:
                continue
            break
        rendered = page.render()
        self._kept.end(blocks)
        self._figures.scrape_series.labels(self._path).set(page.series)
        self._figures.scrape_bytes.labels(self._path).set(len(rendered))
        self._note(asked, told)
        return rendered

    def _note(self, asked: Granularity, told: Granularity) -> None:
        if told != asked:
            self._figures.scrapes_coarsened.labels(self._path, asked, told).inc()
        with self._lock:
            before = self._told.get(asked, asked)
            self._told[asked] = told
        if told != before:
            # Once for each change: a scrape comes every few seconds.
            if told == asked:
                _log.warning("%s is told by %s again", self._path, asked)
            else:
                _log.warning(
                    "%s would have more than %s series by %s and is told by %s: raise --metrics-max-series, or ask for "
                    "granularity=%s",
                    self._path,
                    self._most,
                    asked,
                    told,
                    told,
                )


class Scrape:
    """
    Answers scrapes, each in a thread, for a large store takes a while; AT_ONCE at a time, and the others wait.

    Args:
        store: What is exposed.
        clock: Times the states of jobs.
        figures: The service's own, at the end of /metrics.
        most: Greatest number of series of each page.
    """

    def __init__(self, store: MetricStore, clock: Clock, figures: SelfMetrics, most: int) -> None:
        self._store = store
        self._clock = clock
        self._figures = figures
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._metrics = Page(METRICS, exposition.expose, most, figures)
        self._flink = Page(FLINK, flink.expose, most, figures)

    async def metrics(
        self, request: Request, granularity: Annotated[Granularity, Query()] = DEFAULTS[METRICS]
    ) -> Response:
        """Answer /metrics."""
        return await self._answer(request, self._metrics, granularity, self._figures)

    async def flink(self, request: Request, granularity: Annotated[Granularity, Query()] = DEFAULTS[FLINK]) -> Response:
        """Answer /metrics/flink."""
        return await self._answer(request, self._flink, granularity, CollectorRegistry())

    async def _answer(self, request: Request, page: Page, granularity: Granularity, own: Collector) -> Response:
        async with self._slots:
            return await run_in_threadpool(self._page, request, page, granularity, own)

    def _page(self, request: Request, page: Page, granularity: Granularity, own: Collector) -> Response:
        chosen = form(",".join(request.headers.getlist("accept")))
        text = page.render(self._store.snapshot(), self._clock.now_ms(), granularity, chosen.openmetrics)
        text += chosen.encode(own)
        headers = {"Vary": "Accept, Accept-Encoding"}
        if accepts_gzip(",".join(request.headers.getlist("accept-encoding"))):
            text = compressed(text)
            headers["Content-Encoding"] = "gzip"
        return Response(text, headers=headers, media_type=chosen.content_type)
