// The job's graph: vertices as boxes with what they do and how busy they are, edges with how rows travel and how many.

import { copyMenu } from "./copy.js";
import { fill, h, s, say } from "./dom.js";
import { OF_VERTEX, promql } from "./figures.js";
import { count, msPerSecond, NONE, rate } from "./format.js";
import { asked } from "./history.js";
import { ENDED } from "./parts.js";
import { operators } from "./plan.js";
import { getIfThere } from "./rest.js";
import { toVertex } from "./route.js";

/** @typedef {import("./job.js").Detail} Detail */
/** @typedef {Record<string, number | null>} Figures  Of one vertex at one moment. */

const [IN, OUT] = ["numRecordsInPerSecond", "numRecordsOutPerSecond"];
const [BUSIEST, BUSY, PRESSED, IDLE] = ["busyTimeMsPerSecond.max", "busyTimeMsPerSecond.avg", "backPressuredTimeMsPerSecond.avg", "idleTimeMsPerSecond.avg"];
const FIGURES = [IN, OUT, BUSIEST, BUSY, PRESSED, IDLE];
/** What the bar is made of; the rest of a second is what nobody knows. @type {[string, string, string][]} */
const PARTS = [[BUSY, "busy", "busy"], [PRESSED, "back-pressured", "pressed"], [IDLE, "idle", "idle"]];

const WIDTH = 256;
const PAD = 10;
const LINE = 16;
const LINES = 6;
const LETTERS = 34;
/** Smaller than this nobody reads it: then the region scrolls. */
const LEAST_SCALE = 0.8;
const NARROW = matchMedia("(max-width: 700px)");
const SETTLED_MS = 150;

