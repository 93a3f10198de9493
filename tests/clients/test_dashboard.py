"""Flink's web dashboard on the service: every page shows what REST tells, and none complains."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import driver
from tests.clients.conftest import Jobs
from tests.clients.dashboard import Dashboard, browsing, files, moment
from tests.clients.proxy import proxying

# From the top of the drawing to the middle of the first of its bars.
BAR_PX = 72

pytestmark = [pytest.mark.clients, pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def dashboard(jobs: Jobs) -> Iterator[Dashboard]:
    """The dashboard beside the service; pictures of its pages go where CLIENTS_SCREENSHOTS says."""
    wanted = os.environ.get("CLIENTS_SCREENSHOTS")
    folder = Path(wanted) if wanted else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with proxying(jobs.rest.url, files()) as proxy, browsing(proxy, folder) as found:
        yield found


def count(number: int) -> str:
    return f"{number:,}"


def job_route(jobs: Jobs, name: str, rest: str) -> str:
    kind = "running" if jobs.detail(name)["state"] == "RUNNING" else "completed"
    return f"/job/{kind}/{jobs.ids[name]}/{rest}"


def vertex_route(jobs: Jobs, name: str, vertex: int, tab: str) -> str:
    return job_route(jobs, name, f"overview/{jobs.vertices(name)[vertex]['id']}/{tab}")


def vertex_body(jobs: Jobs, name: str, vertex: int, rest: str = "") -> Any:
    return jobs.rest.get(f"/jobs/{jobs.ids[name]}/vertices/{jobs.vertices(name)[vertex]['id']}{rest}")


def test_overview_counts_slots_and_names_applications(dashboard: Dashboard, jobs: Jobs) -> None:
    """The first page: slots, TaskManagers, and the Spark application with its jobs."""
    overview = jobs.rest.get("/overview")
    (application,) = jobs.rest.get("/applications/overview")["applications"]
    dashboard.open("/overview")
    said = f"Total Task Slots{overview['slots-total']}Task Managers{overview['taskmanagers']}"
    dashboard.shows(lambda: said in dashboard.text(), "overview")
    (row,) = dashboard.rows()
    assert row[0] == application["name"]
    assert row[1] == moment(application["start-time"])
    assert row[5] == application["status"] == "RUNNING"
    assert dashboard.complaints() == []


@pytest.mark.parametrize(
    ("page", "names"),
    [("running", (driver.FLOWS, driver.STILL)), ("completed", (driver.FINISHED, driver.FAILED, driver.STOPPED))],
    ids=["running", "completed"],
)
def test_jobs_are_listed_with_state_and_times(
    dashboard: Dashboard, jobs: Jobs, page: str, names: tuple[str, ...]
) -> None:
    """A list's rows: name, start, duration, end, tasks and state, as /jobs/overview has them."""
    told = {job["name"]: job for job in jobs.rest.get("/jobs/overview")["jobs"]}
    dashboard.open(f"/job/{page}")
    dashboard.shows(lambda: len(dashboard.rows()) == len(names), f"jobs-{page}")
    rows = {row[0]: row for row in dashboard.rows()}
    assert set(rows) == set(names)
    for name, row in rows.items():
        job = told[name]
        assert row[1] == moment(job["start-time"])
        assert row[3] == ("–" if job["end-time"] < 0 else moment(job["end-time"]))
        assert row[4].split()[0] == str(job["tasks"]["total"])
        assert row[5] == job["state"]
    assert dashboard.complaints() == []


@pytest.mark.parametrize("name", driver.NAMES)
def test_job_page_shows_its_vertices(dashboard: Dashboard, jobs: Jobs, name: str) -> None:
    """The table below the graph: each vertex with its state, parallelism, start, and records once they stand still."""
    told = {vertex["name"]: vertex for vertex in jobs.vertices(name)}
    dashboard.open(job_route(jobs, name, "overview"))
    dashboard.shows(lambda: len(dashboard.rows()) == len(told), f"job-{name}")
    rows = {row[0]: row for row in dashboard.rows()}
    assert set(rows) == set(told)
    for vertex, row in rows.items():
        assert row[1] == told[vertex]["status"]
        assert row[6] == str(told[vertex]["parallelism"])
        assert row[7] == moment(told[vertex]["start-time"])
        if name != driver.FLOWS:
            assert row[3] == count(told[vertex]["metrics"]["read-records"])
    assert dashboard.complaints() == []


