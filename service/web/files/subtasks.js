// The subtasks of a vertex, and the splits that they read: whoever is behind the others shows.

import { copyMenu } from "./copy.js";
import { fill, h, say } from "./dom.js";
import { OF_VERTEX, promql } from "./figures.js";
import { bytes, count, duration, moment, msPerSecond, NONE, percent, rate } from "./format.js";
import { DistributionTable, label, p99, scrolling } from "./heat.js";
import { empty, tile } from "./parts.js";
import { get } from "./rest.js";
import { toVertex } from "./route.js";

/** @typedef {import("./format.js").Format} Format */
/** @typedef {import("./vertex.js").Told} Told */
/** @typedef {import("./vertex.js").Tab} Tab */

/** Metric, words, format, and which figure over time tells it to Prometheus. @type {[string, string, Format, string?][]} */
const SPREAD = [
  ["numRecordsInPerSecond", "records in per second", rate, "numRecordsInPerSecond"],
  ["numRecordsOutPerSecond", "records out per second", rate, "numRecordsOutPerSecond"],
  ["numRecordsIn", "records in", count],
  ["numRecordsOut", "records out", count],
  ["numBytesIn", "bytes in", bytes],
  ["numBytesOut", "bytes out", bytes],
  ["busyTimeMsPerSecond", "busy", msPerSecond, "busyTimeMsPerSecond.max"],
  ["backPressuredTimeMsPerSecond", "back-pressured", msPerSecond, "backPressuredTimeMsPerSecond.max"],
  ["idleTimeMsPerSecond", "idle", msPerSecond],
];
const MADE = /** @type {const} */ (["skew", "min", "avg", "max", "sum"]);
/** From here on skew is told in red: the subtasks are off their mean by half of it. */
const SKEWED_PERCENT = 50;

/**
 * @typedef {object} Row  A subtask of …/vertices/:vertexid.
 * @property {number} subtask
 * @property {string} status
 * @property {number} attempt
 * @property {string} endpoint
 * @property {number} duration
 * @property {Record<string, any>} metrics
 * @property {string} taskmanager-id
 */

/**
 * @typedef {object} Column
 * @property {string} words
 * @property {(row: Row) => number | string | null} value  To sort by; null where not known.
 * @property {(value: any) => string} format
 * @property {boolean} [bar]
 */

/** @param {string} key @returns {(row: Row) => number | null} */
const counted = (key) => (row) => (row.metrics[`${key}-complete`] ? row.metrics[key] : null);

/** @type {Column[]} */
const COLUMNS = [
  { words: "Subtask", value: (row) => row.subtask, format: String },
  { words: "Status", value: (row) => row.status, format: (value) => value.toLowerCase() },
  { words: "Records in", value: counted("read-records"), format: count, bar: true },
  { words: "Records out", value: counted("write-records"), format: count, bar: true },
  { words: "Bytes in", value: counted("read-bytes"), format: bytes },
  { words: "Bytes out", value: counted("write-bytes"), format: bytes },
  { words: "Busy", value: (row) => row.metrics["accumulated-busy-time"], format: duration },
  { words: "Back-pressured", value: (row) => row.metrics["accumulated-backpressured-time"], format: duration },
  { words: "Idle", value: (row) => row.metrics["accumulated-idle-time"], format: duration },
  { words: "Since its task began", value: (row) => (row.duration < 0 ? null : row.duration), format: duration },
  { words: "Attempt", value: (row) => row.attempt, format: String },
  { words: "Executor", value: (row) => (row["taskmanager-id"] === "(unassigned)" ? null : `${row["taskmanager-id"]} · ${row.endpoint}`), format: String },
];
/** Place of a column of times that REST tells as 0 where they are not known → the metric that it is known by. */
const KNOWN_BY = new Map([[6, "accumulateBusyTimeMs"], [7, "accumulateBackPressuredTimeMs"], [8, "accumulateIdleTimeMs"]]);

