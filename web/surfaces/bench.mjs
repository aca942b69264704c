// `doppler bench --surface browser` and `node` start this program (src/cli/bench_surface.cpp): node bench.mjs REQUEST,
// a JSON object { surface, model, load, workload, chromium, flags }. Lines of JSON come back: {load: {mode, seconds,
// phases}} of a load with empty caches and of the next one, {model} once, {row} as soon as a test is measured, or
// {error}.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kLaterName } from '../core_module.mjs';
import { runBench } from '../page/bench.mjs';
import { wasmPath } from '../wasm_node.mjs';
import { openChromium, serveFiles } from './headless.mjs';
import { describe, timedLoad } from './timed.mjs';

const kWeb = fileURLToPath(new URL('..', import.meta.url));
const kModes = ['cold', 'warm'];
const kStopped = 130; // the exit status of what a signal ended

/** @param {any} line */
const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** @param {any} request @param {string} scratch an empty folder */
async function inNode({ model: path, load: options, workload }, scratch) {
  // Where drivers keep compiled kernels: Mesa's, and NVIDIA's.
  process.env.MESA_SHADER_CACHE_DIR = process.env.__GL_SHADER_DISK_CACHE_PATH = scratch;
  const { Doppler } = await import('../node.mjs');
  /** @type {any} */ let model = null;
  for (const mode of kModes) {
    await model?.unload();
    const loaded = await timedLoad(Doppler, path, options);
    model = loaded.model;
    tell({ load: { mode, ...loaded.load } });
  }
  tell({ model: { ...(await describe(Doppler, model)), driver: `Node ${process.versions.node}` } });
  await runBench(model, workload, new AbortController().signal, (row) => tell({ row }));
  await model.unload();
}

/** @param {any} request @param {string} scratch an empty folder */
async function inBrowser({ model: path, load: options, workload, ...given }, scratch) {
  const isFolder = statSync(path).isDirectory();
  const name = isFolder ? 'model/' : `model/${basename(path)}`;
  const files = await serveFiles({ '/doppler_core.wasm': wasmPath(), [`/${kLaterName}`]: join(dirname(wasmPath()), kLaterName),
    [`/${name}`]: path, '/': kWeb });
  process.env.MESA_SHADER_CACHE_DIR = process.env.__GL_SHADER_DISK_CACHE_PATH = join(scratch, 'driver');
  /** @type {any} */ let browser = null;
  /** @type {any} */ let page = null;
  try {
    for (const mode of kModes) {
      await browser?.close(); // the second load is that of another visit
      browser = await openChromium(join(scratch, 'profile'), given);
      page = await browser.newPage();
      page.on('console', (message) => message.type() === 'error' && process.stderr.write(`page: ${message.text()}\n`));
      await page.goto(`${files.address}/`);
      const load = await page.evaluate(async ([source, wanted]) => {
        const [{ Doppler }, { timedLoad: timed }] = await Promise.all(['/doppler.mjs', '/surfaces/timed.mjs'].map((file) => import(file)));
        const loaded = await timed(Doppler, new URL(source, location.href), wanted);
        Object.assign(globalThis, { Doppler, model: loaded.model });
        return loaded.load;
      }, [name, options]);
      tell({ load: { mode, ...load } });
    }
    const facts = await page.evaluate(async () => (await import(String('/surfaces/timed.mjs'))).describe(globalThis.Doppler, globalThis.model));
    tell({ model: { ...facts, driver: `Chromium ${browser.browser()?.version() ?? ''}`.trim() } });
    await page.exposeFunction('tellRow', (row) => tell({ row }));
    await page.evaluate(async (tests) => {
      const { runBench: run } = await import(String('/page/bench.mjs'));
      await run(globalThis.model, tests, new AbortController().signal, globalThis.tellRow);
    }, workload);
  } finally {
    await browser?.close();
    files.close();
  }
}

const scratch = mkdtempSync(join(tmpdir(), 'doppler-bench-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(kStopped));
process.stdout.on('error', () => process.exit(kStopped)); // the reader is gone
let code = 0;
try {
  const request = JSON.parse(process.argv[2]);
  await (request.surface === 'node' ? inNode : inBrowser)(request, scratch);
} catch (error) {
  tell({ error: String(/** @type {any} */ (error)?.message ?? error) });
  code = 1;
}
process.exit(code); // a model that was not unloaded keeps Node
