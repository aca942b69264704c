// Bytes of a response or a file in memory that the caller has: reader after reader fills the same few buffers. Browsers
// collect the garbage of new ones too seldom (docs/design/web.md).
import { DopplerError } from './errors.mjs';

/**
 * Readers at work. Chromium collects a stream that only its own reads refer to, and these then never end (seen in 156).
 */
const reading = new Set();

/**
 * Error: there are fewer bytes, or more.
 * @param {Response | Blob} body @param {number} count @param {string} name for messages
 * @param {ArrayBuffer} [memory] of at least `count` bytes; it is detached, and the answer lies at its beginning
 * @returns {Promise<Uint8Array>}
 */
export async function wholeBody(body, count, name, memory) {
  const reader = byteReader(body);
  if (!reader) {
    const bytes = new Uint8Array(await body.arrayBuffer());
    if (bytes.length === count) return bytes;
    throw wrongSize(name, bytes.length, count);
  }
  reading.add(reader);
  try {
    return await filled(reader, count, name, memory);
  } finally {
    reading.delete(reader);
  }
}

/** @param {any} reader @param {number} count @param {string} name @param {ArrayBuffer} [memory] */
async function filled(reader, count, name, memory) {
  let bytes = new Uint8Array(memory ?? new ArrayBuffer(count), 0, count);
  for (let at = 0; at < count;) {
    const { value, done } = await reader.read(bytes.subarray(at));
    if (done) throw wrongSize(name, at, count);
    at += value.length;
    bytes = new Uint8Array(value.buffer, 0, count);
  }
  const { done } = await reader.read(new Uint8Array(1));
  if (done) return bytes;
  await reader.cancel();
  throw wrongSize(name, 'more', count);
}

/** null: this browser has no reader of the kind that fills a given buffer. @param {any} body */
function byteReader(body) {
  const stream = body instanceof Blob ? body.stream() : body.body;
  try {
    return stream?.getReader({ mode: 'byob' }) ?? null;
  } catch { // the stream can still be read otherwise
    return null;
  }
}

/** @param {string} name @param {number | string} found @param {number} count */
const wrongSize = (name, found, count) => new DopplerError('io', `${name} gave ${found} bytes where ${count} were asked for.`);
