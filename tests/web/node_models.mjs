// Models as the tests in Node use them. This file ends the program with status 77 if there is no WebGPU device.
import { join } from 'node:path';
import test from 'node:test';
import { Doppler } from '../../web/node.mjs';

const kNoDevice = 77;
export const kExact = { lane: 'exact', ctx: 64, chunk: 64 };
export const kGreedy = { temperature: 0, ignore_eos: true };
/** The unpacked tests/data/families_llama, and its smallest model. */
export const golden = process.env.GOLDEN_DIR ?? '';
export const smallest = join(golden, 'llama');
const counts = { passed: 0, failed: 0, skipped: 0 };

/**
 * A test that is counted for the closing line.
 * @param {string} name
 * @param {string} missing
 * @param {() => Promise<void>} body
 */
export function check(name, missing, body) {
  test(name, { skip: missing || false }, async () => {
    counts.failed++;
    await body();
    counts.failed--;
    counts.passed++;
  });
  if (missing) counts.skipped++;
}
process.on('exit', () => console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`));

/** @param {string} path @param {object} options @param {(d: any) => Promise<void>} use */
export async function withModel(path, options, use) {
  const doppler = await Doppler.load(path, options);
  try {
    await use(doppler);
  } finally {
    await doppler.unload();
  }
}

/** @param {any} doppler @param {object} [options] @returns {Promise<number[]>} */
export const greedy = async (doppler, options) =>
  (await doppler.complete({ ...kGreedy, prompt: [1, 2, 3], max_tokens: 24, batch: 2, ...options })).tokens;

try {
  await (await Doppler.load(smallest, kExact)).unload();
} catch (error) {
  if (/** @type {any} */ (error).kind !== 'device') throw error;
  console.log(`skipped: ${/** @type {Error} */ (error).message}`);
  process.exit(kNoDevice);
}
