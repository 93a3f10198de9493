"""`streamgauge demo`: the service and the flights job together, with Prometheus where it is wanted, until Ctrl-C."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import urllib3

from examples import prometheus
from examples.child import Child
from examples.java import find_or_fetch
from examples.notices import Notices
from examples.replay import SPEED
from streamgauge import names
from streamgauge.errors import StreamgaugeError

START_LIMIT_S = 60.0
END_LIMIT_S = 15.0
"""Of the service, of Prometheus and of Alertmanager."""
JOB_END_LIMIT_S = 45.0
"""More than Spark's own limit for stopping a query, twice."""

POLL_S = 0.5
REQUEST_LIMIT_S = 5.0

SHOWN = (names.NUM_RECORDS_IN, names.NUM_RECORDS_IN + names.PER_SECOND)
"""What the printed requests ask for."""

_REPLACED = ("HOST", "PORT", "URL", "TOKEN", "PUSH_TOKEN", "READ_TOKEN", "INSECURE", "ENABLED")
_FOREIGN_SPARK = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")

_HOME = Path(__file__).resolve().parents[1]
"""Where the job's module is found: in a clone its root, in a wheel a folder of its own."""


class DemoFailed(StreamgaugeError):
    """A part of the demo ended by itself or did not start; the message says why."""


