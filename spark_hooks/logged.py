"""
Lines of Spark's event log → the typed events of `records`, as Recorder.java makes them of what the listener bus tells.

What the recorder asks of the driver beyond its events no log holds: a query's trigger and checkpoint, listings of
files, heartbeats, what observe() saw outside of streaming, the plans of subqueries that adaptive execution replaced.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from spark_hooks import logged_structs as logged
from spark_hooks import records
from spark_hooks.progress import milliseconds

FAILURE_CHARS, END_CHARS = 16_000, 30_000
"""As in Recorder.java."""

UNKNOWN_KINDS = 1_000
"""Names of unknown events that are told apart."""

TOLD_LINES = 20
"""Numbers of lines that could not be read which are told; of more only how many there are."""

SHUFFLE_PARTITIONS = ("spark.sql.shuffle.partitions", "200")
"""Spark's setting, and its default."""

_PREFIX = b'{"Event":"'
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"
_SQL = "org.apache.spark.sql.execution.ui."

_MEMORY = (
    *("JVMHeapMemory", "JVMOffHeapMemory", "DirectPoolMemory", "MappedPoolMemory"),
    *("MinorGCCount", "MinorGCTime", "MajorGCCount", "MajorGCTime"),
    *("OnHeapUnifiedMemory", "OffHeapUnifiedMemory", "OnHeapExecutionMemory", "OffHeapExecutionMemory"),
)
"""As in Recorder.java, in the order of `records.ExecutorMemory`."""

_KINDS = {"size": "b", "timing": "t", "nsTiming": "n", "average": "a"}

_DONE = {"Success", "TaskKilled", "TaskCommitDenied", "Resubmitted"}
"""Ends of a task that are no failures of it."""

NEEDLESS = frozenset(
    f"SparkListener{name}"
    for name in (
        *("BlockManagerRemoved", "BlockUpdated", "ExecutorMetricsUpdate", "JobGroupCancelled", "LogStart"),
        *("MiscellaneousProcessAdded", "ResourceProfileAdded", "SpeculativeTaskSubmitted", "TaskGettingResult"),
        *("UnpersistRDD", "UnschedulableTaskSetAdded", "UnschedulableTaskSetRemoved", "ApplicationStart"),
        *(f"{what}{how}" for what in ("Executor", "Node") for how in ("Excluded", "Unexcluded")),
        *(f"{what}{how}" for what in ("Executor", "Node") for how in ("Blacklisted", "Unblacklisted")),
        *(f"{what}{how}ForStage" for what in ("Executor", "Node") for how in ("Excluded", "Blacklisted")),
    )
) | {
    # It tells the metrics of a plan that was replaced, and not the plan.
    f"{_SQL}SparkListenerSQLAdaptiveSQLMetricUpdates",
    f"{_SQL}SparkListenerExecutionPlanUpdate",
}
"""Events that tell nothing which is shown; any other one that is not read is an unknown one."""

_T = TypeVar("_T")


class _Event(msgspec.Struct):
    Event: str


@dataclass(slots=True)
class Skipped:
    """
    What of a log was not read.

    Args:
        unknown: Kind of event → how many.
        lines: Numbers, from 1, of the first lines that are no events, or not whole ones.
        unreadable: How many there are.
        truncated: The last line is one that was not written to its end.
    """

    unknown: Counter[str] = field(default_factory=Counter)
    lines: list[int] = field(default_factory=list)
    unreadable: int = 0
    truncated: bool = False


