"""What Flink samples in its processes when it is asked: drivers and executors push, and cannot be asked."""

from __future__ import annotations

from typing import Literal, NoReturn

from typing_extensions import TypedDict

from service.cluster import find_executor
from service.errors import HANDLER, Missing
from service.flink.query import Query
from streamgauge.errors import UnknownTaskManager

_SWITCHED_OFF: Literal[-2] = -2
"""Flink's word for flame graphs that are switched off, in place of a time."""


class FlameGraph(TypedDict):
    """The body of …/flamegraph."""

    endTimestamp: Literal[-2]


def flamegraph(_query: Query) -> FlameGraph:
    """
    Answer …/vertices/:vertexid/flamegraph as a Flink with `rest.flamegraph.enabled: false`, whatever the vertex.

    Source: Flink's `DisabledJobVertexFlameGraphHandler`, `VertexFlameGraph.disabled`.
    """
    return {"endTimestamp": _SWITCHED_OFF}


def driver_threads(_query: Query) -> NoReturn:
    """
    Answer /jobmanager/thread-dump.

    Raises:
        Missing: always.
    """
    raise Missing(HANDLER, "There is no thread dump: drivers push, and cannot be asked.")


def executor_threads(query: Query) -> NoReturn:
    """
    Answer /taskmanagers/:taskmanagerid/thread-dump.

    Raises:
        UnknownTaskManager: never seen, gone, or of a driver that is silent. Flink answers 500 there.
        Missing: always else.
    """
    executor_id = query.path["taskmanagerid"]
    if find_executor(query.snapshot, executor_id) is None:
        raise UnknownTaskManager(executor_id)
    raise Missing(HANDLER, "There is no thread dump: executors are not asked, only their drivers' pushes are read.")
