// Models that see in Node, against the greedy tokens of Hugging Face transformers (float32): folders, and GGUF with the
// tower in a file of its own. By ctest:
//   DOPPLER_WASM  the module; VISION_DIR, PAN_AND_SCAN_DIR and IMAGES_DIR: the unpacked tests/data/vision,
//   vision_pan_and_scan and images
// Exit status 77: there is no WebGPU device.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { Doppler } from '../../web/node.mjs';
import { readIntegers, readPng } from './references.mjs';

const kSkipped = 77;
const { VISION_DIR = '', PAN_AND_SCAN_DIR = '', IMAGES_DIR = '' } = process.env;
if (!(await Doppler.probe()).available) {
  console.log('skipped: there is no WebGPU device');
  process.exit(kSkipped);
}
const kLoad = { lane: 'exact', kv: /** @type {const} */ ('f32'), ctx: 192, chunk: 128, draft: /** @type {const} */ ('off') };
const kAnswer = { temperature: 0, max_tokens: 12, ignore_eos: true };
const picture = (name) => readPng(readFileSync(join(IMAGES_DIR, 'images', name)));

/** The prompts of a case, with pixels for names. @param {string} folder */
function prompts(folder) {
  const shown = (part) => (part.type === 'image' ? { type: 'image', image: picture(part.image) } : part);
  const rows = Object.entries(JSON.parse(readFileSync(join(folder, 'prompts.json'), 'utf8')));
  return rows.map(([name, { messages }]) => ({ name,
    messages: messages.map((message) => ({ ...message, content: Array.isArray(message.content) ? message.content.map(shown) : message.content })) }));
}

for (const [model, images] of [['qwen3_vl', true], ['gemma3', true], ['qwen2_5_vl/gguf/text.gguf', 'mmproj.gguf']]) {
  const [name] = model.split('/');
  const folder = join(VISION_DIR, name);
  test(`${model} writes the reference's tokens, and a second question evaluates one token`, async () => {
    const doppler = await Doppler.load(join(VISION_DIR, model), { ...kLoad, images });
    assert.equal(doppler.info.readsImages, true);
    for (const { name: prompt, messages } of prompts(folder)) {
      const wanted = readIntegers(join(folder, 'refs.safetensors'), `${prompt}.greedy_tokens`);
      const first = await doppler.chat.completions.create({ messages, ...kAnswer });
      assert.deepEqual(first.tokens, wanted, prompt);
      const again = await doppler.chat.completions.create({ messages, ...kAnswer });
      assert.deepEqual(again.tokens, wanted, `${prompt}, again`);
      assert.equal(again.usage.prompt_tokens_details.cached_tokens, again.usage.prompt_tokens - 1, prompt);
    }
    await doppler.unload();
  });
}

const kCutter = join(PAN_AND_SCAN_DIR, 'gemma3_pan_and_scan');
const withDetail = (messages, detail) => messages.map((message) => ({ ...message, content: message.content.map((part) => (part.type === 'image' ? { ...part, detail } : part)) }));

test('pan and scan has the reference\'s tokens, and detail goes before it', async () => {
  const [cutting, whole] = [await Doppler.load(kCutter, { ...kLoad, images: true, panAndScan: true }), await Doppler.load(kCutter, { ...kLoad, images: true })];
  for (const { name, messages } of prompts(kCutter)) {
    const wanted = readIntegers(join(kCutter, 'refs.safetensors'), `${name}.greedy_tokens`);
    const counts = [];
    for (const [doppler, detail] of /** @type {const} */ ([[cutting, undefined], [whole, 'high'], [cutting, 'low'], [whole, undefined]])) {
      const { tokens, usage } = await doppler.chat.completions.create({ messages: withDetail(messages, detail), ...kAnswer });
      if (counts.length < 2) assert.deepEqual(tokens, wanted, name);
      counts.push(usage.prompt_tokens);
    }
    assert.equal(counts[0], counts[1], name);
    assert.equal(counts[2], counts[3], name);
    assert.equal(counts[0] > counts[2], name !== 'text', name);
  }
  await cutting.unload();
  await whole.unload();
  await assert.rejects(Doppler.load(join(VISION_DIR, 'qwen3_vl'), { ...kLoad, images: true, panAndScan: true }),
    { kind: 'unsupported', message: /"qwen3_vl" have no pan and scan/ });
});

test('pictures that cannot be read are refused in a sentence', async () => {
  const ask = (doppler, image) => doppler.chat.completions.create({ messages: [{ role: 'user', content: [image] }], max_tokens: 1 });
  const image = { type: 'image', image: picture('a.png') };
  const blind = await Doppler.load(join(VISION_DIR, 'qwen3_vl'), kLoad);
  await assert.rejects(ask(blind, image), { kind: 'unsupported', message: /loaded without the option images: load\(\.\.\., \{images: true\}\)/ });
  await blind.unload();
  const seeing = await Doppler.load(join(VISION_DIR, 'qwen3_vl'), { ...kLoad, images: true });
  await assert.rejects(ask(seeing, { type: 'image_url', image_url: 'data:image/png;base64,AAAA' }), { kind: 'unsupported', message: /Node decodes no picture files/ });
  await assert.rejects(ask(seeing, { type: 'image', image: { width: 4, height: 4, data: new Uint8Array(5) } }),
    { kind: 'invalid-input', message: /A picture of 4 x 4 pixels has 5 bytes/ });
  await assert.rejects(seeing.newSession().chat.completions.create({ messages: [{ role: 'user', content: [{ type: 'image' }] }] }), { kind: 'unsupported' });
  await seeing.unload();
});
