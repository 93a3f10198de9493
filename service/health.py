"""/-/healthy and /-/ready: whether the service should be restarted, and whether it can be asked."""

from __future__ import annotations

from starlette.responses import Response

from service.errors import JSON, refusal


class Health:
    """
    What a probe is told; to be used from the event loop.

    Ready from the end of startup to the beginning of shutdown. Healthy unless the sweeps have stopped: then
    silent drivers would go unnoticed and nothing would be evicted, and only a restart helps.
    """

    def __init__(self) -> None:
        self.ready = False
        self.fault = ""

    async def healthy(self) -> Response:
        """Answer /-/healthy: 200, or 503 with the reason."""
        if self.fault:
            return refusal(503, self.fault)
        return Response(b'{"status":"healthy"}', media_type=JSON)

    async def readiness(self) -> Response:
        """Answer /-/ready: 200, or 503."""
        if not self.ready or self.fault:
            return refusal(503, self.fault or "the service is starting up or shutting down")
        return Response(b'{"status":"ready"}', media_type=JSON)
