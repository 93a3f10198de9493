// Asks again and again while somebody looks, says when there is no answer, and goes on when there is.

import { byId, say } from "./dom.js";
import { clock } from "./format.js";
import { RestError } from "./rest.js";

const REFRESH_MS = 5_000;
const RETRY_MS = 2_000;

/**
 * A part of the page that shows what the service tells.
 *
 * @typedef {object} View
 * @property {Element} element
 * @property {(signal: AbortSignal) => Promise<void>} refresh  Asks, and shows what was answered. What is thrown is told to the reader.
 * @property {() => void} [close]  Lets go of what is held; nothing is refreshed afterwards.
 */

/** Refreshes one view every five seconds, not while the page is hidden. */
export class Live {
  /** @param {View} view */
  constructor(view) {
    this._view = view;
    this._stop = new AbortController();
    /** @type {number | undefined} */
    this._timer = undefined;
    this._busy = false;
    this._again = false;
    /** @type {number | null} */
    this._lost = null;
    document.addEventListener("visibilitychange", () => document.hidden || this.now(), { signal: this._stop.signal });
    this.now();
  }

  /** Refresh at once. */
  now() {
    clearTimeout(this._timer);
    // What was chosen while a round is under way is not part of it.
    if (this._busy) this._again = true;
    else if (!this._stop.signal.aborted) void this._round();
  }

  /** End it. */
  stop() {
    this._stop.abort();
    clearTimeout(this._timer);
    this._view.close?.();
  }

  async _round() {
    this._busy = true;
    let next = REFRESH_MS;
    try {
      await this._view.refresh(this._stop.signal);
      if (this._stop.signal.aborted) return;
      this._lost = null;
      byId("alarm").hidden = true;
      const told = byId("told");
      told.classList.remove("stale");
      say(told, `as of ${clock(Date.now())}`);
    } catch (error) {
      if (this._stop.signal.aborted) return;
      next = RETRY_MS;
      this._fail(error);
    } finally {
      this._busy = false;
    }
    if (this._again) {
      this._again = false;
      this.now();
    } else if (!document.hidden) this._timer = window.setTimeout(() => this.now(), next);
  }

  /** @param {unknown} error */
  _fail(error) {
    this._lost ??= Date.now();
    const alarm = byId("alarm");
    alarm.hidden = false;
    byId("told").classList.add("stale");
    const since = clock(this._lost);
    if (error instanceof RestError && error.status === 0) {
      say(alarm, `No answer from the service since ${since}. What is shown is older. Trying again every ${RETRY_MS / 1000} s; is “streamgauge serve” running?`);
    } else if (error instanceof RestError) {
      say(alarm, `The service answers ${error.status} since ${since}: ${error.message}`);
    } else {
      console.error(error);
      say(alarm, `The page has a fault since ${since}: ${error}. Load it anew; if that does not help, tell us.`);
    }
  }
}
