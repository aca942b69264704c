// The models in the browser's storage as users see them: list, delete, room for another. Doppler.cache in doppler.d.ts.
import { DopplerError } from './errors.mjs';
import { keyOf, openRoot, Pieces, readRecord } from './piece_store.mjs';

const kShownModels = 3; // in a sentence

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

/** Whether it can be loaded without the network. @param {string} id */
export async function isStored(id) {
  const root = await openRoot();
  const folder = await root?.getDirectoryHandle(await keyOf(id)).catch(() => null);
  return Boolean(folder && (await readRecord(folder))?.complete);
}

/**
 * Removes the model that was used longest ago and is in no tab's use. Browsers do not tell beforehand how much they
 * will take, so this is done when a write fails.
 * @param {FileSystemDirectoryHandle} root @returns {Promise<boolean>} false: there is none
 */
export async function removeOldest(root) {
  for (const model of (await modelCache.list()).reverse()) {
    if (await removeUnused(root, await keyOf(model.id))) return true;
  }
  return false;
}

/** Names the stored models, which could be deleted. @returns {Promise<string>} a sentence, or nothing */
export async function storedSentence() {
  const models = (await modelCache.list()).filter(({ cachedBytes }) => cachedBytes > 0).sort((a, b) => b.cachedBytes - a.cachedBytes);
  if (models.length === 0) return '';
  const all = models.reduce((sum, { cachedBytes }) => sum + cachedBytes, 0);
  const shown = models.slice(0, kShownModels).map(({ id, cachedBytes }) => `${id} (${inMegabytes(cachedBytes)})`);
  return ` ${inMegabytes(all)} of models are stored; the largest: ${shown.join(', ')}. Delete what is not needed, or free disk space.`;
}

/** @param {number} bytes */
function inMegabytes(bytes) {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.ceil(bytes / 1e6)} MB`;
}

/** false: a tab uses it. @param {FileSystemDirectoryHandle} root @param {string} key @returns {Promise<boolean>} */
async function removeUnused(root, key) {
  return navigator.locks.request(useLock(key), { mode: 'exclusive', ifAvailable: true }, async (lock) => {
    if (!lock) return false;
    await removeFolder(root, key);
    return true;
  });
}

/** @param {FileSystemDirectoryHandle} root @param {string} key */
export async function removeFolder(root, key) {
  await root.removeEntry(key, { recursive: true }).catch((error) => {
    if (error.name !== 'NotFoundError') throw error;
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
