// The models that the page offers: those of models.json beside the page, those added by hand, those in the browser's
// cache. Says what each takes in memory before it is loaded. No DOM.

/**
 * @typedef {object} Entry
 * @property {string} source what Doppler.load takes: an address or a Hugging Face name
 * @property {string} name
 * @property {string} [about] a sentence
 * @property {number} [bytes] of the file
 * @property {number} [cacheBytesPerToken] of keys and values, as 16-bit floats
 * @property {number} [ctx] tokens that the model was trained for
 * @property {boolean} [shipped] it lies beside the page
 * @property {string[]} [starters] first questions that suit the model
 * @property {boolean} [added] by hand; it may be taken off the list
 * @property {number} [memoryBytes] what it took when it was loaded last
 * @property {{complete: boolean, cachedBytes: number, bytes: number, id: string} | null} [cached]
 */

// Activations, logits and staging of a model of a billion parameters, chunk 512 (`memory` of `doppler bench --json`).
const kScratchBytes = 32 << 20;
// The context that is loaded unless another one is asked for: LoadOptions.ctx of doppler.d.ts.
const kUsualCtx = 4096;

/** The memory of a model on the GPU; null if it is unknown. @param {Entry} entry
 * @param {{ctx: number, kv: string}} settings @returns {number | null} */
export function memoryEstimate(entry, { ctx, kv }) {
  if (!entry.bytes) return entry.memoryBytes ?? null;
  const tokens = ctx > 0 ? ctx : Math.min(entry.ctx ?? kUsualCtx, kUsualCtx);
  const floatBytes = kv === 'f32' ? 2 : 1;
  return entry.bytes + (entry.cacheBytesPerToken ?? 0) * floatBytes * tokens + Math.min(kScratchBytes, entry.bytes);
}

/** A name for people out of a source: "owner/name:FILE" -> "name FILE". @param {string} source */
export function nameOf(source) {
  const parts = source.replace(/\/+$/, '').split('/');
  return decodeURIComponent(parts.at(-1) ?? source).replace(/\.gguf$/i, '').replace(/[:@]/g, ' ');
}

/**
 * The whole list, without doubles: shipped and offered ones, added ones, then what else lies in the cache.
 * @param {Entry[]} offered @param {Entry[]} added
 * @param {{id: string, bytes: number, cachedBytes: number, complete: boolean}[]} cached @param {string} base the page's
 * address
 * @returns {Entry[]}
 */
export function merged(offered, added, cached, base) {
  const isSame = (entry, id) => entry.source === id || addressOf(entry.source, base) === id;
  const list = [...offered, ...added.filter((entry) => !offered.some((other) => other.source === entry.source))];
  const entries = list.map((entry) => ({ ...entry, cached: cached.find((model) => isSame(entry, model.id)) ?? null }));
  for (const model of cached) {
    if (entries.some((entry) => isSame(entry, model.id))) continue;
    entries.push({ source: model.id, name: nameOf(model.id), bytes: model.bytes, cached: model });
  }
  return entries;
}

/** The text of the field as a source; throws a sentence. @param {string} text @returns {string} */
export function parseSource(text) {
  const source = text.trim();
  if (/^https?:\/\/\S+$/i.test(source)) return source;
  if (/^[\w.-]+\/[\w.-]+(@[\w./-]+)?(:[\w./ -]+)?$/.test(source)) return source;
  if (/^\.{0,2}\/\S+$/.test(source)) return source;
  throw new Error(`"${source}" is neither an address (https://...) nor a Hugging Face name (owner/name or owner/name:FILE).`);
}

/** @param {string} source @param {string} base */
function addressOf(source, base) {
  try {
    return new URL(source, base).href;
  } catch {
    return source;
  }
}
