// What a job's plan says in words.

const ENTITIES = /** @type {Record<string, string>} */ ({ "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&#92;": "\\", "&amp;": "&" });

/**
 * Returns the operators' descriptions, from source to sink, of the text that the plan has for Flink's page.
 *
 * @param {string} description  An operator a line, behind the first each indented by one step more.
 */
export function descriptions(description) {
  /** @type {string[]} */
  const found = [];
  for (const line of description.split("<br/>").slice(0, -1)) {
    const head = found.length ? `${"   ".repeat(found.length - 1)}+- ` : "";
    if (found.length === 0 || line.startsWith(head)) found.push(line.slice(head.length));
    else found.push(`${found.pop()}\n${line}`);
  }
  return found.map((text) => text.replace(/&(?:lt|gt|quot|#x27|#92|amp);/g, (entity) => ENTITIES[entity] ?? entity));
}
