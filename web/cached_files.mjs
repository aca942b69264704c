// A model on a web server, read through the browser's storage: what is there is read from it, what is not is downloaded
// by whole pieces and kept. Tabs share it: a piece is downloaded under a lock of its own, by one tab.
// Read next: piece_store.mjs (the storage), files_http.mjs (the requests).
import { asDopplerError, DopplerError, throwIfAborted } from './errors.mjs';
import { addressOf, fetchRange, probe } from './files_http.mjs';
import { makeRoom, useLock } from './model_cache.mjs';
import { folderName, keyOf, kPieceBytes, Pieces, readRecord, writeRecord } from './piece_store.mjs';

const kAhead = 3;   // pieces downloaded beyond the one that is wanted: the answer's delay is hidden
const kKept = 8;    // pieces in memory: those ahead, and those of files that are read by turns

/**
 * @typedef {import('./files_http.mjs').HttpOptions & {
 *   onNetwork?: (bytes: number) => void, warn: (message: string) => void}} CacheOptions
 */

export class CachedFiles {
  #isOffline = globalThis.navigator?.onLine === false;
  #canWrite = true;
  #release = () => {};
  /** @type {{root: string, mainFile: string, names: string[]}} */ files = { root: '', mainFile: '', names: [] };

  /**
   * @param {FileSystemDirectoryHandle} root of all models
   * @param {FileSystemDirectoryHandle} folder of this one @param {{id: string, address: string, complete: boolean}}
   * record
   * @param {boolean} isFixed @param {CacheOptions} options
   */
  constructor(root, folder, record, isFixed, options) {
    this.root = root;
    this.folder = folder;
    this.record = { ...record, lastUsed: Date.now() };
    this.isFixed = isFixed;
    this.options = options;
  }

  /**
   * @param {FileSystemDirectoryHandle} root @param {string} id what was given to load()
   * @param {() => Promise<string>} resolve the model's address now; asks the network where `id` is a name
   * @param {boolean} isFixed whether the bytes behind an address never change
   * @param {CacheOptions} options
   */
  static async open(root, id, resolve, isFixed, options) {
    const key = await keyOf(id);
    const release = await holdUseLock(key, options.signal);
    const folder = await root.getDirectoryHandle(key, { create: true });
    const { address = '', complete = false } = (await readRecord(folder)) ?? {};
    const self = new CachedFiles(root, folder, { id, address, complete }, isFixed, options);
    self.#release = release;
    try {
      self.record.address = await self.#address(resolve);
      await writeRecord(folder, self.record);
    } catch (error) {
      release();
      throw error;
    }
    const url = new URL(self.record.address);
    const isFolder = url.pathname.endsWith('/');
    const mainFile = isFolder ? '' : decodeURIComponent(url.pathname.slice(url.pathname.lastIndexOf('/') + 1));
    self.files = { root: url.href, mainFile, names: [] };
    return self;
  }

  /** @param {string} name @returns {Promise<import('./file_host.mjs').OpenFile | null>} */
  async open(name) {
    const { signal } = this.options;
    const url = addressOf(new URL(this.record.address), this.files.mainFile, name);
    let folder = await this.folder.getDirectoryHandle(folderName(name), { create: true });
    const stored = await readRecord(folder);
    const record = await this.#freshRecord(url, stored?.url === url ? stored : null);
    throwIfAborted(signal);
    if (stored && JSON.stringify(stored) !== JSON.stringify(record)) { // another version of the file
      await this.folder.removeEntry(folder.name, { recursive: true });
      folder = await this.folder.getDirectoryHandle(folderName(name), { create: true });
    }
    await writeRecord(folder, record);
    if (record.isAbsent) return null;
    const pieces = new Pieces(folder, record.size);
    const missing = record.size - (await pieces.cachedBytes());
    if (missing > 0) await makeRoom(this.root, missing, url);
    const reader = new PieceReader(this, url, pieces, `doppler-piece-${this.folder.name}-${folder.name}`);
    return { name: url, size: record.size, close() {}, read: (offset, count) => reader.read(offset, count) };
  }

