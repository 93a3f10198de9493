// A vertex, in a drawer over its job: what is open of it stands in the address, and that alone is asked for.

import { TimeChart } from "./charts.js";
import { fill, h, say } from "./dom.js";
import { OF_VERTEX } from "./figures.js";
import { Latency } from "./heat.js";
import { Course, update } from "./history.js";
import { Operators, Timers } from "./operators.js";
import { badge, empty } from "./parts.js";
import { toJob, toVertex } from "./route.js";
import { Splits, Subtasks } from "./subtasks.js";

/**
 * What a job tells of a vertex.
 *
 * @typedef {object} Told
 * @property {string} id
 * @property {string} name
 * @property {number} parallelism
 * @property {string} status
 * @property {string} description  Of its operators, as the plan has them: HTML.
 */

/**
 * @typedef {object} Tab
 * @property {HTMLElement} element
 * @property {(signal: AbortSignal, told: Told) => Promise<void>} refresh
 * @property {() => void} [close]
 */

export class Vertex {
  /** @param {string} jid @param {string} vertexId @param {string} [tab] */
  constructor(jid, vertexId, tab) {
    this._jid = jid;
    this._id = vertexId;
    /** @type {Map<string, Tab>} */
    this._made = new Map();
    this._cameFrom = document.activeElement;
    this._focused = false;
    this._over = new AbortController();
    this._name = h("h2", { class: "clamp", dir: "auto", id: "drawer-name" }, "…");
    this._status = h("span");
    this._shownStatus = "";
    this._width = h("span", { class: "muted" });
    this._links = Object.entries(TABS).map(([id, [words]]) => h("a", { href: toVertex(jid, vertexId, id), "data-tab": id }, words));
    this._place = h("div", { class: "drawer-body" });
    this.element = h("aside", { class: "drawer", tabindex: "-1", "aria-labelledby": "drawer-name" },
      h("div", { class: "drawer-head" },
        this._name,
        h("a", { class: "close", href: toJob(jid), "aria-label": "Close this vertex", title: "Close (Escape)" }, "✕"),
        h("div", { class: "drawer-facts" }, this._status, this._width)),
      h("nav", { class: "tabs", "aria-label": "Of this vertex" }, ...this._links),
      this._place);
    document.addEventListener("keydown", (event) => this._pressed(event), { signal: this._over.signal });
    this.go(tab);
  }

  /** Show another tab; the first where there is none of this name. @param {string} [tab] */
  go(tab) {
    this._tab = tab && Object.hasOwn(TABS, tab) ? tab : "charts";
    for (const link of this._links) {
      if (link.dataset["tab"] === this._tab) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    fill(this._place, this._open().element);
  }

  /** @param {AbortSignal} signal @param {import("./job.js").Detail} job  Whose vertex it is. */
  async refresh(signal, job) {
    if (!this._focused && this.element.isConnected) {
      this._focused = true;
      this.element.focus({ preventScroll: true });
    }
    const found = job.vertices.find((vertex) => vertex.id === this._id);
    if (!found) {
      say(this._name, "No such vertex");
      fill(this._place, empty("The job has no vertex of this id",
        h("p", {}, "A vertex keeps its id as long as the query does what it does; a changed query has others. ", h("a", { href: toJob(this._jid) }, "Look at the job's graph"), ".")));
      return;
    }
    say(this._name, found.name);
    this._name.title = found.name.slice(0, 300);
    say(this._width, `parallelism ${found.parallelism}`);
    if (this._shownStatus !== found.status) {
      this._shownStatus = found.status;
      fill(this._status, badge(found.status));
    }
    const node = job.plan.nodes.find((each) => each.id === this._id);
    const open = this._open();
    if (open.element.parentNode !== this._place) fill(this._place, open.element);
    await open.refresh(signal, { ...found, description: node?.description ?? "" });
  }

  close() {
    this._over.abort();
    this._made.forEach((tab) => tab.close?.());
    const from = this._cameFrom;
    const held = this.element.contains(document.activeElement) || document.activeElement === document.body;
    if (held && (from instanceof HTMLElement || from instanceof SVGElement) && from.isConnected) from.focus({ preventScroll: true });
  }

  /** @returns {Tab} */
  _open() {
    const name = this._tab ?? "charts";
    const there = this._made.get(name);
    if (there) return there;
    const [, Made] = TABS[name] ?? ["", Charts];
    const made = new Made(this._jid, this._id);
    this._made.set(name, made);
    return made;
  }

  /** @param {KeyboardEvent} event */
  _pressed(event) {
    const writes = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === "Escape" && !event.defaultPrevented && !writes) location.hash = toJob(this._jid);
  }
}

