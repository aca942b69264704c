// Tools to measure a page: files and models over HTTP on this machine, and headless Chromium with WebGPU. In Node.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

const kTypes = { '.mjs': 'text/javascript', '.js': 'text/javascript', '.wasm': 'application/wasm', '.json': 'application/json' };
const kChromiumPlaces = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
// WebGPU also on the software adapter, and nothing from the network.
const kFlags = ['--no-sandbox', '--enable-unsafe-webgpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

/**
 * An empty page at "/", and files by ranges.
 * @param {Record<string, string>} roots the beginning of a path in the address -> a file or folder on disk; the first
 * that fits counts
 * @param {Record<string, string>} [headers] of every answer
 * @returns {Promise<{address: string, close: () => void}>}
 */
export async function serveFiles(roots, headers = {}) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname === '/') {
      response.writeHead(200, { 'Content-Type': 'text/html', ...headers }).end('<!doctype html><title>measured</title><link rel="icon" href="data:,">');
      return;
    }
    const name = normalize(decodeURIComponent(pathname));
    const [begin, root] = Object.entries(roots).find(([start]) => name.startsWith(start)) ?? [];
    const path = root && join(root, name.slice(/** @type {string} */ (begin).length));
    if (!path || !existsSync(path) || !statSync(path).isFile()) {
      response.writeHead(404).end();
      return;
    }
    const { size } = statSync(path);
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const first = range ? Number(range[1]) : 0;
    const last = range && range[2] !== '' ? Math.min(Number(range[2]), size - 1) : size - 1;
    const type = kTypes[/** @type {keyof typeof kTypes} */ (extname(path))] ?? 'application/octet-stream';
    response.writeHead(range ? 206 : 200, { 'Content-Type': type, 'Content-Length': last - first + 1, 'Accept-Ranges': 'bytes',
      ETag: `"${size}"`, ...headers, ...(range && { 'Content-Range': `bytes ${first}-${last}/${size}` }) });
    if (request.method === 'HEAD') response.end();
    else createReadStream(path, { start: first, end: last }).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { address: `http://127.0.0.1:${/** @type {any} */ (server.address()).port}`, close };
}

/**
 * Chromium on a profile of its own, where its caches and the pages' storage are kept.
 * @param {string} profile a folder @param {{chromium?: string, flags?: string}} [given] the program; further flags,
 * blanks between them
 * @returns {Promise<any>} playwright-core's BrowserContext
 */
export async function openChromium(profile, { chromium: named, flags = '' } = {}) {
  let playwright;
  try {
    playwright = await import('playwright-core');
  } catch {
    throw new Error('The npm package playwright-core is missing. Run: tools/setup wasm');
  }
  const executablePath = named || kChromiumPlaces.find((path) => existsSync(path));
  if (!executablePath) throw new Error(`Chromium is in none of ${kChromiumPlaces.join(', ')}. Run: tools/setup web, or name it.`);
  if (!existsSync(executablePath)) throw new Error(`There is no Chromium at ${executablePath}.`);
  const args = [...kFlags, ...flags.split(' ').filter(Boolean)];
  return playwright.chromium.launchPersistentContext(profile, { executablePath, args });
}
