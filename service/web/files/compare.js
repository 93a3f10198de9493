// Two runs beside each other: what has changed, then every figure vertex by vertex, how both were set, and their plans.

import { copyMenu } from "./copy.js";
import { fill, h, say } from "./dom.js";
import { OF_JOB, OF_VERTEX } from "./figures.js";
import { byteRate, bytes, count, duration, moment, msPerSecond, NONE, percent, rate } from "./format.js";
import { badge, empty, ENDED } from "./parts.js";
import { get, getIfThere, RestError } from "./rest.js";
import { toCompare, toJob, toVertex } from "./route.js";

/** @typedef {import("./route.js").Route} Route */
/** @typedef {import("./live.js").View} View */
/** @typedef {import("./format.js").Format} Format */
/** @typedef {import("./dom.js").Child} Child */

/**
 * @typedef {object} Figure
 * @property {string} id
 * @property {string} unit
 * @property {string} basis
 * @property {number | null} before
 * @property {number | null} after
 * @property {number | null} difference
 * @property {number | null} ratio
 * @property {-1 | 0 | 1} direction
 * @property {number | null} floor
 */

/**
 * @typedef {object} Finding
 * @property {string} figure
 * @property {string | null} id-before
 * @property {string | null} id-after
 * @property {string} unit
 * @property {number} before
 * @property {number} after
 * @property {number} difference
 * @property {number | null} ratio
 * @property {number} score
 */

/**
 * @typedef {object} ComparedRun
 * @property {string} jid
 * @property {string} run
 * @property {string} name
 * @property {string} state
 * @property {number} start-time
 * @property {number} end-time
 * @property {number | null} duration
 * @property {number} as-of
 * @property {string} failure
 * @property {string} spark-version
 */

/**
 * @typedef {object} Vertex
 * @property {string | null} id-before
 * @property {string | null} id-after
 * @property {string | null} name-before
 * @property {string | null} name-after
 * @property {"id" | "name" | "operators" | null} rule
 * @property {Figure[]} figures
 * @property {{name: string, before: string | null, after: string | null}[]} operators
 */

/** @typedef {{key: string, before: string | null, after: string | null}} Setting */

/**
 * @typedef {object} Told  The body of /jobs/:jobid/compare.
 * @property {ComparedRun} before
 * @property {ComparedRun} after
 * @property {{"relative-change": number, "left-out": number, entries: Finding[]}} findings
 * @property {Figure[]} figures
 * @property {Vertex[]} vertices
 * @property {Setting[]} configuration
 */

/** @type {Record<string, Format>} */
const UNITS = { count, records: count, "records/s": rate, bytes, "bytes/s": byteRate, ms: duration, "ms/s": msPerSecond, percent };
/** @type {Record<string, string>} */
const WORDS = {
  numRecordsIn: "records in, total",
  numRecordsOut: "records out, total",
  numBytesSpilled: "spilled to disk, total",
  numBytesSpilledPerSecond: "spilled to disk",
  numLateRecordsDropped: "late records dropped, total",
  "numRecordsIn.skew": "skew of records in",
  "batchDuration.avg": "batch duration, mean",
  "batchDuration.p99": "batch duration, p99",
  numberOfCompletedCheckpoints: "batches completed",
  numberOfFailedCheckpoints: "batches failed",
  numRestarts: "restarts",
};
/** @type {Record<string, string>} */
const BASES = { history: "mean of its last 15 minutes", run: "of the whole run", batches: "mean of its last batches", end: "at its end" };
/** @type {Record<string, string>} */
const RULES = {
  name: "Its plan is another in each run; its operators are called the same.",
  operators: "Its plan is another in each run; at least half of its operators are in both.",
};
/** Jobs that one may choose from at once; the search finds the others. */
const CHOICES = 100;
const NAME = 120;
/** A change of less than a tenth of a percent is shown as none. */
const NEARLY = 0.001;

/** @param {string} id */
function label(id) {
  return OF_VERTEX[id]?.label ?? OF_JOB[id]?.label ?? WORDS[id] ?? (id.startsWith("phase.") ? `phase ${id.slice(6)}` : id);
}

/** @param {string} unit @param {number | null} value */
function written(unit, value) {
  return (UNITS[unit] ?? count)(value);
}

