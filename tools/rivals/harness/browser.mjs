// Engines in headless Chromium: node browser.mjs PAGE [text] serves this folder and the model over HTTP, opens a page that
// imports PAGE (a module with load() and generate()), and passes the lines of protocol.mjs on to it. text: prompts are texts.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serve } from './protocol.mjs';

const kTypes = { '.mjs': 'text/javascript', '.js': 'text/javascript', '.wasm': 'application/wasm', '.json': 'application/json' };
// Threads in WebAssembly need shared memory, which needs these.
const kIsolated = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };
const kHome = fileURLToPath(new URL('.', import.meta.url));
const kPlaces = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const [, , page, kind] = process.argv;

/** @param {string} model */
function listen(model) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname === '/') {
      response.writeHead(200, { 'Content-Type': 'text/html', ...kIsolated }).end('<!doctype html><title>rivals</title>');
      return;
    }
    const path = pathname === '/model.gguf' ? model : join(kHome, normalize(decodeURIComponent(pathname)));
    if (!existsSync(path) || !statSync(path).isFile()) {
      response.writeHead(404).end();
      return;
    }
    const { size } = statSync(path);
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const first = range ? Number(range[1]) : 0;
    const last = range && range[2] !== '' ? Math.min(Number(range[2]), size - 1) : size - 1;
    const type = kTypes[/** @type {keyof typeof kTypes} */ (extname(path))] ?? 'application/octet-stream';
    response.writeHead(range ? 206 : 200, { 'Content-Type': type, 'Content-Length': last - first + 1, 'Accept-Ranges': 'bytes',
      ...kIsolated, ...(range && { 'Content-Range': `bytes ${first}-${last}/${size}` }) });
    if (request.method === 'HEAD') response.end();
    else createReadStream(path, { start: first, end: last }).pipe(response);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(/** @type {any} */ (server.address()).port)));
}

/** @type {any} */ let browser;
/** @type {any} */ let tab;
await serve({
  texts: kind === 'text',
  load: async (/** @type {any} */ values) => {
    const { chromium } = await import('playwright-core');
    const executablePath = values.chromium ?? kPlaces.find((path) => existsSync(path));
    if (!executablePath) throw new Error(`Chromium is in none of ${kPlaces.join(', ')}; name it with the option chromium.`);
    const args = ['--headless=new', '--no-sandbox', '--enable-unsafe-webgpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync', ...(values.flags ?? '').split(' ').filter(Boolean)];
    browser = await chromium.launch({ executablePath, args });
    tab = await browser.newPage();
    tab.on('console', (/** @type {any} */ message) => process.stderr.write(`${message.text()}\n`));
    await tab.goto(`http://127.0.0.1:${await listen(values.model)}/`);
    const loaded = await tab.evaluate(async ([name, given]) => {
      globalThis.engine = await import(`/${name}`);
      return globalThis.engine.load(given);
    }, [page, values]);
    return { ...loaded, settings: { ...loaded.settings, browser: `Chromium ${browser.version()}` } };
  },
  generate: (/** @type {number[][] | string[]} */ prompts, /** @type {number} */ count) =>
    tab.evaluate(([given, tokens]) => globalThis.engine.generate(given, tokens), [prompts, count]),
  quit: () => browser?.close(),
});
