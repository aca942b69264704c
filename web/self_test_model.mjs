// A tiny Llama for the self test, made up in memory as a GGUF file: all its matrices have one format, and each byte
// follows from its place, so that every machine has the same model. No tokenizer: it is asked in token ids.

const kLayers = 2;
const kHidden = 256; // a multiple of every block
const kFfn = 512;
const kHeads = 4;
const kKvHeads = 2;
const kVocabulary = 512;
const kAlignment = 32; // of tensors in GGUF
const kF32 = 0; // GGUF's number of the type
// By format: GGUF's number, elements and bytes of a block, and the places and sizes of its half-precision scales, so
// that weights have a deviation near 1 / sqrt(kHidden).
const kFormats = {
  f16: { type: 1, elements: 1, bytes: 2, scales: {} },
  q4_0: { type: 2, elements: 32, bytes: 18, scales: { 0: 1.36e-2 } },
  q8_0: { type: 8, elements: 32, bytes: 34, scales: { 0: 8.4e-4 } },
  q4_k: { type: 12, elements: 256, bytes: 144, scales: { 0: 3.1e-4, 2: 2.3e-3 } },
  q5_k: { type: 13, elements: 256, bytes: 176, scales: { 0: 1.5e-4, 2: 2.3e-3 } },
  q6_k: { type: 14, elements: 256, bytes: 210, scales: { 208: 6.2e-5 } },
};
export const kSelfTestFormats = Object.keys(kFormats);

/** @param {string} format of kSelfTestFormats @returns {Uint8Array} a GGUF file */
export function selfTestModel(format) {
  const tensors = [matrix('token_embd', kVocabulary), norm('output_norm')];
  for (let layer = 0; layer < kLayers; layer++) {
    const kvRows = (kHidden / kHeads) * kKvHeads;
    tensors.push(...[norm('attn_norm'), matrix('attn_q', kHidden), matrix('attn_k', kvRows), matrix('attn_v', kvRows),
      matrix('attn_output', kHidden), norm('ffn_norm'), matrix('ffn_gate', kFfn), matrix('ffn_up', kFfn),
      matrix('ffn_down', kHidden, kFfn)].map((tensor) => ({ ...tensor, name: `blk.${layer}.${tensor.name}` })));
  }
  const out = new Writer();
  const architecture = { block_count: kLayers, context_length: 256, embedding_length: kHidden, feed_forward_length: kFfn,
    'attention.head_count': kHeads, 'attention.head_count_kv': kKvHeads };
  out.text('GGUF', false).u32(3).u64(tensors.length).u64(2 + Object.keys(architecture).length);
  out.text('general.architecture').u32(8).text('llama');
  out.text('llama.attention.layer_norm_rms_epsilon').u32(6).f32(1e-5);
  for (const [key, value] of Object.entries(architecture)) out.text(`llama.${key}`).u32(4).u32(value);
  let offset = 0;
  for (const { name, shape, isNorm } of tensors) {
    out.text(`${name}.weight`).u32(shape.length);
    for (const extent of shape) out.u64(extent);
    out.u32(isNorm ? kF32 : kFormats[format].type).u64(offset);
    offset += aligned(bytesOf({ shape, isNorm }, format));
  }
  out.pad();
  for (const tensor of tensors) {
    out.bytes(tensor.isNorm ? new Uint8Array(new Float32Array(kHidden).fill(1).buffer) : weights(tensor.shape, format)).pad();
  }
  return out.whole();
}

const norm = (name) => ({ name, shape: [kHidden], isNorm: true });
const matrix = (name, rows, columns = kHidden) => ({ name, shape: [columns, rows], isNorm: false });
const aligned = (bytes) => Math.ceil(bytes / kAlignment) * kAlignment;

function bytesOf({ shape, isNorm }, format) {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return isNorm ? 4 * count : (count / kFormats[format].elements) * kFormats[format].bytes;
}

/** @param {number[]} shape @param {string} format */
function weights(shape, format) {
  const { bytes, scales } = kFormats[format];
  const out = new Uint8Array(bytesOf({ shape, isNorm: false }, format));
  const view = new DataView(out.buffer);
  let state = out.length; // xorshift32 (Marsaglia 2003)
  for (let i = 0; i < out.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    out[i] = state >>> 24;
  }
  for (let block = 0; block < out.length; block += bytes) {
    for (const [at, scale] of Object.entries(scales)) view.setUint16(block + Number(at), half(scale), true);
    // Half-precision weights: any sign and mantissa, the exponent of 2^-5 to 2^-4.
    if (format === 'f16') view.setUint16(block, (view.getUint16(block, true) & 0x87ff) | 0x2800, true);
  }
  return out;
}

/** The bits of a number in half precision; it must be normal there. @param {number} value */
function half(value) {
  const exponent = Math.floor(Math.log2(value));
  return ((exponent + 15) << 10) + Math.round((value / 2 ** exponent - 1) * 1024);
}

class Writer {
  /** @type {Uint8Array[]} */ #parts = [];
  #length = 0;

  /** @param {Uint8Array} part */
  bytes(part) {
    this.#parts.push(part);
    this.#length += part.length;
    return this;
  }
  /** @param {number} value */
  u32(value) {
    return this.bytes(new Uint8Array(new Uint32Array([value]).buffer));
  }
  /** @param {number} value */
  u64(value) {
    return this.u32(value).u32(0);
  }
  /** @param {number} value */
  f32(value) {
    return this.bytes(new Uint8Array(new Float32Array([value]).buffer));
  }
  /** @param {string} value */
  text(value, hasLength = true) {
    const bytes = new TextEncoder().encode(value);
    return (hasLength ? this.u64(bytes.length) : this).bytes(bytes);
  }
  pad() {
    return this.bytes(new Uint8Array(aligned(this.#length) - this.#length));
  }
  whole() {
    const out = new Uint8Array(this.#length);
    let at = 0;
    for (const part of this.#parts) {
      out.set(part, at);
      at += part.length;
    }
    return out;
  }
}
