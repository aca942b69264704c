// The file half of the boundary: the imports of src/web/web_file_set.cpp over a FileAccess, which is Node's files
// (files_node.mjs), the user's (files_blob.mjs) or a server's (files_http.mjs, cached_files.mjs).
import { HostError, Status } from './wasm_loader.mjs';

/**
 * One readable file.
 * @typedef {object} OpenFile
 * @property {string} name for messages
 * @property {number} size in bytes
 * @property {(offset: number, count: number, memory?: ArrayBuffer) => Promise<Uint8Array>} read exactly `count` bytes,
 * or throws; memory: may be used for the answer, and is then detached. The answer's memory is the caller's.
 * @property {(offset: number, into: Uint8Array) => Promise<void>} [readInto] as many as there is room for, without a
 * copy
 * @property {() => void} close
 * @property {boolean} [isRemote] each read asks the network, and nothing is kept
 * @property {string} [verified] the SHA-256 that the whole file was found to have
 * @property {(sha256: string) => Promise<void>} [noteVerified]
 */
/**
 * The folder of a model.
 * @typedef {object} FileAccess
 * @property {{root: string, mainFile: string, names: string[]}} files as WebAssembly is told
 * @property {(name: string) => Promise<OpenFile | null>} open null: there is no such file
 * @property {() => Promise<void>} [finished] the model was loaded
 * @property {(error: any) => Promise<void>} [failed] it could not be loaded
 * @property {() => void} [close] it is not used any more
 */

export class FileHost {
  /** @type {(OpenFile | null)[]} */ #open = [];
  /** By number; the model's first, then those of adapters. @type {FileAccess[]} */ #sets;
  /** Memory of chunks that were used. @type {ArrayBuffer[]} */ #spare = [];
  /** Why a file could not be opened or read, with its kind, which the core does not know. @type {any} */
  failure = null;

  /** @param {import('./wasm_loader.mjs').Core} core @param {FileAccess} access */
  constructor(core, access) {
    this.core = core;
    this.#sets = [access];
  }

  /** @returns {Record<string, Function>} */
  imports() {
    const { core } = this;
    return {
      dp_file_open: (ticket, set, name, nameBytes) => {
        const text = core.text(name, nameBytes);
        core.answer(ticket, async () => {
          const file = await this.#sets[set].open(text).catch((error) => this.#fail(error));
          if (!file) throw new HostError(Status.notThere, text);
          this.#open.push(file);
          return JSON.stringify({ file: this.#open.length - 1, size: file.size, name: file.name });
        });
      },
      dp_file_read: (ticket, file, offset, bytes) =>
        core.answer(ticket, () => this.#file(file).read(offset, bytes >>> 0).catch((error) => this.#fail(error))),
      dp_file_close: (file) => {
        this.#file(file).close();
        this.#open[file] = null;
      },
    };
  }

  /** Further files. @param {FileAccess} access @returns {object} as WebAssembly is told */
  add(access) {
    return { ...access.files, set: this.#sets.push(access) - 1 };
  }

  /** @param {any} error @returns {never} */
  #fail(error) {
    this.failure = error;
    throw error;
  }

  /** @param {number} number */
  #file(number) {
    const file = this.#open[number];
    if (!file) throw new HostError(Status.failed, `File ${number} is not open.`);
    return file;
  }

  /**
   * The bytes in chunks, the next one being read while one is used. A chunk's memory is used again after that. Chunks
   * end where the file's own pieces of that size do (cached_files.mjs), so that no chunk is put together from two
   * pieces. All chunks but the last have whole words.
   * @param {number} number @param {number} offset @param {number} bytes @param {number} chunkBytes
   */
  async *chunks(number, offset, bytes, chunkBytes) {
    const file = this.#file(number);
    const end = offset + bytes;
    const countAt = (from) => Math.min(from % 4 === 0 ? chunkBytes - (from % chunkBytes) : chunkBytes, end - from);
    const read = (from) => {
      const reading = file.read(from, countAt(from), this.#spare.pop() ?? new ArrayBuffer(chunkBytes));
      reading.catch((error) => (this.failure = error)); // the one who awaits it hears of it, also if that is later
      return reading;
    };
    let next = read(offset);
    for (let at = offset; at < end;) {
      const chunk = await next;
      at += countAt(at);
      if (at < end) next = read(at);
      yield chunk;
      if (chunk.buffer.byteLength === chunkBytes) this.#spare.push(/** @type {ArrayBuffer} */ (chunk.buffer));
    }
  }

  /** Nothing will be read in chunks for a while. */
  releaseSpare() {
    this.#spare = [];
  }

  /**
   * Reads bytes of a file into `into`.
   * @param {number} number
   * @param {number} offset
   * @param {Uint8Array} into
   */
  async fill(number, offset, into) {
    const file = this.#file(number);
    const filling = file.readInto?.(offset, into) ?? file.read(offset, into.length).then((bytes) => into.set(bytes));
    await filling.catch((error) => this.#fail(error));
  }

  close() {
    for (const file of this.#open) file?.close();
    this.#open = [];
  }
}