/** @implements {Tab} */
export class Subtasks {
  /** @param {string} jid @param {string} id */
  constructor(jid, id) {
    this._path = `/jobs/${jid}/vertices/${id}`;
    this._by = 0;
    this._down = false;
    /** @type {Map<number, SubtaskRow>} */
    this._rows = new Map();
    /** @type {Row[]} */
    this._told = [];
    /** @type {number[]} */
    this._order = [];
    this._spread = SPREAD.map(([metric, words, format, figure]) => {
      const cells = MADE.map((made) => h("td", { class: "number", "data-made": made }, NONE));
      const menu = copyMenu(`${words} over all subtasks`, `${this._path}/subtasks/metrics?get=${metric}&agg=${MADE.join(",")}`, figure && promql(OF_VERTEX[figure], jid, id));
      return { metric, format, cells, row: h("tr", { "data-figure": metric }, h("th", { scope: "row" }, menu, words), ...cells) };
    });
    this._heads = COLUMNS.map((column, place) => h("th", { scope: "col", class: place > 1 && place < 11 ? "number" : "" },
      h("button", { type: "button", class: "sort", onclick: () => this._sort(place) }, column.words, h("span", { class: "arrow", "aria-hidden": "true" }))));
    this._body = h("tbody");
    this._note = h("p", { class: "muted" });
    this._nothing = empty("No task of this vertex has run yet", h("p", {}, "Its subtasks are here as soon as a batch has work for them."));
    this._tables = h("div", {},
      h("section", { class: "card" },
        h("h3", {}, "Over all subtasks"),
        scrolling("Figures over all subtasks", h("table", { class: "dense" },
          h("thead", {}, h("tr", {}, ...["Figure", "skew", "least", "mean", "most", "sum"].map((word, place) => h("th", { scope: "col", class: place ? "number" : "" }, word)))),
          h("tbody", {}, ...this._spread.map((each) => each.row))))),
      h("section", { class: "card" },
        h("div", { class: "between" }, h("h3", {}, "Each subtask, in this run"), copyMenu("the subtasks", this._path)),
        scrolling("Subtasks", h("table", { class: "dense subtasks" }, h("thead", {}, h("tr", {}, ...this._heads)), this._body)),
        this._note));
    this.element = h("div");
    this._mark();
  }

  /** @param {AbortSignal} signal @param {Told} told */
  async refresh(signal, told) {
    const [vertex, ids] = await Promise.all([get(this._path, signal), get(`${this._path}/subtasks/metrics`, signal)]);
    const there = new Set(ids.map((/** @type {{id: string}} */ each) => each.id));
    // One that nobody has would leave the answer empty.
    const asked = SPREAD.map(([metric]) => metric).filter((metric) => there.has(metric));
    const answer = asked.length ? await get(`${this._path}/subtasks/metrics?get=${asked.join(",")}&agg=${MADE.join(",")}`, signal) : [];
    const figures = new Map(answer.map((/** @type {{id: string}} */ each) => [each.id, each]));
    for (const { metric, format, cells, row } of this._spread) {
      const one = /** @type {Record<string, any>} */ (figures.get(metric) ?? {});
      row.hidden = !figures.has(metric);
      MADE.forEach((made, place) => {
        const value = typeof one[made] === "number" ? one[made] : null;
        const cell = cells[place];
        if (!cell) return;
        say(cell, made === "skew" ? percent(value) : format(value));
        if (made === "skew") cell.classList.toggle("bad", value !== null && value >= SKEWED_PERCENT && metric !== "idleTimeMsPerSecond");
      });
    }
    this._told = vertex.subtasks;
    const unknown = new Set([...KNOWN_BY].filter(([, metric]) => !there.has(metric)).map(([place]) => place));
    const most = COLUMNS.map((column) => (column.bar ? Math.max(1, ...this._told.map((row) => Number(column.value(row) ?? 0))) : 0));
    for (const row of this._told) {
      let line = this._rows.get(row.subtask);
      if (!line) this._rows.set(row.subtask, (line = new SubtaskRow(row.subtask)));
      line.show(row, unknown, most, row.subtask >= told.parallelism);
    }
    say(this._note, vertex.subtasks.length > told.parallelism ? `Subtasks from ${told.parallelism} on are those of earlier stages, which had more tasks; their counts stay.` : "");
    const shown = this._told.length ? this._tables : this._nothing;
    if (shown.parentNode !== this.element) fill(this.element, shown);
    this._show();
  }

