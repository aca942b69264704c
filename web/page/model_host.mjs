// The model that the page has loaded, or is loading: one at a time, because a GPU seldom holds two. Tells its changes
// as events "change" (state, progress) and "notice" (detail: a sentence for the reader). No DOM. Read next: chat.mjs.
import { nameOf } from './catalogue.mjs';

/** @typedef {import('../doppler.d.ts').Doppler} Doppler */
/** @typedef {import('../doppler.d.ts').ModelSource} ModelSource */

export class ModelHost extends EventTarget {
  /** @type {"none" | "loading" | "ready" | "failed"} */ state = 'none';
  name = '';
  /** The requested source; a file has no text. @type {string} */ source = '';
  /** @type {import('../doppler.d.ts').Progress | null} */ progress = null;
  error = '';
  /** @type {Doppler | null} */ model = null;
  /** Bytes on the GPU and in WebAssembly, when last asked. @type {import('../doppler.d.ts').Memory | null} */
  memory = null;
  /** @type {AbortController | null} */ #loading = null;
  /** @type {Promise<void>} */ #settled = Promise.resolve();
  /** @type {{source: ModelSource, name: string} | null} */ #asked = null;
  #package;

  /** @param {() => Promise<any>} importPackage gives the module of the npm package */
  constructor(importPackage) {
    super();
    this.#package = importPackage;
  }

  /** The class Doppler: loaded when it is first needed, so that the page paints before. @returns {Promise<any>} */
  async engine() {
    return (await this.#package()).Doppler;
  }

  /** Loads a model in place of the one that is loaded. Does not throw: `state` and `error` say how it ended.
   * @param {ModelSource} source @param {string} name @param {object} [options] of doppler.d.ts, LoadOptions */
  async load(source, name, options = {}) {
    this.cancel();
    await this.#settled;
    this.#settled = this.#load(source, name, options);
    await this.#settled;
  }

  /** The same model again, with other options. @param {object} options */
  async reload(options) {
    if (this.#asked) await this.load(this.#asked.source, this.#asked.name, options);
  }

  /** @param {ModelSource} source @param {string} name @param {object} options */
  async #load(source, name, options) {
    const abort = new AbortController();
    this.#loading = abort;
    this.#asked = { source, name };
    await this.#drop();
    this.#set({ state: 'loading', source: typeof source === 'string' ? source : '', name, error: '', progress: null });
    try {
      const engine = await this.engine();
      const progress = (now) => this.#set({ progress: now });
      const model = await engine.load(source, { ...options, signal: abort.signal, progress });
      if (abort.signal.aborted) await model.unload();
      else this.#take(model);
    } catch (error) {
      if (!abort.signal.aborted) this.#set({ state: 'failed', error: sentence(error) });
    }
    if (abort.signal.aborted) this.#set({ state: 'none' });
    if (this.#loading === abort) this.#loading = null;
    await this.measure();
  }

  /** @param {Doppler} model */
  #take(model) {
    model.addEventListener('devicelost', () => this.#notice('The GPU was lost. It is being made again; the answer goes on.'));
    model.addEventListener('restored', () => this.#notice('The GPU is back.'));
    model.addEventListener('warning', (event) => this.#notice(/** @type {any} */ (event).detail));
    if (model.info.selfTest?.passed === false) {
      this.#notice('Some kernels compute wrong in this browser and were replaced. The Device tab has the report.');
    }
    this.#set({ state: 'ready', model, progress: null, name: this.name || nameOf(model.info.name) });
  }

  /** Ends a load under way. */
  cancel() {
    this.#loading?.abort();
  }

  async unload() {
    this.cancel();
    await this.#settled;
    await this.#drop();
    this.#set({ state: 'none', memory: null });
  }

  async #drop() {
    const model = this.model;
    this.model = null;
    await model?.unload();
  }

  /** Asks what the model takes now. */
  async measure() {
    const memory = await this.model?.memory();
    this.#set({ memory: memory ?? null });
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
