// Charts over time, drawn by uPlot; colours come from the theme whenever one is drawn.

import { copyMenu } from "./copy.js";
import { fill, h, s } from "./dom.js";
import { promql } from "./figures.js";
import { asked } from "./history.js";

/** @typedef {import("./figures.js").Figure} Figure */
/** @typedef {import("./history.js").Course} Course */

const HEIGHT = 150;
const GAP_MS = 12_500;
const SHORT_MS = 3 * 60_000;
const COLOURS = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5"];

/** Of the theme, by name: to ask for one in the middle of a refresh has the browser style all that has changed. @type {Map<string, string>} */
const colours = new Map();

/** @param {string} name @returns {string} */
function colour(name) {
  const held = colours.get(name);
  if (held) return held;
  const found = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  colours.set(name, found);
  return found;
}

/** All charts that are there: a new theme draws them anew. @type {Set<TimeChart>} */
const drawn = new Set();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours.clear();
  drawn.forEach((chart) => chart.redraw());
});

/** Some figures of one kind over the last 15 minutes, with their latest values in words. */
export class TimeChart {
  /**
   * @param {string} title
   * @param {Record<string, Figure>} vocabulary
   * @param {string[]} figures  Ids; at most five, of one unit.
   * @param {string} path  Of the history that tells them.
   * @param {string} job
   * @param {string} [vertex]
   */
  constructor(title, vocabulary, figures, path, job, vertex) {
    this.title = title;
    this._figures = figures;
    this._told = figures.map((id) => vocabulary[id] ?? { label: id, format: String });
    this._values = figures.map(() => h("output", {}, "–"));
    this._plot = h("div", { class: "plot", role: "img" });
    this.element = h(
      "figure",
      { class: "chart", "data-figures": figures.join(" ") },
      h("figcaption", {}, h("h3", {}, title), copyMenu(title, asked(path, figures), this._promql(job, vertex))),
      this._plot,
      h(
        "ul",
        { class: "legend" },
        ...this._told.map((told, place) => {
          const mark = h("span", { class: `mark series-${place + 1}`, "aria-hidden": "true" });
          return h("li", { "data-figure": figures[place] ?? "" }, mark, h("span", {}, told.label), this._values[place]);
        }),
      ),
    );
    /** @type {uPlot | undefined} */
    this._uplot = undefined;
    this._resized = new ResizeObserver(() => this._uplot?.setSize(this._size()));
    this._resized.observe(this._plot);
    drawn.add(this);
  }

  /** @param {Course} course */
  show(course) {
    const data = withGaps(course.times, this._figures.map((id) => course.of(id)));
    if (this._uplot) this._uplot.setData(data);
    else if (this._plot.isConnected) this._uplot = new uPlot(this._options(), data, this._plot);
    const words = this._figures.map((id, place) => {
      const word = this._told[place]?.format(course.latest(id)) ?? "";
      const output = this._values[place];
      if (output && output.textContent !== word) output.textContent = word;
      return `${this._told[place]?.label} ${word}`;
    });
    this._plot.setAttribute("aria-label", `${this.title} over the last 15 minutes, now ${words.join(", ")}`);
  }

  /** Draw it in the colours of the theme that there is now. */
  redraw() {
    this._uplot?.redraw(false, true);
  }

  close() {
    drawn.delete(this);
    this._resized.disconnect();
    this._uplot?.destroy();
  }

  /** @param {string} job @param {string} [vertex] */
  _promql(job, vertex) {
    const asked = this._told.map((told) => promql(told, job, vertex)).filter((each) => each !== undefined);
    return asked.length ? asked.join("\n") : undefined;
  }

  _size() {
    return { width: Math.max(this._plot.clientWidth, 120), height: HEIGHT };
  }

  /** @returns {uPlot.Options} */
  _options() {
    const format = this._told[0]?.format ?? String;
    const axis = { stroke: () => colour("--muted"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    return {
      ...this._size(),
      ms: 1,
      legend: { show: false },
      cursor: { y: false, points: { size: 6 } },
      scales: { x: { time: true }, y: { range: (_plot, low, high) => [Math.min(low ?? 0, 0), high > 0 ? high * 1.1 : 1] } },
      axes: [
        { ...axis, size: 24, values: (_plot, splits) => clocks(splits) },
        { ...axis, size: 64, space: 32, values: (_plot, splits) => splits.map((split) => format(split)) },
      ],
      series: [
        {},
        ...this._told.map((told, place) => ({
          label: told.label,
          stroke: () => colour(COLOURS[place] ?? "--series-1"),
          width: 1.5,
          points: { show: false },
          spanGaps: false,
        })),
      ],
    };
  }
}

/**
 * Returns moments as an axis has them: with seconds where all of them lie within a few minutes.
 *
 * @param {number[]} times
 */
function clocks(times) {
  const second = (times.at(-1) ?? 0) - (times[0] ?? 0) < SHORT_MS ? "2-digit" : undefined;
  return times.map((time) => new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second, hour12: false }));
}

/**
 * Returns data as uPlot takes it, with nothing where nobody knew anything.
 *
 * @param {number[]} times
 * @param {(number | null)[][]} columns
 * @returns {uPlot.AlignedData}
 */
function withGaps(times, columns) {
  /** @type {number[]} */
  const xs = [];
  /** @type {(number | null)[][]} */
  const ys = columns.map(() => []);
  times.forEach((time, place) => {
    const before = times[place - 1];
    if (before !== undefined && time - before > GAP_MS) {
      xs.push(before + 1);
      ys.forEach((column) => column.push(null));
    }
    // Clocks that were set back would fold the line.
    if (before !== undefined && time <= before) return;
    xs.push(time);
    ys.forEach((column, which) => column.push(columns[which]?.[place] ?? null));
  });
  return /** @type {uPlot.AlignedData} */ ([xs, ...ys]);
}

/**
 * Returns a line without axes; a word for readers who do not see it is the caller's.
 *
 * @param {(number | null)[]} values  Oldest first.
 */
export function sparkline(values) {
  const [width, height] = [120, 24];
  const top = Math.max(...values.map((value) => value ?? 0), 0) || 1;
  let path = "";
  values.forEach((value, place) => {
    if (value === null) return;
    const x = ((place / Math.max(values.length - 1, 1)) * width).toFixed(1);
    const y = (height - 2 - (Math.max(value, 0) / top) * (height - 4)).toFixed(1);
    path += `${place === 0 || values[place - 1] === null || values[place - 1] === undefined ? "M" : "L"}${x} ${y}`;
  });
  return s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, s("path", { d: path || "M0 0" }));
}

/**
 * Puts a new line in place of an old one.
 *
 * @param {Element} place
 * @param {(number | null)[]} values
 */
export function respark(place, values) {
  fill(place, sparkline(values));
}
