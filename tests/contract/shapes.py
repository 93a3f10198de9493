"""The shape of JSON: what Flink's answers have in common, and where another answer differs from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

ADDITIONS = "streamgauge"
"""The one object of ours in a body of Flink's."""
MAPS = frozenset({"accumulator-results", "failureLabels", "jobs", "serialized-user-task-accumulators", "user-config"})
"""Objects whose keys are data; so are those whose keys are ids."""

_EPOCH_MS = range(10**12, 10**13)
_ID = re.compile(r"[0-9a-f]{32}")
_TEXTS = (
    ("empty text", re.compile(r"")),
    ("id", _ID),
    ("long as text", re.compile(r"-?[0-9]+")),
    ("double as text", re.compile(r"-?[0-9]+\.[0-9]+(E-?[0-9]+)?")),
    ("not finite", re.compile(r"NaN|-?Infinity")),
    ("boolean as text", re.compile(r"true|false")),
    ("word", re.compile(r"[A-Z][A-Z_]*")),
    ("unassigned", re.compile(r"\(unassigned\)")),
    ("host:port", re.compile(r"[\w.\[\]:-]+:[0-9]{1,5}")),
)
_ANY_METRIC = {"id": "one of ours", "value": "of whatever format"}
_INTEGERS = {"number", "epoch ms", "0 or -1"}
_PLAIN_TEXTS = {"id", "long as text", "double as text", "boolean as text", "word", "host:port", "unassigned"}


@dataclass(frozen=True, order=True, slots=True)
class Difference:
    """One place of an answer, what is there in Flink, and what is there here; 'body' is the body as a whole."""

    place: str
    flink: str
    here: str


def kind(value: object) -> str:
    """Return what a value that is no list and no object looks like."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "epoch ms" if value in _EPOCH_MS else "0 or -1" if value in (0, -1) else "number"
        case float():
            return "decimal"
        case str():
            return next((name for name, pattern in _TEXTS if pattern.fullmatch(value)), "text")
    raise TypeError(f"{value!r} is no scalar of JSON")


def accepts(learned: set[str], given: str) -> bool:
    """
    Tell whether a kind may stand where Flink has shown those of `learned`.

    0 and −1 are Flink's words for an integer that is not known, and tell nothing of its kind; what is not finite is
    quoted wherever a decimal may be; a text may look like anything.
    """
    if given in learned:
        return True
    match given:
        case "0 or -1":
            return bool(learned & _INTEGERS)
        case "number" | "epoch ms":
            return learned & _INTEGERS == {"0 or -1"}
        case "not finite":
            return bool(learned & {"decimal", "double as text", "text"})
        case "decimal":
            return learned == {"not finite"}
        case "unassigned":
            return bool(learned & {"host:port", "text"})
    return given in _PLAIN_TEXTS and "text" in learned


@dataclass
class Shape:
    """
    What was seen at one place of Flink's answers.

    Args:
        scalars: Kinds of the values that are neither list nor object.
        objects: How often an object was there, of those with fixed keys.
        keys: Its keys' shapes.
        items: What lists hold, and maps under whatever key; None where there was none.
        named: Metrics' values by the end of their id, for what is a long and what a double follows from it.
        map: Whether an object with free keys was there.
        list: Whether a list was.
    """

    scalars: set[str] = field(default_factory=set)
    objects: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    keys: dict[str, Shape] = field(default_factory=dict)
    items: Shape | None = None
    named: dict[str, Shape] = field(default_factory=dict)
    map: bool = False
    list: bool = False

    def learn(self, value: Any, key: str = "") -> Shape:
        """Take in one answer of Flink's, that stands under `key`; return this shape."""
        if isinstance(value, list):
            self.list = True
            for item in value:
                self._below(item)
        elif isinstance(value, dict) and is_map(key, value):
            self.map = True
            for item in value.values():
                self._below(item)
        elif isinstance(value, dict):
            self.objects += 1
            for name, inner in value.items():
                self.seen[name] = self.seen.get(name, 0) + 1
                self.keys.setdefault(name, Shape()).learn(inner, name)
        else:
            self.scalars.add(kind(value))
        return self

    def _below(self, item: Any) -> None:
        self.items = (self.items or Shape()).learn(item)
        if metric := _metric(item):
            self.named.setdefault(metric, Shape()).learn(item)

    def differences(self, value: Any, place: str = "", key: str = "") -> Iterator[Difference]:
        """Yield where an answer of ours is none that Flink could give."""
        if isinstance(value, list):
            if not self.list:
                yield Difference(place, self.words(), "list")
                return
            for item in value:
                below, metric = self._item(item)
                if below is not None:
                    yield from below.differences(item, f"{place}[{metric}]")
        elif isinstance(value, dict) and is_map(key, value) and (self.map or not self.objects):
            if not self.map:
                yield Difference(place, self.words(), "map")
            elif self.items is not None:
                for item in value.values():
                    yield from self.items.differences(item, f"{place}{{}}")
        elif isinstance(value, dict):
            yield from self._object_differences(value, place)
        elif not accepts(self.scalars, kind(value)):
            yield Difference(place, self.words(), kind(value))

    def _item(self, item: Any) -> tuple[Shape | None, str]:
        """Return what an item of a list is to be like, and of a metric that Flink has its name."""
        metric = _metric(item)
        if not self.named or not metric:
            return self.items, ""
        return (self.named[metric], metric) if metric in self.named else (Shape().learn(_ANY_METRIC), "")

    def _object_differences(self, value: dict[str, Any], place: str) -> Iterator[Difference]:
        if not self.objects:
            yield Difference(place, self.words(), "object")
            return
        dot = f"{place}." if place else ""
        for name, inner in value.items():
            if name in self.keys:
                yield from self.keys[name].differences(inner, dot + name, name)
            elif name != ADDITIONS:
                yield Difference(dot + name, "absent", Shape().learn(inner, name).words())
        for name, times in self.seen.items():
            if name not in value and times == self.objects:
                yield Difference(dot + name, self.keys[name].words(), "absent")

    def words(self) -> str:
        """Return what was seen, for people."""
        kinds = {*self.scalars, *(["list"] * self.list), *(["map"] * self.map), *(["object"] * bool(self.objects))}
        return " or ".join(sorted(kinds))


