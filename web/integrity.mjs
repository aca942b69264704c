// A model's files held to hashes that the caller knows (LoadOptions.integrity): a file is read whole, and so stored,
// before anything of it is used. Read next: sha256.mjs, cached_files.mjs.
import { DopplerError, throwIfAborted } from './errors.mjs';
import { Sha256 } from './sha256.mjs';

const kChunkBytes = 8 << 20;

/** @typedef {import('./file_host.mjs').FileAccess} FileAccess */

/**
 * The same files, of which only those are opened that have their hash.
 * @param {FileAccess} access
 * @param {string | Record<string, string>} integrity "sha256-BASE64" or hexadecimal; of a folder by file name
 * @param {{signal?: AbortSignal, tell: (done: number, total: number) => void}} options @returns {FileAccess}
 */
export function heldTo(access, integrity, { signal, tell }) {
  const hashes = new Map(Object.entries(typeof integrity === 'string' ? { [access.files.mainFile]: integrity } : integrity)
    .map(([name, text]) => [name, hexOf(text)]));
  if (typeof integrity === 'string' && access.files.mainFile === '') {
    throw new DopplerError('invalid-input', 'Option integrity is one hash, and the model is a folder; an object of file names and hashes is needed.');
  }
  return {
    ...access,
    files: access.files,
    finished: () => access.finished?.() ?? Promise.resolve(),
    failed: (error) => access.failed?.(error) ?? Promise.resolve(),
    close: () => access.close?.(),
    async open(name) {
      const wanted = hashes.get(name);
      const file = await access.open(name);
      if (!file) return null;
      if (!wanted) throw new DopplerError('invalid-input', `Option integrity has no hash of ${name}.`);
      if (file.isRemote) throw new DopplerError('unsupported', `Option integrity needs the browser's storage, and ${name} is read from the network only.`);
      if (file.verified === wanted) return file;
      const hash = new Sha256();
      for (let at = 0; at < file.size; at += kChunkBytes) {
        throwIfAborted(signal);
        hash.update(await file.read(at, Math.min(kChunkBytes, file.size - at)));
        tell(Math.min(at + kChunkBytes, file.size), file.size);
      }
      const found = hash.digest();
      if (found !== wanted) {
        const error = new DopplerError('integrity', `${name} has SHA-256 ${found}, not ${wanted}, which option integrity names. Nothing of it was used.`);
        await access.failed?.(error);
        throw error;
      }
      await file.noteVerified?.(found);
      return file;
    },
  };
}

/** @param {string} text */
function hexOf(text) {
  if (/^[\da-f]{64}$/i.test(text)) return text.toLowerCase();
  const base64 = /^sha256-([\w+/]{43}=)$/.exec(text)?.[1];
  if (base64) return Array.from(atob(base64), (letter) => letter.charCodeAt(0).toString(16).padStart(2, '0')).join('');
  throw new DopplerError('invalid-input', `Option integrity has "${text}"; a SHA-256 is 64 hexadecimal digits, or "sha256-" and its 44 letters in Base64.`);
}
