// The package in a headless browser: what Node cannot show. By ctest:
//   DOPPLER_CHROMIUM or DOPPLER_FIREFOX  the browser
//   DOPPLER_MODEL    the default model; DOPPLER_NATIVE the native program, whose tokens are compared
//   DOPPLER_WASM     the module; GOLDEN_DIR, VISION_DIR, IMAGES_DIR, LORA_DIR the unpacked tests/data/families_llama,
//                    vision, images, adapters
// Exit status 77: there is no browser, or none with a WebGPU adapter. Read next: page_server.mjs, firefox.mjs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from '../../web/node_modules/playwright-core/index.mjs';
import { checkAdapters } from './browser_lora.mjs';
import { checkPictures } from './browser_pictures.mjs';
import { launchFirefox } from './firefox.mjs';
import { kChromiumFlags, PageServer } from './page_server.mjs';

const kSkipped = 77;
const { DOPPLER_MODEL = '', DOPPLER_NATIVE = '', DOPPLER_WASM = '', DOPPLER_CHROMIUM, DOPPLER_FIREFOX, GOLDEN_DIR = '', VISION_DIR = '', IMAGES_DIR = '', LORA_DIR = '' } = process.env;
if (!DOPPLER_CHROMIUM && !DOPPLER_FIREFOX) {
  console.log('skipped: there is no Firefox; tools/setup firefox installs it');
  process.exit(kSkipped);
}
const kPiece = 8 << 20; // piece_store.mjs
const kStory = '/story/storyteller.gguf';
const kStoryPieces = [`${kStory} 0-${kPiece - 1}`, `${kStory} ${kPiece}-15548927`];
const kLane = 'portable'; // the fewest kernels, and what every browser runs

const server = new PageServer({ package: fileURLToPath(new URL('../../web', import.meta.url)), wasm: DOPPLER_WASM,
  models: { story: dirname(DOPPLER_MODEL), sees: join(VISION_DIR, 'qwen3_vl'), lora: join(LORA_DIR, 'llama'), pictures: join(IMAGES_DIR, 'images'),
    ...Object.fromEntries([...'abcd'].map((name) => [name, join(GOLDEN_DIR, 'llama')])) } });
const address = await server.start();
const browser = DOPPLER_FIREFOX ? await launchFirefox(DOPPLER_FIREFOX)
  : await chromium.launch({ executablePath: DOPPLER_CHROMIUM, args: kChromiumFlags });
/** @type {any} */ let context; // of Playwright, or of firefox.mjs
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
    server.modules = [];
    await body(await openPage());
    await context.close();
    counts.failed--;
    counts.passed++;
  });
}

/** Reads the default model in the page as the engine would, without a GPU; answers with its SHA-256. */
const readStory = (page) => page.evaluate(async (source) => {
  const { openSource } = await import('/sources.mjs');
  const access = await openSource(new URL(source, location.href).href, { warn: console.error });
  const file = await access.open(access.files.mainFile);
  const digest = await crypto.subtle.digest('SHA-256', await file.read(0, file.size));
  await access.finished();
  access.close();
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}, kStory);

const kGreedy = { prompt: 'The fox and the crow', max_tokens: 12, temperature: 0, batch: 2 };
const storyHash = createHash('sha256').update(readFileSync(DOPPLER_MODEL)).digest('hex');

{
  context = await browser.newContext();
  const page = await openPage();
  const device = await page.evaluate(() => Doppler.probe());
  await context.close();
  if (!device.available) {
    console.log(`skipped: ${device.reason}`);
    await browser.close();
    process.exit(kSkipped);
  }
  console.log(`${browser.version()}, adapter: ${device.adapter}, features: ${device.features.join(' ')}`);
}

after(async () => {
  await browser.close();
  server.stop();
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
});

check('a chat shows files of pictures', (page) => checkPictures(page, join(VISION_DIR, 'qwen3_vl')));

check('adapters by address and by File take turns on one model, and another worker has them too', (page) => checkAdapters(page, join(LORA_DIR, 'llama')));

