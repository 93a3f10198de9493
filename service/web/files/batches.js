// The last micro-batches: how long each took and for what, what it read and wrote, and how it ended.

import { copyMenu } from "./copy.js";
import { fill, h, s, say } from "./dom.js";
import { OF_JOB, promql } from "./figures.js";
import { bytes, count, duration, moment, NONE, rate } from "./format.js";
import { badge, empty } from "./parts.js";
import { getIfThere } from "./rest.js";

/**
 * @typedef {object} Batch  A checkpoint of /jobs/:jobid/checkpoints.
 * @property {number} id
 * @property {string} status
 * @property {number} trigger_timestamp
 * @property {number} end_to_end_duration
 * @property {number} state_size
 * @property {string} [failure_message]
 * @property {{input_rows: number | null, output_rows: number | null, input_rows_per_second: number | null, phases: Record<string, number>}} streamgauge
 */

const SHOWN = 30;
const WHOLE = "triggerExecution";
const REST = "in no phase";
/** Each keeps its colour, whichever others there are. Names are Spark's. */
const PHASES = ["addBatch", "queryPlanning", "latestOffset", "walCommit", "commitOffsets", "getBatch", "commitBatch"];
const HEIGHT = 100;
/** Fewer would be as broad as tables. */
const LEAST = 10;
const LIMIT = "triggerIntervalMs";

/** @type {[string, (batch: Batch) => string, boolean][]}  Heading, what stands below it, and whether it is left out where there is little room. */
const COLUMNS = [
  ["Started", (batch) => moment(batch.trigger_timestamp), true],
  ["Took", (batch) => duration(known(batch.end_to_end_duration)), false],
  ["Rows in", (batch) => count(batch.streamgauge.input_rows), false],
  ["Rows out", (batch) => count(batch.streamgauge.output_rows), true],
  ["Rows in a second", (batch) => rate(batch.streamgauge.input_rows_per_second), true],
  ["State", (batch) => bytes(batch.status === "COMPLETED" ? known(batch.state_size) : null), true],
];
/** @type {[string, string, import("./format.js").Format][]} */
const SPREADS = [["end_to_end_duration", "Took", duration], ["state_size", "State", bytes], ["checkpointed_size", "State written", bytes]];
const STATISTICS = ["min", "avg", "p50", "p90", "p95", "p99", "p999", "max"];

/** Flink writes -1 where nothing is known. @param {number} value */
function known(value) {
  return value < 0 ? null : value;
}

