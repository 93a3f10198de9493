// Figures as people read them. What is not known is a dash, never a zero.

/** @typedef {number | null | undefined} Figure */
/** @typedef {(value: Figure) => string} Format */

export const NONE = "–";

/** @param {Figure} value @returns {value is number} */
function known(value) {
  return value !== null && value !== undefined && Number.isFinite(value);
}

/** @type {Format} 1234567 → "1.23 M"; up to 9999 in full. */
export function count(value) {
  if (!known(value)) return NONE;
  if (Math.abs(value) < 10_000) return String(+value.toPrecision(4));
  const [unit, word] = Math.abs(value) >= 1e9 ? [1e9, "G"] : Math.abs(value) >= 1e6 ? [1e6, "M"] : [1e3, "k"];
  return `${+(value / unit).toPrecision(3)} ${word}`;
}

/** @type {Format} "1.23 k/s" */
export function rate(value) {
  return known(value) ? `${count(+value.toPrecision(3))}/s` : NONE;
}

/** @type {Format} "12.3 MiB" */
export function bytes(value) {
  if (!known(value)) return NONE;
  const words = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const power = Math.min(Math.floor(Math.log2(Math.max(Math.abs(value), 1)) / 10), words.length - 1);
  return `${+(value / 1024 ** power).toPrecision(3)} ${words[power]}`;
}

/** @type {Format} "12.3 MiB/s" */
export function byteRate(value) {
  return known(value) ? `${bytes(value)}/s` : NONE;
}

/** @type {Format} Milliseconds: "850 ms", "12.3 s", "4 min 5 s", "2 h 3 min", "5 d 7 h", "5034 d". */
export function duration(value) {
  if (!known(value)) return NONE;
  const sign = value < 0 ? "-" : "";
  const ms = Math.abs(value);
  if (ms < 1000) return `${sign}${Math.round(ms)} ms`;
  if (ms < 60_000) return `${sign}${+(ms / 1000).toPrecision(3)} s`;
  const units = /** @type {[number, string][]} */ ([[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]]);
  const first = units.findIndex(([unit]) => ms >= unit);
  const [unit, word] = units[first] ?? [1000, "s"];
  // Of a replayed past the hours say nothing.
  if (ms >= 100 * unit && word === "d") return `${sign}${Math.floor(ms / unit)} d`;
  const [next, nextWord] = units[first + 1] ?? [1000, "s"];
  const rest = Math.floor((ms % unit) / next);
  return `${sign}${Math.floor(ms / unit)} ${word}${rest ? ` ${rest} ${nextWord}` : ""}`;
}

/** @type {Format} A share, 0 to 1: "12.5 %". */
export function share(value) {
  return known(value) ? `${+(value * 100).toPrecision(3)} %` : NONE;
}

/** @type {Format} Milliseconds a second, as Flink has shares of time: "12.5 %". */
export function msPerSecond(value) {
  return known(value) ? share(value / 1000) : NONE;
}

/** @type {Format} Percent, as skew comes: "12.5 %". */
export function percent(value) {
  return known(value) ? share(value / 100) : NONE;
}

/** @type {Format} Unix ms → "14:03:05" of the reader's zone. */
export function clock(value) {
  return known(value) ? new Date(value).toLocaleTimeString([], { hour12: false }) : NONE;
}

/** @type {Format} Unix ms → date and time of the reader's zone. */
export function moment(value) {
  return known(value) && value >= 0 ? new Date(value).toLocaleString([], { hour12: false }) : NONE;
}
