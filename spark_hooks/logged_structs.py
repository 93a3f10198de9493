"""The parts of Spark's event log that are read, as its JSON has them; all else in an event is passed over undecoded."""

from __future__ import annotations

from typing import Any

import msgspec

# Spark's `JsonProtocol` calls its fields by words ('Stage ID'), what it leaves to Jackson by theirs ('executionId').


class Rdd(msgspec.Struct):
    """`scope` is JSON in JSON, and absent where an RDD was made outside of any."""

    id: int = msgspec.field(name="RDD ID", default=-1)
    name: str = msgspec.field(name="Name", default="")
    scope: str | None = msgspec.field(name="Scope", default=None)


class StageInfo(msgspec.Struct):
    """A stage attempt; its own RDD comes first."""

    id: int = msgspec.field(name="Stage ID")
    attempt: int = msgspec.field(name="Stage Attempt ID", default=0)
    tasks: int = msgspec.field(name="Number of Tasks", default=0)
    rdds: tuple[Rdd, ...] = msgspec.field(name="RDD Info", default=())
    parents: tuple[int, ...] = msgspec.field(name="Parent IDs", default=())
    submitted_ms: int | None = msgspec.field(name="Submission Time", default=None)
    completed_ms: int | None = msgspec.field(name="Completion Time", default=None)
    failure: str | None = msgspec.field(name="Failure Reason", default=None)


class JobProperties(msgspec.Struct):
    """What a Spark job was told of where it belongs."""

    execution: str | None = msgspec.field(name="spark.sql.execution.id", default=None)
    query: str | None = msgspec.field(name="sql.streaming.queryId", default=None)
    group: str | None = msgspec.field(name="spark.jobGroup.id", default=None)
    batch: str | None = msgspec.field(name="streaming.sql.batchId", default=None)


class JobStart(msgspec.Struct):
    """SparkListenerJobStart."""

    job: int = msgspec.field(name="Job ID")
    time_ms: int = msgspec.field(name="Submission Time", default=-1)
    stages: tuple[StageInfo, ...] = msgspec.field(name="Stage Infos", default=())
    properties: JobProperties | None = msgspec.field(name="Properties", default=None)


class JobEndResult(msgspec.Struct):
    """'JobSucceeded', or why not."""

    result: str = msgspec.field(name="Result", default="")


class JobEnd(msgspec.Struct):
    """SparkListenerJobEnd."""

    job: int = msgspec.field(name="Job ID")
    time_ms: int = msgspec.field(name="Completion Time", default=-1)
    result: JobEndResult = msgspec.field(name="Job Result", default_factory=JobEndResult)


class StageEvent(msgspec.Struct):
    """SparkListenerStageSubmitted and SparkListenerStageCompleted."""

    info: StageInfo = msgspec.field(name="Stage Info")


class Accumulable(msgspec.Struct):
    """`update` is a number in quotes where `metadata` is 'sql'."""

    id: int = msgspec.field(name="ID")
    update: Any = msgspec.field(name="Update", default=None)
    metadata: str | None = msgspec.field(name="Metadata", default=None)


class TaskInfo(msgspec.Struct):
    """A task attempt; before Spark 3.3 it told no partition, which is the index then."""

    task: int = msgspec.field(name="Task ID")
    index: int = msgspec.field(name="Index", default=0)
    attempt: int = msgspec.field(name="Attempt", default=0)
    partition: int = msgspec.field(name="Partition ID", default=-1)
    launch_ms: int = msgspec.field(name="Launch Time", default=-1)
    executor: str = msgspec.field(name="Executor ID", default="")


class EndedTask(TaskInfo):
    """A task attempt that has ended."""

    finish_ms: int = msgspec.field(name="Finish Time", default=-1)
    accumulables: tuple[Accumulable, ...] = msgspec.field(name="Accumulables", default=())


