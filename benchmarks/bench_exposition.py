"""
What a scrape costs: a page with labels that were kept from the scrape before, one that has to write them, and the same
samples in a registry of prometheus_client with a labelled child each; and what each level of gzip makes of the page.

Expectation: 100,000 series in a tenth of the time that labelled children take. From the root of the project:
`python -m benchmarks.bench_exposition`.
"""

from __future__ import annotations

import gzip
import platform
import random
import resource
import time
from collections.abc import Callable
from functools import partial

import click
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from benchmarks.bench_rest_overview import JOBS_A_PUSH, job_frame
from benchmarks.spread import Spread, spread
from benchmarks.workloads import SEED
from collector.ingest import Ingest
from collector.limits import Limits
from collector.store import MetricStore, Snapshot
from service.prometheus import exposition, flink
from service.prometheus.blocks import Blocks, KeptBlocks
from service.prometheus.families import FAMILIES
from service.prometheus.scrape import Expose
from service.prometheus.text import Exposition
from streamgauge import codec
from streamgauge.clock import SystemClock

VERTICES, SUBTASKS, COLUMNS = 10, 100, 6
"""Of a job; every vertex has so many columns."""
LEVELS = (1, 2, 4, 6, 9)


def filled(series: int, clock: SystemClock) -> Snapshot:
    """Return jobs that make about so many series by subtask."""
    store = MetricStore()
    ingest = Ingest(store, clock, Limits())
    jobs = max(1, round(series / (VERTICES * SUBTASKS * COLUMNS)))
    frames = [job_frame(number, VERTICES, SUBTASKS, clock.now_ms()) for number in range(jobs)]
    for first in range(0, jobs, JOBS_A_PUSH):
        ingest.push(codec.encode(frames[first : first + JOBS_A_PUSH]))
    return store.snapshot()


def scrape(expose: Expose, snapshot: Snapshot, blocks: Blocks, openmetrics: bool = False) -> tuple[bytes, int]:
    """Return a page by subtask, and its series."""
    page = Exposition(openmetrics)
    expose(page, snapshot, SystemClock().now_ms(), "subtask", blocks)
    return page.render(), page.series


class Children:
    """
    The vertices' samples as labelled children, which are kept from scrape to scrape.

    Args:
        snapshot: What they are set from.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._registry = CollectorRegistry()
        names = ("job_id", "job_name", "subtask", "vertex_id", "vertex_name")
        families = {metric: family for (scope, metric), family in FAMILIES.items() if scope == "vertex"}
        [vertex, *_] = next(iter(snapshot.jobs.values())).vertices.values()
        self._metrics = {
            metric: (Counter if families[metric].kind == "counter" else Gauge)(
                families[metric].name, families[metric].help, names, registry=self._registry
            )
            for metric in vertex.columns
        }

    def scrape(self) -> bytes:
        """Set every child and render the registry."""
        for job in self._snapshot.jobs.values():
            for vertex in job.vertices.values():
                for name, column in vertex.columns.items():
                    metric = self._metrics[name]
                    for index, value in enumerate(column.values.tolist()):
                        child = metric.labels(
                            job.job.jid, job.job.name, str(index), vertex.vertex.id, vertex.vertex.name
                        )
                        if isinstance(child, Counter):
                            child.reset()
                            child.inc(value)
                        else:
                            child.set(value)
        return generate_latest(self._registry)


def paired(works: dict[str, Callable[[], object]], runs: int) -> dict[str, Spread]:
    """
    Return the processor time of each, milliseconds: in random order, the first, cold round left out.

    All of it runs in one thread, and what else the machine does costs no processor time.
    """
    numbers = random.Random(SEED)
    figures: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(1 + runs):
        for name in numbers.sample(list(works), len(works)):
            began = time.process_time_ns()
            works[name]()
            figures[name].append((time.process_time_ns() - began) / 1e6)
    return {name: spread(values[1:]) for name, values in figures.items()}


def line(what: str, cost: Spread) -> str:
    """Return one row of the table."""
    held = f"{cost.low:.1f}..{cost.high:.1f}"
    return f"{what:36} {cost.median:9.1f} {held:>18} {cost.least:9.1f} {cost.greatest:9.1f}"


def measure(series: int, runs: int, clock: SystemClock) -> None:
    """Print the tables of one store."""
    snapshot = filled(series, clock)
    kept = {"/metrics": KeptBlocks(), "/metrics/flink": KeptBlocks()}
    pages: dict[str, Expose] = {"/metrics": exposition.expose, "/metrics/flink": flink.expose}

    def again(path: str, openmetrics: bool = False) -> bytes:
        blocks = kept[path].begin()
        page, _ = scrape(pages[path], snapshot, blocks, openmetrics)
        kept[path].end(blocks)
        return page

    works: dict[str, Callable[[], object]] = {
        "/metrics": lambda: again("/metrics"),
        "/metrics, OpenMetrics": lambda: again("/metrics", True),
        "/metrics, labels written anew": lambda: scrape(exposition.expose, snapshot, Blocks()),
        "/metrics/flink": lambda: again("/metrics/flink"),
        "/metrics/flink, labels written anew": lambda: scrape(flink.expose, snapshot, Blocks()),
        "labelled children": Children(snapshot).scrape,
    }
    page, told = scrape(exposition.expose, snapshot, Blocks())
    click.echo(f"\n{told:,} series of /metrics, {len(page):,} bytes, {runs} runs")
    click.echo(f"{'a scrape, ms of one core':36} {'median':>9} {'95 % of it':>18} {'least':>9} {'most':>9}")
    for name, cost in paired(works, runs).items():
        click.echo(line(name, cost))
    for path in pages:
        page = again(path)
        levels = {f"{level}": partial(gzip.compress, page, level, mtime=0) for level in LEVELS}
        for level, cost in paired(levels, max(1, runs // 3)).items():
            left = len(gzip.compress(page, int(level), mtime=0))
            click.echo(line(f"gzip {level} of {path}: {left / len(page):.1%}", cost))


@click.command()
@click.option("--runs", default=21, show_default=True, help="Measurements of each kind.")
@click.option("--series", "sizes", multiple=True, type=int, default=(10_000, 100_000), show_default=True)
def main(runs: int, sizes: tuple[int, ...]) -> None:
    """Fill a store for each size, scrape it in every way, and print tables."""
    click.echo(f"Python {platform.python_version()}, {platform.machine()}")
    for series in sizes:
        measure(series, runs, SystemClock())
    click.echo(f"\nat most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB were resident")


if __name__ == "__main__":
    main()
