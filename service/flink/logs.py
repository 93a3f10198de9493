"""Log files, of which there are none here: Spark's processes keep their own."""

from __future__ import annotations

from typing import NoReturn

from typing_extensions import TypedDict

from service.cluster import find_executor
from service.errors import HANDLER, NOT_FOUND, Missing
from service.flink.query import Query


class LogFile(TypedDict):
    """A log file: bytes, and when it was last written, Unix milliseconds."""

    name: str
    size: int
    mtime: int


class LogFiles(TypedDict):
    """The body of …/logs."""

    logs: list[LogFile]


def jobmanager(_query: Query) -> LogFiles:
    """Answer /jobmanager/logs."""
    return {"logs": []}


def taskmanager(query: Query) -> LogFiles:
    """
    Answer /taskmanagers/:taskmanagerid/logs.

    Raises:
        Missing: no such executor.
    """
    executor_id = query.path["taskmanagerid"]
    if find_executor(query.snapshot, executor_id) is None:
        raise Missing(HANDLER, f"Could not find TaskExecutor {executor_id}")
    return {"logs": []}


def jobmanager_file(_query: Query) -> NoReturn:
    """
    Answer /jobmanager/log, /jobmanager/stdout and /jobmanager/logs/:filename.

    Raises:
        Missing: always.
    """
    raise Missing("", "This file does not exist in JobManager log dir.")


def taskmanager_file(query: Query) -> NoReturn:
    """
    Answer /taskmanagers/:taskmanagerid/log, …/stdout and …/logs/:filename.

    Raises:
        Missing: always. Where the executor is known Flink answers 500.
    """
    executor_id = query.path["taskmanagerid"]
    why = " because it was unknown." if find_executor(query.snapshot, executor_id) is None else "."
    raise Missing(NOT_FOUND, f"Failed to transfer file from TaskExecutor {executor_id}{why}")


def page(_query: Query) -> NoReturn:
    """
    Answer …/log-url, Flink's link to the logs on its own page.

    Raises:
        Missing: always, since there is no such page.
    """
    raise Missing(HANDLER, "There is no page of logs: Spark's processes keep their own.")
