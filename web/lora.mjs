// Adapters (LoRA) on the engine's side: those that a model is loaded with, and those that come and go by name. Their
// files stay open, since a new device needs them again. Read next: adapter_fields.mjs, which reads what callers give.
import { throwIfAborted } from './errors.mjs';
import { openBlob } from './files_blob.mjs';
import { openSource } from './sources.mjs';

/** @typedef {import('./file_host.mjs').FileAccess} FileAccess */
/** @typedef {import('./adapter_fields.mjs').AdapterFile} AdapterFile */
/** @typedef {{access: FileAccess, name: string, scale: number}} Opened */
/** @typedef {{load?: AdapterFile, unload?: string}} Change neither: the adapters are only listed */

const kMostKept = 256 * 2 ** 20; // bytes of a file

export class Lora {
  #options;
  /** @type {{list: Opened[], slots: number, rank: number} | undefined} */ first; // what the model is loaded with
  /** The last change of each name since then. null: unloaded @type {Map<string, Opened | null>} */ #later = new Map();

  /** @param {import('./sources.mjs').SourceOptions} options of the model's files */
  constructor(options) {
    this.#options = options;
  }

  /** @param {{adapters?: AdapterFile[], adapterSlots?: number, adapterRank?: number}} options of loading */
  async begin({ adapters = [], adapterSlots: slots = 0, adapterRank: rank = 0 }) {
    const list = [];
    for (const adapter of adapters) list.push(await this.#opened(adapter, this.#options.signal));
    if (list.length > 0 || slots > 0) this.first = { list, slots, rank };
  }

  /**
   * @param {import('./instance.mjs').Instance} instance @param {Change} change @param {AbortSignal} signal
   * @returns {Promise<any[]>} the adapters with names
   */
  async change(instance, { load, unload }, signal) {
    if (unload !== undefined) {
      const left = await instance.changeAdapters({ unload });
      this.#later.set(unload, null);
      return left;
    }
    if (!load) return instance.changeAdapters({});
    const opened = await this.#opened(load, signal);
    throwIfAborted(signal);
    const loaded = await instance.changeAdapters({ load: opened });
    this.#later.set(load.name, opened);
    return loaded;
  }

  /**
   * Brings a new device to the same adapters. If one cannot be read again, only answers that ask for it fail.
   * @param {import('./instance.mjs').Instance} instance @param {(error: any) => Promise<boolean>} isLost the device
   */
  async again(instance, isLost) {
    const named = new Set(this.first?.list.map(({ name }) => name));
    for (const [name, load] of this.#later) {
      if (!load && !named.has(name)) continue;
      try {
        await instance.changeAdapters(load ? { load } : { unload: name });
      } catch (error) {
        if (await isLost(error)) throw error;
        this.#options.warn?.(`The adapter "${name}" is not there any more: ${/** @type {Error} */ (error).message}`);
      }
    }
  }

  /** @param {AdapterFile} file @param {AbortSignal | undefined} signal @returns {Promise<Opened>} */
  async #opened({ source, name, scale, headers }, signal) {
    const { hubUrl, openPath, onNetwork, warn } = this.#options;
    const access = await openSource(source, { hubUrl, openPath, onNetwork, warn, signal, headers, cache: false, isAdapter: true });
    return { access: keptWhole(access), name, scale };
  }
}

/**
 * An adapter is read tensor by tensor, which would be as many requests: a file of the network is kept when it was read,
 * unless it is large.
 * @param {FileAccess} access @returns {FileAccess}
 */
function keptWhole(access) {
  /** @type {Map<string, Blob>} */ const kept = new Map();
  return { ...access, open: async (name) => {
    const known = kept.get(name);
    if (known) return openBlob(known, name);
    const file = await access.open(name);
    if (!file?.isRemote || file.size > kMostKept) return file;
    const blob = new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (await file.read(0, file.size))]);
    kept.set(name, blob);
    return openBlob(blob, file.name);
  } };
}
