// The package that `npm pack` makes, used as others will: from a script tag without a build tool, built by Vite,
// webpack, esbuild and Rollup (none of which may warn), in a service worker and in a browser extension. Each runs in
// headless Chromium and completes one prompt. By ctest:
//   GOLDEN_DIR       the unpacked tests/data/families_llama: its smallest model, and the tokens to expect
//   DOPPLER_WASM     the module, DOPPLER_CHROMIUM the browser
// Exit status 77: there is no WebGPU adapter.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from '../../web/node_modules/playwright-core/index.mjs';
import { build as viteBuild } from '../../web/node_modules/vite/dist/node/index.js';
import nodeResolve from '../../web/node_modules/@rollup/plugin-node-resolve/dist/es/index.js';
import { build as esbuild } from '../../web/node_modules/esbuild/lib/main.js';
import { rollup } from '../../web/node_modules/rollup/dist/es/rollup.js';
import webpack from '../../web/node_modules/webpack/lib/index.js';
import { kChromiumFlags, PageServer } from './page_server.mjs';
import { readIntegers } from './references.mjs';

const kNoDevice = 77;
const kTokens = 3;
const kModules = ['doppler_core.wasm', 'doppler_core_later.wasm'];
const { GOLDEN_DIR = '', DOPPLER_WASM = '', DOPPLER_CHROMIUM } = process.env;
const model = join(GOLDEN_DIR, 'llama');
const references = join(model, 'refs.safetensors');
const wanted = readIntegers(references, 'greedy_tokens').slice(0, kTokens);

const folder = mkdtempSync(join(tmpdir(), 'doppler-packed-'));
const app = join(folder, 'app');

const installed = join(app, 'node_modules/doppler-webgpu');

/** The package as it is published, in the app's node_modules. @returns {string[]} its files */
function installPackage() {
  const sources = join(folder, 'package');
  const isSource = (path) => !/\/(node_modules|dist)$/.test(path);
  cpSync(fileURLToPath(new URL('../../web', import.meta.url)), sources, { recursive: true, filter: isSource });
  for (const name of kModules) copyFileSync(join(dirname(DOPPLER_WASM), name), join(sources, name));
  const [{ filename, size, files }] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { cwd: sources, encoding: 'utf8' }));
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['xzf', join(folder, filename), '-C', installed, '--strip-components=1']);
  console.log(`${filename}: ${size} bytes, ${files.length} files`);
  return files.map(({ path }) => path);
}

const packed = installPackage();
const script = (from, options = '') => `import { Doppler } from '${from}';
globalThis.answer = (async () => {
  const doppler = await Doppler.load(new URL('/model/', location.href).href, { lane: 'portable', ctx: 64, chunk: 16, cache: false${options} });
  const { tokens } = await doppler.complete({ prompt: ${JSON.stringify(readIntegers(references, 'prompt_a'))}, temperature: 0,
    max_tokens: ${kTokens}, ignore_eos: true });
  const session = doppler.newSession();
  await session.complete({ prompt: [1], max_tokens: 1 });
  await session.save(); // by the second module
  return tokens;
})();`;
writeFileSync(join(app, 'main.js'), script('doppler-webgpu'));
writeFileSync(join(app, 'plain.html'), `<!doctype html><script type="module">${script('/app/node_modules/doppler-webgpu/doppler.mjs')}</script>`);
writeFileSync(join(app, 'index.html'), '<!doctype html><script type="module" src="./main.js"></script>');

const server = new PageServer({ package: folder, wasm: '', models: { model } });
const address = await server.start();
const browser = await chromium.launch({ executablePath: DOPPLER_CHROMIUM, args: kChromiumFlags });
const counts = { passed: 0, failed: 0, skipped: 0 };
after(async () => {
  await browser.close();
  server.stop();
  rmSync(folder, { recursive: true });
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
});

/** @param {string} name @param {() => Promise<void>} body */
function check(name, body) {
  test(name, async () => {
    counts.failed++;
    await body();
    counts.failed--;
    counts.passed++;
  });
}

/** @param {string} path */
async function completes(path) {
  const page = await browser.newPage();
  page.on('console', (message) => message.type() === 'error' && console.log(`page: ${message.text()}`));
  page.on('pageerror', (error) => console.log(`page: ${error.message}`));
  await page.goto(`${address}${path}`, { waitUntil: 'load' }); // module scripts have run then
  assert.deepEqual(await page.evaluate(() => globalThis.answer), wanted);
  await page.close();
}

{
  const page = await browser.newPage();
  await page.goto(address);
  const hasGpu = await page.evaluate(async () => Boolean(await navigator.gpu?.requestAdapter()));
  await page.close();
  if (!hasGpu) {
    console.log('skipped: Chromium has no WebGPU adapter.');
    process.exit(kNoDevice);
  }
}

