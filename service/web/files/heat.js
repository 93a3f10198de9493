// How long it takes to come here: percentiles, distributions, and a heat map over time.

import { copyMenu } from "./copy.js";
import { fill, h, s, say } from "./dom.js";
import { clock, count, duration } from "./format.js";
import { asked } from "./history.js";
import { empty } from "./parts.js";
import { get } from "./rest.js";

const HEAT = "latency-heat";
const KEPT_MS = 15 * 60_000;
/** Longer than this no running job is without a sample. */
const SILENT_MS = 30_000;
const MINUTE_MS = 60_000;
/** Past this nobody knew anything: a cell is not drawn wider. */
const GAP_MS = 12_500;

/**
 * How a time is distributed; see service/flink/distributions.py.
 *
 * @typedef {Record<string, any> & {count: number, buckets: number[], hdr: string}} Distribution
 */

/** @typedef {import("./vertex.js").Tab} Tab */
/** @typedef {{group: string, words: string, told: Distribution, promql?: string}} Line */

/** A table that may be wider than its place, and can be scrolled by keys then. @param {string} label @param {HTMLElement} table */
export function scrolling(label, table) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

/** In words, which times a bucket has. @param {number[]} bounds @param {number} place */
function range(bounds, place) {
  const [from, to] = [bounds[place - 1], bounds[place]];
  if (to === undefined) return `more than ${duration(from)}`;
  return from === undefined ? `up to ${duration(to)}` : `${duration(from)} to ${duration(to)}`;
}

/**
 * A distribution as bars, one for each bucket: logarithmic along, as high as many there are.
 *
 * @param {Distribution} told
 * @param {number[]} bounds
 */
export function bars(told, bounds) {
  const [width, height, step] = [told.buckets.length * 4, 24, 4];
  const most = Math.max(...told.buckets, 1);
  const top = told.buckets.indexOf(most);
  return s("svg", { class: "bars", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": told.count ? `most are ${range(bounds, top)}` : "none" },
    s("path", { class: "base", d: `M0 ${height - 0.5}H${width}` }),
    ...told.buckets.map((many, place) => {
      // One of a million is still one that is there.
      const high = many ? Math.max((many / most) * (height - 2), 1.5) : 0;
      return high > 0 && s("rect", { x: place * step, y: height - high, width: step - 1, height: high }, s("title", {}, `${range(bounds, place)}: ${count(many)}`));
    }));
}

/** Key of a percentile in a body → words. */
const PERCENTILES = [["min-ms", "least"], ["p50-ms", "p50"], ["p75-ms", "p75"], ["p90-ms", "p90"], ["p95-ms", "p95"], ["p99-ms", "p99"], ["p999-ms", "p99.9"], ["max-ms", "most"]];

/** Distributions of the run, a line each, in groups. */
export class DistributionTable {
  /** @param {string} title @param {string} path */
  constructor(title, path) {
    this._path = path;
    /** @type {Map<string, {count: Element, cells: Element[], bars: Element, hdr: string}>} */
    this._lines = new Map();
    this._shown = "";
    this._body = h("tbody");
    this.element = h("section", { class: "card", hidden: true },
      h("div", { class: "between" }, h("h3", {}, title), copyMenu(title, path)),
      scrolling(title, h("table", { class: "dense" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "hidden" }, "Part")), h("th", { scope: "col", class: "number" }, "count"),
          ...PERCENTILES.map(([, words]) => h("th", { scope: "col", class: "number" }, words)),
          h("th", { scope: "col" }, "1 ms–68 min"))),
        this._body)));
  }

  /** @param {number[]} bounds @param {Line[]} lines */
  show(bounds, lines) {
    this.element.hidden = lines.length === 0;
    const keys = lines.map(({ group, words }) => `${group}\n${words}`).join("\n\n");
    if (keys !== this._shown) this._make(lines, keys);
    for (const { group, words, told } of lines) {
      const line = this._lines.get(`${group}\n${words}`);
      if (!line || line.hdr === told.hdr) continue;
      line.hdr = told.hdr;
      say(line.count, count(told.count));
      PERCENTILES.forEach(([key = ""], place) => {
        const cell = line.cells[place];
        if (cell) say(cell, duration(told[key]));
      });
      fill(line.bars, bars(told, bounds));
    }
  }

  /** @param {Line[]} lines @param {string} keys */
  _make(lines, keys) {
    this._shown = keys;
    this._lines.clear();
    /** @type {HTMLElement[]} */
    const rows = [];
    lines.forEach(({ group, words, promql }, place) => {
      if (group !== lines[place - 1]?.group) {
        rows.push(h("tr", { class: "group" }, h("th", { scope: "colgroup", colspan: PERCENTILES.length + 3 }, h("span", { class: "clamp", dir: "auto", title: group.slice(0, 300) }, group))));
      }
      const line = { count: h("td", { class: "number" }), cells: PERCENTILES.map(([key]) => h("td", { class: "number", "data-figure": key })), bars: h("td"), hdr: "" };
      this._lines.set(`${group}\n${words}`, line);
      rows.push(h("tr", {}, h("th", { scope: "row" }, copyMenu(`${words}, ${group.slice(0, 80)}`, this._path, promql), words), line.count, ...line.cells, line.bars));
    });
    fill(this._body, ...rows);
  }
}