class Logged:
    """
    Reads the lines of one log, in their order. Not thread safe.

    `now_ms` is the latest time that any event has told, Unix ms, −1 before the first; `events` counts those that were
    read or known to be needless.

    Args:
        sinks: Run id → what the query says of its sink, which the log tells at the end of a first batch only.
        settings: The application's.
        writes: Tells of a stage's id whether it writes a shuffle, which its tasks tell when they end.
    """

    def __init__(self, sinks: Mapping[str, str], settings: Mapping[str, str], writes: Callable[[int], bool]) -> None:
        self.now_ms = -1
        self.events = 0
        self.lines = 0
        self.skipped = Skipped()
        self._sinks = sinks
        self._settings = settings
        self._writes = writes
        self._read: dict[bytes, Callable[[bytes], Sequence[records.Record]]] = {}
        for kind, read in (
            ("SparkListenerTaskStart", _reader(logged.TaskStart, self._task_start)),
            ("SparkListenerTaskEnd", _reader(logged.TaskEnd, self._task_end)),
            ("SparkListenerStageSubmitted", _reader(logged.StageEvent, self._stage_submitted)),
            ("SparkListenerStageCompleted", _reader(logged.StageEvent, self._stage_completed)),
            ("SparkListenerJobStart", _reader(logged.JobStart, self._job_start)),
            ("SparkListenerJobEnd", _reader(logged.JobEnd, self._job_end)),
            ("SparkListenerExecutorAdded", _reader(logged.ExecutorAdded, self._executor_added)),
            ("SparkListenerExecutorRemoved", _reader(logged.ExecutorRemoved, self._executor_removed)),
            ("SparkListenerBlockManagerAdded", _reader(logged.BlockManagerAdded, self._block_manager_added)),
            ("SparkListenerStageExecutorMetrics", _reader(logged.ExecutorMetrics, self._executor_metrics)),
            ("SparkListenerEnvironmentUpdate", _reader(logged.Environment, self._environment)),
            ("SparkListenerApplicationEnd", _reader(logged.ApplicationEnd, self._application_end)),
            (f"{_SQL}SparkListenerSQLExecutionStart", _reader(logged.ExecutionStart, self._execution_start)),
            (f"{_SQL}SparkListenerSQLExecutionEnd", _reader(logged.ExecutionEnd, self._execution_end)),
            (f"{_SQL}SparkListenerSQLAdaptiveExecutionUpdate", _reader(logged.PlanUpdate, self._plan_update)),
            (f"{_SQL}SparkListenerDriverAccumUpdates", _reader(logged.DriverUpdates, self._driver_updates)),
            (f"{_STREAMING}QueryStartedEvent", _reader(logged.QueryStarted, self._query_started)),
            (f"{_STREAMING}QueryProgressEvent", _reader(logged.QueryProgress, self._query_progress)),
            (f"{_STREAMING}QueryIdleEvent", _reader(logged.QueryIdle, self._query_idle)),
            (f"{_STREAMING}QueryTerminatedEvent", _reader(logged.QueryTerminated, self._query_terminated)),
        ):
            self._read[kind.encode()] = read
        for kind in NEEDLESS:
            self._read[kind.encode()] = lambda _: ()

    def read(self, line: bytes) -> Sequence[records.Record]:
        """Return what a line tells, nothing where that is not needed, or cannot be read, which is noted."""
        self.lines += 1
        kind = kind_of(line)
        read = self._read.get(kind)
        if read is None:
            self._pass_over(line, kind)
            return ()
        try:
            told = read(line)
        except (ValueError, KeyError, TypeError, RecursionError):
            # msgspec's errors are ValueErrors.
            self._pass_over(line, b"")
            return ()
        self.events += 1
        return told

    def end(self, last: bytes) -> None:
        """
        The log ends.

        Args:
            last: What follows its last line break.
        """
        if last and self.skipped.unreadable and self.skipped.lines[-1:] == [self.lines]:
            self.skipped.truncated = True
            self.skipped.lines.pop()
            self.skipped.unreadable -= 1

    def _pass_over(self, line: bytes, kind: bytes) -> None:
        if not line.strip():
            return
        skipped = self.skipped
        name = kind.decode(errors="replace")
        if name and _is_json(line):
            if name in skipped.unknown or len(skipped.unknown) < UNKNOWN_KINDS:
                skipped.unknown[name] += 1
            return
        skipped.unreadable += 1
        if len(skipped.lines) < TOLD_LINES or skipped.lines[-1] == self.lines - 1:
            del skipped.lines[TOLD_LINES:]
            skipped.lines.append(self.lines)

    def _at(self, time_ms: int | None) -> int:
        """Return a time, −1 where it is not told; the log's own goes on with it."""
        if time_ms is None:
            return -1
        if time_ms > self.now_ms:
            self.now_ms = time_ms
        return time_ms

    # ---- Tasks

    def _task_start(self, told: logged.TaskStart) -> Sequence[records.Record]:
        info = told.info
        self._at(info.launch_ms)
        return (
            records.TaskStart(
                told.stage,
                told.stage_attempt,
                info.task,
                info.index if info.partition < 0 else info.partition,
                info.attempt,
                info.launch_ms,
                info.executor,
            ),
        )

    def _task_end(self, told: logged.TaskEnd) -> Sequence[records.Record]:
        info, metrics, reason = told.info, told.metrics, told.reason
        partition = info.index if info.partition < 0 else info.partition
        self._at(info.finish_ms)
        pairs: list[int] = []
        for each in info.accumulables:
            # Nearly all of a log's bytes come by here.
            if each.metadata == "sql":
                try:
                    value = int(each.update)
                except (ValueError, TypeError):
                    continue
                pairs += (each.id, value)
        ended = records.TaskEnd(
            told.stage,
            told.stage_attempt,
            info.task,
            partition,
            info.attempt,
            info.launch_ms,
            info.executor,
            info.finish_ms,
            reason.reason == "Success",
            metrics.output.bytes_written if metrics is not None and metrics.output is not None else 0,
            0 if metrics is None else metrics.peak_bytes,
            0 if metrics is None else metrics.spilled_bytes,
            tuple(pairs),
        )
        if reason.reason in _DONE:
            return (ended,)
        failure = records.TaskFailure(
            told.stage,
            told.stage_attempt,
            info.task,
            partition,
            info.attempt,
            info.executor,
            info.finish_ms,
            _failure_name(reason),
            cut(_failure_text(reason), FAILURE_CHARS),
        )
        return (failure, ended)

    # ---- Stages and jobs

    def _stage_submitted(self, told: logged.StageEvent) -> Sequence[records.Record]:
        return (records.StageSubmitted(self._at(told.info.submitted_ms), _stage(told.info, -1)),)

    def _stage_completed(self, told: logged.StageEvent) -> Sequence[records.Record]:
        info = told.info
        ended_ms = self._at(info.completed_ms)
        return (records.StageCompleted(info.id, info.attempt, ended_ms, cut(info.failure, FAILURE_CHARS)),)

    def _job_start(self, told: logged.JobStart) -> Sequence[records.Record]:
        properties = told.properties or logged.JobProperties()
        read = {parent for info in told.stages for parent in info.parents}
        return (
            records.JobStart(
                told.job,
                self._at(told.time_ms),
                _whole(properties.execution),
                properties.query,
                properties.group,
                _whole(properties.batch),
                tuple(_stage(info, self._shuffle(info, read)) for info in told.stages),
            ),
        )

    def _shuffle(self, info: logged.StageInfo, read: Set[int]) -> int:
        """
        Return a number of the shuffle that a stage writes, −1 where it writes none.

        Spark's own number stands in no log. That of the RDD which is written does for it: every exchange makes one.

        Args:
            read: The stages of its job that another one reads. With adaptive execution none may read a map stage.
        """
        writes = info.id in read or self._writes(info.id)
        return info.rdds[0].id if writes and info.rdds else -1

    def _job_end(self, told: logged.JobEnd) -> Sequence[records.Record]:
        return (records.JobEnd(told.job, self._at(told.time_ms), told.result.result == "JobSucceeded"),)

    # ---- Executors and the application

    def _executor_added(self, told: logged.ExecutorAdded) -> Sequence[records.Record]:
        info = told.info
        added_ms = self._at(told.time_ms)
        return (records.ExecutorAdded(told.executor, info.host, info.cores, added_ms, info.profile),)

    def _executor_removed(self, told: logged.ExecutorRemoved) -> Sequence[records.Record]:
        return (records.ExecutorRemoved(told.executor, self._at(told.time_ms)),)

    def _block_manager_added(self, told: logged.BlockManagerAdded) -> Sequence[records.Record]:
        blocks = told.blocks
        return (records.BlockManagerAdded(blocks.executor, f"{blocks.host}:{blocks.port}", told.memory_bytes),)

    def _executor_metrics(self, told: logged.ExecutorMetrics) -> Sequence[records.Record]:
        found = told.metrics
        a, b, c, d, e, f, g, h, i, j, k, m = (found.get(name, 0) for name in _MEMORY)
        return (records.ExecutorMemory(told.executor, self.now_ms, (a, b, c, d, e, f, g, h, i, j, k, m)),)

    def _environment(self, told: logged.Environment) -> Sequence[records.Record]:
        return (environment(told),)

    def _application_end(self, told: logged.ApplicationEnd) -> Sequence[records.Record]:
        return (records.ApplicationEnd(self._at(told.time_ms)),)

    # ---- Executions

    def _execution_start(self, told: logged.ExecutionStart) -> Sequence[records.Record]:
        root = told.execution_id if told.root_execution_id is None else told.root_execution_id
        plan = _plan(told.spark_plan_info)
        start = records.ExecutionStart(told.execution_id, root, self._at(told.time), told.description, plan)
        if root != told.execution_id:
            return (start,)
        settings = dict(told.modified_configs)
        name, default = SHUFFLE_PARTITIONS
        if name not in self._settings:
            settings.setdefault(name, default)
        return (start, records.Configuration(None, told.execution_id, settings))

    def _execution_end(self, told: logged.ExecutionEnd) -> Sequence[records.Record]:
        error = cut(told.error_message, END_CHARS)
        return (records.ExecutionEnd(told.execution_id, self._at(told.time), error),)

    def _plan_update(self, told: logged.PlanUpdate) -> Sequence[records.Record]:
        return (records.PlanUpdate(told.execution_id, _plan(told.spark_plan_info)),)

    def _driver_updates(self, told: logged.DriverUpdates) -> Sequence[records.Record]:
        updates = tuple(number for pair in told.accum_updates for number in pair)
        return (records.DriverUpdates(told.execution_id, updates),)

    # ---- Queries

    def _query_started(self, told: logged.QueryStarted) -> Sequence[records.Record]:
        if told.timestamp is not None:
            self._at(milliseconds(told.timestamp))
        sink = self._sinks.get(told.run_id)
        started = records.QueryStarted(told.id, told.run_id, told.name, told.timestamp, None, sink, None, -1)
        return (started,)

    def _query_progress(self, told: logged.QueryProgress) -> Sequence[records.Record]:
        progress = told.progress
        duration_ms = progress.get("durationMs", {}).get("triggerExecution", 0)
        self._at(milliseconds(progress["timestamp"]) + duration_ms)
        # What a driver's JSON sums up, the log has by source alone.
        sources = progress.get("sources", ())
        progress.setdefault("numInputRows", sum(source.get("numInputRows", 0) for source in sources))
        for source in sources:
            for offset in ("startOffset", "endOffset", "latestOffset"):
                source[offset] = _json(source.get(offset))
        observed = progress.get("observedMetrics") or {}
        progress["observedMetrics"] = {name: _row(told) for name, told in observed.items()}
        return (records.QueryProgress(json.dumps(progress)),)

    def _query_idle(self, told: logged.QueryIdle) -> Sequence[records.Record]:
        return (records.QueryIdle(told.id, told.run_id, self._at(milliseconds(told.timestamp))),)

    def _query_terminated(self, told: logged.QueryTerminated) -> Sequence[records.Record]:
        # The log has no time of it: it was after whatever was told before.
        return (records.QueryTerminated(told.id, told.run_id, self.now_ms, cut(told.exception, END_CHARS)),)