/** The tab of a job's micro-batches. */
export class Batches {
  /** @param {string} jid */
  constructor(jid) {
    this._path = `/jobs/${jid}/checkpoints`;
    /** Those that were seen, by id: a driver tells the latest ten. @type {Map<number, Batch>} */
    this._held = new Map();
    this._drawn = "";
    this._counts = h("p", { class: "facts" });
    const ask = (/** @type {string} */ id) => promql(OF_JOB[id], jid);
    this._top = h("span", { class: "top" });
    this._bars = s("svg", { class: "stacks", preserveAspectRatio: "none", role: "img" });
    this._ends = h("div", { class: "ends muted" });
    this._legend = h("ul", { class: "legend" });
    this._phases = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Phases of the batches" });
    this._body = h("tbody");
    this._summary = h("tbody");
    this._chart = h("section", { class: "card" },
      h("div", { class: "head" }, h("h2", {}, "Phases of the last batches"), copyMenu("phases of batches", this._path, ask("lastCheckpointDuration"))),
      h("div", { class: "stacked" }, this._top, this._bars), this._ends, this._legend,
      h("details", { class: "same" }, h("summary", {}, "The same as a table"), this._phases));
    const heads = COLUMNS.map(([word, , wide]) => h("th", { scope: "col", class: `number${wide ? " wide" : ""}` }, word));
    this._table = h("section", { class: "card" },
      h("div", { class: "head" }, h("h2", {}, "Batches"), copyMenu("batches", this._path)),
      this._counts,
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Batches" },
        h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "number" }, "Batch"), h("th", { scope: "col" }, "Status"), ...heads)), this._body)));
    this._spread = h("section", { class: "card" },
      h("div", { class: "head" }, h("h2", {}, "Over the completed batches of this run"), copyMenu("the summary of batches", this._path, [ask("lastCheckpointDuration"), ask("lastCheckpointSize")].join("\n"))),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Summary of batches" },
        h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Figure"), ...STATISTICS.map((word) => h("th", { scope: "col", class: "number" }, word.replace("p999", "p99.9"))))), this._summary)));
    this.element = h("div");
  }

  /**
   * @param {import("./job.js").Detail} detail
   * @param {import("./history.js").Course} course
   * @param {AbortSignal} signal
   */
  async refresh(detail, course, signal) {
    const told = detail["job-type"] === "BATCH" ? null : await getIfThere(this._path, signal);
    const limit = course.latest(LIMIT);
    const key = JSON.stringify([told, limit]);
    if (key === this._drawn) return;
    this._drawn = key;
    if (!told) {
      fill(this.element, detail["job-type"] === "BATCH"
        ? empty("This job is one batch", h("p", {}, "It has no micro-batches and no checkpoints: those are of streaming queries. What it reads and writes is in the overview."))
        : empty("Nothing is told of batches", h("p", {}, "The service does not know this query's batches.")));
      return;
    }
    this._keep(told.history);
    const batches = [...this._held.values()];
    if (batches.length === 0) {
      fill(this.element, empty("No batch has begun yet", h("p", {}, "A query without new rows begins none. The first one is here within seconds of its trigger.")));
      return;
    }
    this._draw(batches.filter((batch) => Object.keys(batch.streamgauge.phases).length > 0).slice(0, SHOWN).reverse(), limit);
    const counts = told.counts;
    fill(this._counts, ...["completed", "in_progress", "failed"].map((name) => h("span", { "data-count": name }, `${name.replace("_", " ")} `, h("b", {}, count(counts[name])))),
      told.latest.restored && h("span", {}, "went on from batch ", h("b", {}, String(told.latest.restored.id))));
    fill(this._body, ...batches.slice(0, SHOWN).flatMap(rows));
    fill(this._summary, ...SPREADS.map(([id, word, format]) => h("tr", { "data-figure": id }, h("th", { scope: "row" }, word),
      // Without one completed batch its sums are 0, which is no figure.
      ...STATISTICS.map((name) => h("td", { class: "number" }, told.summary[id].p50 === "NaN" ? NONE : format(Number(told.summary[id][name])))))));
    if (!this._table.isConnected) fill(this.element, this._chart, this._table, this._spread);
  }

  close() {}

  /** @param {Batch[]} history  Newest first. */
  _keep(history) {
    const newest = history[0]?.id ?? -1;
    const oldest = history.at(-1)?.id ?? -1;
    // What is not told though it is no older was of a run that has been begun anew.
    const before = [...this._held.values()].filter((batch) => batch.id < oldest && batch.id <= newest);
    this._held = new Map([...history, ...before].slice(0, SHOWN).map((batch) => [batch.id, batch]));
  }

  /**
   * @param {Batch[]} batches  Oldest first, with phases.
   * @param {number | null} limit  How long a batch may take to be ready for the next one, ms.
   */
  _draw(batches, limit) {
    this._chart.hidden = batches.length === 0;
    const stacks = batches.map((batch) => stack(batch));
    const top = Math.max(...stacks.map((parts) => parts.reduce((sum, [, ms]) => sum + ms, 0)), limit ?? 0, 1);
    const slots = Math.max(batches.length, LEAST);
    const names = [...new Set(stacks.flat().map(([name]) => name))].sort((one, other) => order(one) - order(other));
    this._bars.setAttribute("viewBox", `0 0 ${slots} ${HEIGHT}`);
    const bars = stacks.map((parts, place) => {
      let y = HEIGHT;
      const rects = parts.map(([name, ms]) => {
        const height = (ms / top) * HEIGHT;
        y -= height;
        return s("rect", { class: colour(name), x: slots - stacks.length + place + 0.1, y: y.toFixed(2), width: 0.8, height: height.toFixed(2) });
      });
      const batch = /** @type {Batch} */ (batches[place]);
      return s("g", { "data-batch": batch.id }, s("title", {}, `batch ${batch.id}, ${duration(known(batch.end_to_end_duration))}\n${parts.map(([name, ms]) => `${name} ${duration(ms)}`).join("\n")}`), ...rects);
    });
    const y = limit === null ? 0 : HEIGHT * (1 - limit / top);
    fill(this._bars, ...bars, limit !== null && limit > 0 && s("line", { class: "limit", x1: 0, x2: slots, y1: y, y2: y }));
    say(this._top, duration(top));
    const latest = stacks.at(-1) ?? [];
    const words = [...latest].sort((one, other) => other[1] - one[1]).map(([name, ms]) => `${name} ${duration(ms)}`);
    this._bars.setAttribute("aria-label", `Phases of the last ${batches.length} batches; the longest took ${duration(top)}. The latest: ${words.join(", ")}.`);
    fill(this._ends, h("span", {}, batches.length ? `${batches.length === 1 ? "1 batch" : `${batches.length} batches`}: a driver tells the latest 10, this page keeps ${SHOWN} while it is open` : ""), h("span", {}, `batch ${batches.at(-1)?.id ?? NONE}`));
    fill(this._legend, ...names.map((name) => h("li", {}, h("span", { class: `mark ${colour(name)}`, "aria-hidden": "true" }), name, h("output", {}, duration(new Map(latest).get(name))))),
      limit !== null && limit > 0 && h("li", {}, h("span", { class: "mark limit", "aria-hidden": "true" }), OF_JOB[LIMIT]?.label, h("output", {}, duration(limit))));
    fill(this._phases, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "number" }, "Batch"), ...names.map((name) => h("th", { scope: "col", class: "number" }, name)), h("th", { scope: "col", class: "number" }, "Took"))),
      h("tbody", {}, ...batches.map((batch, place) => {
        const found = new Map(stacks[place]);
        return h("tr", {}, h("th", { scope: "row", class: "number" }, String(batch.id)), ...names.map((name) => h("td", { class: "number" }, duration(found.get(name)))), h("td", { class: "number" }, duration(known(batch.end_to_end_duration))));
      }).reverse())));
  }
}

