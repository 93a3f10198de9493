// All jobs: those that run with what matters of each, those that have ended apart.

import { respark } from "./charts.js";
import { copyMenu } from "./copy.js";
import { fill, h, say } from "./dom.js";
import { OF_JOB } from "./figures.js";
import { duration, moment, NONE } from "./format.js";
import { Course } from "./history.js";
import { badge, empty, ENDED } from "./parts.js";
import { get } from "./rest.js";
import { toJob } from "./route.js";

/** Figure and whether it is left out where there is little room. @type {[string, boolean][]} */
const COLUMNS = [
  ["numRecordsInPerSecond", false],
  ["numRecordsOutPerSecond", true],
  ["watermarkLag", true],
  ["backlogRows", true],
  ["latency.p99", false],
  ["backPressuredTimeMsPerSecond.max", false],
];
const ASKED = COLUMNS.map(([id]) => id);
const HISTORY = "/jobs/history";
/** Ended jobs that are shown at once; the search looks at all of them. */
const SHOWN = 100;
/** A driver that has been silent for longer is not coming back: the job is told with those that have ended. */
const SILENT_MS = 3_600_000;
/** More than this share of a second held up is told in red, as Flink calls it high. */
const PRESSED_MS = 500;

const ATTACH = `import streamgauge
streamgauge.attach(spark, url="${location.origin}")`;

/** @typedef {import("./live.js").View} View */

/**
 * @typedef {object} Job  Of /jobs/overview.
 * @property {string} jid
 * @property {string} name
 * @property {string} jobType
 * @property {string} state
 * @property {number} start-time
 * @property {number} end-time
 * @property {number} duration
 * @property {number} last-modification
 */

/** @implements {View} */
export class Jobs {
  constructor() {
    document.title = "Streamgauge";
    /** @type {Map<string, Course>} */
    this._courses = new Map();
    /** @type {Map<string, Row>} */
    this._rows = new Map();
    /** @type {Job[]} */
    this._jobs = [];
    this._now = 0;
    this._shown = SHOWN;
    /** The ended jobs that stand there, by what is shown of them. */
    this._listed = "";
    this._more = h("button", { type: "button", onclick: () => this._upTo(this._shown + SHOWN) });
    this._search = h("input", { type: "search", class: "search", placeholder: "Search by name or id", "aria-label": "Search jobs", oninput: () => this._upTo(SHOWN) });
    this._running = h("tbody");
    this._ended = h("tbody");
    this._body = h("div");
    const head = COLUMNS.map(([id, wide]) =>
      h("th", { scope: "col", class: `number${wide ? " wide" : ""}` }, OF_JOB[id]?.label, copyMenu(`${OF_JOB[id]?.label} of all jobs`, `${HISTORY}?get=${id}`, OF_JOB[id]?.promql?.("").replace("max(", "max by (job_name) (").replace("sum(", "sum by (job_name) (").replace("{}", ""))),
    );
    this._runningTable = h("section", { class: "card" },
      h("h2", {}, "Running"),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Running jobs" },
        h("table", {},
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "State"), h("th", { scope: "col" }, "Job"), h("th", { scope: "col", class: "number wide" }, "Up"), ...head, h("th", { scope: "col", class: "wide" }, "Records in, 15 min"))),
          this._running)));
    this._endedTable = h("section", { class: "card" },
      h("h2", {}, "Ended"),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ended jobs" },
        h("table", {},
          h("thead", {}, h("tr", {}, ...["State", "Job", "Started", "Ended", "Lasted"].map((word) => h("th", { scope: "col", class: { Started: "number wide", Ended: "number", Lasted: "number wide" }[word] ?? "" }, word)))),
          this._ended)),
      this._more);
    this.element = h("div", {}, h("div", { class: "head" }, h("h1", {}, "Jobs"), this._search), this._body);
  }

  /** @param {AbortSignal} signal */
  async refresh(signal) {
    const last = Math.max(-1, ...[...this._courses.values()].map((course) => course.last ?? -1));
    const [overview, history] = await Promise.all([
      get("/jobs/overview", signal),
      get(`${HISTORY}?get=${ASKED.join(",")}${last >= 0 ? `&since=${last}` : ""}`, signal),
    ]);
    for (const told of history.jobs) {
      const course = this._courses.get(told.id) ?? new Course();
      this._courses.set(told.id, course);
      course.add(told);
    }
    this._jobs = overview.jobs;
    this._now = history.now;
    const there = new Set(this._jobs.map((job) => job.jid));
    for (const jid of [...this._courses.keys()]) if (!there.has(jid)) this._courses.delete(jid);
    this._show();
  }

  /** @param {number} shown */
  _upTo(shown) {
    this._shown = shown;
    this._show();
  }

  _show() {
    if (this._jobs.length === 0) {
      fill(this._body, empty("No job has told of itself yet",
        h("p", {}, "Start a Spark job with these two lines in it, and it is here within seconds:"),
        h("pre", { tabindex: "0" }, ATTACH),
        h("p", {}, "Or, without a change to it: ", h("code", {}, "streamgauge run -- job.py"), ". To see how it looks: ", h("code", {}, "make demo"), ".")));
      return;
    }
    const wanted = this._search.value.trim().toLowerCase();
    const found = this._jobs.filter((job) => job.name.toLowerCase().includes(wanted) || job.jid.startsWith(wanted));
    const running = found.filter((job) => !this._hasEnded(job));
    const ended = found.filter((job) => this._hasEnded(job)).sort((one, other) => endOf(other) - endOf(one));
    fill(this._running, ...running.map((job) => this._row(job).element));
    const listed = ended.slice(0, this._shown);
    // What has ended stays as it is: a thousand of them are not drawn anew every five seconds.
    const key = listed.map((job) => `${job.jid} ${job.state} ${endOf(job)} ${job.name}`).join("\n");
    if (key !== this._listed) fill(this._ended, ...listed.map((job) => this._row(job).element));
    this._listed = key;
    this._more.hidden = listed.length === ended.length;
    say(this._more, `Show ${Math.min(SHOWN, ended.length - listed.length)} more of ${ended.length}`);
    if (found.length === 0) fill(this._body, empty("No job is called so", h("p", {}, "The search looks for a part of the name, or the beginning of the id.")));
    else this._place(running.length > 0, ended.length > 0);
    const kept = new Set(this._jobs.map((job) => job.jid));
    for (const jid of [...this._rows.keys()]) if (!kept.has(jid)) this._rows.delete(jid);
  }

  /** Puts in the tables that there are, if others are there. @param {boolean} running @param {boolean} ended */
  _place(running, ended) {
    const tables = [...(running ? [this._runningTable] : []), ...(ended ? [this._endedTable] : [])];
    if (tables.length !== this._body.children.length || tables.some((table, place) => this._body.children[place] !== table)) fill(this._body, ...tables);
  }

  /** @param {Job} job */
  _hasEnded(job) {
    return ENDED.has(job.state) || (job.state === "SUSPENDED" && this._now - job["last-modification"] > SILENT_MS);
  }

  /** @param {Job} job */
  _row(job) {
    let row = this._rows.get(job.jid);
    const ended = this._hasEnded(job);
    if (!row || row.ended !== ended) {
      row = new Row(job, ended);
      this._rows.set(job.jid, row);
    }
    row.show(job, this._courses.get(job.jid));
    return row;
  }
}

