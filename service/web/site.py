"""The page at `/`: its files, and the two libraries that it loads, from memory."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib import metadata, resources

from fastapi import Request
from starlette.responses import Response

from service.errors import unrouted

INDEX = "/"
FILES = "/web/{name}"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, nothing inline: what a job's name says is never run."""

_LIBRARIES = {
    "uplot.js": ("uplot-python", "uplot/static/uPlot.iife.js"),
    "uplot.css": ("uplot-python", "uplot/static/uPlot.min.css"),
    "dagre.js": ("XStatic-Dagre", "xstatic/pkg/dagre/data/dagre.min.js"),
}
"""Name here → distribution and the file that it installs; neither package is imported."""

MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""By the end of a file's name."""


@dataclass(frozen=True, slots=True)
class _File:
    media_type: str
    body: bytes
    small: bytes
    etag: str


class Site:
    """Holds every file of the page, as it is and compressed; any thread."""

    def __init__(self) -> None:
        own = resources.files("service.web") / "files"
        self._files = {each.name: _file(each.name, each.read_bytes()) for each in own.iterdir()}
        for name, (distribution, path) in _LIBRARIES.items():
            found = metadata.distribution(distribution).locate_file(path)
            with open(str(found), "rb") as opened:  # noqa: PTH123  a SimplePath has no read_bytes on Python 3.10
                self._files[name] = _file(name, opened.read())

    async def index(self, request: Request) -> Response:
        """Answer `/`."""
        return self._answer(request, "index.html")

    async def file(self, request: Request, name: str) -> Response:
        """Answer a file by its name; Flink's 404 where there is none."""
        return self._answer(request, name)

    def _answer(self, request: Request, name: str) -> Response:
        found = self._files.get(name)
        if found is None:
            return unrouted(request.method, request.scope["path"])
        headers = {
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            # Asked anew each time, and answered 304: a page never runs parts of two versions.
            "Cache-Control": "no-cache",
            "ETag": found.etag,
            "Vary": "Accept-Encoding",
        }
        if found.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = found.body
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            body = found.small
        return Response(body, headers=headers, media_type=found.media_type)


def _file(name: str, body: bytes) -> _File:
    small = gzip.compress(body, mtime=0)
    return _File(MEDIA_TYPES[name.rpartition(".")[2]], body, small, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
