// The error of everything here, and how it crosses from the worker to the page.

/** @typedef {import('./doppler.d.ts').ErrorKind} ErrorKind */

export class DopplerError extends Error {
  /** @param {ErrorKind} kind @param {string} message */
  constructor(kind, message) {
    super(message);
    this.name = 'DopplerError';
    this.kind = kind;
  }
}

/** Any thrown value as one of ours. @param {any} error @returns {DopplerError} */
export function asDopplerError(error) {
  if (error instanceof DopplerError) return error;
  if (error?.name === 'AbortError') return cancelled();
  if (error?.name === 'QuotaExceededError') return new DopplerError('quota', error.message);
  if (error instanceof TypeError && /fetch|network/i.test(error.message)) return new DopplerError('io', error.message);
  return new DopplerError(error?.kind ?? 'internal', error instanceof Error ? error.message : String(error));
}

export function cancelled() {
  return new DopplerError('cancelled', 'The call was cancelled by its AbortSignal.');
}

/** @param {AbortSignal | undefined} signal */
export function throwIfAborted(signal) {
  if (signal?.aborted) throw cancelled();
}