/** When a job ended, or fell silent for good. @param {Job} job */
function endOf(job) {
  return ENDED.has(job.state) ? job["end-time"] : job["last-modification"];
}

/** A job's line, which stays the same element as long as the job runs: what is focused stays so. */
class Row {
  /** @param {Job} job @param {boolean} ended */
  constructor(job, ended) {
    this.ended = ended;
    this._state = h("td");
    this._link = h("a", { href: toJob(job.jid) });
    this._cells = this.ended
      ? ["started", "ended", "lasted"].map((id) => h("td", { class: id === "ended" ? "number" : "number wide", "data-figure": id }))
      : ["up", ...ASKED].map((id) => h("td", { class: COLUMNS.some(([each, wide]) => each === id && !wide) ? "number" : "number wide", "data-figure": id }));
    this._spark = h("td", { class: "wide" });
    this.element = h("tr", { "data-job": job.jid }, this._state, h("td", { class: "name" }, h("span", { class: "clamp", dir: "auto" }, this._link)), ...this._cells, !this.ended && this._spark);
    this._shown = "";
  }

  /** @param {Job} job @param {Course | undefined} course */
  show(job, course) {
    if (this._shown !== job.state) {
      fill(this._state, badge(job.state));
      this._shown = job.state;
    }
    say(this._link, job.name);
    this._link.title = job.name.slice(0, 300);
    const words = this.ended
      ? [moment(job["start-time"]), moment(endOf(job)), duration(job["start-time"] < 0 ? null : endOf(job) - job["start-time"])]
      : [duration(job.duration), ...ASKED.map((id) => (job.state === "SUSPENDED" ? NONE : OF_JOB[id]?.format(course?.latest(id)) ?? NONE))];
    this._cells.forEach((cell, place) => say(cell, words[place] ?? NONE));
    if (this.ended) return;
    const pressed = course?.latest("backPressuredTimeMsPerSecond.max") ?? 0;
    this._cells.at(-1)?.classList.toggle("bad", pressed > PRESSED_MS);
    respark(this._spark, course?.of("numRecordsInPerSecond") ?? []);
  }
}
