"""Who has fallen silent: jobs and applications whose driver no longer speaks are SUSPENDED."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from collector.store import AppState, JobState, MetricStore, Snapshot
from streamgauge.clock import Clock

SILENT_INTERVALS = 3
"""Push intervals that may pass without a frame."""

SILENT_EXTRA_MS = 10_000
"""Added to them, milliseconds: a garbage collection or a slow network is no silence."""


@dataclass(frozen=True, slots=True)
class Suspended:
    """Ids of the jobs and applications that one sweep found silent."""

    jobs: tuple[str, ...]
    apps: tuple[str, ...]


class Liveness:
    """
    Suspends whom nothing has been heard of for more than 3 push intervals + 10 s of monotonic time.

    The next frame brings a job or application back, see `collector.succession`. A job that has ended is
    silent by right.

    Any thread may sweep; writes are serialised by the store's lock.
    """

    def __init__(self, store: MetricStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def sweep(self) -> Suspended:
        """
        Suspend those that are silent now; call it about every second.

        Returns:
            Those that this sweep suspended. If there are none the store's snapshot is the same object as
            before.
        """
        with self._store.lock:
            snapshot = self._store.snapshot()
            now_ns = self._clock.monotonic_ns()
            jobs = {
                jid: self._suspended(job)
                for jid, job in snapshot.jobs.items()
                if job.ended_ns is None and job.state != "SUSPENDED" and _is_silent(job, now_ns)
            }
            apps = {
                app_id: replace(app, suspended=True)
                for app_id, app in snapshot.apps.items()
                if not app.suspended and _is_silent(app, now_ns)
            }
            if jobs or apps:
                self._store.swap(
                    Snapshot(MappingProxyType({**snapshot.jobs, **jobs}), MappingProxyType({**snapshot.apps, **apps}))
                )
        return Suspended(tuple(jobs), tuple(apps))

    def _suspended(self, job: JobState) -> JobState:
        now_ms = self._clock.now_ms()
        return replace(job, state="SUSPENDED", since_ms={**job.since_ms, "SUSPENDED": now_ms}, modified_ms=now_ms)


def _is_silent(state: JobState | AppState, now_ns: int) -> bool:
    allowed_ms = SILENT_INTERVALS * state.interval_ms + SILENT_EXTRA_MS
    return now_ns - state.seen_ns > allowed_ms * 1_000_000
