from pathlib import Path
from typing import Any

import pytest

from examples.queries import STARTS, Queries


class Query:
    """A query that is as it was made; it reads nothing."""

    def __init__(self, error: Exception | None = None, rows: int | None = None) -> None:
        self._error = error
        self.lastProgress = None if rows is None else {"numInputRows": rows}
        self.stopped = False

    def exception(self) -> Exception | None:
        return self._error

    def stop(self) -> None:
        self.stopped = True


class Result:
    """Becomes one query after the other, each time it is started; how it is to be written does not matter."""

    def __init__(self, *queries: Query) -> None:
        self._queries = list(queries)
        self.started = 0

    @property
    def writeStream(self) -> "Result":
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self

    def start(self) -> Query:
        self.started += 1
        return self._queries[self.started - 1]


FAILED = Query(ValueError("the worker did not come up"))


def test_query_that_fails_before_its_first_batch_is_started_again() -> None:
    """Spark waits ten seconds for a Python worker and no longer, and a machine may be busy when a job starts."""
    result = Result(FAILED, FAILED, Query(rows=5))
    queries = Queries({"a": result, "b": Result(Query())}, Path())
    queries.start()
    for _ in range(5):
        queries.look()
    assert result.started == 3


def test_query_that_never_comes_up_fails() -> None:
    """After STARTS times it is known."""
    queries = Queries({"a": Result(*[FAILED] * STARTS)}, Path())
    queries.start()
    for _ in range(STARTS - 1):
        queries.look()
    with pytest.raises(ValueError, match="did not come up"):
        queries.look()


def test_query_that_fails_later_fails() -> None:
    """What ended a batch had its worker; another error is a fault, not bad luck."""
    result = Result(Query(ValueError("a fault"), rows=5), Query())
    queries = Queries({"a": result}, Path())
    queries.start()
    with pytest.raises(ValueError, match="a fault"):
        queries.look()
    assert result.started == 1


def test_first_batch_with_rows_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A query may run batches without rows; each is told of at the first one that has any."""
    queries = Queries({"a": Result(Query(rows=5)), "b": Result(Query(rows=0)), "c": Result(Query())}, Path())
    queries.start()
    queries.look()
    queries.look()
    assert capsys.readouterr().out == "first batch of a: 5 rows\n"


def test_what_runs_is_stopped() -> None:
    """The one that was started last, of each."""
    last, other = Query(), Query()
    queries = Queries({"a": Result(FAILED, last), "b": Result(other)}, Path())
    queries.start()
    queries.look()
    queries.stop()
    assert last.stopped
    assert other.stopped


def test_nothing_is_stopped_where_nothing_was_started() -> None:
    """The job may fail between building queries and starting them."""
    Queries({"a": Result()}, Path()).stop()