check('the default model in a worker: tokens are the native program\'s, also over a lost device, an ended worker and without the network; a saved session loads the second module', async (page) => {
  const native = JSON.parse(execFileSync(DOPPLER_NATIVE, ['run', '--model', DOPPLER_MODEL, '--lane', kLane, '--raw', '--json',
    '--temp', '0', '-n', String(kGreedy.max_tokens), kGreedy.prompt], { encoding: 'utf8' }));
  await page.evaluate(async ([source, lane]) => {
    globalThis.phases = new Set();
    globalThis.doppler = await Doppler.load(source, { lane, ctx: 64, chunk: 16, workerUrl: '/fragile_worker.mjs',
      progress: ({ phase }) => phases.add(phase) });
  }, [kStory, kLane]);
  server.isCutOff = true; // the second device is filled from the browser's storage
  try {
    const answer = await page.evaluate(async (request) => {
      const events = [];
      for (const name of ['devicelost', 'workerlost', 'restored']) doppler.addEventListener(name, () => events.push(name));
      const { tokens } = await doppler.complete(request);
      const resumed = [];
      for await (const chunk of await doppler.complete({ ...request, stream: true })) {
        if (resumed.length === 0) new BroadcastChannel('fragile').postMessage('');
        resumed.push(...chunk.tokens);
      }
      const revived = [];
      let last;
      for await (last of await doppler.complete({ ...request, stream: true })) {
        if (revived.length === 0) new BroadcastChannel('ending').postMessage('');
        revived.push(...last.tokens);
      }
      const memory = await doppler.memory();
      const kernels = await doppler.kernels();
      const [{ complete }] = await Doppler.cache.list();
      return { tokens, resumed, revived, events, times: last.timings, memory, kernels, complete, phases: [...phases] };
    }, kGreedy);
    assert.deepEqual(new Set(server.modules), new Set(['/doppler_core.wasm']));
    await page.evaluate(async () => {
      const session = doppler.newSession();
      await session.complete({ prompt: 'The', max_tokens: 1 });
      await session.save();
      await doppler.unload();
    });
    assert.deepEqual(server.modules.filter((name) => name !== '/doppler_core.wasm'), ['/doppler_core_later.wasm']);
    assert.deepEqual(answer.tokens, native.tokens);
    assert.deepEqual(answer.resumed, native.tokens);
    assert.deepEqual(answer.revived, native.tokens);
    assert.deepEqual(answer.events, ['devicelost', 'restored', 'workerlost', 'restored']);
    assert.ok(answer.times.ttft_seconds > 0 && answer.times.decode_tokens_per_second > 0, JSON.stringify(answer.times));
    assert.deepEqual(answer.phases, ['download', 'compile']);
    assert.ok(answer.complete);
    assert.ok(answer.kernels.length > 0);
    assert.ok(answer.memory.gpuBytes > 0 && answer.memory.wasmBytes < 64 << 20, JSON.stringify(answer.memory));
  } finally {
    server.isCutOff = false;
  }
});

check('a download that a closed tab cut off is resumed by piece; then nothing is downloaded, unless a piece is damaged', async (page) => {
  const never = new Promise(() => {});
  server.gate = async (_, first) => (first >= kPiece ? never : undefined);
  readStory(page).catch(() => {}); // the tab is closed under it
  const other = await openPage();
  const cachedBytes = () => other.evaluate(async () => (await Doppler.cache.list())[0]?.cachedBytes ?? 0);
  while ((await cachedBytes()) < kPiece) await other.waitForTimeout(20);
  await page.close();
  server.gate = async () => {};
  server.ranges = [];
  assert.equal(await readStory(other), storyHash);
  assert.deepEqual(server.ranges, [kStoryPieces[1]]);
  server.isCutOff = true;
  assert.equal(await readStory(other), storyHash);
  server.isCutOff = false;
  server.ranges = [];
  await other.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('doppler');
    for await (const model of folder.values()) {
      const file = await model.getDirectoryHandle('storyteller.gguf');
      const piece = await (await file.getFileHandle('0')).createWritable({ keepExistingData: true });
      await piece.write({ type: 'write', position: 1000, data: new Uint8Array(8) });
      await piece.close();
    }
  });
  assert.equal(await readStory(other), storyHash);
  assert.deepEqual(server.ranges, [kStoryPieces[0]]);
});

