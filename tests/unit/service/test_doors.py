"""Who is let in."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response
from starlette.types import Message

from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from service.doors import Doors, Hosts, check_origin, check_read_token, check_token, host_name
from service.errors import ForbiddenHost, ForbiddenOrigin, UnauthorizedRead
from streamgauge import codec
from streamgauge.clock import ManualClock
from streamgauge.errors import Unauthorized

LOOPBACK = Config(allowed_hosts=("Gauge.test.",))
BOUND = Config(host="gauge.internal", push_token="t")
ALL = Config(host="0.0.0.0", push_token="t", allowed_hosts=("gauge.test",))


def allowed(config: Config, *hosts: str) -> bool:
    try:
        Hosts(config).check([(b"host", host.encode("latin-1")) for host in hosts])
    except ForbiddenHost:
        return False
    return True


@pytest.mark.parametrize("host", ["localhost", "localhost:8081", "LOCALHOST", "127.0.0.1:1", "127.1.2.3", "[::1]:8081"])
@pytest.mark.parametrize("config", [LOOPBACK, BOUND, ALL], ids=["loopback", "bound", "all"])
def test_this_machine_is_answered_whatever_the_binding(config: Config, host: str) -> None:
    """A page cannot have these for its own name."""
    assert allowed(config, host)


@pytest.mark.parametrize(
    ("host", "loopback", "bound", "all_interfaces"),
    [
        ("gauge.test", True, False, True),
        ("GAUGE.test.:80", True, False, True),
        ("gauge.internal:8081", False, True, False),
        ("10.0.0.7:8081", False, True, True),
        ("[fe80::1]:8081", False, True, True),
        ("evil.test", False, False, False),
        ("localhost.evil.test", False, False, False),
        ("127.0.0.1.evil.test", False, False, False),
        ("gauge.test.evil.test", False, False, False),
        ("evil.test:localhost", False, False, False),
        ("evil.test@localhost", False, False, False),
        ("", False, False, False),
        ("[", False, False, False),
    ],
)
def test_other_hosts(host: str, loopback: bool, bound: bool, all_interfaces: bool) -> None:
    """Names have to be configured or bound to; addresses are answered beyond loopback, for they cannot be rebound."""
    assert (allowed(LOOPBACK, host), allowed(BOUND, host), allowed(ALL, host)) == (loopback, bound, all_interfaces)


@pytest.mark.parametrize("hosts", [(), ("localhost", "localhost"), ("localhost", "evil.test")])
def test_exactly_one_host_is_expected(hosts: tuple[str, ...]) -> None:
    """Two would leave it open which one a browser meant."""
    assert not allowed(LOOPBACK, *hosts)


@given(st.text(st.characters(max_codepoint=255)))
def test_any_header_is_allowed_or_refused_and_never_a_fault(host: str) -> None:
    """What is let in begins as this machine's names do."""
    assert not allowed(Config(), host) or host_name(host.encode("latin-1")).startswith(("localhost", "127.", "::1"))


def refused_origin(origin: str, host: str = "127.0.0.1:8081") -> bool:
    try:
        check_origin([(b"host", host.encode()), (b"origin", origin.encode())])
    except ForbiddenOrigin:
        return True
    return False


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8081", "https://127.0.0.1:8081", "HTTP://127.0.0.1:8081"])
def test_own_pages_may_push(origin: str) -> None:
    """Same host and port; the scheme is a proxy's matter."""
    assert not refused_origin(origin)


@pytest.mark.parametrize(
    "origin",
    ["http://evil.test", "http://127.0.0.1", "http://127.0.0.1:8082", "http://localhost:8081", "null", "", "x"],
)
def test_pages_of_other_sites_may_not_push(origin: str) -> None:
    """Another port is another site."""
    assert refused_origin(origin)


def test_who_is_no_browser_sends_no_origin() -> None:
    """So none is no reason to refuse."""
    check_origin([(b"host", b"127.0.0.1:8081")])


@pytest.mark.parametrize("given_", [b"Bearer s\xc3\xa9cret", b"bearer   s\xc3\xa9cret ", b"Bearer s\xe9cret"])
def test_right_token_is_let_in(given_: bytes) -> None:
    """Any case of the scheme; a token may hold any text, as UTF-8 or Latin-1."""
    check_token([(b"authorization", given_)], "sécret")


