// One job: what matters of it in one line, its figures, its graph, batches, exceptions and settings.

import { Batches } from "./batches.js";
import { TimeChart } from "./charts.js";
import { copyMenu } from "./copy.js";
import { byId, fill, h, say } from "./dom.js";
import { OF_JOB, promql } from "./figures.js";
import { count, duration, moment, NONE, share } from "./format.js";
import { Graph } from "./graph.js";
import { Course, update } from "./history.js";
import { badge, empty, ENDED, tile } from "./parts.js";
import { get, getIfThere, numbers, RestError } from "./rest.js";
import { toCompare, toJob, toVertex } from "./route.js";
import { Vertex } from "./vertex.js";

/** @typedef {import("./route.js").Route} Route */
/** @typedef {import("./live.js").View} View */

/**
 * @typedef {object} JobVertex
 * @property {string} id
 * @property {string} name
 * @property {number} parallelism
 * @property {string} status
 */

/**
 * @typedef {object} Node
 * @property {string} id
 * @property {string} description
 * @property {{id: string, num: number, ship_strategy: string}[]} [inputs]
 */

/**
 * @typedef {object} Additions
 * @property {string} application
 * @property {string} trigger
 * @property {string} failure
 * @property {{records: number, live_updates: number, unknown_updates: number}} incomplete
 * @property {boolean | null} backlogged
 * @property {{id: string, name: string, "busy-ratio": number} | null} bottleneck
 */

/**
 * @typedef {object} Detail  The body of /jobs/:jobid.
 * @property {string} jid
 * @property {string} name
 * @property {string} state
 * @property {"STREAMING" | "BATCH"} job-type
 * @property {number} start-time
 * @property {number} end-time
 * @property {number} duration
 * @property {Record<string, number>} timestamps
 * @property {JobVertex[]} vertices
 * @property {{nodes: Node[]}} plan
 * @property {Additions} streamgauge
 */

/**
 * What a tab shows.
 *
 * @typedef {object} Pane
 * @property {Element} element
 * @property {(detail: Detail, course: Course, signal: AbortSignal) => Promise<void>} refresh
 * @property {() => void} close
 */

/** @type {[string, string, (jid: string) => Pane][]} */
const TABS = [
  ["overview", "Overview", (jid) => new Overview(jid)],
  ["batches", "Batches", (jid) => new Batches(jid)],
  ["exceptions", "Exceptions", (jid) => new Exceptions(jid)],
  ["configuration", "Configuration", (jid) => new Configuration(jid)],
];

const OF_BOTH = ["numRecordsInPerSecond", "numRecordsOutPerSecond"];
/** Figures, and whether batch jobs have them. */
const TILES = [
  ...OF_BOTH, "watermarkLag", "backlogRows", "latency.p99", "lastCheckpointDuration", "numStateRows", "lastCheckpointSize", "numLateRecordsDroppedPerSecond",
];
/** @type {[string, string[]][]} */
const CHARTS = [
  ["Records in and out", OF_BOTH],
  ["Latency", ["latency.p50", "latency.p95", "latency.p99"]],
  ["Latency by part", ["queueing.p99", "processing.p99"]],
  ["Backlog", ["backlogRows"]],
  ["Watermark lag", ["watermarkLag"]],
  ["Busy and back-pressured, busiest subtask", ["busyTimeMsPerSecond.max", "backPressuredTimeMsPerSecond.max"]],
  ["State rows", ["numStateRows"]],
  ["Batch duration", ["lastCheckpointDuration", "triggerIntervalMs"]],
];
const OF_BATCHES_TOO = new Set([...OF_BOTH, "busyTimeMsPerSecond.max"]);
const RESTARTS = "numRestarts";
/** Of a fact; no trigger of Spark's is as long. */
const LETTERS = 120;
const MAX_INT = 2 ** 31 - 1;
const COVERS = matchMedia("(max-width: 900px)");

