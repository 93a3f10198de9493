// The operators of a vertex: what goes in and out, what Spark's own metrics say of each, and their timers.

import { copyMenu } from "./copy.js";
import { fill, h, say } from "./dom.js";
import { bytes, count, duration, NONE, rate } from "./format.js";
import { DistributionTable, label, p99, scrolling } from "./heat.js";
import { empty } from "./parts.js";
import { operators } from "./plan.js";
import { get } from "./rest.js";

/** @typedef {import("./vertex.js").Told} Told */
/** @typedef {import("./vertex.js").Tab} Tab */
/** @typedef {{name: string, type: string, value: string}} Accumulator */
/** @typedef {import("./plan.js").Operator} Operator */

/** Metric, words, format, family of /metrics where it has one. @type {[string, string, import("./format.js").Format, string?][]} */
const FIGURES = [
  ["numRecordsIn", "records in", count, "records_in_total"],
  ["numRecordsOut", "records out", count, "records_out_total"],
  ["numRecordsInPerSecond", "records in, now", rate],
  ["numRecordsOutPerSecond", "records out, now", rate],
];
/** Longest query that is asked at once: names may be long, and servers refuse long lines. */
const QUERY_CHARS = 8_000;
const EXCHANGES = "Exchange";

/** A name as it stands in a metric's id; as `names.filtered` of the hooks. @param {string} name */
function filtered(name) {
  return name.replace(/[ .:,]/g, "_");
}

/**
 * A native metric as Spark's own page would have it, by its unit.
 *
 * @param {Accumulator} told
 * @param {string | undefined} unit
 */
export function native(told, unit) {
  const spread = /^\(min, med, max\): \((.*), (.*), (.*)\)$/.exec(told.value);
  if (spread) return `${spread.slice(1).map((each) => count(Number(each))).join(" / ")} (min / med / max)`;
  const value = Number(told.value);
  if (unit === "bytes") return bytes(value);
  if (unit === "ms") return duration(value);
  return unit === "ns" ? duration(value / 1e6) : count(value);
}

/** @implements {Tab} */
export class Operators {
  /** @param {string} jid @param {string} id */
  constructor(jid, id) {
    this._select = `job_id="${jid}",vertex_id="${id}"`;
    this._path = `/jobs/${jid}/vertices/${id}`;
    this._shown = "";
    /** @type {Card[]} */
    this._cards = [];
    this._nothing = empty("Spark has not told of this vertex' operators yet", h("p", {}, "They come with the first plan of a batch: wait for one, or trigger it."));
    this.element = h("div", { class: "operators" });
  }

  /** @param {AbortSignal} signal @param {Told} told */
  async refresh(signal, told) {
    const [accumulators, ids] = await Promise.all([get(`${this._path}/accumulators`, signal), get(`${this._path}/subtasks/metrics`, signal)]);
    const found = operators(told.name, told.description);
    const there = new Set(ids.map((/** @type {{id: string}} */ each) => each.id));
    const asked = found.flatMap(({ name }) => (name === null ? [] : FIGURES.map(([metric]) => `${filtered(name)}.${metric}`))).filter((id) => there.has(id));
    const sums = await this._sums([...new Set(asked)], signal);
    const groups = grouped(accumulators["user-accumulators"], found.flatMap(({ name }) => name ?? []));
    const extra = [...groups.keys()].filter((name) => !found.some((operator) => operator.name === name));
    const all = [...found, ...extra.map((name) => ({ name, description: "" }))];
    const shown = all.map(({ name }) => name ?? "").join("\n");
    if (all.length === 0) fill(this.element, this._nothing);
    else if (shown !== this._shown) {
      this._cards = all.map((operator) => this._cards.find((card) => card.is(operator)) ?? new Card(operator, this._path, this._select));
      fill(this.element, ...this._cards.map((card) => card.element));
    }
    this._shown = shown;
    all.forEach(({ name }, place) =>
      this._cards[place]?.show(name === null ? undefined : sums, name === null ? [] : groups.get(name) ?? [], accumulators.streamgauge.units));
  }

