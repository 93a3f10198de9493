"""What the collector takes and holds at most; every bound of ingestion is named here."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Limits:
    """
    The bounds of ingestion. Each is inclusive, an integer and at least 1.

    Past a bound of a push (FrameTooLarge, InvalidName) sending again cannot help: raise the limit or send
    less. Past a bound of what is held (Overloaded) it can, once ended and silent jobs have left.

    Args:
        body_bytes: Length of a push's body; FrameTooLarge. 32 MiB, about 4 million values.
        frames: Frames of a push; FrameTooLarge.
        vertices: Vertices of a job's plan; FrameTooLarge.
        operators: Operators of a vertex; FrameTooLarge.
        inputs: Exchanges that a vertex reads; FrameTooLarge.
        subtasks: Subtasks of a vertex, the length of its columns; FrameTooLarge.
        columns: Columns of a vertex, and of each operator; FrameTooLarge.
        accumulators: Native SQL metrics of a vertex; FrameTooLarge.
        latencies: Latencies of a vertex, one for each source (or its subtask) and the operators that see the same
            of its markers; latency histograms likewise; FrameTooLarge.
        taps: Taps of a vertex; FrameTooLarge.
        splits: Splits of a tap; FrameTooLarge.
        distributions: Distributions of a vertex, one for each operator and metric; FrameTooLarge.
        checkpoints: Micro-batches of a job; FrameTooLarge.
        failures: Failures of a job, and such as came with one of them; FrameTooLarge.
        settings: Settings of a configuration, options and class path of a driver; FrameTooLarge.
        job_series: Values held of one job: columns × subtasks, latencies, splits and distributions; FrameTooLarge. It
            keeps one job from taking the room of all.
        executors: Executors of an application, and executors that a vertex names; FrameTooLarge.
        scalars: Metrics without subtasks of each job, executor, driver and hooks; FrameTooLarge.
        name_chars: Characters of a name, id or address; InvalidName. A vertex's name is a whole chain.
        metric_chars: Characters of a metric's name, and of a split's, which is a part of such; InvalidName. Flink's
            latency ids take about 200.
        text_chars: Characters of a description, a failure or a metric that is text; InvalidName.
        interval_ms: Push interval that a driver may announce; MalformedFrame. Silence is measured by
            it, so a driver must not be able to announce years.
        jobs: Jobs held, ended ones included; Overloaded.
        apps: Applications held; Overloaded.
        series: Values held of all jobs; Overloaded. Jobs that do not grow are still taken.
        retry_after_s: What Overloaded tells the sender to wait, seconds.

    Raises:
        ValueError: a limit is below 1.
    """

    body_bytes: int = 32 * 1024 * 1024
    frames: int = 2_000
    vertices: int = 1_000
    operators: int = 256
    inputs: int = 1_000
    subtasks: int = 100_000
    columns: int = 1_000
    accumulators: int = 4_000
    latencies: int = 10_000
    taps: int = 128
    splits: int = 1_024
    distributions: int = 1_000
    checkpoints: int = 32
    failures: int = 64
    settings: int = 20_000
    job_series: int = 5_000_000
    executors: int = 10_000
    scalars: int = 2_000
    name_chars: int = 8_192
    metric_chars: int = 512
    text_chars: int = 65_536
    interval_ms: int = 600_000
    jobs: int = 10_000
    apps: int = 1_000
    series: int = 20_000_000
    retry_after_s: int = 10

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise ValueError(f"limit {field.name} is {value}, but must be at least 1")