check('two tabs that load one model download each piece once', async (page) => {
  const hashes = await Promise.all([readStory(page), readStory(await openPage())]);
  assert.deepEqual(hashes, [storyHash, storyHash]);
  assert.deepEqual(server.ranges.slice().sort(), kStoryPieces.slice().sort());
});

check('abort, a web page, another hash and a wrong address are errors of their kind, and leave nothing', async (page) => {
  const kinds = await page.evaluate(async (source) => {
    const kindOf = (loading) => loading.then(() => 'none', ({ kind, message }) => `${kind}: ${message}`);
    const controller = new AbortController();
    const aborted = kindOf(Doppler.load(source, { signal: controller.signal, progress: () => controller.abort() }));
    const kinds = [await aborted, await kindOf(Doppler.load('/story/none.gguf')), await kindOf(Doppler.load('/pages/model.gguf'))];
    await Doppler.cache.clear();
    kinds.push(await kindOf(Doppler.load(source, { integrity: '0'.repeat(64) })), await kindOf(Doppler.load('/zeros/a.gguf')));
    kinds.push(await kindOf(Doppler.load(source, { contextLength: 5 })), await kindOf(Doppler.inspect('/zeros/a.gguf')));
    return [...kinds, (await Doppler.cache.list()).length, (await Doppler.inspect(source)).bytes];
  }, kStory);
  assert.match(kinds[0], /^cancelled: /);
  assert.match(kinds[1], /^io: There is no file/);
  assert.match(kinds[2], /^io: .*model\.gguf is a web page/);
  assert.match(kinds[3], new RegExp(`^integrity: .*${storyHash}, not 0000`));
  assert.match(kinds[4], /^(invalid-input|unsupported): /);
  assert.match(kinds[5], /^unsupported: The load option "contextLength" is not known/);
  assert.match(kinds[6], /^invalid-input: .* is no model/);
  assert.deepEqual(kinds.slice(7), [0, 15548928]);
});

check('each byte is fetched once, also where pieces are read by turns and nothing can be kept', async (page) => {
  for (const isFull of [false, true]) {
    server.ranges = [];
    server.modules = [];
    await page.evaluate(async (isFull) => {
      const { createWritable } = FileSystemFileHandle.prototype;
      if (isFull) {
        FileSystemFileHandle.prototype.createWritable = async function (...given) {
          if (/^\d+$/.test(this.name)) throw new DOMException('The disk is full.', 'QuotaExceededError');
          return createWritable.apply(this, given);
        };
      }
      const { openSource } = await import('/sources.mjs');
      const access = await openSource(new URL(`/zeros/${isFull}.gguf`, location.href).href, { warn() {} });
      const file = await access.open(access.files.mainFile);
      const kWays = 12, kStep = 3 << 20;
      const ways = Array.from({ length: kWays }, (_, i) => [Math.floor((file.size * i) / kWays), Math.floor((file.size * (i + 1)) / kWays)]);
      while (ways.some(([at, end]) => at < end)) {
        await Promise.all(ways.map(async (way) => {
          const count = Math.min(kStep, way[1] - way[0]);
          if (count > 0) await file.read(way[0], count);
          way[0] += count;
        }));
      }
      access.close();
    }, isFull);
    const bytes = server.ranges.reduce((sum, range) => sum + 1 + eval(range.split(' ')[1].split('-').reverse().join('-')), 0);
    assert.equal(bytes, 100 << 20, isFull ? 'full' : 'kept');
  }
});

