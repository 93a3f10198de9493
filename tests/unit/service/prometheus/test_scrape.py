"""The two pages as they are scraped: formats, compression, granularity, and how many series they may have."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import logging
import threading
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text
from starlette.requests import Request

from collector.history import NO_HISTORY
from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from service.prometheus import exposition, scrape
from service.prometheus.granularity import GRANULARITIES, Granularity, coarsening, tells
from service.prometheus.scrape import DEFAULTS, FLINK, METRICS, Page, Scrape
from service.self_metrics import SelfMetrics
from streamgauge import names
from streamgauge.clock import ManualClock
from tests.conftest import Client

PAGES = (METRICS, FLINK)
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0"}


def series(page: str) -> set[str]:
    return {line.rpartition(" ")[0] for line in page.splitlines() if line[0] != "#"}


def told(page: str) -> set[str]:
    """Of the store, and not of the service itself."""
    return {each for each in series(page) if not each.startswith(("streamgauge_service", "streamgauge_scrape"))}


@pytest.mark.parametrize("path", PAGES)
def test_plain_scrape(client: Client, path: str) -> None:
    """The text format, uncompressed, each series once and without a timestamp, nothing about when it was created."""
    answer = client.get(path, headers={"Accept-Encoding": "identity"})
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert "content-encoding" not in answer.headers
    samples = [sample for family in read_text(answer.text) for sample in family.samples]
    assert len(samples) == len(series(answer.text)) > 100
    assert not any(sample.name.endswith("_created") for sample in samples)
    assert not any(sample.timestamp for sample in samples)


@pytest.mark.parametrize("path", PAGES)
def test_openmetrics_is_negotiated(client: Client, path: str) -> None:
    """The same series under the other content type, with one end."""
    answer = client.get(path, headers=OPENMETRICS)
    assert answer.headers["content-type"] == (
        "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
    )
    assert (answer.text.count("# EOF\n"), answer.text[-6:]) == (1, "# EOF\n")
    samples = [sample for family in read_openmetrics(answer.text) for sample in family.samples]
    assert len(samples) == len(series(answer.text))
    assert told(answer.text) == told(client.get(path).text)
    assert not any(sample.name.endswith("_created") for sample in samples)


def test_scrape_has_the_services_own_figures_too(client: Client) -> None:
    """All in one text."""
    assert "streamgauge_service_jobs 6.0\n" in client.get(METRICS).text
    assert "streamgauge_service" not in client.get(FLINK).text


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("form", [{}, OPENMETRICS], ids=["text", "openmetrics"])
def test_gzip_holds_the_same_series(client: Client, path: str, form: dict[str, str]) -> None:
    """Where it is taken."""
    answer = client.get(path, headers={"Accept-Encoding": "gzip", **form})
    assert answer.headers["content-encoding"] == "gzip"
    # The client has undone it.
    assert int(answer.headers["content-length"]) < len(answer.content)
    assert told(answer.text) == told(client.get(path, headers={"Accept-Encoding": "identity", **form}).text)


def test_pages_are_rendered_and_compressed_by_worker_threads(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large store it takes a while, and the event loop has pushes to take in."""
    seen = []

    def noted(page: bytes) -> bytes:
        seen.append(threading.current_thread())
        return page

    monkeypatch.setattr(scrape, "compressed", noted)
    client.request("HEAD", METRICS, headers={"Accept-Encoding": "gzip"})
    client.request("HEAD", FLINK, headers={"Accept-Encoding": "gzip"})
    assert len(seen) == 2
    assert threading.current_thread() not in seen


@pytest.mark.parametrize("path", PAGES)
def test_head_is_a_scrape_without_its_body(client: Client, path: str) -> None:
    """The same headers."""
    head = client.request("HEAD", path, headers={"Accept-Encoding": "identity"})
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 1_000
    assert head.headers["content-type"] == client.get(path).headers["content-type"]


@pytest.mark.parametrize("path", PAGES)
def test_each_granularity_tells_more(client: Client, path: str) -> None:
    """Whose figures each adds; of /metrics a subtask's series take the place of the whole's."""
    pages = {each: told(client.get(f"{path}?granularity={each}").text) for each in GRANULARITIES}
    assert pages[DEFAULTS[path]] == told(client.get(path).text)
    for less, more in itertools.pairwise(GRANULARITIES):
        assert len(pages[less]) < len(pages[more])
        assert (path, more) == (METRICS, "subtask") or pages[less] < pages[more]
    words = {
        METRICS: ("streamgauge_job", "streamgauge_vertex", "streamgauge_operator", 'subtask="'),
        FLINK: ("flink_jobmanager_job", "job_task_numRecords", "job_task_operator", "job_task_latency"),
    }[path]
    for word, first in zip(words, GRANULARITIES, strict=True):
        if (path, word) == (FLINK, "job_task_operator"):
            word = "job_task_operator_numRecords"
        assert [any(word in one for one in pages[each]) for each in GRANULARITIES] == [
            tells(each, first) for each in GRANULARITIES
        ], word


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("asked", ["x", "", "Job", "job,vertex"])
def test_any_other_granularity_is_refused(client: Client, path: str, asked: str) -> None:
    """In the one shape of all failures, with the choices."""
    answer = client.get(f"{path}?granularity={asked}")
    assert answer.status_code == 400
    assert answer.json() == {"errors": ["query.granularity: Input should be 'job', 'vertex', 'operator' or 'subtask'"]}


