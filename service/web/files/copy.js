// "Copy as curl" and "copy as PromQL", at every figure.

import { byId, h, s, say } from "./dom.js";
import { address } from "./rest.js";

/**
 * Returns a small menu that copies how to ask for a figure.
 *
 * @param {string} figure  What it is, in words.
 * @param {string} path  Of the REST.
 * @param {string} [promql]  Where the figure is on /metrics too.
 * @returns {HTMLElement}
 */
export function copyMenu(figure, path, promql) {
  const curl = () => `curl -s '${address(path).replaceAll("'", "%27")}'`;
  const summary = h("summary", { "aria-label": `Copy how to ask for ${figure}`, title: "Copy as curl or PromQL" }, sheets());
  const choices = h(
    "div",
    { class: "menu" },
    h("button", { type: "button", onclick: () => copy(curl(), "curl") }, "copy as curl"),
    promql !== undefined && h("button", { type: "button", onclick: () => copy(promql, "PromQL") }, "copy as PromQL"),
  );
  const menu = h("details", { class: "copy" }, summary, choices);
  menu.addEventListener("toggle", () => {
    if (!menu.open) return;
    place(choices, summary.getBoundingClientRect());
    // It is fixed in the window, so that no table cuts it off: it would stay where it is.
    addEventListener("scroll", () => (menu.open = false), { capture: true, once: true });
  });
  menu.addEventListener("focusout", (event) => {
    if (!(event.relatedTarget instanceof Node && menu.contains(event.relatedTarget))) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.open) {
      menu.open = false;
      event.stopPropagation();
    }
  });

  /** @param {string} text @param {string} word */
  async function copy(text, word) {
    menu.open = false;
    try {
      await navigator.clipboard.writeText(text);
      toast(`copied as ${word}`);
    } catch {
      // Browsers lend the clipboard to pages of https and of this machine only.
      window.prompt(`The browser does not let this page copy; here it is as ${word}:`, text);
    }
  }
  return menu;
}

/** Two sheets, drawn: not every reader's fonts have a sign of them. */
function sheets() {
  return s(
    "svg",
    { viewBox: "0 0 14 14", width: 13, height: 13, fill: "none", stroke: "currentColor", "stroke-width": 1.3, "aria-hidden": "true" },
    s("path", { d: "M4.5 4.5h8v8h-8zM9.5 4.5v-3h-8v8h3" }),
  );
}

/**
 * Puts a box below another one, or above where there is no room, within the window.
 *
 * @param {HTMLElement} box
 * @param {DOMRect} by
 */
function place(box, by) {
  const { offsetWidth: width, offsetHeight: height } = box;
  const below = by.bottom + height <= innerHeight;
  box.style.setProperty("left", `${Math.max(0, Math.min(by.right - width, innerWidth - width))}px`);
  box.style.setProperty("top", `${Math.max(0, below ? by.bottom : by.top - height)}px`);
}

/** @type {number | undefined} */
let fading;

/** @param {string} words */
function toast(words) {
  const element = byId("toast");
  say(element, words);
  element.classList.add("shown");
  clearTimeout(fading);
  fading = window.setTimeout(() => {
    element.classList.remove("shown");
    say(element, "");
  }, 2_000);
}
