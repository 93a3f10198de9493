"""POST /push/v1/frames: what the hooks send comes in here."""

from __future__ import annotations

import asyncio
import re
import time

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from collector.ingest import Ingest, Outcomes
from service.config import BODY_TIMEOUT_S, PUSH_BYTES_AT_ONCE, PUSHES_AT_ONCE, THREAD_FROM_BYTES, Config
from service.doors import check_origin, check_token
from service.errors import JSON, BodyTimeout, TooManyPushes
from service.self_metrics import SelfMetrics
from streamgauge.clock import Clock
from streamgauge.errors import CollectorError, FrameTooLarge, MalformedFrame, WrongType
from streamgauge.wire import CONTENT_TYPE

_LENGTH = re.compile(r"[0-9]{1,19}")
_RETRY_AFTER_S = 1
"""A push takes milliseconds, so a place is free soon."""


class Push:
    """
    Takes pushes in: checks who sends and how, reads the body within its bounds, hands it to the collector.

    Not thread safe: requests come from the event loop. Bodies from THREAD_FROM_BYTES on are taken in by a
    worker thread, and so are smaller ones while one of those is under way: the store's lock is its until it ends,
    and the event loop must not wait for it.

    Args:
        config: Token and limits.
        ingest: The collector's door.
        figures: Where outcomes are counted.
    """

    def __init__(self, config: Config, ingest: Ingest, clock: Clock, figures: SelfMetrics) -> None:
        self._config = config
        self._ingest = ingest
        self._clock = clock
        self._figures = figures
        self._under_way = 0
        self._bytes = 0
        self._in_threads = 0

    async def __call__(self, request: Request) -> Response:
        """
        Take one push in and return 202 with the outcomes' counts.

        Raises:
            CollectorError: it is refused; the store is as it was before. Counted by name.
        """
        try:
            outcomes = await self._take(request)
        except CollectorError as error:
            self._figures.refused.labels(type(error).__name__).inc()
            self._figures.last_failure.set(self._clock.now_ms() / 1000)
            raise
        for outcome in ("accepted", "repeated", "late"):
            self._figures.frames.labels(outcome).inc(getattr(outcomes, outcome))
        self._figures.last_push.set(self._clock.now_ms() / 1000)
        return Response(
            f'{{"accepted":{outcomes.accepted},"repeated":{outcomes.repeated},"late":{outcomes.late}}}',
            202,
            media_type=JSON,
        )

    async def _take(self, request: Request) -> Outcomes:
        headers = request.scope["headers"]
        check_origin(headers)
        check_token(headers, self._config.push_token)
        _check_type(request)
        if self._under_way >= PUSHES_AT_ONCE:
            raise TooManyPushes(f"{PUSHES_AT_ONCE} pushes are under way, try again", _RETRY_AFTER_S)
        body = bytearray()
        self._under_way += 1
        try:
            await self._read_whole(request, body)
            self._figures.push_bytes.observe(len(body))
            started_ns = time.perf_counter_ns()
            outcomes = await self._ingested(bytes(body))
            self._figures.push_seconds.observe((time.perf_counter_ns() - started_ns) / 1e9)
        finally:
            self._under_way -= 1
            self._bytes -= len(body)
        return outcomes

    async def _read_whole(self, request: Request, body: bytearray) -> None:
        announced = request.headers.get("content-length", "")
        if _LENGTH.fullmatch(announced) and int(announced) > self._config.max_push_bytes:
            raise self._too_large()
        try:
            await asyncio.wait_for(self._read(request, body), BODY_TIMEOUT_S)
        except asyncio.TimeoutError:
            raise BodyTimeout(f"the body did not arrive within {BODY_TIMEOUT_S} s") from None
        except ClientDisconnect:
            raise MalformedFrame("the sender hung up before the end of the body") from None

    async def _read(self, request: Request, body: bytearray) -> None:
        async for chunk in request.stream():
            body += chunk
            self._bytes += len(chunk)
            if len(body) > self._config.max_push_bytes:
                raise self._too_large()
            if self._bytes > PUSH_BYTES_AT_ONCE and self._under_way > 1:
                raise TooManyPushes(f"pushes of {PUSH_BYTES_AT_ONCE} bytes are under way, try again", _RETRY_AFTER_S)

    def _too_large(self) -> FrameTooLarge:
        return FrameTooLarge(f"the body is longer than the {self._config.max_push_bytes} bytes that are taken at once")

    async def _ingested(self, body: bytes) -> Outcomes:
        if len(body) < THREAD_FROM_BYTES and not self._in_threads:
            return self._ingest.push(body)
        self._in_threads += 1
        try:
            return await run_in_threadpool(self._ingest.push, body)
        finally:
            self._in_threads -= 1


def _check_type(request: Request) -> None:
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != CONTENT_TYPE:
        raise WrongType(f"Content-Type {given!r}, but frames come as {CONTENT_TYPE}")
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise WrongType(f"Content-Encoding {encoding!r}, but frames come without one")
