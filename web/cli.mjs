#!/usr/bin/env node
// node web/cli.mjs run --model FILE [--tokens 1,2,3 | PROMPT]: the `run` verb of the native program, for tests and a
// first look. The flags have the native names.
import { parseArgs } from 'node:util';
import { Doppler } from './node.mjs';

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
  const doppler = await Doppler.load(v.model, { lane: v.lane, kv: /** @type {any} */ (v.kv), ctx: number(v.ctx, 'ctx') });
  const text = words.join(' ');
  const sampling = {
    max_tokens: number(v['max-tokens'], 'max-tokens'), temperature: number(v.temp, 'temp'), top_k: number(v['top-k'], 'top-k'),
    top_p: number(v['top-p'], 'top-p'), min_p: number(v['min-p'], 'min-p'), seed: number(v.seed, 'seed'), stop: v.stop,
    ignore_eos: v['ignore-eos'], batch: number(v.batch, 'batch'),
  };
  const isChat = doppler.info.hasChatTemplate && !v.raw && !v.tokens;
  const prompt = v.tokens ? v.tokens.split(',').map((id) => number(id, 'tokens') ?? 0) : text;
  const chunks = await (isChat
    ? doppler.chat.completions.create({ ...sampling, messages: [{ role: 'user', content: text }], stream: true })
    : doppler.complete({ ...sampling, prompt, stream: true }));
  let answer = '';
  /** @type {number[]} */ const tokens = [];
  let last;
  for await (last of chunks) {
    tokens.push(...last.tokens);
    const [choice] = last.choices;
    const piece = choice.delta?.content ?? choice.text ?? '';
    answer += piece;
    if (!v.json) process.stdout.write(piece);
  }
  const { adapter, provider } = doppler.info;
  const { usage, timings } = last;
  if (v.json) {
    const shown = { text: answer, tokens, finish_reason: last.choices[0].finish_reason, usage, timings, device: { adapter, provider } };
    process.stdout.write(`${JSON.stringify(shown, null, 2)}\n`);
  } else {
    process.stdout.write('\n');
    process.stderr.write(`TTFT ${timings.ttft_seconds.toFixed(3)} s, decode ${timings.decode_tokens_per_second.toFixed(1)} tok/s ` +
      `(${usage.completion_tokens} tokens), ${adapter} (${provider})\n`);
  }
  await doppler.unload();
}

try {
  await run();
} catch (error) {
  process.stderr.write(`doppler: ${/** @type {Error} */ (error).message}\n`);
  process.exitCode = 1;
}
