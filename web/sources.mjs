// Turns what a user may name as a model (ModelSource in doppler.d.ts) into a FileAccess (file_host.mjs).
import { CachedFiles } from './cached_files.mjs';
import { DopplerError } from './errors.mjs';
import { blobFiles, isLocal } from './files_blob.mjs';
import { httpFiles } from './files_http.mjs';
import { parseHubName, resolveHubName } from './hub.mjs';
import { openRoot } from './piece_store.mjs';

/**
 * @typedef {import('./cached_files.mjs').CacheOptions & {cache?: boolean, hubUrl?: string,
 *   openPath?: (path: string) => Promise<import('./file_host.mjs').FileAccess | null>}} SourceOptions
 * openPath: Node's; null: there is no such file.
 */

/**
 * @param {any} source @param {SourceOptions} options
 * @returns {Promise<import('./file_host.mjs').FileAccess>}
 */
export async function openSource(source, options) {
  if (isLocal(source)) return blobFiles(source);
  if (typeof source !== 'string') {
    throw new DopplerError('invalid-input', 'A model is an address, a Hugging Face name, a File or a handle of one.');
  }
  const onDisk = await options.openPath?.(source);
  if (onDisk) return onDisk;
  const name = parseHubName(source);
  if (!name && !/^(https?|blob|data):/.test(source)) {
    throw new DopplerError('invalid-input', `"${source}" is no file or folder, no address and no name of Hugging Face.`);
  }
  const resolve = async () => (name ? resolveHubName(name, options) : source);
  const root = options.cache === false || !/^https?:/.test(name ? 'https:' : source) ? null : await openRoot();
  if (root) return CachedFiles.open(root, source, resolve, name !== null, options);
  return httpFiles(await resolve(), options);
}

/** An address that the page gave, as a worker understands it; names and files unchanged. @param {any} source */
export function absolute(source) {
  if (source instanceof URL) return source.href;
  if (typeof source !== 'string' || parseHubName(source)) return source;
  return globalThis.document ? new URL(source, document.baseURI).href : source;
}
