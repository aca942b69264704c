// One instance of doppler_core.wasm with its device and its files: calls go in as JSON, answers come out as promises.
// It lives as long as its device; engine.mjs makes another when that is lost.
import { DopplerError } from './errors.mjs';
import { FileHost } from './file_host.mjs';
import { GpuHost } from './gpu_host.mjs';
import { Grammars } from './grammars.mjs';
import { Core, start } from './wasm_loader.mjs';

/**
 * Events of a call before its answer.
 * @typedef {object} Listener
 * @property {(tokens: number[], text: string) => void} [onPiece]
 * @property {(stage: string, done: number, total: number) => boolean} [onProgress] false: loading is to stop
 * @property {AbortSignal} [signal] ends a generation, which is answered with what it has
 */
/**
 * @typedef {Listener & {resolve: (value: any) => void, reject: (error: Error) => void, bytes?: Uint8Array}} Call
 */

export class Instance {
  #core = new Core();
  /** @type {Map<number, Call>} */ #calls = new Map();
  #lastCall = 0;

  /**
   * @param {{gpu: any, provider: string, device?: import('./doppler.d.ts').DeviceOptions,
   *   access: import('./file_host.mjs').FileAccess, log: (level: number, line: string) => void,
   *   grammars?: Grammars}} parts
   */
  constructor({ gpu, provider, device, access, log, grammars = new Grammars(async () => null) }) {
    this.log = log;
    this.grammars = grammars;
    this.access = access;
    this.files = new FileHost(this.#core, access);
    this.host = new GpuHost(this.#core, gpu, provider, this.files, device);
  }

  /** @param {import('./core_module.mjs').CoreModule} module */
  async start(module) {
    const parts = [this.host.imports(), this.files.imports(), this.grammars.imports(this.#core), this.#imports()];
    await start(module, this.#core, Object.assign({}, ...parts), (error) => this.#rejectAll(error));
  }

  /** Why the device is lost, or the core cannot go on; empty while it can. */
  get lost() {
    return this.#core.failure?.message ?? this.host.lost;
  }
  get wasmBytes() {
    return this.#core.exports.memory.buffer.byteLength;
  }

  /**
   * @param {object} options @param {Listener['onProgress']} [onProgress]
   * @param {import('./lora.mjs').Lora['first']} [adapters]
   */
  load(options, onProgress, adapters) {
    const given = adapters && { ...adapters, list: adapters.list.map((one) => this.#filesOf(one)) };
    const loaded = this.ask('load', { files: this.access.files, options, adapters: given }, { onProgress });
    return loaded.finally(() => {
      this.host.releaseStaging();
      this.files.releaseSpare();
    });
  }

  /**
   * Calls doppler_<name>.
   * @param {string} name
   * @param {object} request
   * @param {Listener} [listener]
   * @returns {Promise<any>}
   */
  ask(name, request, listener = {}) {
    return this.#call(name, listener, this.#core.give(JSON.stringify(request)));
  }

  /** @param {{load?: import('./lora.mjs').Opened, unload?: string}} change @returns {Promise<any[]>} */
  async changeAdapters({ load, unload }) {
    return (await this.ask('adapters', { unload, load: load && this.#filesOf(load) })).adapters;
  }

  kernels() {
    return this.#call('kernels', {}, []);
  }
  /** @returns {Promise<import('./grammars.mjs').Vocabulary>} */
  vocabulary() {
    return this.#call('vocabulary', {}, []);
  }
  /** @param {Uint8Array} bytes a saved session */
  restore(bytes) {
    return this.#call('restore', {}, this.#core.give(bytes));
  }
  /** @param {Uint8Array} bytes a picture (pictures.mjs) @returns {Promise<{picture: number}>} */
  picture(bytes) {
    return this.#call('picture', {}, this.#core.give(bytes));
  }
  /** Gives back the GPU's memory; calls under way reject. @param {import('./errors.mjs').DopplerError} reason */
  free(reason) {
    if (this.#core.failure) this.host.close();
    else this.#core.exports.doppler_free();
    this.files.close();
    this.#rejectAll(reason);
  }

  /** @param {import('./lora.mjs').Opened} adapter */
  #filesOf({ access, name, scale }) {
    return { files: this.files.add(access), name, scale };
  }

  /** @param {import('./errors.mjs').DopplerError} reason */
  #rejectAll(reason) {
    for (const call of this.#calls.values()) call.reject(reason);
    this.#calls.clear();
  }

  /** @param {string} name @param {Listener} listener @param {number[]} words @returns {Promise<any>} */
  #call(name, listener, words) {
    const number = ++this.#lastCall;
    const { signal } = listener;
    const cancel = () => void (this.#core.failure ?? this.#core.exports.doppler_cancel(number));
    return new Promise((resolve, reject) => {
      this.#calls.set(number, { resolve, reject, ...listener });
      this.#core.exports[`doppler_${name}`](number, ...words);
      signal?.addEventListener('abort', cancel);
      if (signal?.aborted) cancel();
    }).finally(() => signal?.removeEventListener('abort', cancel));
  }

  /** @returns {Record<string, Function>} */
  #imports() {
    const core = this.#core;
    return {
      dp_answer: (number, ok, json, bytes) => {
        const call = this.#calls.get(number);
        this.#calls.delete(number);
        const value = JSON.parse(core.text(json, bytes));
        if (ok) call?.resolve(call.bytes ? { ...value, bytes: call.bytes } : value);
        else call?.reject(new DopplerError(value.kind, value.message));
      },
      dp_piece: (number, tokens, count, text, bytes) => {
        const ids = Array.from(new Int32Array(core.exports.memory.buffer, tokens >>> 0, count));
        this.#calls.get(number)?.onPiece?.(ids, core.text(text, bytes));
      },
      dp_bytes: (number, bytes, count) => {
        const call = this.#calls.get(number);
        if (call) call.bytes = core.bytes(bytes, count).slice();
      },
      dp_progress: (number, stage, stageBytes, done, total) =>
        Number(this.#calls.get(number)?.onProgress?.(core.text(stage, stageBytes), done, total) ?? true),
      dp_log: (level, text, bytes) => this.log(level, core.text(text, bytes)),
      dp_number: (value, isFloat, at) => {  // src/base/number_text.h
        let text = Object.is(value, -0) ? '-0e0' : value.toExponential();
        for (let digits = 0; isFloat && value !== 0 && digits < 9; digits++) {
          text = value.toExponential(digits);
          if (Math.fround(Number(text)) === value) break;
        }
        const bytes = new TextEncoder().encode(text);
        core.bytes(at, bytes.length).set(bytes);
        return bytes.length;
      },
    };
  }
}
