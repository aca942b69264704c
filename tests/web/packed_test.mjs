// The result of `npm pack`, used as others will: from a script tag without a build tool, built by Vite, built by
// webpack. Each is opened in headless Chromium and completes one prompt. By ctest:
//   GOLDEN_DIR       the unpacked tests/data/families_llama: its smallest model, and the tokens to expect
//   DOPPLER_WASM     the module, DOPPLER_CHROMIUM the browser
// Exit status 77: there is no WebGPU adapter.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from '../../web/node_modules/playwright-core/index.mjs';
import { build as viteBuild } from '../../web/node_modules/vite/dist/node/index.js';
import webpack from '../../web/node_modules/webpack/lib/index.js';
import { kChromiumFlags, PageServer } from './page_server.mjs';
import { readIntegers } from './references.mjs';

const kNoDevice = 77;
const kTokens = 3;
const { GOLDEN_DIR = '', DOPPLER_WASM = '', DOPPLER_CHROMIUM } = process.env;
const model = join(GOLDEN_DIR, 'llama');
const references = join(model, 'refs.safetensors');
const wanted = readIntegers(references, 'greedy_tokens').slice(0, kTokens);

const folder = mkdtempSync(join(tmpdir(), 'doppler-packed-'));
const app = join(folder, 'app');

/** The published package, in the app's node_modules. @returns {string[]} its files */
function installPackage() {
  const sources = join(folder, 'package');
  const isSource = (path) => !/\/(node_modules|dist)$/.test(path);
  cpSync(fileURLToPath(new URL('../../web', import.meta.url)), sources, { recursive: true, filter: isSource });
  copyFileSync(DOPPLER_WASM, join(sources, 'doppler_core.wasm'));
  const [{ filename, size, files }] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { cwd: sources, encoding: 'utf8' }));
  const installed = join(app, 'node_modules/doppler');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['xzf', join(folder, filename), '-C', installed, '--strip-components=1']);
  console.log(`${filename}: ${size} bytes, ${files.length} files`);
  return files.map(({ path }) => path);
}

const packed = installPackage();
const script = (from) => `import { Doppler } from '${from}';
globalThis.answer = (async () => {
  const doppler = await Doppler.load(new URL('/model/', location.href).href, { lane: 'portable', ctx: 64, chunk: 16, cache: false });
  const { tokens } = await doppler.complete({ prompt: ${JSON.stringify(readIntegers(references, 'prompt_a'))}, temperature: 0,
    max_tokens: ${kTokens}, ignore_eos: true });
  return tokens;
})();`;
writeFileSync(join(app, 'main.js'), script('doppler'));
writeFileSync(join(app, 'plain.html'), `<!doctype html><script type="module">${script('/app/node_modules/doppler/doppler.mjs')}</script>`);
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

check('the package has the core, its types, the adapters and the page, and no tests', async () => {
  for (const path of ['doppler.mjs', 'doppler.d.ts', 'worker.mjs', 'doppler_core.wasm', 'adapters/ai-sdk.mjs', 'page/index.html', 'page/main.mjs']) {
    assert.ok(packed.includes(path), path);
  }
  assert.deepEqual(packed.filter((path) => /(^|\/)(test|node_modules|dist)\//.test(path)), []);
});

check('a plain script tag', () => completes('/app/plain.html'));

check('Vite', async () => {
  await viteBuild({ root: app, base: './', logLevel: 'error', build: { outDir: join(folder, 'vite'), emptyOutDir: true } });
  await completes('/vite/index.html');
});

check('webpack', async () => {
  const out = join(folder, 'webpack');
  await new Promise((resolve, reject) => webpack({ mode: 'production', context: app, entry: './main.js', output: { path: out, filename: 'main.js' } },
    (error, stats) => (error || stats?.hasErrors() ? reject(error ?? new Error(stats?.toString('errors-only'))) : resolve(undefined))));
  writeFileSync(join(out, 'index.html'), '<!doctype html><script src="main.js"></script>');
  // The module and the worker are files of their own.
  assert.ok(readdirSync(out).some((name) => name.endsWith('.wasm') && statSync(join(out, name)).size > 1e6), readdirSync(out).join(' '));
  await completes('/webpack/index.html');
});