def lines(chunk: bytes) -> Iterator[bytes]:
    """Yield the lines of a chunk, without their line breaks."""
    start = 0
    while (end := chunk.find(b"\n", start)) >= 0:
        yield chunk[start:end]
        start = end + 1
    if start < len(chunk):
        yield chunk[start:]


def kind_of(line: bytes) -> bytes:
    """Return the kind of the event that a line tells, in full; empty where it tells none."""
    # Spark writes it first: nothing need be decoded of an event that nobody needs.
    if line.startswith(_PREFIX):
        return line[len(_PREFIX) : max(line.find(b'"', len(_PREFIX)), 0)]
    return _kind(line)


def decode(kind: type[_T], line: bytes) -> _T:
    """
    Read a line as one kind of event.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _decode(msgspec.json.Decoder(kind), kind, line)


def environment(told: logged.Environment) -> records.Environment:
    """Return what the driver's process is, and how it is set; options of the process stand in no log."""
    system = told.system
    java = "java.vm"
    return records.Environment(
        f"{system.get(f'{java}.name', '')} - {system.get(f'{java}.vendor', '')} - "
        f"{system.get(f'{java}.specification.version', '')}/{system.get(f'{java}.version', '')}",
        system.get("os.arch", ""),
        (),
        tuple(told.class_path),
        told.spark,
    )


