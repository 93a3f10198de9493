// Where in the page one is: it stands in the address, so that a link leads there, also after a restart of the service.

/**
 * @typedef {object} Route
 * @property {"jobs" | "job" | "compare" | "executors" | "nowhere"} view
 * @property {string} [job]
 * @property {string} [vertex]  Whose drawer is open.
 * @property {string} [tab]  Of the job.
 * @property {string} [with]  The run that the job is compared with; the one before it where it is absent.
 */

const ID = /^[0-9a-f]{32}$/;

/** @returns {Route} */
export function route() {
  const [path = "", query = ""] = location.hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean);
  const asked = new URLSearchParams(query);
  const tab = asked.get("tab") ?? undefined;
  if (parts.length === 0) return { view: "jobs" };
  if (parts.length === 1 && parts[0] === "executors") return { view: "executors" };
  const [first, job = "", second, vertex = ""] = parts;
  if (first === "jobs" && ID.test(job)) {
    if (parts.length === 2) return { view: "job", job, tab };
    const other = (asked.get("with") ?? "").replaceAll("-", "").toLowerCase();
    if (parts.length === 3 && second === "compare" && (!other || ID.test(other))) return { view: "compare", job, with: other };
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

/** @param {string} job @param {string} [other]  A run's id, or a job's for its latest run. */
export function toCompare(job, other) {
  return `#/jobs/${job}/compare${other ? `?with=${other}` : ""}`;
}
