// The way from the public class to the engine: in a worker by messages, or on this thread. Messages: {number, method,
// request} and {number, cancel: true} to the worker; {number, event}, {number, result}, {number, error} and {name,
// detail} back.
import { asDopplerError, DopplerError } from './errors.mjs';
import { Engine } from './engine.mjs';

/**
 * @typedef {{call: (method: string, request: any, caller: import('./engine.mjs').Caller) => Promise<any>,
 *   close: () => void}} Calls
 */
/** @typedef {(name: string, detail: any) => void} Emit of events that belong to no call */

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
  scope.onmessage = async ({ data: { number, method, request, cancel } }) => {
    if (cancel) return void underWay.get(number)?.abort();
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
}

/** @param {Worker} worker @param {Emit} emit @returns {Calls} */
export function callsOfWorker(worker, emit) {
  let lastNumber = 0;
  /** @type {Map<number, {resolve: Function, reject: Function, tell: Function}>} */ const underWay = new Map();
  const failAll = (error) => {
    for (const { reject } of underWay.values()) reject(error);
    underWay.clear();
  };
  worker.onmessage = ({ data: { number, event, result, error, name, detail } }) => {
    if (name) return emit(name, detail);
    const call = underWay.get(number);
    if (event) return call?.tell(event);
    underWay.delete(number);
    if (error) call?.reject(new DopplerError(error.kind, error.message));
    else call?.resolve(result);
  };
  worker.onerror = (event) =>
    failAll(new DopplerError('internal', `The worker failed: ${event.message ?? 'worker.mjs could not be loaded'}.`));
  return {
    call(method, request, { signal, tell }) {
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
      worker.terminate();
      failAll(new DopplerError('cancelled', 'The model was unloaded.'));
    },
  };
}
