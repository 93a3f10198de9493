// What several views show alike: a state, a figure with its name, a message.

import { copyMenu } from "./copy.js";
import { h, say } from "./dom.js";

const SIGNS = /** @type {Record<string, string>} */ ({
  CREATED: "○", RUNNING: "▶", RESTARTING: "↻", SUSPENDED: "‖", FINISHED: "✓", CANCELED: "■", FAILED: "✕", COMPLETED: "✓", IN_PROGRESS: "▶",
});

/** States that a job does not leave. */
export const ENDED = new Set(["FINISHED", "CANCELED", "FAILED"]);

/** A state, by its colour and a sign of its own. @param {string} state */
export function badge(state) {
  return h("span", { class: `badge ${state.toLowerCase()}` }, h("span", { "aria-hidden": "true" }, `${SIGNS[state] ?? "·"} `), h("span", { class: "word" }, state));
}

/**
 * A figure with its name; `set` changes what it says.
 *
 * @param {string} name
 * @param {string} path  Of the REST that tells it.
 * @param {string} [promql]
 */
export function tile(name, path, promql) {
  const value = h("output", { class: "value" }, "–");
  const element = h("div", { class: "tile", "data-name": name }, h("div", { class: "name" }, h("span", {}, name), copyMenu(name, path, promql)), value);
  return {
    element,
    /** @param {string} word @param {boolean} [bad] */
    set(word, bad = false) {
      say(value, word);
      element.classList.toggle("bad", bad);
    },
  };
}

/**
 * Says that there is nothing, and what to do.
 *
 * @param {string} title
 * @param {...import("./dom.js").Child} words
 */
export function empty(title, ...words) {
  return h("section", { class: "empty" }, h("h2", {}, title), ...words);
}