/** @implements {View} */
export class Job {
  /** @param {Route} route */
  constructor(route) {
    this._jid = route.job ?? "";
    this._path = `/jobs/${this._jid}`;
    this._course = new Course();
    /** @type {Detail | null} */
    this._detail = null;
    this._head = new Head(this._jid);
    this._tab = "";
    /** @type {Map<string, Pane>} */
    this._panes = new Map();
    this._links = TABS.map(([id, word]) => h("a", { id: `tab-${id}`, role: "tab", href: toJob(this._jid, id), "aria-controls": "job-panel" }, word));
    const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Of this job", onkeydown: (/** @type {KeyboardEvent} */ event) => this._key(event) }, ...this._links);
    this._panel = h("div", { id: "job-panel", role: "tabpanel", tabindex: "0" });
    this._there = h("div", { hidden: true }, this._head.element, tabs, this._panel);
    this._missing = h("div");
    this.element = h("div", { class: "job" }, this._missing, this._there);
    /** @type {Vertex | null} */
    this._drawer = null;
    this._open = "";
    this._covers = () => this._cover();
    COVERS.addEventListener("change", this._covers);
    document.title = "Job · Streamgauge";
    this.go(route);
  }

  /** Another tab or vertex of this job. @param {Route} route */
  go(route) {
    // A drawer's tabs are its own: what is below it stays.
    if (!route.vertex || !this._tab) this._select(route.vertex ? undefined : route.tab);
    if (this._drawer && route.vertex === this._open) {
      this._drawer.go(route.tab);
      return;
    }
    this._drawer?.close();
    this._drawer?.element.remove();
    const before = this._open;
    [this._drawer, this._open] = [null, route.vertex ?? ""];
    if (route.vertex) {
      this._drawer = new Vertex(this._jid, route.vertex, route.tab);
      this.element.append(this._drawer.element);
    }
    this._cover();
    if (before && !route.vertex) {
      // Back to where the drawer was opened from.
      const from = this._panel.querySelector(`[data-vertex="${before}"]`);
      if (from instanceof SVGElement) from.focus({ preventScroll: true });
    }
  }

  /** Where the drawer covers all else, no key leads there. */
  _cover() {
    const covered = this._drawer !== null && COVERS.matches;
    this._there.inert = covered;
    byId("bar").inert = covered;
  }

  /** @param {AbortSignal} signal */
  async refresh(signal) {
    let detail, restarts;
    try {
      [detail, restarts] = await Promise.all([
        /** @type {Promise<Detail>} */ (get(this._path, signal)),
        get(`${this._path}/metrics?get=${RESTARTS}`, signal),
        update(this._course, `${this._path}/history`, null, signal),
      ]);
    } catch (error) {
      if (!(error instanceof RestError && error.status === 404)) throw error;
      fill(this._missing, empty("The service does not know this job",
        h("p", {}, this._detail ? "What is shown below is older. " : "", "It is kept for a while after its end. After a restart of the service a job that runs is back within seconds: this page goes on asking."),
        h("p", {}, "See ", h("a", { href: "#/" }, "all jobs"), ".")));
      return;
    }
    fill(this._missing);
    this._there.hidden = false;
    this._detail = detail;
    document.title = `${detail.name.slice(0, 80)} · Streamgauge`;
    await Promise.all([
      this._head.refresh(detail, this._course, numbers(restarts)[RESTARTS], signal),
      this._pane()?.refresh(detail, this._course, signal),
      this._drawer?.refresh(signal, detail),
    ]);
  }

  close() {
    COVERS.removeEventListener("change", this._covers);
    byId("bar").inert = false;
    for (const pane of this._panes.values()) pane.close();
    this._drawer?.close();
  }

  _pane() {
    return this._panes.get(this._tab);
  }

  /** @param {string | undefined} tab */
  _select(tab) {
    const [id, , make] = TABS.find(([each]) => each === tab) ?? /** @type {typeof TABS[0]} */ (TABS[0]);
    if (id === this._tab) return;
    this._tab = id;
    this._links.forEach((link) => {
      const chosen = link.id === `tab-${id}`;
      link.setAttribute("aria-selected", String(chosen));
      // One stop of the Tab key for all of them; arrows go from one to the next.
      link.tabIndex = chosen ? 0 : -1;
    });
    const pane = this._panes.get(id) ?? make(this._jid);
    this._panes.set(id, pane);
    this._panel.setAttribute("aria-labelledby", `tab-${id}`);
    fill(this._panel, pane.element);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const place = this._links.findIndex((link) => link === document.activeElement);
    if (place < 0) return;
    const last = this._links.length - 1;
    const next = { ArrowRight: place === last ? 0 : place + 1, ArrowLeft: place === 0 ? last : place - 1, Home: 0, End: last }[event.key];
    if (next !== undefined) this._links[next]?.focus();
    else if (event.key === " ") this._links[place]?.click();
    else return;
    event.preventDefault();
  }
}