@pytest.mark.parametrize("given_", [b"", b"Bearer", b"Bearer secre", b"Bearer secrets", b"Basic secret", b"secret"])
def test_wrong_token_is_unauthorized(given_: bytes) -> None:
    """And the message does not tell the right one."""
    with pytest.raises(Unauthorized) as error:
        check_token([(b"authorization", given_)], "secret")
    assert "secret" not in str(error.value)


def test_token_that_latin_1_cannot_hold_is_not_shortened_to_what_it_can() -> None:
    """Only its UTF-8 form is right."""
    check_token([(b"authorization", "Bearer sécret✓".encode())], "sécret✓")
    with pytest.raises(Unauthorized):
        check_token([(b"authorization", b"Bearer s\xe9cret")], "sécret✓")


def test_without_a_configured_token_none_is_asked_for() -> None:
    """Whatever is sent."""
    check_token([], "")
    check_token([(b"authorization", b"Bearer x")], "")


def basic(password: str) -> bytes:
    return b"Basic " + base64.b64encode(f"anyone:{password}".encode())


@pytest.mark.parametrize("given_", [b"Bearer s:cret", basic("s:cret"), basic("s:cret").replace(b"B", b"b", 1)])
def test_read_token_is_taken_as_bearer_and_as_basic_password(given_: bytes) -> None:
    """Browsers and Flink's clients send no bearer tokens; the user's name does not matter, colons may be in it."""
    check_read_token([(b"authorization", given_)], "s:cret")


@pytest.mark.parametrize(
    "given_", [b"", b"Bearer", b"Bearer x", basic("x"), b"Basic s:cret", b"Basic !", b"Digest s:cret"]
)
def test_wrong_read_token_is_unauthorized(given_: bytes) -> None:
    """And the message does not tell the right one."""
    with pytest.raises(UnauthorizedRead) as error:
        check_read_token([(b"authorization", given_)], "s:cret")
    assert "s:cret" not in str(error.value)


def test_read_token_guards_all_but_pushes_and_probes(client: Any, store: MetricStore, clock: ManualClock) -> None:
    """A browser is asked for a password; a probe has none; a push has a token of its own."""
    client = type(client)(create_app(Config(read_token="secret"), store, clock))
    for path in ("/jobs/overview", "/v1/config", "/metrics", "/metrics/flink", "/nope", "//overview"):
        refused = client.get(path)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic ")
        assert list(refused.json()) == ["errors"]
        assert client.get(path, auth=("admin", "secret")).status_code in (200, 404)
        assert client.get(path, headers={"Authorization": "Bearer secret"}).status_code in (200, 404)
    assert client.get("/-/healthy").status_code == 200
    assert client.push(codec.encode([])).status_code == 202


def test_refused_host_is_403_in_the_shape_of_all_failures(client: Any) -> None:
    """On any path and method, before anything else is looked at; and no other site may read even that."""
    for method, path in (("GET", "/overview"), ("POST", "/push/v1/frames"), ("GET", "/metrics"), ("GET", "/nope")):
        answer = client.request(method, path, headers={"Host": "evil.test"})
        assert answer.status_code == 403
        assert "evil.test" in answer.json()["errors"][0]
        assert "access-control-allow-origin" not in answer.headers


def test_any_site_may_read(client: Any) -> None:
    """CORS on GET, failures included, as in Flink."""
    for path in ("/overview", "/metrics", "/nope", "/jobs/xyz"):
        assert client.get(path, headers={"Origin": "http://grafana.test"}).headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in client.push(b"").headers


@pytest.mark.parametrize(("length", "status"), [(65_536, 200), (65_537, 414)])
def test_target_is_read_up_to_64_kib(length: int, status: int) -> None:
    """Flink's own 4 KiB cuts off dashboards with many vertices."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    path = b"/overview"
    scope = {
        "type": "http",
        "method": "GET",
        "path": path.decode(),
        "raw_path": path,
        "query_string": b"x" * (length - len(path)),
        "headers": [(b"host", b"localhost")],
    }
    asyncio.run(Doors(Response(), Hosts(Config()))(scope, receive, send))
    assert sent[0]["status"] == status