check('a file is read in few buffers, which are used again, from the network and from the storage', async (page) => {
  const found = await page.evaluate(async () => {
    const found = { wholes: 0, bytes: [0, 0] };
    let pass = 0;
    for (const { prototype } of [Response, Blob]) {
      const { arrayBuffer } = prototype;
      prototype.arrayBuffer = function () { // each time new memory, for the garbage collection
        found.wholes++;
        return arrayBuffer.call(this);
      };
    }
    globalThis.ArrayBuffer = class extends ArrayBuffer {
      constructor(bytes) {
        super(bytes);
        found.bytes[pass] += bytes;
      }
    };
    const { FileHost } = await import('/file_host.mjs');
    const { openSource } = await import('/sources.mjs');
    for (; pass < 2; pass++) {
      const access = await openSource(new URL('/zeros/few.gguf', location.href).href, { warn: console.error });
      const host = new FileHost(null, access);
      const opened = await new Promise((resolve) => {
        host.core = { text: () => 'few.gguf', answer: async (_, work) => resolve(JSON.parse(await work())) };
        host.imports().dp_file_open(0, 0, 0, 0);
      });
      for await (const chunk of host.chunks(opened.file, 0, opened.size, 8 << 20)) if (chunk.length > 8 << 20) throw new Error('too long');
      access.close();
    }
    return found;
  });
  assert.equal(found.wholes, 0);
  assert.ok(Math.max(...found.bytes) < 64 << 20, `${found.bytes} bytes of memory for ${100 << 20}`);
});

check('a page may have the package, and so its worker, from another origin', async (page) => {
  const told = await page.evaluate(async (origin) => {
    const { Doppler: other } = await import(`${origin}/doppler.mjs`);
    return other.load('/story/none.gguf').catch(({ kind, message }) => `${kind}: ${message}`);
  }, address.replace('127.0.0.1', 'localhost'));
  assert.match(told, /^io: There is no file/); // which the worker found out
});

