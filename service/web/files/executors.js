// Executors: memory, slots, tasks and garbage collection; and what the hooks in the drivers say of themselves.

import { copyMenu } from "./copy.js";
import { fill, h, say } from "./dom.js";
import { bytes, count, duration, moment, msPerSecond, NONE } from "./format.js";
import { badge, empty, tile } from "./parts.js";
import { get, getIfThere, numbers } from "./rest.js";
import { toJob } from "./route.js";

/** @typedef {import("./live.js").View} View */
/** @typedef {import("./format.js").Figure} Figure */
/** @typedef {import("./format.js").Format} Format */

/**
 * @typedef {object} TaskManager  Of /taskmanagers.
 * @property {string} id
 * @property {string} path
 * @property {number} timeSinceLastHeartbeat  When the last one came, Unix ms: Flink's name for it.
 * @property {number} slotsNumber
 * @property {number} freeSlots
 * @property {number} assignedTasks
 */

/** @typedef {TaskManager & {allocatedSlots: {jobId: string, assignedTasks: number}[]}} Detail  Of /taskmanagers/:taskmanagerid. */

/**
 * @typedef {object} Driver  Of /streamgauge/drivers.
 * @property {string} id
 * @property {string} name
 * @property {string} host
 * @property {string} spark-version
 * @property {string} hooks-version
 * @property {number} start-time
 * @property {number} last-frame
 * @property {boolean} silent
 * @property {string[]} jobs
 * @property {Record<string, number | string>} hooks
 */

/** Each has two requests a refresh; the others are found by the search. */
const SHOWN = 20;

const JVM = "Status.JVM.Memory.";
const GC = "Status.JVM.GarbageCollector.All.";

/**
 * A pool of memory: its words, the metric in use, the one of the most there can be ("" where nobody tells), and what to
 * ask Prometheus for what is in use.
 *
 * @type {[string, string, string, (selector: string) => string][]}
 */
export const POOLS = [
  ["heap", `${JVM}Heap.Used`, `${JVM}Heap.Max`, ofExecutor("jvm_memory_heap_used_bytes")],
  ["non-heap", `${JVM}NonHeap.Used`, `${JVM}NonHeap.Max`, ofExecutor("jvm_memory_non_heap_used_bytes")],
  ["direct buffers", `${JVM}Direct.MemoryUsed`, "", ofExecutor("jvm_memory_direct_used_bytes")],
  ["storage and execution", "Status.Flink.Memory.Managed.Used", "Status.Flink.Memory.Managed.Total", ofExecutor("managed_memory_used_bytes")],
];

/**
 * Words, metric, how it reads, and what to ask Prometheus for it.
 *
 * @type {[string, string, Format, (selector: string) => string][]}
 */
export const TILES = [
  ["garbage collections", `${GC}Count`, count, ofExecutor("jvm_garbage_collections_total")],
  ["time in them", `${GC}Time`, duration, (selector) => `streamgauge_executor_jvm_garbage_collection_seconds_total{${selector}} * 1000`],
  ["time in them, last minute", `${GC}TimeMsPerSecond`, msPerSecond, (selector) => `rate(streamgauge_executor_jvm_garbage_collection_seconds_total{${selector}}[1m]) * 1000`],
];

const ASKED = [...POOLS.flatMap(([, used, most]) => [used, most]), ...TILES.map(([, metric]) => metric)].filter(Boolean).join(",");

/** More of a second than this in collections is told in red: the executor does little else. */
const COLLECTING_MS = 100;

/**
 * What the hooks tell of themselves: words, name in `hooks`, how it reads, what to ask Prometheus for it, and what to do
 * where it is above 0; none where that is as it should be.
 *
 * @type {[string, string, Format, (selector: string) => string, string?][]}
 */