def test_graph_draws_every_vertex_with_its_shares_and_edges(dashboard: Dashboard, jobs: Jobs) -> None:
    """A node has its name, parallelism, busy, back-pressured and skew; an edge its ship strategy."""
    detail = jobs.detail(driver.FLOWS)
    nodes = dashboard.page.locator(".node-label-wrapper")
    dashboard.open(job_route(jobs, driver.FLOWS, "overview"))

    def drawn() -> bool:
        texts = nodes.all_inner_texts()
        # All three shares are N/A until every vertex has told all three metrics and its watermarks.
        return len(texts) == len(detail["vertices"]) and not any("Data Skew: N/A" in text for text in texts)

    dashboard.shows(drawn, "graph")
    texts = [text.split("\n") for text in nodes.all_inner_texts()]
    told = {vertex["name"]: vertex for vertex in detail["vertices"]}
    assert {"".join(text[0].split()) for text in texts} == {"".join(name.split()) for name in told}
    for edge in (edge for node in detail["plan"]["nodes"] for edge in node.get("inputs", ())):
        assert edge["ship_strategy"] in dashboard.text()
    assert dashboard.complaints() == []


def test_vertex_detail_is_told_as_text(dashboard: Dashboard, jobs: Jobs) -> None:
    """The drawer's first tab has the operators' descriptions as REST tells them; the user's text is no markup."""
    vertex = jobs.vertices(driver.STILL)[0]
    dashboard.open(vertex_route(jobs, driver.STILL, 0, "detail"))
    (told,) = (node["description"] for node in jobs.detail(driver.STILL)["plan"]["nodes"] if node["id"] == vertex["id"])
    assert "&lt; 100)" in told
    # The drawer shows the text as it came, so Flink's escaping with it; the graph decodes it.
    said = " ".join(told.replace("<br/>", "\n").split())
    dashboard.shows(lambda: said in " ".join(dashboard.text().split()), "vertex-detail")
    assert f"Parallelism\n{vertex['parallelism']}" in dashboard.text()
    assert f"Records Received\n{count(vertex['metrics']['read-records'])}" in dashboard.text()
    assert dashboard.complaints() == []


def test_subtasks_are_listed_with_place_and_counts(dashboard: Dashboard, jobs: Jobs) -> None:
    """Each subtask's records, attempt, endpoint, start and state; attempts count from 1 on the page."""
    told = vertex_body(jobs, driver.STILL, 1)["subtasks"]
    dashboard.open(vertex_route(jobs, driver.STILL, 1, "subtasks"))
    expected = {
        (
            str(each["subtask"]),
            count(each["metrics"]["read-records"]),
            str(each["attempt"] + 1),
            each["endpoint"],
            moment(each["start_time"]),
            each["status"],
        )
        for each in told
    }

    def shown() -> set[tuple[str, ...]]:
        return {(row[0], row[2], row[5], row[6], row[7], row[12]) for row in dashboard.rows() if len(row) > 12}

    dashboard.shows(lambda: expected == shown(), "vertex-subtasks")
    dashboard.tab("Aggregated Metrics")
    read = vertex_body(jobs, driver.STILL, 1)["aggregated"]["metrics"]["read-records"]
    dashboard.shows(lambda: count(read["sum"]) in dashboard.text(), "vertex-subtasks-aggregated")
    assert dashboard.complaints() == []


def test_vertex_names_its_taskmanagers(dashboard: Dashboard, jobs: Jobs) -> None:
    """Each executor that ran the vertex, with the records that it read."""
    (told,) = vertex_body(jobs, driver.STILL, 1, "/taskmanagers")["taskmanagers"]
    dashboard.open(vertex_route(jobs, driver.STILL, 1, "taskmanagers"))
    expected = [told["endpoint"], count(told["metrics"]["read-records"])]
    dashboard.shows(lambda: expected in [[row[0], row[2]] for row in dashboard.rows()], "vertex-taskmanagers")
    assert dashboard.complaints() == []


