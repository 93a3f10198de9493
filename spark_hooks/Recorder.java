import java.lang.management.BufferPoolMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryUsage;
import java.lang.management.RuntimeMXBean;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.zip.Deflater;
import org.apache.spark.ExceptionFailure;
import org.apache.spark.FetchFailed;
import org.apache.spark.Resubmitted$;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskCommitDenied;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.TaskKilled;
import org.apache.spark.executor.ExecutorMetrics;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.*;
import org.apache.spark.scheduler.cluster.ExecutorInfo;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlanInfo;
import org.apache.spark.sql.execution.metric.SQLMetricInfo;
import org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates;
import org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate;
import org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveSQLMetricUpdates;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.apache.spark.storage.RDDInfo;
import org.apache.spark.util.Utils;

/**
 * Turns Spark's listener events into MessagePack records and keeps them until they are drained.
 *
 * Compiled in the driver by Janino, which knows no lambdas and no generics: raw collections, casts, and
 * Scala's collections walked by iterator(). A record is an array whose first element is its kind; the
 * kinds and their fields stand in records.py, and the two files change together.
 *
 * Runs on a listener queue of its own. Never blocks: when `capacity` bytes are held it gives up the
 * oldest live updates first, then the new record, and counts both.
 */
public class Recorder extends SparkListener {
    private static final int APPLICATION_END = 0;
    private static final int EXECUTION_START = 1;
    private static final int PLAN_UPDATE = 2;
    private static final int EXECUTION_END = 3;
    private static final int DRIVER_UPDATES = 4;
    private static final int JOB_START = 5;
    private static final int JOB_END = 6;
    private static final int STAGE_SUBMITTED = 7;
    private static final int STAGE_COMPLETED = 8;
    private static final int TASK_START = 9;
    private static final int TASK_END = 10;
    private static final int LIVE_UPDATE = 11;
    private static final int EXECUTOR_MEMORY = 12;
    private static final int EXECUTOR_ADDED = 13;
    private static final int EXECUTOR_REMOVED = 14;
    private static final int BLOCK_MANAGER_ADDED = 15;
    private static final int QUERY_STARTED = 16;
    private static final int QUERY_PROGRESS = 17;
    private static final int QUERY_TERMINATED = 18;
    private static final int FAULT = 19;
    private static final int QUERY_IDLE = 20;
    private static final int TASK_FAILURE = 21;
    private static final int ENVIRONMENT = 22;
    private static final int CONFIGURATION = 23;
    private static final int OBSERVED = 24;
    private static final int SOURCE_BACKLOG = 25;

    private static final String[] MEMORY = {
        "JVMHeapMemory", "JVMOffHeapMemory", "DirectPoolMemory", "MappedPoolMemory",
        "MinorGCCount", "MinorGCTime", "MajorGCCount", "MajorGCTime",
        "OnHeapUnifiedMemory", "OffHeapUnifiedMemory", "OnHeapExecutionMemory", "OffHeapExecutionMemory"
    };

    /** What one live update or record costs beside its bytes. */
    private static final int OVERHEAD = 64;

    /** Nested executions that are held; more can only be such whose end Spark's queue had to drop. */
    private static final int NESTED = 1024;

    /** Runs whose sources are remembered; of one that is forgotten they are looked at once more. */
    private static final int RUNS = 1024;

    /** Stands for the batch of a run that reads no stream of files. */
    private static final Long NO_FILES = Long.valueOf(-2);

    /** Failures of tasks whose text is held between two drains; of older ones only that and where they were. */
    private static final int FAILURES = 16;

    /** Characters of the text of a task's or a stage's failure, and of one that ended a query or an execution. */
    private static final int FAILURE_CHARS = 16000;
    private static final int END_CHARS = 30000;

    private final long capacity;
    private final Object session;
    private final ArrayDeque records = new ArrayDeque();
    private final LinkedHashMap live = new LinkedHashMap();
    private final LinkedHashMap memory = new LinkedHashMap();
    /** Those of `records` that are failures and have their text. */
    private final ArrayDeque failures = new ArrayDeque();
    /** Execution -> the one that encloses it, of those that run; of the listener's thread alone. */
    private final LinkedHashMap roots = new LinkedHashMap();
    /** Run -> its latest batch whose sources were looked at, or NO_FILES; of the listener's thread alone. */
    private final LinkedHashMap looked = new LinkedHashMap();
    private long held = 0;
    private long events = 0;
    private long recordNs = 0;
    private long droppedRecords = 0;
    private long droppedLive = 0;

    /**
     * @param capacity bytes that may be held between two drains
     * @param session  the attached SparkSession, whose shared state knows the trigger of every query that runs
     */
    public Recorder(long capacity, Object session) {
        this.capacity = capacity;
        this.session = session;
    }

