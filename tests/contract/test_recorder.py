"""Recorder.java writes what records.py reads: the same kinds, the same number of fields, in the same places."""

from __future__ import annotations

import re
from importlib import resources

import msgspec

from spark_hooks import records

JAVA = resources.files("spark_hooks").joinpath("Recorder.java").read_text(encoding="utf-8")
KINDS = {kind: int(tag) for kind, tag in re.findall(r"private static final int ([A-Z_]+) = (\d+);", JAVA)}
for bound in ("OVERHEAD", "NESTED", "RUNS", "FAILURES", "FAILURE_CHARS", "END_CHARS"):
    KINDS.pop(bound)
# 'out.array(8).integer(JOB_START)…;' and what is added to it until the record is kept.
RECORDS = {kind: int(length) for length, kind in re.findall(r"\.array\((\d+)\)\.integer\(([A-Z_]+)\)", JAVA)}

STRUCTS = {struct.__struct_config__.tag: struct for struct in records.Record.__args__}


def _constant(name: str) -> str:
    """'TaskEnd' → 'TASK_END'."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def _body(signature: str) -> str:
    """A method of the Java source, from its signature to the next line that closes at its level."""
    found = re.search(rf"^    [^\n]*\b{signature}\([^\n]*\{{\n(.*?)^    \}}", JAVA, re.DOTALL | re.MULTILINE)
    assert found is not None, signature
    return found.group(1)


def test_kinds_and_tags_are_the_same() -> None:
    """A kind that one of the two does not know is lost, or stops the drain."""
    assert {_constant(struct.__name__): tag for tag, struct in STRUCTS.items()} == KINDS


def test_every_kind_is_written_somewhere() -> None:
    """A constant alone is no record."""
    assert RECORDS.keys() == KINDS.keys()


def test_every_record_has_as_many_elements_as_its_struct_has_fields() -> None:
    """The tag is one element; a surplus element would be dropped in silence."""
    expected = {_constant(struct.__name__): 1 + len(struct.__struct_fields__) for struct in STRUCTS.values()}
    assert expected == RECORDS


def test_stages_and_plan_nodes_have_as_many_elements_as_fields() -> None:
    """What is nested in records is held to the same."""
    for signature, struct in (("stage", records.Stage), ("plan", records.PlanNode)):
        lengths = re.findall(r"\.array\((\d+)\)", _body(signature))
        assert lengths == [str(len(struct.__struct_fields__))], signature


def test_the_task_fields_are_written_by_one_method_in_the_structs_order() -> None:
    """TaskStart and TaskEnd share their first fields, which one method writes."""
    start, end = records.TaskStart.__struct_fields__, records.TaskEnd.__struct_fields__
    assert end[: len(start)] == start
    written = re.findall(r"\.(?:integer|text)\(info\.(\w+)\(\)\)", _body("task"))
    assert written == ["taskId", "partitionId", "attemptNumber", "launchTime", "executorId"]
    assert start[2:] == ("task", "partition", "attempt", "launch_ms", "executor")


def test_the_memory_figures_are_as_many_as_read() -> None:
    """Executor memory is one array of fixed length."""
    listed = re.search(r"String\[\] MEMORY = \{(.*?)\};", JAVA, re.DOTALL)
    assert listed is not None
    read = msgspec.structs.fields(records.ExecutorMemory)[-1].type.__args__
    assert len(re.findall(r'"\w+"', listed.group(1))) == len(read)


def test_the_totals_are_as_many_as_read() -> None:
    """A drain begins with what counts since the start."""
    listed = re.search(r"totals = new long\[\] \{(.*?)\};", JAVA)
    assert listed is not None
    totals = [name.strip() for name in listed.group(1).split(",")]
    clocks = ["0", "0"]
    assert totals == ["events", "recordNs", "droppedRecords", "droppedLive", *clocks]
    totals = totals[: -len(clocks)]
    assert records.Drained.__struct_fields__[: len(totals)] == (
        "events",
        "record_ns",
        "dropped_records",
        "dropped_live",
    )


def test_nothing_private_is_synchronized() -> None:
    """Janino makes private methods static: they would lock the class, and `drain` the recorder, both at once."""
    synchronized = re.findall(r"^    (.*\bsynchronized\b.*)\(.*\{$", JAVA, re.MULTILINE)
    assert len(synchronized) >= 4
    assert not [method for method in synchronized if "private" in method]