export const HOOKS = [
  ["events taken", "events", count, hooked("events_total")],
  ["pushes accepted", "pushesAccepted", count, pushed("accepted")],
  ["pushes sent again whole", "pushesResend", count, pushed("resend")],
  ["pushes that reached nobody", "pushesUnreachable", count, pushed("unreachable"),
    "Pushes reached no collector. Was the service away? If it goes on: is attach(url=…) or STREAMGAUGE_URL this service's address, as the driver sees it?"],
  ["pushes refused", "pushesRefused", count, pushed("refused"),
    "Pushes were refused: does the driver send this service's push token (attach(token=…) or STREAMGAUGE_TOKEN), and is the name that it calls it by one of --allowed-host? The driver's log has the answer."],
  ["pushes rejected", "pushesRejected", count, pushed("rejected"),
    "Pushes can never be taken in: are the hooks and the service of one version, and is the push shorter than --max-push-bytes? The driver's log says which job is left out, and why."],
  ["pushes without room", "pushesOverloaded", count, pushed("overloaded"),
    "The service had no room for pushes: give it more memory, watch fewer drivers with it, or set a longer interval_ms in them."],
  ["faults of the hooks", "faults", count, hooked("faults_total"),
    "The hooks could not take in some of Spark's events, so figures may be too small. The driver's log says which; please tell us."],
  ["records dropped", "droppedRecords", count, hooked("dropped_records_total"),
    "Records were given up for want of room in the driver: counts are too small. A shorter interval_ms empties the buffer more often."],
  ["live updates dropped", "droppedLiveUpdates", count, hooked("dropped_live_updates_total"),
    "Live updates were given up for want of room: figures of running tasks came later, and are whole once the tasks end."],
  ["pushed", "sentBytes", bytes, hooked("sent_bytes_total")],
  ["since the last push was taken", "acknowledgedAgeMs", duration, (selector) => `streamgauge_hooks_acknowledged_age_seconds{${selector}} * 1000`],
];

/** @param {string} family @returns {(selector: string) => string} */
function ofExecutor(family) {
  return (selector) => `streamgauge_executor_${family}{${selector}}`;
}

/** @param {string} family @returns {(selector: string) => string} */
function hooked(family) {
  return (selector) => `streamgauge_hooks_${family}{${selector}}`;
}

/** @param {string} outcome @returns {(selector: string) => string} */
function pushed(outcome) {
  return (selector) => `streamgauge_hooks_pushes_total{${selector},outcome="${outcome}"}`;
}

/** As PromQL chooses by a label, whatever its value. @param {string} label @param {string} value */
export function chosen(label, value) {
  return `${label}=${JSON.stringify(value)}`;
}

/** What is above all, from /overview: words, key, and what to ask Prometheus for it. @type {[string, string, string][]} */
export const TOTALS = [
  ["executors", "taskmanagers", "streamgauge_registered_task_managers"],
  ["slots", "slots-total", "streamgauge_task_slots"],
  ["slots free", "slots-available", "streamgauge_task_slots_available"],
  ["jobs running", "jobs-running", "streamgauge_running_jobs"],
];

/** @implements {View} */
export class Executors {
  constructor() {
    document.title = "Executors – Streamgauge";
    this._totals = TOTALS.map(([words, , promql]) => tile(words, "/overview", promql));
    this._search = h("input", { type: "search", class: "search", placeholder: "Search by id or address", "aria-label": "Search executors", oninput: () => this._show() });
    /** @type {Map<string, ExecutorCard>} */
    this._executors = new Map();
    /** @type {Map<string, DriverCard>} */
    this._drivers = new Map();
    /** @type {TaskManager[]} */
    this._told = [];
    this._cards = h("div", { class: "executors" });
    this._more = h("p", { class: "muted", role: "status" });
    this._driverCards = h("div", { class: "executors" });
    this._body = h("div");
    this._parts = [
      h("div", { class: "tiles" }, ...this._totals.map((each) => each.element)),
      h("section", { "aria-label": "Executors" }, this._cards, this._more),
      h("section", { class: "drivers", "aria-label": "Drivers" }, h("h2", {}, "Drivers, and the hooks in them"), this._driverCards),
    ];
    this.element = h("div", {}, h("div", { class: "head" }, h("h1", {}, "Executors"), this._search), this._body);
  }