class TaskStart(msgspec.Struct):
    """SparkListenerTaskStart."""

    stage: int = msgspec.field(name="Stage ID")
    info: TaskInfo = msgspec.field(name="Task Info")
    stage_attempt: int = msgspec.field(name="Stage Attempt ID", default=0)


class Frame(msgspec.Struct):
    """A line of a stack."""

    owner: str = msgspec.field(name="Declaring Class", default="")
    method: str = msgspec.field(name="Method Name", default="")
    file: str | None = msgspec.field(name="File Name", default=None)
    line: int = msgspec.field(name="Line Number", default=-1)

    def __str__(self) -> str:
        """Return it as Java prints it."""
        where = "Native Method" if self.line == -2 else self.file or "Unknown Source"
        return f"{self.owner}.{self.method}({where}{f':{self.line}' if self.file and self.line >= 0 else ''})"


class BlockManager(msgspec.Struct):
    """Of an executor."""

    executor: str = msgspec.field(name="Executor ID", default="")
    host: str = msgspec.field(name="Host", default="")
    port: int = msgspec.field(name="Port", default=0)

    def __str__(self) -> str:
        """Return it as Spark prints it."""
        return f"BlockManagerId({self.executor}, {self.host}, {self.port}, None)"


class Reason(msgspec.Struct):
    """Why a task attempt ended; which fields there are depends on `reason`."""

    reason: str = msgspec.field(name="Reason", default="")
    class_name: str = msgspec.field(name="Class Name", default="")
    description: str = msgspec.field(name="Description", default="")
    stack: tuple[Frame, ...] = msgspec.field(name="Stack Trace", default=())
    trace: str | None = msgspec.field(name="Full Stack Trace", default=None)
    blocks: BlockManager | None = msgspec.field(name="Block Manager Address", default=None)
    shuffle: int = msgspec.field(name="Shuffle ID", default=-1)
    map: int = msgspec.field(name="Map ID", default=-1)
    map_index: int = msgspec.field(name="Map Index", default=-1)
    reducer: int = msgspec.field(name="Reduce ID", default=-1)
    message: str = msgspec.field(name="Message", default="")
    executor: str = msgspec.field(name="Executor ID", default="")
    by_app: bool = msgspec.field(name="Exit Caused By App", default=False)
    loss: str | None = msgspec.field(name="Loss Reason", default=None)


class OutputMetrics(msgspec.Struct):
    """Of a task."""

    bytes_written: int = msgspec.field(name="Bytes Written", default=0)


class TaskMetrics(msgspec.Struct):
    """Of a task; absent where its executor was lost."""

    output: OutputMetrics | None = msgspec.field(name="Output Metrics", default=None)
    peak_bytes: int = msgspec.field(name="Peak Execution Memory", default=0)
    spilled_bytes: int = msgspec.field(name="Disk Bytes Spilled", default=0)


class TaskEnd(msgspec.Struct):
    """SparkListenerTaskEnd."""

    stage: int = msgspec.field(name="Stage ID")
    info: EndedTask = msgspec.field(name="Task Info")
    stage_attempt: int = msgspec.field(name="Stage Attempt ID", default=0)
    reason: Reason = msgspec.field(name="Task End Reason", default_factory=Reason)
    metrics: TaskMetrics | None = msgspec.field(name="Task Metrics", default=None)


class Metric(msgspec.Struct, rename="camel"):
    """A SQL metric of a plan's node."""

    name: str
    accumulator_id: int
    metric_type: str = "sum"


class Node(msgspec.Struct, rename="camel"):
    """A node of a physical plan."""

    node_name: str
    simple_string: str = ""
    children: tuple[Node, ...] = ()
    metrics: tuple[Metric, ...] = ()


class ExecutionStart(msgspec.Struct, rename="camel"):
    """SparkListenerSQLExecutionStart."""

    execution_id: int
    spark_plan_info: Node
    time: int
    root_execution_id: int | None = None
    description: str | None = None
    modified_configs: dict[str, str] = {}


class PlanUpdate(msgspec.Struct, rename="camel"):
    """SparkListenerSQLAdaptiveExecutionUpdate."""

    execution_id: int
    spark_plan_info: Node


