// Speed of a loaded model: ppN (prefill of N tokens), tgN (decode of N) and both at some depths of context, with
// the names and the JSON of `doppler bench` (docs/howto/bench.md), which has this module measure browsers and Node. No
// DOM.

/** @typedef {{prompt: number, generate: number, depth: number}} Test both lengths: one after the other, as one test */
/** @typedef {{tests: Test[], repetitions: number, batch?: number}} Workload batch: decode steps of one submit */

const kSeed = 20261122; // any: the tokens mean nothing, they only must not repeat
const kWarmups = 1;
const kSteps = 16; // of a submit, as the native program measures

/** "0, 256,512" -> [0, 256, 512]. @param {string} text @param {number} ctx @returns {number[]} */
export function parseDepths(text, ctx) {
  const depths = text.split(',').map((part) => Number(part.trim()));
  const wrong = depths.find((depth) => !Number.isInteger(depth) || depth < 0 || depth >= ctx);
  if (wrong !== undefined) throw new Error(`A depth must be a whole number from 0 to ${ctx - 1}, the context of the model; given was "${text}".`);
  return [...new Set(depths)].sort((a, b) => a - b);
}

/**
 * Token ids without a pattern.
 * @param {number} count
 * @param {number} vocabulary
 * @param {number} seed
 * @returns {number[]}
 */
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

/**
 * At each depth a test of the prompt and one of the generation; 0 is no test.
 * @param {number} prompt @param {number} generate
 * @param {number[]} depths @returns {Test[]} */
export function makeTests(prompt, generate, depths) {
  const kinds = [...(prompt ? [{ prompt, generate: 0 }] : []), ...(generate ? [{ prompt: 0, generate }] : [])];
  return depths.flatMap((depth) => kinds.map((kind) => ({ ...kind, depth })));
}

/** "pp128 @ d256", "pp512+tg128". @param {Test} test */
export function testName({ prompt, generate, depth }) {
  const kinds = [...(prompt ? [`pp${prompt}`] : []), ...(generate ? [`tg${generate}`] : [])];
  return `${kinds.join('+')}${depth ? ` @ d${depth}` : ''}`;
}

/**
 * Runs the tests, one row after the other.
 * @param {import('../doppler.d.ts').Doppler} model @param {Workload} workload @param {AbortSignal} signal
 * @param {(row: any, done: number, total: number) => void} onRow
 */
export async function runBench(model, { tests, repetitions, batch = kSteps }, signal, onRow) {
  const longest = Math.max(...tests.map(({ prompt, generate, depth }) => depth + prompt + generate)) + 1;
  if (longest > model.info.ctxLen) {
    throw new Error(`The tests need a context of ${longest} tokens; the model was loaded with ${model.info.ctxLen}.`);
  }
  const rows = [];
  for (const test of tests) {
    const samples = [];
    const ttfts = [];
    /** @type {any} */ let before = null;
    /** @type {any} */ let after = null; // counters of the last repetition: all are alike
    for (let turn = 0; turn < kWarmups + repetitions; ++turn) {
      const measured = await measure(model, test, kSeed + turn, { signal, batch });
      before = measured.before ?? after;
      after = measured.counters;
      if (turn < kWarmups) continue;
      samples.push(rate(test, measured.timings));
      ttfts.push(measured.timings.ttft_seconds);
    }
    const row = {
      test: testName(test), ...test, tokens_per_second: statistics(samples), ttft_seconds: test.prompt ? statistics(ttfts).median : 0,
      ...perToken(after, before, test.prompt + test.generate),
    };
    rows.push(row);
    onRow(row, rows.length, tests.length);
  }
  return rows;
}

/** @param {Test} test @param {any} timings */
function rate({ prompt, generate }, timings) {
  if (!generate) return timings.prefill_tokens_per_second;
  if (!prompt) return timings.decode_tokens_per_second;
  return (prompt + generate) / (timings.ttft_seconds + timings.decode_seconds);
}

/**
 * @param {import('../doppler.d.ts').Counters} after
 * @param {import('../doppler.d.ts').Counters} before
 * @param {number} tokens
 */
function perToken(after, before, tokens) {
  return {
    submits_per_token: (after.submits - before.submits) / tokens,
    dispatches_per_token: (after.dispatches - before.dispatches) / tokens,
    readback_bytes_per_token: (after.readback_bytes - before.readback_bytes) / tokens,
    objects_created: after.objects_created_after_load - before.objects_created_after_load,
  };
}

/** before: the counters after the depth, if there is a depth. A test that only generates starts from one token.
 * @param {import('../doppler.d.ts').Doppler} model @param {Test} test @param {number} seed @param {any} options */
async function measure(model, { prompt, generate, depth }, seed, options) {
  const { vocabSize } = model.info;
  const session = model.newSession();
  const ask = (tokens, max_tokens) =>
    session.complete({ prompt: tokens, max_tokens, temperature: 0, ignore_eos: true, add_special: false, ...options });
  // The session goes on with its text: it holds the depth and the next token, which is evaluated first with the new
  // ones. So prompts are one shorter, or a prompt of a chunk would take two.
  const filled = depth ? await ask(someTokens(depth, vocabSize, seed), 1) : null;
  const fresh = filled && prompt > 1 ? prompt - 1 : prompt || 1;
  const { timings, counters } = await ask(someTokens(fresh, vocabSize, seed + depth + 1), generate || 1);
  return { timings, counters, before: filled?.counters };
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
