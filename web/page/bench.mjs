// Speed of the loaded model in this browser: ppN (prefill of N tokens) and tgN (decode of N) behind some depths of context,
// with the names and the JSON of `doppler bench` (docs/howto/bench.md). No DOM.

/** @typedef {{prompt: number, generate: number, depths: number[], repetitions: number}} Workload */

const kSeed = 20261122; // any: the tokens mean nothing, they only must not repeat
const kWarmups = 1;

/** "0, 256,512" -> [0, 256, 512]. @param {string} text @param {number} ctx @returns {number[]} */
export function parseDepths(text, ctx) {
  const depths = text.split(',').map((part) => Number(part.trim()));
  const wrong = depths.find((depth) => !Number.isInteger(depth) || depth < 0 || depth >= ctx);
  if (wrong !== undefined) throw new Error(`A depth must be a whole number from 0 to ${ctx - 1}, the context of the model; given was "${text}".`);
  return [...new Set(depths)].sort((a, b) => a - b);
}

/** Token ids without a pattern. @param {number} count @param {number} vocabulary @param {number} seed @returns {number[]} */
export function someTokens(count, vocabulary, seed) {
  let state = seed >>> 0;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // the generator of Numerical Recipes
    return Math.floor((state / 2 ** 32) * vocabulary);
  });
}

/** @param {number[]} samples */
export function statistics(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const mean = samples.reduce((sum, value) => sum + value, 0) / samples.length;
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  const squares = samples.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const stddev = samples.length > 1 ? Math.sqrt(squares / (samples.length - 1)) : 0;
  return { median, mean, stddev, min: sorted[0], max: sorted.at(-1), samples };
}

/** "pp128 @ d256". @param {{prompt: number, generate: number, depth: number}} row */
export function testName({ prompt, generate, depth }) {
  return `${prompt ? `pp${prompt}` : `tg${generate}`}${depth ? ` @ d${depth}` : ''}`;
}

/**
 * Runs the tests, one row after the other.
 * @param {import('../doppler.d.ts').Doppler} model @param {Workload} workload @param {AbortSignal} signal
 * @param {(row: any, done: number, total: number) => void} onRow
 */
export async function runBench(model, { prompt, generate, depths, repetitions }, signal, onRow) {
  const kinds = [...(prompt ? [{ prompt, generate: 0 }] : []), ...(generate ? [{ prompt: 0, generate }] : [])];
  const tests = depths.flatMap((depth) => kinds.map((kind) => ({ ...kind, depth })));
  const longest = Math.max(...depths) + Math.max(prompt, generate) + 1;
  if (longest > model.info.ctxLen) {
    throw new Error(`The tests need a context of ${longest} tokens; the model was loaded with ${model.info.ctxLen}.`);
  }
  const rows = [];
  for (const test of tests) {
    const samples = [];
    let ttft = 0;
    for (let turn = 0; turn < kWarmups + repetitions; ++turn) {
      const timings = await measure(model, test, kSeed + turn, signal);
      if (turn < kWarmups) continue;
      samples.push(test.prompt ? timings.prefill_tokens_per_second : timings.decode_tokens_per_second);
      ttft += timings.ttft_seconds / repetitions;
    }
    const row = { test: testName(test), ...test, tokens_per_second: statistics(samples), ttft_seconds: test.prompt ? ttft : 0 };
    rows.push(row);
    onRow(row, rows.length, tests.length);
  }
  return rows;
}

/** @param {import('../doppler.d.ts').Doppler} model @param {{prompt: number, generate: number, depth: number}} test
 * @param {number} seed @param {AbortSignal} signal */
async function measure(model, { prompt, generate, depth }, seed, signal) {
  const { vocabSize } = model.info;
  const session = model.newSession();
  const ask = (tokens, max_tokens) =>
    session.complete({ prompt: tokens, max_tokens, temperature: 0, ignore_eos: true, add_special: false, signal });
  const before = someTokens(depth, vocabSize, seed);
  if (!prompt) return (await ask(depth ? before : someTokens(1, vocabSize, seed), generate)).timings;
  // The session goes on with its text: what it holds is the depth, and only the new tokens are evaluated.
  if (depth) await ask(before, 1);
  return (await ask(someTokens(prompt, vocabSize, seed + depth + 1), 1)).timings;
}

/** The report as `doppler bench -o json` writes it. @param {any} model @param {any} device @param {any[]} tests
 * @param {Workload} workload @param {{name: string, kv: string, agent: string, now: Date}} run */
export function report(model, device, tests, workload, run) {
  const { info } = model;
  return {
    kind: 'bench',
    intent: 'calibrate',
    surface: 'browser',
    synthetic: info.synthetic,
    date: run.now.toISOString().replace(/\.\d+Z$/, 'Z'),
    device: {
      adapter: info.adapter, vendor: device.vendor, driver: run.agent, type: device.cpu ? 'CPU' : 'GPU', provider: info.provider, backend: 'webgpu',
    },
    model: { name: info.name || run.name, architecture: info.architecture, synthetic: info.synthetic, bytes: info.weightBytes },
    settings: { lane: info.lane, kv: run.kv, ctx_len: info.ctxLen, warmups: kWarmups, repetitions: workload.repetitions },
    load: { seconds: info.loadSeconds },
    memory: {
      weight_bytes: info.weightBytes, cache_bytes: info.cacheBytes, scratch_bytes: info.scratchBytes,
      total_bytes: info.weightBytes + info.cacheBytes + info.scratchBytes,
    },
    tests,
  };
}