check('the package has the core, its licence, its types, the adapters and the page, and no tests', async () => {
  for (const path of ['doppler.mjs', 'doppler.d.ts', 'worker.mjs', ...kModules, 'adapters/ai-sdk.mjs', 'page/index.html', 'page/main.mjs', 'LICENSE']) {
    assert.ok(packed.includes(path), path);
  }
  assert.deepEqual(packed.filter((path) => /(^|\/)(test|node_modules|dist)\//.test(path)), []);
});

check('a plain script tag', () => completes('/app/plain.html'));

check('Vite, without a warning', async () => {
  const warnings = [];
  const say = { info() {}, warn: (text) => warnings.push(text), warnOnce: (text) => warnings.push(text), error: (text) => warnings.push(text), clearScreen() {},
    hasErrorLogged: () => false, hasWarned: false };
  await viteBuild({ root: app, base: './', customLogger: say, build: { outDir: join(folder, 'vite'), emptyOutDir: true } });
  assert.deepEqual(warnings, []);
  await completes('/vite/index.html');
});

check('webpack, without a warning', async () => {
  const out = join(folder, 'webpack');
  const stats = await new Promise((resolve, reject) => webpack({ mode: 'production', context: app, entry: './main.js', output: { path: out, filename: 'main.js' },
    performance: { hints: false } }, (error, done) => (error || done?.hasErrors() ? reject(error ?? new Error(done?.toString('errors-only'))) : resolve(done))));
  assert.deepEqual(stats.toJson().warnings, []);
  writeFileSync(join(out, 'index.html'), '<!doctype html><script src="main.js"></script>');
  // The modules and the worker are files of their own.
  assert.equal(readdirSync(out).filter((name) => name.endsWith('.wasm')).length, kModules.length, readdirSync(out).join(' '));
  await completes('/webpack/index.html');
});

// These two know no worker by its text: it is an entry of its own, and the module is copied (docs/howto/browser.md).
const kByHand = ", workerUrl: 'worker.js', wasmUrl: 'doppler_core.wasm'";

/** @param {string} out */
function finishByHand(out) {
  for (const name of kModules) copyFileSync(join(installed, name), join(out, name));
  writeFileSync(join(out, 'index.html'), '<!doctype html><script type="module" src="by_hand.js"></script>');
}

check('esbuild, without a warning', async () => {
  writeFileSync(join(app, 'by_hand.js'), script('doppler-webgpu', kByHand));
  const out = join(folder, 'esbuild');
  const { warnings } = await esbuild({ absWorkingDir: app, entryPoints: { by_hand: 'by_hand.js', worker: 'doppler-webgpu/worker.mjs' }, bundle: true, format: 'esm',
    outdir: out, logLevel: 'silent' });
  assert.deepEqual(warnings, []);
  finishByHand(out);
  await completes('/esbuild/index.html');
});

check('Rollup, without a warning', async () => {
  const out = join(folder, 'rollup');
  const warnings = [];
  const bundle = await rollup({ input: { by_hand: join(app, 'by_hand.js'), worker: join(installed, 'worker.mjs') }, plugins: [nodeResolve({ browser: true })],
    onwarn: ({ message }) => warnings.push(message) });
  await bundle.write({ dir: out, format: 'es', entryFileNames: '[name].js' });
  await bundle.close();
  assert.deepEqual(warnings, []);
  finishByHand(out);
  await completes('/rollup/index.html');
});

check('a service worker', async () => {
  writeFileSync(join(app, 'service_worker.js'), `${script('./node_modules/doppler-webgpu/doppler.mjs').replace("'/model/'", `'${address}/model/'`)}
onmessage = (event) => event.waitUntil(answer.then((tokens) => event.source.postMessage(tokens), (error) => event.source.postMessage(String(error))));`);
  const page = await browser.newPage();
  await page.goto(address);
  const answer = await page.evaluate(async () => {
    await navigator.serviceWorker.register('/app/service_worker.js', { type: 'module' });
    const { active, waiting, installing } = await navigator.serviceWorker.getRegistration('/app/');
    const told = new Promise((resolve) => (navigator.serviceWorker.onmessage = ({ data }) => resolve(data)));
    (active ?? waiting ?? installing).postMessage('');
    return told;
  });
  assert.deepEqual(answer, wanted);
  await page.close();
});

check('the example of a browser extension', async () => {
  const extension = join(folder, 'extension');
  cpSync(fileURLToPath(new URL('../../examples/extension', import.meta.url)), extension, { recursive: true });
  cpSync(installed, join(extension, 'doppler'), { recursive: true });
  const context = await chromium.launchPersistentContext(join(folder, 'profile'), { executablePath: DOPPLER_CHROMIUM, headless: true,
    args: [...kChromiumFlags, `--disable-extensions-except=${extension}`, `--load-extension=${extension}`], ignoreDefaultArgs: ['--disable-extensions'] });
  const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent('serviceworker'));
  const answer = await worker.evaluate(async ([source, prompt, count]) => {
    const doppler = await globalThis.open(source, { lane: 'portable', ctx: 64, chunk: 16, cache: false });
    const { tokens } = await doppler.complete({ prompt, temperature: 0, max_tokens: count, ignore_eos: true });
    return tokens;
  }, [`${address}/model/`, readIntegers(references, 'prompt_a'), kTokens]);
  assert.deepEqual(answer, wanted);
  await context.close();
});