/** What stands above the tabs. */
class Head {
  /** @param {string} jid */
  constructor(jid) {
    this._jid = jid;
    this._state = h("span");
    this._shown = "";
    this._name = h("span", { class: "clamp", dir: "auto" });
    this._verdict = h("p", { class: "verdict" });
    this._said = "";
    this._failure = h("section", { class: "failure", hidden: true });
    /** Of which end the cause is shown. @type {number | null} */
    this._ended = null;
    /** Its first line. */
    this._cause = "";
    /** In which state it was asked for other runs. */
    this._looked = "";
    this._compare = h("a", { class: "to-compare", href: toCompare(jid), hidden: true }, "Compare with another run");
    /** @type {Map<string, HTMLElement>} */
    this._values = new Map();
    const facts = ["up", "started", "trigger", "application", "restarts", "dropped"].map((id) => {
      const value = h("b", { dir: "auto", "data-fact": id }, NONE);
      this._values.set(id, value);
      const word = { up: "up", started: "started", dropped: "dropped by the hooks" }[id] ?? id;
      return h("span", { "data-of": id }, h("span", {}, `${word} `), value, id === "restarts" && copyMenu("restarts", `/jobs/${jid}/metrics?get=${RESTARTS}`, `streamgauge_job_restarts_total{job_id="${jid}"}`));
    });
    this._facts = h("div", { class: "facts" }, ...facts);
    /** @type {Map<string, ReturnType<typeof tile>>} */
    this._tiles = new Map();
    this._tiled = h("div", { class: "tiles" });
    this.element = h("header", {},
      h("div", { class: "head" }, this._state, h("h1", {}, this._name), copyMenu("this job", `/jobs/${jid}`), this._compare),
      this._verdict, this._failure, this._facts, this._tiled);
  }

  /**
   * @param {Detail} detail
   * @param {Course} course
   * @param {number | undefined} restarts
   * @param {AbortSignal} signal
   */
  async refresh(detail, course, restarts, signal) {
    if (this._shown !== detail.state) {
      fill(this._state, badge(detail.state));
      this._shown = detail.state;
    }
    say(this._name, detail.name);
    this._name.title = detail.name.slice(0, 1_000);
    if (detail.state === "FAILED") await this._fail(detail, signal);
    else this._failure.hidden = true;
    this._judge(detail, course);
    await this._look(detail, signal);
    const dropped = Object.entries(detail.streamgauge.incomplete).filter(([, number]) => number > 0);
    this._fact("up", duration(detail.duration < 0 ? null : detail.duration));
    this._fact("started", moment(detail["start-time"]));
    this._fact("trigger", detail.streamgauge.trigger || NONE);
    this._fact("application", detail.streamgauge.application || NONE);
    this._fact("restarts", count(restarts));
    // What was dropped makes figures too small, and is rare: it is there only where it matters.
    this._fact("dropped", dropped.map(([what, number]) => `${count(number)} ${what.replaceAll("_", " ")}`).join(", "));
    this._values.get("dropped")?.parentElement?.toggleAttribute("hidden", dropped.length === 0);
    const up = this._values.get("up")?.previousElementSibling;
    if (up) say(up, ENDED.has(detail.state) ? "lasted " : "up ");
    this._figures(detail, course);
  }

  /** Leads to a comparison where there is something to compare it with. @param {Detail} detail @param {AbortSignal} signal */
  async _look(detail, signal) {
    if (this._looked === detail.state) return;
    const body = ENDED.has(detail.state) ? null : await getIfThere(`/jobs/${this._jid}/runs`, signal);
    this._compare.hidden = !ENDED.has(detail.state) && (body?.runs.length ?? 0) < 2;
    this._looked = detail.state;
  }

  /** @param {string} id @param {string} word */
  _fact(id, word) {
    const value = this._values.get(id);
    if (!value) return;
    say(value, word.length > LETTERS ? `${word.slice(0, LETTERS)}…` : word);
    value.title = word.length > LETTERS ? word.slice(0, 1_000) : "";
  }

