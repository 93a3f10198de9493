"""What travels from the hooks to the collector; see `streamgauge.wire.frame`."""

from streamgauge.wire.checkpoints import Checkpoint, Checkpoints, CheckpointTasks, Spread
from streamgauge.wire.columns import Array, Column, column
from streamgauge.wire.failures import FAILURES, Failure, Failures
from streamgauge.wire.frame import (
    CONTENT_TYPE,
    ENDED_STATES,
    PUSH_PATH,
    WIRE_VERSION,
    App,
    Attempt,
    Environment,
    Executor,
    Frame,
    Incomplete,
    Job,
    JobState,
)
from streamgauge.wire.graph import BROADCAST, Edge, Operator, Plan, Vertex
from streamgauge.wire.latencies import Buckets, Latency, LatencyGranularity, LatencyHistogram
from streamgauge.wire.taps import Distribution, Tap
from streamgauge.wire.vertices import (
    Accumulator,
    AccumulatorKind,
    Coordinator,
    OperatorColumns,
    Scalar,
    Subtasks,
    VertexColumns,
)

__all__ = [
    "BROADCAST",
    "CONTENT_TYPE",
    "ENDED_STATES",
    "FAILURES",
    "PUSH_PATH",
    "WIRE_VERSION",
    "Accumulator",
    "AccumulatorKind",
    "App",
    "Array",
    "Attempt",
    "Buckets",
    "Checkpoint",
    "CheckpointTasks",
    "Checkpoints",
    "Column",
    "Coordinator",
    "Distribution",
    "Edge",
    "Environment",
    "Executor",
    "Failure",
    "Failures",
    "Frame",
    "Incomplete",
    "Job",
    "JobState",
    "Latency",
    "LatencyGranularity",
    "LatencyHistogram",
    "Operator",
    "OperatorColumns",
    "Plan",
    "Scalar",
    "Spread",
    "Subtasks",
    "Tap",
    "Vertex",
    "VertexColumns",
    "column",
]