  /** The model was loaded: it can be loaded again without the network. */
  async finished() {
    if (!this.#canWrite) return;
    this.record = { ...this.record, complete: true, lastUsed: Date.now() };
    await writeRecord(this.folder, this.record);
  }

  close() {
    this.#release();
  }

  /** A piece that could not be kept: the model is still loaded. @param {unknown} error */
  cannotWrite(error) {
    if (this.#canWrite) this.options.warn(`The model is not kept in the browser's storage: ${asDopplerError(error).message}`);
    this.#canWrite = false;
  }
  get canWrite() {
    return this.#canWrite;
  }

  // Where the network fails, what was found the last time is right.
  async #address(resolve) {
    if (this.#isOffline && this.record.address) return this.record.address;
    try {
      return await resolve();
    } catch (error) {
      throwIfAborted(this.options.signal);
      if (!this.record.address || !this.record.complete) throw error;
      this.#isOffline = true;
      return this.record.address;
    }
  }

  async #freshRecord(url, stored) {
    if (stored && (this.isFixed || this.#isOffline)) return stored;
    try {
      const found = await probe(url, { ...this.options, tries: stored && this.record.complete ? 1 : undefined });
      return found ?? { url, isAbsent: true };
    } catch (error) {
      throwIfAborted(this.options.signal);
      if (!stored) throw error;
      this.#isOffline = true;
      return stored;
    }
  }
}

/**
 * While it is held, no tab removes the model.
 * @param {string} key
 * @param {AbortSignal} [signal]
 * @returns {Promise<() => void>} how to release it
 */
function holdUseLock(key, signal) {
  return new Promise((resolve, reject) => {
    const hold = () => new Promise((release) => resolve(() => release(undefined)));
    navigator.locks.request(useLock(key), { mode: 'shared', signal }, hold).catch(reject);
  });
}

/** Reads one file by pieces, each once. */
class PieceReader {
  /** In order of their use, the latest last. @type {Map<number, Promise<Uint8Array>>} */ #pieces = new Map();

  /** @param {CachedFiles} owner @param {string} url @param {Pieces} pieces @param {string} lock */
  constructor(owner, url, pieces, lock) {
    this.owner = owner;
    this.url = url;
    this.pieces = pieces;
    this.lock = lock;
  }

  /** @param {number} offset @param {number} count */
  async read(offset, count) {
    if (offset + count > this.pieces.size) {
      throw new DopplerError('io', `${this.url} has ${this.pieces.size} bytes, not ${offset + count}.`);
    }
    const out = new Uint8Array(count);
    for (let at = 0; at < count;) {
      const index = Math.floor((offset + at) / kPieceBytes);
      const piece = await this.#piece(index, kAhead);
      const part = piece.subarray(offset + at - index * kPieceBytes).subarray(0, count - at);
      out.set(part, at);
      at += part.length;
    }
    return out;
  }

  /**
   * @param {number} index
   * @param {number} ahead pieces to download beyond it, if it must be
   * @returns {Promise<Uint8Array>}
   */
  #piece(index, ahead) {
    const piece = this.#pieces.get(index) ?? this.#load(index, ahead);
    this.#pieces.delete(index);
    this.#pieces.set(index, piece);
    if (this.#pieces.size > kKept) this.#pieces.delete(/** @type {number} */ (this.#pieces.keys().next().value));
    piece.catch(() => this.#pieces.delete(index)); // the caller that awaits it is told
    return piece;
  }

  /** @param {number} index @param {number} ahead */
  async #load(index, ahead) {
    const { signal } = this.owner.options;
    throwIfAborted(signal);
    const stored = await this.pieces.read(index);
    if (stored) return stored;
    for (let next = index + 1; next <= index + ahead && next * kPieceBytes < this.pieces.size; next++) {
      if (!this.#pieces.has(next)) void this.#piece(next, 0);
    }
    const download = async () => {
      const byAnotherTab = await this.pieces.read(index);
      if (byAnotherTab) return byAnotherTab;
      const bytes = await fetchRange(this.url, index * kPieceBytes, this.pieces.bytesOf(index), this.owner.options);
      if (this.owner.canWrite) await this.pieces.write(index, bytes).catch((error) => this.owner.cannotWrite(error));
      return bytes;
    };
    return navigator.locks.request(`${this.lock}-${index}`, { signal }, download);
  }
}
