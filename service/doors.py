"""
Who is let in: the Host header, the origin of a push, its token, and what other sites may read.

A page of another site can make a browser send requests here. Two rules keep it out:

Host. With DNS rebinding the page's own name comes to resolve to this machine, and the browser takes our
answers for that site's; but the name stands in the Host header. So a request is answered only if its Host is
localhost, an address in 127.0.0.0/8 or ::1; or the host that the service is bound to; or a configured name. A
service that is bound beyond loopback answers any IP literal too, since an address cannot be rebound. Names of
a machine or a container have to be configured (`--allowed-host`). The port in Host does not matter.

Read token. Where one is set, everything but pushes and the probes asks for it: as `Authorization: Bearer …`, or as the
password of Basic with any user name, since browsers and Flink's clients send no bearer tokens.

Origin. A browser sends Origin with every POST; a push with an Origin that is not this Host is refused. Reads
carry `Access-Control-Allow-Origin: *`, as Flink's do, and on GET only: nothing can be written that way.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hmac
import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.config import MAX_REQUEST_LINE_BYTES, Config, is_loopback
from service.errors import ForbiddenHost, ForbiddenOrigin, UnauthorizedRead, answer, refusal
from streamgauge.errors import Unauthorized
from streamgauge.wire import PUSH_PATH

Headers = Iterable[tuple[bytes, bytes]]
_CORS = (b"access-control-allow-origin", b"*")
_OPEN_PATHS = frozenset({PUSH_PATH, "/-/healthy", "/-/ready"})
"""A push has a token of its own; a probe tells nothing and has none."""


def header(headers: Headers, name: bytes) -> list[bytes]:
    """Return every value of a header, `name` in lower case."""
    return [value for key, value in headers if key == name]


class Hosts:
    """
    Which Host headers are answered; any thread.

    Args:
        config: Where the service is bound, and further names.
    """

    def __init__(self, config: Config) -> None:
        self._names = {name.lower().rstrip(".") for name in (config.host, *config.allowed_hosts) if name}
        self._any_address = not is_loopback(config.host)

    def check(self, headers: Headers) -> None:
        """
        Look at a request's Host.

        Raises:
            ForbiddenHost: it is missing, given more than once, or none of ours.
        """
        hosts = header(headers, b"host")
        if len(hosts) != 1:
            raise ForbiddenHost(f"one Host header was expected, {len(hosts)} were sent")
        name = host_name(hosts[0])
        if not self._allows(name):
            raise ForbiddenHost(
                f"host {name!r} is not one that this service answers for; if it should be, start it with --allowed-host"
            )

    def _allows(self, name: str) -> bool:
        if is_loopback(name) or name in self._names:
            return True
        return self._any_address and _is_address(name)


def host_name(value: bytes) -> str:
    """Return the name or address in a Host header, lower case, without port, brackets and final dot."""
    text = value.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_origin(headers: Headers) -> None:
    """
    Look at a push's Origin; there is none unless a browser sent it.

    The scheme is not compared: behind a proxy that ends TLS it is not ours to know.

    Raises:
        ForbiddenOrigin: it names another site, or none ('null').
    """
    hosts = header(headers, b"host")
    for origin in header(headers, b"origin"):
        text = origin.decode("latin-1")
        if [urlsplit(text).netloc.lower()] != [host.decode("latin-1").strip().lower() for host in hosts]:
            raise ForbiddenOrigin(f"a push from {text!r} was refused: only this service's own pages may push")


def check_token(headers: Headers, token: str) -> None:
    """
    Look at a push's `Authorization: Bearer …`, in time that does not depend on how much of it is right.

    Args:
        headers: The request's.
        token: What is asked for; '' asks for nothing.

    Raises:
        Unauthorized: it is missing or wrong.
    """
    if not token:
        return
    given = _credentials(headers)
    if given is None:
        raise Unauthorized("this service takes pushes with a token only: attach(token=…) or STREAMGAUGE_TOKEN")
    scheme, credentials = given
    if scheme != b"bearer" or not _matches(credentials, token):
        raise Unauthorized("the push token is not the one that this service was started with")


def check_read_token(headers: Headers, token: str) -> None:
    """
    Look at a read's `Authorization`: Bearer, or Basic with the token as the password.

    Args:
        headers: The request's.
        token: What is asked for; '' asks for nothing.

    Raises:
        UnauthorizedRead: it is missing or wrong.
    """
    if not token:
        return
    given = _credentials(headers)
    if given is None:
        raise UnauthorizedRead("this service is read with a token only: send it as a bearer token or Basic password")
    scheme, credentials = given
    if scheme == b"basic":
        credentials = _password(credentials)
    if scheme not in (b"bearer", b"basic") or not _matches(credentials, token):
        raise UnauthorizedRead("the read token is not the one that this service was started with")


def _credentials(headers: Headers) -> tuple[bytes, bytes] | None:
    """Return the scheme, in lower case, and the rest of `Authorization`; None where there is none."""
    given = header(headers, b"authorization")
    if not given:
        return None
    scheme, _, credentials = given[0].partition(b" ")
    return scheme.lower(), credentials.strip()


def _password(credentials: bytes) -> bytes:
    """Return the password of Basic; empty, which no token is, where it cannot be read."""
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2].strip()
    except binascii.Error:
        return b""


def _matches(given: bytes, token: str) -> bool:
    # HTTP leaves it open how a header's text is encoded: clients send UTF-8 or, as Python's do, Latin-1.
    forms = [token.encode()]
    with contextlib.suppress(UnicodeEncodeError):
        forms.append(token.encode("latin-1"))
    right = [hmac.compare_digest(given, form) for form in forms]
    return any(right)


class Doors:
    """
    ASGI middleware: the Host rule on every request, the read token on every read, CORS on every answer to a GET, a
    bound on the target.

    Args:
        app: What is behind it.
        hosts: The Host rule.
        read_token: '' lets everyone read.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts, read_token: str = "") -> None:
        self._app = app
        self._hosts = hosts
        self._read_token = read_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_open(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], _CORS]
            await send(message)

        try:
            self._hosts.check(scope["headers"])
            if scope["path"] not in _OPEN_PATHS:
                check_read_token(scope["headers"], self._read_token)
        except (ForbiddenHost, UnauthorizedRead) as error:
            await answer(error)(scope, receive, send)
            return
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_REQUEST_LINE_BYTES:
            too_long = refusal(414, f"the request target is longer than {MAX_REQUEST_LINE_BYTES} bytes")
            await too_long(scope, receive, send)
            return
        await self._app(scope, receive, send_open if scope["method"] == "GET" else send)
