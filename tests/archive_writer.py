"""
A service's way to the archive, in a process of its own that is to be killed: jobs end, are swept, and are told.

Run as `python -m tests.archive_writer URL SEED`; it prints a line '<jid> <run> <name>' for each run once it is
archived, and goes on until it is killed.
"""

from __future__ import annotations

import sys
from itertools import count
from random import Random

from collector.archive import open_archive
from collector.segment import run_id
from streamgauge import wire
from streamgauge.clock import ManualClock
from tests.lives import Collector
from tests.unit.collector.conftest import Frames


def main(url: str, seed: int) -> None:
    random, frames = Random(seed), Frames()
    clock = ManualClock(1_000_000)
    collector = Collector(clock, open_archive(url, clock))
    assert collector.archive is not None
    for number in count():
        jid = f"{seed:016x}{number:016x}"
        size = random.choice((1, 3, 2_000))
        column = wire.OperatorColumns(frames.OPERATOR, (frames.column("numRecordsIn", *range(size)),))
        collector.push(
            frames.frame(
                attempt=wire.Attempt(number + 1, f"run-{number}"),
                job=frames.job(jid, name=f"job {number}", state="FINISHED", end_ms=clock.now_ms()),
                vertices=(frames.figures(size=size, operators=(column,)),),
            )
        )
        # Every second is one of many jobs, or of none.
        if random.random() < 0.7:
            clock.advance(1_000)
            known = set(collector.archive.entries.by_run)
            collector.sweep()
            for state in collector.store.snapshot().jobs.values():
                run = run_id(state)
                if run in collector.archive.entries.by_run and run not in known:
                    print(state.job.jid, run, state.job.name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