    /**
     * Hands over all that is held, in the order it came, live updates last.
     *
     * @return a MessagePack array: [events, recordNs, droppedRecords, droppedLive, wallMs, monotonicNs, record ...],
     *         in zlib's format, since Py4J carries bytes as text; the first four count since the start, the next two
     *         are the same moment on both clocks
     */
    public byte[] drain() {
        ArrayDeque taken;
        ArrayList updates;
        long[] totals;
        synchronized (this) {
            taken = new ArrayDeque(records);
            updates = new ArrayList(live.values());
            updates.addAll(memory.values());
            records.clear();
            live.clear();
            memory.clear();
            failures.clear();
            held = 0;
            totals = new long[] {events, recordNs, droppedRecords, droppedLive, 0, 0};
        }
        now(totals, 4);
        Packer out = new Packer();
        out.array(totals.length + taken.size() + updates.size());
        for (int i = 0; i < totals.length; i++) {
            out.integer(totals[i]);
        }
        for (Iterator it = taken.iterator(); it.hasNext();) {
            Object record = it.next();
            out.raw(record instanceof Failure ? ((Failure) record).bytes() : (byte[]) record);
        }
        for (Iterator it = updates.iterator(); it.hasNext();) {
            out.raw((byte[]) it.next());
        }
        return out.deflated();
    }

    /** Reads both clocks, wall milliseconds and monotonic nanoseconds, so that a pause in between does not part them. */
    private static void now(long[] into, int at) {
        long narrowest = Long.MAX_VALUE;
        for (int i = 0; i < 3; i++) {
            long before = System.nanoTime();
            long wall = System.currentTimeMillis();
            long width = System.nanoTime() - before;
            if (width < narrowest) {
                narrowest = width;
                into[at] = wall;
                into[at + 1] = before;
            }
        }
    }

    // ---- Spark's events