  /** @param {number} place */
  _sort(place) {
    // What is long or much is looked for first; whoever presses again wants the other end.
    this._down = place === this._by ? !this._down : place > 1 && place < 11;
    this._by = place;
    this._mark();
    this._show();
  }

  _mark() {
    this._heads.forEach((head, place) => {
      if (place === this._by) head.setAttribute("aria-sort", this._down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      const arrow = head.querySelector(".arrow");
      if (arrow) say(arrow, place !== this._by ? "" : this._down ? " ▼" : " ▲");
    });
  }

  _show() {
    const column = COLUMNS[this._by];
    if (!column) return;
    const sign = this._down ? -1 : 1;
    const order = this._told
      .map((row) => ({ index: row.subtask, value: column.value(row) }))
      .sort((one, other) => {
        if (one.value === null || other.value === null) return Number(one.value === null) - Number(other.value === null) || one.index - other.index;
        return (one.value < other.value ? -sign : one.value > other.value ? sign : 0) || one.index - other.index;
      })
      .map(({ index }) => index);
    if (order.length === this._order.length && order.every((index, place) => index === this._order[place])) return;
    this._order = order;
    this._body.replaceChildren(...order.flatMap((index) => this._rows.get(index)?.element ?? []));
  }
}

/** A subtask's line; cells are touched where they say something else than before. */
class SubtaskRow {
  /** @param {number} index */
  constructor(index) {
    this._cells = COLUMNS.map((column, place) => h("td", { class: `${place === 11 ? "place" : place > 1 ? "number" : ""}${column.bar ? " barred" : ""}` }));
    /** @type {string[]} */
    this._words = [];
    /** @type {string[]} */
    this._shares = [];
    // Texts stay the same nodes: 200 lines would leave thousands behind with every refresh.
    this._texts = this._cells.map((cell) => cell.appendChild(new Text()));
    this.element = h("tr", { "data-subtask": index }, ...this._cells);
  }

  /** @param {Row} row @param {Set<number>} unknown  Places of columns. @param {number[]} most @param {boolean} past */
  show(row, unknown, most, past) {
    COLUMNS.forEach((column, place) => {
      const [cell, text] = [this._cells[place], this._texts[place]];
      if (!cell || !text) return;
      const value = unknown.has(place) ? null : column.value(row);
      const words = value === null ? NONE : column.format(value);
      if (this._words[place] !== words) {
        this._words[place] = words;
        text.data = words;
        if (place === 11) cell.title = words.slice(0, 300);
      }
      if (!column.bar) return;
      const share = `${((Number(value ?? 0) / (most[place] ?? 1)) * 100).toFixed(1)}%`;
      if (this._shares[place] === share) return;
      this._shares[place] = share;
      cell.style.setProperty("--share", share);
    });
    this.element.classList.toggle("muted", past);
  }
}

/** As many of a tap's splits are shown; the worst come first. */
const SHOWN_SPLITS = 200;
/** A split that is so far behind the leading one is worth a sentence. */
const LAGGING_MS = 10_000;
const SPLIT_COLUMNS = ["Split", "State", "Behind the leading", "At risk", "Lag", "Watermark", "Records"];

/** @implements {Tab} */
export class Splits {
  /** @param {string} jid @param {string} id */
  constructor(jid, id) {
    this._jid = jid;
    this._path = `/jobs/${jid}/vertices/${id}/splits`;
    this._select = `job_id="${jid}",vertex_id="${id}"`;
    const lag = promql(OF_VERTEX["watermarkLag"], jid, id);
    this._tiles = {
      spark: tile("Spark's watermark: the fastest split", this._path, lag),
      sparkLag: tile("lag of Spark's watermark", this._path, lag),
      slowest: tile("watermark of the slowest split", this._path),
      slowestLag: tile("lag of the slowest split", this._path),
    };
    this._words = h("p", {});
    this._upstream = h("p", { class: "muted" });
    this._shownUpstream = "";
    this._taps = h("div");
    /** @type {Map<string, TapTable>} */
    this._tables = new Map();
    this._records = new DistributionTable("How late records were, by their ingest time", this._path);
    this._nothing = empty("No tap watches the splits of this vertex",
      h("p", {}, "A split is a partition of Kafka, or whatever a source reads in parallel. Spark follows the fastest one; which one lags it does not say. A tap does:"),
      h("pre", { tabindex: "0" }, 'rows = streamgauge.tap(rows, "departures", event_time="time", partition="partition", splits=3)'),
      h("p", {}, "Put it behind ", h("code", {}, "readStream"), "; docs/taps.md has its arguments."));
    this.element = h("div", {},
      h("div", { class: "tiles" }, ...Object.values(this._tiles).map((each) => each.element)),
      this._words, this._upstream, this._taps, this._records.element);
  }

