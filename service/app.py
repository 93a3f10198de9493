"""create_app: where configuration, store and clock become an application."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import partial

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from collector.archive import Archive
from collector.archiving import Archiving
from collector.history import History
from collector.ingest import Ingest
from collector.limits import Limits
from collector.liveness import Liveness
from collector.retention import Keep, Retention
from collector.store import MetricStore
from service.config import SWEEP_INTERVAL_S, Config
from service.doors import Doors, Hosts
from service.errors import answer, internal, refusal, unrouted
from service.flink.rest import FlinkRest
from service.health import Health
from service.openapi.document import OpenApi
from service.openapi.own import OPENAPI_PATH
from service.prometheus.scrape import FLINK, METRICS, Scrape
from service.push import Push
from service.self_metrics import RequestMetrics, SelfMetrics
from service.sweeps import Sweep, run_sweeps
from service.web.site import FILES, INDEX, Site
from streamgauge.clock import Clock
from streamgauge.errors import CollectorError
from streamgauge.wire import PUSH_PATH


def create_app(
    config: Config, store: MetricStore, clock: Clock, history: History | None = None, archive: Archive | None = None
) -> FastAPI:
    """
    Build the service: pushes, Prometheus, probes, /openapi.json, and the Flink REST for every other path.

    Args:
        config: Token, hosts and limits.
        store: Written by pushes and sweeps, read by all else.
        clock: Times pushes, silence and answers.
        history: Of `store`; sampled by the sweeps. One of its own where none is given.
        archive: Where ended jobs go, and are read from; none where None. The caller closes it.

    The application drives its sweeps from startup to shutdown; the store is in memory, so run it in one process.
    """
    history = history or History(store, clock)
    keep = Keep()
    archiving = None if archive is None else Archiving(archive, store, history, clock, keep)
    figures = SelfMetrics(store, history, archiving)
    health = Health()
    ingest = Ingest(store, clock, Limits(body_bytes=config.max_push_bytes))
    push = Push(config, ingest, clock, figures)
    sweeps = (Liveness(store, clock).sweep, Retention(store, clock, keep).sweep, history.sweep)
    app = FastAPI(
        lifespan=partial(_lifespan, health, sweeps, archiving),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.post(PUSH_PATH)(push.__call__)
    scrape = Scrape(store, clock, figures, config.metrics_max_series)
    for path, page in ((METRICS, scrape.metrics), (FLINK, scrape.flink)):
        app.api_route(path, methods=["GET", "HEAD"])(page)
    app.get("/-/healthy")(health.healthy)
    app.get("/-/ready")(health.readiness)
    app.get(OPENAPI_PATH)(OpenApi(bool(config.read_token), bool(config.push_token)).__call__)
    site = Site()
    app.api_route(INDEX, methods=["GET", "HEAD"])(site.index)
    app.api_route(FILES, methods=["GET", "HEAD"])(site.file)
    app.mount("", FlinkRest(store, clock, history, archive))
    app.add_middleware(Doors, hosts=Hosts(config), read_token=config.read_token)
    app.add_middleware(RequestMetrics, figures=figures)
    for kind in (CollectorError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _failure)
    return app


@contextlib.asynccontextmanager
async def _lifespan(
    health: Health, sweeps: Sequence[Sweep], archiving: Archiving | None, _app: FastAPI
) -> AsyncIterator[None]:
    stopped = asyncio.Event()

    def ended(task: asyncio.Task[None]) -> None:
        if not stopped.is_set():
            health.fault = f"the sweeps have stopped: {task.exception()!r}"

    rounds = [sweeps]
    if archiving is not None:
        await run_in_threadpool(archiving.restore)
        # Apart from the others, which must not wait for a database.
        rounds.append([archiving.sweep])
    tasks = [asyncio.create_task(run_sweeps(each, SWEEP_INTERVAL_S, stopped)) for each in rounds]
    for task in tasks:
        task.add_done_callback(ended)
    health.ready = True
    try:
        yield
    finally:
        health.ready = False
        stopped.set()
        await asyncio.wait(tasks)
        if archiving is not None:
            # What ended in the last second; the sample of its end first.
            for last in (*sweeps, archiving.finish):
                await run_in_threadpool(last)


def _failure(request: Request, error: Exception) -> Response:
    match error:
        case CollectorError():
            return answer(error)
        case RequestValidationError():
            return refusal(400, *(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()))
        case HTTPException(status_code=404):
            # The target was '*', or no path at all.
            return unrouted(request.method, request.scope["path"])
        case HTTPException():
            return refusal(error.status_code, error.detail)
        case _:
            return internal()
