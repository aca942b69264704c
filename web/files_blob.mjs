// A model that the user gave to the page: a dropped or picked File, the Files of a folder, a handle of either. Nothing is
// copied; bytes are read when they are wanted.
import { DopplerError } from './errors.mjs';

/** @param {any} source @returns {source is Blob | File[] | FileSystemFileHandle | FileSystemDirectoryHandle} */
export function isLocal(source) {
  return source instanceof Blob || Array.isArray(source) || source?.kind === 'file' || source?.kind === 'directory';
}

/**
 * @param {Blob | File[] | FileSystemFileHandle | FileSystemDirectoryHandle} source
 * @returns {Promise<import('./file_host.mjs').FileAccess>}
 */
export async function blobFiles(source) {
  if (source instanceof Blob) return accessOf(/** @type {any} */ (source).name ?? 'model', [source], true);
  if (Array.isArray(source)) {
    if (source.length === 0) throw new DopplerError('invalid-input', 'No file was given; a model has at least one.');
    return accessOf(source[0].name, source, source.length === 1);
  }
  if (source.kind === 'file') return accessOf(source.name, [await source.getFile()], true);
  const files = [];
  for await (const entry of /** @type {any} */ (source).values()) {
    if (entry.kind === 'file') files.push(await entry.getFile());
  }
  return accessOf(source.name, files, false);
}

/** @param {string} root @param {(Blob & {name?: string})[]} blobs @param {boolean} isOne */
function accessOf(root, blobs, isOne) {
  const byName = new Map(blobs.map((blob) => [blob.name ?? root, blob]));
  return {
    files: { root, mainFile: isOne ? root : '', names: [...byName.keys()].sort() },
    open: async (name) => {
      const blob = byName.get(name);
      return blob ? openBlob(blob, name) : null;
    },
  };
}

/** @param {Blob} blob @param {string} name @returns {import('./file_host.mjs').OpenFile} */
function openBlob(blob, name) {
  return {
    name,
    size: blob.size,
    close() {},
    async read(offset, count) {
      const bytes = new Uint8Array(await blob.slice(offset, offset + count).arrayBuffer());
      if (bytes.length === count) return bytes;
      throw new DopplerError('io', `${name} gave ${bytes.length} bytes where ${count} were asked for: was it changed?`);
    },
  };
}