def cut(text: str | None, chars: int) -> str | None:
    """Shorten a text to `chars` characters at most, as Recorder.java does: between words and lines."""
    if text is None or len(text) <= chars:
        return text
    head = 3 * chars // 4
    while head > 0 and not text[head].isspace():
        head -= 1
    tail = text.find("\n", len(text) - chars // 4 + 2)
    return f"{text[:head]}\n…{text[tail:] if tail >= 0 else ''}"


def _reader(
    kind: type[_T], read: Callable[[_T], Sequence[records.Record]]
) -> Callable[[bytes], Sequence[records.Record]]:
    decoder = msgspec.json.Decoder(kind)
    return lambda line: read(_decode(decoder, kind, line))


def _decode(decoder: msgspec.json.Decoder[_T], kind: type[_T], line: bytes) -> _T:
    try:
        return decoder.decode(line)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # A metric may be a NaN, and Spark writes it as such.
        return msgspec.convert(json.loads(line), kind)


def _kind(line: bytes) -> bytes:
    """Return an event's kind, wherever in the line it stands; empty where there is none."""
    try:
        return msgspec.json.decode(line, type=_Event).Event.encode()
    except (ValueError, RecursionError):
        return b""


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=_Event)
    except msgspec.ValidationError:
        return False
    except (ValueError, RecursionError):
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            return False
    return True