/** A job's graph, and the same as a table. */
export class Graph {
  /** @param {string} jid */
  constructor(jid) {
    this._jid = jid;
    /** @type {Map<string, Box>} */
    this._boxes = new Map();
    /** @type {Map<string, Row>} */
    this._rows = new Map();
    /** @type {{source: string, target: string, element: SVGGElement, text: SVGTextElement}[]} */
    this._edges = [];
    /** Moment for which a vertex was asked, and what was answered. @type {Map<string, {moment: number, figures: Figures}>} */
    this._told = new Map();
    /** @type {Detail | null} */
    this._detail = null;
    /** @type {number | undefined} */
    this._moment = undefined;
    /** @type {AbortSignal | undefined} */
    this._signal = undefined;
    this._laid = "";
    this._natural = { width: 0, height: 0 };
    // As events tell: to ask for it in the middle of a refresh has the browser lay out all that has changed.
    this._window = { left: 0, top: 0, width: 0, height: 0 };
    this._svg = s("svg", { class: "plan", role: "group", "aria-label": "Vertices, from the sources to the sinks" });
    this._region = h("div", { class: "planned", tabindex: "0", role: "region", "aria-label": "Graph; scroll to see all of it" }, this._svg);
    this._body = h("tbody");
    const words = ["Vertex", "Parallelism", "Records in", "Records out", "Busiest subtask", "Busy", "Back-pressured", "Idle", "Copy"];
    this._table = h("details", { class: "same", ontoggle: () => this._opened() },
      h("summary", {}, "The same as a table"),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Vertices" },
        h("table", {}, h("thead", {}, h("tr", {}, ...words.map((word, place) => h("th", { scope: "col", class: place ? "number" : "" }, word)))), this._body)));
    this._empty = h("p", { class: "muted" }, "No plan has been told yet: it comes with the first batch.");
    this.element = h("section", { class: "card graph" },
      h("div", { class: "head" }, h("h2", {}, "Graph"), copyMenu("the graph", `/jobs/${jid}/plan`),
        h("ul", { class: "legend" }, ...PARTS.map(([, word, name]) => h("li", {}, h("span", { class: `mark ${name}`, "aria-hidden": "true" }), word)), h("li", {}, "share of time, mean of the subtasks"))),
      this._empty, this._region, this._table);
    this._closed = new AbortController();
    NARROW.addEventListener("change", () => this._show(), { signal: this._closed.signal });
    this._resized = new ResizeObserver(([seen]) => {
      if (seen) Object.assign(this._window, { width: seen.contentRect.width, height: seen.contentRect.height });
      this._fit();
      this._more();
    });
    this._resized.observe(this._region);
    /** @type {number | undefined} */
    this._settling = undefined;
    this._region.addEventListener("scroll", () => {
      Object.assign(this._window, { left: this._region.scrollLeft, top: this._region.scrollTop });
      clearTimeout(this._settling);
      this._settling = window.setTimeout(() => this._more(), SETTLED_MS);
    }, { passive: true });
  }

  /**
   * Shows a job as it is now, with figures of the vertices that are in sight.
   *
   * @param {Detail} detail
   * @param {number | undefined} moment  Of the latest figures that the service has.
   * @param {AbortSignal} signal
   */
  async refresh(detail, moment, signal) {
    [this._detail, this._moment, this._signal] = [detail, moment, signal];
    this._show();
    await this._ask(signal);
  }

  close() {
    this._closed.abort();
    this._resized.disconnect();
    clearTimeout(this._settling);
  }

  _opened() {
    this._figures();
    this._more();
  }

  /** What came into sight is asked for at once; a failure is told by the next refresh. */
  _more() {
    if (this._signal) this._ask(this._signal).catch(() => {});
  }

  /**
   * Asks for one moment of each vertex in sight, no more: of 60 vertices a few are, and each answer is small.
   * The job's page has no shares, and differences of its sums would be other figures than those of the drawer.
   *
   * @param {AbortSignal} signal
   */
  async _ask(signal) {
    const moment = this._moment;
    if (moment === undefined) return;
    const wanted = this._inSight().filter((id) => this._told.get(id)?.moment !== moment);
    await Promise.all(wanted.map(async (id) => {
      const body = await getIfThere(asked(path(this._jid, id), FIGURES, moment - 1), signal);
      const figures = Object.fromEntries((body?.series ?? []).map((/** @type {{id: string, values: (number | null)[]}} */ each) => [each.id, each.values.at(-1) ?? null]));
      this._told.set(id, { moment, figures });
    }));
    if (wanted.length) this._figures();
  }

  /** @returns {string[]} */
  _inSight() {
    if (this._table.open) return [...this._boxes.keys()];
    const { left, top, width, height: depth } = this._window;
    const scale = this._scale();
    return [...this._boxes].filter(([, { x, y, height }]) =>
      (x + WIDTH) * scale >= left && x * scale <= left + width && (y + height) * scale >= top && y * scale <= top + depth,
    ).map(([id]) => id);
  }

  /** Lay out anew if the plan is another one, then bring all words up to date. */
  _show() {
    const detail = this._detail;
    if (!detail) return;
    this._empty.hidden = detail.vertices.length > 0;
    this._region.hidden = this._table.hidden = detail.vertices.length === 0;
    const key = `${NARROW.matches} ${JSON.stringify(detail.plan.nodes.map((node) => [node.id, node.description, node.inputs]))}`;
    if (key !== this._laid) {
      this._layOut(detail);
      this._laid = key;
      this._fit();
      const held = this._boxes.get(detail.streamgauge.bottleneck?.id ?? "");
      if (held) this._region.scrollTo((held.x + WIDTH / 2) * this._scale() - this._region.clientWidth / 2, (held.y + held.height / 2) * this._scale() - this._region.clientHeight / 2);
    }
    this._figures();
  }

  /** @param {Detail} detail */
  _layOut(detail) {
    const nodes = new Map(detail.plan.nodes.map((node) => [node.id, node]));
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: NARROW.matches ? "TB" : "LR", nodesep: 24, edgesep: 16, ranksep: NARROW.matches ? 36 : 56, marginx: 8, marginy: 8 });
    this._boxes = new Map(detail.vertices.map((vertex) => [vertex.id, new Box(this._jid, vertex, operators(vertex.name, nodes.get(vertex.id)?.description ?? ""))]));
    for (const [id, box] of this._boxes) graph.setNode(id, { width: WIDTH, height: box.height });
    /** @type {{source: string, target: string, name: string, strategy: string}[]} */
    const edges = [];
    for (const { id, inputs } of detail.plan.nodes) {
      for (const { id: source, num, ship_strategy } of inputs ?? []) {
        if (!this._boxes.has(source) || !this._boxes.has(id)) continue;
        const width = Math.max([...ship_strategy].slice(0, LETTERS).length, 9) * 6.5;
        graph.setEdge({ v: source, w: id, name: String(num) }, { width, height: 2 * LINE, labelpos: NARROW.matches ? "r" : "c", labeloffset: 8 });
        edges.push({ source, target: id, name: String(num), strategy: ship_strategy });
      }
    }
    dagre.layout(graph);
    for (const [id, box] of this._boxes) {
      const { x, y } = graph.node(id);
      box.at(x - WIDTH / 2, y - box.height / 2);
    }
    this._edges = [];
    const drawn = edges.map(({ source, target, name, strategy }) => {
      const told = graph.edge({ v: source, w: target, name });
      const [x, y] = [told.x ?? 0, told.y ?? 0];
      const text = s("text", { x, y: y + 14 });
      const element = s("g", { class: "edge" },
        s("path", { d: curve(told.points), "marker-end": "url(#plan-arrow)" }),
        s("title", {}, `${strategy}: rows go to the subtask that this names; the rate is of all that the vertex before it sends`),
        s("text", { class: "strategy", x, y: y - 6 }, cut(strategy)), text);
      this._edges.push({ source, target, element, text });
      return element;
    });
    const { width = 0, height = 0 } = graph.graph();
    this._natural = { width, height };
    this._svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const arrow = s("marker", { id: "plan-arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, s("path", { d: "M0 0L8 4L0 8z" }));
    // In the order of the plan, so that the keyboard goes from the sources to the sinks.
    fill(this._svg, s("defs", {}, arrow), ...drawn, ...[...this._boxes.values()].map((box) => box.element));
  }

  _scale() {
    const room = this._window.width;
    return room && this._natural.width ? Math.min(1, Math.max(LEAST_SCALE, room / this._natural.width)) : 1;
  }

  _fit() {
    const scale = this._scale();
    this._svg.setAttribute("width", String(Math.floor(this._natural.width * scale)));
    this._svg.setAttribute("height", String(Math.floor(this._natural.height * scale)));
  }

  _figures() {
    const detail = this._detail;
    if (!detail) return;
    const running = !ENDED.has(detail.state);
    const bottleneck = detail.streamgauge.bottleneck?.id;
    // Of a FINISHED job REST does not tell which vertices its latest plan had.
    const gone = new Set(detail.vertices.filter((vertex) => vertex.status === "FINISHED" && detail.state !== "FINISHED").map(({ id }) => id));
    const told = (/** @type {string} */ id) => (gone.has(id) ? {} : this._told.get(id)?.figures ?? {});
    for (const vertex of detail.vertices) {
      this._boxes.get(vertex.id)?.show(vertex, told(vertex.id), gone.has(vertex.id), running && vertex.id === bottleneck);
    }
    for (const { source, target, element, text } of this._edges) {
      const ended = gone.has(source) || gone.has(target);
      element.classList.toggle("gone", ended);
      say(text, ended ? NONE : rate(this._told.get(source)?.figures[OUT]));
    }
    if (!this._table.open) return;
    for (const { id, name } of detail.vertices) if (!this._rows.has(id)) this._rows.set(id, new Row(this._jid, id, name));
    const rows = detail.vertices.flatMap((vertex) => {
      const row = this._rows.get(vertex.id);
      row?.show(vertex, told(vertex.id));
      return row ? [row.element] : [];
    });
    // Putting the same rows in again would take the focus from them.
    if (rows.length !== this._body.children.length || rows.some((row, place) => row !== this._body.children[place])) fill(this._body, ...rows);
  }
}

