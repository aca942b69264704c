// Calls to an engine in a worker that outlive the worker. When it ends by itself, another one is started, which loads
// the model again from the browser's storage, gets the sessions' texts and goes on with the answers under way. Read
// next: calls.mjs.
import { WorkerGone } from './calls.mjs';
import { DopplerError } from './errors.mjs';
import { unitsOf } from './news.mjs';
import { Times } from './times.mjs';

const kMostEnds = 3; // of workers, without a token or an answer between them

/** @typedef {import('./calls.mjs').Calls} Calls */

export class LastingCalls {
  #open;
  #emit;
  /** @type {Calls} */ #calls;
  /** @type {any} */ #loaded = null; // the request that loaded the model
  /** @type {Map<number, number[]>} */ #sessions = new Map(); // number -> the tokens of its text
  /** Name -> the last request that loaded or unloaded that adapter. @type {Map<string, any>} */ #adapters = new Map();
  /** @type {Promise<void> | null} */ #beginning = null; // of another worker
  #ends = 0;
  #isClosed = false;

  /**
   * @param {(onGone: (reason: string) => void) => Calls} open starts a worker @param {import('./calls.mjs').Emit} emit
   */
  constructor(open, emit) {
    this.#open = open;
    this.#emit = emit;
    this.#calls = this.#start();
  }

  /**
   * @param {string} method @param {any} request @param {import('./engine.mjs').Caller} caller @returns {Promise<any>}
   */
  async call(method, request, caller) {
    if (method === 'load') {
      const info = await this.#calls.call(method, request, caller);
      this.#loaded = request;
      return info;
    }
    const progress = method === 'generate' ? new Progress(request, caller) : { request, caller };
    while (true) {
      await this.#beginning;
      try {
        const answer = await this.#calls.call(method, progress.request, progress.caller);
        this.#ends = 0;
        this.#note(method, request, answer);
        return progress instanceof Progress ? progress.whole(answer) : answer;
      } catch (error) {
        if (!(error instanceof WorkerGone) || this.#isClosed) throw error;
        if (method === 'unload') return undefined;
        if (progress instanceof Progress && progress.goOn()) this.#ends = 0;
      }
    }
  }

  close() {
    this.#isClosed = true;
    this.#calls.close();
  }

  #start() {
    return this.#open((reason) => {
      if (this.#isClosed || !this.#loaded) return; // a load under way fails by itself
      this.#beginning = this.#begin(reason).finally(() => (this.#beginning = null));
      this.#beginning.catch(() => {}); // the caller gets the error
    });
  }

  /** @param {string} reason */
  async #begin(reason) {
    this.#emit('workerlost', reason);
    try {
      if (++this.#ends > kMostEnds) throw new DopplerError('internal', `${reason} It did so ${this.#ends} times in a row.`);
      this.#calls = this.#start();
      const quiet = { signal: new AbortController().signal, tell: () => {} };
      await this.#calls.call('load', this.#loaded, quiet);
      for (const change of this.#adapters.values()) await this.#calls.call('adapters', change, quiet).catch((error) => this.#lacks(change, error));
      for (const [session, tokens] of this.#sessions) await this.#calls.call('openSession', { session, tokens }, quiet);
    } catch (error) {
      if (!this.#isClosed) this.#emit('failed', /** @type {Error} */ (error).message);
      this.close();
      throw error instanceof WorkerGone ? new DopplerError('internal', error.message) : error;
    }
    this.#emit('restored', undefined);
  }

  /**
   * The new worker could not load an adapter: only answers that ask for it fail.
   * @param {any} change @param {any} error
   */
  #lacks({ load, unload }, error) {
    if (error instanceof WorkerGone) throw error;
    this.#emit('warning', `The adapter "${load?.name ?? unload}" is not there any more: ${error.message}`);
  }

  /**
   * Notes the sessions and adapters for the next worker.
   * @param {string} method @param {any} request @param {any} answer
   */
  #note(method, request, answer) {
    const { session, from, tokens, load, unload } = request ?? {};
    if (method === 'adapters' && (load || unload)) {
      const name = load?.name ?? unload;
      const isOfLoad = this.#loaded.options.adapters?.some((/** @type {{name: string}} */ one) => one.name === name);
      if (load || isOfLoad) this.#adapters.set(name, request);
      else this.#adapters.delete(name);
    }
    if (!session) return;
    if (method === 'openSession') this.#sessions.set(session, [...(tokens ?? this.#sessions.get(from) ?? [])]);
    if (method === 'generate' || method === 'restoreSession') this.#sessions.set(session, answer.sessionTokens);
  }
}

/** One generation over as many workers as it takes. */
class Progress {
  /** @type {number[]} */ #generated = [];
  #told = 0;
  #times = new Times();
  #isNew = false; // since goOn()

  /** @param {any} request @param {import('./engine.mjs').Caller} caller */
  constructor(request, caller) {
    this.request = request;
    this.caller = { signal: caller.signal, tell: (event) => {
      const { tokens, ...piece } = event.piece;
      if (tokens.length > 0) {
        this.#times.note();
        this.#isNew = true;
      }
      this.#generated.push(...tokens);
      this.#told += unitsOf(piece);
      caller.tell(event);
    } };
  }

  /** Makes the request that of what is left. @returns {boolean} whether tokens came since the last time */
  goOn() {
    this.#times.isResumed = true;
    this.request = { ...this.request, generated: [...this.#generated], told: this.#told };
    const isNew = this.#isNew;
    this.#isNew = false;
    return isNew;
  }

  /** @param {any} answer */
  whole(answer) {
    return this.#times.of(answer);
  }
}
