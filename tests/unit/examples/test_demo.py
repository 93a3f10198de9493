from pathlib import Path

from examples.demo import SHOWN, child_environment, example_requests

URL = "http://127.0.0.1:8081"


def service(jobs: dict[str, tuple[str, list[str], bool]]):
    """A REST of `jobs`: jid to state, vertices, and whether their metrics have values; it checks no parameters."""
    answers: dict[str, object] = {
        f"{URL}/jobs/overview": {"jobs": [{"jid": jid, "state": state} for jid, (state, _, _) in jobs.items()]}
    }
    for jid, (_, vertices, has_values) in jobs.items():
        answers[f"{URL}/jobs/{jid}"] = {"vertices": [{"id": vertex} for vertex in vertices]}
        for vertex in vertices:
            query = f"{URL}/jobs/{jid}/vertices/{vertex}/subtasks/metrics?get={','.join(SHOWN)}"
            answers[query] = [{"id": SHOWN[0], "sum": 1.0}] if has_values else []
    return answers.get


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
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "STREAMGAUGE_ALLOWED_HOSTS": "box",
        "STREAMGAUGE_TOKEN": "ours",
        "TMPDIR": str(tmp_path),
    }


def test_requests_name_the_first_vertex_of_every_running_query() -> None:
    """Vertices come sources first; an ended query is not shown."""
    get = service({"a": ("RUNNING", ["a0", "a1"], True), "b": ("RUNNING", ["b0"], True), "c": ("CANCELED", [], False)})
    assert example_requests(URL, get) == [
        f"curl '{URL}/jobs/overview'",
        f"curl '{URL}/jobs/a/vertices/a0/subtasks/metrics?get={','.join(SHOWN)}'",
        f"curl '{URL}/jobs/b/vertices/b0/subtasks/metrics?get={','.join(SHOWN)}'",
    ]


def test_no_requests_before_all_of_them_show_something() -> None:
    """A printed request works when it is printed."""
    running = ("RUNNING", ["a0"], True)
    assert example_requests(URL, lambda _: None) == []
    assert example_requests(URL, service({})) == []
    assert example_requests(URL, service({"a": running, "b": ("RUNNING", [], False)})) == []
    assert example_requests(URL, service({"a": running, "b": ("RUNNING", ["b0"], False)})) == []