def is_map(key: str, value: dict[str, Any]) -> bool:
    """Tell whether an object's keys are data."""
    return key in MAPS or (bool(value) and all(map(_ID.fullmatch, value)))


def _metric(item: Any) -> str:
    """Return the end of the id of a metric with its value; '' of anything else."""
    if not isinstance(item, dict) or not {"id", "value"} <= item.keys():
        return ""
    return str(item["id"]).rpartition(".")[2]


def compare(shape: Shape, recorded: Any, given: Any) -> list[Difference]:
    """
    Return where an answer differs from Flink's, in order, each place once.

    Args:
        shape: Of all that Flink answered to such requests.
        recorded: What it answered to this one: lists and maps that it filled must be filled, and no others.
        given: The answer here.
    """
    found = set(shape.differences(given))
    ours = _filled(given)
    for place, was_filled in _filled(recorded).items():
        if ours.get(place, was_filled) != was_filled:
            found.add(Difference(place, *(("filled", "empty") if was_filled else ("empty", "filled"))))
    return sorted(replace(each, place=each.place or "body") for each in found)


def _filled(value: Any) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for place, is_filled in _containers(value, "", ""):
        found[place] = found.get(place, False) or is_filled
    return found


def _containers(value: Any, place: str, key: str) -> Iterator[tuple[str, bool]]:
    if isinstance(value, list):
        yield place, bool(value)
        for item in value:
            yield from _containers(item, f"{place}[]", "")
    elif isinstance(value, dict) and is_map(key, value):
        yield place, bool(value)
        for item in value.values():
            yield from _containers(item, f"{place}{{}}", "")
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name != ADDITIONS:
                yield from _containers(inner, f"{place}.{name}" if place else name, name)
