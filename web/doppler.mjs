// The public class, typed by doppler.d.ts: a model, asked with await. In a page the engine runs in a worker and this is
// its proxy; node.mjs has the same class for Node. Read next: requests.mjs (shapes), calls.mjs (to the engine).
import { browser } from './browser.mjs';
import { callsOfWorker, callsOnThisThread } from './calls.mjs';
import { asDopplerError, cancelled, DopplerError, throwIfAborted } from './errors.mjs';
import { describeAdapter } from './gpu_host.mjs';
import { modelCache } from './model_cache.mjs';
import { Chunks, readRequest, Shape } from './requests.mjs';
import { absolute } from './sources.mjs';

export { DopplerError };

/** @typedef {import('./calls.mjs').Calls} Calls */

export class Doppler extends EventTarget {
  #lastSession = 0;
  /** @type {Calls} */ #calls = /** @type {any} */ (null); // once loaded
  /** @type {any} */ info = null;
  static cache = modelCache;

  /** Where the engine runs. @param {any} options @param {import('./calls.mjs').Emit} emit @returns {Promise<Calls>} */
  static async connect(options, emit) {
    const hasWorker = globalThis.document && options.workerUrl !== false && !options.device?.gpu;
    return hasWorker ? callsOfWorker(startWorker(options.workerUrl), emit) : callsOnThisThread(browser, emit);
  }

  /** @param {any} source @param {any} [options] @returns {Promise<any>} */
  static async load(source, options = {}) {
    const { progress, signal, ctx, lane, kv, draft, chunk, chatTemplate, expertBytes, kernels, sequences, poolTokens, grammars, ...rest } = options;
    throwIfAborted(signal);
    const core = { ctxLen: ctx, lane, kv, draft, chunk, chatTemplate, expertBytes, kernels, sequences, poolTokens };
    const self = new this();
    self.#calls = await this.connect(rest, (name, detail) => self.dispatchEvent(new CustomEvent(name, { detail })));
    const { workerUrl, wasmUrl, ...given } = rest;
    const request = { source: absolute(source), options: { ...given, core, grammars: grammars && grammars !== true ? String(absolute(grammars)) : grammars, wasmUrl: wasmUrl && String(absolute(wasmUrl)) } };
    try {
      const info = await self.#call('load', request, signal, (event) => progress?.(event.progress));
      self.info = { ...info, grammars: Boolean(grammars) };
    } catch (error) {
      self.#calls.close();
      throw error;
    }
    return self;
  }

  /** @param {any} [options] */
  static async probe({ device } = /** @type {any} */ ({})) {
    try {
      return await describeAdapter(device?.gpu ?? (await this.gpu()), device);
    } catch (error) {
      return { available: false, reason: asDopplerError(error).message, adapter: '', vendor: '', architecture: '', cpu: false,
        features: [], limits: {}, languageFeatures: [] };
    }
  }
  static gpu = browser.gpu;

  chat = { completions: { create: (request) => this.#generate(request, true, request.session?.number) } };
  complete = (request) => this.#generate(request, false, request.session?.number);

  embed(input, options = {}) {
    const given = typeof input === 'string' ? { text: input } : { tokens: [...input] };
    return this.#call('embed', { ...given, options });
  }
  tokenize(text, options = {}) {
    return this.#call('tokenize', { text, ...options });
  }
  detokenize(tokens) {
    return this.#call('detokenize', { tokens });
  }
  applyChatTemplate(messages, options = {}) {
    return this.#call('applyChatTemplate', { messages, ...options });
  }
  kernels() {
    return this.#call('kernels', {});
  }
  selfTest() {
    return this.#call('selfTest', {});
  }

  async memory() {
    const { weightBytes, cacheBytes, scratchBytes } = this.info;
    const gpuBytes = weightBytes + cacheBytes + scratchBytes;
    return { weightBytes, cacheBytes, scratchBytes, gpuBytes, wasmBytes: await this.#call('wasmBytes', {}) };
  }

  newSession() {
    return new Session(this.#session());
  }

  async unload() {
    await this.#call('unload', {});
    this.#calls.close();
  }

  /** The session's way to its model. @param {number} [from] the session whose text it begins with */
  #session(from) {
    const number = ++this.#lastSession;
    const opened = this.#call('openSession', { session: number, from });
    opened.catch(() => {}); // the next request tells
    return {
      number,
      call: (method, request = {}) => this.#call(method, { session: number, ...request }),
      generate: (request, isChat) => this.#generate(request, isChat, number),
      fork: () => this.#session(number),
    };
  }

  /** @param {string} method @param {any} request @param {AbortSignal} [signal] @param {(event: any) => void} [tell] */
  #call(method, request, signal = new AbortController().signal, tell = () => {}) {
    return this.#calls.call(method, request, { signal, tell });
  }

  /** @param {any} request @param {boolean} isChat @param {number} [session] */
  async #generate(request, isChat, session) {
    const { signal, stream } = request;
    throwIfAborted(signal);
    const read = readRequest(request, isChat, session);
    const shape = new Shape(isChat, request.model ?? this.info.name);
    const ending = new AbortController();
    const end = () => ending.abort();
    signal?.addEventListener('abort', end);
    const chunks = new Chunks(end);
    const tell = ({ piece }) => {
      for (const chunk of shape.chunks(piece)) if (stream) chunks.push(chunk);
    };
    const answering = this.#call('generate', read, ending.signal, tell).then((answer) => {
      if (signal?.aborted) throw cancelled();
      return answer;
    }).finally(() => signal?.removeEventListener('abort', end));
    if (!stream) return shape.whole(await answering);
    answering.then((answer) => {
      chunks.push(shape.last(answer));
      chunks.end();
    }, (error) => chunks.end(error));
    return chunks;
  }
}

/** A text of its own, doppler.d.ts. */
class Session {
  #model;

  /** @param {any} model */
  constructor(model) {
    this.#model = model;
  }
  get number() {
    return this.#model.number;
  }

  chat = { completions: { create: (request) => this.#model.generate(request, true) } };
  complete = (request) => this.#model.generate(request, false);
  tokens() {
    return this.#model.call('sessionTokens');
  }
  fork() {
    return new Session(this.#model.fork());
  }
  save() {
    return this.#model.call('saveSession');
  }
  restore(bytes) {
    return this.#model.call('restoreSession', { bytes });
  }
  reset() {
    void this.#model.call('openSession');
  }
}

// Apart, so that bundlers do not take it for an asset of its own.
const kWorkerFile = './worker.mjs';

/** @param {string | URL} [address] @returns {Worker} */
function startWorker(address) {
  // A worker's script must be of the page's origin; what it imports need not be.
  const { protocol, origin } = new URL(address ?? import.meta.url, document.baseURI);
  if (protocol.startsWith('http') && origin !== globalThis.origin) {
    const file = address ? new URL(address, document.baseURI) : new URL(kWorkerFile, import.meta.url);
    const script = new Blob([`import ${JSON.stringify(file.href)};`], { type: 'text/javascript' });
    return new Worker(URL.createObjectURL(script), { type: 'module' });
  }
  if (address) return new Worker(address, { type: 'module' });
  // Bundlers know this form by its text.
  return new Worker(new URL('./worker.mjs', import.meta.url), { type: 'module' });
}
