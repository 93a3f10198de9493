from importlib.metadata import PackageNotFoundError

import pytest

from examples import flights


class Grouped:
    """What a Spark with stateful processors for rows groups by; it groups nothing."""

    def transformWithState(self) -> None:
        raise AssertionError("nobody calls it")


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark with stateful processors, and all packages that its workers need, whatever is here."""
    monkeypatch.setattr(flights, "GroupedData", Grouped)
    monkeypatch.setattr(flights, "distribution", lambda name: name)


def test_nothing_lacks_where_all_is_there() -> None:
    """The query of overdue flights runs with the demo's extra and a Spark of today."""
    assert flights.lacking() is None


def test_old_spark_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo runs on Spark 3.5 without timers, and says why."""
    monkeypatch.delattr(Grouped, "transformWithState")
    assert flights.lacking() == "this Spark has no transformWithState for rows, which came with 4.1"


@pytest.mark.parametrize("missing", ["pandas", "pyarrow", "protobuf"])
def test_missing_package_is_told(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Without it Spark's worker would end unexpectedly, in the first batch; the others are there."""

    def distribution(name: str) -> str:
        if name == missing:
            raise PackageNotFoundError(name)
        return name

    monkeypatch.setattr(flights, "distribution", distribution)
    assert flights.lacking() == f"{missing} is not installed, which Spark's stateful Python workers need"