def _whole(text: str | None) -> int:
    return -1 if text is None else int(text)


def _scope(text: str | None) -> str:
    if text is None:
        return ""
    try:
        name: str = json.loads(text)["name"]
    except (ValueError, KeyError, TypeError):
        return ""
    return name


def _stage(info: logged.StageInfo, written: int) -> records.Stage:
    scopes = dict.fromkeys(_scope(rdd.scope) for rdd in info.rdds if rdd.scope is not None)
    return records.Stage(info.id, info.attempt, info.tasks, written, info.parents, tuple(scopes))


def _plan(node: logged.Node) -> records.PlanNode:
    return records.PlanNode(
        node.node_name,
        node.simple_string,
        tuple(part for metric in node.metrics for part in (metric.name, metric.accumulator_id)),
        tuple(map(_plan, node.children)),
        "".join(_KINDS.get(metric.metric_type, "s") for metric in node.metrics),
    )


def _json(offset: Any) -> Any:
    """Return an offset as a progress event of a driver has it: the log has its JSON in a string."""
    if not isinstance(offset, str):
        return offset
    try:
        return json.loads(offset)
    except (ValueError, RecursionError):
        return offset


def _row(told: Any) -> Any:
    """Return a row as a driver's JSON has it, by column; the log has its values and its schema."""
    if isinstance(told, list):
        return [_row(each) for each in told]
    if not isinstance(told, dict):
        return told
    if told.keys() == {"values", "schema"}:
        names = [column["name"] for column in told["schema"]["fields"]]
        return dict(zip(names, map(_row, told["values"]), strict=True))
    return {name: _row(each) for name, each in told.items()}


def _failure_name(reason: logged.Reason) -> str:
    if reason.reason == "ExceptionFailure":
        return reason.class_name
    if reason.reason == "FetchFailed":
        return "org.apache.spark.shuffle.FetchFailedException"
    return f"org.apache.spark.{reason.reason}"


def _failure_text(reason: logged.Reason) -> str:
    """Return what Spark's `TaskFailedReason.toErrorString` says."""
    match reason.reason:
        case "ExceptionFailure":
            if reason.trace is not None:
                return reason.trace
            stack = "\n".join(f"        {frame}" for frame in reason.stack)
            return f"{reason.class_name}: {reason.description}\n{stack}"
        case "FetchFailed":
            where = "null" if reason.blocks is None else str(reason.blocks)
            return (
                f"FetchFailed({where}, shuffleId={reason.shuffle}, mapIndex={reason.map_index}, mapId={reason.map}, "
                f"reduceId={reason.reducer}, message=\n{reason.message}\n)"
            )
        case "ExecutorLostFailure":
            by = "caused by one of the running tasks" if reason.by_app else "unrelated to the running tasks"
            why = "" if reason.loss is None else f" Reason: {reason.loss}"
            return f"ExecutorLostFailure (executor {reason.executor} exited {by}){why}"
        case "TaskResultLost":
            return "TaskResultLost (result lost from block manager)"
        case other:
            return other
