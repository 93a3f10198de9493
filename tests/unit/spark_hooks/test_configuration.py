"""Settings and environment as they leave the driver: once, on change, without secrets, and never too long."""

from __future__ import annotations

import msgspec
import pytest

from spark_hooks import configuration as module
from spark_hooks import records
from spark_hooks.configuration import configuration, environment
from spark_hooks.execution import Model
from spark_hooks.executors import Executors
from spark_hooks.frames import Frames
from spark_hooks.redaction import REPLACEMENT, Redaction
from streamgauge import wire
from streamgauge.clock import ManualClock
from tests.unit.spark_hooks.spark_events import APP, Execution, Ids, Query, new_model, scan, sink, stage

TOLD = records.Environment(
    java="OpenJDK 64-Bit Server VM - Debian - 17/17.0.15",
    architecture="amd64",
    arguments=("-Xmx1g", "-Dmy.secret=hunter2", "-Dx=jdbc:x://me:hunter2@h/db"),
    class_path=("/opt/spark/jars/a.jar", "https://me:hunter2@host/b.jar"),
    settings={"spark.master": "local[2]", "spark.my.password": "hunter2", "spark.b": "jdbc:x://me:hunter2@h/db"},
)


class Driver:
    """A model and its frames."""

    def __init__(self, app: wire.App = APP, redact: Redaction | None = None) -> None:
        self.clock = ManualClock(now_ms=2_000_000)
        self.model: Model = new_model(self.clock)
        self.executors = Executors(app.id, 1, self.clock)
        self.frames = Frames(app, 1000, self.clock, redact or Redaction())

    def apply(self, *events: records.Record) -> None:
        self.model.apply(events)
        assert self.model.faults == []

    def build(self) -> list[wire.Frame]:
        return self.frames.build(self.model, self.executors, {}, {})

    def acknowledge(self, frames: list[wire.Frame]) -> None:
        self.frames.acknowledge(frames, self.model, self.executors)


def settings_of(driver: Driver) -> dict[str, str] | None:
    _, job = driver.build()
    return job.configuration


# ---- Redacted and cut


def test_settings_are_in_order_and_without_secrets() -> None:
    """By the setting's name, and by what its value says."""
    assert list(configuration(TOLD.settings, Redaction()).items()) == [
        ("spark.b", f"jdbc:x://me:{REPLACEMENT}@h/db"),
        ("spark.master", "local[2]"),
        ("spark.my.password", REPLACEMENT),
    ]


def test_environment_is_told_without_secrets() -> None:
    """An argument '-Dname=value' is a setting."""
    assert environment(TOLD, Redaction()) == wire.Environment(
        java_version=TOLD.java,
        architecture="amd64",
        java_options=("-Xmx1g", f"-Dmy.secret={REPLACEMENT}", f"-Dx=jdbc:x://me:{REPLACEMENT}@h/db"),
        class_path=("/opt/spark/jars/a.jar", f"https://me:{REPLACEMENT}@host/b.jar"),
    )