  /** @param {Detail} detail @param {Course} course */
  _figures(detail, course) {
    const wanted = detail["job-type"] === "BATCH" ? TILES.filter((id) => OF_BATCHES_TOO.has(id)) : TILES;
    if (this._tiles.size === 0) {
      for (const id of wanted) this._tiles.set(id, tile(OF_JOB[id]?.label ?? id, `/jobs/${this._jid}/history?get=${id}`, promql(OF_JOB[id], this._jid)));
      fill(this._tiled, ...[...this._tiles.values()].map(({ element }) => element));
    }
    const late = course.latest("numLateRecordsDroppedPerSecond") ?? 0;
    for (const [id, { set }] of this._tiles) {
      const bad = id === "numLateRecordsDroppedPerSecond" ? late > 0 : id === "backlogRows" && detail.streamgauge.backlogged === true && (course.latest(id) ?? 0) > 0;
      set(OF_JOB[id]?.format(course.latest(id)) ?? NONE, bad);
    }
    this._tiled.classList.toggle("then", detail.state === "SUSPENDED");
  }

  /** Says in one line what matters. @param {Detail} detail @param {Course} course */
  _judge(detail, course) {
    const { backlogged, bottleneck } = detail.streamgauge;
    const since = moment(detail.timestamps[detail.state] || null);
    const last = `; all figures are its last ones, as of ${moment(course.last ?? detail["end-time"])}.`;
    const [kind, ...words] = /** @type {[string, ...import("./dom.js").Child[]]} */ (
      detail.state === "SUSPENDED" ? ["warn", `The driver has been silent since ${since}: all figures are of then.`]
      : detail.state === "FAILED" ? ["bad", `Failed at ${moment(detail["end-time"])}: `, h("bdi", {}, this._cause), last]
      : ENDED.has(detail.state) ? ["", `${detail.state === "CANCELED" ? "Stopped" : "Finished"} at ${moment(detail["end-time"])}${last}`]
      : detail.state !== "RUNNING" ? ["warn", `${detail.state} since ${since}: no batch runs.`]
      : detail["job-type"] === "BATCH" ? ["", "A batch job: it runs until its input is read."]
      : backlogged === null ? ["", "Whether it keeps up is not known yet: that takes some batches with rows."]
      : !backlogged ? ["good", "Keeps up with its input."]
      : ["bad", "Backlogged: batches do not keep up",
        ...(bottleneck ? ["; bottleneck ", h("a", { dir: "auto", href: toVertex(this._jid, bottleneck.id) }, bottleneck.name.slice(0, 120)), ` (${share(bottleneck["busy-ratio"])} busy).`] : [": no vertex of it is known to be busy."])]
    );
    // Its link keeps the focus as long as the words are the same.
    const said = words.map((word) => (word instanceof Node ? `${word.textContent} ${bottleneck?.id}` : word)).join("");
    if (said === this._said) return;
    this._said = said;
    this._verdict.className = `verdict ${kind}`;
    fill(this._verdict, ...words);
  }

  /** @param {Detail} detail @param {AbortSignal} signal */
  async _fail(detail, signal) {
    if (this._ended === detail["end-time"]) return;
    const body = await get(`/jobs/${this._jid}/exceptions?maxExceptions=1`, signal);
    const latest = /** @type {Exception | undefined} */ (body.exceptionHistory.entries[0]);
    const words = (latest && cause(latest)) || detail.streamgauge.failure || "The driver has not told why.";
    fill(this._failure, h("p", { class: "cause", dir: "auto", tabindex: "0" }, words), h("a", { href: toJob(this._jid, "exceptions") }, "All exceptions, with their traces"));
    this._failure.hidden = false;
    const first = words.split("\n")[0] ?? "";
    this._cause = first.length > LETTERS ? `${first.slice(0, LETTERS)}…` : first.replace(/\.$/, "");
    this._ended = detail["end-time"];
  }
}

/** @implements {Pane} */
class Overview {
  /** @param {string} jid */
  constructor(jid) {
    this._jid = jid;
    this._graph = new Graph(jid);
    /** @type {[TimeChart, string[]][] | null} */
    this._charts = null;
    this._grid = h("div", { class: "grid" });
    this._untold = h("p", { class: "muted" });
    this._charted = h("div", {}, this._grid, this._untold);
    this._place = h("div");
    this._drawn = "";
    this.element = h("div", {}, this._graph.element, this._place);
  }

