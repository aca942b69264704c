// A model on disk, for Node: a file, or the folder of a Hugging Face model.
import { open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** @param {string} path @returns {Promise<import('./file_host.mjs').FileAccess>} */
export async function nodeFiles(path) {
  let info;
  try {
    info = await stat(path);
  } catch {
    throw new Error(`There is no file or folder "${path}".`);
  }
  const folder = info.isDirectory() ? path : dirname(path);
  const names = info.isDirectory() ? (await readdir(path)).sort() : [];
  return {
    files: { root: path, mainFile: info.isDirectory() ? '' : basename(path), names },
    open: (name) => openFile(join(folder, name)),
  };
}

/** @param {string} path @returns {Promise<import('./file_host.mjs').OpenFile | null>} */
async function openFile(path) {
  let handle;
  try {
    handle = await open(path, 'r');
  } catch (error) {
    if (/** @type {any} */ (error).code === 'ENOENT') return null;
    throw error;
  }
  const { size } = await handle.stat();
  /** @param {number} offset @param {Uint8Array} into */
  const readInto = async (offset, into) => {
    for (let at = 0; at < into.length;) {
      const { bytesRead } = await handle.read(into, at, into.length - at, offset + at);
      if (bytesRead === 0) throw new Error(`${path} ends at ${offset + at}, before byte ${offset + into.length}.`);
      at += bytesRead;
    }
  };
  return {
    name: path,
    size,
    close: () => void handle.close(),
    async read(offset, count) {
      const bytes = new Uint8Array(count);
      await readInto(offset, bytes);
      return bytes;
    },
    readInto,
  };
}
