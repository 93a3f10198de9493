"""Every family that /metrics can tell: its kind, its labels, and what stands for all subtasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from collector.history import NO_HISTORY
from collector.store import MetricStore
from docs.metrics import PLACES
from service.prometheus import distributions, latencies, splits
from service.prometheus.families import FAMILIES
from service.self_metrics import SelfMetrics

JOB = PLACES["job"].labels
VERTEX = PLACES["vertex"].labels
OPERATOR = PLACES["operator"].labels
BY_SUBTASK = ("vertex", "operator")
"""Scopes of which a series a subtask may be asked for."""


class Exposed(NamedTuple):
    """
    A series' name as PromQL has it.

    Args:
        kind: counter or gauge; the parts of a histogram are counters.
        labels: All that it may have, but for `subtask`.
        whole: sum, max or min: what stands for all subtasks; '' where it is not by subtask.
    """

    kind: str
    labels: frozenset[str]
    whole: str = ""


_OWN = {
    "streamgauge_scrape_series": ("page",),
    "streamgauge_scrape_size_bytes": ("page",),
    "streamgauge_scrapes_coarsened_total": ("page", "asked", "told"),
    "streamgauge_service_frames_total": ("outcome",),
    "streamgauge_service_pushes_refused_total": ("reason",),
    "streamgauge_service_request_duration_seconds": ("handler",),
    "streamgauge_service_requests_total": ("handler", "code"),
}
"""Labels of the service's own families; the others have none."""


def told() -> dict[str, Exposed]:
    """Return every series that the code tells now, by name."""
    return dict((*_catalogued(), *_made(), *_own()))


def known(name: str) -> Exposed:
    """Return what is known of a series' name, and fail where nothing is."""
    found = _TOLD.get(name)
    assert found is not None, f"{name} is not in /metrics"
    return found


def _catalogued() -> Iterator[tuple[str, Exposed]]:
    for (scope, _), family in FAMILIES.items():
        labels = {*PLACES[scope].labels}
        if family.label:
            labels.add(family.label[0])
        whole = family.whole if scope in BY_SUBTASK else ""
        yield family.name, Exposed(family.kind, frozenset(labels), whole)


def _made() -> Iterator[tuple[str, Exposed]]:
    yield "streamgauge_job_state", Exposed("gauge", frozenset((*JOB, "job_type", "state")))
    yield "streamgauge_job_info", Exposed("gauge", frozenset((*JOB, "application_id", "application_name")))
    yield "streamgauge_vertex_bottleneck", Exposed("gauge", frozenset(VERTEX))
    for split in splits.FAMILIES:
        yield split.name, Exposed(split.kind, frozenset((*VERTEX, "tap", "split")))
    for latency in latencies.FAMILIES:
        yield from _histogram(latency.name, (*OPERATOR, "source_id", "source_name"))
    for distribution in distributions.FAMILIES.values():
        yield from _histogram(distribution.name, OPERATOR)


def _own() -> Iterator[tuple[str, Exposed]]:
    for family in SelfMetrics(MetricStore(), NO_HISTORY).collect():
        if family.type == "histogram":
            yield from _histogram(family.name, _OWN.get(family.name, ()))
        else:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield name, Exposed(family.type, frozenset(_OWN.get(name, ())))


def _histogram(name: str, labels: tuple[str, ...]) -> Iterator[tuple[str, Exposed]]:
    yield f"{name}_bucket", Exposed("counter", frozenset((*labels, "le")))
    yield f"{name}_count", Exposed("counter", frozenset(labels))
    yield f"{name}_sum", Exposed("counter", frozenset(labels))


_TOLD = told()
