"""The labels of a subtask in /metrics/flink."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from collector.store import JobState, VertexState
from service.prometheus.blocks import Blocks
from service.prometheus.labels import bounded, listed
from streamgauge.wire import Executor

_UNWANTED = re.compile(r"[^a-zA-Z0-9:_]")


class Task(NamedTuple):
    """
    The labels of one subtask, as sorted: those of its operators come between the two.

    Args:
        head: From the opening brace.
        tail: To the closing one.
    """

    head: str
    tail: str


def filtered(text: str) -> str:
    """Return a name or label value as the reporter writes it: letters, digits, ':' and '_', all else '_'."""
    return _UNWANTED.sub("_", text)


def located(host: str, instance: str) -> dict[str, str]:
    """
    Return the labels by which dashboards tell processes apart; any thread.

    Args:
        host: Of the process, which Flink's reporter sends.
        instance: What stands for the label that Prometheus gives to each process of a Flink, for it scrapes them one by
            one.
    """
    return {"host": filtered(bounded(host)), "instance": instance}


def executor_at(endpoint: str) -> dict[str, str]:
    """Return `located` of an executor's endpoint, '' where it is unknown; any thread."""
    return located(endpoint.rpartition(":")[0] or endpoint, endpoint)


def tasks(job: JobState, vertex: VertexState, executors: Mapping[str, Executor], blocks: Blocks) -> list[Task]:
    """
    Return the labels of each subtask of a vertex.

    Args:
        executors: Of the job's application, by id.

    Any thread.

    Source: Flink 2.3's `PrometheusReporter`, and a recorded scrape of it.
    """
    times = vertex.subtasks
    known = () if times is None else times.executors
    endpoints = tuple(executors[one].endpoint if one in executors else "" for one in known)
    attempts = b"" if times is None else times.attempt.tobytes()
    numbers = b"" if times is None else times.executor.tobytes()
    made_of = (job.job.name, vertex.vertex, vertex.size, known, endpoints, attempts, numbers)
    return blocks.get((job.job.jid, vertex.vertex.id), made_of, partial(_tasks, job, vertex, endpoints))


def _tasks(job: JobState, vertex: VertexState, endpoints: tuple[str, ...]) -> list[Task]:
    jid, job_name = job.job.jid, filtered(bounded(job.job.name))
    task_id, task_name = vertex.vertex.id, filtered(bounded(vertex.vertex.name))
    times = vertex.subtasks
    attempts = [0] * vertex.size if times is None else times.attempt.tolist()
    numbers = [-1] * vertex.size if times is None else times.executor.tolist()
    # Where nobody knows the executor the number is -1, which is the last of each list.
    heads = [f'{{{listed(executor_at(endpoint))},job_id="{jid}",job_name="{job_name}"' for endpoint in (*endpoints, "")]
    ids = [filtered(bounded(each)) for each in (*(() if times is None else times.executors), "")]
    return [
        Task(
            heads[number],
            f'subtask_index="{index}",task_attempt_id="{jid}_{task_id}_{index}_{attempt}",'
            f'task_attempt_num="{attempt}",task_id="{task_id}",task_name="{task_name}",tm_id="{ids[number]}"}}',
        )
        for index, (attempt, number) in enumerate(zip(attempts, numbers, strict=True))
    ]
