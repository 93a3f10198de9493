import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.spark.scheduler.*;

/**
 * Keeps real events of every kind and hands them to another listener again and again; reads the time of this JVM's
 * threads. Compiled by Janino, as the recorder.
 */
public class Replayer extends SparkListener {
    /** The latest so many of a kind are kept. */
    private static final int KEPT = 64;

    /** A task end with more accumulables is of a kind of its own: those of stateful stages have twice as many. */
    private static final int MANY = 40;

    private final TreeMap kept = new TreeMap();
    private final TreeMap counts = new TreeMap();

    public void onJobStart(SparkListenerJobStart event) {
        keep(event);
    }

    public void onJobEnd(SparkListenerJobEnd event) {
        keep(event);
    }

    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        keep(event);
    }

    public void onStageCompleted(SparkListenerStageCompleted event) {
        keep(event);
    }

    public void onTaskStart(SparkListenerTaskStart event) {
        keep(event);
    }

    public void onTaskEnd(SparkListenerTaskEnd event) {
        keep(event);
    }

    public void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate event) {
        keep(event);
    }

    public void onOtherEvent(SparkListenerEvent event) {
        keep(event);
    }

    /** Returns the kinds that were seen, each with how many: "kind count". */
    public synchronized String[] kinds() {
        String[] found = new String[counts.size()];
        int size = 0;
        for (java.util.Iterator it = counts.keySet().iterator(); it.hasNext();) {
            Object kind = it.next();
            found[size++] = kind + " " + counts.get(kind);
        }
        return found;
    }

    /** Returns the nanoseconds that `times` events of a kind took. */
    public long replay(SparkListener target, String kind, int times) {
        SparkListenerEvent[] events;
        synchronized (this) {
            List found = (List) kept.get(kind);
            events = (SparkListenerEvent[]) found.toArray(new SparkListenerEvent[found.size()]);
        }
        long began = System.nanoTime();
        for (int i = 0; i < times; i++) {
            post(target, events[i % events.length]);
        }
        return System.nanoTime() - began;
    }

    /** Returns the CPU time, in nanoseconds, of the live threads whose name begins so. */
    public static long cpuNs(String prefix) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long[] ids = threads.getAllThreadIds();
        long total = 0;
        for (int i = 0; i < ids.length; i++) {
            ThreadInfo info = threads.getThreadInfo(ids[i]);
            if (info != null && info.getThreadName().startsWith(prefix)) {
                total += Math.max(threads.getThreadCpuTime(ids[i]), 0);
            }
        }
        return total;
    }

    private synchronized void keep(SparkListenerEvent event) {
        String kind = event.getClass().getSimpleName();
        if (event instanceof SparkListenerTaskEnd
                && ((SparkListenerTaskEnd) event).taskInfo().accumulables().size() > MANY) {
            kind += " of many";
        }
        List found = (List) kept.get(kind);
        if (found == null) {
            found = new ArrayList();
            kept.put(kind, found);
            counts.put(kind, Integer.valueOf(0));
        }
        if (found.size() == KEPT) {
            found.remove(0);
        }
        found.add(event);
        counts.put(kind, Integer.valueOf(((Integer) counts.get(kind)).intValue() + 1));
    }

    private static void post(SparkListener target, SparkListenerEvent event) {
        if (event instanceof SparkListenerTaskStart) {
            target.onTaskStart((SparkListenerTaskStart) event);
        } else if (event instanceof SparkListenerTaskEnd) {
            target.onTaskEnd((SparkListenerTaskEnd) event);
        } else if (event instanceof SparkListenerStageSubmitted) {
            target.onStageSubmitted((SparkListenerStageSubmitted) event);
        } else if (event instanceof SparkListenerStageCompleted) {
            target.onStageCompleted((SparkListenerStageCompleted) event);
        } else if (event instanceof SparkListenerJobStart) {
            target.onJobStart((SparkListenerJobStart) event);
        } else if (event instanceof SparkListenerJobEnd) {
            target.onJobEnd((SparkListenerJobEnd) event);
        } else if (event instanceof SparkListenerExecutorMetricsUpdate) {
            target.onExecutorMetricsUpdate((SparkListenerExecutorMetricsUpdate) event);
        } else {
            target.onOtherEvent(event);
        }
    }
}
