"""The dashboard of the machinery: executors, drivers, the hooks in the drivers, and the collector itself."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.grafana.frame import Panel, application, board, executor, section
from dashboards.grafana.health import collector, hooks
from dashboards.grafana.look import AGE_LIMITS, APPLICATION, BAD, GOOD, WARNING
from dashboards.grafana.panels import (
    BYTES,
    COUNT,
    PER_SECOND,
    SECONDS,
    SHARE,
    Ask,
    Told,
    figure,
    series,
)
from dashboards.grafana.promql import APPLICATIONS, BY_APPLICATION, greatest, rate

EXECUTORS = f'{APPLICATIONS}, executor_id=~"$executor"'
BY_EXECUTOR = f"{BY_APPLICATION}, executor_id"
EXECUTOR = "{{application_name}}: {{executor_id}}"
FULL = {0.8: WARNING, 0.95: BAD}
COLLECTION_LIMITS = {0.1: WARNING, 0.3: BAD}
_LOCAL = " In local mode the one executor is the driver's JVM."


def build() -> Dashboard:
    """Return the dashboard *Executors*."""
    onto = board(
        "executors",
        "Executors",
        "Have executors and drivers memory, processor and slots enough, and do the hooks and the collector keep up?",
    )
    onto.with_variable(application()).with_variable(executor())
    section(onto, "Now", _figures(), row=100)
    section(onto, "Executors (Flink's TaskManagers)", _executors(), row=200)
    section(onto, "Drivers (Flink's JobManager)", _drivers(), row=300)
    section(onto, "Hooks in the drivers", hooks(), row=400)
    section(onto, "More of the executors", _more(), row=500, collapsed=True)
    section(onto, "Collector", collector(), row=600, collapsed=True)
    return onto


def _figures() -> Iterator[Panel]:
    yield figure(
        Told(
            1,
            "Executors",
            "Executors of all connected drivers, whichever application is chosen. Fewer than asked for: look at the "
            "cluster manager.",
            COUNT,
        ),
        Ask("sum(streamgauge_registered_task_managers)"),
    )
    yield figure(
        Told(
            2,
            "Slots",
            "Task slots of all executors: cores over spark.task.cpus, whichever application is chosen.",
            COUNT,
        ),
        Ask("sum(streamgauge_task_slots)"),
    )
    yield figure(
        Told(
            3,
            "Free slots",
            "Slots without a running task. None for longer than a batch: tasks wait for slots, see Waiting for a slot "
            "on Vertex and operators.",
            COUNT,
        ),
        Ask("sum(streamgauge_task_slots_available)"),
        limits={1: GOOD},
        below=WARNING,
    )
    yield figure(
        Told(
            4,
            "Fullest heap",
            "Heap of the executor that uses most of its own. Garbage is in it: near 100 % is normal for a moment, and "
            "not for long.",
            SHARE,
        ),
        Ask(
            f"max(streamgauge_executor_jvm_memory_heap_used_bytes{{{EXECUTORS}}}"
            f" / streamgauge_executor_jvm_memory_heap_max_bytes{{{EXECUTORS}}})"
        ),
        limits=FULL,
    )
    yield figure(
        Told(
            5,
            "Events lost",
            "Events a second that hooks gave up for want of room, or could not take in: counts are too small from "
            "then on. Restart the driver when it is over; report faults.",
            PER_SECOND,
        ),
        Ask(
            f"sum(rate(streamgauge_hooks_dropped_records_total{{{APPLICATIONS}}}[$__rate_interval]))"
            f" + sum(rate(streamgauge_hooks_faults_total{{{APPLICATIONS}}}[$__rate_interval]))"
        ),
        limits={0.001: BAD},
    )
    yield figure(
        Told(
            6,
            "Oldest figures",
            "Time since the collector took in what the most silent driver's hooks sent.",
            SECONDS,
        ),
        Ask(f"max(streamgauge_hooks_acknowledged_age_seconds{{{APPLICATIONS}}})"),
        limits=AGE_LIMITS,
    )


def _executors() -> Iterator[Panel]:
    yield series(
        Told(
            10,
            "Heap",
            f"Used heap over its greatest size, by executor. A floor that climbs from collection to collection is a "
            f"leak, or state that grows.{_LOCAL}",
            SHARE,
        ),
        [
            Ask(
                f"{greatest('streamgauge_executor_jvm_memory_heap_used_bytes', EXECUTORS, BY_EXECUTOR)}\n"
                f"/ {greatest('streamgauge_executor_jvm_memory_heap_max_bytes', EXECUTORS, BY_EXECUTOR)}",
                EXECUTOR,
            )
        ],
        width=8,
        limits=FULL,
        most=1,
    )
    yield series(
        Told(
            11,
            "Time in garbage collection",
            "Share of time that each executor spends in collections. Above a tenth it works for the collector: more "
            "heap, fewer objects, or state outside of the heap.",
            SHARE,
        ),
        [Ask(rate("streamgauge_executor_jvm_garbage_collection_seconds_total", EXECUTORS, BY_EXECUTOR), EXECUTOR)],
        width=8,
        limits=COLLECTION_LIMITS,
    )
    yield series(
        Told(
            12,
            "CPU",
            "Processor load of each executor's JVM, 100 % being all processors of its machine; told in local "
            "mode only, where the executor is the driver's JVM.",
            SHARE,
        ),
        [Ask(greatest("streamgauge_executor_jvm_cpu_load", EXECUTORS, BY_EXECUTOR), EXECUTOR)],
        width=8,
        limits=FULL,
        most=1,
    )
    yield series(
        Told(
            13,
            "Execution memory",
            "Memory for shuffles, sorts and joins over what there is for storage and execution, the peak since the "
            "heartbeat before. When it is full, tasks spill.",
            SHARE,
        ),
        [
            Ask(
                f"{greatest('streamgauge_executor_shuffle_netty_used_memory_bytes', EXECUTORS, BY_EXECUTOR)}\n"
                f"/ {greatest('streamgauge_executor_shuffle_netty_total_memory_bytes', EXECUTORS, BY_EXECUTOR)}",
                EXECUTOR,
            )
        ],
        width=8,
        limits=FULL,
        most=1,
    )
    yield series(
        Told(
            14,
            "Slots",
            "Task slots, and those without a running task, of all connected drivers together.",
            COUNT,
        ),
        [
            Ask("sum(streamgauge_task_slots)", "all"),
            Ask("sum(streamgauge_task_slots_available)", "free"),
        ],
        width=8,
    )
    yield series(
        Told(
            15,
            "Threads",
            "Threads of each executor's JVM, told in local mode only. Growth without end: user code or a connector "
            "opens them and does not close them.",
            COUNT,
        ),
        [Ask(greatest("streamgauge_executor_jvm_threads", EXECUTORS, BY_EXECUTOR), EXECUTOR)],
        width=8,
    )


def _drivers() -> Iterator[Panel]:
    yield series(
        Told(
            20,
            "Heap",
            "Used heap of each driver over its greatest size. A driver plans every micro-batch; large plans, many "
            "queries and collected results fill it.",
            SHARE,
        ),
        [
            Ask(
                f"{greatest('streamgauge_driver_jvm_memory_heap_used_bytes', APPLICATIONS, BY_APPLICATION)}\n"
                f"/ {greatest('streamgauge_driver_jvm_memory_heap_max_bytes', APPLICATIONS, BY_APPLICATION)}",
                APPLICATION,
            )
        ],
        width=6,
        limits=FULL,
        most=1,
    )
    yield series(
        Told(
            21,
            "Time in garbage collection",
            "Share of time that each driver spends in collections. Batches start late while it does.",
            SHARE,
        ),
        [
            Ask(
                rate("streamgauge_driver_jvm_garbage_collection_seconds_total", APPLICATIONS, BY_APPLICATION),
                APPLICATION,
            )
        ],
        width=6,
        limits=COLLECTION_LIMITS,
    )
    yield series(
        Told(22, "CPU", "Processor load of each driver's JVM, 100 % being all processors of its machine.", SHARE),
        [Ask(greatest("streamgauge_driver_jvm_cpu_load", APPLICATIONS, BY_APPLICATION), APPLICATION)],
        width=6,
        limits=FULL,
        most=1,
    )
    yield series(
        Told(23, "Threads", "Threads of each driver's JVM; each query has some of its own.", COUNT),
        [Ask(greatest("streamgauge_driver_jvm_threads", APPLICATIONS, BY_APPLICATION), APPLICATION)],
        width=6,
    )


def _more() -> Iterator[Panel]:
    for number, title, family, text in (
        (40, "Memory outside of the heap", "jvm_memory_non_heap_used", "Metaspace, code and the like, by executor."),
        (
            41,
            "Direct memory",
            "jvm_memory_direct_used",
            "Buffers outside of the heap, by executor. They count towards a container's limit.",
        ),
        (
            42,
            "Storage and execution",
            "managed_memory_used",
            "Memory in use for storage and execution, Flink's managed memory, the peak since the heartbeat before.",
        ),
    ):
        yield series(
            Told(number, title, text, BYTES),
            [Ask(greatest(f"streamgauge_executor_{family}_bytes", EXECUTORS, BY_EXECUTOR), EXECUTOR)],
            width=8,
        )
