// Less common fields of requests and load(), in Node: several answers, log-probabilities, ends, hashes, refusals.
// By ctest:
//   GOLDEN_DIR   the unpacked tests/data/families_llama: its smallest model
// Exit status 77: there is no WebGPU device.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { Doppler } from '../../web/node.mjs';
import { ProgressMeter } from '../../web/progress.mjs';
import { Sha256 } from '../../web/sha256.mjs';
import { Steps } from '../../web/steps.mjs';
import { News } from '../../web/news.mjs';

const kNoDevice = 77;
if (!(await Doppler.probe()).available) process.exit(kNoDevice);
const model = join(process.env.GOLDEN_DIR ?? '', 'llama');
const kExact = { lane: 'exact', ctx: 64, chunk: 16 };
const kRequest = { prompt: [1, 2, 3], temperature: 0, max_tokens: 4, ignore_eos: true };
const doppler = await Doppler.load(model, kExact);
after(() => doppler.unload());

test('several answers are choices of one response, each with its own seed', async () => {
  const { choices, usage } = await doppler.complete({ ...kRequest, n: 3, temperature: 1, seed: 5 });
  assert.deepEqual(choices.map(({ index }) => index), [0, 1, 2]);
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [3, 12]);
  const second = await doppler.complete({ ...kRequest, temperature: 1, seed: 6 });
  assert.equal(choices[1].text, second.choices[0].text);
  /** @type {string[]} */ const streamed = ['', '', ''];
  let last;
  for await (last of await doppler.complete({ ...kRequest, n: 3, temperature: 1, seed: 5, stream: true, stream_options: { include_usage: true } })) {
    for (const { index, text } of last.choices) streamed[index] += text;
  }
  assert.deepEqual(streamed, choices.map(({ text }) => text));
  assert.deepEqual([last?.choices, last?.usage?.completion_tokens], [[], 12]);
  await assert.rejects(doppler.complete({ ...kRequest, n: 0 }), { kind: 'invalid-input', message: /"n": 0/ });
  await assert.rejects(doppler.newSession().complete({ ...kRequest, n: 2 }), { kind: 'invalid-input', message: /fork/ });
});

test('log-probabilities: of each token, and of the best ones; the greedy token is the best', async () => {
  const { choices: [{ logprobs }], tokens } = await doppler.complete({ ...kRequest, logprobs: 3 });
  assert.equal(logprobs?.token_logprobs.length, tokens.length);
  for (const [i, value] of (logprobs?.token_logprobs ?? []).entries()) {
    assert.ok(value <= 0);
    assert.ok(Object.values(logprobs?.top_logprobs[i] ?? {}).every((other) => other <= value + 1e-6));
  }
  let last;
  for await (last of await doppler.complete({ ...kRequest, logprobs: 1, stream: true }));
  assert.deepEqual(last?.choices[0].logprobs?.token_logprobs, logprobs?.token_logprobs);
});

test('an abort rejects at once; an answer that is ended gets few more tokens', async () => {
  const controller = new AbortController();
  const asked = doppler.complete({ ...kRequest, max_tokens: 60, signal: controller.signal });
  const begun = performance.now();
  controller.abort();
  await assert.rejects(asked, { kind: 'cancelled' });
  assert.ok(performance.now() - begun < 50);
  const stream = await doppler.complete({ ...kRequest, max_tokens: 60, stream: true });
  let count = 0, atEnd = 0;
  for await (const { tokens } of stream) {
    count += tokens.length;
    if (atEnd > 0) continue;
    atEnd = count;
    stream.cancel();
  }
  assert.ok(count < 60, `${count}`);
});

test('submits have as many steps as take a tenth of a second', () => {
  const steps = new Steps();
  const of = (speed) => {
    steps.note({ generated_tokens: 9, decode_tokens_per_second: speed });
    return steps.ofSubmit();
  };
  assert.deepEqual([steps.ofSubmit(), of(3), of(50), of(900)], [4, 1, 5, 16]);
});

test('what was told of an answer is not told again by the one that goes on with it', () => {
  const news = new News(5, true);
  assert.deepEqual(news.of('[["text","abc"],["call","f"],["arguments","12"]]').piece.events, [['arguments', '2']]);
  assert.deepEqual(new News(2, false).of('abc').piece, { text: 'c' });
});

test('unknown load options are refused by name; a file must have the hash that was given', async () => {
  await assert.rejects(Doppler.load(model, /** @type {any} */ ({ context: 1 })), { kind: 'unsupported', message: /"context" is not known; known are: adapterRank, adapterSlots, adapters, cache, / });
  const hashOf = (name) => createHash('sha256').update(readFileSync(join(model, name))).digest();
  const names = ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json', 'generation_config.json'];
  const integrity = Object.fromEntries(names.flatMap((name) => {
    try {
      return [[name, `sha256-${hashOf(name).toString('base64')}`]];
    } catch {
      return [];
    }
  }));
  await (await Doppler.load(model, { ...kExact, integrity })).unload();
  await assert.rejects(Doppler.load(model, { ...kExact, integrity: { ...integrity, 'model.safetensors': '0'.repeat(64) } }), { kind: 'integrity' });
  await assert.rejects(Doppler.load(model, { ...kExact, integrity: { 'config.json': integrity['config.json'] } }), { kind: 'invalid-input', message: /no hash of/ });
});

test('how long the rest takes is said when the rate has settled, not by the first bytes', () => {
  /** @type {any[]} */ const told = [];
  const meter = new ProgressMeter((progress) => told.push(progress));
  const { now } = performance;
  try {
    for (const seconds of [0, 0.5, 2, 3]) {
      performance.now = () => 1e6 + seconds * 1000;
      meter.update('weights', 65536 + seconds * 1e7, 8e8);
    }
  } finally {
    performance.now = now;
  }
  assert.deepEqual(told.map(({ secondsLeft }) => secondsLeft === null), [true, true, false, false]);
  assert.ok(Math.abs(told.at(-1).secondsLeft - 77) < 1, told.at(-1).secondsLeft);
});

test('without an adapter Node says what Node lacks', async () => {
  const gpu = { requestAdapter: async () => null };
  await assert.rejects(Doppler.load(model, { ...kExact, device: { gpu } }), ({ message }) => /npm package webgpu found no adapter/.test(message) && !/browser/.test(message));
  assert.match((await Doppler.probe({ device: { gpu } })).reason, /npm package webgpu/);
});

test('SHA-256 piece by piece', () => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => (i * 7) % 251);
  for (const cuts of [[0], [1, 63, 64, 65, 200], [55, 56, 119, 120]]) {
    const hash = new Sha256();
    let from = 0;
    for (const to of [...cuts, bytes.length]) {
      hash.update(bytes.subarray(from, to));
      from = to;
    }
    assert.equal(hash.digest(), createHash('sha256').update(bytes).digest('hex'));
  }
});