/**
 * By how much a figure has changed, in words: its sign says which way.
 *
 * @param {{unit: string, before: number | null, after: number | null, difference: number | null, ratio: number | null}} told
 */
function change({ unit, before, after, difference, ratio }) {
  if (difference === null) return before === null ? (after === null ? NONE : "not known before") : "not known after";
  if (difference === 0) return "=";
  // Spaces that do not break: a sign stays with its number.
  const sign = difference > 0 ? "▲\u00a0+" : "▼\u00a0−";
  if (ratio === null || ratio < 0) return `${sign}${written(unit, Math.abs(difference))}`;
  if (Math.abs(ratio - 1) < NEARLY) return "≈";
  if (ratio >= 10) return `▲\u00a0×${+ratio.toPrecision(3)}`;
  return `${sign}${+Math.abs((ratio - 1) * 100).toPrecision(3)}\u00a0%`;
}

/** @param {number} score */
function verdict(score) {
  return score > 0 ? "worse" : score < 0 ? "better" : "";
}

/** Whether it is a finding, by the rule that the answer tells. @param {Figure} told @param {number} least */
function isFinding({ before, after, difference, floor }, least) {
  if (before === null || after === null || difference === null || floor === null) return false;
  return Math.abs(difference) > floor && Math.abs(difference) >= least * Math.max(Math.abs(before), Math.abs(after));
}

/** A name as it stands in a sentence. @param {string | null} name */
function called(name) {
  const text = name ?? "";
  return h("bdi", {}, text.length > NAME ? `${text.slice(0, NAME)}…` : text);
}

/** @implements {View} */
export class Compare {
  /** @param {Route} route */
  constructor(route) {
    this._job = route.job ?? "";
    this._with = route.with ?? "";
    this._path = `/jobs/${this._job}/compare${this._with ? `?with=${this._with}` : ""}`;
    this._settled = false;
    this._drawn = "";
    /** @type {Map<string, FigureTable>} */
    this._tables = new Map();
    this._runs = [new RunCard("Before"), new RunCard("After")];
    this._chooser = new Chooser(this._job);
    this._missing = h("div");
    this._found = h("div");
    this._figures = h("div");
    this._rest = h("div");
    this._there = h("div", { hidden: true }, h("div", { class: "runs" }, ...this._runs.map(({ element }) => element)), this._found, this._figures, this._rest);
    this.element = h("div", { class: "compare" },
      h("div", { class: "head" }, h("h1", {}, "Compare two runs"), copyMenu("this comparison", this._path), h("a", { href: toJob(this._job) }, "Back to the job")),
      this._chooser.element, this._missing, this._there);
    document.title = "Compare · Streamgauge";
  }

  /** @param {AbortSignal} signal */
  async refresh(signal) {
    await this._chooser.refresh(signal);
    if (this._settled) return;
    /** @type {Told} */
    let told;
    try {
      told = await get(this._path, signal);
    } catch (error) {
      if (!(error instanceof RestError && error.status === 404)) throw error;
      fill(this._missing, empty("There are no two runs to compare", h("p", { dir: "auto" }, error.message.slice(0, 1_000)), h("p", {}, "Choose another run or job above. See ", h("a", { href: "#/" }, "all jobs"), ".")));
      return;
    }
    // What has ended stays as it is.
    this._settled = [told.before, told.after].every(({ state }) => ENDED.has(state));
    fill(this._missing);
    this._there.hidden = false;
    document.title = `Compare ${told.after.name.slice(0, 80)} · Streamgauge`;
    this._chooser.chosen(told.after, told.before);
    this._runs[0]?.show(told.before);
    this._runs[1]?.show(told.after);
    this._show(told);
  }

