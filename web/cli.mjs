#!/usr/bin/env node
// node web/cli.mjs run --model FILE [--tokens 1,2,3 | PROMPT]: the `run` verb of the native program, for tests and a
// first look. The flags have the native names.
import { parseArgs } from 'node:util';
import { load } from './node.mjs';

const kUsage = `usage: node web/cli.mjs run --model FILE [--lane L] [--kv f16|f32] [--ctx N] [--tokens 1,2,3 | PROMPT]
  [-n N] [--temp T] [--top-k K] [--top-p P] [--min-p P] [--seed S] [--stop TEXT] [--ignore-eos] [--batch N] [--raw]
  [--json]`;

const kOptions = /** @type {const} */ ({
  model: { type: 'string' }, lane: { type: 'string' }, kv: { type: 'string' }, ctx: { type: 'string' },
  tokens: { type: 'string' }, 'max-tokens': { type: 'string', short: 'n' }, temp: { type: 'string' },
  'top-k': { type: 'string' }, 'top-p': { type: 'string' }, 'min-p': { type: 'string' }, seed: { type: 'string' },
  stop: { type: 'string', multiple: true }, 'ignore-eos': { type: 'boolean' }, batch: { type: 'string' },
  raw: { type: 'boolean' }, json: { type: 'boolean' },
});

/** @param {string | undefined} text @param {string} flag */
function number(text, flag) {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw new Error(`Flag --${flag} was given "${text}"; it takes a number.`);
  return value;
}

async function run() {
  const { values: v, positionals } = parseArgs({ options: kOptions, allowPositionals: true });
  const [verb, ...words] = positionals;
  if (verb !== 'run' || !v.model || (!v.tokens && words.length === 0)) throw new Error(kUsage);
  const doppler = await load(v.model, { lane: v.lane, kv: v.kv, ctxLen: number(v.ctx, 'ctx') });
  const text = words.join(' ');
  const chat = doppler.info.hasChatTemplate && !v.raw;
  const prompt = v.tokens ? v.tokens.split(',').map((id) => number(id, 'tokens') ?? 0)
    : chat ? [{ role: 'user', content: text }] : text;
  const answer = await doppler.generate(prompt, {
    maxTokens: number(v['max-tokens'], 'max-tokens'), temperature: number(v.temp, 'temp'), topK: number(v['top-k'], 'top-k'),
    topP: number(v['top-p'], 'top-p'), minP: number(v['min-p'], 'min-p'), seed: number(v.seed, 'seed'), stop: v.stop,
    ignoreEos: v['ignore-eos'], batch: number(v.batch, 'batch'),
    onText: v.json ? undefined : (piece) => process.stdout.write(piece),
  });
  if (v.json) {
    process.stdout.write(`${JSON.stringify(answer, null, 2)}\n`);
  } else {
    const t = answer.timings;
    process.stdout.write('\n');
    process.stderr.write(`TTFT ${t.ttft_seconds.toFixed(3)} s, decode ${t.decode_tokens_per_second.toFixed(1)} tok/s ` +
      `(${t.generated_tokens} tokens), ${answer.device.adapter} (${answer.device.provider})\n`);
  }
  doppler.free();
}

try {
  await run();
} catch (error) {
  process.stderr.write(`doppler: ${/** @type {Error} */ (error).message}\n`);
  process.exitCode = 1;
}