/** A vertex in the graph: a link to its drawer. */
class Box {
  /**
   * @param {string} jid
   * @param {import("./job.js").JobVertex} vertex
   * @param {import("./plan.js").Operator[]} operators
   */
  constructor(jid, vertex, operators) {
    this.x = this.y = 0;
    this._label = "";
    const full = operators.length ? operators.map(({ name, description }) => name ?? description) : [vertex.name];
    const shown = full.length > LINES ? [...full.slice(0, LINES - 1), `… ${full.length - LINES + 1} more`] : full;
    const under = PAD + LINE * (shown.length + 1);
    this.height = under + 4 * LINE + PAD + 2;
    const line = (/** @type {number} */ y, /** @type {string} */ name = "") => s("text", { x: 0, y, class: name });
    this._head = line(PAD + 10, "of");
    this._rates = line(under + LINE, "figures");
    this._bars = PARTS.map(([, , name]) => s("rect", { class: name, y: under + LINE + 6, height: 8, width: 0 }));
    this._words = [line(under + 3 * LINE - 2, "figures"), line(under + 4 * LINE - 2, "figures")];
    this.element = s("a", { class: "vertex", href: toVertex(jid, vertex.id), "data-vertex": vertex.id },
      s("title", {}, operators.map(({ description }) => description).join("\n") || vertex.name),
      s("rect", { class: "box", width: WIDTH, height: this.height, rx: 8 }),
      // An inner picture cuts off what is too long.
      s("svg", { x: PAD, width: WIDTH - 2 * PAD, height: this.height },
        this._head,
        ...shown.map((text, place) => {
          const element = line(PAD + 12 + LINE * (place + 1), "operator");
          element.textContent = cut(text.replaceAll("\n", " "));
          return element;
        }),
        this._rates,
        s("rect", { class: "ground", y: under + LINE + 6, height: 8, width: WIDTH - 2 * PAD }),
        ...this._bars, ...this._words));
  }