def test_watermarks_are_listed_by_subtask(dashboard: Dashboard, jobs: Jobs) -> None:
    """A row a subtask that has told its watermark, and none for any other."""
    told = vertex_body(jobs, driver.STILL, 1, "/watermarks")
    vertices = len(jobs.vertices(driver.STILL))
    dashboard.open(vertex_route(jobs, driver.STILL, 1, "watermarks"))
    dashboard.shows(lambda: len(dashboard.rows()) == vertices + len(told), "vertex-watermarks")
    shown = [row[:2] for row in dashboard.rows()[: len(told)]]
    assert shown == [[each["id"].partition(".")[0], each["value"]] for each in told]
    assert dashboard.complaints() == []


def test_accumulators_are_listed(dashboard: Dashboard, jobs: Jobs) -> None:
    """Native metrics of the vertex's operators, type and value, and each subtask's, as many as there is room for."""
    told = vertex_body(jobs, driver.STILL, 0, "/accumulators")["user-accumulators"]
    names = {each["name"] for each in told}
    dashboard.open(vertex_route(jobs, driver.STILL, 0, "accumulators"))

    def shown() -> set[str]:
        return {row[0] for row in dashboard.rows() if len(row) == 3}

    dashboard.shows(lambda: bool(shown()) and shown() <= names, "vertex-accumulators")
    rows = {row[0]: row for row in dashboard.rows() if len(row) == 3}
    (records,) = (each for each in told if each["name"].endswith("shuffle records written"))
    assert rows[records["name"]] == [records["name"], records["type"], count(int(records["value"]))]
    dashboard.tab("SubTask Accumulators")
    dashboard.shows(lambda: records["name"] in dashboard.text(), "vertex-accumulators-subtasks")
    assert dashboard.complaints() == []


def test_backpressure_is_told_by_subtask(dashboard: Dashboard, jobs: Jobs) -> None:
    """The status, and a row a subtask with its level; a ratio that is not known reads N/A."""
    told = vertex_body(jobs, driver.FLOWS, 0, "/backpressure")
    dashboard.open(vertex_route(jobs, driver.FLOWS, 0, "backpressure"))
    said = f"Back Pressure Status: {told['backpressure-level'].upper()}"

    def rows() -> list[list[str]]:
        return [row for row in dashboard.rows() if row[-1] == "Dump"]

    dashboard.shows(lambda: said in dashboard.text() and bool(rows()), "vertex-backpressure")
    # The dashboard puts the most pressed ones first.
    shown = {row[0]: row[4] for row in rows()}
    assert shown == {str(each["subtask"]): each["backpressure-level"].upper() for each in told["subtasks"]}
    assert dashboard.complaints() == []


def test_metric_is_charted(dashboard: Dashboard, jobs: Jobs) -> None:
    """A metric that is chosen from the list is asked for at every refresh, and its value is drawn."""
    dashboard.open(vertex_route(jobs, driver.STILL, 0, "metrics"))
    name = "0.numRecordsIn"
    dashboard.page.locator("nz-select input").click()
    dashboard.page.keyboard.type(name)
    dashboard.page.keyboard.press("Enter")

    def answered() -> bool:
        answers = [each.body for each in dashboard.asked("/metrics") if each.target.endswith(f"?get={name}")]
        return bool(answers) and all(b'"value":"1000"' in answer for answer in answers)

    dashboard.shows(lambda: answered() and dashboard.page.locator("canvas").count() > 0, "vertex-metrics")
    assert dashboard.complaints() == []


def test_flame_graph_says_that_there_is_none(dashboard: Dashboard, jobs: Jobs) -> None:
    """Spark gives no stack samples: the tab stays empty, as on a Flink without them."""
    dashboard.open(vertex_route(jobs, driver.FLOWS, 0, "flamegraph"))
    dashboard.shows(lambda: "flame graph feature is currently disabled" in dashboard.text(), "vertex-flamegraph")
    assert dashboard.complaints() == []


