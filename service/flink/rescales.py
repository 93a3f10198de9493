"""Changes of parallelism: …/rescales/… and …/resource-requirements, as a Flink whose scheduler makes none."""

from __future__ import annotations

from typing import NoReturn

from service.errors import HANDLER, Missing
from service.flink.query import Query

_UNAVAILABLE = "org.apache.flink.runtime.rest.handler.job.rescales.RescalesUnavailableException: "


def config(query: Query) -> NoReturn:
    """
    Answer …/rescales/config.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: always else.
    """
    raise Missing(HANDLER, f"AdaptiveScheduler is not enabled for this job ({query.job().job.jid}).")


def records(query: Query) -> NoReturn:
    """
    Answer …/rescales/history, …/rescales/overview and …/rescales/summary.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: always else.
    """
    raise Missing(
        _UNAVAILABLE,
        f"The job `{query.job().job.jid}` has not enabled the `Adaptive` scheduler, or it has been enabled but the "
        "value of configuration option `web.adaptive-scheduler.rescale-history.size` has not been set to greater "
        "than `0`.",
    )


def details(query: Query) -> NoReturn:
    """
    Answer …/rescales/details/:rescaleuuid.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: always else.
    """
    raise Missing(HANDLER, f"AdaptiveScheduler rescales was not enabled for job {query.job().job.jid}.")


def requirements(query: Query) -> NoReturn:
    """
    Answer …/resource-requirements.

    Raises:
        UnknownJob: never seen, or evicted.
        Missing: always else. Flink answers 500 there, and has these words in its log.
    """
    query.job()
    raise Missing(
        HANDLER,
        "The DefaultScheduler does not support changing the parallelism without a job restart. This feature is "
        "currently only expected to work with the AdaptiveScheduler.",
    )