  /** @param {Told} told */
  _show(told) {
    const words = changes(told, this._job);
    const key = JSON.stringify([told.findings, words.map((each) => each.textContent), told.configuration, told.vertices.map(({ operators, rule }) => [operators, rule])]);
    if (key !== this._drawn) {
      this._drawn = key;
      const left = told.findings["left-out"];
      fill(this._found, h("section", { class: "card", "data-part": "findings" },
        h("div", { class: "head" }, h("h2", {}, "What has changed"), copyMenu("what has changed", this._path)),
        words.length ? h("ol", { class: "findings" }, ...words) : h("p", {}, `Nothing: no figure by ${told.findings["relative-change"] * 100} % or more, no setting, no operator.`),
        left > 0 && h("p", { class: "muted" }, `${count(left)} figures more have changed, each less than these; they are marked below.`),
        h("p", { class: "muted" }, `Of figures that do not grow by themselves: those that differ by ${told.findings["relative-change"] * 100} % of the greater value at least, and by more than their own samples do among themselves. The worst first, the best last.`)));
      fill(this._rest, settings(told.configuration, this._path), plans(told.vertices, this._path));
    }
    const shown = [
      { key: "job", title: "The job", note: "", figures: told.figures, href: "" },
      ...told.vertices.map((vertex) => ({
        key: `${vertex["id-before"]} ${vertex["id-after"]}`,
        title: vertex["name-after"] ?? vertex["name-before"] ?? "",
        note: vertex.rule === null ? (vertex["id-after"] === null ? "Only the run before has this vertex." : "Only the later run has this vertex.") : RULES[vertex.rule] ?? "",
        figures: vertex.figures,
        href: vertex["id-after"] === null ? "" : toVertex(this._job, vertex["id-after"]),
      })),
    ];
    const keys = shown.map((each) => each.key);
    if (keys.join() !== [...this._tables.keys()].join()) {
      this._tables = new Map(shown.map((each) => [each.key, this._tables.get(each.key) ?? new FigureTable(each.key, each.title, each.note, each.href, this._path)]));
      fill(this._figures, ...[...this._tables.values()].map(({ element }) => element));
    }
    for (const { key: table, figures } of shown) this._tables.get(table)?.show(figures, told.findings["relative-change"]);
  }
}

/** What is before, or after. */
class RunCard {
  /** @param {string} word */
  constructor(word) {
    this._shown = "";
    this._body = h("div");
    this.element = h("section", { class: "card", "data-run": word.toLowerCase(), "aria-label": `The run ${word.toLowerCase()}` }, h("h2", {}, word), this._body);
  }

  /** @param {ComparedRun} told */
  show(told) {
    const key = JSON.stringify({ ...told, "as-of": 0, duration: 0 });
    if (key !== this._shown) {
      this._shown = key;
      this._lasted = h("b", { "data-fact": "duration" });
      fill(this._body,
        h("p", { class: "named" }, badge(told.state), " ", h("a", { class: "clamp", dir: "auto", href: toJob(told.run), title: told.name.slice(0, 300) }, told.name)),
        h("div", { class: "facts" },
          fact("run", told.run), fact("started", moment(told["start-time"])),
          h("span", {}, ENDED.has(told.state) ? "lasted " : "for ", this._lasted),
          told["end-time"] >= 0 ? fact("ended", moment(told["end-time"])) : fact("as of", moment(told["as-of"])),
          fact("Spark", told["spark-version"] || NONE)),
        told.failure && h("p", { class: "failed clamp", dir: "auto" }, (told.failure.split("\n")[0] ?? "").slice(0, 500)));
    }
    if (this._lasted) say(this._lasted, duration(told.duration));
  }
}

/** @param {string} word @param {string} value */
function fact(word, value) {
  return h("span", {}, `${word} `, h("b", { dir: "auto", "data-fact": word }, value));
}

/** Which run stands before: one of the same job, or of any other. */
class Chooser {
  /** @param {string} job */
  constructor(job) {
    this._job = job;
    this._asked = false;
    this._shown = "";
    /** @type {{id: string, word: string}[]} */
    this._runs = [];
    /** @type {{id: string, word: string}[]} */
    this._jobs = [];
    this._value = "";
    this._search = h("input", { type: "search", class: "search", placeholder: "Search jobs by name", "aria-label": "Search jobs to compare with", oninput: () => this._fill() });
    this._select = h("select", { "aria-label": "Run to compare with" });
    this.element = h("form", { class: "head chooser", onsubmit: (/** @type {SubmitEvent} */ event) => this._go(event) },
      h("span", {}, "Compare with"), this._select, this._search, h("button", { type: "submit" }, "Compare"));
  }

