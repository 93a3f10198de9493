"""Everything that a real Flink was asked, asked of a service with live Spark queries: the same structure comes back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.contract.recordings import Recording, documented, recordings, unlisted
from tests.contract.shapes import Difference
from tests.contract.walk import Walk
from tests.e2e.conftest import Rest
from tests.e2e.demonstration import Demonstration

pytestmark = pytest.mark.spark

SETTLED_S = 20
Walked = dict[str, list[Difference]]
"""Recording → where our answer differs."""


@pytest.fixture(scope="module")
def walked(attached: SparkSession, rest: Rest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walked]:
    """The walk, made once, while the queries run."""
    with Demonstration(attached, rest, tmp_path_factory.mktemp("conformance")).running() as places:
        walk = Walk(rest.ask, places)
        yield {recording.name: _settled(walk, recording) for recording in recordings()}


def _settled(walk: Walk, recording: Recording) -> list[Difference]:
    """
    Ask again where a list is empty that a task which runs just then would fill: between batches none runs. And where a
    vertex is so new that nobody has looked yet at how busy it is.
    """
    deadline = time.monotonic() + SETTLED_S
    while True:
        found = walk.differences(recording)
        early = any(each.here in ("empty", "not finite") for each in unlisted(recording, found))
        if not early or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


@pytest.mark.parametrize("recording", recordings(), ids=lambda each: each.name)
def test_answer_is_flinks(walked: Walked, recording: Recording) -> None:
    """Status, content type, structure and words are Flink's, or the table of differences says why they are not."""
    assert unlisted(recording, walked[recording.name]) == []


def test_every_listed_difference_is_still_there(walked: Walked) -> None:
    """A row of the table that nothing is covered by is no longer true."""
    met = [(recording, each) for recording in recordings() for each in walked[recording.name]]
    gone = [row for row in documented() if not any(row.covers(recording, each) for recording, each in met)]
    assert gone == []


def test_counts(walked: Walked, capsys: pytest.CaptureFixture[str]) -> None:
    """Every recording was walked; the counts by reason are printed for whoever runs it."""
    same = [name for name, differences in walked.items() if not differences]
    by_reason = Counter(
        row.why
        for recording in recordings()
        for row in documented()
        if any(row.covers(recording, each) for each in walked[recording.name])
    )
    with capsys.disabled():
        print(f"\nconformance: {len(walked)} recorded, {len(same)} same, {len(walked) - len(same)} different")
        for why, times in by_reason.most_common():
            print(f"{times:5}  {why}")
    assert len(walked) == len(recordings())
