// Pictures in a chat's messages: what a caller gives becomes pixels, which the core takes (src/web/web_pictures.h), and
// then a number in its part of the message. Files are decoded by the browser.
import { DopplerError } from './errors.mjs';
import { Sha256 } from './sha256.mjs';

const kParts = new Set(['image_url', 'input_image', 'image']);
const kMostPixels = 64 << 20;
const kHashBytes = 32;
const kHeaderBytes = kHashBytes + 12;
const kDetails = { low: 1, high: 2 };
const kWhite = 255;

/** @typedef {{width: number, height: number, data: Uint8Array | Uint8ClampedArray}} Pixels RGB or RGBA, row by row */

/** What a part of a message has as its picture. @param {any} part */
function givenOf(part) {
  if (part.type === 'image') return part.image;
  return typeof part.image_url === 'object' && part.image_url !== null && 'url' in part.image_url ? part.image_url.url : part.image_url;
}

/** How closely a part asks to look. @param {any} part */
const detailOf = (part) => kDetails[part.image_url?.detail ?? part.detail] ?? 0;

/** @param {CanvasImageSource & {width: number, height: number}} bitmap @returns {Pixels} */
function pixelsOf(bitmap) {
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  if (!context) throw new DopplerError('unsupported', 'This browser gives no pixels of pictures (OffscreenCanvas).');
  context.drawImage(bitmap, 0, 0);
  return context.getImageData(0, 0, width, height);
}

/** @param {Blob} file */
async function decoded(file) {
  const bitmap = await createImageBitmap(file, { imageOrientation: 'from-image', colorSpaceConversion: 'none' }).catch(() => {
    throw new DopplerError('invalid-input', `A picture of ${file.size} bytes (${file.type || 'of unknown type'}) cannot be decoded by this browser.`);
  });
  try {
    return pixelsOf(bitmap);
  } finally {
    bitmap.close();
  }
}

/** @param {any} given @returns {Promise<Pixels>} */
async function read(given) {
  const isPixels = given && typeof given === 'object' && ArrayBuffer.isView(given.data);
  if (isPixels) return given;
  if (!('createImageBitmap' in globalThis)) {
    throw new DopplerError('unsupported', 'Node decodes no picture files; a part may have pixels: {type: "image", image: {width, height, data}}.');
  }
  if (typeof given === 'string' || given instanceof URL) {
    const answer = await fetch(given).catch((error) => {
      throw new DopplerError('io', `A picture could not be fetched from ${String(given).slice(0, 80)}: ${error.message}.`);
    });
    if (!answer.ok) throw new DopplerError('io', `A picture could not be fetched: ${answer.url.slice(0, 80)} answered ${answer.status}.`);
    return decoded(await answer.blob());
  }
  if (given instanceof Blob) return decoded(given);
  if (typeof ImageBitmap !== 'undefined' && given instanceof ImageBitmap) return pixelsOf(given);
  throw new DopplerError('invalid-input', 'A picture is an address, a Blob, an ImageBitmap, or pixels: {width, height, data}.');
}

/**
 * A picture as the core takes it: its hash, its size, the detail, and RGB on white.
 * @param {Pixels} pixels @param {number} detail
 */
async function packed({ width, height, data }, detail) {
  const count = width * height;
  const channels = data.length / count;
  if (!Number.isInteger(width) || !Number.isInteger(height) || !(count >= 1 && count <= kMostPixels) || (channels !== 3 && channels !== 4)) {
    throw new DopplerError('invalid-input', `A picture of ${width} x ${height} pixels has ${data.length} bytes; 3 or 4 a pixel are allowed, and up to ${kMostPixels} pixels.`);
  }
  const bytes = new Uint8Array(kHeaderBytes + 3 * count);
  const header = new DataView(bytes.buffer, kHashBytes);
  [width, height, detail].forEach((value, i) => header.setUint32(4 * i, value, true));
  if (channels === 3) bytes.set(data, kHeaderBytes);
  for (let from = 0, to = kHeaderBytes; channels === 4 && from < data.length; from += 4) {
    const alpha = data[from + 3];
    for (let c = 0; c < 3; c++) bytes[to++] = alpha === kWhite ? data[from + c] : Math.round((data[from + c] * alpha + kWhite * (kWhite - alpha)) / kWhite);
  }
  bytes.set(await hashOf(bytes.subarray(kHashBytes)));
  return bytes;
}

/** @param {Uint8Array<ArrayBuffer>} bytes */
async function hashOf(bytes) {
  const { subtle } = globalThis.crypto ?? {};  // only in secure contexts
  if (subtle) return new Uint8Array(await subtle.digest('SHA-256', bytes));
  const hash = new Sha256();
  hash.update(bytes);
  const digits = hash.digest();
  return Uint8Array.from({ length: kHashBytes }, (_, i) => parseInt(digits.slice(2 * i, 2 * i + 2), 16));
}

/** By their hashes. @param {Uint8Array} one @param {Uint8Array} other both packed */
export const isSamePicture = (one, other) => one.subarray(0, kHashBytes).every((byte, i) => byte === other[i]);

/**
 * The chat with a number for each picture.
 * @param {any} chat @param {(bytes: Uint8Array) => Promise<number>} add
 */
export async function withPictures(chat, add) {
  const isPicture = (part) => kParts.has(part?.type);
  const hasPictures = ({ content } = /** @type {any} */ ({})) => Array.isArray(content) && content.some(isPicture);
  if (!chat.messages.some((message) => message && hasPictures(message))) return chat;
  const numbered = async (part) => {
    if (!isPicture(part)) return part;
    const number = await add(await packed(await read(givenOf(part)), detailOf(part)));
    return { type: 'image_url', image_url: { url: `data:;base64,${btoa(String(number))}` } };
  };
  const messages = [];
  for (const message of chat.messages) {
    if (!message || !hasPictures(message)) messages.push(message);
    else {
      const content = [];
      for (const part of message.content) content.push(await numbered(part));
      messages.push({ ...message, content });
    }
  }
  return { ...chat, messages };
}
