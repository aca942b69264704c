// The model that the page has loaded, and the one that it is loading: the old one stays until the new one is ready,
// unless the two hardly fit the device together. Tells its changes as events "change" (state, progress) and "notice"
// (detail: a sentence for the reader). No DOM. Read next: chat.mjs.
import { nameOf } from './catalogue.mjs';

/** @typedef {import('../doppler.d.ts').Doppler} Doppler */
/** @typedef {import('../doppler.d.ts').ModelSource} ModelSource */
/**
 * @typedef {{source: ModelSource, name: string, options: any, bytes: number}} Asked bytes: on the GPU, as far as it is
 *   known
 */

// Browsers do not tell a GPU's memory. Two models may take this share of the machine's together.
const kShareOfMemory = 0.5;
const kUsualMemoryGiB = 4; // of browsers that do not tell even that
const kGiB = 2 ** 30;
const kUsualRank = 16; // room for adapters of this rank, if the first one has a smaller rank
const kNeedsRank = /adapterRank/; // the core's sentence says to load the model with more

export class ModelHost extends EventTarget {
  /** @type {Doppler | null} */ model = null;
  name = '';
  /** The address or name of the model; empty for a file. @type {string} */ source = '';
  /** The model that is being loaded. @type {{name: string, source: string} | null} */ loading = null;
  /** @type {import('../doppler.d.ts').Progress | null} */ progress = null;
  /** The last load, if it failed. @type {{name: string, source: string, error: string} | null} */ failure = null;
  /** Its worker ended, and another one begins. */
  isRecovering = false;
  /** Bytes on the GPU and in WebAssembly, when last asked. @type {import('../doppler.d.ts').Memory | null} */
  memory = null;
  /** The name of the adapter that the next answer has; empty: none. */
  adapter = '';
  /** @type {AbortController | null} */ #abort = null;
  /** @type {Promise<any>} */ #settled = Promise.resolve();
  /** @type {Asked | null} */ #asked = null;
  /** @type {Map<Doppler, Set<Promise<void>>>} */ #holds = new Map();
  #package;

  /** @param {() => Promise<any>} importPackage gives the module of the npm package */
  constructor(importPackage) {
    super();
    this.#package = importPackage;
  }

  /** @returns {"none" | "loading" | "recovering" | "ready" | "failed"} */
  get state() {
    if (this.loading) return 'loading';
    if (this.model) return this.isRecovering ? 'recovering' : 'ready';
    return this.failure ? 'failed' : 'none';
  }
  get error() {
    return this.failure?.error ?? '';
  }