  /** @param {string[]} ids @param {AbortSignal} signal @returns {Promise<Map<string, number>>} */
  async _sums(ids, signal) {
    /** @type {string[][]} */
    const parts = [];
    let length = QUERY_CHARS;
    for (const id of ids) {
      const word = encodeURIComponent(id);
      length += word.length + 1;
      if (length > QUERY_CHARS) {
        parts.push([]);
        length = word.length;
      }
      parts.at(-1)?.push(word);
    }
    const answers = await Promise.all(parts.map((part) => get(`${this._path}/subtasks/metrics?get=${part.join(",")}&agg=sum`, signal)));
    return new Map(answers.flat().filter((each) => typeof each.sum === "number").map((each) => [each.id, each.sum]));
  }
}

/**
 * Returns native metrics by operator, without its name.
 *
 * @param {Accumulator[]} told
 * @param {string[]} names
 */
function grouped(told, names) {
  // A name may be the beginning of another.
  const longest = [...names, EXCHANGES].sort((one, other) => other.length - one.length);
  /** @type {Map<string, (Accumulator & {metric: string})[]>} */
  const groups = new Map();
  for (const each of told) {
    const name = longest.find((one) => each.name.startsWith(`${one}.`)) ?? each.name.slice(0, Math.max(each.name.lastIndexOf("."), 0));
    groups.set(name, [...(groups.get(name) ?? []), { ...each, metric: each.name.slice(name.length + 1) }]);
  }
  return groups;
}

