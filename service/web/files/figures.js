// Every figure that the page shows over time: its words, how it reads, and what to ask Prometheus for it.

import { byteRate, bytes, count, duration, msPerSecond, percent, rate, share } from "./format.js";

/**
 * @typedef {object} Figure
 * @property {string} label
 * @property {import("./format.js").Format} format
 * @property {(selector: string) => string} [promql]  From the labels to select by, `job_id="…"`; none where /metrics does not tell it.
 */

/** @param {string} family @param {string} [made] @param {string} [factor] @returns {(selector: string) => string} */
const gauge = (family, made = "max", factor = "") => (selector) => `${made}(streamgauge_${family}{${selector}})${factor}`;
/** @param {string} family @returns {(selector: string) => string} */
const counter = (family) => (selector) => `sum(rate(streamgauge_${family}_total{${selector}}[1m]))`;
/**
 * Of the operators the one that markers reach last, which is what the service tells of a vertex and of a job.
 *
 * @param {string} family @param {number} quantile @returns {(selector: string) => string}
 */
const quantile = (family, quantile) => (selector) =>
  `1000 * max(histogram_quantile(${quantile}, sum by (le, job_name, vertex_id, operator_name) (rate(streamgauge_${family}_seconds_bucket{${selector}}[5m]))))`;
const PER_MS = " * 1000";

/** @type {Record<string, Figure>} */
const SHARED = {
  "latency.p50": { label: "latency p50", format: duration, promql: quantile("latency", 0.5) },
  "latency.p95": { label: "latency p95", format: duration, promql: quantile("latency", 0.95) },
  "latency.p99": { label: "latency p99", format: duration, promql: quantile("latency", 0.99) },
  "queueing.p99": { label: "queueing p99", format: duration, promql: quantile("latency_queueing", 0.99) },
  "processing.p99": { label: "processing p99", format: duration, promql: quantile("latency_processing", 0.99) },
  "busyTimeMsPerSecond.max": { label: "busy", format: msPerSecond, promql: gauge("vertex_busy_ratio", "max", PER_MS) },
  "backPressuredTimeMsPerSecond.max": { label: "back-pressured", format: msPerSecond, promql: gauge("vertex_back_pressured_ratio", "max", PER_MS) },
  watermarkLag: { label: "watermark lag", format: duration, promql: gauge("operator_watermark_lag_seconds", "max", PER_MS) },
  pendingRecords: { label: "pending records", format: count, promql: gauge("operator_pending_records", "sum") },
  numLateRecordsDroppedPerSecond: { label: "late records dropped", format: rate, promql: counter("operator_late_records_dropped") },
  numStateRows: { label: "state rows", format: count, promql: gauge("operator_state_rows", "sum") },
  stateMemoryUsed: { label: "state memory", format: bytes, promql: gauge("operator_state_memory_bytes", "sum") },
};

/** Of a job, by the ids of /jobs/:jobid/history. @type {Record<string, Figure>} */
export const OF_JOB = {
  ...SHARED,
  numRecordsInPerSecond: { label: "records in", format: rate },
  numRecordsOutPerSecond: { label: "records out", format: rate },
  backlogged: { label: "backlogged", format: (value) => (value === 1 ? "yes" : value === 0 ? "no" : "–"), promql: gauge("job_backlogged") },
  backlogRows: { label: "backlog", format: count, promql: gauge("job_backlog_rows") },
  backlogTimeMs: { label: "backlog, time to work it off", format: duration, promql: gauge("job_backlog_time_seconds", "max", PER_MS) },
  processedToInputRatio: { label: "processed over input", format: count, promql: gauge("job_processed_to_input_ratio") },
  lastCheckpointDuration: { label: "batch duration", format: duration, promql: gauge("job_last_checkpoint_duration_seconds", "max", PER_MS) },
  lastCheckpointSize: { label: "state size", format: bytes, promql: gauge("job_last_checkpoint_size_bytes") },
  triggerIntervalMs: { label: "trigger interval", format: duration, promql: gauge("job_trigger_interval_seconds", "max", PER_MS) },
};

/** Of a vertex, by the ids of …/vertices/:vertexid/history. @type {Record<string, Figure>} */
export const OF_VERTEX = {
  ...SHARED,
  numRecordsInPerSecond: { label: "records in", format: rate, promql: counter("vertex_records_in") },
  numRecordsOutPerSecond: { label: "records out", format: rate, promql: counter("vertex_records_out") },
  "numRecordsInPerSecond.skew": { label: "skew of records in", format: percent },
  numBytesInPerSecond: { label: "bytes in", format: byteRate, promql: counter("vertex_bytes_in") },
  numBytesOutPerSecond: { label: "bytes out", format: byteRate, promql: counter("vertex_bytes_out") },
  "busyTimeMsPerSecond.avg": { label: "busy, mean", format: msPerSecond },
  "backPressuredTimeMsPerSecond.avg": { label: "back-pressured, mean", format: msPerSecond },
  "idleTimeMsPerSecond.avg": { label: "idle, mean", format: msPerSecond },
  "inPoolUsage.max": { label: "input buffers in use", format: share, promql: gauge("vertex_in_pool_usage") },
  "outPoolUsage.max": { label: "memory of tasks in use", format: share, promql: gauge("vertex_out_pool_usage") },
  // /metrics tells of these the greatest subtask, not the sum.
  inputQueueLength: { label: "blocks to fetch", format: count },
  outputQueueLength: { label: "blocks that wait for readers", format: count },
  unreadFiles: { label: "unread files", format: count, promql: gauge("operator_unread_files", "sum") },
  numPendingTimers: { label: "pending timers", format: count, promql: gauge("operator_pending_timers", "sum") },
  numFiredTimersPerSecond: { label: "timers fired", format: rate, promql: counter("operator_fired_timers") },
};

/**
 * Returns what to ask Prometheus for a figure, undefined where it does not know it.
 *
 * @param {Figure | undefined} figure
 * @param {string} job
 * @param {string} [vertex]
 */
export function promql(figure, job, vertex) {
  return figure?.promql?.(`job_id="${job}"${vertex ? `,vertex_id="${vertex}"` : ""}`);
}