  /** @param {AbortSignal} signal */
  async refresh(signal) {
    if (this._asked) return;
    const [runs, overview] = await Promise.all([getIfThere(`/jobs/${this._job}/runs`, signal), get("/jobs/overview", signal)]);
    this._asked = true;
    this._runs = (runs?.runs ?? []).map((/** @type {{id: string, state: string, "start-time": number, duration: number}} */ run) => ({
      id: run.id, word: `${moment(run["start-time"])} · ${run.state} · ${duration(run.duration)}`,
    }));
    const own = runs?.jid ?? this._job;
    this._jobs = overview.jobs.filter((/** @type {{jid: string}} */ job) => job.jid !== own).map((/** @type {{jid: string, name: string, state: string}} */ job) => ({
      id: job.jid, word: `${job.name.slice(0, NAME)} · ${job.state}`,
    }));
    this._fill();
  }

  /** Marks the run that is chosen. @param {ComparedRun} after @param {ComparedRun} before */
  chosen(after, before) {
    const known = [...this._runs, ...this._jobs];
    this._value = (known.find(({ id }) => id === before.run) ?? known.find(({ id }) => id === before.jid))?.id ?? "";
    this._runs = this._runs.filter(({ id }) => id !== after.run);
    this._fill();
  }

  _fill() {
    const wanted = this._search.value.trim().toLowerCase();
    const found = this._jobs.filter(({ id, word }) => word.toLowerCase().includes(wanted) || id.startsWith(wanted));
    const shown = found.slice(0, CHOICES);
    const key = JSON.stringify([wanted, shown, this._runs, this._value]);
    if (key === this._shown) return;
    this._shown = key;
    const chosen = wanted ? shown[0]?.id ?? this._value : this._value;
    const option = (/** @type {{id: string, word: string}} */ { id, word }) => h("option", { value: id, selected: id === chosen }, word);
    fill(this._select,
      !chosen && h("option", { value: "" }, "choose a run or a job"),
      this._runs.length > 0 && h("optgroup", { label: "Other runs of this job" }, ...this._runs.map(option)),
      shown.length > 0 && h("optgroup", { label: found.length > shown.length ? `Other jobs, the first ${CHOICES} of ${found.length}` : "Other jobs, their latest run" }, ...shown.map(option)));
  }

  /** @param {SubmitEvent} event */
  _go(event) {
    event.preventDefault();
    if (this._select.value) location.hash = toCompare(this._job, this._select.value);
  }
}

/**
 * What has changed, a sentence each.
 *
 * @param {Told} told @param {string} job
 * @returns {HTMLElement[]}
 */
function changes(told, job) {
  const names = new Map(told.vertices.map((vertex) => [`${vertex["id-before"]} ${vertex["id-after"]}`, vertex]));
  const found = told.findings.entries.map((finding) => {
    const vertex = names.get(`${finding["id-before"]} ${finding["id-after"]}`);
    const place = vertex && finding["id-after"] !== null ? h("a", { href: toVertex(job, finding["id-after"]) }, called(vertex["name-after"])) : null;
    const word = verdict(finding.score);
    return h("li", { class: word, "data-finding": `${finding.figure} ${finding["id-after"] ?? ""}` },
      h("b", {}, label(finding.figure)), place && " of ", place, ": ", written(finding.unit, finding.before), " → ", h("b", {}, written(finding.unit, finding.after)),
      ", ", h("span", { class: "change" }, change(finding)), word && `, ${word}`);
  });
  const { before, after } = told;
  const structure = /** @type {(Child[] | false)[]} */ ([
    before.state !== after.state && [before, after].every(({ state }) => state !== "RUNNING") && [h("b", {}, "state"), ": ", badge(before.state), " → ", badge(after.state)],
    before["spark-version"] !== after["spark-version"] && [h("b", {}, "Spark"), `: ${before["spark-version"]} → ${after["spark-version"]}`],
    ...several(told.vertices.filter((vertex) => vertex["id-before"] === null), "is new", "are new"),
    ...several(told.vertices.filter((vertex) => vertex["id-after"] === null), "is gone", "are gone"),
    ...several(told.vertices.filter((vertex) => vertex.operators.length > 0), "has other operators", "have other operators"),
    told.configuration.length > 0 && [h("b", {}, told.configuration.length === 1 ? "1 setting differs" : `${count(told.configuration.length)} settings differ`), ": ", called(told.configuration.slice(0, 5).map(({ key }) => key).join(", ")), told.configuration.length > 5 && " …"],
  ]);
  const [ended, ...rest] = structure.map((words) => words && h("li", { "data-finding": "structure" }, ...words));
  // How it has ended comes before how it went, what that may come from behind.
  return [ended, ...found, ...rest].filter((each) => each instanceof HTMLElement);
}

