// A model on a web server, read through the browser's storage: what is there is read from it, what is not is downloaded
// by whole pieces and kept. Tabs share it: a piece is downloaded under a lock of its own, by one tab.
// Read next: piece_store.mjs (the storage), files_http.mjs (the requests).
import { asDopplerError, DopplerError, throwIfAborted } from './errors.mjs';
import { addressOf, fetchRange, probe } from './files_http.mjs';
import { removeFolder, removeOldest, storedSentence, useLock } from './model_cache.mjs';
import { folderName, keyOf, kPieceBytes, kStoredBytes, Pieces, readRecord, writeRecord } from './piece_store.mjs';

const kAhead = 1;   // pieces downloaded beyond the one that is wanted: the answer's delay is hidden
const kKept = 2;    // pieces in memory beside those under way: the latest, and one of a file read by turns
// Errors that say no word against a model's files.
const kNotOfFiles = new Set(['cancelled', 'io', 'quota', 'out-of-memory', 'device']);

/**
 * @typedef {import('./files_http.mjs').HttpOptions & {
 *   onNetwork?: (bytes: number) => void, warn: (message: string) => void}} CacheOptions
 */

export class CachedFiles {
  #isOffline = globalThis.navigator?.onLine === false;
  #canWrite = true;
  #release = () => {};
  /** Pieces that are being fetched or written. @type {Set<Promise<void>>} */ underWay = new Set();
  /** @type {PieceReader[]} */ #readers = [];
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
    if (stored && (stored.size !== record.size || stored.version !== record.version || stored.isAbsent !== record.isAbsent || stored.url !== url)) {
      // another version of the file
      await this.folder.removeEntry(folder.name, { recursive: true });
      folder = await this.folder.getDirectoryHandle(folderName(name), { create: true });
    }
    await writeRecord(folder, record);
    if (record.isAbsent) return null;
    const pieces = new Pieces(folder, record.size);
    const isWhole = (await pieces.cachedBytes()) === record.size;
    const unverify = isWhole && record.verified ? () => writeRecord(folder, { ...record, verified: undefined }) : null;
    const reader = new PieceReader(this, url, pieces, `doppler-piece-${this.folder.name}-${folder.name}`, unverify);
    this.#readers.push(reader);
    return {
      name: url, size: record.size, close() {}, read: (offset, count, memory) => reader.read(offset, count, memory),
      verified: isWhole ? record.verified : undefined,
      noteVerified: (verified) => writeRecord(folder, { ...record, verified }),
    };
  }

  /** The model was loaded: it can be loaded again without the network. */
  async finished() {
    for (const reader of this.#readers) reader.release();
    if (!this.#canWrite) return;
    this.record = { ...this.record, complete: true, lastUsed: Date.now() };
    await writeRecord(this.folder, this.record);
  }

  /** Nothing stays of files that are no model that could ever be loaded. @param {any} error */
  async failed(error) {
    if (this.record.complete || kNotOfFiles.has(asDopplerError(error).kind)) return;
    this.#canWrite = false;
    await Promise.all(this.underWay);
    await removeFolder(this.root, this.folder.name).catch(() => {}); // another tab writes to it
  }

  close() {
    this.#release();
  }

  /**
   * Keeps a piece. If the storage is full, the models that were used longest ago leave. If no such model is left, the
   * new one is still loaded, but not kept.
   * @param {Pieces} pieces @param {number} index @param {Uint8Array} bytes
   * @returns {Promise<boolean>} whether it is kept
   */
  async keep(pieces, index, bytes) {
    while (this.#canWrite) {
      try {
        await pieces.write(index, bytes);
        return true;
      } catch (error) {
        if (asDopplerError(error).kind === 'quota' && (await removeOldest(this.root))) continue;
        if (!this.#canWrite) break; // another piece said it
        this.#canWrite = false;
        this.options.warn(`The model is not kept in the browser's storage: ${asDopplerError(error).message}${await storedSentence()}`);
      }
    }
    return false;
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

/**
 * @typedef {object} Piece
 * @property {Promise<Uint8Array>} bytes in memory of the reader's
 * @property {boolean} isUnderWay
 * @property {number} users that wait for its bytes, or copy them
 */

/**
 * Reads one file by pieces, in few buffers that go round. Each byte is fetched once: a piece that is not kept stays in
 * memory until it was used. After that only the bytes that a caller wants are fetched.
 */
class PieceReader {
  /** In order of their use, the latest last. @type {Map<number, Piece>} */ #pieces = new Map();
  /** Pieces that are not kept. @type {Map<number, {bytes: Uint8Array, unused: number}>} */ #unkept = new Map();
  /** Of kStoredBytes each. @type {ArrayBuffer[]} */ #free = [];
  #memory = () => this.#free.pop() ?? new ArrayBuffer(kStoredBytes);

  /** @param {CachedFiles} owner @param {string} url @param {Pieces} pieces @param {string} lock
   * @param {(() => Promise<void>) | null} unverify of a file whose hash is known to be right */
  constructor(owner, url, pieces, lock, unverify) {
    this.owner = owner;
    this.url = url;
    this.pieces = pieces;
    this.lock = lock;
    this.unverify = unverify;
  }

  /** @param {number} offset @param {number} count @param {ArrayBuffer} [memory] for the answer */
  async read(offset, count, memory = new ArrayBuffer(count)) {
    if (offset + count > this.pieces.size) {
      throw new DopplerError('io', `${this.url} has ${this.pieces.size} bytes, not ${offset + count}.`);
    }
    const out = new Uint8Array(memory, 0, count);
    for (let at = 0; at < count;) {
      const index = Math.floor((offset + at) / kPieceBytes);
      const from = offset + at - index * kPieceBytes;
      const part = Math.min(this.pieces.bytesOf(index) - from, count - at);
      await this.#copy(index, from, out.subarray(at, at + part));
      at += part;
    }
    return out;
  }

  /** Gives the memory back; the next read makes it again. */
  release() {
    for (const [index, piece] of [...this.#pieces]) if (!isUsed(piece)) this.#pieces.delete(index);
    this.#free = [];
  }

  /** @param {number} index @param {number} from @param {Uint8Array} to */
  async #copy(index, from, to) {
    if (this.#copyUnkept(index, from, to)) return;
    if (!this.owner.canWrite && !this.#pieces.has(index)) return this.#copyUnstored(index, from, to);
    const piece = this.#piece(index, kAhead);
    piece.users++;
    try {
      const bytes = await piece.bytes;
      if (!this.#copyUnkept(index, from, to)) to.set(bytes.subarray(from, from + to.length));
    } finally {
      piece.users--;
    }
  }

  /** @param {number} index @param {number} from @param {Uint8Array} to */
  #copyUnkept(index, from, to) {
    const unkept = this.#unkept.get(index);
    if (!unkept) return false;
    to.set(unkept.bytes.subarray(from, from + to.length));
    unkept.unused -= to.length;
    if (unkept.unused <= 0) this.#unkept.delete(index);
    return true;
  }

  /** Copies when the storage takes no more. @param {number} index @param {number} from @param {Uint8Array} to */
  async #copyUnstored(index, from, to) {
    const stored = await this.pieces.read(index, this.#memory);
    if (!stored) return to.set(await fetchRange(this.url, index * kPieceBytes + from, to.length, this.owner.options));
    to.set(stored.subarray(from, from + to.length));
    this.#recycle(stored);
  }

  /**
   * @param {number} index @param {number} ahead pieces to download beyond it, if it must be
   * @returns {Piece}
   */
  #piece(index, ahead) {
    const piece = this.#pieces.get(index) ?? this.#begin(index, ahead);
    this.#pieces.delete(index);
    this.#pieces.set(index, piece);
    // A piece under way stays in the list, or it would be fetched a second time.
    const there = [...this.#pieces].filter(([, other]) => other !== piece && !isUsed(other));
    for (const [old] of there.slice(0, Math.max(0, there.length + 1 - kKept))) this.#forget(old);
    return piece;
  }

  /** @param {number} index of a piece that nobody uses */
  #forget(index) {
    const piece = this.#pieces.get(index);
    this.#pieces.delete(index);
    if (!this.#unkept.has(index)) void piece?.bytes.then((bytes) => this.#recycle(bytes), () => {});
  }

  /** @param {Uint8Array} bytes that nobody uses */
  #recycle({ buffer }) {
    if (buffer.byteLength === kStoredBytes) this.#free.push(/** @type {ArrayBuffer} */ (buffer));
  }

  /** @param {number} index @param {number} ahead */
  #begin(index, ahead) {
    const piece = { bytes: this.#load(index, ahead), isUnderWay: true, users: 0 };
    const { underWay } = this.owner;
    // The caller that awaits the piece hears of a failure.
    const ended = piece.bytes.then(() => {}, () => void this.#pieces.delete(index))
      .then(() => {
        piece.isUnderWay = false;
        underWay.delete(ended);
      });
    underWay.add(ended);
    return piece;
  }

  /** @param {number} index @param {number} ahead */
  async #load(index, ahead) {
    const { signal } = this.owner.options;
    throwIfAborted(signal);
    const stored = await this.pieces.read(index, this.#memory);
    if (stored) return stored;
    for (let next = index + 1; next <= index + ahead && next * kPieceBytes < this.pieces.size; next++) {
      if (!this.#pieces.has(next)) void this.#piece(next, 0);
    }
    const download = async () => {
      const byAnotherTab = await this.pieces.read(index, this.#memory);
      if (byAnotherTab) return byAnotherTab;
      if (this.unverify) {
        await this.unverify();
        throw new DopplerError('integrity', `A piece of ${this.url} was damaged in the browser's storage. Load it again: it is then fetched and checked.`);
      }
      const count = this.pieces.bytesOf(index);
      const bytes = await fetchRange(this.url, index * kPieceBytes, count, this.owner.options, this.#memory());
      if (!(await this.owner.keep(this.pieces, index, bytes))) this.#unkept.set(index, { bytes, unused: count });
      return bytes;
    };
    return navigator.locks.request(`${this.lock}-${index}`, { signal }, download);
  }
}

/** @param {Piece} piece */
function isUsed({ isUnderWay, users }) {
  return isUnderWay || users > 0;
}
