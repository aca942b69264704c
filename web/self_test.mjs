// Tests that this browser, driver and GPU compute right: tiny models of the formats in use (self_test_model.mjs) are
// asked, and their greedy tokens compared with those that the native program gave. It names the wrong kernel by trying
// the portable variant of each operation; the engine then uses that variant.
import { cancelled } from './errors.mjs';
import { Instance } from './instance.mjs';
import { openRoot, readRecord, writeRecord } from './piece_store.mjs';
import { kSelfTestFormats, selfTestModel } from './self_test_model.mjs';

const kPrompt = [1, 2, 3, 5, 8, 13, 21]; // and a last token by format
// `doppler run --lane exact --tokens 1,2,3,5,8,13,21,LAST -n 8 --temp 0 --ignore-eos` of the model. Each token is
// likelier than the second by 0.2 nats and more, so that the lane fast gives them too, whatever order its sums have and
// where it rounds activations to 8 bits (the lane dp4a).
const kAnswers = {
  f16: { last: 142, tokens: [304, 28, 348, 348, 301, 479, 348, 361] },
  q4_0: { last: 34, tokens: [362, 362, 362, 362, 362, 362, 362, 362] },
  q8_0: { last: 316, tokens: [286, 249, 286, 249, 286, 249, 286, 249] },
  q4_k: { last: 342, tokens: [421, 147, 147, 147, 147, 147, 147, 147] },
  q5_k: { last: 398, tokens: [161, 290, 290, 290, 290, 290, 290, 273] },
  q6_k: { last: 455, tokens: [481, 71, 13, 54, 475, 221, 416, 445] },
};
// The lane fast has weights in tiles, whose formats are these on the GPU (src/base/dtype.cpp).
const kTiles = { f16: 'tile_f16', q8_0: 'tile_q8', q4_k: 'tile_q4', q5_k: 'tile_q5', q6_k: 'tile_q6' };

/** @typedef {import('./doppler.d.ts').SelfTestReport} Report */
/**
 * The parts of an instance, without its files.
 * @typedef {{module: import('./core_module.mjs').CoreModule, gpu: any, provider: string, device?: any}} Parts
 */

/**
 * @param {Parts} parts @param {{lane: string, adapter: string, variants: string[]}} info of the model that is to be
 * trusted
 * @returns {Promise<Report>}
 */
export async function selfTest(parts, { lane, adapter, variants }) {
  /** @type {Report['formats']} */ const formats = [];
  /** @type {Record<string, string>} */ const replaced = {};
  for (const format of formatsInUse(variants)) {
    const { tokens, kernels } = await answerOf(parts, format, lane, {});
    const passed = isRight(format, tokens);
    const wrong = passed ? null : await findWrong(parts, format, lane, kernels);
    formats.push({ format, passed, wrong: wrong?.variant ?? null });
    if (wrong) replaced[wrong.operation] = wrong.portable;
  }
  const passed = formats.every((tested) => tested.passed);
  const lines = formats.map(({ format, passed: isFine, wrong }) =>
    `${format}: ${isFine ? 'right' : `wrong${wrong ? `, by ${wrong}` : ''}`}`);
  const place = globalThis.navigator?.userAgent ?? parts.provider;
  return { passed, lane, formats, replaced, text: [`Self test in the lane ${lane} on ${adapter}`, place, ...lines].join('\n') };
}

/** The formats of which models are asked. @param {string[]} variants of kernels that are in use */
export function formatsInUse(variants) {
  const words = new Set(variants.flatMap((variant) => variant.split('.')));
  const formats = kSelfTestFormats.filter((format) => words.has(format) || words.has(kTiles[format]));
  return formats.length > 0 ? formats : ['f16'];
}

/** True if this browser passed before with these kernels. @param {string} key @returns {Promise<boolean>} */
export async function passedBefore(key) {
  const root = await openRoot();
  return Boolean(root && (await readRecord(root))?.passed?.includes(key));
}

/** @param {string} key */
export async function rememberPassed(key) {
  const root = await openRoot();
  if (!root) return;
  const { passed = [] } = (await readRecord(root)) ?? {};
  await writeRecord(root, { passed: [...new Set([...passed, key])] });
}

// The first operation whose portable variant makes the answer right; none, where several kernels are wrong.
async function findWrong(parts, format, lane, kernels) {
  const tried = new Set();
  for (const { operation, variant, others } of kernels) {
    const portable = others.at(-1);
    if (!portable || tried.has(operation)) continue;
    tried.add(operation);
    const { tokens } = await answerOf(parts, format, lane, { [operation]: portable }).catch(() => ({ tokens: [] }));
    if (isRight(format, tokens)) return { operation, variant, portable };
  }
  return null;
}

/** @param {string} format @param {number[]} tokens */
const isRight = (format, tokens) => tokens.join() === kAnswers[format].tokens.join();

/** @param {Parts} parts @param {string} format @param {string} lane @param {Record<string, string>} kernels */
async function answerOf({ module, ...parts }, format, lane, kernels) {
  const bytes = selfTestModel(format);
  const name = `self-test-${format}.gguf`;
  const file = { name, size: bytes.length, close() {}, read: async (offset, count) => bytes.slice(offset, offset + count) };
  const access = { files: { root: name, mainFile: name, names: [] }, open: async (asked) => (asked === name ? file : null) };
  const instance = new Instance({ ...parts, access, log: () => {} });
  await instance.start(module);
  try {
    await instance.load({ lane, kernels, ctxLen: 64, chunk: 64 }, () => true);
    const { last, tokens: wanted } = kAnswers[format];
    const options = { temperature: 0, maxTokens: wanted.length, ignoreEos: true };
    const { tokens } = await instance.ask('generate', { tokens: [...kPrompt, last], options });
    return { tokens, kernels: (await instance.kernels()).kernels };
  } finally {
    instance.free(cancelled()); // no call is under way
  }
}
