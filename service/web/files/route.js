// Where in the page one is: it stands in the address, so that a link leads there, also after a restart of the service.

/**
 * @typedef {object} Route
 * @property {"jobs" | "job" | "executors" | "nowhere"} view
 * @property {string} [job]
 * @property {string} [vertex]  Whose drawer is open.
 * @property {string} [tab]  Of the job.
 */

const ID = /^[0-9a-f]{32}$/;

/** @returns {Route} */
export function route() {
  const [path = "", query = ""] = location.hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean);
  const tab = new URLSearchParams(query).get("tab") ?? undefined;
  if (parts.length === 0) return { view: "jobs" };
  if (parts.length === 1 && parts[0] === "executors") return { view: "executors" };
  const [first, job = "", second, vertex = ""] = parts;
  if (first === "jobs" && ID.test(job)) {
    if (parts.length === 2) return { view: "job", job, tab };
    if (parts.length === 4 && second === "vertices" && ID.test(vertex)) return { view: "job", job, vertex, tab };
  }
  return { view: "nowhere" };
}

/** @param {string} job @param {string} [tab] */
export function toJob(job, tab) {
  return `#/jobs/${job}${tab ? `?tab=${tab}` : ""}`;
}

/** @param {string} job @param {string} vertex @param {string} [tab] */
export function toVertex(job, vertex, tab) {
  return `#/jobs/${job}/vertices/${vertex}${tab ? `?tab=${tab}` : ""}`;
}