def run(host: str, port: int, speed: float | None, say: Callable[[str], None], with_prometheus: bool = False) -> None:
    """
    Start service and job, print where to look, and return after SIGINT, SIGTERM or SIGHUP, with nothing left behind.

    Args:
        host: Address that the service listens on.
        port: 0 takes a free one.
        speed: Simulated seconds a second, > 0, at most examples.replay.FASTEST; None for the usual one.
        say: Takes one line for people; of alerts in other threads.
        with_prometheus: Start Prometheus and Alertmanager too, and tell what alerts.

    Raises:
        JavaMissing: there is none and fetching one failed.
        PrometheusMissing: it is wanted, and something of it is not installed.
        DemoFailed: PySpark is missing, or one of the programs ended by itself.

    Main thread only: it catches the signals until it returns.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise DemoFailed("pyspark is not installed, the demo needs it: pip install 'streamgauge[demo]'")
    programs = prometheus.find(os.environ) if with_prometheus else None
    stopped = threading.Event()
    caught = [number for number in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, number)]
    # A download can only be broken off by an exception; children have to be ended in order, so no exception there.
    before = {name: signal.signal(getattr(signal, name), _interrupt) for name in caught}
    try:
        java = find_or_fetch(os.environ, say)
        for name in caught:
            signal.signal(getattr(signal, name), lambda *_: stopped.set())
        with tempfile.TemporaryDirectory(prefix="streamgauge-demo-", ignore_cleanup_errors=True) as folder:
            environment = child_environment(java.environment(os.environ), Path(folder), secrets.token_urlsafe())
            demo = _Demo(environment, Path(folder), stopped, say)
            demo.run(host, port, SPEED if speed is None else speed, programs)
    except KeyboardInterrupt:
        return
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


def child_environment(base: Mapping[str, str], folder: Path, token: str) -> dict[str, str]:
    """
    Return the environment of service and job.

    Args:
        base: With the Java to use.
        folder: For every temporary file.
        token: Shared by the two, so that nobody else can push into the demo.
    """
    dropped = {f"STREAMGAUGE_{name}" for name in _REPLACED} | set(_FOREIGN_SPARK)
    return {name: value for name, value in base.items() if name not in dropped} | {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(_HOME), base.get("PYTHONPATH", "")))),
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Its ended jobs are nothing to look for among the user's own, and leave with it.
        "STREAMGAUGE_ARCHIVE": str(folder / "archive.db"),
        "STREAMGAUGE_TOKEN": token,
        "TMPDIR": str(folder),
    }


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


class _Demo:
    """
    The programs of one demo.

    Args:
        environment: Of each of them.
        folder: Where each works.
        stopped: Set by a signal.
        say: Takes one line for people.
    """

    def __init__(
        self, environment: Mapping[str, str], folder: Path, stopped: threading.Event, say: Callable[[str], None]
    ) -> None:
        self._environment = environment
        self._folder = folder
        self._stopped = stopped
        self._say = say
        self._children: list[Child] = []
        self._ends = contextlib.ExitStack()

    def run(self, host: str, port: int, speed: float, programs: prometheus.Programs | None) -> None:
        with self._ends:
            self._say("starting the service...")
            serve = [sys.executable, "-m", "streamgauge", "serve", "--host", host, "--port", str(port)]
            service = self._start("service", serve, END_LIMIT_S)
            url = self._await(service, partial(_announced, service))
            if url is None:
                return
            self._say(f"the service answers at {url}")
            asked = self._start_prometheus(programs, url) if programs is not None else None
            if self._stopped.is_set():
                return
            flights = [sys.executable, "-m", "examples.flights", "--collector", url, "--speed", repr(speed)]
            self._start("job", flights, JOB_END_LIMIT_S, log_output=False)
            self._ends.callback(self._say, "ending...")
            self._watch(url, asked)

    def _start(self, name: str, command: Sequence[str], end_limit_s: float, log_output: bool = True) -> Child:
        child = Child(name, command, self._environment, self._folder, log_output=log_output)
        self._ends.callback(child.end, end_limit_s)
        self._children.append(child)
        return child

    def _start_prometheus(self, programs: prometheus.Programs, url: str) -> str | None:
        """Return where it answers; None where the demo is stopped before it does."""
        board = Notices("127.0.0.1", 0, self._say)
        self._ends.callback(board.close)
        free = prometheus.free_addresses(prometheus.PROMETHEUS_PORT, prometheus.ALERTMANAGER_PORT)
        addresses = prometheus.Addresses(urlsplit(url).netloc, board.address, *free)
        prometheus.configure(self._folder, addresses)
        asked = None
        for name, command, address in (
            ("Alertmanager", prometheus.alertmanager_command, addresses.alertmanager),
            ("Prometheus", prometheus.prometheus_command, addresses.prometheus),
        ):
            child = self._start(f"{name} server", command(programs, self._folder, addresses), END_LIMIT_S)
            asked = self._await(child, partial(_ready, f"http://{address}"))
            if asked is None:
                return None
            self._say(f"{name} answers at {asked}")
        return asked

    def _await(self, child: Child, look: Callable[[], str | None]) -> str | None:
        """Return the URL that a look finds once the child is ready; None where the demo is stopped first."""
        deadline = time.monotonic() + START_LIMIT_S
        while not self._stopped.wait(POLL_S / 5):
            if child.exit_code() is not None:
                raise DemoFailed(child.reason())
            url = look()
            if url is not None:
                return url
            if time.monotonic() > deadline:
                raise DemoFailed(f"the {child.name} did not answer within {START_LIMIT_S:.0f} s")
        return None

    def _watch(self, url: str, asked: str | None) -> None:
        shown = False
        while not self._stopped.wait(POLL_S):
            for child in self._children:
                if child.exit_code() is not None:
                    raise DemoFailed(child.reason())
            if not shown:
                requests = example_requests(url, _get)
                if requests:
                    shown = True
                    self._show(requests, asked)

    def _show(self, requests: Iterable[str], asked: str | None) -> None:
        self._say("figures are coming in; ask for them:")
        for request in requests:
            self._say(f"  {request}")
        if asked is not None:
            self._say(f"ask Prometheus at {asked}/graph; what alerts is told here, too:")
            for query in prometheus.QUERIES:
                self._say(f"  {query}")
        self._say("Ctrl-C ends the demo")


def example_requests(url: str, get: Callable[[str], Any]) -> list[str]:
    """
    Return commands that show each running query's figures, at the vertex that reads most, and all taps and timers.

    Args:
        url: The service's.
        get: Returns the JSON at a URL, or None where it cannot be had.

    Returns:
        None before all queries have read and ended a batch: only then Spark has told of taps and timers.
    """
    overview = get(f"{url}/jobs/overview") or {"jobs": []}
    jobs = [f"{url}/jobs/{job['jid']}" for job in overview["jobs"] if job["state"] in ("RUNNING", "RESTARTING")]
    vertices = {job: _vertices(job, get) for job in jobs}
    busiest = [_busiest(each, get) for each in vertices.values()]
    if not busiest or None in busiest or not all(_has_ended_a_batch(job, get) for job in jobs):
        return []
    event_time = [address for each in vertices.values() for vertex in each for address in _event_time(vertex, get)]
    return [f"curl '{address}'" for address in (f"{url}/jobs/overview", *busiest, *event_time)]


def _vertices(job: str, get: Callable[[str], Any]) -> list[str]:
    detail = get(job) or {"vertices": []}
    return [f"{job}/vertices/{vertex['id']}" for vertex in detail["vertices"]]


def _busiest(vertices: Iterable[str], get: Callable[[str], Any]) -> str | None:
    read: dict[str, float] = {}
    for vertex in vertices:
        address = f"{vertex}/subtasks/metrics?get={','.join(SHOWN)}"
        read[address] = sum(figure["sum"] for figure in get(address) or () if figure["id"] == names.NUM_RECORDS_IN)
    most = max(read, key=read.__getitem__, default=None)
    return most if most is not None and read[most] > 0 else None


def _has_ended_a_batch(job: str, get: Callable[[str], Any]) -> bool:
    checkpoints = get(f"{job}/checkpoints")
    return checkpoints is not None and checkpoints["counts"]["completed"] > 0


def _event_time(vertex: str, get: Callable[[str], Any]) -> Iterator[str]:
    for resource, told in (("splits", "taps"), ("timers", "operators")):
        if (get(f"{vertex}/{resource}") or {}).get(told):
            yield f"{vertex}/{resource}"


def _announced(service: Child) -> str | None:
    """Return the URL that the service has told, once it is ready there."""
    told = re.search(r"listens on (\S+)", service.output())
    return _ready(told.group(1)) if told else None


def _ready(url: str) -> str | None:
    try:
        answer = _http.request("GET", f"{url}/-/ready", timeout=REQUEST_LIMIT_S, retries=False)
    except urllib3.exceptions.HTTPError:
        return None
    return url if answer.status == 200 else None


def _get(url: str) -> Any:
    try:
        answer = _http.request("GET", url, timeout=REQUEST_LIMIT_S, retries=False)
        return answer.json() if answer.status == 200 else None
    except (urllib3.exceptions.HTTPError, ValueError):
        return None


_http = urllib3.PoolManager()
