"""What the service tells about itself: requests, pushes, and what became of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from collector.archiving import Archiving
from collector.history import History
from collector.store import MetricStore

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_BYTES = tuple(float(4**power) for power in range(4, 13))
UNROUTED = "unrouted"
"""The handler of a request that nothing handles; its path is anyone's to choose and so no label."""


class SelfMetrics:
    """
    The service's own figures, in a registry of their own; any thread.

    Args:
        store: Whose jobs and series are counted when the figures are read.
        history: Whose size likewise.
        archiving: Of which is told how it fares; None where there is no archive.
    """

    def __init__(self, store: MetricStore, history: History, archiving: Archiving | None = None) -> None:
        self._registry = CollectorRegistry()
        registry = self._registry
        prefix = "streamgauge_service"
        self.requests = Counter(
            f"{prefix}_requests", "Requests answered, by handler and status.", ["handler", "code"], registry=registry
        )
        self.request_seconds = Histogram(
            f"{prefix}_request_duration_seconds",
            "Time to answer a request.",
            ["handler"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.push_bytes = Histogram(
            f"{prefix}_push_size_bytes", "Length of a push's body.", buckets=_BYTES, registry=registry
        )
        self.push_seconds = Histogram(
            f"{prefix}_push_duration_seconds",
            "Time to take a push in, its body being there.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.frames = Counter(
            f"{prefix}_frames", "Frames of pushes that were taken in, by outcome.", ["outcome"], registry=registry
        )
        for outcome in ("accepted", "repeated", "late"):
            self.frames.labels(outcome)
        self.refused = Counter(
            f"{prefix}_pushes_refused", "Pushes refused, by the name of the error.", ["reason"], registry=registry
        )
        self.last_push = Gauge(
            f"{prefix}_last_push_timestamp_seconds",
            "When a push was last taken in, Unix time; 0 for never.",
            registry=registry,
        )
        self.last_failure = Gauge(
            f"{prefix}_last_push_failure_timestamp_seconds",
            "When a push was last refused, Unix time; 0 for never.",
            registry=registry,
        )
        self.scrape_series = Gauge(
            "streamgauge_scrape_series",
            "Series of the last scrape of a page, but for the service's own.",
            ["page"],
            registry=registry,
        )
        self.scrape_bytes = Gauge(
            "streamgauge_scrape_size_bytes",
            "Length of the last scrape of a page, uncompressed, but for the service's own.",
            ["page"],
            registry=registry,
        )
        self.scrapes_coarsened = Counter(
            "streamgauge_scrapes_coarsened",
            "Scrapes that were told less finely than asked, to stay within the greatest number of series.",
            ["page", "asked", "told"],
            registry=registry,
        )
        self._count("jobs", "Jobs held.", lambda: len(store.snapshot().jobs))
        self._count("applications", "Applications held.", lambda: len(store.snapshot().apps))
        self._count("series", "Values held: each column counts its vertex's subtasks.", lambda: _series(store))
        self._count("history_bytes", "Memory that the history of jobs and vertices takes.", lambda: history.nbytes)
        self._count(
            "history_left_out", "Jobs and vertices without a history, for there is no room.", lambda: history.left_out
        )
        if archiving is not None:
            registry.register(_ArchiveCollector(archiving))
        ProcessCollector(namespace=prefix, registry=registry)

    def _count(self, name: str, text: str, count: Callable[[], int]) -> None:
        Gauge(f"streamgauge_service_{name}", text, registry=self._registry).set_function(count)

    def collect(self) -> Iterator[Metric]:
        """
        Yield every family, as `prometheus_client.generate_latest` takes them.

        Without `_created` samples: they double the counters' series and say what the process' start time says.
        """
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


class _ArchiveCollector(Collector):
    def __init__(self, archiving: Archiving) -> None:
        self._archiving = archiving

    def collect(self) -> Iterator[Metric]:
        """Yield what is told of the archive, all of one moment."""
        told, prefix = self._archiving.figures(), "streamgauge_archive"
        for name, text, value in (
            ("runs", "Runs that the archive holds.", told.runs),
            ("size_bytes", "Size of the archive's database file or table.", told.size_bytes),
            ("pending_runs", "Ended runs that wait to be written.", told.pending),
            ("pending_bytes", "Memory that they take.", told.pending_bytes),
            (
                "last_write_timestamp_seconds",
                "When a run was last written, Unix time; 0 for never.",
                max(told.written_at_ms, 0) / 1000,
            ),
        ):
            yield GaugeMetricFamily(f"{prefix}_{name}", text, value)
        for name, text, count in (
            ("runs_written", "Runs written.", told.written),
            ("failures", "Times that the database did not answer.", told.failures),
            ("runs_lost", "Runs given up: too many waited, or the database refused them.", told.lost),
            ("runs_unread", "Runs that could not be read back at a start or a return.", told.unread),
        ):
            yield CounterMetricFamily(f"{prefix}_{name}", text, count)


def _series(store: MetricStore) -> int:
    return sum(job.series for job in store.snapshot().jobs.values())


class RequestMetrics:
    """
    ASGI middleware: counts and times every request by handler and status.

    A handler is a route, or, of the Flink REST, the resource that the scope names.
    """

    def __init__(self, app: ASGIApp, figures: SelfMetrics) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on; a fault inside counts as 500."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        started_ns = time.perf_counter_ns()
        try:
            await self._app(scope, receive, send_seen)
        finally:
            handler = scope.get("streamgauge.resource") or getattr(scope.get("route"), "path", "") or UNROUTED
            self._figures.requests.labels(handler, str(status)).inc()
            self._figures.request_seconds.labels(handler).observe((time.perf_counter_ns() - started_ns) / 1e9)