def test_coarsening_ends_with_the_job() -> None:
    """Step by step."""
    assert [*coarsening("subtask")] == ["subtask", "operator", "vertex", "job"]
    assert [*coarsening("job")] == ["job"]


@pytest.fixture
def held(states: Any) -> Any:
    """A job with a vertex of 10 subtasks and 2 operators, so that each granularity has more series."""
    column = states.column(*range(10))
    operators = {name: {names.NUM_RECORDS_OUT: column} for name in ("Map", "Sink: x")}
    return states.snapshot(states.job(states.vertex(10, columns={names.NUM_RECORDS_IN: column}, operators=operators)))


class Scraped:
    """One page of a store, the service's own figures of it, and what it has logged."""

    def __init__(self, most: int) -> None:
        self._figures = SelfMetrics(MetricStore(), NO_HISTORY)
        self.page = Page(METRICS, exposition.expose, most, self._figures)

    def told(self, held: Any, asked: Granularity) -> set[str]:
        return series(self.page.render(held, 5_000, asked, False).decode())

    def figure(self, name: str, **labels: str) -> float:
        samples = [sample for family in self._figures.collect() for sample in family.samples if sample.name == name]
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


def sizes(held: Any) -> dict[Granularity, int]:
    return {each: len(Scraped(10**6).told(held, each)) for each in GRANULARITIES}


@pytest.mark.parametrize("asked", GRANULARITIES)
@pytest.mark.parametrize("told_by", GRANULARITIES)
def test_what_would_be_more_is_told_less_finely(held: Any, asked: Granularity, told_by: Granularity) -> None:
    """The finest granularity that is asked for or coarser, and has as many series as may be."""
    size = sizes(held)
    scraped = Scraped(size[told_by])
    wanted = coarsening(asked)[0] if tells(told_by, asked) else told_by
    assert scraped.told(held, asked) == Scraped(10**6).told(held, wanted)
    coarsened = {"page": METRICS, "asked": asked, "told": wanted}
    assert scraped.figure("streamgauge_scrapes_coarsened_total", **coarsened) == (wanted != asked)
    assert scraped.figure("streamgauge_scrape_series", page=METRICS) == size[wanted]
    assert scraped.figure("streamgauge_scrape_size_bytes", page=METRICS) > size[wanted]


def test_jobs_are_told_however_many_there_are(held: Any) -> None:
    """A page without the state of a job would keep an alert from being seen."""
    assert Scraped(1).told(held, "subtask") == Scraped(10**6).told(held, "job")


def test_a_change_is_logged_once(held: Any, states: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Not with every scrape; with the remedy, and when it is over."""
    caplog.set_level(logging.INFO, "streamgauge.service")
    scraped = Scraped(sizes(held)["subtask"] - 1)
    for _ in range(3):
        scraped.told(held, "subtask")
        scraped.told(held, "operator")
    assert caplog.messages == [
        f"/metrics would have more than {sizes(held)['subtask'] - 1} series by subtask and is told by operator: raise "
        "--metrics-max-series, or ask for granularity=operator"
    ]
    assert scraped.figure("streamgauge_scrapes_coarsened_total") == 3
    scraped.told(states.snapshot(), "subtask")
    scraped.told(states.snapshot(), "subtask")
    assert caplog.messages[1:] == ["/metrics is told by subtask again"]


def test_the_setting_is_that_of_both_pages(store: MetricStore, clock: ManualClock) -> None:
    """--metrics-max-series; the scrape says of itself what it is."""
    client = Client(create_app(Config(metrics_max_series=10), store, clock))
    assert "flink_taskmanager_job_task" not in client.get(FLINK).text
    page = client.get(METRICS).text
    assert "streamgauge_vertex" not in page
    assert f'streamgauge_scrapes_coarsened_total{{asked="operator",page="{METRICS}",told="job"}} 1.0\n' in page
    assert f'streamgauge_scrapes_coarsened_total{{asked="subtask",page="{FLINK}",told="job"}} 1.0\n' in page
    assert f'streamgauge_scrape_series{{page="{METRICS}"}} {len(told(page))}.0\n' in page


def test_a_compressed_scrape_reads_back_byte_for_byte(store: MetricStore, clock: ManualClock) -> None:
    """By whoever undoes gzip himself."""
    request = Request({"type": "http", "method": "GET", "headers": [(b"accept-encoding", b"gzip")]})
    plain = Request({"type": "http", "method": "GET", "headers": []})
    pages = Scrape(store, clock, SelfMetrics(store, NO_HISTORY), 10**6)
    small, page = (asyncio.run(pages.flink(each)) for each in (request, plain))
    assert gzip.decompress(bytes(small.body)) == bytes(page.body)
