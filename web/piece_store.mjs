// Models in the origin's private file system (OPFS), by piece: doppler/<key of the model>/<file>/<piece number>. A
// piece's file is its bytes and their SHA-256. It appears whole or not at all, since a writer's bytes take their place
// when it is closed. So the folder itself is the journal, and a closed tab leaves what it had finished.
// Read next: cached_files.mjs (reading a model through it), model_cache.mjs (the list of models).
import { asDopplerError } from './errors.mjs';
import { wholeBody } from './whole_body.mjs';

export const kPieceBytes = 8 << 20; // as one chunk of a stream (gpu_host.mjs)
const kHashBytes = 32;
/** The bytes of memory that holds any piece as it is stored. */
export const kStoredBytes = kPieceBytes + kHashBytes;
const kRoot = 'doppler';
const kRecord = 'record.json'; // of a model and of each file: what it is

/**
 * The folder of all models; null: this place has no such storage.
 * @returns {Promise<FileSystemDirectoryHandle | null>}
 */
export async function openRoot() {
  try {
    const storage = await globalThis.navigator?.storage?.getDirectory?.();
    return storage && globalThis.crypto?.subtle ? await storage.getDirectoryHandle(kRoot, { create: true }) : null;
  } catch { // a private window, or storage that the user has switched off
    return null;
  }
}

/** Folder name of a model. @param {string} id */
export async function keyOf(id) {
  return hex(await digest(new TextEncoder().encode(id))).slice(0, 32);
}

/** @param {FileSystemDirectoryHandle} folder @returns {Promise<any>} null: there is none, or it cannot be read */
export async function readRecord(folder) {
  try {
    const file = await (await folder.getFileHandle(kRecord)).getFile();
    return JSON.parse(await file.text());
  } catch {
    return null;
  }
}

/** @param {FileSystemDirectoryHandle} folder @param {any} record */
export async function writeRecord(folder, record) {
  await writeFile(folder, kRecord, [JSON.stringify(record)]);
}

/** The name of a model's file as that of a folder. @param {string} name */
export const folderName = (name) => encodeURIComponent(name);

/** The pieces of one file. */
export class Pieces {
  /** @param {FileSystemDirectoryHandle} folder @param {number} size of the file */
  constructor(folder, size) {
    this.folder = folder;
    this.size = size;
  }

  /** @param {number} index */
  bytesOf(index) {
    return Math.min(kPieceBytes, this.size - index * kPieceBytes);
  }

  /**
   * null: it is not there, or its bytes are not those that were written.
   * @param {number} index
   * @param {() => ArrayBuffer} memory of kStoredBytes, taken where the piece is there
   * @returns {Promise<Uint8Array | null>}
   */
  async read(index, memory) {
    const count = this.bytesOf(index);
    let bytes;
    try {
      const file = await (await this.folder.getFileHandle(String(index))).getFile();
      if (file.size !== count + kHashBytes) return null;
      bytes = await wholeBody(file, file.size, file.name, memory());
    } catch {
      return null;
    }
    const content = bytes.subarray(0, count);
    return hex(bytes.subarray(count)) === hex(await digest(content)) ? content : null;
  }

  /** @param {number} index @param {Uint8Array} bytes */
  async write(index, bytes) {
    await writeFile(this.folder, String(index), [bytes, await digest(bytes)]);
  }

  /** Bytes of the pieces that are there whole. A piece that is being written is an empty file until then. */
  async cachedBytes() {
    let bytes = 0;
    for await (const [name, entry] of /** @type {any} */ (this.folder).entries()) {
      if (!/^\d+$/.test(name)) continue;
      const own = this.bytesOf(Number(name));
      const { size } = await entry.getFile().catch(() => ({ size: 0 })); // deleted in the meantime
      if (size === own + kHashBytes) bytes += own;
    }
    return bytes;
  }
}

/** @param {FileSystemDirectoryHandle} folder @param {string} name @param {(string | Uint8Array)[]} parts */
async function writeFile(folder, name, parts) {
  const handle = await folder.getFileHandle(name, { create: true });
  const writer = await handle.createWritable();
  try {
    for (const part of parts) await writer.write(/** @type {any} */ (part));
    await writer.close();
  } catch (error) {
    await writer.abort().catch(() => {});
    throw asDopplerError(error);
  }
}

/** @param {Uint8Array} bytes */
async function digest(bytes) {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', /** @type {any} */ (bytes)));
}

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
