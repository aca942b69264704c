// The package in headless Chromium, on its software adapter: what Node cannot show. By ctest:
//   GOLDEN_DIR       the unpacked tests/data/families_llama
//   DOPPLER_MODEL    the default model; DOPPLER_NATIVE the native program, whose tokens are compared
//   DOPPLER_WASM     the module, DOPPLER_CHROMIUM the browser
// Exit status 77: there is no WebGPU adapter. Read next: page_server.mjs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from '../../web/node_modules/playwright-core/index.mjs';
import { PageServer } from './page_server.mjs';
import { readIntegers } from './references.mjs';

const kNoDevice = 77;
const kFlags = ['--no-sandbox', '--enable-unsafe-webgpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const { GOLDEN_DIR = '', DOPPLER_MODEL = '', DOPPLER_NATIVE = '', DOPPLER_WASM = '', DOPPLER_CHROMIUM } = process.env;
const kPiece = 8 << 20; // piece_store.mjs
const kStory = '/story/storyteller.gguf';
const kStoryPieces = [`${kStory} 0-${kPiece - 1}`, `${kStory} ${kPiece}-15548927`];
const kPrompt = 'The fox and the crow';
const kTokens = 8;

const server = new PageServer({ package: fileURLToPath(new URL('../../web', import.meta.url)), wasm: DOPPLER_WASM,
  models: { story: dirname(DOPPLER_MODEL), llama: join(GOLDEN_DIR, 'llama') } });
const address = await server.start();
const browser = await chromium.launch({ executablePath: DOPPLER_CHROMIUM, args: kFlags });
/** @type {import('playwright-core').BrowserContext} */ let context;
const counts = { passed: 0, failed: 0, skipped: 0 };

async function openPage() {
  const page = await context.newPage();
  page.on('console', (message) => message.type() === 'error' && console.log(`page: ${message.text()}`));
  await page.goto(address);
  await page.waitForFunction(() => globalThis.Doppler);
  return page;
}

/** A new context has an empty storage. @param {string} name @param {(page: any) => Promise<void>} body */
function check(name, body) {
  test(name, async () => {
    counts.failed++;
    context = await browser.newContext();
    server.ranges = [];
    await body(await openPage());
    await context.close();
    counts.failed--;
    counts.passed++;
  });
}

/** Loads the default model in the page and answers with greedy tokens. */
const story = (page, options = {}) => page.evaluate(async ([source, prompt, max_tokens, given]) => {
  const doppler = await Doppler.load(source, { lane: 'exact', ctx: 64, chunk: 16, ...given });
  const { tokens } = await doppler.complete({ prompt, max_tokens, temperature: 0, batch: 2 });
  const [cached] = await Doppler.cache.list();
  await doppler.unload();
  return { tokens, cached };
}, [kStory, kPrompt, kTokens, options]);

const nativeTokens = JSON.parse(execFileSync(DOPPLER_NATIVE, ['run', '--model', DOPPLER_MODEL, '--lane', 'exact', '--raw',
  '--json', '--temp', '0', '-n', String(kTokens), kPrompt], { encoding: 'utf8' })).tokens;

{
  context = await browser.newContext();
  const page = await openPage();
  const device = await page.evaluate(() => Doppler.probe());
  await context.close();
  if (!device.available) {
    console.log(`skipped: ${device.reason}`);
    await browser.close();
    process.exit(kNoDevice);
  }
  console.log(`adapter: ${device.adapter}, features: ${device.features.join(' ')}`);
}

after(async () => {
  await browser.close();
  server.stop();
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
});

check('a folder of safetensors: the greedy tokens are the reference\'s, from the network, a File and a lost device', async (page) => {
  const references = join(GOLDEN_DIR, 'llama', 'refs.safetensors');
  const wanted = readIntegers(references, 'greedy_tokens');
  const answers = await page.evaluate(async ([prompt, max_tokens]) => {
    const options = { lane: 'exact', ctx: 64, chunk: 64 };
    const request = { prompt, max_tokens, temperature: 0, ignore_eos: true, batch: 2 };
    const inWorker = await Doppler.load('/llama/', options);
    const first = await inWorker.complete(request);
    await inWorker.unload();
    const files = [];
    for (const name of ['config.json', 'model.safetensors']) {
      files.push(new File([await (await fetch(`/llama/${name}`)).blob()], name));
    }
    const { requestDevice } = GPUAdapter.prototype;
    let device;
    GPUAdapter.prototype.requestDevice = async function (wanted) {
      return (device = await requestDevice.call(this, wanted));
    };
    const onPage = await Doppler.load(files, { ...options, workerUrl: false });
    let isLost = false;
    onPage.addEventListener('restored', () => (isLost = true));
    const last = [];
    for await (const { tokens } of await onPage.complete({ ...request, stream: true })) {
      if (last.length === 0) device.destroy();
      last.push(...tokens);
    }
    const memory = await onPage.memory();
    await onPage.unload();
    return { first: first.tokens, last, isLost, memory };
  }, [readIntegers(references, 'prompt_a'), wanted.length]);
  assert.deepEqual(answers.first, wanted);
  assert.deepEqual(answers.last, wanted);
  assert.ok(answers.isLost);
  assert.ok(answers.memory.gpuBytes > 0 && answers.memory.wasmBytes < 64 << 20, JSON.stringify(answers.memory));
});

check('a download that a closed tab cut off is resumed by piece; then the model loads offline', async (page) => {
  let release = () => {};
  const held = new Promise((resolve) => (release = () => resolve(undefined)));
  server.gate = async (_, first) => (first >= kPiece ? held : undefined);
  const loading = page.evaluate((source) => void Doppler.load(source, { ctx: 64 }).catch(() => {}), kStory);
  await loading;
  while (!(await page.evaluate(async () => (await Doppler.cache.list())[0]?.cachedBytes))) await page.waitForTimeout(50);
  await page.close();
  server.gate = async () => {};
  release();
  server.ranges = [];
  const resumed = await story(await openPage());
  assert.deepEqual(resumed.tokens, nativeTokens);
  assert.deepEqual(server.ranges, [kStoryPieces[1]]);
  assert.ok(resumed.cached.complete);
  assert.equal(resumed.cached.cachedBytes, resumed.cached.bytes);
  server.isCutOff = true;
  try {
    assert.deepEqual((await story(await openPage())).tokens, nativeTokens);
  } finally {
    server.isCutOff = false;
  }
  // The cached piece is not what was written: it is downloaded again.
  server.ranges = [];
  const last = await openPage();
  await last.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('doppler');
    for await (const model of folder.values()) for await (const file of model.values()) {
      if (file.kind !== 'directory' || file.name !== 'storyteller.gguf') continue;
      const piece = await (await file.getFileHandle('0')).createWritable({ keepExistingData: true });
      await piece.write({ type: 'write', position: 1000, data: new Uint8Array(8) });
      await piece.close();
    }
  });
  assert.deepEqual((await story(last)).tokens, nativeTokens);
  assert.deepEqual(server.ranges, [kStoryPieces[0]]);
});