  /** @param {AbortSignal} signal */
  async refresh(signal) {
    const [overview, { taskmanagers }, { drivers }, { jobs }] = await Promise.all([
      get("/overview", signal),
      get("/taskmanagers", signal),
      get("/streamgauge/drivers", signal),
      get("/jobs/overview", signal),
    ]);
    this._told = taskmanagers;
    TOTALS.forEach(([, key], place) => this._totals[place]?.set(count(overview[key])));
    this._show();
    this._showDrivers(drivers);
    const names = new Map(/** @type {{jid: string, name: string}[]} */ (jobs).map(({ jid, name }) => [jid, name]));
    await Promise.all(
      this._found().slice(0, SHOWN).map(async ({ id }) => {
        const path = executorPath(id);
        // One that has gone since the list was made is gone from the next list too.
        const [detail, metrics] = await Promise.all([getIfThere(path, signal), getIfThere(`${path}/metrics?get=${ASKED}`, signal)]);
        if (detail && metrics) this._executors.get(id)?.show(detail, numbers(metrics), names);
      }),
    );
  }

  close() {}

  _found() {
    const wanted = this._search.value.trim().toLowerCase();
    return this._told.filter(({ id, path }) => id.toLowerCase().includes(wanted) || path.toLowerCase().includes(wanted));
  }

  _show() {
    const found = this._found();
    const shown = found.slice(0, SHOWN);
    keep(this._executors, this._told.map(({ id }) => id));
    arrange(this._cards, shown.map((each) => {
      const card = this._executors.get(each.id) ?? new ExecutorCard(each.id);
      this._executors.set(each.id, card);
      card.list(each);
      return card.element;
    }));
    const rest = found.length - shown.length;
    if (this._told.length === 0) say(this._more, "");
    else if (found.length === 0) say(this._more, "No executor is called so. The search looks for a part of the id or of the address.");
    else say(this._more, rest > 0 ? `${shown.length} of ${found.length} are shown; search for the others by id or address.` : "");
  }

  /** @param {Driver[]} drivers */
  _showDrivers(drivers) {
    keep(this._drivers, drivers.map(({ id }) => id));
    arrange(this._driverCards, drivers.map((driver) => {
      const card = this._drivers.get(driver.id) ?? new DriverCard(driver);
      this._drivers.set(driver.id, card);
      card.show(driver);
      return card.element;
    }));
    if (drivers.length === 0) {
      if (!this._body.querySelector(".empty")) fill(this._body, empty("No driver has told of itself yet",
        h("p", {}, "Executors are those of the Spark jobs that are watched. Start one with these two lines in it, and they are here within seconds:"),
        h("pre", { tabindex: "0" }, `import streamgauge\nstreamgauge.attach(spark, url="${location.origin}")`),
        h("p", {}, "Or, without a change to it: ", h("code", {}, "streamgauge run -- job.py"), ".")));
    } else if (!this._parts[0]?.isConnected) {
      fill(this._body, ...this._parts);
    }
    this._search.hidden = this._told.length === 0;
    if (this._told.length === 0) {
      say(this._more, drivers.every(({ silent }) => silent)
        ? "No driver speaks at the moment, so nothing is known of executors. Those below were heard last when they say; a job that is started again is here within seconds."
        : "No executor has come to its driver yet. If this lasts: does the cluster have room for one? The driver's log says what Spark waits for.");
    }
  }
}

/** @param {string} id */
function executorPath(id) {
  return `/taskmanagers/${encodeURIComponent(id)}`;
}

/** Forgets what is there no longer. @param {Map<string, unknown>} cards @param {string[]} there */
function keep(cards, there) {
  const ids = new Set(there);
  for (const id of [...cards.keys()]) if (!ids.has(id)) cards.delete(id);
}

