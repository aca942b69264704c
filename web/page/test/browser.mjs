// Helpers of the tests in Chromium: a folder over HTTP with ranges, and a headless browser on it.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { chromium } from 'playwright-core';

const kTypes = { '.html': 'text/html', '.mjs': 'text/javascript', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.wasm': 'application/wasm', '.json': 'application/json', '.webmanifest': 'application/manifest+json' };

/**
 * Serves `folder`; `instead` gives other files for some paths.
 * @param {string} folder
 * @param {Record<string, string>} [instead]
 */
export async function serve(folder, instead = {}) {
  const state = { isDown: false };
  const server = createServer((request, response) => {
    if (state.isDown) return void request.socket.destroy();
    const { pathname } = new URL(request.url, 'http://localhost');
    const path = instead[pathname] ?? join(folder, normalize(pathname === '/' ? '/index.html' : decodeURIComponent(pathname)));
    if (!existsSync(path) || !statSync(path).isFile()) {
      response.writeHead(404).end();
      return;
    }
    // `doppler web` sends compressed copies too.
    const takesGzip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
    if (!request.headers.range && takesGzip && existsSync(`${path}.gz`)) {
      response.writeHead(200, { 'Content-Type': kTypes[extname(path)] ?? 'application/octet-stream', 'Content-Encoding': 'gzip' });
      createReadStream(`${path}.gz`).pipe(response);
      return;
    }
    const { size } = statSync(path);
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const first = range ? Number(range[1]) : 0;
    const last = range && range[2] !== '' ? Math.min(Number(range[2]), size - 1) : size - 1;
    const head = { 'Content-Type': kTypes[extname(path)] ?? 'application/octet-stream', 'Content-Length': last - first + 1, 'Accept-Ranges': 'bytes', 'ETag': `"${size}"` };
    if (range) response.writeHead(206, { ...head, 'Content-Range': `bytes ${first}-${last}/${size}` });
    else response.writeHead(200, head);
    if (request.method === 'HEAD' || size === 0) response.end();
    else createReadStream(path, { start: first, end: last }).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  return Object.assign(state, { address: `http://127.0.0.1:${/** @type {any} */ (server.address()).port}/`, close: () => server.closeAllConnections() ?? server.close() });
}

/** Where Debian and Ubuntu put Chromium; undefined: it is not installed. */
export function chromiumPath() {
  return ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path));
}

/** Chromium with WebGPU on the CPU (SwiftShader), kept off the network. */
export function launch() {
  return chromium.launch({
    executablePath: chromiumPath(),
    args: ['--headless=new', '--no-sandbox', '--enable-unsafe-webgpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
}
