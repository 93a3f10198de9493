"""A source of topics and partitions, as Kafka's, which Spark reads from 4.2 on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def topics(most: Any, rows: int) -> Any:
    """
    The source "pending-topics": a topic of two partitions with `rows` rows each, ten of which it gives a batch.

    It is made in here, for its workers cannot import this module.

    Args:
        most: Spark's ReadMaxRows.
    """
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, Any]:
            return {"flights": {"0": 0, "1": 0}}

        def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
            return {"flights": {part: min(at + 10, rows) for part, at in start["flights"].items()}}

        def getDefaultReadLimit(self) -> Any:
            return most(20)

        def reportLatestOffset(self) -> dict[str, Any]:
            return {"flights": {"0": rows, "1": rows}}

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
            return [InputPartition((start["flights"][part], end["flights"][part])) for part in sorted(end["flights"])]

        def read(self, partition: Any) -> Iterator[tuple[int]]:
            return ((row,) for row in range(*partition.value))

    class Topics(DataSource):
        @classmethod
        def name(cls) -> str:
            return "pending-topics"

        def schema(self) -> str:
            return "value long"

        def streamReader(self, schema: Any) -> Any:
            return Reader()

    return Topics