def test_failed_job_tells_why(dashboard: Dashboard, jobs: Jobs) -> None:
    """The root exception is the user's error, and the history names it with its time."""
    (entry, *_) = jobs.rest.get(f"/jobs/{jobs.ids[driver.FAILED]}/exceptions")["exceptionHistory"]["entries"]
    dashboard.open(job_route(jobs, driver.FAILED, "exceptions"))
    dashboard.shows(lambda: driver.USER_ERROR in dashboard.text(), "exceptions")
    dashboard.tab("Exception History")
    dashboard.shows(lambda: moment(entry["timestamp"])[:-4] in dashboard.text(), "exceptions-history")
    assert entry["exceptionName"].rpartition(".")[2] in dashboard.text()
    assert dashboard.complaints() == []


def test_job_without_failure_has_no_root_exception(dashboard: Dashboard, jobs: Jobs) -> None:
    """A job that never failed says so."""
    dashboard.open(job_route(jobs, driver.STILL, "exceptions"))
    dashboard.shows(lambda: "No Root Exception" in dashboard.text(), "exceptions-none")
    assert dashboard.complaints() == []


def test_data_skew_is_a_percentage_a_vertex(dashboard: Dashboard, jobs: Jobs) -> None:
    """The skew of each vertex's records over its subtasks, rounded as the page does."""
    dashboard.open(job_route(jobs, driver.STILL, "dataskew"))
    expected = []
    for number, vertex in enumerate(jobs.vertices(driver.STILL)):
        (told,) = vertex_body(jobs, driver.STILL, number, "/subtasks/metrics?get=numRecordsIn&agg=skew")
        expected.append([vertex["name"], f"{round(told['skew'])}%"])
    dashboard.shows(lambda: sorted(dashboard.rows()[1:]) == sorted(expected), "data-skew")
    assert dashboard.complaints() == []


def test_timeline_draws_vertices_and_their_subtasks(dashboard: Dashboard, jobs: Jobs) -> None:
    """The bars are drawn; a click on one asks for its subtasks and draws theirs."""
    dashboard.open(job_route(jobs, driver.FINISHED, "timeline"))
    bars = dashboard.page.locator("canvas")
    dashboard.shows(lambda: bars.count() > 0, "timeline")
    box = bars.first.bounding_box()
    assert box is not None
    dashboard.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + BAR_PX)
    dashboard.shows(lambda: bool(dashboard.asked("/subtasktimes")), "timeline-subtasks")
    assert dashboard.complaints() == []


def test_checkpoints_are_the_micro_batches(dashboard: Dashboard, jobs: Jobs) -> None:
    """Counts, history, summary and configuration of a job that has done its batches."""
    told = jobs.rest.get(f"/jobs/{jobs.ids[driver.STILL]}/checkpoints")
    counts, latest = told["counts"], told["latest"]["completed"]
    assert counts["completed"] == driver.FILES + 1
    dashboard.open(job_route(jobs, driver.STILL, "checkpoints"))
    said = f"Triggered: {counts['total']} In Progress: 0 Completed: {counts['completed']} Failed: 0"
    dashboard.shows(lambda: said in dashboard.text() and f"ID: {latest['id']}" in dashboard.text(), "checkpoints")
    dashboard.tab("History")
    ids = [str(each["id"]) for each in told["history"]]
    dashboard.shows(
        lambda: [row[1] for row in dashboard.rows() if row[1:2] and row[1] in ids] == ids, "checkpoints-history"
    )
    dashboard.tab("Summary")
    dashboard.shows(lambda: "End to End Duration" in dashboard.text(), "checkpoints-summary")
    dashboard.tab("Configuration")
    dashboard.shows(lambda: "Checkpointing Mode" in dashboard.text(), "checkpoints-configuration")
    assert dashboard.complaints() == []


