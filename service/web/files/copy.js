// "Copy as curl" and "copy as PromQL", at every figure.

import { byId, h, say } from "./dom.js";
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
  const menu = h(
    "details",
    { class: "copy" },
    h("summary", { "aria-label": `Copy how to ask for ${figure}`, title: "Copy as curl or PromQL" }, "⧉"),
    h(
      "div",
      { class: "menu" },
      h("button", { type: "button", onclick: () => copy(curl(), "curl") }, "copy as curl"),
      promql !== undefined && h("button", { type: "button", onclick: () => copy(promql, "PromQL") }, "copy as PromQL"),
    ),
  );
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
