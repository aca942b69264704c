// The public class reaches the engine through this: in a worker by messages, or on this thread. Messages: {number,
// method, request}, {number, cancel: true} and {hold: NAME} to the worker; {number, event}, {number, result}, {number,
// error}, {name, detail}, {holds: true} and {fatal: SENTENCE} back. Read next: lasting_calls.mjs, which goes on when
// the worker ended.
import { asDopplerError, DopplerError } from './errors.mjs';
import { Engine } from './engine.mjs';

/**
 * @typedef {{call: (method: string, request: any, caller: import('./engine.mjs').Caller) => Promise<any>,
 *   close: () => void}} Calls
 */
/** @typedef {(name: string, detail: any) => void} Emit of events that belong to no call */

/** The worker ended while calls were under way. */
export class WorkerGone extends DopplerError {}

/** @param {import('./engine.mjs').Platform} platform @param {Emit} emit @returns {Calls} */
export function callsOnThisThread(platform, emit) {
  const engine = /** @type {any} */ (new Engine(platform, emit));
  return {
    call: async (method, request, caller) => {
      try {
        return await engine[method](request, caller);
      } catch (error) {
        throw asDopplerError(error);
      }
    },
    close() {},
  };
}

/**
 * The worker's side of callsOfWorker().
 * @param {import('./engine.mjs').Platform} platform
 * @param {any} scope the worker's global object
 */
export function serveCalls(platform, scope) {
  const calls = callsOnThisThread(platform, (name, detail) => scope.postMessage({ name, detail }));
  /** @type {Map<number, AbortController>} */ const underWay = new Map();
  scope.onmessage = async ({ data: { number, method, request, cancel, hold } }) => {
    if (cancel) return void underWay.get(number)?.abort();
    if (hold) return holdForever(hold, () => scope.postMessage({ holds: true }));
    const controller = new AbortController();
    underWay.set(number, controller);
    try {
      const tell = (event) => scope.postMessage({ number, event });
      const result = await calls.call(method, request, { signal: controller.signal, tell });
      scope.postMessage({ number, result });
    } catch (error) {
      const { kind, message } = asDopplerError(error);
      scope.postMessage({ number, error: { kind, message } });
    }
    underWay.delete(number);
  };
  // The core does not answer after a trap, whoever called it.
  const end = (error) => {
    if (error instanceof WebAssembly.RuntimeError) scope.postMessage({ fatal: `The WebAssembly core stopped: ${error.message}.` });
  };
  scope.addEventListener('error', (event) => end(event.error));
  scope.addEventListener('unhandledrejection', (event) => end(event.reason));
}

/**
 * Holds a lock. The browser takes it from a worker only when the worker ends, so its page hears of the end.
 * @param {string} name @param {() => void} held
 */
function holdForever(name, held) {
  const keep = () => {
    held();
    return new Promise(() => {});
  };
  globalThis.navigator.locks?.request(name, keep).catch(() => {}); // where locks are blocked the end is not told
}

/**
 * @param {Worker} worker @param {Emit} emit @param {(reason: string) => void} [onGone] the worker ended by itself
 * @returns {Calls}
 */
export function callsOfWorker(worker, emit, onGone = () => {}) {
  let lastNumber = 0;
  /** @type {Map<number, {resolve: Function, reject: Function, tell: Function}>} */ const underWay = new Map();
  const watching = new AbortController();
  let isGone = false;
  const failAll = (error) => {
    for (const { reject } of underWay.values()) reject(error);
    underWay.clear();
  };
  const gone = (reason) => {
    if (isGone) return;
    isGone = true;
    watching.abort();
    worker.terminate();
    failAll(new WorkerGone('internal', reason));
    onGone(reason);
  };
  const lock = `doppler-worker-${globalThis.crypto.randomUUID()}`;
  const watch = () => {
    const request = globalThis.navigator.locks.request(lock, { signal: watching.signal }, () => {});
    request.then(() => gone('The worker ended.'), () => {}); // closed here
  };
  worker.onmessage = ({ data: { number, event, result, error, name, detail, holds, fatal } }) => {
    if (holds) return watch();
    if (fatal) return gone(fatal);
    if (name) return emit(name, detail);
    const call = underWay.get(number);
    if (event) return call?.tell(event);
    underWay.delete(number);
    if (error) call?.reject(new DopplerError(error.kind, error.message));
    else call?.resolve(result);
  };
  worker.onerror = (event) => {
    event.preventDefault?.();
    gone(`The worker failed: ${event.message ?? 'worker.mjs could not be loaded'}.`);
  };
  worker.postMessage({ hold: lock });
  return {
    call(method, request, { signal, tell }) {
      if (isGone) return Promise.reject(new WorkerGone('internal', 'The worker ended.'));
      const number = ++lastNumber;
      const cancel = () => worker.postMessage({ number, cancel: true });
      return new Promise((resolve, reject) => {
        underWay.set(number, { resolve, reject, tell });
        worker.postMessage({ number, method, request });
        if (signal.aborted) cancel();
        signal.addEventListener('abort', cancel);
      }).finally(() => signal.removeEventListener('abort', cancel));
    },
    close() {
      isGone = true;
      watching.abort();
      worker.terminate();
      failAll(new DopplerError('cancelled', 'The model was unloaded.'));
    },
  };
}
