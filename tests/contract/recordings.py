"""What a Flink 2.3 was asked and answered, how an answer of ours compares, and which differences are documented."""

from __future__ import annotations

import csv
import functools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from tests.contract.shapes import Difference, Shape, compare

FOLDER = Path(__file__).parent / "flink"
DOCUMENT = Path(__file__).parents[2] / "docs" / "flink-rest.md"
PARAMETERS = {
    "applications": ":applicationid",
    "attempts": ":attempt",
    "details": ":checkpointid",
    "jobs": ":jobid",
    "subtasks": ":subtaskindex",
    "taskmanagers": ":taskmanagerid",
    "vertices": ":vertexid",
}
"""The parameter that follows a segment, unless a word of Flink's does."""
LONGEST_MESSAGE = 300
"""Characters of a refusal that were recorded."""
_WORDS = {"overview", "metrics", "accumulators"}


@dataclass(frozen=True, slots=True)
class Recording:
    """One request and Flink's answer; `status` and `content_type` as they came, `path` with its query."""

    file: str
    method: str
    path: str
    status: str
    content_type: str

    @property
    def name(self) -> str:
        return self.file.removesuffix(".json")

    @property
    def resource(self) -> str:
        """The path in Flink's notation, the method before it unless it is GET."""
        previous, found = "", []
        for segment in self.path.partition("?")[0].removeprefix("/v1").strip("/").split("/"):
            found.append(segment if segment in _WORDS else PARAMETERS.get(previous, segment))
            # What follows the vertex of a checkpoint's details is no subtask but that vertex.
            previous = "vertices" if segment == "subtasks" and ":checkpointid" in found else segment
        path = "/" + "/".join(found)
        return path if self.method == "GET" else f"{self.method} {path}"

    @property
    def request(self) -> str:
        """The resource with the query, if it had one."""
        return self.resource + self.path[len(self.path.partition("?")[0]) :]

    @property
    def body(self) -> Any:
        return json.loads(self.text) if self.text.strip() else None

    @property
    def text(self) -> str:
        return (FOLDER / self.file).read_text()

    @property
    def _kind(self) -> tuple[str, tuple[str, ...]]:
        """Which recordings this one shares its shape with: metrics are told one way by id, another by value."""
        query = parse_qsl(self.path.partition("?")[2], keep_blank_values=True)
        telling = [(name, value) for name, value in query if name in ("agg", "get", "includeSerializedValue")]
        return self.resource, tuple(
            sorted({name if name == "get" else f"{name}={value.lower()}" for name, value in telling})
        )

    def differences(self, answer: Answer, ids: Mapping[str, str]) -> list[Difference]:
        """
        Return where an answer to the same request differs, in order.

        Args:
            ids: What stands here for ids of the recorded Flink.
        """
        if answer.status != self.status:
            return [Difference("status", self.status, answer.status)]
        found = []
        if answer.content_type != self.content_type:
            found.append(Difference("content type", self.content_type, answer.content_type))
        if self.method == "HEAD":
            return found
        if self.status != "200":
            expected = _words(json.loads(replaced(self.text, ids)))
            if expected != _words(answer.body)[:LONGEST_MESSAGE]:
                found.append(Difference("message", expected, _words(answer.body)))
            return found
        return found + compare(shapes()[self._kind], self.body, answer.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `body` is None where it was empty."""

    status: str
    content_type: str
    body: Any


def replaced(text: str, ids: Mapping[str, str]) -> str:
    """Return a text of the recorded Flink's with what stands here for its ids."""
    return functools.reduce(lambda told, pair: told.replace(*pair), ids.items(), text)


def _words(body: Any) -> str:
    match body:
        case {"errors": [*messages]}:
            return " ".join(map(str, messages))
    return json.dumps(body)


@functools.cache
def recordings() -> tuple[Recording, ...]:
    """Return everything that was recorded, in the order it was asked."""
    with (FOLDER / "INDEX.tsv").open() as index:
        return tuple(Recording(**row) for row in csv.DictReader(index, delimiter="\t"))


@functools.cache
def shapes() -> dict[tuple[str, tuple[str, ...]], Shape]:
    """Return what the recorded answers have in common, by their kind."""
    found: dict[tuple[str, tuple[str, ...]], Shape] = {}
    for recording in recordings():
        if recording.status == "200":
            found.setdefault(recording._kind, Shape()).learn(recording.body)
    return found


@dataclass(frozen=True, slots=True)
class Documented:
    """A row of the table of differences; its request is a resource, with a query or not, and `*` is anything."""

    request: str
    difference: Difference
    why: str

    def covers(self, recording: Recording, difference: Difference) -> bool:
        """Tell whether it is this difference that the row gives the reason of."""
        return (
            (_matches(self.request, recording.resource) or _matches(self.request, recording.request))
            and _matches(self.difference.place, difference.place)
            and _matches(self.difference.flink, difference.flink)
            and _matches(self.difference.here, difference.here)
        )


def unlisted(recording: Recording, differences: Iterable[Difference]) -> list[Difference]:
    """Return those of the differences in an answer that no row of the table gives a reason for."""
    return [each for each in differences if not any(row.covers(recording, each) for row in documented())]


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


@functools.cache
def documented() -> tuple[Documented, ...]:
    """Return the rows of the table of differences in `docs/flink-rest.md`."""
    lines = iter(DOCUMENT.read_text().splitlines())
    for line in lines:
        if line == "| request | Flink | here | why |":
            break
    next(lines)
    return tuple(parse_row(line) for line in iter(lambda: next(lines, ""), ""))


def parse_row(line: str) -> Documented:
    """
    Return a row of the table.

    The request is a resource and a place: 'status', 'content type', 'message', or one in the body.

    Raises:
        ValueError: it is none.
    """
    cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
    if len(cells) != 4 or not all(cells):
        raise ValueError(f"no row of four cells: {line}")
    request, flink, here, why = cells
    named = re.fullmatch(r"`([^`]+)` `([^`]+)`", request)
    if named is None:
        raise ValueError(f"a resource and a place, each in backquotes, were expected: {request}")
    return Documented(named[1], Difference(named[2], flink.strip("`"), here.strip("`")), why)
