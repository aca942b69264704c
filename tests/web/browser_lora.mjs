// Adapters (LoRA) in a browser: those of the fixtures, by address and by File, through the page's worker.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Lora } from './lora_cases.mjs';

/**
 * Answers of one model have different adapters.
 * @param {any} page @param {string} folder that the page has at /lora/
 */
export async function checkAdapters(page, folder) {
  const lora = new Lora(folder);
  const dora = ['adapter_config.json', 'adapter_model.safetensors'].map((name) => [name, readFileSync(join(lora.pathOf('dora'), name)).toString('base64')]);
  await page.evaluate(async ([request, files]) => {
    const load = { lane: 'exact', kv: 'f32', ctx: 64, chunk: 64, workerUrl: '/fragile_worker.mjs' };
    const address = (path) => new URL(path, location.href);
    const fileOf = ([name, text]) => new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name);
    globalThis.doppler = await Doppler.load('/lora/', { ...load, adapterRank: 12, adapters: [{ name: 'qv_r4', source: address('/lora/adapters/qv_r4/') }] });
    await doppler.loadAdapter('all_r8', address('/lora/adapters/all_r8/adapter_config.json'));
    await doppler.loadAdapter('dora', files.map(fileOf));
    globalThis.answered = async (adapters) => (await doppler.complete({ ...request, adapters })).tokens;
  }, [lora.request, dora]);
  /** @param {any[]} [adapters] @returns {Promise<number[]>} */
  const answered = (adapters) => page.evaluate((list) => answered(list), adapters);
  const turns = ['dora', 'qv_r4', 'base', 'all_r8', 'dora'];
  for (const name of turns) assert.deepEqual(await answered(name === 'base' ? [] : [{ name }]), lora.tokens(name), name);
  assert.deepEqual(await answered(lora.two), lora.tokens('two'));

  // Another worker has the same adapters.
  const { streamed, events } = await page.evaluate(async (request) => {
    await doppler.unloadAdapter('qv_r4');
    const [streamed, events] = [[], []];
    for (const name of ['workerlost', 'restored', 'warning']) doppler.addEventListener(name, () => events.push(name));
    for await (const chunk of await doppler.complete({ ...request, batch: 1, stream: true, adapters: [{ name: 'dora' }] })) {
      if (streamed.length === 0) new BroadcastChannel('ending').postMessage('');
      streamed.push(...chunk.tokens);
    }
    return { streamed, events };
  }, lora.request);
  assert.deepEqual(streamed, lora.tokens('dora'));
  assert.deepEqual(events, ['workerlost', 'restored']);
  assert.deepEqual(await page.evaluate(async () => (await doppler.adapters()).map(({ name }) => name)), ['all_r8', 'dora']);
  assert.deepEqual(await answered(), lora.tokens('base'));
  await page.evaluate(() => doppler.unload());
}
