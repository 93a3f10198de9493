"""
The error tree; every message names the offending value and what was expected.

StreamgaugeError
  SettingError                                   a setting that cannot be used
  HookError                                      the hooks cannot be attached
  ReadError                                      a collector's REST cannot be read
  TimerError                                     a timer call that Spark does not allow here
  TapError                                       a stream cannot be tapped so
  ReplayError                                    an event log cannot be read
  CollectorError
    IngestError      MalformedFrame · UnsupportedVersion · InvalidName     400
                     Unauthorized 401 · NeedsFullFrame 409 · WrongType 415
    QueryError       UnknownJob · UnknownVertex · UnknownSubtask ·
                     UnknownAttempt · UnknownTaskManager                   404
                     UnresolvableParameter                                 400
    CapacityError    Overloaded 429, 503 · FrameTooLarge 413
    ArchiveError     CorruptSegment 500 · ArchiveAway 503
"""


class StreamgaugeError(Exception):
    """Anything that Streamgauge raises on purpose."""


class SettingError(StreamgaugeError):
    """A setting is unknown, mistyped or unsafe; the message names it and the remedy."""


class HookError(StreamgaugeError):
    """The hooks cannot be attached to this session; the message says why and what to do."""


class ReadError(StreamgaugeError):
    """
    A collector is not there, refuses, is none, or has no such job; the message says so and the remedy in one line.
    """


class TimerError(StreamgaugeError):
    """A timer call that Spark's version, the query's time mode or the moment does not allow; the message says which."""


class TapError(StreamgaugeError):
    """
    A stream cannot be tapped so; the message names the argument or column, and the rule.
    """


class ReplayError(StreamgaugeError):
    """An event log is not there, cannot be read, or is none; the message says which, and the remedy."""


class CollectorError(StreamgaugeError):
    """Anything that the collector refuses."""


class IngestError(CollectorError):
    """A push that was refused; the store is as it was before."""


class MalformedFrame(IngestError):
    """The body is not what the wire format says; the message names the place."""


class UnsupportedVersion(IngestError):
    """The frame was written by a version of the wire format that this collector does not read."""


class InvalidName(IngestError):
    """A name in a frame is empty, too long or not what its place allows."""


class Unauthorized(IngestError):
    """The push token is missing or wrong."""


class WrongType(IngestError):
    """The Content-Type is not the wire format's."""


class NeedsFullFrame(IngestError):
    """
    A frame holds changes only, and the state that they change is not here; the sender must send everything.
    """


class QueryError(CollectorError):
    """A read that cannot be answered."""


class UnknownJob(QueryError):
    """No such job: never seen, or evicted."""

    def __init__(self, jid: str) -> None:
        super().__init__(f"Job {jid} not found")
        self.jid = jid


class UnknownVertex(QueryError):
    """The job has no such vertex."""

    def __init__(self, vertex_id: str) -> None:
        super().__init__(f"JobVertex {vertex_id} not found")
        self.vertex_id = vertex_id


class UnknownSubtask(QueryError):
    """The vertex has no such subtask."""

    def __init__(self, vertex_id: str) -> None:
        super().__init__(f"Invalid subtask index for vertex {vertex_id}")
        self.vertex_id = vertex_id


class UnknownAttempt(QueryError):
    """
    The subtask has no such attempt, or it is not held any more.

    Args:
        latest: The one that is held.
        subtask: Its task's name and number, as Flink writes them.
    """

    def __init__(self, attempt: int, latest: int, subtask: str) -> None:
        earlier = 0 <= attempt < latest
        super().__init__(
            f"Attempt {attempt} not found in subtask {subtask}" if earlier else f"Invalid attempt num {attempt}"
        )
        self.attempt = attempt


class UnknownTaskManager(QueryError):
    """No such executor: never seen, or gone."""

    def __init__(self, executor_id: str) -> None:
        super().__init__(f"TaskManager {executor_id} not found")
        self.executor_id = executor_id


class UnresolvableParameter(QueryError):
    """A path or query parameter does not parse."""

    def __init__(self, kind: str, name: str, value: str) -> None:
        super().__init__(f'Cannot resolve {kind} parameter ({name}) from value "{value}".')
        self.kind = kind
        self.name = name
        self.value = value


class CapacityError(CollectorError):
    """A limit was reached; nothing was written."""


class Overloaded(CapacityError):
    """Too much at once, or too much held; the sender may try again after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class FrameTooLarge(CapacityError):
    """The body is longer than the collector takes."""


class ArchiveError(CollectorError):
    """An ended job cannot be read from the archive; live ones are not touched by it."""


class CorruptSegment(ArchiveError):
    """
    What the archive holds of one run cannot be read; every other run can.

    Args:
        jid, run: Of the run.
        fault: What is wrong with it.
        remedy: What to do, as a whole sentence's end.
    """

    def __init__(self, jid: str, run: str, fault: str, remedy: str) -> None:
        super().__init__(f"Job {jid}, run {run}, cannot be read from the archive: {fault}; {remedy}")
        self.jid = jid
        self.run = run


class ArchiveAway(ArchiveError):
    """The archive's database does not answer, or refuses; the message says why. It is tried again by itself."""
