// A model that the user gave to the page: a dropped or picked File, the Files of a folder, a handle of either. Bytes
// are read on request, without a copy of the file.
import { DopplerError } from './errors.mjs';
import { wholeBody } from './whole_body.mjs';

/** @param {any} source @returns {source is Blob | File[] | FileSystemFileHandle | FileSystemDirectoryHandle} */
export function isLocal(source) {
  return source instanceof Blob || Array.isArray(source) || source?.kind === 'file' || source?.kind === 'directory';
}

/**
 * @param {Blob | File[] | FileSystemFileHandle | FileSystemDirectoryHandle} source
 * @returns {Promise<import('./file_host.mjs').FileAccess>}
 */
export async function blobFiles(source) {
  if (source instanceof Blob) {
    const name = /** @type {any} */ (source).name ?? 'model';
    return accessOf(name, new Map([[name, source]]), true);
  }
  if (Array.isArray(source)) {
    if (source.length === 0) throw new DopplerError('invalid-input', 'No file was given; a model has at least one.');
    return accessOf(source[0].name, new Map(source.map((file) => [nameInFolder(file), file])), source.length === 1);
  }
  if (source.kind === 'file') return accessOf(source.name, new Map([[source.name, await source.getFile()]]), true);
  return accessOf(source.name, await filesOf(source, ''), false);
}

/** The name of a file within its picked folder: folders below have files of the same names. @param {File} file */
function nameInFolder(file) {
  return file.webkitRelativePath?.split('/').slice(1).join('/') || file.name;
}

/**
 * Those of folders in it too: embedding models have such.
 * @param {any} folder
 * @param {string} prefix
 * @returns {Promise<Map<string, Blob>>}
 */
async function filesOf(folder, prefix) {
  /** @type {Map<string, Blob>} */ const files = new Map();
  for await (const entry of folder.values()) {
    const name = prefix + entry.name;
    if (entry.kind === 'file') files.set(name, await entry.getFile());
    else if (!prefix) for (const [below, file] of await filesOf(entry, `${name}/`)) files.set(below, file);
  }
  return files;
}

/** @param {string} root @param {Map<string, Blob>} byName @param {boolean} isOne */
function accessOf(root, byName, isOne) {
  return {
    files: { root, mainFile: isOne ? root : '', names: [...byName.keys()].sort() },
    open: async (name) => {
      const blob = byName.get(name);
      return blob ? openBlob(blob, name) : null;
    },
  };
}

/** @param {Blob} blob @param {string} name @returns {import('./file_host.mjs').OpenFile} */
export function openBlob(blob, name) {
  return {
    name,
    size: blob.size,
    close() {},
    read: (offset, count, memory) => wholeBody(blob.slice(offset, offset + count), count, name, memory),
  };
}