def test_checkpoint_opens_to_its_vertices_and_their_subtasks(dashboard: Dashboard, jobs: Jobs) -> None:
    """The latest micro-batch, one without rows, has every vertex of the job: the source with no subtask in it."""
    source, sink = (vertex["name"] for vertex in jobs.vertices(driver.STILL))
    openers = dashboard.page.locator(".ant-tabs-tabpane-active .ant-table-row-expand-icon")
    dashboard.open(job_route(jobs, driver.STILL, "checkpoints"))
    dashboard.tab("History")
    openers.first.click()

    def shown() -> bool:
        # Long names are broken into lines.
        rows = {"".join(row[1].split()): row[2] for row in dashboard.rows() if len(row) == 8}
        told = [rows.get("".join(name.split()), "") for name in (source, sink)]
        return told[0].startswith("0/0") and told[1].startswith("3/3")

    dashboard.shows(shown, "checkpoint")
    # By what stands in the row: the page draws the list anew now and then, without what is below it at first.
    row = dashboard.page.locator("tr.ant-table-row", has_text="3/3 (100%)").filter(has_text="Sink: Noop")
    # The rows that hold its table have its words, too.
    row.locator(".ant-table-row-expand-icon").last.click()
    dashboard.shows(lambda: "Minimum" in dashboard.text(), "checkpoint-subtasks")
    assert dashboard.asked(f"/checkpoints/details/{driver.FILES}")
    assert dashboard.complaints() == []


def test_configuration_shows_no_secret(dashboard: Dashboard, jobs: Jobs) -> None:
    """The job's own configuration is listed whole, and the application's password is not in it."""
    told = jobs.rest.get(f"/jobs/{jobs.ids[driver.STILL]}/config")["execution-config"]
    dashboard.open(job_route(jobs, driver.STILL, "configuration"))
    dashboard.shows(lambda: told["restart-strategy"] in dashboard.text(), "configuration")
    settings = [row for row in dashboard.rows() if row[0] in told["user-config"]]
    assert settings == [[key, value] for key, value in sorted(told["user-config"].items())]
    assert driver.PASSWORD not in dashboard.page.content()
    assert dashboard.complaints() == []


def test_taskmanagers_are_the_executors(dashboard: Dashboard, jobs: Jobs) -> None:
    """The executor with its slots; a click away, its memory."""
    (told,) = jobs.rest.get("/taskmanagers")["taskmanagers"]
    dashboard.open("/task-manager")
    dashboard.shows(lambda: told["id"] in dashboard.text(), "taskmanagers")
    (row,) = dashboard.rows()
    assert told["path"] in row[0]
    assert row[3] == str(told["slotsNumber"])
    dashboard.open(f"/task-manager/{told['id']}/metrics")
    said = f"CPU Cores\t{told['hardware']['cpuCores']}"
    dashboard.shows(lambda: said in dashboard.text() and "Garbage Collection" in dashboard.text(), "taskmanager")
    assert dashboard.complaints() == []


def test_driver_is_the_jobmanager(dashboard: Dashboard, jobs: Jobs) -> None:
    """Its memory, its configuration without secrets, its class path."""
    dashboard.open("/job-manager/metrics")
    dashboard.shows(lambda: "G1_Young_Generation" in dashboard.text(), "jobmanager-metrics")
    assert dashboard.complaints() == []
    dashboard.open("/job-manager/config")
    dashboard.shows(lambda: "spark.app.name" in dashboard.text(), "jobmanager-configuration")
    assert "spark.example.password" in dashboard.text()
    assert driver.PASSWORD not in dashboard.page.content()
    assert dashboard.complaints() == []


@pytest.mark.parametrize("tab", ["logs", "stdout", "log", "thread-dump", "profiler"])
@pytest.mark.parametrize("process", ["jobmanager", "taskmanager"])
def test_logs_and_dumps_that_a_push_cannot_bring_are_missing_quietly(
    dashboard: Dashboard, jobs: Jobs, process: str, tab: str
) -> None:
    """What only the driver could tell if asked is absent, and no page breaks over it."""
    (executor,) = jobs.rest.get("/taskmanagers")["taskmanagers"]
    base = {"jobmanager": "/job-manager", "taskmanager": f"/task-manager/{executor['id']}"}[process]
    dashboard.open(f"{base}/{tab}")
    dashboard.shows(lambda: "Thread Dump" in dashboard.text(), f"{process}-{tab}")
    assert dashboard.complaints() == []