/** Puts elements in place unless they are there already: what is focused stays so. @param {Element} place @param {Element[]} wanted */
function arrange(place, wanted) {
  if (place.children.length !== wanted.length || wanted.some((each, at) => place.children[at] !== each)) place.replaceChildren(...wanted);
}

/** How much of something is in use, as a bar and in words. */
class Meter {
  /**
   * @param {string} words
   * @param {string} path
   * @param {string} [promql]
   * @param {boolean} [dear]  Whether it is told in red where little is left: of slots that work there need be none.
   */
  constructor(words, path, promql, dear = true) {
    this._words = words;
    this._dear = dear;
    this._value = h("output", {}, NONE);
    this._fill = h("span");
    this._bar = h("div", { class: "meter", hidden: true }, this._fill);
    this.element = h("div", { class: "use", "data-name": words }, h("div", { class: "name" }, h("span", {}, words), h("span", { class: "end" }, this._value, copyMenu(words, path, promql))), this._bar);
  }

  /** @param {Figure} used @param {Figure} most  Below 0 where there is no bound. @param {Format} format */
  show(used, most, format) {
    const bounded = typeof most === "number" && most > 0;
    const known = typeof used === "number";
    say(this._value, bounded ? `${format(used)} of ${format(most)}` : format(used));
    this._bar.hidden = !(bounded && known);
    if (!bounded || !known) return;
    const part = Math.min(Math.max(used / most, 0), 1);
    this._fill.style.setProperty("inline-size", `${(part * 100).toFixed(1)}%`);
    this._bar.classList.toggle("full", this._dear && part > 0.9);
    for (const [name, value] of Object.entries({ role: "meter", "aria-label": this._words, "aria-valuemin": 0, "aria-valuemax": most, "aria-valuenow": used, "aria-valuetext": this._value.textContent ?? "" })) {
      this._bar.setAttribute(name, String(value));
    }
  }
}

/** One executor; its elements stay as long as it is there. */
class ExecutorCard {
  /** @param {string} id */
  constructor(id) {
    const path = executorPath(id);
    const selector = chosen("executor_id", id);
    this._where = h("span", { dir: "auto" });
    this._heartbeat = h("b");
    this._slots = new Meter("slots in use", path, undefined, false);
    this._pools = POOLS.map(([words, used, most, promql]) => new Meter(words, `${path}/metrics?get=${most ? `${used},${most}` : used}`, promql(selector)));
    this._tiles = TILES.map(([words, metric, , promql]) => tile(words, `${path}/metrics?get=${metric}`, promql(selector)));
    this._tasks = h("output", {}, NONE);
    this._jobs = h("ul", { class: "holders" });
    this._held = "";
    this.element = h("article", { class: "card executor", "data-executor": id },
      h("div", { class: "name" }, h("h2", { class: "clamp", dir: "auto", title: id.slice(0, 300) }, id), copyMenu(`the executor ${id.slice(0, 100)}`, path)),
      h("div", { class: "facts" }, h("span", {}, "at ", this._where), h("span", {}, "last heartbeat ", this._heartbeat)),
      h("div", { class: "uses" }, this._slots.element, ...this._pools.map((pool) => pool.element)),
      h("div", { class: "tiles" }, ...this._tiles.map((each) => each.element)),
      h("div", { class: "name" }, h("h3", {}, "Running tasks"), h("span", { class: "end" }, this._tasks, copyMenu(`running tasks of ${id.slice(0, 100)}`, path))),
      this._jobs);
  }

  /** What the list of all says. @param {TaskManager} told */
  list(told) {
    say(this._where, told.path || NONE);
    say(this._heartbeat, moment(told.timeSinceLastHeartbeat));
    this._slots.show(told.slotsNumber - told.freeSlots, told.slotsNumber, count);
    say(this._tasks, count(told.assignedTasks));
  }

