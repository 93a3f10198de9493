import java.util.Collections;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A streaming source of which the test knows when each row came into being.
 *
 * Rows 0 .. burst-1 are there at startMs, row n > burst-1 comes rowsPerSecond-th by rowsPerSecond-th after it, and none
 * after `total` (0: endless). A batch takes at most maxRows of them (0: all there are). The offset is the number of
 * rows, and the newest one is reported, so how far the source has fallen behind is known in rows. Columns: value, the
 * row's number, and created, Unix milliseconds. Janino compiles it, so it is plain Java without generics.
 */
public class Arrivals implements TableProvider {
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return StructType.fromDDL("value BIGINT, created BIGINT");
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
        return new ArrivalsTable(schema);
    }
}

class ArrivalsTable implements SupportsRead {
    private final StructType schema;

    ArrivalsTable(StructType schema) {
        this.schema = schema;
    }

    public String name() {
        return "arrivals";
    }

    public StructType schema() {
        return schema;
    }

    public Set capabilities() {
        return Collections.singleton(TableCapability.MICRO_BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new ArrivalsScan(schema, options);
    }
}

class ArrivalsScan implements ScanBuilder, Scan {
    private final StructType schema;
    private final CaseInsensitiveStringMap options;

    ArrivalsScan(StructType schema, CaseInsensitiveStringMap options) {
        this.schema = schema;
        this.options = options;
    }

    public Scan build() {
        return this;
    }

    public StructType readSchema() {
        return schema;
    }

    public String description() {
        return "arrivals";
    }

    public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
        return new ArrivalsStream(options);
    }
}

class ArrivalsStream implements MicroBatchStream, SupportsAdmissionControl {
    private final long startMs;
    private final double rowsPerSecond;
    private final long burst;
    private final long maxRows;
    private final long total;
    private final int partitions;

    ArrivalsStream(CaseInsensitiveStringMap options) {
        startMs = options.getLong("startMs", 0L);
        rowsPerSecond = options.getDouble("rowsPerSecond", 1.0);
        burst = options.getLong("burst", 0L);
        maxRows = options.getLong("maxRows", 0L);
        total = options.getLong("total", 0L);
        partitions = options.getInt("partitions", 1);
    }

    private long arrived() {
        long sinceMs = Math.max(0L, System.currentTimeMillis() - startMs);
        long rows = burst + (long) Math.floor(sinceMs * rowsPerSecond / 1000.0);
        return total == 0L ? rows : Math.min(rows, total);
    }

    public Offset initialOffset() {
        return new ArrivalsOffset(0L);
    }

    public Offset deserializeOffset(String json) {
        return new ArrivalsOffset(Long.parseLong(json));
    }

    public Offset latestOffset() {
        throw new UnsupportedOperationException("Spark asks with a limit");
    }

    public Offset latestOffset(Offset start, ReadLimit limit) {
        long arrived = arrived();
        long begin = ((ArrivalsOffset) start).rows;
        return new ArrivalsOffset(maxRows == 0L ? arrived : Math.min(arrived, begin + maxRows));
    }

    public Offset reportLatestOffset() {
        return new ArrivalsOffset(arrived());
    }

    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        InputPartition[] found = new InputPartition[partitions];
        for (int each = 0; each < partitions; each++) {
            long from = ((ArrivalsOffset) start).rows;
            long first = from + Math.floorMod(each - from, (long) partitions);
            found[each] =
                new ArrivalsPart(first, ((ArrivalsOffset) end).rows, partitions, startMs, burst, rowsPerSecond);
        }
        return found;
    }

    public PartitionReaderFactory createReaderFactory() {
        return new ArrivalsReaders();
    }

    public void commit(Offset end) {}

    public void stop() {}

    public String toString() {
        return "arrivals";
    }
}

class ArrivalsOffset extends Offset {
    final long rows;

    ArrivalsOffset(long rows) {
        this.rows = rows;
    }

    public String json() {
        return Long.toString(rows);
    }
}

class ArrivalsPart implements InputPartition {
    final long first;
    final long end;
    final int step;
    final long startMs;
    final long burst;
    final double rowsPerSecond;

    ArrivalsPart(long first, long end, int step, long startMs, long burst, double rowsPerSecond) {
        this.first = first;
        this.end = end;
        this.step = step;
        this.startMs = startMs;
        this.burst = burst;
        this.rowsPerSecond = rowsPerSecond;
    }
}

class ArrivalsReaders implements PartitionReaderFactory {
    public PartitionReader createReader(InputPartition partition) {
        return new ArrivalsReader((ArrivalsPart) partition);
    }
}

class ArrivalsReader implements PartitionReader {
    private final ArrivalsPart part;
    private long row;

    ArrivalsReader(ArrivalsPart part) {
        this.part = part;
        this.row = part.first - part.step;
    }

    public boolean next() {
        row += part.step;
        return row < part.end;
    }

    public Object get() {
        double afterMs = Math.max(0L, row - part.burst + 1) * 1000.0 / part.rowsPerSecond;
        Object[] columns = new Object[] {Long.valueOf(row), Long.valueOf(part.startMs + (long) Math.ceil(afterMs))};
        return new GenericInternalRow(columns);
    }

    public void close() {}
}
