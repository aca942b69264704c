// Bytes of files for GPU buffers in Node, by way of a few mapped buffers: a file is read right into one, which the GPU
// then copies. On an H100 Node brings 0.95 GB/s by queue.writeBuffer, and 6.1 so. Not for browsers: mapped buffers
// gained nothing in Chromium (docs/design/web.md), and with them web_firefox_test failed.

const kBuffers = 4;
const kMapWrite = 2; // GPUMapMode
const kUsage = 2 | 4; // MAP_WRITE, COPY_SRC

/** Bytes of one staging buffer. */
export const kStagingBytes = 8 << 20;

export class Staging {
  /** Mapped again one after the other, the first to be used next. @type {Promise<any>[]} */ #mapped = [];
  /** @type {any[]} */ #made = [];

  /** @param {any} device */
  constructor(device) {
    this.device = device;
  }

  /**
   * The next buffer, reserved for its caller until send(): waits until the GPU has copied what was sent with it before.
   * @param {number} bytes at most kStagingBytes @returns {Promise<{buffer: any, view: Uint8Array}>}
   */
  async next(bytes) {
    const buffer = this.#made.length < kBuffers ? this.#make() : await this.#mapped.shift();
    return { buffer, view: new Uint8Array(buffer.getMappedRange(0, wholeWords(bytes)), 0, bytes) };
  }

  /**
   * Copies what was written to `view`, and zeros up to whole words.
   * @param {{buffer: any, view: Uint8Array}} filled
   * @param {any} to
   * @param {number} offset
   */
  send({ buffer, view }, to, offset) {
    const bytes = wholeWords(view.length);
    new Uint8Array(view.buffer, view.length).fill(0);
    buffer.unmap();
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, to, offset, bytes);
    this.device.queue.submit([encoder.finish()]);
    const mapped = buffer.mapAsync(kMapWrite).then(() => buffer);
    mapped.catch(() => {}); // the caller that awaits it is told
    this.#mapped.push(mapped);
  }

  /** Gives the memory back; the next use makes it again. */
  release() {
    for (const buffer of this.#made) buffer.destroy();
    this.#made = [];
    this.#mapped = [];
  }

  #make() {
    const buffer = this.device.createBuffer({ label: 'staging', size: kStagingBytes, usage: kUsage, mappedAtCreation: true });
    this.#made.push(buffer);
    return buffer;
  }
}

const wholeWords = (/** @type {number} */ bytes) => Math.ceil(bytes / 4) * 4;
