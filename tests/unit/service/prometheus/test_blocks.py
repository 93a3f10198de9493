"""Labels that are kept between scrapes."""

from __future__ import annotations

import threading
from typing import Any

from service.prometheus.blocks import Blocks, KeptBlocks
from service.prometheus.exposition import expose as expose_metrics
from service.prometheus.flink import expose as expose_flink
from service.prometheus.granularity import GRANULARITIES
from service.prometheus.text import Exposition
from streamgauge import names
from tests.exposed import NOW_MS, flinks, idiomatic


def asked(kept: KeptBlocks, *keys: str, made_of: object = 1) -> list[str]:
    """What one scrape made anew."""
    made: list[str] = []
    blocks = kept.begin()
    for key in keys:
        assert blocks.get(key, made_of, lambda key=key: made.append(key) or key) == key  # type: ignore[misc]
    kept.end(blocks)
    return made


def test_what_was_made_is_kept() -> None:
    """Within a scrape and for the next one."""
    kept = KeptBlocks()
    assert asked(kept, "a", "b", "a") == ["a", "b"]
    assert asked(kept, "a", "b") == []


def test_what_a_scrape_did_not_ask_for_is_dropped() -> None:
    """Nobody else knows that a vertex has gone."""
    kept = KeptBlocks()
    asked(kept, "a", "b")
    asked(kept, "a")
    assert asked(kept, "a", "b") == ["b"]


def test_what_is_made_of_something_else_is_made_anew() -> None:
    """As when a query gets another name."""
    kept = KeptBlocks()
    asked(kept, "a", made_of=("x", 1))
    assert asked(kept, "a", made_of=("x", 1)) == []
    assert asked(kept, "a", made_of=("y", 1)) == ["a"]


def busy(states: Any, name: str = "flights", attempt: int = 0, size: int = 2) -> Any:
    column = states.column(*range(size))
    operators = {"Map": {names.NUM_RECORDS_OUT: column}}
    times = states.times(size, attempt=[attempt] * size)
    vertex = states.vertex(size, columns={names.NUM_RECORDS_IN: column}, operators=operators, subtasks=times)
    return states.snapshot(states.job(vertex, name=name), states.app(states.executor()))


def test_a_page_of_kept_labels_is_that_of_new_ones(states: Any) -> None:
    """Whatever changed since: names, sizes, attempts, executors, granularity."""
    moved = states.snapshot(*busy(states).jobs.values(), states.app(states.executor(endpoint="other:1")))
    changed = (busy(states), busy(states, "other"), busy(states, size=3), busy(states, attempt=4), moved)
    for expose, anew in ((expose_metrics, idiomatic), (expose_flink, flinks)):
        kept = KeptBlocks()
        for snapshot in (*changed, *changed):
            for granularity in GRANULARITIES:
                page, blocks = Exposition(), kept.begin()
                expose(page, snapshot, NOW_MS, granularity, blocks)
                assert page.render().decode() == anew(snapshot, granularity)
                kept.end(blocks)


def test_subtasks_are_not_labelled_anew(states: Any) -> None:
    """The very same strings, as long as nothing of them has changed."""
    for expose in (expose_metrics, expose_flink):
        made = []
        kept = KeptBlocks()
        for _ in range(2):
            page, blocks = Exposition(), kept.begin()
            expose(page, busy(states), NOW_MS, "subtask", blocks)
            page.render()
            kept.end(blocks)
            made.append([id(value) for _, (_, value) in sorted(blocks.used.items(), key=str)])
        assert made[0] == made[1]
        assert made[0]


def test_scrapes_at_once_do_not_see_each_other(states: Any) -> None:
    """A scrape reads what was kept when it began, and writes what is its own."""
    kept = KeptBlocks()
    snapshot, wanted = busy(states), flinks(busy(states))
    told: list[str] = []
    barrier = threading.Barrier(4)

    def scrape() -> None:
        barrier.wait()
        for _ in range(20):
            page, blocks = Exposition(), kept.begin()
            expose_flink(page, snapshot, NOW_MS, "subtask", blocks)
            told.append(page.render().decode())
            kept.end(blocks)

    threads = [threading.Thread(target=scrape) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [wanted] * 80


def test_blocks_of_no_scrape_before_are_empty() -> None:
    """As the first scrape finds them."""
    assert Blocks().used == {}
