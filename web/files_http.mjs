// A model on a web server, read by range requests: the address of a file, or of a folder (ending in "/") with
// config.json or an RDRR manifest. The server must answer ranges. Read next: file_host.mjs (the interface),
// cached_files.mjs (the same with the browser's storage in between).
import { DopplerError, throwIfAborted } from './errors.mjs';
import { wholeBody } from './whole_body.mjs';

const kTries = 4;                // of a request that failed for a reason that may pass
const kFirstPauseSeconds = 0.5;  // before the second try; each further one waits twice as long
const kNotThere = new Set([403, 404, 410]);
const kMayPass = (status) => status === 408 || status === 429 || status >= 500;

/**
 * tries: of a request; onNetwork: bytes that came.
 * @typedef {{signal?: AbortSignal, headers?: Record<string, string>, tries?: number,
 *   onNetwork?: (bytes: number) => void}} HttpOptions
 */
/** A file's size, and what tells its versions apart. @typedef {{url: string, size: number, version: string}} Probe */

/**
 * @param {string | URL} address @param {HttpOptions} [options]
 * @returns {import('./file_host.mjs').FileAccess}
 */
export function httpFiles(address, options = {}) {
  const url = new URL(address, globalThis.location?.href);
  const isFolder = url.pathname.endsWith('/');
  const mainFile = isFolder ? '' : decodeURIComponent(url.pathname.slice(url.pathname.lastIndexOf('/') + 1));
  return {
    files: { root: url.href, mainFile, names: [] },
    async open(name) {
      const found = await probe(addressOf(url, mainFile, name), options);
      if (!found) return null;
      return {
        name: found.url,
        size: found.size,
        isRemote: true,
        close() {},
        read: (offset, count, memory) => fetchRange(found.url, offset, count, options, memory),
      };
    },
  };
}

/**
 * The address of a file beside the main one, with the same query.
 * @param {URL} url
 * @param {string} mainFile
 * @param {string} name
 */
export function addressOf(url, mainFile, name) {
  return name === mainFile ? url.href : new URL(encodeURIComponent(name) + url.search, url).href;
}

/** null: there is no such file. @param {string} url @param {HttpOptions} options @returns {Promise<Probe | null>} */
export async function probe(url, options) {
  // One byte tells the size and that ranges work; HEAD does not tell the latter and is often refused.
  const answer = await request(url, 'bytes=0-0', options);
  await answer.body?.cancel();
  if (kNotThere.has(answer.status)) return null;
  if (/^text\/html\b/i.test(answer.headers.get('Content-Type') ?? '')) {
    throw new DopplerError('io', `${url} is a web page, not a file of a model.`);
  }
  let size = Number(/\/(\d+)$/.exec(answer.headers.get('Content-Range') ?? '')?.[1]);
  if (answer.status === 206 && Number.isNaN(size)) { // a server of another origin that does not show the header
    const head = await fetch(url, { method: 'HEAD', signal: options.signal, headers: options.headers });
    size = Number(head.headers.get('Content-Length') ?? NaN);
  }
  if (answer.status !== 206 || !Number.isSafeInteger(size)) {
    throw new DopplerError('io', `${url} cannot be read in parts: the server answered ${answer.status} to a range request.`);
  }
  return { url, size, version: answer.headers.get('ETag') ?? answer.headers.get('Last-Modified') ?? '' };
}

/**
 * @param {string} url @param {number} offset @param {number} count @param {HttpOptions} options
 * @param {ArrayBuffer} [memory] as of wholeBody()
 */
export async function fetchRange(url, offset, count, options, memory) {
  if (count === 0) return new Uint8Array();
  for (let attempt = 1; ; attempt++) {
    const answer = await request(url, `bytes=${offset}-${offset + count - 1}`, options);
    if (answer.status !== 206) throw new DopplerError('io', `${url} answered ${answer.status} to a range request.`);
    try {
      const bytes = await wholeBody(answer, count, url, memory?.byteLength ? memory : undefined); // a try detaches it
      options.onNetwork?.(bytes.length);
      return bytes;
    } catch (error) { // the connection ended in mid-answer
      throwIfAborted(options.signal);
      if (attempt === kTries) throw error;
    }
  }
}

/**
 * Asks until there is an answer that is final.
 * @param {string} url
 * @param {string} range
 * @param {HttpOptions} options
 */
async function request(url, range, { signal, headers, tries = kTries }) {
  for (let attempt = 1; ; attempt++) {
    throwIfAborted(signal);
    let problem;
    try {
      // The browser's own cache would keep a second copy.
      const answer = await fetch(url, { signal, headers: { ...headers, Range: range }, cache: 'no-store' });
      if (!kMayPass(answer.status) || attempt === tries) return answer;
      await answer.body?.cancel();
    } catch (error) {
      throwIfAborted(signal);
      problem = error;
    }
    if (problem && attempt === tries) {
      throw new DopplerError('io', `${url} could not be reached: ${/** @type {Error} */ (problem).message}.`);
    }
    await new Promise((resolve) => setTimeout(resolve, kFirstPauseSeconds * 1000 * 2 ** (attempt - 1)));
  }
}