/** Title and figures of one unit; none is drawn before one of its figures is known. @type {[string, string[]][]} */
const CHARTS = [
  ["Records per second", ["numRecordsInPerSecond", "numRecordsOutPerSecond"]],
  ["Where the time goes, busiest subtask", ["busyTimeMsPerSecond.max", "backPressuredTimeMsPerSecond.max"]],
  ["Where the time goes, mean of subtasks", ["busyTimeMsPerSecond.avg", "backPressuredTimeMsPerSecond.avg", "idleTimeMsPerSecond.avg"]],
  ["Latency from the sources", ["latency.p50", "latency.p95", "latency.p99"]],
  ["Of the latency: queueing, processing", ["queueing.p99", "processing.p99"]],
  ["Watermark lag", ["watermarkLag"]],
  ["Pending records", ["pendingRecords"]],
  ["Unread files", ["unreadFiles"]],
  ["Skew", ["numRecordsInPerSecond.skew"]],
  ["Bytes per second", ["numBytesInPerSecond", "numBytesOutPerSecond"]],
  ["Buffers in use", ["inPoolUsage.max", "outPoolUsage.max"]],
  ["Blocks that wait", ["inputQueueLength", "outputQueueLength"]],
  ["State rows", ["numStateRows"]],
  ["State memory", ["stateMemoryUsed"]],
  ["Late records dropped", ["numLateRecordsDroppedPerSecond"]],
  ["Timers that wait", ["numPendingTimers"]],
  ["Timers fired", ["numFiredTimersPerSecond"]],
];
const ASKED = CHARTS.flatMap(([, figures]) => figures);

/** The last 15 minutes. @implements {Tab} */
class Charts {
  /** @param {string} jid @param {string} id */
  constructor(jid, id) {
    this._jid = jid;
    this._id = id;
    this._path = `/jobs/${jid}/vertices/${id}/history`;
    this._course = new Course();
    this._closed = false;
    /** @type {(TimeChart | undefined)[]} */
    this._charts = CHARTS.map(() => undefined);
    this._grid = h("div", { class: "grid" });
    this._absent = h("p", { class: "muted" });
    this._nothing = empty("Nothing has been told of this vertex yet",
      h("p", {}, "Its first figures come when its first stage runs. Where the job has no new data it may be without work: trigger it, or wait for a batch."));
    this.element = h("div", {}, this._grid, this._absent);
  }

  /** @param {AbortSignal} signal */
  async refresh(signal) {
    await update(this._course, this._path, ASKED, signal);
    if (this._closed) return;
    const known = CHARTS.map(([, figures]) => figures.some((figure) => this._course.of(figure).some((value) => value !== null)));
    CHARTS.forEach(([title, figures], place) => {
      if (!known[place] || this._charts[place]) return;
      const chart = new TimeChart(title, OF_VERTEX, figures, this._path, this._jid, this._id);
      const next = this._charts.slice(place + 1).find((each) => each !== undefined);
      this._grid.insertBefore(chart.element, next?.element ?? null);
      this._charts[place] = chart;
    });
    this._charts.forEach((chart) => chart?.show(this._course));
    const absent = CHARTS.filter((_, place) => !known[place] && !this._charts[place]).map(([title]) => title.toLowerCase());
    say(this._absent, absent.length ? `Not shown, for neither Spark nor a tap has told of them here: ${absent.join("; ")}.` : "");
    const nothing = absent.length === CHARTS.length;
    this._absent.hidden = nothing;
    if (nothing && !this._nothing.isConnected) this.element.prepend(this._nothing);
    else if (!nothing) this._nothing.remove();
  }

  close() {
    this._closed = true;
    this._charts.forEach((chart) => chart?.close());
  }
}

/** Name in the address → words, and what makes it. @type {Record<string, [string, new (jid: string, id: string) => Tab]>} */
const TABS = {
  charts: ["Charts", Charts],
  subtasks: ["Subtasks", Subtasks],
  operators: ["Operators", Operators],
  latency: ["Latency", Latency],
  splits: ["Splits", Splits],
  timers: ["Timers", Timers],
};
