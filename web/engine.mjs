// The engine of the public class, on the side of the GPU: in a worker (worker.mjs), or on the thread that called
// (Node). It owns the instance, puts requests in line (of a model for several sequences those of one session), keeps
// the sessions' texts, and when the device is lost makes it again and goes on. calls.mjs passes its methods; each
// takes plain data and a Caller.
import { asDopplerError, cancelled, DopplerError, throwIfAborted } from './errors.mjs';
import { Grammars } from './grammars.mjs';
import { Instance } from './instance.mjs';
import { heldTo } from './integrity.mjs';
import { Lora } from './lora.mjs';
import { News } from './news.mjs';
import { isSamePicture, withPictures } from './pictures.mjs';
import { ProgressMeter } from './progress.mjs';
import { passedBefore, rememberPassed, selfTest } from './self_test.mjs';
import { openSource } from './sources.mjs';
import { Spelling } from './spelling.mjs';
import { Steps } from './steps.mjs';
import { Times } from './times.mjs';

// The answer to a request that was cancelled before its turn came.
const kNoAnswer = { text: '', tokens: [], stop: 'cancelled', timings: { prompt_tokens: 0, evaluated_tokens: 0,
  generated_tokens: 0, ttft_seconds: 0, prefill_tokens_per_second: 0, decode_seconds: 0, decode_tokens_per_second: 0 },
  counters: { submits: 0, dispatches: 0, readback_bytes: 0, objects_created_after_load: 0 } };
const kNoVocabulary = { bytes: new Uint8Array(0), ends: [] }; // of a model whose tokenizer cannot be used
const kOneLine = 0; // of all requests to a model for one sequence, and of all for vectors or scores: a text at a time
const kAdapterLine = -1; // of what loads and unloads adapters: the last call counts
const kMostPictures = 64; // as src/web/web_pictures.h keeps
const kFirstPictureToken = 2 ** 31; // src/model/held_image.h
const kMostRecoveries = 3; // of one generation, without a token between them

/**
 * Who asked: how to tell it something, and a signal with which a load fails and a generation ends early.
 * @typedef {{signal: AbortSignal, tell: (event: any) => void}} Caller
 */
/**
 * The differences between a browser and Node.
 * @typedef {object} Platform
 * @property {string} provider "browser" or "node"
 * @property {() => Promise<any>} gpu navigator.gpu, or its like
 * @property {(address?: string) => Promise<import('./core_module.mjs').CoreModule>} compile
 * @property {(address: string | true, opens: number) => Promise<any>} loadGrammars the module of the package that
 * grammars.mjs uses, anew for each number
 * @property {import('./sources.mjs').SourceOptions['openPath']} [openPath]
 */

export class Engine {
  /** @type {Instance | null} */ #instance = null;
  /** @type {Map<number, number[]>} */ #sessions = new Map(); // number -> the tokens of its text
  /** @type {Map<number, Promise<void>>} */ #lines = new Map(); // session, kOneLine or kAdapterLine -> its last request
  /** @type {Promise<void> | null} */ #reopening = null;
  #grammars = new Grammars((opens) => this.platform.loadGrammars(this.#loading.grammars, opens));
  /** @type {any} */ #loading = null; // how to load again: what #start() takes
  #life = new AbortController();
  #steps = new Steps();
  /** @type {Uint8Array[]} */ #pictures = []; // in the order in which the core first saw them
  /** @type {Spelling | null} */ #spelling = null;

  /** @param {Platform} platform @param {(name: string, detail: any) => void} emit */
  constructor(platform, emit) {
    this.platform = platform;
    this.emit = emit;
  }