/** Latencies from the sources to the operators of a vertex. @implements {Tab} */
export class Latency {
  /** @param {string} jid @param {string} id */
  constructor(jid, id) {
    this._select = `job_id="${jid}",vertex_id="${id}"`;
    this._path = `/jobs/${jid}/vertices/${id}/latency`;
    this._table = new DistributionTable("From the sources to here, in this run", this._path);
    this._map = new HeatMap(`/jobs/${jid}/vertices/${id}/history`);
    this._off = empty("This job emits no latency markers",
      h("p", {}, "Markers are on unless somebody switched them off. Set ", h("code", {}, "spark.streamgauge.latency_interval_ms"), " to more than 0 (2000 is the default), and start the query anew; docs/settings.md has the setting."));
    this._none = empty("No marker has come here yet",
      h("p", {}, "A marker travels with the micro-batch that follows it. One needs a batch with new data: wait for the next, or look whether the query has input at all."));
    this.element = h("div");
  }

  /** @param {AbortSignal} signal */
  async refresh(signal) {
    const [told, now] = await Promise.all([get(this._path, signal), this._map.update(signal)]);
    const some = told.paths.some((/** @type {any} */ path) => path.markers > 0);
    const shown = some || this._map.some ? [this._map.element, this._table.element] : [told.granularity === null ? this._off : this._none];
    if (shown[0]?.parentNode !== this.element) fill(this.element, ...shown);
    this._map.show(now);
    this._table.show(told["bounds-ms"], this._lines(told.paths));
  }

  /** @param {any[]} paths @returns {Line[]} */
  _lines(paths) {
    // Operators that see the same markers tell the same: they are told together.
    /** @type {Map<string, any[]>} */
    const together = new Map();
    for (const path of paths) {
      const key = [path["source-id"], path.latency.hdr, path.queueing.hdr].join(" ");
      together.set(key, [...(together.get(key) ?? []), path]);
    }
    return [...together.values()].flatMap((same) => {
      const [path] = same;
      const names = same.map((each) => each["operator-name"]);
      const group = `${path["source-name"]} → ${names.length > 3 ? `${names[0]} … ${names.at(-1)} (${names.length} operators)` : names.join(", ")}`;
      return /** @type {const} */ ([["latency", "latency", "latency"], ["queueing", "of it queueing", "latency_queueing"], ["processing", "of it processing", "latency_processing"]]).map(([part, words, family]) => ({
        group,
        words,
        told: path[part],
        promql: p99(family, `${this._select},source_id="${path["source-id"]}",operator_name="${label(path["operator-name"])}"`),
      }));
    });
  }

  close() {
    this._map.close();
  }
}

/** What to ask Prometheus for the 99th percentile of the last minutes, ms. @param {string} family @param {string} selector */
export function p99(family, selector) {
  return `1000 * histogram_quantile(0.99, sum by (le) (rate(streamgauge_${family}_seconds_bucket{${selector}}[5m])))`;
}