    public void onJobStart(SparkListenerJobStart event) {
        long began = System.nanoTime();
        try {
            Packer out = new Packer();
            Properties properties = event.properties() == null ? new Properties() : event.properties();
            List stages = list(event.stageInfos().iterator());
            if (properties.getProperty("sql.streaming.queryId") != null) {
                Packer backlog = backlog(properties);
                if (backlog != null) {
                    hold(backlog);
                }
            }
            out.array(8).integer(JOB_START).integer(event.jobId()).integer(event.time());
            out.integer(number(properties.getProperty("spark.sql.execution.id")));
            out.text(properties.getProperty("sql.streaming.queryId"));
            out.text(properties.getProperty("spark.jobGroup.id"));
            out.integer(number(properties.getProperty("streaming.sql.batchId")));
            out.array(stages.size());
            for (int i = 0; i < stages.size(); i++) {
                stage(out, (StageInfo) stages.get(i));
            }
            keep(out, began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onJobEnd(SparkListenerJobEnd event) {
        long began = System.nanoTime();
        try {
            Packer out = new Packer();
            out.array(4).integer(JOB_END).integer(event.jobId()).integer(event.time());
            out.bool(event.jobResult() instanceof JobSucceeded$);
            keep(out, began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        long began = System.nanoTime();
        try {
            Packer out = new Packer();
            out.array(3).integer(STAGE_SUBMITTED);
            out.integer(time(event.stageInfo().submissionTime()));
            stage(out, event.stageInfo());
            keep(out, began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onStageCompleted(SparkListenerStageCompleted event) {
        long began = System.nanoTime();
        try {
            StageInfo info = event.stageInfo();
            Packer out = new Packer();
            out.array(5).integer(STAGE_COMPLETED).integer(info.stageId()).integer(info.attemptNumber());
            out.integer(time(info.completionTime()));
            out.text(info.failureReason().isDefined()
                ? cut((String) info.failureReason().get(), FAILURE_CHARS) : null);
            keep(out, began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onTaskStart(SparkListenerTaskStart event) {
        long began = System.nanoTime();
        try {
            Packer out = new Packer();
            out.array(8).integer(TASK_START).integer(event.stageId()).integer(event.stageAttemptId());
            task(out, event.taskInfo());
            keep(out, began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onTaskEnd(SparkListenerTaskEnd event) {
        long began = System.nanoTime();
        try {
            TaskInfo info = event.taskInfo();
            TaskMetrics metrics = event.taskMetrics();
            Packer out = new Packer();
            out.array(14).integer(TASK_END).integer(event.stageId()).integer(event.stageAttemptId());
            task(out, info);
            out.integer(info.finishTime());
            out.bool(event.reason() instanceof org.apache.spark.Success$);
            out.integer(metrics == null ? 0 : metrics.outputMetrics().bytesWritten());
            out.integer(metrics == null ? 0 : metrics.peakExecutionMemory());
            out.integer(metrics == null ? 0 : metrics.diskBytesSpilled());
            updates(out, info.accumulables().iterator());
            if (event.reason() instanceof TaskFailedReason && !(event.reason() instanceof TaskKilled)
                    && !(event.reason() instanceof TaskCommitDenied) && event.reason() != Resubmitted$.MODULE$) {
                hold(failure(event, (TaskFailedReason) event.reason()));
            }
            synchronized (this) {
                byte[] update = (byte[]) live.remove(Long.valueOf(info.taskId()));
                if (update != null) {
                    held -= update.length + OVERHEAD;
                }
                keep(out, began);
            }
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate event) {
        long began = System.nanoTime();
        try {
            for (scala.collection.Iterator it = event.accumUpdates().iterator(); it.hasNext();) {
                scala.Tuple4 update = (scala.Tuple4) it.next();
                Packer out = new Packer();
                out.array(5).integer(LIVE_UPDATE);
                out.integer(((Number) update._2()).longValue()).integer(((Number) update._3()).longValue());
                out.integer(((Number) update._1()).longValue());
                if (updates(out, ((scala.collection.Iterable) update._4()).iterator()) > 0) {
                    replace(live, Long.valueOf(((Number) update._1()).longValue()), out);
                }
            }
            for (scala.collection.Iterator it = event.executorUpdates().valuesIterator(); it.hasNext();) {
                ExecutorMetrics metrics = (ExecutorMetrics) it.next();
                Packer out = new Packer();
                out.array(4).integer(EXECUTOR_MEMORY).text(event.execId()).integer(System.currentTimeMillis());
                out.array(MEMORY.length);
                for (int i = 0; i < MEMORY.length; i++) {
                    out.integer(metrics.getMetricValue(MEMORY[i]));
                }
                replace(memory, event.execId(), out);
            }
            synchronized (this) {
                events++;
                recordNs += System.nanoTime() - began;
            }
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onExecutorAdded(SparkListenerExecutorAdded event) {
        long began = System.nanoTime();
        try {
            ExecutorInfo info = event.executorInfo();
            keep(executor(event.executorId(), info.executorHost(), info.totalCores(), event.time(),
                info.resourceProfileId()), began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
        long began = System.nanoTime();
        try {
            Packer out = new Packer();
            out.array(3).integer(EXECUTOR_REMOVED).text(event.executorId()).integer(event.time());
            keep(out, began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onBlockManagerAdded(SparkListenerBlockManagerAdded event) {
        long began = System.nanoTime();
        try {
            keep(blockManager(event.blockManagerId().executorId(), event.blockManagerId().hostPort(),
                event.maxMem()), began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        long began = System.nanoTime();
        try {
            Packer out = new Packer();
            out.array(2).integer(APPLICATION_END).integer(event.time());
            keep(out, began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    public void onOtherEvent(SparkListenerEvent event) {
        long began = System.nanoTime();
        try {
            Packer out = new Packer();
            if (event instanceof SparkListenerSQLExecutionStart) {
                SparkListenerSQLExecutionStart start = (SparkListenerSQLExecutionStart) event;
                out.array(6).integer(EXECUTION_START).integer(start.executionId());
                out.integer(start.rootExecutionId().isDefined()
                    ? ((Number) start.rootExecutionId().get()).longValue() : start.executionId());
                out.integer(start.time()).text(start.description());
                plan(out, start.sparkPlanInfo());
                if (start.rootExecutionId().isEmpty()
                        || ((Number) start.rootExecutionId().get()).longValue() == start.executionId()) {
                    hold(out);
                    out = configuration(null, start.executionId(), map(start.modifiedConfigs().iterator()));
                } else {
                    roots.put(Long.valueOf(start.executionId()), start.rootExecutionId().get());
                    if (roots.size() > NESTED) {
                        roots.remove(roots.keySet().iterator().next());
                    }
                }
            } else if (event instanceof SparkListenerSQLAdaptiveExecutionUpdate) {
                SparkListenerSQLAdaptiveExecutionUpdate update = (SparkListenerSQLAdaptiveExecutionUpdate) event;
                out.array(3).integer(PLAN_UPDATE).integer(update.executionId());
                plan(out, update.sparkPlanInfo());
            } else if (event instanceof SparkListenerSQLAdaptiveSQLMetricUpdates) {
                long execution = ((SparkListenerSQLAdaptiveSQLMetricUpdates) event).executionId();
                Object root = roots.get(Long.valueOf(execution));
                Packer enclosing = root == null ? null : replanned(((Number) root).longValue());
                if (enclosing != null) {
                    hold(enclosing);
                }
                out = replanned(execution);
                if (out == null) {
                    return;
                }
            } else if (event instanceof SparkListenerSQLExecutionEnd) {
                SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) event;
                roots.remove(Long.valueOf(end.executionId()));
                Packer observed = observed(end);
                if (observed != null) {
                    hold(observed);
                }
                out.array(4).integer(EXECUTION_END).integer(end.executionId()).integer(end.time());
                out.text(cut(end.executionFailure().isDefined() ? trace((Throwable) end.executionFailure().get())
                    : end.errorMessage().isDefined() ? (String) end.errorMessage().get() : null, END_CHARS));
            } else if (event instanceof SparkListenerDriverAccumUpdates) {
                SparkListenerDriverAccumUpdates update = (SparkListenerDriverAccumUpdates) event;
                List pairs = list(update.accumUpdates().iterator());
                out.array(3).integer(DRIVER_UPDATES).integer(update.executionId()).array(2 * pairs.size());
                for (int i = 0; i < pairs.size(); i++) {
                    scala.Tuple2 pair = (scala.Tuple2) pairs.get(i);
                    out.integer(((Number) pair._1()).longValue()).integer(((Number) pair._2()).longValue());
                }
            } else if (event instanceof StreamingQueryListener.QueryStartedEvent) {
                StreamingQueryListener.QueryStartedEvent start = (StreamingQueryListener.QueryStartedEvent) event;
                hold(started(start.id(), start.runId(), start.name(), start.timestamp(), -1));
                out = configuration(start.runId().toString(), -1, own(query(start.id())));
            } else if (event instanceof StreamingQueryListener.QueryProgressEvent) {
                out.array(2).integer(QUERY_PROGRESS);
                out.text(((StreamingQueryListener.QueryProgressEvent) event).progress().json());
            } else if (event instanceof StreamingQueryListener.QueryIdleEvent) {
                StreamingQueryListener.QueryIdleEvent idle = (StreamingQueryListener.QueryIdleEvent) event;
                out.array(4).integer(QUERY_IDLE).text(idle.id().toString()).text(idle.runId().toString());
                out.integer(System.currentTimeMillis());
            } else if (event instanceof StreamingQueryListener.QueryTerminatedEvent) {
                StreamingQueryListener.QueryTerminatedEvent end = (StreamingQueryListener.QueryTerminatedEvent) event;
                out.array(5).integer(QUERY_TERMINATED).text(end.id().toString()).text(end.runId().toString());
                out.integer(System.currentTimeMillis());
                out.text(end.exception().isDefined() ? cut((String) end.exception().get(), END_CHARS) : null);
            } else {
                return;
            }
            keep(out, began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    // ---- What was there before the recorder was attached

    /** Records the driver itself, and every executor and active query that there is, as if it had just come. */
    public void recordPresent(SparkContext context) {
        long began = System.nanoTime();
        try {
            keep(environment(context.getConf()), began);
        } catch (Throwable fault) {
            fault(fault, began);
        }
        try {
            scala.collection.Iterator executors = context.statusStore().executorList(true).iterator();
            while (executors.hasNext()) {
                org.apache.spark.status.api.v1.ExecutorSummary summary =
                    (org.apache.spark.status.api.v1.ExecutorSummary) executors.next();
                String host = summary.hostPort();
                int colon = host.lastIndexOf(':');
                keep(executor(summary.id(), colon < 0 ? host : host.substring(0, colon), summary.totalCores(),
                    summary.addTime().getTime(), summary.resourceProfileId()), began);
                keep(blockManager(summary.id(), host, summary.maxMemory()), began);
            }
            for (Iterator it = queries().values().iterator(); it.hasNext();) {
                Object query = it.next();
                Object progress = call(query, "lastProgress");
                keep(started((java.util.UUID) call(query, "id"), (java.util.UUID) call(query, "runId"),
                    (String) call(query, "name"),
                    progress == null ? null : (String) call(progress, "timestamp"),
                    progress == null ? -1 : ((Number) call(progress, "batchId")).longValue()), began);
                keep(configuration(call(query, "runId").toString(), -1, own(query)), began);
            }
        } catch (Throwable fault) {
            fault(fault, began);
        }
    }

    /**
     * Reads the driver's own figures.
     *
     * @return a MessagePack map of Flink's names; what this JVM does not tell is absent
     */
    public static byte[] driverMetrics() {
        LinkedHashMap found = new LinkedHashMap();
        usage(found, "Heap", ManagementFactory.getMemoryMXBean().getHeapMemoryUsage());
        usage(found, "NonHeap", ManagementFactory.getMemoryMXBean().getNonHeapMemoryUsage());
        for (Iterator it = ManagementFactory.getMemoryPoolMXBeans().iterator(); it.hasNext();) {
            MemoryPoolMXBean pool = (MemoryPoolMXBean) it.next();
            if (pool.getName().equals("Metaspace")) {
                usage(found, "Metaspace", pool.getUsage());
            }
        }
        for (Iterator it = ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).iterator(); it.hasNext();) {
            BufferPoolMXBean pool = (BufferPoolMXBean) it.next();
            String name = pool.getName().equals("direct") ? "Direct" : pool.getName().equals("mapped") ? "Mapped" : null;
            if (name != null) {
                found.put("Status.JVM.Memory." + name + ".Count", Long.valueOf(pool.getCount()));
                found.put("Status.JVM.Memory." + name + ".MemoryUsed", Long.valueOf(pool.getMemoryUsed()));
                found.put("Status.JVM.Memory." + name + ".TotalCapacity", Long.valueOf(pool.getTotalCapacity()));
            }
        }
        long collections = 0;
        long collecting = 0;
        for (Iterator it = ManagementFactory.getGarbageCollectorMXBeans().iterator(); it.hasNext();) {
            GarbageCollectorMXBean collector = (GarbageCollectorMXBean) it.next();
            String prefix = "Status.JVM.GarbageCollector." + collector.getName().replace(' ', '_') + ".";
            found.put(prefix + "Count", Long.valueOf(collector.getCollectionCount()));
            found.put(prefix + "Time", Long.valueOf(collector.getCollectionTime()));
            collections += collector.getCollectionCount();
            collecting += collector.getCollectionTime();
        }
        found.put("Status.JVM.GarbageCollector.All.Count", Long.valueOf(collections));
        found.put("Status.JVM.GarbageCollector.All.Time", Long.valueOf(collecting));
        found.put("Status.JVM.Threads.Count", Long.valueOf(ManagementFactory.getThreadMXBean().getThreadCount()));
        found.put("Status.JVM.ClassLoader.ClassesLoaded",
            Long.valueOf(ManagementFactory.getClassLoadingMXBean().getTotalLoadedClassCount()));
        found.put("Status.JVM.ClassLoader.ClassesUnloaded",
            Long.valueOf(ManagementFactory.getClassLoadingMXBean().getUnloadedClassCount()));
        Object system = ManagementFactory.getOperatingSystemMXBean();
        if (system instanceof com.sun.management.OperatingSystemMXBean) {
            com.sun.management.OperatingSystemMXBean sun = (com.sun.management.OperatingSystemMXBean) system;
            found.put("System.Memory.Total", Long.valueOf(sun.getTotalPhysicalMemorySize()));
            found.put("Status.JVM.CPU.Time", Long.valueOf(sun.getProcessCpuTime()));
            if (sun.getProcessCpuLoad() >= 0) {
                found.put("Status.JVM.CPU.Load", Double.valueOf(sun.getProcessCpuLoad()));
            }
        }
        if (system instanceof com.sun.management.UnixOperatingSystemMXBean) {
            com.sun.management.UnixOperatingSystemMXBean unix = (com.sun.management.UnixOperatingSystemMXBean) system;
            found.put("Status.JVM.FileDescriptor.Open", Long.valueOf(unix.getOpenFileDescriptorCount()));
            found.put("Status.JVM.FileDescriptor.Max", Long.valueOf(unix.getMaxFileDescriptorCount()));
        }
        Packer out = new Packer();
        out.map(found.size());
        for (Iterator it = found.entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            out.text((String) entry.getKey());
            if (entry.getValue() instanceof Double) {
                out.real(((Double) entry.getValue()).doubleValue());
            } else {
                out.integer(((Long) entry.getValue()).longValue());
            }
        }
        return out.bytes();
    }

    // ---- Parts of records

    private static void stage(Packer out, StageInfo info) {
        out.array(6).integer(info.stageId()).integer(info.attemptNumber()).integer(info.numTasks());
        out.integer(info.shuffleDepId().isDefined() ? ((Number) info.shuffleDepId().get()).longValue() : -1);
        List parents = list(info.parentIds().iterator());
        out.array(parents.size());
        for (int i = 0; i < parents.size(); i++) {
            out.integer(((Number) parents.get(i)).longValue());
        }
        List scopes = new ArrayList();
        for (scala.collection.Iterator it = info.rddInfos().iterator(); it.hasNext();) {
            RDDInfo rdd = (RDDInfo) it.next();
            if (rdd.scope().isDefined()) {
                String name = ((org.apache.spark.rdd.RDDOperationScope) rdd.scope().get()).name();
                if (!scopes.contains(name)) {
                    scopes.add(name);
                }
            }
        }
        out.array(scopes.size());
        for (int i = 0; i < scopes.size(); i++) {
            out.text((String) scopes.get(i));
        }
    }

    private static void task(Packer out, TaskInfo info) {
        out.integer(info.taskId()).integer(info.partitionId()).integer(info.attemptNumber());
        out.integer(info.launchTime()).text(info.executorId());
    }

    private static Failure failure(SparkListenerTaskEnd event, TaskFailedReason reason) {
        TaskInfo info = event.taskInfo();
        Packer place = new Packer();
        place.array(10).integer(TASK_FAILURE).integer(event.stageId()).integer(event.stageAttemptId());
        place.integer(info.taskId()).integer(info.partitionId()).integer(info.attemptNumber());
        place.text(info.executorId()).integer(info.finishTime());
        // Spark makes a reason of its own of this exception; what has no exception is called by its reason.
        String name = reason instanceof ExceptionFailure ? ((ExceptionFailure) reason).className()
            : reason instanceof FetchFailed ? "org.apache.spark.shuffle.FetchFailedException"
            : reason.getClass().getName();
        if (name.endsWith("$")) {
            name = name.substring(0, name.length() - 1);
        }
        return new Failure(place, name, cut(reason.toErrorString(), FAILURE_CHARS));
    }

    private static String trace(Throwable failure) {
        java.io.StringWriter written = new java.io.StringWriter();
        failure.printStackTrace(new java.io.PrintWriter(written, true));
        return written.toString();
    }

    /**
     * Shortens a text to `chars` characters at most: what it begins with, and its last lines, where root causes stand.
     *
     * It is cut between words and lines, for half a secret would not be known as one.
     */
    private static String cut(String text, int chars) {
        if (text == null || text.length() <= chars) {
            return text;
        }
        int head = 3 * chars / 4;
        while (head > 0 && !Character.isWhitespace(text.charAt(head))) {
            head--;
        }
        int tail = text.indexOf('\n', text.length() - chars / 4 + 2);
        return text.substring(0, head) + "\n…" + (tail < 0 ? "" : text.substring(tail));
    }

    /** Writes [accumulator id, value, ...] of the SQL metrics; zero is never sent. */
    private static int updates(Packer out, scala.collection.Iterator accumulables) {
        long[] pairs = new long[32];
        int size = 0;
        while (accumulables.hasNext()) {
            AccumulableInfo info = (AccumulableInfo) accumulables.next();
            if (info.metadata().isDefined() && "sql".equals(info.metadata().get()) && info.update().isDefined()
                    && info.update().get() instanceof Number) {
                if (size + 2 > pairs.length) {
                    pairs = java.util.Arrays.copyOf(pairs, 2 * pairs.length);
                }
                pairs[size++] = info.id();
                pairs[size++] = ((Number) info.update().get()).longValue();
            }
        }
        out.array(size);
        for (int i = 0; i < size; i++) {
            out.integer(pairs[i]);
        }
        return size;
    }

    private static void plan(Packer out, SparkPlanInfo node) {
        List metrics = list(node.metrics().iterator());
        List children = list(node.children().iterator());
        StringBuffer kinds = new StringBuffer();
        out.array(5).text(node.nodeName()).text(node.simpleString()).array(2 * metrics.size());
        for (int i = 0; i < metrics.size(); i++) {
            SQLMetricInfo metric = (SQLMetricInfo) metrics.get(i);
            out.text(metric.name()).integer(metric.accumulatorId());
            kinds.append(kind(metric.metricType()));
        }
        out.array(children.size());
        for (int i = 0; i < children.size(); i++) {
            plan(out, (SparkPlanInfo) children.get(i));
        }
        out.text(kinds.toString());
    }

    /** A metric's kind as one letter; those of data sources, "v2Custom_" and a class, are plain numbers too. */
    private static char kind(String type) {
        return "size".equals(type) ? 'b' : "timing".equals(type) ? 't' : "nsTiming".equals(type) ? 'n'
            : "average".equals(type) ? 'a' : 's';
    }

    /** Writes what observe() saw in an execution that has ended, or returns null where it saw nothing. */
    private static Packer observed(SparkListenerSQLExecutionEnd end) {
        if (end.executionFailure().isDefined()) {
            // It may have no plan, and to ask for one would plan it here.
            return null;
        }
        try {
            Object query = call(end, "qe");
            scala.collection.Map found = query == null ? null : (scala.collection.Map) call(query, "observedMetrics");
            if (found == null || found.isEmpty()) {
                return null;
            }
            Packer out = new Packer();
            out.array(3).integer(OBSERVED).integer(end.executionId()).array(2 * found.size());
            for (scala.collection.Iterator it = found.iterator(); it.hasNext();) {
                scala.Tuple2 each = (scala.Tuple2) it.next();
                out.text((String) each._1()).text(((org.apache.spark.sql.Row) each._2()).json());
            }
            return out;
        } catch (Throwable unknown) {
            return null;
        }
    }

    /**
     * Writes an execution's plan as it is now, or returns null if it has ended.
     *
     * Where adaptive execution plans a subquery or a cached table anew, Spark tells the accumulators without
     * their nodes.
     */
    private static Packer replanned(long execution) {
        QueryExecution query = SQLExecution.getQueryExecution(execution);
        if (query == null) {
            return null;
        }
        Packer out = new Packer();
        out.array(3).integer(PLAN_UPDATE).integer(execution);
        plan(out, SparkPlanInfo.fromSparkPlan(query.executedPlan()));
        return out;
    }

    /**
     * Writes how many files a query's streams of files have listed and not read, once a batch, or returns null.
     *
     * Read when the batch's first job begins, for the next trigger moves it. The sources are not locked: a listing may
     * take minutes. That a look came too late shows in the source's own offset.
     */
    private Packer backlog(Properties properties) {
        String id = properties.getProperty("sql.streaming.queryId");
        // User code may have set a job group of its own.
        String key = id + properties.getProperty("spark.jobGroup.id");
        long batch = number(properties.getProperty("streaming.sql.batchId"));
        Long before = (Long) looked.get(key);
        if (batch < 0 || before == NO_FILES || (before != null && before.longValue() >= batch)) {
            return null;
        }
        Packer sources = new Packer();
        Object run = null;
        int found = 0;
        try {
            Object query = query(java.util.UUID.fromString(id));
            run = query == null ? null : call(query, "runId");
            java.util.LinkedHashSet distinct = run == null ? new java.util.LinkedHashSet()
                : new java.util.LinkedHashSet(list(((scala.collection.Iterable) call(query, "sources")).iterator()));
            for (Iterator it = distinct.iterator(); it.hasNext();) {
                Object source = it.next();
                if (source.getClass().getName().endsWith(".FileStreamSource")) {
                    Object unread = field(source, "unreadFiles");
                    sources.text(source.toString());
                    sources.integer(unread == null ? -1 : ((scala.collection.Seq) unread).size());
                    sources.integer(((Number) field(source, "metadataLogCurrentOffset")).longValue());
                    found++;
                }
            }
        } catch (Throwable unknown) {
            found = 0;
        }
        if (run == null) {
            // It has ended, and the bus is late.
            return null;
        }
        looked.remove(key);
        looked.put(key, found == 0 ? NO_FILES : Long.valueOf(batch));
        if (looked.size() > RUNS) {
            looked.remove(looked.keySet().iterator().next());
        }
        if (found == 0) {
            return null;
        }
        Packer out = new Packer();
        out.array(4).integer(SOURCE_BACKLOG).text(run.toString()).integer(batch).array(3 * found).raw(sources.bytes());
        return out;
    }

    private static Packer executor(String id, String host, int cores, long time, int profile) {
        Packer out = new Packer();
        out.array(6).integer(EXECUTOR_ADDED).text(id).text(host).integer(cores).integer(time).integer(profile);
        return out;
    }

    private static Packer blockManager(String executor, String endpoint, long memory) {
        return new Packer().array(4).integer(BLOCK_MANAGER_ADDED).text(executor).text(endpoint).integer(memory);
    }

    private Packer started(java.util.UUID id, java.util.UUID run, String name, String timestamp, long batch) {
        Packer out = new Packer();
        out.array(9).integer(QUERY_STARTED).text(id.toString()).text(run.toString()).text(name).text(timestamp);
        Object query = query(id);
        out.text(word(query, "trigger")).text(word(query, "sink"));
        return out.text(word(query, "resolvedCheckpointRoot")).integer(batch);
    }

    // What Spark holds for secret it redacts here, by its own rule and in Java's own syntax of patterns.

    /** Writes what the driver's process is and how the application is set. */
    private static Packer environment(SparkConf conf) {
        RuntimeMXBean runtime = ManagementFactory.getRuntimeMXBean();
        Packer out = new Packer();
        out.array(6).integer(ENVIRONMENT);
        out.text(runtime.getVmName() + " - " + runtime.getVmVendor() + " - " + runtime.getSpecVersion() + "/"
            + runtime.getVmVersion());
        out.text(System.getProperty("os.arch"));
        texts(out, list(Utils.redactCommandLineArgs(conf, sequence(runtime.getInputArguments())).iterator()));
        texts(out, java.util.Arrays.asList(
            System.getProperty("java.class.path", "").split(java.util.regex.Pattern.quote(java.io.File.pathSeparator))));
        settings(out, map(Utils.redact(conf, sequence(java.util.Arrays.asList(conf.getAll()))).iterator()));
        return out;
    }

    /** Writes the settings of a query's run, or of an execution, that are not the application's. */
    private Packer configuration(String run, long execution, Map found) {
        Packer out = new Packer();
        out.array(4).integer(CONFIGURATION).text(run).integer(execution);
        try {
            // Nobody need set it, but it is what tells how wide the job is.
            String key = SQLConf$.MODULE$.SHUFFLE_PARTITIONS().key();
            if (!found.containsKey(key) && !shared().contains(key)) {
                found.put(key, SQLConf$.MODULE$.SHUFFLE_PARTITIONS().defaultValueString());
            }
        } catch (Throwable unknown) {
            // Then it is not told.
        }
        settings(out, found);
        return out;
    }

    /** The settings of a StreamExecution that are not the application's; none where it is null or tells none. */
    private Map own(Object query) {
        Map found = new LinkedHashMap();
        try {
            // Batches run in a session of their own, whose settings a checkpoint may have replaced.
            Object last = query == null ? null : call(query, "lastExecution");
            Object state = query == null ? null : call(call(last == null ? query : last, "sparkSession"), "sessionState");
            if (state != null) {
                SQLConf conf = (SQLConf) call(state, "conf");
                scala.collection.immutable.Map all = conf.getAllConfs();
                scala.collection.immutable.Map told = conf.redactOptions(all);
                for (scala.collection.Iterator it = all.iterator(); it.hasNext();) {
                    scala.Tuple2 pair = (scala.Tuple2) it.next();
                    String key = (String) pair._1();
                    // As Spark itself tells executions' settings: a process's own can be no query's.
                    if (!key.startsWith("spark.driver.") && !key.startsWith("spark.executor.")
                            && !pair._2().equals(shared().get(key, null))) {
                        found.put(key, told.apply(key));
                    }
                }
            }
        } catch (Throwable unknown) {
            found.clear();
        }
        return found;
    }

    /** The application's settings, as all its sessions have them. */
    private SparkConf shared() throws Exception {
        return (SparkConf) call(call(session, "sharedState"), "conf");
    }

    private static Map map(scala.collection.Iterator pairs) {
        Map found = new LinkedHashMap();
        while (pairs.hasNext()) {
            scala.Tuple2 pair = (scala.Tuple2) pairs.next();
            found.put(pair._1(), pair._2());
        }
        return found;
    }

    private static scala.collection.immutable.Seq sequence(List found) {
        scala.collection.immutable.List all = scala.collection.immutable.Nil$.MODULE$;
        for (int i = found.size() - 1; i >= 0; i--) {
            all = all.$colon$colon(found.get(i));
        }
        return all;
    }

    private static void texts(Packer out, List found) {
        out.array(found.size());
        for (int i = 0; i < found.size(); i++) {
            out.text((String) found.get(i));
        }
    }

    private static void settings(Packer out, Map found) {
        out.map(found.size());
        for (Iterator it = found.entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            out.text((String) entry.getKey()).text((String) entry.getValue());
        }
    }

    /** The query's StreamExecution, or null: it may be gone. */
    private Object query(java.util.UUID id) {
        try {
            return queries().get(id);
        } catch (Throwable unknown) {
            return null;
        }
    }

    /** Id to StreamExecution of all that run, in whatever session: a session's own streams() knows only its own. */
    private Map queries() throws Exception {
        return (Map) call(call(session, "sharedState"), "activeStreamingQueries");
    }

    /** What the query says of its trigger, sink or checkpoint, in Spark's words, or null. */
    private static String word(Object query, String method) {
        try {
            return query == null ? null : String.valueOf(call(query, method));
        } catch (Throwable unknown) {
            return null;
        }
    }

    // Classes that moved between Spark's versions are called by name.
    private static Object call(Object target, String method) throws Exception {
        return target.getClass().getMethod(method, new Class[0]).invoke(target, new Object[0]);
    }

    private static Object field(Object target, String name) throws Exception {
        java.lang.reflect.Field found = target.getClass().getDeclaredField(name);
        found.setAccessible(true);
        return found.get(target);
    }

    private static void usage(Map found, String area, MemoryUsage usage) {
        found.put("Status.JVM.Memory." + area + ".Used", Long.valueOf(usage.getUsed()));
        found.put("Status.JVM.Memory." + area + ".Committed", Long.valueOf(usage.getCommitted()));
        found.put("Status.JVM.Memory." + area + ".Max", Long.valueOf(usage.getMax()));
    }

    private static long time(scala.Option option) {
        return option.isDefined() ? ((Number) option.get()).longValue() : -1;
    }

    private static long number(String text) {
        return text == null ? -1 : Long.parseLong(text);
    }

    private static List list(scala.collection.Iterator iterator) {
        List found = new ArrayList();
        while (iterator.hasNext()) {
            found.add(iterator.next());
        }
        return found;
    }

    // ---- The buffer

    // Janino makes a private method a static one, whose `synchronized` would lock the class and not this recorder, as
    // `drain` does: what is synchronized must not be private.

    synchronized void keep(Packer out, long began) {
        events++;
        hold(out);
        recordNs += System.nanoTime() - began;
    }

    synchronized void hold(Packer out) {
        byte[] record = out.bytes();
        hold(record, record.length + OVERHEAD);
    }

    synchronized void hold(Failure failure) {
        if (hold(failure, failure.size())) {
            failures.add(failure);
        }
        if (failures.size() > FAILURES) {
            Failure oldest = (Failure) failures.remove();
            held -= oldest.size();
            oldest.name = oldest.text = null;
            held += oldest.size();
        }
    }

    private boolean hold(Object record, int size) {
        Iterator oldest = live.values().iterator();
        while (held + size > capacity && oldest.hasNext()) {
            held -= ((byte[]) oldest.next()).length + OVERHEAD;
            oldest.remove();
            droppedLive++;
        }
        if (held + size > capacity) {
            droppedRecords++;
            return false;
        }
        records.add(record);
        held += size;
        return true;
    }

    synchronized void replace(Map updates, Object key, Packer out) {
        byte[] update = out.bytes();
        byte[] old = (byte[]) updates.remove(key);
        if (old != null) {
            held -= old.length + OVERHEAD;
        }
        if (held + update.length + OVERHEAD > capacity) {
            droppedLive++;
            return;
        }
        updates.put(key, update);
        held += update.length + OVERHEAD;
    }

    /** A fault of ours is a record like any other, so that it is seen; it never reaches Spark. */
    private void fault(Throwable fault, long began) {
        Packer out = new Packer();
        out.array(2).integer(FAULT).text(String.valueOf(fault));
        keep(out, began);
    }

    /** A task's failure; written when it is drained, for in a storm of them most lose their text before. */
    static final class Failure {
        private final Packer place;
        private String name;
        private String text;

        Failure(Packer place, String name, String text) {
            this.place = place;
            this.name = name;
            this.text = text;
        }

        int size() {
            return place.size + OVERHEAD + (text == null ? 0 : 2 * (name.length() + text.length()));
        }

        byte[] bytes() {
            return place.text(name).text(text).bytes();
        }
    }

    /** Writes MessagePack. Source: the MessagePack specification. */
    static final class Packer {
        private byte[] buffer = new byte[256];
        private int size = 0;

        byte[] bytes() {
            return java.util.Arrays.copyOf(buffer, size);
        }

        byte[] deflated() {
            Deflater deflater = new Deflater(Deflater.BEST_SPEED);
            try {
                deflater.setInput(buffer, 0, size);
                deflater.finish();
                Packer out = new Packer();
                while (!deflater.finished()) {
                    out.room(4096);
                    out.size += deflater.deflate(out.buffer, out.size, out.buffer.length - out.size);
                }
                return out.bytes();
            } finally {
                deflater.end();
            }
        }

        Packer array(int length) {
            if (length < 16) {
                put(0x90 | length);
            } else {
                put(0xdd);
                big(length, 4);
            }
            return this;
        }

        Packer map(int length) {
            put(0xdf);
            big(length, 4);
            return this;
        }

        Packer integer(long value) {
            if (value >= 0 && value < 128) {
                put((int) value);
            } else if (value >= Integer.MIN_VALUE && value <= Integer.MAX_VALUE) {
                put(0xd2);
                big(value, 4);
            } else {
                put(0xd3);
                big(value, 8);
            }
            return this;
        }

        Packer real(double value) {
            put(0xcb);
            big(Double.doubleToLongBits(value), 8);
            return this;
        }

        Packer bool(boolean value) {
            put(value ? 0xc3 : 0xc2);
            return this;
        }

        Packer text(String value) {
            if (value == null) {
                put(0xc0);
                return this;
            }
            byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
            if (bytes.length < 32) {
                put(0xa0 | bytes.length);
            } else {
                put(0xdb);
                big(bytes.length, 4);
            }
            return raw(bytes);
        }

        Packer raw(byte[] bytes) {
            room(bytes.length);
            System.arraycopy(bytes, 0, buffer, size, bytes.length);
            size += bytes.length;
            return this;
        }

        private void put(int value) {
            room(1);
            buffer[size++] = (byte) value;
        }

        private void big(long value, int width) {
            room(width);
            for (int shift = 8 * (width - 1); shift >= 0; shift -= 8) {
                buffer[size++] = (byte) (value >>> shift);
            }
        }

        private void room(int more) {
            if (size + more > buffer.length) {
                buffer = java.util.Arrays.copyOf(buffer, Math.max(2 * buffer.length, size + more));
            }
        }
    }
}