  /** @param {Detail} detail @param {Record<string, number>} metrics @param {Map<string, string>} names */
  show(detail, metrics, names) {
    this.list(detail);
    POOLS.forEach(([, used, most], place) => this._pools[place]?.show(metrics[used], metrics[most], bytes));
    TILES.forEach(([, metric, format], place) => {
      const value = metrics[metric];
      this._tiles[place]?.set(format(value), metric === `${GC}TimeMsPerSecond` && value !== undefined && value > COLLECTING_MS);
    });
    /** @type {Map<string, number>} */
    const tasks = new Map();
    for (const { jobId, assignedTasks } of detail.allocatedSlots) tasks.set(jobId, (tasks.get(jobId) ?? 0) + assignedTasks);
    const others = detail.assignedTasks - [...tasks.values()].reduce((sum, each) => sum + each, 0);
    const held = JSON.stringify([...tasks].map(([jid, number]) => [jid, number, names.get(jid)]).concat([["", others]]));
    if (held === this._held) return;
    this._held = held;
    fill(this._jobs,
      ...[...tasks].map(([jid, number]) => h("li", {}, h("a", { class: "clamp", href: toJob(jid), dir: "auto" }, names.get(jid) ?? jid), h("span", {}, count(number)))),
      others > 0 && h("li", {}, h("span", { class: "muted" }, "of no watched job"), h("span", {}, count(others))));
  }
}

/** One driver; its elements stay as long as it is there. */
class DriverCard {
  /** @param {Driver} driver */
  constructor(driver) {
    const selector = chosen("application_id", driver.id);
    this._state = h("span");
    this._silent = "";
    this._heard = h("b");
    this._started = h("b");
    this._jobs = h("b");
    this._spark = h("b", { dir: "auto" });
    this._hooks = h("b", { dir: "auto" });
    this._host = h("b", { dir: "auto" });
    this._name = h("span", { class: "clamp", dir: "auto" });
    this._tiles = HOOKS.map(([words, , , promql]) => tile(words, "/streamgauge/drivers", promql(selector)));
    this._advice = h("ul", { class: "advice" });
    this._advised = "";
    this.element = h("article", { class: "card driver", "data-driver": driver.id },
      h("div", { class: "head" }, h("h3", {}, this._name), this._state, h("code", { class: "clamp", dir: "auto" }, driver.id), copyMenu(`the driver ${driver.id.slice(0, 100)}`, "/streamgauge/drivers")),
      h("div", { class: "facts" },
        h("span", {}, "host ", this._host), h("span", {}, "Spark ", this._spark), h("span", {}, "hooks ", this._hooks),
        h("span", {}, "started ", this._started), h("span", {}, "last push ", this._heard), h("span", {}, "jobs ", this._jobs)),
      this._advice,
      h("div", { class: "tiles" }, ...this._tiles.map((each) => each.element)));
  }

  /** @param {Driver} driver */
  show(driver) {
    const state = driver.silent ? "SUSPENDED" : "RUNNING";
    if (state !== this._silent) fill(this._state, badge(state));
    this._silent = state;
    say(this._name, driver.name || driver.id);
    say(this._host, driver.host || NONE);
    say(this._spark, driver["spark-version"] || NONE);
    say(this._hooks, driver["hooks-version"] || NONE);
    say(this._started, moment(driver["start-time"]));
    say(this._heard, moment(driver["last-frame"]));
    say(this._jobs, count(driver.jobs.length));
    /** @type {string[]} */
    const notes = driver.silent ? ["Nothing has been heard of this driver for a while: has it ended, or can it no longer reach this service? What is shown is the last that it told."] : [];
    /** @type {string[]} */
    const advice = [];
    HOOKS.forEach(([, name, format, , todo], place) => {
      const value = driver.hooks[name];
      const known = typeof value === "number" ? value : null;
      const bad = todo !== undefined && known !== null && known > 0;
      this._tiles[place]?.set(format(known), bad);
      if (bad) advice.push(todo);
    });
    const advised = [...notes, ...advice].join("\n");
    if (advised === this._advised) return;
    this._advised = advised;
    fill(this._advice, ...notes.map((words) => h("li", { class: "note" }, words)), ...advice.map((words) => h("li", {}, words)));
  }
}
