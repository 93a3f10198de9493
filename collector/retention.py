"""What leaves the live store, and when: ended jobs, jobs and applications that have long been silent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

from collector.store import AppState, Departure, JobState, MetricStore, Snapshot
from streamgauge.clock import Clock


@dataclass(frozen=True, slots=True)
class Keep:
    """
    How much of the past the live store keeps.

    Args:
        ended_queries: Ended streaming queries, the latest ended first; 0 or more.
        ended_batches: Ended batch executions, likewise. Counted apart, so that a driver with many small
            SQL executions does not push ended queries out.
        ended_ms: How long after its end a job is kept, monotonic milliseconds; at least 0.
        silent_ms: How long after its last frame a suspended job, or an application without jobs, is
            kept, monotonic milliseconds; at least 0.

    Raises:
        ValueError: one of them is negative.
    """

    ended_queries: int = 100
    ended_batches: int = 100
    ended_ms: int = 3_600_000
    silent_ms: int = 3_600_000

    def __post_init__(self) -> None:
        for name in ("ended_queries", "ended_batches", "ended_ms", "silent_ms"):
            value: int = getattr(self, name)
            if value < 0:
                raise ValueError(f"{name} is {value}, but must be at least 0")


@dataclass(frozen=True, slots=True)
class Evicted:
    """What one sweep took out, as it last was."""

    jobs: tuple[JobState, ...]
    apps: tuple[AppState, ...]


class Retention:
    """
    Takes out of the store what it no longer keeps.

    A suspended application keeps its executors until it leaves; `AppState.suspended` tells that they do
    not count as alive.

    Any thread may sweep; writes are serialised by the store's lock.
    """

    def __init__(self, store: MetricStore, clock: Clock, keep: Keep) -> None:
        self._store = store
        self._clock = clock
        self._keep = keep

    def sweep(self) -> Evicted:
        """
        Evict what is due now; call it every few seconds.

        Returns:
            What has left. If nothing has, the store's snapshot is the same object as before.
        """
        with self._store.lock:
            snapshot = self._store.snapshot()
            now_ns = self._clock.monotonic_ns()
            jobs = self._due_jobs(list(snapshot.jobs.values()), now_ns)
            gone = {job.job.jid for job in jobs}
            in_use = {job.app.id for jid, job in snapshot.jobs.items() if jid not in gone}
            apps = tuple(
                app for app in snapshot.apps.values() if app.app.id not in in_use and self._is_long_silent(app, now_ns)
            )
            if jobs or apps:
                now_ms = self._clock.now_ms()
                self._store.depart(Departure(job, snapshot.apps.get(job.app.id), now_ms, False) for job in jobs)
                left = {app.app.id for app in apps}
                self._store.swap(
                    Snapshot(
                        MappingProxyType({jid: job for jid, job in snapshot.jobs.items() if jid not in gone}),
                        MappingProxyType({key: app for key, app in snapshot.apps.items() if key not in left}),
                    )
                )
        return Evicted(jobs, apps)

    def _due_jobs(self, jobs: list[JobState], now_ns: int) -> tuple[JobState, ...]:
        queries = [job for job in jobs if job.job.type == "STREAMING"]
        batches = [job for job in jobs if job.job.type == "BATCH"]
        return (
            *self._due_ended(queries, self._keep.ended_queries, now_ns),
            *self._due_ended(batches, self._keep.ended_batches, now_ns),
            *(job for job in jobs if job.state == "SUSPENDED" and self._is_long_silent(job, now_ns)),
        )

    def _due_ended(self, jobs: Iterable[JobState], kept: int, now_ns: int) -> list[JobState]:
        ended = [(job.ended_ns, job) for job in jobs if job.ended_ns is not None]
        ended.sort(key=lambda pair: pair[0], reverse=True)
        return [
            job
            for rank, (ended_ns, job) in enumerate(ended)
            if rank >= kept or now_ns - ended_ns >= self._keep.ended_ms * 1_000_000
        ]

    def _is_long_silent(self, state: JobState | AppState, now_ns: int) -> bool:
        return now_ns - state.seen_ns >= self._keep.silent_ms * 1_000_000