/** One operator. */
class Card {
  /** @param {Operator} operator @param {string} path @param {string} select */
  constructor({ name, description }, path, select) {
    this._name = name;
    this._description = description;
    this._figures = FIGURES.map(([metric, words, , family]) => {
      const value = h("output", {}, NONE);
      const id = `${filtered(name ?? "")}.${metric}`;
      const query = family ? `sum(streamgauge_operator_${family}{${select},operator_name="${label(name ?? "")}"})` : `sum(rate(streamgauge_operator_${metric === "numRecordsInPerSecond" ? "records_in" : "records_out"}_total{${select},operator_name="${label(name ?? "")}"}[1m]))`;
      return { id, value, element: h("div", { "data-figure": metric }, h("dt", {}, words), h("dd", {}, value, copyMenu(`${words} of ${(name ?? "").slice(0, 80)}`, `${path}/subtasks/metrics?get=${encodeURIComponent(id)}&agg=sum`, query))) };
    });
    this._facts = h("dl", { class: "inline" }, ...this._figures.map((each) => each.element));
    this._metrics = h("dl", { class: "natives" });
    /** @type {Map<string, HTMLElement>} */
    this._cells = new Map();
    const title = name === EXCHANGES ? "Exchanges that it reads or writes" : name ?? (description.split(/[\n(\[]/)[0] || "An operator");
    this.element = h("section", { class: "card operator", "data-operator": name ?? "" },
      h("div", { class: "between" }, h("h3", { class: "clamp", dir: "auto" }, title), copyMenu(`the native metrics of ${title.slice(0, 80)}`, `${path}/accumulators`)),
      description && description !== title && h("pre", { class: "described", tabindex: "0", dir: "auto" }, description),
      this._facts, this._metrics);
  }

  /** @param {Operator} operator */
  is({ name, description }) {
    return name === this._name && description === this._description;
  }

  /** @param {Map<string, number> | undefined} sums @param {(Accumulator & {metric: string})[]} natives @param {Record<string, string>} units */
  show(sums, natives, units) {
    this._figures.forEach(({ id, value, element }, place) => {
      const known = sums?.get(id);
      element.hidden = known === undefined && place > 1;
      say(value, FIGURES[place]?.[2](known) ?? NONE);
    });
    this._facts.hidden = this._name === EXCHANGES || this._name === null;
    for (const told of natives) {
      let cell = this._cells.get(told.metric);
      if (!cell) {
        cell = h("output");
        this._cells.set(told.metric, cell);
        this._metrics.append(h("div", { "data-metric": told.metric }, h("dt", { dir: "auto" }, told.metric), h("dd", {}, cell)));
      }
      say(cell, native(told, units[told.name]));
      const exact = `${told.value} ${units[told.name] ?? ""}`.trim();
      if (cell.title !== exact) cell.title = exact;
    }
    this._metrics.hidden = this._cells.size === 0;
  }
}

/** Key of a body, words, format, family. @type {[string, string, import("./format.js").Format, string?][]} */
const TIMERS = [
  ["pending", "Pending", count, "pending_timers"],
  ["registered", "Registered", count, "registered_timers_total"],
  ["fired", "Fired", count, "fired_timers_total"],
  ["fired-per-second", "Fired, now", rate],
  ["deleted", "Deleted", count, "deleted_timers_total"],
  ["processing-ms", "In callbacks", duration],
];

/** @implements {Tab} */
export class Timers {
  /** @param {string} jid @param {string} id */
  constructor(jid, id) {
    this._path = `/jobs/${jid}/vertices/${id}/timers`;
    const select = (this._select = `job_id="${jid}",vertex_id="${id}"`);
    this._body = h("tbody");
    /** @type {Map<string, HTMLElement[]>} */
    this._rows = new Map();
    this._table = h("section", { class: "card" },
      h("h3", {}, "Timers by operator, in this run"),
      scrolling("Timers", h("table", { class: "dense" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Operator"), ...TIMERS.map(([, words, , family]) =>
          h("th", { scope: "col", class: "number" }, words, copyMenu(`timers: ${words.toLowerCase()}`, this._path, family && `sum by (operator_name) (streamgauge_operator_${family}{${select}})`))))),
        this._body)),
      h("p", { class: "muted" }, "Spark does not tell of its own timers how many fired: a TimerService does (docs/timers.md)."));
    this._lateness = new DistributionTable("How late they fired", this._path);
    this._nothing = empty("No operator of this vertex has timers",
      h("p", {}, "Timers are those of ", h("code", {}, "transformWithState"), ". In Python they are counted, fired ones and how late they were too, where the processor has them of a ", h("code", {}, "streamgauge.TimerService"), ":"),
      h("pre", { tabindex: "0" }, 'self.timers = streamgauge.TimerService("overdue")'),
      h("p", {}, "docs/timers.md shows the rest."));
    this.element = h("div");
  }

  /** @param {AbortSignal} signal */
  async refresh(signal) {
    const told = await get(this._path, signal);
    for (const each of told.operators) {
      let cells = this._rows.get(each["operator-id"]);
      if (!cells) {
        cells = TIMERS.map(([key]) => h("td", { class: "number", "data-figure": key }));
        this._rows.set(each["operator-id"], cells);
        this._body.append(h("tr", {}, h("th", { scope: "row", class: "long" }, h("span", { class: "clamp", dir: "auto" }, each["operator-name"])), ...cells));
      }
      TIMERS.forEach(([key, , format], place) => {
        const cell = cells?.[place];
        if (cell) say(cell, format(each[key]));
      });
    }
    this._lateness.show(told["bounds-ms"], told.operators.filter((/** @type {any} */ each) => each.lateness).map((/** @type {any} */ each) => ({
      group: each["operator-name"], words: "late by", told: each.lateness, promql: p99("operator_timer_lateness", `${this._select},operator_name="${label(each["operator-name"])}"`),
    })));
    const shown = told.operators.length ? [this._table, this._lateness.element] : [this._nothing];
    if (shown[0]?.parentNode !== this.element) fill(this.element, ...shown);
  }
}