/** @param {Vertex[]} vertices @param {string} one @param {string} many @returns {Child[][]} */
function several(vertices, one, many) {
  if (vertices.length === 0) return [];
  const first = vertices[0];
  return [[h("b", {}, vertices.length === 1 ? `1 vertex ${one}` : `${count(vertices.length)} vertices ${many}`), ": ", called(first?.["name-after"] ?? first?.["name-before"] ?? ""), vertices.length > 1 && " …"]];
}

/** The figures of the job or of a vertex; its lines stay the same elements. */
class FigureTable {
  /** @param {string} key @param {string} title @param {string} note @param {string} href @param {string} path */
  constructor(key, title, note, href, path) {
    /** @type {Map<string, HTMLElement[]>} */
    this._rows = new Map();
    this._body = h("tbody");
    const short = title.slice(0, NAME);
    this.element = h("section", { class: "card", "data-compared": key },
      h("div", { class: "head" }, h("h2", { class: "clamp", dir: "auto" }, href ? h("a", { href }, title) : title), copyMenu(`the figures of ${short}`, path)),
      note && h("p", { class: "muted" }, note),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Figures of ${short}` },
        h("table", {},
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Figure"), ...["Before", "After", "Change"].map((word) => h("th", { scope: "col", class: "number" }, word)), h("th", { scope: "col", class: "wide" }, "How it was come by"))),
          this._body)));
  }

  /** @param {Figure[]} figures @param {number} least */
  show(figures, least) {
    for (const told of figures) {
      let cells = this._rows.get(told.id);
      if (!cells) {
        cells = ["before", "after", "change"].map((id) => h("td", { class: "number", "data-figure": id }));
        cells.push(h("td", { class: "wide muted" }));
        this._rows.set(told.id, cells);
        this._body.append(h("tr", { "data-id": told.id }, h("th", { scope: "row" }, label(told.id)), ...cells));
      }
      const word = isFinding(told, least) ? verdict((told.difference ?? 0) * told.direction) : "";
      const words = [written(told.unit, told.before), written(told.unit, told.after), `${change(told)}${word && ` ${word}`}`, BASES[told.basis] ?? told.basis];
      cells.forEach((cell, place) => say(cell, words[place] ?? NONE));
      cells[2]?.classList.toggle("worse", word === "worse");
      cells[2]?.classList.toggle("better", word === "better");
    }
  }
}

/** @param {Setting[]} told @param {string} path */
function settings(told, path) {
  return told.length > 0 && h("section", { class: "card settings", "data-part": "settings" },
    h("div", { class: "head" }, h("h2", {}, "Settings that differ"), copyMenu("settings that differ", path)),
    h("table", {},
      h("thead", {}, h("tr", {}, ...["Setting", "Before", "After"].map((word) => h("th", { scope: "col" }, word)))),
      h("tbody", {}, ...told.map(({ key, before, after }) => h("tr", {}, h("th", { scope: "row", dir: "auto" }, key), ...[before, after].map((value) => h("td", { dir: "auto" }, value ?? NONE)))))));
}

/** @param {Vertex[]} vertices @param {string} path */
function plans(vertices, path) {
  const changed = vertices.filter(({ operators }) => operators.length > 0);
  return changed.length > 0 && h("section", { class: "card plans", "data-part": "plans" },
    h("div", { class: "head" }, h("h2", {}, "Operators that differ"), copyMenu("operators that differ", path)),
    ...changed.map((vertex) => h("details", { open: true },
      h("summary", {}, called(vertex["name-after"])),
      h("ul", {}, ...vertex.operators.map(({ name, before, after }) => h("li", {},
        h("b", { dir: "auto" }, name), before === null ? " is new" : after === null ? " is gone" : " is another",
        before !== null && h("pre", { class: "before", tabindex: "0", dir: "auto", "aria-label": "before" }, `− ${before}`),
        after !== null && h("pre", { class: "after", tabindex: "0", dir: "auto", "aria-label": "after" }, `+ ${after}`)))))));
}
