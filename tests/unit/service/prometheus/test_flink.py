"""/metrics/flink: as Flink's reporter names it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from collector.taps import Taps
from service.prometheus.tasks import filtered
from streamgauge import names
from tests.exposed import flinks

JID, VERTEX = "d" * 32, "c" * 32
NO_WATERMARK = "-9.223372036854776e+18"


def text(states: Any, *held: Any) -> str:
    return flinks(states.snapshot(*held))


def task(index: int, host: str = "10_0_0_7", tm_id: str = "app_1_0", attempt: int = 0, further: str = "") -> str:
    instance = "10.0.0.7:7079" if host else ""
    return (
        f'host="{host}",instance="{instance}",job_id="{JID}",job_name="flights_by_hour",{further}subtask_index="{index}",'
        f'task_attempt_id="{JID}_{VERTEX}_{index}_{attempt}",task_attempt_num="{attempt}",task_id="{VERTEX}",'
        f'task_name="Scan____Filter",tm_id="{tm_id}"'
    )


def test_rendered_bytes_of_a_task_and_its_operator(states: Any) -> None:
    """Names, HELP, TYPE and all labels; a subtask without a value has no series."""
    columns = {
        names.SHUFFLE_INPUT + names.NUM_BYTES_IN_LOCAL: states.column(5, None),
        names.BUSY_TIME: states.column(2.0, float("nan")),
    }
    operators = {"Sink: x": {names.NUM_RECORDS_OUT: states.column(None, 7)}}
    times = states.times(attempt=[0, 2], executor=[0, -1])
    job = states.job(states.vertex(columns=columns, operators=operators, subtasks=times))
    rendered = text(states, job, states.app(states.executor("app-1-0")))
    operator = f'operator_id="{0:032x}",operator_name="Sink:_x",'
    assert rendered[rendered.index("# HELP flink_taskmanager_job_task_Shuffle") :] == (
        "# HELP flink_taskmanager_job_task_Shuffle_Netty_Input_numBytesInLocal "
        "numBytesInLocal (scope: taskmanager_job_task_Shuffle_Netty_Input)\n"
        "# TYPE flink_taskmanager_job_task_Shuffle_Netty_Input_numBytesInLocal gauge\n"
        f"flink_taskmanager_job_task_Shuffle_Netty_Input_numBytesInLocal{{{task(0)}}} 5.0\n"
        "# HELP flink_taskmanager_job_task_busyTimeMsPerSecond "
        "busyTimeMsPerSecond (scope: taskmanager_job_task)\n"
        "# TYPE flink_taskmanager_job_task_busyTimeMsPerSecond gauge\n"
        f"flink_taskmanager_job_task_busyTimeMsPerSecond{{{task(0)}}} 2.0\n"
        f"flink_taskmanager_job_task_busyTimeMsPerSecond{{{task(1, host='', tm_id='', attempt=2)}}} NaN\n"
        "# HELP flink_taskmanager_job_task_operator_numRecordsOut "
        "numRecordsOut (scope: taskmanager_job_task_operator)\n"
        "# TYPE flink_taskmanager_job_task_operator_numRecordsOut gauge\n"
        f"flink_taskmanager_job_task_operator_numRecordsOut{{{task(1, '', '', 2, operator)}}} 7.0\n"
    )


def test_rendered_bytes_of_splits_and_histograms(states: Any) -> None:
    """A split's id is a label and its group part of the name, as of Flink's; a histogram is a summary of subtask 0."""
    columns = {names.SPLIT_CURRENT_WATERMARK: [-(2**63), 9], names.SPLIT_IDLE: [None, 0]}
    tap = states.tap("p 1", "2", columns=columns, by_subtask=True)
    held = Taps((tap,), {(f"{0:032x}", names.TIMER_LATENESS): states.buckets(10, 20, 90)})
    job = states.job(states.vertex(operators={"Map": {}, "Sink: x": {}}, taps=held))
    rendered = text(states, job, states.app(states.executor("app-1-0")))
    operator = f'operator_id="{0:032x}",operator_name="Map",'
    scope = "taskmanager_job_task_operator"
    one, two = 'split="p_1",', 'split="2",'
    values = {"0.5": 20.0, "0.75": 20.0, "0.95": 90.0, "0.98": 90.0, "0.99": 90.0, "0.999": 90.0}
    figures = {f'quantile="{rank}",': value for rank, value in values.items()}
    assert rendered[rendered.index(f"# HELP flink_{scope}") :] == (
        f"# HELP flink_{scope}_split_watermark_currentWatermark "
        f"currentWatermark (scope: {scope}_split_watermark)\n"
        f"# TYPE flink_{scope}_split_watermark_currentWatermark gauge\n"
        f"flink_{scope}_split_watermark_currentWatermark{{{task(0, '', '', 0, operator + one)}}} {NO_WATERMARK}\n"
        f"flink_{scope}_split_watermark_currentWatermark{{{task(1, '', '', 0, operator + two)}}} 9.0\n"
        f"# HELP flink_{scope}_split_isIdle isIdle (scope: {scope}_split)\n"
        f"# TYPE flink_{scope}_split_isIdle gauge\n"
        f"flink_{scope}_split_isIdle{{{task(1, '', '', 0, operator + two)}}} 0.0\n"
        f"# HELP flink_{scope}_timerLateness timerLateness (scope: {scope})\n"
        f"# TYPE flink_{scope}_timerLateness summary\n"
        + "".join(
            f"flink_{scope}_timerLateness{{{task(0, '', '', 0, operator + quantile)}}} {value}\n"
            for quantile, value in figures.items()
        )
        + f"flink_{scope}_timerLateness_count{{{task(0, '', '', 0, operator)}}} 3.0\n"
    )


def test_rendered_bytes_of_jobmanager_and_taskmanager(states: Any) -> None:
    """The JobManager's labels are its host; what is text is left out."""
    app = states.app(states.executor("app-1-0", metrics={names.HEAP_USED: 5, "why": "x"}), driver={names.CPU_LOAD: 0.5})
    assert [line for line in text(states, app).splitlines() if line[0] != "#"] == [
        'flink_jobmanager_Status_JVM_CPU_Load{host="driver_test",instance="driver.test"} 0.5',
        'flink_jobmanager_taskSlotsTotal{host="driver_test",instance="driver.test"} 4.0',
        'flink_jobmanager_taskSlotsAvailable{host="driver_test",instance="driver.test"} 4.0',
        'flink_jobmanager_numRegisteredTaskManagers{host="driver_test",instance="driver.test"} 1.0',
        'flink_jobmanager_numRunningJobs{host="driver_test",instance="driver.test"} 0.0',
        'flink_taskmanager_Status_JVM_Memory_Heap_Used{host="10_0_0_7",instance="10.0.0.7:7079",tm_id="app_1_0"} 5.0',
        'flink_taskmanager_Status_NumAvailableSlots{host="10_0_0_7",instance="10.0.0.7:7079",tm_id="app_1_0"} 4.0',
    ]
    assert "# HELP flink_jobmanager_Status_JVM_CPU_Load Load (scope: jobmanager_Status_JVM_CPU)\n" in text(states, app)