/** @param {Batch} batch */
function rows(batch) {
  const row = h("tr", { "data-batch": batch.id },
    h("td", { class: "number" }, String(batch.id)), h("td", {}, badge(batch.status)),
    ...COLUMNS.map(([, word, wide]) => h("td", { class: `number${wide ? " wide" : ""}` }, word(batch))));
  if (batch.status !== "FAILED") return [row];
  const why = batch.failure_message || "Why is not told.";
  return [row, h("tr", { class: "why" }, h("td", { colspan: 2 + COLUMNS.length }, h("span", { class: "clamp", dir: "auto", title: why.slice(0, 1_000) }, why)))];
}

/**
 * Returns phases with how long each took, and what of the trigger was in none of them.
 *
 * @param {Batch} batch
 * @returns {[string, number][]}
 */
function stack(batch) {
  const phases = /** @type {[string, number][]} */ (Object.entries(batch.streamgauge.phases).filter(([name]) => name !== WHOLE));
  phases.sort(([one], [other]) => order(one) - order(other));
  const rest = (batch.streamgauge.phases[WHOLE] ?? 0) - phases.reduce((sum, [, ms]) => sum + ms, 0);
  return rest > 0 ? [...phases, [REST, rest]] : phases;
}

/** @param {string} name */
function order(name) {
  const place = PHASES.indexOf(name);
  return name === REST ? PHASES.length + 1 : place < 0 ? PHASES.length : place;
}

/** @param {string} name */
function colour(name) {
  return name === REST ? "phase-rest" : `phase-${Math.min(order(name), PHASES.length) + 1}`;
}