  /** @param {AbortSignal} signal */
  async refresh(signal) {
    const told = await get(this._path, signal);
    const { spark, combined, taps } = told;
    this._tiles.spark.set(when(spark));
    this._tiles.sparkLag.set(duration(spark["lag-ms"]));
    // A source has no taps before it: there its own tell which split is the slowest.
    const slowest = [combined, ...taps].filter(known).sort((one, other) => one.watermark - other.watermark)[0] ?? combined;
    this._tiles.slowest.set(when(slowest));
    this._tiles.slowestLag.set(duration(slowest["lag-ms"]));
    const apart = known(spark) && known(slowest) ? spark.watermark - slowest.watermark : null;
    say(this._words, apart === null
      ? ""
      : apart > 0
        ? `The slowest split is ${duration(apart)} behind Spark's watermark, which follows the fastest: where an operator drops late rows, it drops what comes from that split.`
        : "No split is behind Spark's watermark: nothing is dropped for the sake of a faster split.");
    const upstream = combined.taps.map((/** @type {any} */ tap) => `${tap["vertex-id"]} ${tap.name}`).join("\n");
    if (upstream !== this._shownUpstream) {
      this._shownUpstream = upstream;
      fill(this._upstream, ...(combined.taps.length ? ["Made of the taps before this vertex: ", ...combined.taps.flatMap((/** @type {any} */ tap, /** @type {number} */ place) =>
        [place ? ", " : "", h("a", { href: toVertex(this._jid, tap["vertex-id"], "splits"), title: tap["vertex-name"].slice(0, 300) }, h("bdi", { class: "short" }, tap.name))]), "."] : []));
    }
    for (const tap of taps) {
      let table = this._tables.get(tap.name);
      if (!table) {
        this._tables.set(tap.name, (table = new TapTable(tap, this._path)));
        this._taps.append(table.element);
      }
      table.show(tap);
    }
    const names = new Set(taps.map((/** @type {any} */ tap) => tap.name));
    for (const [name, table] of this._tables) {
      if (names.has(name)) continue;
      table.element.remove();
      this._tables.delete(name);
    }
    this._records.show(told["bounds-ms"], told.records.flatMap((/** @type {any} */ each) => [
      { group: each["operator-name"], words: "to the batch's end", told: each.latency, promql: p99("tap_record_latency", this._selector(each)) },
      { group: each["operator-name"], words: "of it, to the trigger", told: each.queueing, promql: p99("tap_record_queueing", this._selector(each)) },
    ]).filter((/** @type {any} */ each) => each.told));
    const nothing = taps.length === 0 && combined.taps.length === 0 && told.records.length === 0;
    if (nothing && !this._nothing.isConnected) this.element.append(this._nothing);
    else if (!nothing) this._nothing.remove();
  }

