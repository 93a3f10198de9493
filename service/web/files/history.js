// Fifteen minutes of figures, brought up to date with what is new alone.

import { get } from "./rest.js";

const KEPT_MS = 15 * 60_000;

/**
 * @typedef {object} Told  The body of …/history.
 * @property {number} now
 * @property {number} interval-ms
 * @property {number[]} timestamps
 * @property {{id: string, values: (number | null)[]}[]} series
 */

/** Figures over time: `times` in Unix ms, and for each figure as many values, null where not known. */
export class Course {
  constructor() {
    /** @type {number[]} */
    this.times = [];
    /** @type {Map<string, (number | null)[]>} */
    this.values = new Map();
  }

  /** The last moment there is, to ask on from; undefined where there is none. @returns {number | undefined} */
  get last() {
    return this.times.at(-1);
  }

  /**
   * Adds what was told since, and drops what is older than is shown: of what has ended, its last minutes stay.
   *
   * @param {{timestamps: number[], series: {id: string, values: (number | null)[]}[]}} told
   */
  add(told) {
    const before = this.times.length;
    const last = told.timestamps.at(-1) ?? this.last ?? 0;
    const drop = this.times.findIndex((time) => time >= last - KEPT_MS);
    const from = drop < 0 ? before : drop;
    const added = new Map(told.series.map(({ id, values }) => [id, values]));
    for (const id of new Set([...this.values.keys(), ...added.keys()])) {
      const old = this.values.get(id) ?? Array(before).fill(null);
      this.values.set(id, [...old.slice(from), ...(added.get(id) ?? Array(told.timestamps.length).fill(null))]);
    }
    this.times = [...this.times.slice(from), ...told.timestamps];
  }

  /** @param {string} figure @returns {(number | null)[]} */
  of(figure) {
    return this.values.get(figure) ?? Array(this.times.length).fill(null);
  }

  /** The latest value of a figure, null where it is not known. @param {string} figure @returns {number | null} */
  latest(figure) {
    return this.of(figure).at(-1) ?? null;
  }
}

/**
 * Brings a course up to date.
 *
 * @param {Course} course
 * @param {string} path  Of a history, without a query.
 * @param {string[] | null} figures  null for all.
 * @param {AbortSignal} signal
 * @returns {Promise<Told & Record<string, any>>}  The body, of what is new.
 */
export async function update(course, path, figures, signal) {
  const body = await get(asked(path, figures, course.last), signal);
  course.add(body);
  return body;
}

/** @param {string} path @param {string[] | null} figures @param {number} [since] */
export function asked(path, figures, since) {
  const query = [figures && `get=${figures.join(",")}`, since !== undefined && `since=${since}`].filter(Boolean).join("&");
  return query ? `${path}?${query}` : path;
}
