// The models in the browser's storage as users see them: list, delete, room for another. Doppler.cache in doppler.d.ts.
import { DopplerError } from './errors.mjs';
import { keyOf, openRoot, Pieces, readRecord } from './piece_store.mjs';

// Beside the bytes of the model: records, and what browsers count for each file.
const kSlackBytes = 16 << 20;

/** The lock that a tab holds, shared, while it uses a model. @param {string} key */
export const useLock = (key) => `doppler-use-${key}`;

/** @type {import('./doppler.d.ts').ModelCache} */
export const modelCache = {
  async list() {
    const root = await openRoot();
    const models = [];
    for (const folder of root ? await folders(root) : []) models.push(await describe(folder));
    return models.filter((model) => model !== null).sort((a, b) => b.lastUsed - a.lastUsed);
  },

  async delete(id) {
    const root = await openRoot();
    if (root && !(await removeUnused(root, await keyOf(id)))) {
      throw new DopplerError('invalid-input', `${id} is in use in a tab; unload it there first.`);
    }
  },

  async clear() {
    for (const { id } of await this.list()) await this.delete(id);
  },

  persist: async () => Boolean(await navigator.storage?.persist?.()),

  async estimate() {
    const { usage = 0, quota = 0 } = (await navigator.storage?.estimate?.()) ?? {};
    return { usageBytes: usage, quotaBytes: quota, persisted: Boolean(await navigator.storage?.persisted?.()) };
  },
};

/**
 * Makes room for `bytes` more, at the cost of the models that were used longest ago. Error: that is not enough.
 * @param {FileSystemDirectoryHandle} root @param {number} bytes @param {string} name what they are for
 */
export async function makeRoom(root, bytes, name) {
  let free = await freeBytes();
  if (free >= bytes) return;
  for (const model of (await modelCache.list()).reverse()) {
    await removeUnused(root, await keyOf(model.id));
    free = await freeBytes();
    if (free >= bytes) return;
  }
  const { quotaBytes } = await modelCache.estimate();
  throw new DopplerError('quota', `${name} needs ${inMegabytes(bytes)} of the browser's storage; ${inMegabytes(free)} of ` +
    `${inMegabytes(quotaBytes)} are free for this site. Free some disk space, or load it with cache: false.`);
}

async function freeBytes() {
  const { usageBytes, quotaBytes } = await modelCache.estimate();
  return Math.max(0, quotaBytes - usageBytes - kSlackBytes);
}

/** @param {number} bytes */
function inMegabytes(bytes) {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.ceil(bytes / 1e6)} MB`;
}

/** false: a tab uses it. @param {FileSystemDirectoryHandle} root @param {string} key @returns {Promise<boolean>} */
async function removeUnused(root, key) {
  return navigator.locks.request(useLock(key), { mode: 'exclusive', ifAvailable: true }, async (lock) => {
    if (!lock) return false;
    await root.removeEntry(key, { recursive: true }).catch((error) => {
      if (error.name !== 'NotFoundError') throw error;
    });
    return true;
  });
}

/** @param {FileSystemDirectoryHandle} folder @returns {Promise<FileSystemDirectoryHandle[]>} */
async function folders(folder) {
  const found = [];
  for await (const entry of /** @type {any} */ (folder).values()) if (entry.kind === 'directory') found.push(entry);
  return found;
}

/** @param {FileSystemDirectoryHandle} folder @returns {Promise<import('./doppler.d.ts').CachedModel | null>} */
async function describe(folder) {
  const model = await readRecord(folder);
  if (!model) return null;
  const files = [];
  for (const below of await folders(folder)) {
    const file = await readRecord(below);
    if (!file || file.isAbsent) continue;
    const cachedBytes = await new Pieces(below, file.size).cachedBytes();
    files.push({ url: file.url, bytes: file.size, cachedBytes });
  }
  const sum = (member) => files.reduce((total, file) => total + file[member], 0);
  if (files.length === 0) return null; // nothing was found at its address
  const { id, lastUsed, complete } = model;
  return { id, files, bytes: sum('bytes'), cachedBytes: sum('cachedBytes'), complete, lastUsed };
}
