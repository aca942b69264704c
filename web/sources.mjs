// Turns what a user may name as a model (ModelSource in doppler.d.ts) into a FileAccess (file_host.mjs).
import { CachedFiles } from './cached_files.mjs';
import { DopplerError } from './errors.mjs';
import { blobFiles, isLocal } from './files_blob.mjs';
import { httpFiles } from './files_http.mjs';
import { parseHubName, resolveHubName } from './hub.mjs';
import { isStored } from './model_cache.mjs';
import { openRoot } from './piece_store.mjs';

/**
 * @typedef {import('./cached_files.mjs').CacheOptions & {cache?: boolean, hubUrl?: string, isAdapter?: boolean,
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
    const what = options.isAdapter ? 'An adapter' : 'A model';
    throw new DopplerError('invalid-input', `${what} is an address, a Hugging Face name, a File or a handle of one.`);
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

/**
 * Whether something that looks like a model is there, before it is loaded: its beginning is read.
 * @param {any} source @param {SourceOptions} options
 * @returns {Promise<{bytes: number | null}>} of the file; null: a folder's is not known
 */
export async function inspectSource(source, options) {
  if (typeof source === 'string' && (await isStored(source))) return { bytes: null };
  const access = await openSource(source, { ...options, cache: false });
  try {
    const { mainFile } = access.files;
    const marks = mainFile ? [mainFile] : kFolderMarks;
    for (const name of marks) {
      const file = await access.open(name);
      if (!file) continue;
      const head = await file.read(0, Math.min(kHeadBytes, file.size));
      file.close();
      if (!looksLikeModel(name, head)) throw new DopplerError('invalid-input', `${file.name} is no model: it begins with "${printable(head)}".`);
      return { bytes: mainFile ? file.size : null };
    }
    throw new DopplerError('io', mainFile ? `There is no file at ${access.files.root}.` : `${access.files.root} has neither config.json nor manifest.json.`);
  } finally {
    access.close?.();
  }
}

const kHeadBytes = 16;
const kFolderMarks = ['config.json', 'manifest.json'];

/** By what the formats begin with. @param {string} name @param {Uint8Array} head */
export function looksLikeModel(name, head) {
  const text = String.fromCharCode(...head.subarray(0, kHeadBytes));
  if (/\.json$/i.test(name)) return /^\s*[{[]/.test(text);
  if (/\.safetensors$/i.test(name)) return text[8] === '{';
  return text.startsWith('GGUF');
}

/** @param {Uint8Array} head */
const printable = (head) => String.fromCharCode(...head).replace(/[^\x20-\x7e]/g, '.');

/** An address that the page gave, as a worker understands it. Names and files stay the same. @param {any} source */
export function absolute(source) {
  if (source instanceof URL) return source.href;
  if (typeof source !== 'string' || parseHubName(source)) return source;
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  return base && !globalThis.process?.versions?.node ? new URL(source, base).href : source;
}