  /** The adapters (LoRA) of the loaded model. @returns {{name: string, source: ModelSource}[]} */
  get adapters() {
    return (this.model && this.#asked?.options.adapters) ?? [];
  }

  /** The class Doppler: loaded when it is first needed, so that the page paints before. @returns {Promise<any>} */
  async engine() {
    return (await this.#package()).Doppler;
  }

  /**
   * Loads a model, which takes the place of the loaded one when it is ready. Does not throw.
   * @param {ModelSource} source @param {string} name @param {object} [options] of doppler.d.ts, LoadOptions
   * @param {number} [bytes] that it takes on the GPU, as far as it is known
   * @returns {Promise<string>} why it failed; empty if it did not, or was cancelled
   */
  async load(source, name, options = {}, bytes = 0) {
    this.cancel();
    const loading = this.#settled.then(() => this.#load({ source, name, options, bytes }));
    this.#settled = loading;
    return loading;
  }

  /** The same model with its vision tower, which takes memory that most conversations have no use for. */
  async loadPictures() {
    await this.#loadAgain({ images: true });
  }

  /**
   * Brings an adapter to the loaded model, and chooses it. A model without room for it, as each is at first, is loaded
   * once more with it.
   * @param {string} wanted its name; an adapter of that name is replaced @param {ModelSource} source
   * @returns {Promise<string>} why it failed; empty if it did not
   */
  async addAdapter(wanted, source) {
    const { model } = this;
    if (!model) return 'No model is loaded, and an adapter changes one.';
    const adapters = [...this.adapters.filter(({ name }) => name !== wanted), { name: wanted, source }];
    if (model.info.adapterSlots > 0) {
      try {
        await model.loadAdapter(wanted, source);
        if (this.model === model) this.#have(adapters, wanted);
        return '';
      } catch (error) {
        if (!kNeedsRank.test(sentence(error))) return sentence(error);
      }
    }
    const failed = await this.#loadAgain({ adapters, adapterRank: kUsualRank });
    if (failed === '' && this.adapters.some(({ name }) => name === wanted)) this.chooseAdapter(wanted);
    return failed;
  }

  /** Answers from now on have this adapter. @param {string} name empty: none */
  chooseAdapter(name) {
    this.#set({ adapter: name });
  }

  /** @param {string} name */
  async removeAdapter(name) {
    this.#have(this.adapters.filter((one) => one.name !== name), this.adapter === name ? '' : this.adapter);
    await this.model?.unloadAdapter(name).catch(() => {}); // a new worker may not have it
  }

  /**
   * Notes the adapters, for a load of the same model.
   * @param {any[]} adapters @param {string} adapter the chosen one
   */
  #have(adapters, adapter) {
    const { source, name, options, bytes } = /** @type {Asked} */ (this.#asked);
    this.#asked = { source, name, options: { ...options, adapters }, bytes };
    this.#set({ adapter });
  }

  /** The loaded model once more, with other options. @param {object} changes @returns {Promise<string>} as of load() */
  async #loadAgain(changes) {
    if (!this.#asked) return '';
    const { source, name, options, bytes } = this.#asked;
    return this.load(source, name, { ...options, ...changes }, bytes);
  }

  /** @param {Asked} asked */
  async #load(asked) {
    const abort = new AbortController();
    this.#abort = abort;
    const shown = { name: asked.name, source: typeof asked.source === 'string' ? asked.source : '' };
    this.#set({ loading: shown, failure: null, progress: null });
    const old = this.model && this.#asked;
    let error = '';
    try {
      const Engine = await this.engine();
      // The old model is given up only after this has found a new one.
      const { bytes } = await Engine.inspect(asked.source, { ...asked.options, signal: abort.signal });
      asked.bytes ||= bytes ?? 0;
      if (old && !this.#fitsBesides(asked)) await this.#drop();
      const model = await this.#loadBeside(Engine, asked, abort.signal);
      if (abort.signal.aborted) await model.unload();
      else this.#take(model, asked, shown);
    } catch (thrown) {
      if (!abort.signal.aborted) error = sentence(thrown);
    }
    this.#abort = null;
    this.#set({ loading: null, progress: null, failure: error ? { ...shown, error } : null });
    if (old && !this.model) await this.#bringBack(old, error);
    await this.measure();
    return error;
  }

  /** @param {any} Engine @param {Asked} asked @param {AbortSignal} signal @returns {Promise<Doppler>} */
  async #loadBeside(Engine, { source, options }, signal) {
    const load = () => Engine.load(source, { ...options, signal, progress: (now) => this.#set({ progress: now }) });
    try {
      return await load();
    } catch (error) {
      if (/** @type {any} */ (error).kind !== 'out-of-memory' || !this.model || signal.aborted) throw error;
      await this.#drop();
      return load();
    }
  }

  /** The model that had to go for one that did not load. @param {Asked} old @param {string} error */
  async #bringBack(old, error) {
    this.#set({ loading: { name: old.name, source: typeof old.source === 'string' ? old.source : '' } });
    try {
      const Engine = await this.engine();
      this.#take(await Engine.load(old.source, old.options), old, this.loading ?? { name: old.name, source: '' });
    } catch {
      // Then no model is loaded; why the new one failed is said.
    }
    const { failure } = this;
    this.#set({ loading: null, failure: error ? failure : null });
  }

  /** @param {Asked} asked */
  #fitsBesides({ bytes }) {
    const memory = (globalThis.navigator?.deviceMemory ?? kUsualMemoryGiB) * kGiB;
    return (this.memory?.gpuBytes ?? 0) + bytes <= memory * kShareOfMemory;
  }

  /** @param {Doppler} model @param {Asked} asked @param {{name: string, source: string}} shown */
  #take(model, asked, shown) {
    const old = this.model;
    const isCurrent = () => this.model === model;
    model.addEventListener('devicelost', () => this.#notice('The GPU was lost. It is being made again; the answer goes on.'));
    model.addEventListener('workerlost', () => {
      if (isCurrent()) this.#set({ isRecovering: true });
      this.#notice('The engine ended. It is being started again; the answer goes on.');
    });
    model.addEventListener('restored', () => {
      if (isCurrent()) this.#set({ isRecovering: false });
      this.#notice('The engine is back.');
    });
    model.addEventListener('failed', (event) => {
      if (isCurrent()) this.#set({ model: null, isRecovering: false, failure: { ...shown, error: /** @type {any} */ (event).detail } });
    });
    model.addEventListener('warning', (event) => this.#notice(/** @type {any} */ (event).detail));
    if (model.info.selfTest?.passed === false) {
      this.#notice('Some kernels compute wrong in this browser and were replaced. The Device tab has the report.');
    }
    this.#asked = asked;
    const hasAdapter = asked.options.adapters?.some((/** @type {{name: string}} */ one) => one.name === this.adapter);
    this.#set({ model, adapter: hasAdapter ? this.adapter : '', source: shown.source, name: shown.name || nameOf(model.info.name), isRecovering: false, memory: null });
    if (old) void this.#retire(old);
  }

  /**
   * While a model is held, it is not unloaded for another one.
   * @param {Doppler} model @returns {() => void} how to let it go
   */
  hold(model) {
    let release = () => {};
    const held = new Promise((resolve) => (release = () => resolve(undefined)));
    const holds = this.#holds.get(model) ?? new Set();
    this.#holds.set(model, holds.add(held));
    void held.then(() => holds.delete(held));
    return release;
  }

  /** @param {Doppler} model */
  async #retire(model) {
    await Promise.all(this.#holds.get(model) ?? []);
    this.#holds.delete(model);
    await model.unload();
  }

  async #drop() {
    const { model } = this;
    this.#set({ model: null, memory: null });
    if (model) await this.#retire(model);
  }

  /** Ends a load under way. */
  cancel() {
    this.#abort?.abort();
  }

  /** At once: answers under way end. */
  async unload() {
    this.cancel();
    await this.#settled;
    const { model } = this;
    this.#asked = null;
    this.#set({ model: null, memory: null, failure: null });
    await model?.unload();
  }

  /** Asks what the model takes now. */
  async measure() {
    const { model } = this;
    const memory = await model?.memory().catch(() => null);
    if (model === this.model) this.#set({ memory: memory ?? null });
  }

  /** @param {object} changes */
  #set(changes) {
    Object.assign(this, changes);
    this.dispatchEvent(new Event('change'));
  }

  /** @param {string} text */
  #notice(text) {
    this.dispatchEvent(new CustomEvent('notice', { detail: text }));
  }
}

/** The sentence of an error for the reader. @param {any} error */
export function sentence(error) {
  const text = String(error?.message ?? error);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
