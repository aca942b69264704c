// SHA-256 of bytes that come piece by piece, which WebCrypto cannot (FIPS 180-4). Read next: integrity.mjs.

const kBlockBytes = 64;
const kLengthBytes = 8;
// The first 32 bits of the fractional parts of the cube roots of the first 64 primes, and of the square roots of the
// first 8.
const kRounds = fractions(64, Math.cbrt);
const kStart = fractions(8, Math.sqrt);

/** @param {number} count @param {(prime: number) => number} root */
function fractions(count, root) {
  const out = [];
  for (let candidate = 2; out.length < count; candidate++) {
    let isPrime = true;
    for (let i = 2; i * i <= candidate; i++) isPrime &&= candidate % i !== 0;
    if (isPrime) out.push((root(candidate) % 1) * 2 ** 32 | 0);
  }
  return Int32Array.from(out);
}

export class Sha256 {
  #state = kStart.slice();
  #words = new Int32Array(kBlockBytes);
  #rest = new Uint8Array(kBlockBytes);
  #restBytes = 0;
  #bytes = 0;

  /** @param {Uint8Array} bytes */
  update(bytes) {
    this.#bytes += bytes.length;
    let at = 0;
    if (this.#restBytes > 0) {
      at = Math.min(kBlockBytes - this.#restBytes, bytes.length);
      this.#rest.set(bytes.subarray(0, at), this.#restBytes);
      this.#restBytes += at;
      if (this.#restBytes < kBlockBytes) return;
      this.#block(this.#rest, 0);
      this.#restBytes = 0;
    }
    for (; at + kBlockBytes <= bytes.length; at += kBlockBytes) this.#block(bytes, at);
    this.#rest.set(bytes.subarray(at));
    this.#restBytes = bytes.length - at;
  }

  /** @returns {string} in hexadecimal; the object is used up */
  digest() {
    const bits = BigInt(this.#bytes) * 8n;
    const padding = (2 * kBlockBytes - kLengthBytes - 1 - this.#restBytes) % kBlockBytes;
    const end = new Uint8Array(1 + padding + kLengthBytes);
    end[0] = 0x80;
    new DataView(end.buffer).setBigUint64(1 + padding, bits);
    this.update(end);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  /** @param {Uint8Array} b @param {number} at */
  #block(b, at) {
    const w = this.#words;
    for (let i = 0; i < 16; i++, at += 4) w[i] = (b[at] << 24) | (b[at + 1] << 16) | (b[at + 2] << 8) | b[at + 3];
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15], y = w[i - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let [a, bb, c, d, e, f, g, h] = this.#state;
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + w[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & bb) ^ (a & c) ^ (bb & c))) | 0;
      h = g; g = f; f = e; e = (d + t1) | 0;
      d = c; c = bb; bb = a; a = (t1 + t2) | 0;
    }
    const s = this.#state;
    s[0] += a; s[1] += bb; s[2] += c; s[3] += d; s[4] += e; s[5] += f; s[6] += g; s[7] += h;
  }
}
