// A model that sees in a page: pictures by address, as a file and as a bitmap, and one that cannot be decoded.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readIntegers } from './references.mjs';

/**
 * @param {any} page that has the package, the model at /sees/ and files at /pictures/
 * @param {string} folder of the model
 */
export async function checkPictures(page, folder) {
  const { messages: [{ content }] } = JSON.parse(readFileSync(join(folder, 'prompts.json'), 'utf8')).mid;
  const wanted = readIntegers(join(folder, 'refs.safetensors'), 'mid.greedy_tokens');
  const answers = await page.evaluate(async ({ content, count }) => {
    const doppler = await Doppler.load('/sees/', { images: true, lane: 'exact', kv: 'f32', ctx: 192, chunk: 128, draft: 'off' });
    const address = (name) => new URL(`/pictures/${name}`, location.href).href;
    const ask = async (picture) => {
      const parts = await Promise.all(content.map((part) => (part.type === 'image' ? picture(part.image) : part)));
      const request = { messages: [{ role: 'user', content: parts }], temperature: 0, max_tokens: count, ignore_eos: true };
      return (await doppler.chat.completions.create(request)).tokens;
    };
    const byAddress = await ask((name) => ({ type: 'image_url', image_url: { url: address(name) } }));
    const blob = async (name) => ({ type: 'image', image: await (await fetch(address(name))).blob() });
    const byFile = await ask(blob);
    const bitmap = await ask(async (name) => ({ type: 'image', image: await createImageBitmap((await blob(name)).image) }));
    const refused = await ask(() => ({ type: 'image', image: new Blob(['no picture'], { type: 'image/png' }) })).catch((error) => error.message);
    await doppler.unload();
    return { byAddress, byFile, bitmap, refused };
  }, { content, count: wanted.length });
  assert.deepEqual(answers, { byAddress: wanted, byFile: wanted, bitmap: wanted,
    refused: 'A picture of 10 bytes (image/png) cannot be decoded by this browser.' });
}
