// What a job's plan says in words.

const ENTITIES = /** @type {Record<string, string>} */ ({ "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&#92;": "\\", "&amp;": "&" });

/**
 * Returns the operators' descriptions, from source to sink, of the text that the plan has for Flink's page.
 *
 * @param {string} description  An operator a line, behind the first each indented by one step more.
 */
function descriptions(description) {
  /** @type {string[]} */
  const found = [];
  for (const line of description.split("<br/>").slice(0, -1)) {
    const head = found.length ? `${"   ".repeat(found.length - 1)}+- ` : "";
    if (found.length === 0 || line.startsWith(head)) found.push(line.slice(head.length));
    else found.push(`${found.pop()}\n${line}`);
  }
  return found.map((text) => text.replace(/&(?:lt|gt|quot|#x27|#92|amp);/g, (entity) => ENTITIES[entity] ?? entity));
}

/**
 * An operator of a vertex; `name` is null where nobody knows it.
 *
 * @typedef {{name: string | null, description: string}} Operator
 */

/**
 * Returns the operators of a vertex, from source to sink.
 *
 * @param {string} name  Of the vertex.
 * @param {string} description  As the plan has it.
 * @returns {Operator[]}
 */
export function operators(name, description) {
  const texts = descriptions(description);
  const names = name.split(" -> ");
  // A chain that is too long for a name is cut, and then nobody knows whose the last names are.
  if (names.length === texts.length) return texts.map((description, place) => ({ name: names[place] ?? null, description }));
  return texts.map((description, place) => ({ name: place < names.length - 1 && names.length < texts.length ? names[place] ?? null : null, description }));
}