class ExecutionEnd(msgspec.Struct, rename="camel"):
    """SparkListenerSQLExecutionEnd."""

    execution_id: int
    time: int
    error_message: str | None = None


class DriverUpdates(msgspec.Struct, rename="camel"):
    """SparkListenerDriverAccumUpdates."""

    execution_id: int
    accum_updates: tuple[tuple[int, int], ...] = ()


class QueryStarted(msgspec.Struct, rename="camel"):
    """StreamingQueryListener.QueryStartedEvent."""

    id: str
    run_id: str
    name: str | None = None
    timestamp: str | None = None


class QueryProgress(msgspec.Struct):
    """StreamingQueryListener.QueryProgressEvent."""

    progress: dict[str, Any]


class SinkDescription(msgspec.Struct):
    """Of a progress event."""

    description: str = ""


class RunOfSink(msgspec.Struct, rename="camel"):
    """Of a progress event."""

    run_id: str
    sink: SinkDescription = msgspec.field(default_factory=SinkDescription)


class ProgressSink(msgspec.Struct):
    """StreamingQueryListener.QueryProgressEvent, as far as it tells the sink."""

    progress: RunOfSink


class QueryIdle(msgspec.Struct, rename="camel"):
    """StreamingQueryListener.QueryIdleEvent."""

    id: str
    run_id: str
    timestamp: str


class QueryTerminated(msgspec.Struct, rename="camel"):
    """StreamingQueryListener.QueryTerminatedEvent; the log does not say when."""

    id: str
    run_id: str
    exception: str | None = None


class ExecutorInfo(msgspec.Struct):
    """Of an executor."""

    host: str = msgspec.field(name="Host", default="")
    cores: int = msgspec.field(name="Total Cores", default=0)
    profile: int = msgspec.field(name="Resource Profile Id", default=0)


class ExecutorAdded(msgspec.Struct):
    """SparkListenerExecutorAdded."""

    time_ms: int = msgspec.field(name="Timestamp")
    executor: str = msgspec.field(name="Executor ID")
    info: ExecutorInfo = msgspec.field(name="Executor Info", default_factory=ExecutorInfo)


class ExecutorRemoved(msgspec.Struct):
    """SparkListenerExecutorRemoved."""

    time_ms: int = msgspec.field(name="Timestamp")
    executor: str = msgspec.field(name="Executor ID")


class BlockManagerAdded(msgspec.Struct):
    """SparkListenerBlockManagerAdded."""

    blocks: BlockManager = msgspec.field(name="Block Manager ID")
    memory_bytes: int = msgspec.field(name="Maximum Memory", default=-1)


class ExecutorMetrics(msgspec.Struct):
    """SparkListenerStageExecutorMetrics: an executor's peaks in a stage; logged only where Spark is asked to."""

    executor: str = msgspec.field(name="Executor ID")
    metrics: dict[str, int] = msgspec.field(name="Executor Metrics", default_factory=dict)


class Environment(msgspec.Struct):
    """SparkListenerEnvironmentUpdate; Spark has redacted it."""

    spark: dict[str, str] = msgspec.field(name="Spark Properties", default_factory=dict)
    system: dict[str, str] = msgspec.field(name="System Properties", default_factory=dict)
    class_path: dict[str, str] = msgspec.field(name="Classpath Entries", default_factory=dict)


class LogStart(msgspec.Struct):
    """SparkListenerLogStart."""

    version: str = msgspec.field(name="Spark Version", default="")


class ApplicationStart(msgspec.Struct):
    """SparkListenerApplicationStart."""

    name: str = msgspec.field(name="App Name", default="")
    id: str | None = msgspec.field(name="App ID", default=None)
    time_ms: int = msgspec.field(name="Timestamp", default=-1)


class ApplicationEnd(msgspec.Struct):
    """SparkListenerApplicationEnd."""

    time_ms: int = msgspec.field(name="Timestamp")
