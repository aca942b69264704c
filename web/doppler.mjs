// The public class: a model loaded on the GPU, asked with await. Runs wherever WebGPU is: in a page or, better, in a
// worker; for Node start at node.mjs. Nothing here blocks.
import { FileHost } from './file_host.mjs';
import { httpFiles } from './files_http.mjs';
import { GpuHost } from './gpu_host.mjs';
import { Core, start } from './wasm_loader.mjs';

/** An error of the engine: `kind` is "invalid-input", "unsupported", "out-of-memory", "device", "io" or "internal". */
export class DopplerError extends Error {
  /** @param {string} kind @param {string} message */
  constructor(kind, message) {
    super(message);
    this.name = 'DopplerError';
    this.kind = kind;
  }
}

/**
 * @typedef {object} LoadOptions
 * @property {string} [lane] "exact", "fast" (default) or a kernel lane
 * @property {string} [kv] cache: "f16" (default) or "f32"
 * @property {number} [ctxLen] tokens; default: what the model was trained for, at most 4096
 * @property {number} [chunk] tokens of a prefill chunk
 * @property {string} [chatTemplate] Jinja text instead of the model's own
 * @property {boolean} [allSamplers] sampled plans with DRY, XTC, typical, mirostat and the others that need more dispatches
 */
/**
 * @typedef {object} GenerateOptions
 * @property {number} [maxTokens]
 * @property {number} [temperature] 0: greedy
 * @property {number} [topK] @property {number} [topP] @property {number} [minP]
 * @property {number} [repeatPenalty] @property {number} [presencePenalty] @property {number} [frequencyPenalty]
 * @property {number} [seed]
 * @property {string[]} [stop] texts that end the generation
 * @property {boolean} [ignoreEos]
 * @property {"stop" | "slide"} [whenFull]
 * @property {number} [batch] decode steps of one submit
 * @property {boolean} [addSpecial]
 */
/** @typedef {(stage: string, done: number, total: number) => void} OnProgress */
/** @typedef {string | number[] | {role: string, content: string}[]} Prompt text, token ids or a conversation */

/** @typedef {{resolve: (value: any) => void, reject: (error: Error) => void, onText?: (text: string) => void,
 *   onProgress?: OnProgress}} Call */

export class Doppler {
  #core = new Core();
  /** @type {Map<number, Call>} */ #calls = new Map();
  #lastCall = 0;
  /** @type {FileHost | null} */ #files = null;
  /** What was loaded: name, architecture, sizes, adapter. @type {any} */ info = null;

  /**
   * Loads a model; `model` is its address, or a FileAccess (file_host.mjs).
   * @param {string | URL | import('./file_host.mjs').FileAccess} model
   * @param {LoadOptions & {onProgress?: OnProgress, wasm?: WebAssembly.Module | URL | string, gpu?: any,
   *   provider?: string}} [options]
   */
  static async load(model, options = {}) {
    const { onProgress, wasm, gpu = globalThis.navigator?.gpu, provider = 'browser', ...rest } = options;
    const access = typeof model === 'string' || model instanceof URL ? httpFiles(model) : model;
    const self = new Doppler();
    const core = self.#core;
    const files = new FileHost(core, access);
    self.#files = files;
    const host = new GpuHost(core, gpu, provider, files);
    const compiled = wasm instanceof WebAssembly.Module ? wasm : await compile(wasm);
    await start(compiled, core, { ...host.imports(), ...files.imports(), ...self.#imports() });
    self.info = await self.#call('doppler_load', { files: access.files, options: rest }, { onProgress });
    return self;
  }

  /**
   * Answers with {text, tokens, stop, timings, memory, counters}, as `doppler run --json` does. Text comes early through
   * onText, in whole characters.
   * @param {Prompt} prompt
   * @param {GenerateOptions & {onText?: (text: string) => void}} [options]
   */
  async generate(prompt, options = {}) {
    const { onText, ...rest } = options;
    const isTokens = Array.isArray(prompt) && typeof prompt[0] === 'number';
    const request = typeof prompt === 'string' ? { prompt } : isTokens ? { tokens: prompt } : { messages: prompt };
    return this.#call('doppler_generate', { ...request, options: rest }, { onText });
  }

  /** Ends the generation under way, whose answer then says "cancelled". */
  cancel() {
    this.#core.exports.doppler_cancel();
  }

  /** @param {string} text @param {{addSpecial?: boolean, parseSpecial?: boolean}} [options] @returns {Promise<number[]>} */
  async tokenize(text, options = {}) {
    return (await this.#call('doppler_tokenize', { text, ...options })).tokens;
  }

  /** @param {number[]} tokens @returns {Promise<string>} */
  async detokenize(tokens) {
    return (await this.#call('doppler_detokenize', { tokens })).text;
  }

  /** Gives the GPU's memory back; the object is of no use afterwards. */
  free() {
    this.#core.exports?.doppler_free();
    this.#files?.close();
  }

  /** @param {string} name @param {object} request @param {object} [callbacks] @returns {Promise<any>} */
  #call(name, request, callbacks = {}) {
    const number = ++this.#lastCall;
    return new Promise((resolve, reject) => {
      this.#calls.set(number, { resolve, reject, ...callbacks });
      this.#core.exports[name](number, ...this.#core.give(JSON.stringify(request)));
    });
  }

  /** @returns {Record<string, Function>} */
  #imports() {
    const core = this.#core;
    return {
      dp_answer: (number, ok, json, bytes) => {
        const call = this.#calls.get(number);
        this.#calls.delete(number);
        const value = JSON.parse(core.text(json, bytes));
        if (ok) call?.resolve(value);
        else call?.reject(new DopplerError(value.kind, value.message));
      },
      dp_text: (number, text, bytes) => this.#calls.get(number)?.onText?.(core.text(text, bytes)),
      dp_progress: (number, stage, stageBytes, done, total) =>
        this.#calls.get(number)?.onProgress?.(core.text(stage, stageBytes), done, total),
      dp_log: (level, text, bytes) => {
        const line = `doppler: ${core.text(text, bytes)}`;
        if (level === 0) console.error(line);
        else console.warn(line);
      },
    };
  }
}

/** @param {URL | string} [address] of doppler_core.wasm; default: beside this file */
async function compile(address = new URL('./doppler_core.wasm', import.meta.url)) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} could not be loaded: the server answered ${answer.status}.`);
  return WebAssembly.compileStreaming(answer);
}
