"""How drivers and jobs are set: whose settings are told, and what follows from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from service.cluster import application_id
from service.flink import configuration
from service.flink.query import Query
from streamgauge import names, wire
from streamgauge.errors import UnknownJob

ENVIRONMENT = wire.Environment("VM - V - 17/17", "amd64", ("-XX:MaxDirectMemorySize=2m", "-Dx=y"), ("/a", "/b"))
NOTHING = {"jvm": {"version": "", "arch": "", "options": []}, "classpath": []}


def ask(states: Any, *held: Any, **path: str) -> Query:
    return Query.parse(states.snapshot(*held), 5_000, path, b"")


def execution_config(states: Any, shared: dict[str, str], **own: str) -> Any:
    job = states.job(configuration={name.replace("_", "."): value for name, value in own.items()})
    query = ask(states, states.app(configuration=shared), job, jobid=states.JID)
    return configuration.job(query)["execution-config"]


def test_settings_are_listed_by_key(states: Any) -> None:
    """With Flink's own keys for the driver's memory; what has no bound is left out."""
    app = states.app(
        configuration={"spark.b": "2", "a": "1"},
        environment=ENVIRONMENT,
        driver={names.HEAP_MAX: 1024, names.METASPACE_MAX: -1},
    )
    assert configuration.cluster_config(ask(states, app)) == [
        {"key": "a", "value": "1"},
        {"key": "jobmanager.memory.heap.size", "value": "1024b"},
        {"key": "jobmanager.memory.off-heap.size", "value": "2097152b"},
        {"key": "spark.b", "value": "2"},
    ]


def test_bounded_metaspace_is_told(states: Any) -> None:
    """As Flink's key has it."""
    found = configuration.cluster_config(ask(states, states.app(driver={names.METASPACE_MAX: 7})))
    assert found == [{"key": "jobmanager.memory.jvm-metaspace.size", "value": "7b"}]


def test_the_driver_that_started_last_is_the_jobmanager(states: Any) -> None:
    """Of those that speak; its environment with it."""
    old = states.app(id="old", start_ms=1, configuration={"a": "old"}, environment=ENVIRONMENT)
    new = states.app(id="new", start_ms=2, configuration={"a": "new"}, suspended=True)
    query = ask(states, old, new)
    assert configuration.cluster_config(query) == [
        {"key": "a", "value": "old"},
        {"key": "jobmanager.memory.off-heap.size", "value": "2097152b"},
    ]
    assert configuration.cluster_environment(query) == {
        "jvm": {"version": "VM - V - 17/17", "arch": "amd64", "options": ["-XX:MaxDirectMemorySize=2m", "-Dx=y"]},
        "classpath": ["/a", "/b"],
    }


def test_without_a_driver_nothing_is_told(states: Any) -> None:
    """In Flink's shape; also of a driver that has told no environment."""
    assert configuration.cluster_config(ask(states)) == []
    assert configuration.cluster_environment(ask(states)) == NOTHING
    assert configuration.cluster_environment(ask(states, states.app())) == NOTHING


def test_a_jobs_driver_is_its_own(states: Any) -> None:
    """Also one that is silent; [] where it has left the store."""
    own = states.app(configuration={"a": "own"}, environment=ENVIRONMENT, suspended=True)
    other = states.app(id="other", start_ms=9_000, configuration={"a": "other"})
    query = ask(states, states.job(), own, other, jobid=states.JID)
    assert {"key": "a", "value": "own"} in configuration.job_driver_config(query)
    assert configuration.job_driver_environment(query)["classpath"] == ["/a", "/b"]
    gone = ask(states, states.job(), other, jobid=states.JID)
    assert configuration.job_driver_config(gone) == []
    assert configuration.job_driver_environment(gone) == NOTHING


@pytest.mark.parametrize(
    "handler", [configuration.job, configuration.job_driver_config, configuration.job_driver_environment]
)
def test_unknown_job_is_not_found(states: Any, handler: Any) -> None:
    """As everywhere in Flink."""
    with pytest.raises(UnknownJob):
        handler(ask(states, jobid=states.JID))


def test_an_application_is_found_by_either_id(states: Any) -> None:
    """Flink's, or Spark's own."""
    app = states.app(configuration={"a": "1"})
    for asked in (app.app.id, application_id(app.app.id)):
        found = configuration.application_config(ask(states, app, applicationid=asked))
        assert found == [{"key": "a", "value": "1"}]


def test_user_config_is_the_querys_own_in_order(states: Any) -> None:
    """What is the application's stands in its configuration."""
    found = execution_config(states, {"spark.x": "1"}, spark_z="2", spark_a="3")
    assert list(found["user-config"].items()) == [("spark.a", "3"), ("spark.z", "2")]
    assert found["object-reuse-mode"] is False


@pytest.mark.parametrize(
    ("shared", "own", "expected"),
    [
        ({"spark.sql.shuffle.partitions": "8"}, {"spark_sql_shuffle_partitions": "3"}, 3),
        ({"spark.sql.shuffle.partitions": "8"}, {}, 8),
        ({"spark.default.parallelism": "5"}, {}, 5),
        ({}, {}, -1),
        ({"spark.sql.shuffle.partitions": "auto", "spark.default.parallelism": "5"}, {}, 5),
        ({"spark.sql.shuffle.partitions": "9" * 10}, {}, 2**31 - 1),
        ({"spark.sql.shuffle.partitions": "-3"}, {}, -1),
    ],
    ids=["query's", "application's", "default", "not told", "no number", "past int", "negative"],
)
def test_parallelism_is_what_is_told(states: Any, shared: dict[str, str], own: dict[str, str], expected: int) -> None:
    """−1 is Flink's word for one that is not known."""
    assert execution_config(states, shared, **own)["job-parallelism"] == expected


@pytest.mark.parametrize(("node", "expected"), [("StateStoreSave", 2), ("Project", 4)])
def test_state_keeps_its_partitions(states: Any, node: str, expected: int) -> None:
    """Where Spark tells them apart from those of shuffles."""
    vertex = states.vertex()
    operator = wire.Operator("a" * 32, "x", node, "")
    plan = msgspec.structs.replace(vertex.vertex, operators=(operator,))
    own = {"spark.sql.streaming.internal.stateStore.partitions": "2", "spark.sql.shuffle.partitions": "4"}
    job = states.job(replace(vertex, vertex=plan), configuration=own)
    body = configuration.job(ask(states, job, jobid=states.JID))
    assert body["execution-config"]["job-parallelism"] == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "A failed query is not restarted."),
        ({"spark.master": "local"}, "A failed query is not restarted; a task is tried once."),
        ({"spark.master": "local[*]", "spark.task.maxFailures": "9"}, "…; a task is tried once."),
        ({"spark.master": "local[2, 3]"}, "…; a task is tried up to 3 times."),
        ({"spark.master": "local-cluster[1,1,1024]"}, "…; a task is tried up to 4 times."),
        ({"spark.master": "yarn", "spark.task.maxFailures": "9"}, "…; a task is tried up to 9 times."),
    ],
)
def test_restart_strategy_is_sparks(states: Any, settings: dict[str, str], expected: str) -> None:
    """In local mode Spark looks at the master alone."""
    found = execution_config(states, settings)["restart-strategy"]
    assert found == expected.replace("…", "A failed query is not restarted")