def test_what_is_too_long_or_too_many_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector refuses a whole push for one text that is too long."""
    monkeypatch.setattr(module, "SETTINGS", 2)
    monkeypatch.setattr(module, "NAME_CHARS", 5)
    monkeypatch.setattr(module, "VALUE_CHARS", 4)
    assert configuration({"c": "1", "bbbbbbb": "12345", "a": "2"}, Redaction()) == {"a": "2", "bbbb…": "123…"}
    told = environment(msgspec.structs.replace(TOLD, class_path=("12345", "6", "7")), Redaction())
    assert (told.class_path, told.java_version) == (("123…", "6"), "Open…")


# ---- The application's


def test_application_tells_its_configuration_until_it_was_taken() -> None:
    """Then only its figures travel, until the collector starts over."""
    driver = Driver()
    (before,) = driver.build()
    assert (before.configuration, before.environment) == (None, None)
    driver.apply(TOLD)
    for _ in range(2):
        (sent,) = driver.build()
        assert sent.configuration == configuration(TOLD.settings, Redaction())
        assert sent.environment == environment(TOLD, Redaction())
    driver.acknowledge([sent])
    (later,) = driver.build()
    assert (later.base, later.configuration, later.environment) == (sent.seq, None, None)
    driver.frames.start_over()
    (again,) = driver.build()
    assert (again.base, again.configuration) == (0, sent.configuration)
    assert again.environment == sent.environment


def test_application_tells_when_it_ended() -> None:
    """−1 while it runs."""
    driver = Driver()
    assert driver.build()[0].end_ms == -1
    driver.apply(records.ApplicationEnd(1_234))
    assert driver.build()[0].end_ms == 1_234


def test_applications_name_is_redacted() -> None:
    """A user has written it."""
    driver = Driver(msgspec.structs.replace(APP, name="etl password=hunter2"))
    assert driver.build()[0].app.name == f"etl password={REPLACEMENT}"


# ---- A job's


def test_query_tells_its_own_settings_and_their_changes() -> None:
    """What its session had when it started, then what its batches ran with; only changes travel."""
    driver, query, ids = Driver(), Query(1), Ids()
    driver.apply(
        query.started(), records.Configuration(query.run_id, -1, {"spark.x": "1", "spark.pin.token": "hunter2"})
    )
    first = driver.build()
    assert first[1].configuration == {"spark.pin.token": REPLACEMENT, "spark.x": "1"}
    driver.acknowledge(first)
    query.batch = 0
    batch = Execution(ids, sink(ids, scan(ids)), query.describe())
    start = batch.start()
    same = {"spark.x": "1", "spark.pin.token": "hunter2"}
    driver.apply(start, records.Configuration(None, start.execution, same))
    assert settings_of(driver) is None
    driver.apply(records.Configuration(None, start.execution, {"spark.sql.shuffle.partitions": "3"}))
    changed = driver.build()
    assert changed[1].configuration == {"spark.sql.shuffle.partitions": "3"}
    driver.acknowledge(changed)
    assert settings_of(driver) is None


def test_batch_tells_the_settings_that_it_ran_with() -> None:
    """They come before its first Spark job makes it a job of ours."""
    driver, ids = Driver(), Ids()
    batch = Execution(ids, ids.node("Project", scan(ids)), "count at x.py:1")
    start = batch.start()
    driver.apply(start, records.Configuration(None, start.execution, {"spark.x": "1"}), batch.job(stage(ids, 1)))
    assert settings_of(driver) == {"spark.x": "1"}


def test_settings_of_what_is_not_known_are_dropped() -> None:
    """A run, or an execution, whose start was lost."""
    driver = Driver()
    driver.apply(records.Configuration("gone", -1, {"a": "b"}), records.Configuration(None, 7, {"a": "b"}))
    assert len(driver.build()) == 1


def test_full_frame_tells_all_settings() -> None:
    """Also that there are none."""
    driver = Driver()
    driver.apply(Query(1).started())
    assert settings_of(driver) == {}


# ---- Names in a plan


def test_names_of_a_plan_are_redacted_and_stay_unique() -> None:
    """Metric ids need names that are unique in a vertex, and two may differ by a secret alone."""
    driver, query, ids = Driver(), Query(1), Ids()
    query.batch = 0
    below = ids.node("Scan R(token=hunter2)", description="a")
    plan = ids.node("Filter token=hunter2", ids.node("Filter token=hunter3", below, description="b"), description="c")
    batch = Execution(ids, sink(ids, plan), query.describe())
    driver.apply(query.started(), batch.start(), batch.job(stage(ids, 1, scopes=["Scan R(token=hunter2)"])))
    _, job = driver.build()
    assert job.plan is not None
    (vertex,) = job.plan.vertices
    names = [operator.name for operator in vertex.operators]
    assert len(set(names)) == len(names)
    assert f"Filter token={REPLACEMENT} 2" in names
    assert "hunter" not in str(job)
