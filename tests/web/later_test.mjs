// The second module (web/core_module.mjs) is read when it is first needed and not before. By ctest:
//   DOPPLER_WASM  the first module, the second beside it; DOPPLER_MODEL the default model
// Exit status 77: there is no WebGPU device, or the module was built whole.
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { after } from 'node:test';
import { CoreModule, kLaterName } from '../../web/core_module.mjs';
import { Doppler } from '../../web/node.mjs';
import { spiedGpu } from './spied_gpu.mjs';

const kSkipped = 77;
const { DOPPLER_WASM = '', DOPPLER_MODEL = '' } = process.env;
if (!(await Doppler.probe()).available || !CoreModule.isSplit(new WebAssembly.Module(readFileSync(DOPPLER_WASM)))) {
  console.log('skipped: there is no WebGPU device, or no wasm-split');
  process.exit(kSkipped);
}
const kLoad = { lane: 'portable', ctx: 64, chunk: 16 };
const kGreedy = { messages: [{ role: 'user', content: 'The fox' }], temperature: 0, max_tokens: 8 };
const kSessionRequest = { prompt: 'The fox', temperature: 0, max_tokens: 4 };

const folder = mkdtempSync(join(tmpdir(), 'doppler-later-'));
const later = join(folder, kLaterName);
copyFileSync(DOPPLER_WASM, join(folder, 'doppler_core.wasm'));
process.env.DOPPLER_WASM = join(folder, 'doppler_core.wasm');
after(() => rmSync(folder, { recursive: true }));

let compiled = 0; // second modules: those that are compiled at once
const { Module } = WebAssembly;
WebAssembly.Module = class extends Module {
  constructor(bytes) {
    super(bytes);
    compiled++;
  }
};

const text = async (doppler, request = {}) =>
  (await doppler.chat.completions.create({ ...kGreedy, ...request })).choices[0].message.content;

/** Text of a session, saved, restored and continued: engine/session_file.cpp is in the second module. */
async function restored(doppler) {
  const session = doppler.newSession();
  const other = doppler.newSession();
  await session.complete(kSessionRequest);
  await other.restore(await session.save());
  const [wanted, found] = [await session.complete(kSessionRequest), await other.complete(kSessionRequest)];
  assert.deepEqual(found.tokens, wanted.tokens);
}

test('a second module that is missing, cut off or of another build is named in a sentence', () => {
  const first = new Module(readFileSync(DOPPLER_WASM));
  const missing = () => readFileSync(later);
  for (const [read, message] of [[missing, /^doppler_core_later\.wasm, which this needs, could not be loaded: ENOENT/],
    [() => Buffer.from('<html>'), /^doppler_core_later\.wasm is no WebAssembly/],
    [() => Buffer.from('\0asm\x01\0\0\0'), /^doppler_core_later\.wasm is of another build than doppler_core\.wasm\.$/]]) {
    assert.throws(() => new CoreModule(first, read).later(), { kind: 'io', message });
  }
});

test('chats need no second module; what needs it loads it once, over a lost device too', async () => {
  /** @type {any[]} */ const devices = [];
  const gpu = await spiedGpu(await Doppler.gpu(), (device) => devices.push(device));
  const doppler = await Doppler.load(DOPPLER_MODEL, { ...kLoad, device: { gpu } });
  compiled = 0;
  const wanted = await text(doppler);
  let streamed = '';
  const stream = await doppler.chat.completions.create({ ...kGreedy, stream: true });
  for await (const { choices: [{ delta }] } of stream) streamed += delta.content ?? '';
  assert.equal(streamed, wanted);
  const [word] = wanted.trim().split(' ');
  assert.ok(!(await text(doppler, { stop: [word] })).includes(word));
  await text(doppler, { temperature: 0.8, top_p: 0.9, top_k: 20, min_p: 0.05, seed: 1 });
  assert.equal(compiled, 0);

  await assert.rejects(restored(doppler), { kind: 'io', message: /could not be loaded/ });
  assert.equal(await text(doppler), wanted); // of a new instance
  copyFileSync(join(dirname(DOPPLER_WASM), kLaterName), later);
  await restored(doppler);
  assert.equal(compiled, 1);
  assert.equal(await text(doppler), wanted);
  devices.at(-1).destroy();
  await restored(doppler);
  assert.deepEqual([compiled, devices.length], [1, 3]);
  await doppler.unload();
});
