import org.apache.flink.api.common.JobID;
import org.apache.flink.autoscaler.JobAutoScalerContext;
import org.apache.flink.autoscaler.JobAutoScalerImpl;
import org.apache.flink.autoscaler.RestApiMetricsCollector;
import org.apache.flink.autoscaler.ScalingExecutor;
import org.apache.flink.autoscaler.ScalingMetricEvaluator;
import org.apache.flink.autoscaler.event.AutoScalerEventHandler;
import org.apache.flink.autoscaler.metrics.CollectedMetricHistory;
import org.apache.flink.autoscaler.metrics.EvaluatedMetrics;
import org.apache.flink.autoscaler.realizer.ScalingRealizer;
import org.apache.flink.autoscaler.state.InMemoryAutoScalerStateStore;
import org.apache.flink.autoscaler.tuning.ConfigChanges;
import org.apache.flink.client.program.rest.RestClusterClient;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.client.JobStatusMessage;
import org.apache.flink.runtime.highavailability.nonha.standalone.StandaloneClientHAServices;
import org.apache.flink.runtime.rest.messages.ConfigurationInfoEntry;
import org.apache.flink.runtime.rest.messages.EmptyRequestBody;
import org.apache.flink.runtime.rest.messages.JobMessageParameters;
import org.apache.flink.runtime.rest.messages.job.JobManagerJobConfigurationHeaders;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Runs Flink's autoscaler over every job of a cluster, a few rounds, as its standalone program does: that one is not on
 * Maven Central, the autoscaler itself is. What it evaluates, reports and would change goes to standard output, a line
 * each, tabs between.
 *
 * <p>Arguments: the cluster's URL, rounds, seconds between them, then key=value for the autoscaler's options; what a
 * job's own configuration says goes before them.
 */
public final class Autoscaler {
    private static final long TIMEOUT_S = 20;

    private final String url;
    private final Configuration options = new Configuration();
    private final JobAutoScalerImpl<JobID, JobAutoScalerContext<JobID>> scaler;

    private Autoscaler(String url, String[] arguments, int from) {
        this.url = url;
        for (int at = from; at < arguments.length; at++) {
            String[] pair = arguments[at].split("=", 2);
            options.setString(pair[0], pair[1]);
        }
        Events events = new Events();
        InMemoryAutoScalerStateStore<JobID, JobAutoScalerContext<JobID>> state = new InMemoryAutoScalerStateStore<>();
        scaler =
                new JobAutoScalerImpl<>(
                        new RestApiMetricsCollector<>(),
                        new Evaluator(),
                        new ScalingExecutor<>(events, state),
                        events,
                        new Realizer(),
                        state);
    }

    public static void main(String[] arguments) throws Exception {
        Autoscaler autoscaler = new Autoscaler(arguments[0], arguments, 3);
        int rounds = Integer.parseInt(arguments[1]);
        for (int round = 0; round < rounds; round++) {
            if (round > 0) {
                TimeUnit.SECONDS.sleep(Long.parseLong(arguments[2]));
            }
            autoscaler.round();
            say("round", round);
        }
        // The clients' threads are no daemons.
        System.exit(0);
    }

    private void round() throws Exception {
        try (RestClusterClient<String> client = client(new Configuration())) {
            for (JobStatusMessage job : client.listJobs().get(TIMEOUT_S, TimeUnit.SECONDS)) {
                say("job", job.getJobId(), job.getJobState(), job.getJobName());
                scaler.scale(context(client, job));
            }
        }
    }

    private RestClusterClient<String> client(Configuration configuration) throws Exception {
        return new RestClusterClient<>(
                configuration, "streamgauge", (given, failed) -> new StandaloneClientHAServices(url));
    }

    private JobAutoScalerContext<JobID> context(RestClusterClient<String> client, JobStatusMessage job)
            throws Exception {
        JobMessageParameters parameters = new JobMessageParameters();
        parameters.jobPathParameter.resolve(job.getJobId());
        Configuration configuration = options.clone();
        for (ConfigurationInfoEntry entry :
                client.sendRequest(
                                JobManagerJobConfigurationHeaders.getInstance(),
                                parameters,
                                EmptyRequestBody.getInstance())
                        .get(TIMEOUT_S, TimeUnit.SECONDS)) {
            configuration.setString(entry.getKey(), entry.getValue());
        }
        return new JobAutoScalerContext<>(
                job.getJobId(),
                job.getJobId(),
                job.getJobState(),
                configuration,
                new UnregisteredMetricsGroup(),
                () -> client(configuration));
    }

    private static synchronized void say(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words) {
            line.append(line.length() > 0 ? "\t" : "").append(String.valueOf(word).replaceAll("\\s+", " "));
        }
        System.out.println(line);
    }

    /** Tells what was evaluated: vertex, metric, current value, average over the window. */
    private static final class Evaluator extends ScalingMetricEvaluator {
        @Override
        public EvaluatedMetrics evaluate(
                Configuration configuration, CollectedMetricHistory history, Duration restartTime) {
            EvaluatedMetrics found = super.evaluate(configuration, history, restartTime);
            say("window", history.getMetricHistory().size(), history.isFullyCollected());
            found.getVertexMetrics()
                    .forEach(
                            (vertex, metrics) ->
                                    metrics.forEach(
                                            (name, value) ->
                                                    say("vertex", vertex, name, value.getCurrent(), value.getAverage())));
            found.getGlobalMetrics()
                    .forEach((name, value) -> say("global", "", name, value.getCurrent(), value.getAverage()));
            return found;
        }
    }

    /** Tells the autoscaler's reports, its own failures among them. */
    private static final class Events implements AutoScalerEventHandler<JobID, JobAutoScalerContext<JobID>> {
        @Override
        public void handleEvent(
                JobAutoScalerContext<JobID> context,
                Type type,
                String reason,
                String message,
                String key,
                Duration interval) {
            say("event", context.getJobID(), type, reason, message);
        }
    }

    /** Changes nothing, and tells what was to be changed. */
    private static final class Realizer implements ScalingRealizer<JobID, JobAutoScalerContext<JobID>> {
        @Override
        public void realizeParallelismOverrides(JobAutoScalerContext<JobID> context, Map<String, String> overrides) {
            say("change", context.getJobID(), overrides);
        }

        @Override
        public void realizeConfigOverrides(JobAutoScalerContext<JobID> context, ConfigChanges changes) {
            say("change", context.getJobID(), changes);
        }
    }
}
