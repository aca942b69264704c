// Engines in headless Chromium: node browser.mjs PAGE [text] serves this folder and the model over HTTP, opens a page
// that imports PAGE (a module with load() and generate()), and passes the lines of protocol.mjs on to it. text: prompts
// are texts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openChromium, serveFiles } from './headless.mjs'; // web/surfaces/headless.mjs
import { serve } from './protocol.mjs';

// Threads in WebAssembly need shared memory, which needs these.
const kIsolated = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };
const kHome = fileURLToPath(new URL('.', import.meta.url));
const [, , page, kind] = process.argv;

const profile = mkdtempSync(join(tmpdir(), 'rivals-'));
process.on('exit', () => rmSync(profile, { recursive: true, force: true, maxRetries: 5 }));
/** @type {any} */ let browser;
/** @type {any} */ let tab;
await serve({
  texts: kind === 'text',
  load: async (/** @type {any} */ values) => {
    browser = await openChromium(profile, values);
    tab = await browser.newPage();
    tab.on('console', (/** @type {any} */ message) => process.stderr.write(`${message.text()}\n`));
    const { address } = await serveFiles({ '/model.gguf': values.model, '/': kHome }, kIsolated);
    await tab.goto(`${address}/`);
    const loaded = await tab.evaluate(async ([name, given]) => {
      globalThis.engine = await import(`/${name}`);
      return globalThis.engine.load(given);
    }, [page, values]);
    return { ...loaded, settings: { ...loaded.settings, browser: `Chromium ${browser.browser()?.version() ?? ''}` } };
  },
  generate: (/** @type {number[][] | string[]} */ prompts, /** @type {number} */ count) =>
    tab.evaluate(([given, tokens]) => globalThis.engine.generate(given, tokens), [prompts, count]),
  quit: () => browser?.close(),
});