  /** @param {Detail} detail @param {Course} course @param {AbortSignal} signal */
  async refresh(detail, course, signal) {
    this._charts ??= this._made(detail["job-type"] === "BATCH");
    const now = course.last !== undefined ? "charts" : ENDED.has(detail.state) || detail.state === "SUSPENDED" ? "none" : "soon";
    if (now !== this._drawn) {
      fill(this._place, now === "charts" ? this._charted : now === "none"
        ? empty("No figures over time are kept of this job", h("p", {}, "The service has them of what ran while it did itself, as long as it is not started anew. Batches and exceptions are in the other tabs."))
        : empty("The first figures are here within seconds", h("p", {}, "They are taken every five seconds.")));
      this._drawn = now;
    }
    if (now === "charts" && this.element.isConnected) this._chart(this._charts, course);
    await this._graph.refresh(detail, course.last, signal);
  }

  close() {
    this._graph.close();
    for (const [chart] of this._charts ?? []) chart.close();
  }

  /** @param {boolean} batch */
  _made(batch) {
    const wanted = batch ? CHARTS.filter(([, [first]]) => first !== undefined && OF_BATCHES_TOO.has(first)) : CHARTS;
    const charts = wanted.map(([title, figures]) => /** @type {[TimeChart, string[]]} */ ([new TimeChart(title, OF_JOB, figures, `/jobs/${this._jid}/history`, this._jid), figures]));
    fill(this._grid, ...charts.map(([{ element }]) => element));
    return charts;
  }

  /**
   * Shows the charts of what is known, and says of what there are none.
   *
   * @param {[TimeChart, string[]][]} charts
   * @param {Course} course
   */
  _chart(charts, course) {
    const untold = [];
    for (const [chart, figures] of charts) {
      const known = figures.some((id) => course.of(id).some((value) => value !== null));
      chart.element.hidden = !known;
      if (known) chart.show(course);
      else untold.push(chart.title.toLowerCase());
    }
    say(this._untold, untold.length ? `Not told of this job in the last 15 minutes: ${untold.join(", ")}. A job without state, event time or latency markers has none of these.` : "");
  }
}

/**
 * @typedef {object} Exception
 * @property {string} exceptionName
 * @property {string} stacktrace
 * @property {number} timestamp
 * @property {string} [taskName]
 * @property {string} [endpoint]
 * @property {string} [taskManagerId]
 * @property {Exception[]} [concurrentExceptions]
 */

const CAUSED = "Caused by: ";

/** What is at the root of a failure: the last cause that its trace names. @param {Exception} failure */
function cause(failure) {
  const told = failure.stacktrace.split("\n").map((line) => line.trim());
  return told.filter((line) => line.startsWith(CAUSED)).at(-1)?.slice(CAUSED.length) ?? told[0] ?? failure.exceptionName;
}

/** What a failure's root says beyond the failure's name. @param {Exception} failure */
function rest(failure) {
  const words = cause(failure).slice(0, 1_000);
  return words.startsWith(failure.exceptionName) ? words.slice(failure.exceptionName.length) : `: ${words}`;
}

/** @implements {Pane} */
class Exceptions {
  /** @param {string} jid */
  constructor(jid) {
    this._path = `/jobs/${jid}/exceptions`;
    this._limit = 20;
    this._drawn = "";
    /** By what they say: one that is open stays so. @type {Map<string, HTMLElement>} */
    this._held = new Map();
    this.element = h("div");
  }

  /** @param {Detail} detail @param {Course} _course @param {AbortSignal} signal */
  async refresh(detail, _course, signal) {
    const body = await get(`${this._path}?maxExceptions=${this._limit}`, signal);
    const key = JSON.stringify(body);
    if (key === this._drawn) return;
    this._drawn = key;
    const { entries, truncated } = body.exceptionHistory;
    const forgotten = body.streamgauge.forgotten;
    if (entries.length === 0) {
      fill(this.element, empty("Nothing has failed", h("p", {}, detail.state === "FAILED" && detail.streamgauge.failure ? `Its driver says no more than: ${detail.streamgauge.failure.slice(0, 2_000)}` : "No task and no batch of this job has failed in the runs that were seen.")));
      return;
    }
    const before = this._held;
    this._held = new Map(/** @type {Exception[]} */ (entries).map((entry) => {
      const said = JSON.stringify(entry);
      return [said, before.get(said) ?? h("li", {}, failed(entry, true))];
    }));
    fill(this.element, h("section", { class: "card" },
      h("div", { class: "head" }, h("h2", {}, "Exceptions, the newest first"), copyMenu("exceptions", this._path)),
      h("ol", { class: "failures" }, ...this._held.values()),
      truncated && h("button", { type: "button", onclick: () => this._all(detail, _course, signal) }, "Show all that are held"),
      forgotten > 0 && h("p", { class: "muted" }, `${count(forgotten)} older ones are not held any more.`)));
  }