  /** @param {Record<string, any>} told  Of an operator. */
  _selector(told) {
    return `${this._select},operator_name="${label(told["operator-name"])}"`;
  }
}

/** @param {{watermark: number | null, finished: boolean}} told */
function known(told) {
  return told.watermark !== null && !told.finished;
}

/** @param {{watermark: number | null, finished: boolean}} told */
function when(told) {
  return told.finished ? "end of input" : moment(told.watermark);
}

/** A tap with its splits, the worst first. */
class TapTable {
  /** @param {any} tap @param {string} path */
  constructor(tap, path) {
    this._facts = h("p", { class: "muted" });
    this._worst = h("p", {});
    this._body = h("tbody");
    this._more = h("p", { class: "muted" });
    /** @type {HTMLTableCellElement[][]} */
    this._lines = [];
    this.element = h("section", { class: "card", "data-tap": tap.name },
      h("div", { class: "between" }, h("h3", { class: "clamp" }, "Tap ", h("bdi", {}, tap.name)), copyMenu(`the splits of tap ${tap.name.slice(0, 80)}`, path)),
      this._facts, this._worst,
      scrolling(`Splits of tap ${tap.name.slice(0, 80)}`, h("table", { class: "dense" },
        h("thead", {}, h("tr", {}, ...SPLIT_COLUMNS.map((word, place) => h("th", { scope: "col", class: place > 1 ? "number" : "" }, word)))),
        this._body)),
      this._more);
  }

  /** @param {any} tap */
  show(tap) {
    say(this._facts, [
      `watermark ${when(tap)}, lag ${duration(tap["lag-ms"])}`,
      tap["max-out-of-orderness-ms"] ? `${duration(tap["max-out-of-orderness-ms"])} out of order at most` : "",
      tap["idleness-ms"] === null ? "no split ever counts as idle" : `idle after ${duration(tap["idleness-ms"])} without records`,
      tap["unwatched-records"] ? `${count(tap["unwatched-records"])} records of splits that are not watched: give it more splits` : "",
    ].filter(Boolean).join(" · "));
    const splits = tap.splits.slice(0, SHOWN_SPLITS);
    say(this._worst, sentence(tap, splits.find((/** @type {any} */ split) => !split.idle)));
    splits.forEach((/** @type {any} */ split, /** @type {number} */ place) => {
      let line = this._lines[place];
      if (!line) {
        this._lines[place] = line = SPLIT_COLUMNS.map((_, column) => h("td", { class: column > 1 ? "number" : column ? "" : "split", dir: column ? null : "auto" }));
        this._body.append(h("tr", {}, ...line));
      }
      const words = [
        split.id || "all of the stream",
        split.idle === null ? NONE : split.idle ? "idle" : split["drift-ms"] >= LAGGING_MS ? "lags" : "active",
        duration(split["drift-ms"]), count(split["records-at-risk"]), duration(split["lag-ms"]), when(split), count(split.records),
      ];
      words.forEach((word, column) => line?.[column] && say(line[column], word));
      line[3]?.classList.toggle("bad", split["records-at-risk"] > 0);
      line[1]?.classList.toggle("bad", !split.idle && split["drift-ms"] >= LAGGING_MS);
    });
    for (const line of this._lines.splice(splits.length)) line[0]?.parentElement?.remove();
    say(this._more, tap.splits.length > SHOWN_SPLITS ? `${tap.splits.length - SHOWN_SPLITS} more, which drift less.` : "");
  }
}

/** What the split that drifts most, and idle ones, mean. @param {any} tap @param {any} worst */
function sentence(tap, worst) {
  const idle = tap.splits.filter((/** @type {any} */ split) => split.idle).length;
  const drift = worst?.["drift-ms"];
  const name = worst?.id ? `Split ${worst.id.slice(0, 80)}` : "The slowest split";
  return [
    drift >= LAGGING_MS
      ? `${name} is ${duration(drift)} behind the leading one${worst["records-at-risk"] ? `; ${count(worst["records-at-risk"])} of its records were behind Spark's watermark, and are lost where an operator drops late rows` : ""}.`
      : "",
    idle ? `${idle === 1 ? "One split is" : `${idle} splits are`} idle: without records for so long that no watermark waits for ${idle === 1 ? "it" : "them"}. What comes from there later may be late.` : "",
  ].filter(Boolean).join(" ");
}
