from pathlib import Path

from examples.demo import SHOWN, child_environment, example_requests

URL = "http://127.0.0.1:8081"


def service(jobs: dict[str, tuple[str, dict[str, float | None]]], batches: int = 1):
    """
    A REST of `jobs`: jid to state, and what its vertices have read, if it is known; it checks no parameters.

    Each has ended `batches`.
    """
    answers: dict[str, object] = {
        f"{URL}/jobs/overview": {"jobs": [{"jid": jid, "state": state} for jid, (state, _) in jobs.items()]}
    }
    for jid, (_, vertices) in jobs.items():
        answers[f"{URL}/jobs/{jid}"] = {"vertices": [{"id": vertex} for vertex in vertices]}
        answers[f"{URL}/jobs/{jid}/checkpoints"] = {"counts": {"completed": batches}}
        for vertex, read in vertices.items():
            figures = [{"id": SHOWN[0], "sum": read}, {"id": SHOWN[1], "sum": 1e9}]
            answers[request("", jid, vertex)] = figures if read is not None else []
    return answers


def request(command: str, jid: str, vertex: str) -> str:
    return f"{command}{URL}/jobs/{jid}/vertices/{vertex}/subtasks/metrics?get={','.join(SHOWN)}"


def test_children_share_a_token_of_their_own(tmp_path: Path) -> None:
    """Settings of other services in the same shell must not reach the demo, nor another Spark installation."""
    base = {
        "PATH": "/bin",
        "STREAMGAUGE_URL": "http://elsewhere",
        "STREAMGAUGE_PUSH_TOKEN": "theirs",
        "STREAMGAUGE_ENABLED": "false",
        "STREAMGAUGE_ALLOWED_HOSTS": "box",
        "SPARK_HOME": "/opt/spark-2.4",
    }
    assert child_environment(base, tmp_path, "ours") == {
        "PATH": "/bin",
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "STREAMGAUGE_ALLOWED_HOSTS": "box",
        "STREAMGAUGE_ARCHIVE": str(tmp_path / "archive.db"),
        "STREAMGAUGE_TOKEN": "ours",
        "TMPDIR": str(tmp_path),
    }


def test_requests_name_the_vertex_of_every_running_query_that_reads_most() -> None:
    """The first vertex may read a small table that is joined; an ended query is not shown."""
    a = ("RUNNING", {"a0": 16.0, "a1": 900.0, "a2": None})
    answers = service({"a": a, "b": ("RUNNING", {"b0": 1.0}), "c": ("CANCELED", {"c0": 7.0})})
    assert example_requests(URL, answers.get) == [
        f"curl '{URL}/jobs/overview'",
        request("curl '", "a", "a1") + "'",
        request("curl '", "b", "b0") + "'",
    ]


def test_no_requests_before_all_queries_have_read() -> None:
    """A printed request shows something when it is printed."""
    a = ("RUNNING", {"a0": 1.0})
    assert example_requests(URL, lambda _: None) == []
    assert example_requests(URL, service({}).get) == []
    assert example_requests(URL, service({"a": a, "b": ("RUNNING", {})}).get) == []
    assert example_requests(URL, service({"a": a, "b": ("RUNNING", {"b0": None})}).get) == []
    assert example_requests(URL, service({"a": a, "b": ("RUNNING", {"b0": 0.0})}).get) == []


def test_no_requests_while_a_query_is_started_again() -> None:
    """It will have figures to show; without it the list would look whole."""
    a = ("RUNNING", {"a0": 1.0})
    assert example_requests(URL, service({"a": a, "b": ("RESTARTING", {})}).get) == []


def test_no_requests_before_all_queries_have_ended_a_batch() -> None:
    """Rows are counted while a batch runs, but of taps and timers Spark tells at its end."""
    answers = service({"a": ("RUNNING", {"a0": 1.0})}, batches=0)
    assert example_requests(URL, answers.get) == []
    del answers[f"{URL}/jobs/a/checkpoints"]
    assert example_requests(URL, answers.get) == []


def test_requests_show_splits_and_timers_where_there_are_any() -> None:
    """A vertex without taps answers with an empty list, and an older service not at all."""
    answers = service({"a": ("RUNNING", {"a0": 2.0, "a1": 1.0}), "b": ("RUNNING", {"b0": 1.0})})
    answers[f"{URL}/jobs/a/vertices/a0/splits"] = {"taps": []}
    answers[f"{URL}/jobs/a/vertices/a1/splits"] = {"taps": [{"name": "departures"}]}
    answers[f"{URL}/jobs/a/vertices/a1/timers"] = {"operators": []}
    answers[f"{URL}/jobs/b/vertices/b0/timers"] = {"operators": [{"fired": 1}]}
    assert example_requests(URL, answers.get)[3:] == [
        f"curl '{URL}/jobs/a/vertices/a1/splits'",
        f"curl '{URL}/jobs/b/vertices/b0/timers'",
    ]