  close() {}

  /** @param {Detail} detail @param {Course} course @param {AbortSignal} signal */
  _all(detail, course, signal) {
    this._limit = MAX_INT;
    // Where that fails the next refresh says so.
    this.refresh(detail, course, signal).catch(() => {});
  }
}

/** @param {Exception} told @param {boolean} top @returns {HTMLElement} */
function failed(told, top) {
  const others = told.concurrentExceptions ?? [];
  const place = [told.taskName, told.taskManagerId && `executor ${told.taskManagerId}`, told.endpoint].filter((word) => word !== undefined && word !== "");
  return h("article", { class: "exception" },
    h("div", { class: "name clamp", dir: "auto" }, h("b", {}, told.exceptionName.slice(0, 300)), rest(told)),
    h("div", { class: "facts" }, h("span", {}, moment(told.timestamp)), ...place.map((word) => h("span", { class: "clamp", dir: "auto" }, word ?? ""))),
    h("details", {}, h("summary", {}, "Stack trace"), h("pre", { tabindex: "0" }, told.stacktrace)),
    top && others.length > 0 && h("details", {}, h("summary", {}, `${others.length} more that came with it`), ...others.map((other) => failed(other, false))));
}

/** @implements {Pane} */
class Configuration {
  /** @param {string} jid */
  constructor(jid) {
    this._own = `/jobs/${jid}/config`;
    this._driver = `/jobs/${jid}/jobmanager/config`;
    this._drawn = "";
    /** @type {HTMLTableRowElement[]} */
    this._rows = [];
    this._search = h("input", { type: "search", class: "search", placeholder: "Search names and values", "aria-label": "Search settings", oninput: () => this._filter() });
    this._found = h("p", { class: "muted", role: "status" });
    this._tables = h("div");
    this.element = h("div", {}, h("div", { class: "head" }, this._search, this._found), this._tables);
  }

  /** @param {Detail} _detail @param {Course} _course @param {AbortSignal} signal */
  async refresh(_detail, _course, signal) {
    const [own, driver] = await Promise.all([get(this._own, signal), get(this._driver, signal)]);
    const key = JSON.stringify([own, driver]);
    if (key === this._drawn) return;
    this._drawn = key;
    const execution = own["execution-config"];
    const parallelism = execution["job-parallelism"];
    const mine = [["restarts", execution["restart-strategy"]], ["parallelism", parallelism < 0 ? NONE : count(parallelism)], ...Object.entries(execution["user-config"])];
    const shared = driver.map((/** @type {{key: string, value: string}} */ each) => [each.key, each.value]);
    this._rows = [];
    fill(this._tables,
      this._table("Of this job", this._own, mine, ""),
      this._table("Of its driver", this._driver, shared, "The driver has not told how it is set, or is not known any more."));
    this._filter();
  }

  close() {}

  /** @param {string} title @param {string} path @param {string[][]} settings @param {string} nothing */
  _table(title, path, settings, nothing) {
    const rows = settings.map(([key = "", value = ""]) => h("tr", {}, h("th", { scope: "row", dir: "auto" }, key), h("td", { dir: "auto" }, value)));
    this._rows.push(...rows);
    return h("section", { class: "card settings" }, h("div", { class: "head" }, h("h2", {}, title), copyMenu(`settings ${title.toLowerCase()}`, path)),
      rows.length > 0 ? h("table", {}, h("thead", { class: "hidden" }, h("tr", {}, h("th", { scope: "col" }, "Setting"), h("th", { scope: "col" }, "Value"))), h("tbody", {}, ...rows)) : h("p", { class: "muted" }, nothing));
  }

  _filter() {
    const wanted = this._search.value.trim().toLowerCase();
    let found = 0;
    for (const row of this._rows) {
      row.hidden = !row.textContent?.toLowerCase().includes(wanted);
      if (!row.hidden) found++;
    }
    say(this._found, wanted ? `${found} of ${this._rows.length} settings` : `${this._rows.length} settings`);
  }
}
