// The public class, typed by doppler.d.ts: a model, asked with await. In a page the engine runs in a worker and this is
// its proxy; node.mjs has the same class for Node. Read next: requests.mjs (shapes), calls.mjs (to the engine).
import { readAdapter, readAdapterOptions } from './adapter_fields.mjs';
import { browser } from './browser.mjs';
import { callsOfWorker, callsOnThisThread } from './calls.mjs';
import { asDopplerError, cancelled, DopplerError, throwIfAborted } from './errors.mjs';
import { describeAdapter } from './gpu_host.mjs';
import { LastingCalls } from './lasting_calls.mjs';
import { coreOptions } from './load_options.mjs';
import { modelCache } from './model_cache.mjs';
import { answersOf, Chunks, readRequest } from './requests.mjs';
import { readRerank, rerankAnswer } from './rerank.mjs';
import { newHead, Shape, usageChunk, whole } from './shapes.mjs';
import { absolute, inspectSource } from './sources.mjs';

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
    if (!hasWorker) return callsOnThisThread(browser, emit);
    return new LastingCalls((onGone) => callsOfWorker(startWorker(options.workerUrl), emit, onGone), emit);
  }

  /** @param {any} source @param {any} [options] @returns {Promise<any>} */
  static async load(source, options = {}) {
    const { core, others: { progress, signal, ...rest } } = coreOptions(options);
    throwIfAborted(signal);
    const self = new this();
    self.#calls = await this.connect(rest, (name, detail) => self.dispatchEvent(new CustomEvent(name, { detail })));
    const { workerUrl, wasmUrl, grammars, ...given } = rest;
    const request = { source: absolute(source), options: { ...given, ...readAdapterOptions(given), core, grammars: addressOfGrammars(grammars), wasmUrl: wasmUrl && String(absolute(wasmUrl)) } };
    try {
      const info = await self.#call('load', request, signal, (event) => progress?.(event.progress));
      self.info = { ...info, grammars: Boolean(grammars) };
    } catch (error) {
      self.#calls.close();
      throw error;
    }
    return self;
  }

  /** @param {any} source @param {any} [options] @returns {Promise<{bytes: number | null}>} */
  static async inspect(source, options = {}) {
    const { headers, hubUrl, signal } = options;
    try {
      return await inspectSource(absolute(source), { headers, hubUrl, signal, openPath: this.openPath, warn: () => {} });
    } catch (error) {
      throw signal?.aborted ? cancelled() : asDopplerError(error);
    }
  }
  /** Node's. @type {import('./engine.mjs').Platform['openPath']} */
  static openPath = undefined;

  /** @param {any} [options] */
  static async probe({ device } = /** @type {any} */ ({})) {
    try {
      return await describeAdapter(device?.gpu ?? (await this.gpu()), this.provider, device);
    } catch (error) {
      return { available: false, reason: asDopplerError(error).message, adapter: '', vendor: '', architecture: '', cpu: false,
        features: [], limits: {}, languageFeatures: [] };
    }
  }
  static gpu = browser.gpu;
  static provider = browser.provider;

  chat = { completions: { create: (request) => this.#generate(request, true, request.session?.number) } };
  complete = (request) => this.#generate(request, false, request.session?.number);

  embed(input, options = {}) {
    const given = typeof input === 'string' ? { text: input } : { tokens: [...input] };
    return this.#call('embed', { ...given, options });
  }
  async rerank(request) {
    const { signal } = request;
    throwIfAborted(signal);
    const asked = readRerank(request);
    const ending = new AbortController();
    const scored = await abortable(this.#call('rerank', asked, ending.signal), signal, () => ending.abort());
    return rerankAnswer(request, asked.texts, scored, request.model ?? this.info.name);
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

  async loadAdapter(name, source, { signal, ...options } = /** @type {any} */ ({})) {
    throwIfAborted(signal);
    if (typeof name !== 'string' || name === '') {
      throw new DopplerError('invalid-input', `An adapter has the name ${JSON.stringify(name)}; a name is a text that is not empty.`);
    }
    const load = readAdapter({ ...options, source, name });
    const loaded = await abortable(this.#call('adapters', { load }, signal), signal, () => {});
    return loaded.find((adapter) => adapter.name === name);
  }
  async unloadAdapter(name) {
    await this.#call('adapters', { unload: String(name) });
  }
  adapters() {
    return this.#call('adapters', {});
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
    const head = newHead(isChat, request.model ?? this.info.name);
    const shapes = Array.from({ length: answersOf(request, session) }, (_, i) => new Shape(isChat, head, i));
    const ending = new AbortController();
    const end = () => ending.abort();
    const chunks = new Chunks(end);
    const answerOf = (shape) => {
      const tell = ({ piece }) => {
        const made = shape.chunks(piece);
        if (stream && !signal?.aborted) for (const chunk of made) chunks.push(chunk);
      };
      const options = { ...read.options, seed: read.options.seed + shape.index };
      return this.#call('generate', { ...read, options }, ending.signal, tell).then((answer) => {
        if (stream) chunks.push(shape.last(answer));
        return answer;
      });
    };
    // An abort is told at once, while the engine still ends what it had begun.
    const answering = abortable(Promise.all(shapes.map(answerOf)), signal, end);
    if (!stream) return whole(shapes, await answering);
    answering.then((answers) => {
      if (request.stream_options?.include_usage) chunks.push(usageChunk(shapes[0], answers));
      chunks.end();
    }, (error) => chunks.end(error));
    return chunks;
  }
}

/** An address, true, or the package's module itself, which no worker can be given. @param {any} grammars */
function addressOfGrammars(grammars) {
  const isAddress = typeof grammars === 'string' || grammars instanceof URL;
  return isAddress ? String(absolute(grammars)) : grammars;
}

/**
 * @template T @param {Promise<T>} work @param {AbortSignal | undefined} signal
 * @param {() => void} end what an abort does @returns {Promise<T>}
 */
function abortable(work, signal, end) {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = () => {
      end();
      reject(cancelled());
    };
    signal.addEventListener('abort', abort);
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
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
  async restore(bytes) {
    await this.#model.call('restoreSession', { bytes });
  }
  reset() {
    void this.#model.call('openSession');
  }
}

// Apart, so that bundlers neither take it for a separate asset nor warn.
const kHere = import.meta.url;

/** @param {string | URL} [address] @returns {Worker} */
function startWorker(address) {
  // A worker's script must be of the page's origin; what it imports need not be.
  const { protocol, origin } = new URL(address ?? kHere, document.baseURI);
  if (protocol.startsWith('http') && origin !== globalThis.origin) {
    const file = address ? new URL(address, document.baseURI) : new URL('worker.mjs', kHere);
    const script = new Blob([`import ${JSON.stringify(file.href)};`], { type: 'text/javascript' });
    return new Worker(URL.createObjectURL(script), { type: 'module' });
  }
  if (address) return new Worker(address, { type: 'module' });
  // Bundlers know this form by its text.
  return new Worker(new URL('./worker.mjs', import.meta.url), { type: 'module' });
}