check('two tabs that load one model download each piece once', async (page) => {
  const answers = await Promise.all([story(page), story(await openPage())]);
  for (const { tokens } of answers) assert.deepEqual(tokens, nativeTokens);
  assert.deepEqual(server.ranges.toSorted(), kStoryPieces.toSorted());
});

check('abort, a full storage and a wrong address are errors of their kind', async (page) => {
  const kinds = await page.evaluate(async (source) => {
    const kindOf = (loading) => loading.then(() => 'none', ({ kind, message }) => `${kind}: ${message}`);
    const controller = new AbortController();
    const aborted = kindOf(Doppler.load(source, { signal: controller.signal, progress: () => controller.abort() }));
    const kinds = [await aborted, await kindOf(Doppler.load('/story/none.gguf'))];
    await Doppler.cache.clear();
    navigator.storage.estimate = async () => ({ usage: 0, quota: 20e6 });
    kinds.push(await kindOf(Doppler.load(source, { workerUrl: false })));
    return [...kinds, (await Doppler.cache.list()).length];
  }, kStory);
  assert.match(kinds[0], /^cancelled: /);
  assert.match(kinds[1], /^io: There is no file/);
  assert.match(kinds[2], /^quota: .*storyteller.gguf needs 16 MB .* 4 MB of 20 MB are free/);
  assert.equal(kinds[3], 1);
});
