import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** Keeps a real TaskEnd event, and hands it to another listener again and again. Compiled by Janino, as the recorder. */
public class Replayer extends SparkListener {
    private volatile SparkListenerTaskEnd largest = null;

    public void onTaskEnd(SparkListenerTaskEnd event) {
        if (largest == null || event.taskInfo().accumulables().size() > largest.taskInfo().accumulables().size()) {
            largest = event;
        }
    }

    public int accumulables() {
        return largest.taskInfo().accumulables().size();
    }

    /** Returns the nanoseconds that `times` events took. */
    public long replay(SparkListener target, int times) {
        SparkListenerTaskEnd event = largest;
        long began = System.nanoTime();
        for (int i = 0; i < times; i++) {
            target.onTaskEnd(event);
        }
        return System.nanoTime() - began;
    }
}