check('a full storage loses the models used longest ago, but none in use; a piece that cannot be written stops no load', async (page) => {
  const found = await page.evaluate(async () => {
    const { openSource } = await import('/sources.mjs');
    /** @type {string[]} */ const warnings = [];
    let size = 0;
    const read = async (name) => {
      const source = new URL(`/${name}/model.safetensors`, location.href).href;
      const access = await openSource(source, { warn: (message) => warnings.push(message) });
      const file = await access.open(access.files.mainFile);
      size = (await file.read(0, file.size)).length;
      await access.finished();
      await new Promise((resolve) => setTimeout(resolve, 5)); // another time of use
      return access;
    };
    const names = async () => (await Doppler.cache.list()).map(({ id }) => new URL(id).pathname[1]).sort().join('');
    const used = await read('a');
    for (const name of 'bc') (await read(name)).close();
    const before = await names();
    const { createWritable } = FileSystemFileHandle.prototype;
    let quota = 3.5 * size; // no room for a fourth
    FileSystemFileHandle.prototype.createWritable = async function (...given) {
      const usage = (await Doppler.cache.list()).reduce((sum, { cachedBytes }) => sum + cachedBytes, 0);
      const isPiece = /^\d+$/.test(this.name);
      if (isPiece && usage + size > quota) throw new DOMException('The disk is full.', 'QuotaExceededError');
      return createWritable.apply(this, given);
    };
    navigator.storage.estimate = async () => ({ quota: 1, usage: 0 }); // which is nobody's promise
    (await read('d')).close();
    const after = await names();
    quota = 0;
    (await read('b')).close();
    used.close();
    await Doppler.cache.clear();
    (await read('a')).close();
    return { before, after, warnings, cached: (await Doppler.cache.list())[0].cachedBytes, persisted: await Doppler.cache.persist() };
  });
  assert.deepEqual([found.before, found.after], ['abc', 'acd']);
  // One model has left; the other is in use.
  assert.match(found.warnings[0], /^The model is not kept in the browser's storage: The disk is full\. \d+ MB of models are stored; the largest: .*\/a\/model\.safetensors \(\d+ MB\)\./);
  assert.equal(found.warnings[1], "The model is not kept in the browser's storage: The disk is full.");
  assert.equal(found.cached, 0);
  assert.equal(typeof found.persisted, 'boolean');
});

if (DOPPLER_FIREFOX) {
  check('the self test of the lane fast asks models of the formats in use, and passes', async (page) => {
    const { lane, selfTest } = await page.evaluate(async (source) => {
      const doppler = await Doppler.load(source, { ctx: 64, chunk: 16, selfTest: true });
      await doppler.unload();
      return doppler.info;
    }, kStory);
    assert.deepEqual([lane, selfTest.formats.map(({ format }) => format)], ['fast', ['q4_k', 'q6_k']]);
    assert.ok(selfTest.passed, selfTest.text);
  });

  check('a token does not wait until Firefox looks, every 100 ms, whether the GPU is done', async (page) => {
    const speed = await page.evaluate(async () => {
      // The treatment of a GPU; on a CPU such looks are not worth their price (gpu_host.mjs).
      const gpu = { wgslLanguageFeatures: navigator.gpu.wgslLanguageFeatures, async requestAdapter(options) {
        const adapter = await navigator.gpu.requestAdapter(options);
        return { info: { isFallbackAdapter: false }, features: adapter.features, limits: adapter.limits,
          requestDevice: (wanted) => adapter.requestDevice(wanted) };
      } };
      const doppler = await Doppler.load(new URL('/a/', location.href), { lane: 'exact', ctx: 64, chunk: 16, selfTest: false, device: { gpu } });
      const request = { prompt: [1, 2, 3], max_tokens: 24, temperature: 0, ignore_eos: true, batch: 1 };
      await doppler.complete(request); // the kernels are compiled
      const { timings } = await doppler.complete(request);
      await doppler.unload();
      return timings.decode_tokens_per_second;
    });
    console.log(`${speed.toFixed(1)} tok/s, a token at a time`);
    assert.ok(speed > 15, `${speed} tok/s`); // without looks 10; with them 190 on two idle cores
  });

  check('of a kernel that does not compile the reason is told, which Firefox keeps in the messages of the compiler', async (page) => {
    const told = await page.evaluate(async () => {
      const { createShaderModule } = GPUDevice.prototype;
      GPUDevice.prototype.createShaderModule = function ({ label, code }) {
        return createShaderModule.call(this, { label, code: code.replace('fn main', 'fn main_(x: f17) {} fn main') });
      };
      return Doppler.load(new URL('/a/', location.href), { ctx: 64, workerUrl: false }).then(() => 'loaded', ({ kind, message }) => `${kind}: ${message}`);
    });
    assert.match(told, /^device: Pipeline "[^"]+" does not compile in this browser: .*f17/s);
  });
}

check('grammars come from their package in a worker, and again behind a schema that ends its program', async (page) => {
  const found = await page.evaluate(async (address) => {
    const script = `import { browser } from '${location.origin}/browser.mjs';
      import { Grammars } from '${location.origin}/grammars.mjs';
      const grammars = new Grammars((opens) => browser.loadGrammars('${location.origin}${address}', opens));
      const tokens = ['', '{', '}', '1'];
      const bytes = new Uint8Array(tokens.flatMap((text) => [text.length, 0, ...new TextEncoder().encode(text)]));
      const core = { exports: { memory: new WebAssembly.Memory({ initial: 1 }) } };
      const { dp_grammar_allowed: allowed, dp_grammar_accept: accept } = grammars.imports(core);
      const begin = (schema) => grammars.begin({ kind: 'json-schema', text: JSON.stringify(schema), source: 'it' }, [], async () => ({ bytes, ends: [0] }));
      const masks = async () => {
        const number = await begin({ type: 'object' });
        const mask = () => (allowed(number, 0, 1), new Uint32Array(core.exports.memory.buffer)[0]);
        return [mask(), accept(number, 1), accept(number, 3), accept(number, 2), mask(), accept(number, 0)];
      };
      const first = await masks();
      const wrong = await begin({ type: 7 }).catch(({ kind }) => kind);
      postMessage([first, wrong, await masks()]);`;
    const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })), { type: 'module' });
    return new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
    });
  }, '/node_modules/@mlc-ai/web-xgrammar/lib/index.js');
  const masks = [0b10, 1, 0, 1, 0b1, 2]; // "{", then neither a number nor more than "}", then the end
  assert.deepEqual(found, [masks, 'invalid-input', masks]);
});