/** A name as it stands between the quotes of a selector. @param {string} name */
export function label(name) {
  return name.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

const LEFT = 64;
const BOTTOM = 20;
const CELL_HEIGHT = 14;

/** How many markers took how long, over time: drawn on a canvas, told in a table. */
export class HeatMap {
  /** @param {string} path  Of the vertex' history. */
  constructor(path) {
    this._path = path;
    /** @type {number[]} */
    this._times = [];
    /** @type {number[][]} */
    this._counts = [];
    /** @type {number[]} */
    this._bounds = [];
    this._now = 0;
    this._drawnAt = "";
    this._canvas = h("canvas", { role: "img", onpointermove: (event) => this._point(event), onpointerdown: (event) => this._point(event), onpointerleave: () => (this._tip.hidden = true) });
    this._tip = h("div", { class: "tip", hidden: true });
    this._place = h("div", { class: "heat" }, this._canvas, this._tip);
    this._words = h("p", { class: "muted" });
    this._head = h("tr");
    this._rows = h("tbody");
    this._table = h("details", { ontoggle: () => this._tell() },
      h("summary", {}, "The same as a table, minute by minute"),
      scrolling("Latency minute by minute", h("table", { class: "dense" }, h("thead", {}, this._head), this._rows)));
    this.element = h("section", { class: "card" },
      h("div", { class: "between" }, h("h3", {}, "Latency over time: how many markers took how long"), copyMenu("the heat map of latency", asked(path, [HEAT]))),
      this._place, this._words, this._table);
    this._over = new AbortController();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this._draw(true), { signal: this._over.signal });
    this._resized = new ResizeObserver(() => this._draw(false));
    this._resized.observe(this._place);
  }

  /** Whether there is anything on it. */
  get some() {
    return this._counts.some((row) => row.some((many) => many > 0));
  }

  /** @param {AbortSignal} signal @returns {Promise<number>}  Up to when it is shown: what the service says is now, or the last moment that is known. */
  async update(signal) {
    const body = await get(asked(this._path, [HEAT], this._times.at(-1)), signal);
    const told = body[HEAT];
    if (told) {
      this._bounds = told["bounds-ms"];
      told.timestamps.forEach((/** @type {number} */ time, /** @type {number} */ place) => {
        if (time <= (this._times.at(-1) ?? 0)) return;
        this._times.push(time);
        this._counts.push(told.counts[place]);
      });
    }
    // Of what has ended, or is silent, the last minutes are shown whenever it is looked at.
    const last = this._times.at(-1) ?? body.now;
    const now = body.now - last > SILENT_MS ? last : body.now;
    const old = this._times.findIndex((time) => time >= now - KEPT_MS);
    const drop = old < 0 ? this._times.length : old;
    this._times.splice(0, drop);
    this._counts.splice(0, drop);
    return now;
  }

  /** @param {number} now */
  show(now) {
    this._now = now;
    this._draw(true);
    this._tell();
  }

  close() {
    this._over.abort();
    this._resized.disconnect();
  }

  /** First and last bucket that is shown: a little more than has anything in it. @returns {[number, number]} */
  _range() {
    const used = this._bounds.map((_, place) => place).concat(this._bounds.length).filter((place) => this._counts.some((row) => (row[place] ?? 0) > 0));
    return [Math.max((used[0] ?? 8) - 1, 0), Math.min((used.at(-1) ?? 12) + 1, this._bounds.length)];
  }

  _layout() {
    const [low, high] = this._range();
    const rows = high - low + 1;
    const cell = Math.max(CELL_HEIGHT, Math.floor(140 / rows));
    return { low, high, cell, width: Math.max(this._place.clientWidth, 160), height: rows * cell + BOTTOM };
  }

  /** @param {number} time @param {number} width */
  _x(time, width) {
    return LEFT + ((time - (this._now - KEPT_MS)) / KEPT_MS) * (width - LEFT);
  }

  /** From when a cell is. @param {number} place */
  _from(place) {
    const time = this._times[place] ?? 0;
    return Math.max(this._times[place - 1] ?? time - 5_000, time - GAP_MS, this._now - KEPT_MS);
  }

  /** @param {boolean} anyway */
  _draw(anyway) {
    if (!this._place.isConnected || this._bounds.length === 0) return;
    const { low, high, cell, width, height } = this._layout();
    const ratio = devicePixelRatio || 1;
    const size = `${width} ${height} ${ratio}`;
    if (!anyway && size === this._drawnAt) return;
    if (size !== this._drawnAt) {
      this._drawnAt = size;
      this._canvas.width = Math.round(width * ratio);
      this._canvas.height = Math.round(height * ratio);
      this._canvas.style.setProperty("width", `${width}px`);
      this._canvas.style.setProperty("height", `${height}px`);
    }
    const context = this._canvas.getContext("2d");
    if (!context) return;
    const theme = getComputedStyle(document.documentElement);
    const [heat, line, muted] = ["--heat", "--line", "--muted"].map((name) => theme.getPropertyValue(name).trim());
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui";
    context.textBaseline = "middle";
    context.strokeStyle = line ?? "";
    context.fillStyle = muted ?? "";
    context.lineWidth = 1;
    context.textAlign = "right";
    const every = Math.ceil(16 / cell);
    for (let place = low; place <= high; place += 1) {
      // A bound lies between its bucket and the one above.
      const y = (high - place) * cell;
      const bound = this._bounds[place];
      if ((place - low) % every || bound === undefined || y < 6) continue;
      context.fillText(duration(bound), LEFT - 6, y);
      context.beginPath();
      context.moveTo(LEFT, Math.round(y) + 0.5);
      context.lineTo(width, Math.round(y) + 0.5);
      context.stroke();
    }
    context.textAlign = "center";
    const minutes = width < 420 ? 5 : 3;
    for (let time = Math.ceil((this._now - KEPT_MS) / (minutes * MINUTE_MS)) * minutes * MINUTE_MS; time < this._now; time += minutes * MINUTE_MS) {
      const x = this._x(time, width);
      if (x > LEFT + 16 && x < width - 16) context.fillText(clock(time).slice(0, 5), x, height - BOTTOM / 2 + 2);
    }
    const most = Math.log1p(Math.max(1, ...this._counts.map((row) => Math.max(...row))));
    this._times.forEach((time, place) => {
      const from = this._x(this._from(place), width);
      const wide = Math.max(this._x(time, width) - from, 1);
      const row = this._counts[place] ?? [];
      for (let bucket = low; bucket <= high; bucket += 1) {
        const many = row[bucket] ?? 0;
        if (!many) continue;
        context.fillStyle = `rgb(${heat} / ${(0.2 + 0.8 * (Math.log1p(many) / most)).toFixed(3)})`;
        context.fillRect(from, (high - bucket) * cell, wide + 0.3, cell - 1);
      }
    });
    const latest = this._times.length - 1;
    const row = this._counts[latest] ?? [];
    const top = row.indexOf(Math.max(...row));
    const words = row[top] ? `At ${clock(this._times[latest])} most markers took ${range(this._bounds, top)}.` : "";
    say(this._words, words);
    this._canvas.setAttribute("aria-label", `Heat map of latency over the last 15 minutes, from ${duration(low ? this._bounds[low - 1] : 0)} to ${duration(this._bounds[Math.min(high, this._bounds.length - 1)])}. ${words} The table below has the counts.`);
  }

  /** Says what is under the pointer. @param {PointerEvent} event */
  _point(event) {
    const { low, high, cell, width } = this._layout();
    const bucket = high - Math.floor(event.offsetY / cell);
    const place = this._times.findIndex((time, each) => event.offsetX <= this._x(time, width) && event.offsetX >= this._x(this._from(each), width));
    this._tip.hidden = place < 0 || bucket < low || bucket > high;
    if (this._tip.hidden) return;
    say(this._tip, `${clock(this._times[place])} · ${range(this._bounds, bucket)}: ${count(this._counts[place]?.[bucket] ?? 0)}`);
    const wide = this._tip.offsetWidth;
    this._tip.style.setProperty("left", `${Math.max(0, Math.min(event.offsetX + 12, width - wide))}px`);
    this._tip.style.setProperty("top", `${event.offsetY + 16}px`);
  }

  /** Fills the table, while somebody has it open. */
  _tell() {
    if (!this._table.open || this._bounds.length === 0) return;
    const [low, high] = this._range();
    const places = Array.from({ length: high - low + 1 }, (_, place) => low + place);
    /** @type {Map<number, number[]>} */
    const minutes = new Map();
    this._times.forEach((time, each) => {
      const minute = Math.floor(time / MINUTE_MS) * MINUTE_MS;
      const sums = minutes.get(minute) ?? places.map(() => 0);
      minutes.set(minute, sums.map((sum, place) => sum + (this._counts[each]?.[low + place] ?? 0)));
    });
    fill(this._head, h("th", { scope: "col" }, "Minute"), ...places.map((place) => {
      const bound = this._bounds[place];
      return h("th", { scope: "col", class: "number", title: range(this._bounds, place) }, bound === undefined ? "more" : `≤ ${duration(bound)}`);
    }));
    fill(this._rows, ...[...minutes].reverse().map(([minute, sums]) =>
      h("tr", {}, h("th", { scope: "row" }, clock(minute).slice(0, 5)), ...sums.map((sum) => h("td", { class: "number" }, sum ? count(sum) : "0")))));
  }
}

