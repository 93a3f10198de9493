// The service's public REST: the page reads it as anybody does.

/** What the service, or the way to it, said instead of an answer. */
export class RestError extends Error {
  /** @param {number} status  0 where there was no answer at all. @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * Returns the address of a path of the REST, wherever the page itself comes from.
 *
 * @param {string} path  "/jobs/overview"
 */
export function address(path) {
  return new URL(path.replace(/^\//, ""), new URL(".", location.href.split("#")[0])).href;
}

/**
 * Asks the service.
 *
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}  The body.
 * @throws {RestError} Refused, or not answered.
 */
export async function get(path, signal) {
  let answer;
  try {
    answer = await fetch(address(path), { signal, headers: { Accept: "application/json" } });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new RestError(0, "the service does not answer");
  }
  if (answer.ok) return answer.json();
  const body = await answer.json().catch(() => null);
  throw new RestError(answer.status, String(body?.errors?.[0] ?? answer.statusText));
}

/**
 * As `get`, but null where the service has no such thing (404).
 *
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function getIfThere(path, signal) {
  try {
    return await get(path, signal);
  } catch (error) {
    if (error instanceof RestError && error.status === 404) return null;
    throw error;
  }
}

/**
 * Returns the values of metrics by id, as numbers; what is no number is left out, as is what the service does not know.
 *
 * @param {{id: string, value: string}[]} told
 * @returns {Record<string, number>}
 */
export function numbers(told) {
  return Object.fromEntries(
    told.map(({ id, value }) => [id, value === "true" ? 1 : value === "false" ? 0 : Number(value)]).filter(([, value]) => Number.isFinite(value)),
  );
}
