"""Reading again and again: failures are readings, and only the newest counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from streamgauge.errors import ReadError
from streamgauge.overview import Job, Overview
from streamgauge.survey import Question, Survey
from streamgauge.watch import Watch, readings


class Scripted(Survey):
    """Answers as it is told, and raises what is an error; does not look at the question."""

    def __init__(self, *answers: Overview | ReadError) -> None:
        self._answers = list(answers)
        self.asked: list[Question] = []

    def read(self, question: Question) -> Overview:
        self.asked.append(question)
        answer = self._answers.pop(0)
        if isinstance(answer, ReadError):
            raise answer
        return answer

    def failed(self, error: ReadError) -> Overview:
        return Overview("http://c", 0, error=str(error))


GOOD = Overview("http://c", 1, jobs=(Job("j", "flights", None, "RUNNING"),))
EMPTY = Overview("http://c", 2, jobs=())


def test_a_collector_that_goes_away_is_a_reading_and_the_next_one_is_tried() -> None:
    """After the interval, each time with the question of then."""
    survey, pauses, lines = Scripted(GOOD, ReadError("gone"), GOOD), [], iter(range(9))
    found = readings(survey, lambda: Question(lines=next(lines)), 2.0, pause=pauses.append)
    assert [next(found), next(found).error, next(found)] == [GOOD, "gone", GOOD]
    assert pauses == [2.0, 2.0]
    assert len({question.lines for question in survey.asked}) == 3


def test_the_first_failure_ends_it() -> None:
    """A wrong URL is not waited for."""
    with pytest.raises(ReadError, match="gone"):
        next(readings(Scripted(ReadError("gone")), Question, 2.0))


def test_once_is_one_reading() -> None:
    """Without a pause."""
    assert list(readings(Scripted(GOOD), Question, 2.0, once=True)) == [GOOD]


def test_once_wants_the_job_that_was_asked_for() -> None:
    """A script must not take its absence for health; live, it may still come."""
    with pytest.raises(ReadError, match="no job's id begins with, and no job's name contains, 'x'"):
        list(readings(Scripted(EMPTY), lambda: Question(job="x"), 2.0, once=True))
    assert next(readings(Scripted(EMPTY), lambda: Question(job="x"), 2.0)) is EMPTY
    assert list(readings(Scripted(EMPTY), Question, 2.0, once=True)) == [EMPTY]


def test_only_the_newest_reading_counts() -> None:
    """And it is taken once."""
    done = threading.Event()

    def source() -> Iterator[Overview]:
        yield GOOD
        yield EMPTY
        done.set()

    watch = Watch(source())
    assert done.wait(60)
    assert (watch.newest(), watch.newest()) == (EMPTY, None)


def test_what_ends_the_thread_reaches_whoever_takes_readings() -> None:
    """A first reading that failed."""
    raised = threading.Event()

    def source() -> Iterator[Overview]:
        raised.set()
        raise ReadError("gone")
        yield GOOD

    watch = Watch(source())
    assert raised.wait(60)
    with pytest.raises(ReadError, match="gone"):
        for _ in iter(watch.newest, GOOD):
            pass