def test_drivers_on_one_host_are_one_jobmanager(states: Any) -> None:
    """Two series with the same labels would be refused: slots add up, Status is the latest driver's."""
    old = states.app(states.executor("a-0"), id="a", start_ms=1, driver={names.THREADS: 1})
    new = states.app(states.executor("b-0"), id="b", start_ms=2, driver={names.THREADS: 2})
    rendered = text(states, old, new)
    assert 'flink_jobmanager_Status_JVM_Threads_Count{host="driver_test",instance="driver.test"} 2.0\n' in rendered
    assert 'flink_jobmanager_taskSlotsTotal{host="driver_test",instance="driver.test"} 8.0\n' in rendered


@pytest.mark.parametrize("state", ["FINISHED", "FAILED", "CANCELED", "SUSPENDED"])
def test_ended_and_silent_jobs_are_gone(states: Any, state: str) -> None:
    """As a stopped Flink job's series are in one scrape."""
    job = states.job(states.vertex(columns={names.NUM_RECORDS_IN: states.column(1, 2)}), state=state)
    assert text(states, job) == ""


def test_names_and_labels_that_agree_once_filtered_make_one_series(states: Any) -> None:
    """'a b' and 'a_b' are the same to the reporter; Prometheus would refuse the second."""
    columns = {"a b": states.column(1, 1), "a_b": states.column(2, 2)}
    executors = [states.executor("x-0", metrics={"m": 1}), states.executor("x_0", metrics={"m": 2})]
    rendered = text(states, states.job(states.vertex(columns=columns)), states.app(*executors))
    samples = [line.rpartition(" ")[0] for line in rendered.splitlines() if line[0] != "#"]
    assert len(samples) == len(set(samples))
    assert rendered.count("# TYPE flink_taskmanager_job_task_a_b gauge") == 1


def test_executors_have_instances_of_their_own(states: Any) -> None:
    """Dashboards for Flink tell TaskManagers apart by it; here all come from one target."""
    executors = [states.executor(name, endpoint=f"10.0.0.7:{port}") for name, port in (("a", 1), ("b", 2))]
    page = text(states, states.app(*executors))
    told = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    slots = {sample.labels["instance"]: sample.labels["tm_id"] for sample in told if "NumAvailable" in sample.name}
    assert slots == {"10.0.0.7:1": "a", "10.0.0.7:2": "b"}


def test_filter_keeps_letters_digits_colon_and_underscore() -> None:
    """As the reporter does with label values by default."""
    assert filtered('127.0.0.1:43629-7dca4b "é>') == "127_0_0_1:43629_7dca4b____"


def test_scrape_parses(client: Any) -> None:
    """Every family a gauge or summary, every name and value what Prometheus takes; Flink's content type."""
    answer = client.get("/metrics/flink")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = list(text_string_to_metric_families(answer.text))
    assert len(families) == len({family.name for family in families})
    assert {family.type for family in families} == {"gauge", "summary"}
    found = [sample for family in families for sample in family.samples]
    assert len(found) == len({(sample.name, *sorted(sample.labels.items())) for sample in found})
    assert "flink_taskmanager_job_task_operator_numRecordsOut" in {family.name for family in families}
    for sample in found:
        told = [value for name, value in sample.labels.items() if name not in ("quantile", "instance")]
        assert all(re.fullmatch(r"[a-zA-Z0-9:_]*", value) for value in told)