  /** @param {number} x @param {number} y */
  at(x, y) {
    [this.x, this.y] = [x, y];
    this.element.setAttribute("transform", `translate(${x} ${y})`);
  }

  /**
   * @param {import("./job.js").JobVertex} vertex
   * @param {Figures} figures
   * @param {boolean} gone  The latest plan does not have it any more.
   * @param {boolean} bottleneck
   */
  show(vertex, figures, gone, bottleneck) {
    const head = `parallelism ${vertex.parallelism < 0 ? NONE : vertex.parallelism}${gone ? " · no longer in the plan" : bottleneck ? " · ▲ bottleneck" : vertex.status === "FAILED" ? " · ✕ failed" : ""}`;
    const rates = `in ${rate(figures[IN])} · out ${rate(figures[OUT])}`;
    const shares = `busy ${msPerSecond(figures[BUSY])} · back-pressured ${msPerSecond(figures[PRESSED])}`;
    const rest = `idle ${msPerSecond(figures[IDLE])} · busiest subtask ${msPerSecond(figures[BUSIEST])}`;
    const label = `${cut(vertex.name, 200)}: ${head}, ${rates}, ${shares}, ${rest}`;
    if (label === this._label) return;
    this._label = label;
    say(this._head, head);
    say(this._rates, rates);
    this._words.forEach((element, place) => say(element, place ? rest : shares));
    this.element.setAttribute("aria-label", label);
    this.element.classList.toggle("gone", gone);
    this.element.classList.toggle("bottleneck", bottleneck);
    this.element.classList.toggle("failed", vertex.status === "FAILED");
    let from = 0;
    PARTS.forEach(([id], place) => {
      const width = Math.max(0, Math.min(figures[id] ?? 0, 1000 - from)) / 1000 * (WIDTH - 2 * PAD);
      this._bars[place]?.setAttribute("x", (from / 1000 * (WIDTH - 2 * PAD)).toFixed(1));
      this._bars[place]?.setAttribute("width", width.toFixed(1));
      from += Math.max(0, figures[id] ?? 0);
    });
  }
}

/** A vertex in the table. */
class Row {
  /** @param {string} jid @param {string} id @param {string} name */
  constructor(jid, id, name) {
    this._link = h("a", { href: toVertex(jid, id), title: name.slice(0, 300) }, name.slice(0, 300));
    this._cells = ["parallelism", IN, OUT, BUSIEST, BUSY, PRESSED, IDLE].map((figure) => h("td", { class: "number", "data-figure": figure }, NONE));
    const queries = FIGURES.map((figure) => promql(OF_VERTEX[figure], jid, id)).filter((each) => each !== undefined).join("\n");
    this.element = h("tr", { "data-vertex": id },
      h("td", { class: "name" }, h("span", { class: "clamp", dir: "auto" }, this._link)), ...this._cells,
      h("td", { class: "number" }, copyMenu(`figures of ${name.slice(0, 60)}`, asked(path(jid, id), FIGURES), queries)));
  }

  /** @param {import("./job.js").JobVertex} vertex @param {Figures} figures */
  show(vertex, figures) {
    const words = [count(vertex.parallelism < 0 ? null : vertex.parallelism), rate(figures[IN]), rate(figures[OUT]), ...[BUSIEST, BUSY, PRESSED, IDLE].map((id) => msPerSecond(figures[id]))];
    this._cells.forEach((cell, place) => say(cell, words[place] ?? NONE));
  }
}

/** @param {string} jid @param {string} vertex */
function path(jid, vertex) {
  return `/jobs/${jid}/vertices/${vertex}/history`;
}

/** @param {string} text @param {number} [letters] */
function cut(text, letters = LETTERS) {
  if (text.length <= letters) return text;
  const found = [...text.slice(0, 2 * letters + 2)];
  return found.length <= letters ? text : `${found.slice(0, letters - 1).join("")}…`;
}

/** @param {{x: number, y: number}[]} points */
function curve(points) {
  // Of two points in one place a line has no direction, and its arrow none.
  const [first, ...rest] = points.filter((point, place) => {
    const next = points[place + 1];
    return !next || Math.hypot(next.x - point.x, next.y - point.y) > 1;
  });
  if (!first) return "";
  if (rest.length === 1) rest.unshift(first);
  let d = `M${first.x} ${first.y}`;
  rest.forEach((point, place) => {
    const next = rest[place + 1];
    if (next) d += place === rest.length - 2 ? `Q${point.x} ${point.y} ${next.x} ${next.y}` : `Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}`;
  });
  return d;
}
