// Whether this browser, driver and GPU compute right: tiny models of the formats in use (self_test_model.mjs) are asked, and
// their greedy tokens compared with those that the native program gave. What is wrong is named, by trying the portable
// variant of each operation; the engine then uses that one.
import { cancelled } from './errors.mjs';
import { Instance } from './instance.mjs';
import { openRoot, readRecord, writeRecord } from './piece_store.mjs';
import { kSelfTestFormats, selfTestModel } from './self_test_model.mjs';

const kPrompt = [1, 2, 3, 5, 8, 13, 21, 34];
// `doppler run --lane exact --tokens 1,2,3,5,8,13,21,34 -n 12 --temp 0 --ignore-eos` of the model, which the lane fast gives too.
const kTokens = {
  f16: [55, 251, 474, 348, 374, 474, 348, 348, 348, 437, 96, 342],
  q4_0: [362, 362, 362, 362, 362, 362, 362, 362, 362, 362, 362, 362],
  q8_0: [262, 82, 249, 82, 249, 82, 272, 272, 272, 272, 272, 272],
  q4_k: [147, 147, 147, 147, 147, 147, 147, 147, 147, 147, 147, 147],
  q5_k: [290, 290, 290, 290, 290, 290, 273, 318, 290, 290, 290, 290],
  q6_k: [427, 31, 503, 341, 477, 210, 475, 498, 221, 362, 56, 416],
};

/** @typedef {import('./doppler.d.ts').SelfTestReport} Report */
/** What makes an instance, without its files. @typedef {{module: WebAssembly.Module, gpu: any, provider: string, device?: any}} Parts */

/**
 * @param {Parts} parts @param {{lane: string, adapter: string, variants: string[]}} info of the model that is to be trusted
 * @returns {Promise<Report>}
 */
export async function selfTest(parts, { lane, adapter, variants }) {
  const inUse = kSelfTestFormats.filter((format) => variants.some((variant) =>
    variant.split('.').some((part) => part.replace(/^tile_/, '') === format)));
  /** @type {Report['formats']} */ const formats = [];
  /** @type {Record<string, string>} */ const replaced = {};
  for (const format of inUse.length > 0 ? inUse : ['f16']) {
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

/** Whether this browser passed before with these kernels. @param {string} key @returns {Promise<boolean>} */
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
const isRight = (format, tokens) => tokens.join() === kTokens[format].join();

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
    const options = { temperature: 0, maxTokens: kTokens[format].length, ignoreEos: true };
    const { tokens } = await instance.ask('generate', { tokens: kPrompt, options });
    return { tokens, kernels: (await instance.kernels()).kernels };
  } finally {
    instance.free(cancelled()); // nothing is under way
  }
}