  /** @param {{source: any, options: any}} request @param {Caller} caller */
  async load({ source, options }, { signal, tell }) {
    const { core, cache, wasmUrl, headers, hubUrl, device, grammars, integrity, selfTest: isTested } = options;
    const meter = new ProgressMeter((progress) => tell({ progress }));
    // The caller's signal is only for loading; files are read again when a device is lost.
    const abort = () => this.#life.abort();
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    try {
      const gpu = device?.gpu ?? (await this.platform.gpu());
      const module = await this.platform.compile(wasmUrl);
      const sourceOptions = { signal: this.#life.signal, headers, hubUrl, cache, openPath: this.platform.openPath,
        onNetwork: (bytes) => meter.addNetwork(bytes), warn: (message) => this.emit('warning', message) };
      const opened = await openSource(source, sourceOptions);
      const access = integrity === undefined ? opened : heldTo(opened, integrity, { signal: this.#life.signal,
        tell: (done, total) => meter.update('weights', done, total) });
      const lora = new Lora(sourceOptions);
      this.#loading = { module, gpu, device, access, core, grammars, lora };
      await lora.begin(options);
      const info = await this.#start(meter);
      await access.finished?.();
      return await this.#tested(info, isTested, meter);
    } catch (error) {
      const wasCancelled = this.#life.signal.aborted;
      if (!wasCancelled) await this.#loading?.access.failed?.(error);
      await this.unload();
      throw wasCancelled ? cancelled() : asDopplerError(error);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /**
   * Tells pieces: of a chat {tokens, events}, of others {tokens, text}.
   * @param {{tokens?: number[], text?: string, chat?: any, session?: number, options: any, generated?: number[],
   *   told?: number}} request generated: tokens of the answer that another worker made; told: of it, in units of
   *   news.mjs
   * @param {Caller} caller
   */
  generate(request, caller) {
    return this.#inTurn(async () => {
      if (caller.signal.aborted) return kNoAnswer;
      const before = this.#sessions.get(request.session ?? -1) ?? [];
      const continued = request.chat || !request.session ? [] : before;
      const { tokens: added, reading, grammar } = await this.#begun(request, continued.length === 0);
      const tokens = [...continued, ...added];
      const { generated = [], told = 0 } = request;
      const options = { ...request.options, batch: request.options.batch ?? this.#steps.ofSubmit() };
      const answer = await this.#generate({ tokens, reading, options }, grammar, { generated: [...generated], told }, caller);
      this.#steps.note(answer.timings);
      if (answer.logprobs) answer.logprobs = await this.#spelled(answer);
      if (!request.session) return answer;
      const sessionTokens = [...tokens, ...answer.tokens];
      this.#sessions.set(request.session, sessionTokens);
      return { ...answer, sessionTokens };
    }, request.session);
  }

  /** @param {{tokens?: number[], text?: string, options: any}} request */
  embed(request) {
    return this.#inLine(async () => {
      const { tokens: given } = await this.#begun({ ...request, parseSpecial: false }, true);
      const { bytes, tokens } = await this.#onDevice((instance) => instance.ask('embed', { tokens: given, ...request.options }));
      return { embedding: new Float32Array(bytes.buffer), tokens };
    }, kOneLine);
  }

  /** The score of each text for the query. @param {{query: string, texts: string[]}} request @param {Caller} caller */
  rerank({ query, texts }, { signal }) {
    return this.#inLine(async () => {
      const scored = [];
      for (const text of texts) {
        throwIfAborted(signal);
        scored.push(await this.#onDevice((instance) => instance.ask('rerank', { query, text })));
      }
      return scored;
    }, kOneLine);
  }
  /** Answers with the adapters that have names. @param {import('./lora.mjs').Change} change @param {Caller} caller */
  adapters(change, { signal }) {
    const lora = this.#loading?.lora;
    const either = AbortSignal.any([signal, this.#life.signal]);
    return this.#inLine(() => this.#onDevice((instance) => lora.change(instance, change, either)), kAdapterLine);
  }
  tokenize(request) {
    return this.#ask('tokenize', request).then((answer) => answer.tokens);
  }
  detokenize(request) {
    return this.#ask('detokenize', request).then((answer) => answer.text);
  }
  applyChatTemplate(request) {
    return this.#ask('template', request).then((answer) => answer.text);
  }
  kernels() {
    return this.#inTurn(async () => (await this.#ready()).kernels()).then((answer) => answer.kernels);
  }
  async selfTest() {
    return selfTest(this.#parts(), this.#loading.info);
  }
  async wasmBytes() {
    return this.#instance?.wasmBytes ?? 0;
  }
  /**
   * tokens: its text, where another worker had it.
   * @param {{session: number, from?: number, tokens?: number[]}} request
   */
  openSession({ session, from, tokens }) {
    const text = this.#inTurn(async () => [...(tokens ?? this.#sessions.get(from ?? -1) ?? [])], from);
    return this.#inTurn(async () => void this.#sessions.set(session, await text), session);
  }
  /** @param {{session: number}} request */
  sessionTokens({ session }) {
    return this.#inTurn(async () => this.#sessions.get(session) ?? [], session);
  }
  /** @param {{session: number}} request */
  saveSession({ session }) {
    return this.#inTurn(async () =>
      (await (await this.#ready()).ask('save', { tokens: this.#sessions.get(session) ?? [] })).bytes, session);
  }
  /** @param {{session: number, bytes: Uint8Array}} request */
  restoreSession({ session, bytes }) {
    return this.#inTurn(async () => {
      const { tokens } = await (await this.#ready()).restore(bytes);
      this.#sessions.set(session, tokens);
      return { sessionTokens: tokens };
    }, session);
  }

  async unload() {
    this.#life.abort();
    const reason = new DopplerError('cancelled', 'The model was unloaded.');
    this.#instance?.free(reason);
    this.#instance = null;
    this.#loading?.access.close?.();
    this.#loading = null;
  }

  /** @param {any} answer */
  async #spelled({ tokens, logprobs }) {
    const instance = await this.#ready();
    this.#spelling ??= new Spelling(await instance.vocabulary().catch(() => kNoVocabulary));
    return this.#spelling.of(tokens, logprobs, (id) => instance.ask('detokenize', { tokens: [id] }));
  }

  // ---- Turns

  /** @template T @param {() => Promise<T>} work @param {number} [session] @returns {Promise<T>} */
  #inTurn(work, session) {
    const isMany = this.#loading?.core.sequences > 1;
    if (isMany && !session) return work();
    return this.#inLine(work, isMany ? /** @type {number} */ (session) : kOneLine);
  }

  /** @template T @param {() => Promise<T>} work @param {number} line @returns {Promise<T>} */
  #inLine(work, line) {
    const turn = (this.#lines.get(line) ?? Promise.resolve()).then(work);
    this.#lines.set(line, turn.then(() => {}, () => {}));
    return turn;
  }

  /** @param {string} name @param {any} request @returns {Promise<any>} */
  async #ask(name, request) {
    return (await this.#ready()).ask(name, request);
  }

  /**
   * The prompt's tokens, its grammar, and of a chat how its answer is read.
   * @param {any} request
   * @param {boolean} isFirst
   * @returns {Promise<any>}
   */
  async #begun({ tokens, text, chat, fields, parseSpecial, options }, isFirst) {
    const hasGrammars = Boolean(this.#loading?.grammars);
    if (chat) return this.#ask('chat', { chat: await withPictures(chat, (bytes) => this.#addPicture(bytes)), hasGrammars });
    const grammar = fields && (await this.#ask('grammar', { fields, hasGrammars }));
    const begun = tokens ? { tokens } : await this.#ask('tokenize', { text, parseSpecial, addSpecial: isFirst && options.addSpecial !== false });
    return { ...begun, grammar };
  }

  /** @param {Uint8Array} bytes */
  async #addPicture(bytes) {
    if (!this.#loading?.core.images) {
      throw new DopplerError('unsupported', 'A message has a picture, and the model was loaded without the option images: load(..., {images: true}).');
    }
    const { picture } = await (await this.#ready()).picture(bytes);
    const isNew = this.#pictures.every((other) => !isSamePicture(other, bytes));
    if (isNew && this.#pictures.length <= kMostPictures) this.#pictures.push(bytes); // one too many: some are lost
    return picture;
  }

  // ---- The device

  #parts() {
    const { module, gpu, device } = this.#loading;
    return { module, gpu, device, provider: this.platform.provider };
  }

  /**
   * The description of what is used in the end, which are others where kernels compute wrong. Asked for, or by itself
   * once for a browser and GPU; CPUs are what the kernels are tested on.
   * @param {any} info @param {boolean | undefined} isTested @param {ProgressMeter} meter
   */
  async #tested(info, isTested, meter) {
    this.#loading.info = info;
    const isDue = isTested ?? (this.platform.provider === 'browser' && !this.#instance?.host.isCpu);
    const key = [globalThis.navigator?.userAgent, info.adapter, ...info.variants].join(' ');
    if (!isDue || (!isTested && (await passedBefore(key)))) return { ...info, selfTest: null };
    meter.update('self-test', 0, 1);
    const report = await this.selfTest();
    meter.update('self-test', 1, 1);
    if (report.passed) {
      await rememberPassed(key);
      return { ...info, selfTest: report };
    }
    // The kernels that were found, or where they were not, all that are not portable.
    const isNamed = report.formats.every(({ passed, wrong }) => passed || wrong);
    const { core } = this.#loading;
    const others = isNamed ? { ...core, kernels: { ...core.kernels, ...report.replaced } } : { ...core, lane: 'portable', kernels: {} };
    const use = isNamed ? Object.values(report.replaced).join(', ') : 'the lane portable';
    this.emit('warning', `Kernels compute wrong on this device; in their place: ${use}.\n${report.text}`);
    this.#instance?.free(cancelled());
    this.#loading.core = others;
    this.#loading.info = await this.#start(meter);
    return { ...this.#loading.info, selfTest: report };
  }

  /** @param {ProgressMeter} [meter] @returns {Promise<any>} the model's description */
  async #start(meter) {
    const { signal } = this.#life;
    const { gpu, device, access, module, core, lora } = this.#loading;
    const log = (level, line) => this.emit('warning', line);
    const instance = new Instance({ gpu, provider: this.platform.provider, device, access, log, grammars: this.#grammars });
    await instance.start(module);
    try {
      const info = await instance.load(core, (stage, done, total) => {
        meter?.update(stage, done, total);
        return !signal.aborted;
      }, lora.first);
      throwIfAborted(signal);
      this.#instance = instance;
      instance.host.onLost = (why) => this.emit('devicelost', why);
      return info;
    } catch (error) {
      instance.free(cancelled());
      throw instance.files.failure ?? error;
    }
  }

  /** The instance, on a new device where the last one was lost. @returns {Promise<Instance>} */
  async #ready() {
    if (!this.#loading) throw new DopplerError('invalid-input', 'The model was unloaded.');
    while (this.#reopening || !this.#instance || this.#instance.lost) {
      this.#reopening ??= this.#reopen().finally(() => (this.#reopening = null));
      await this.#reopening;
    }
    return this.#instance;
  }

  async #reopen() {
    this.#instance?.free(new DopplerError('device', 'The GPU device was lost.'));
    this.#instance = null;
    await this.#start();
    // The same pictures in the same order have the same tokens again.
    const instance = /** @type {Instance} */ (/** @type {unknown} */ (this.#instance));
    for (const bytes of this.#pictures.slice(0, kMostPictures)) await instance.picture(bytes);
    await this.#loading.lora.again(instance, (error) => isLost(instance, error));
    this.emit('restored', undefined);
  }

  /**
   * One generation, over as many devices as it takes: a new device is told the tokens so far and goes on after the last
   * one.
   * @param {{tokens: number[], reading?: any, options: any}} request
   * @param {import('./grammars.mjs').Grammar | undefined} grammar
   * @param {{generated: number[], told: number}} before as of generate() @param {Caller} caller
   */
  async #generate(request, grammar, { generated, told }, { signal, tell }) {
    const times = new Times();
    for (let failures = 0; ;) {
      const instance = await this.#ready();
      // A second device's first piece is that of all tokens so far; the caller knows a part.
      const news = new News(told, request.reading !== undefined);
      const pass = (ids, text) => {
        const fresh = news.of(text);
        told += fresh.units;
        if (fresh.units > 0 || ids.length > 0) tell({ piece: { tokens: ids, ...fresh.piece } });
      };
      try {
        const matcher = await this.#matcher(grammar, generated, instance);
        const answer = await instance.ask('generate', { ...request, generated, grammar: matcher }, {
          signal,
          onPiece: (ids, text) => {
            if (ids.length > 0) {
              failures = 0;
              times.note();
            }
            generated.push(...ids);
            pass(ids, text);
          },
        }).finally(() => matcher && this.#grammars.end(matcher));
        if (!request.reading && told < answer.text.length) pass([], answer.text.slice(told));
        return times.of(answer);
      } catch (error) {
        times.isResumed = true;
        if (!(await isLost(instance, error)) || ++failures > kMostRecoveries || signal.aborted) throw error;
        if (this.#pictures.length > kMostPictures && request.tokens.some((token) => token >= kFirstPictureToken)) throw error;
      }
    }
  }

  /** Asks again on another device if that is lost. @param {(instance: Instance) => Promise<any>} ask */
  async #onDevice(ask) {
    for (let failures = 0; ;) {
      const instance = await this.#ready();
      try {
        return await ask(instance);
      } catch (error) {
        if (!(await isLost(instance, error)) || ++failures > kMostRecoveries) throw error;
      }
    }
  }

  /**
   * The request for the core, with a grammar if there is one.
   * @param {import('./grammars.mjs').Grammar | undefined} grammar @param {number[]} generated
   * @param {Instance} instance */
  async #matcher(grammar, generated, instance) {
    if (!grammar || grammar.kind === 'none') return undefined;
    return this.#grammars.begin(grammar, generated, () => instance.vocabulary());
  }
}

/** Whether a call failed because its device is lost. @param {Instance} instance @param {unknown} error */
async function isLost(instance, error) {
  return asDopplerError(error).kind === 'device' && (await instance.host.isLostSoon());
}
