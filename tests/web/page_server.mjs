// A web server for the tests in a browser: the deployed package, models by ranges, and a log of the requests. A test
// may hold answers back or cut the network off.
import { createServer } from 'node:http';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';

/** Flags of headless Chromium: WebGPU on its software adapter, and no requests to the network. */
export const kChromiumFlags = ['--no-sandbox', '--enable-unsafe-webgpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const kTypes = { '.mjs': 'text/javascript', '.js': 'text/javascript', '.html': 'text/html', '.wasm': 'application/wasm' };
const kPage = '<!doctype html><script type="module">import { Doppler } from "/doppler.mjs"; globalThis.Doppler = Doppler;</script>';
const kZeroBytes = 100 << 20; // of files in /zeros/, which lie nowhere
// A worker whose device the page can destroy, and which it can end.
const kFragileWorker = `import '/worker.mjs';
new BroadcastChannel('ending').onmessage = () => self.close();
const { requestDevice } = GPUAdapter.prototype;
GPUAdapter.prototype.requestDevice = async function (wanted) {
  const device = await requestDevice.call(this, wanted);
  new BroadcastChannel('fragile').onmessage = () => device.destroy();
  return device;
};`;

export class PageServer {
  /** Ranges of model files that were answered, "path first-last". @type {string[]} */ ranges = [];
  /** The modules that were asked for. @type {string[]} */ modules = [];
  /** Called before a range is answered; it may wait. @type {(path: string, first: number) => Promise<void>} */
  gate = async () => {};
  isCutOff = false; // no model is reached

  /**
   * @param {{package: string, wasm: string, models: Record<string, string>}} roots models: URL folder -> folder on disk
   */
  constructor(roots) {
    this.roots = roots;
    this.server = createServer((request, response) => void this.#answer(request, response));
  }

  /** @returns {Promise<string>} its address */
  async start() {
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', () => resolve(undefined)));
    return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (this.server.address()).port}`;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #answer(request, response) {
    const { pathname } = new URL(request.url, 'http://localhost');
    if (pathname === '/favicon.ico') return response.writeHead(204).end();
    if (pathname === '/') return response.writeHead(200, { 'Content-Type': 'text/html' }).end(kPage);
    if (pathname === '/fragile_worker.mjs') {
      return response.writeHead(200, { 'Content-Type': 'text/javascript' }).end(kFragileWorker);
    }
    const [, top, ...rest] = pathname.split('/');
    if (top === 'zeros') return this.#answerZeros(request, response, pathname);
    if (top === 'pages') return response.writeHead(206, { 'Content-Type': 'text/html', 'Content-Range': 'bytes 0-0/1000' }).end('<');
    const model = this.roots.models[top];
    if (model && this.isCutOff) return request.socket.destroy();
    const isModule = /^\/doppler_core\w*\.wasm$/.test(pathname);
    if (isModule) this.modules.push(pathname);
    const path = model ? join(model, ...rest) : join(isModule ? dirname(this.roots.wasm) : this.roots.package, pathname);
    if (!existsSync(path)) return response.writeHead(404).end();
    const bytes = readFileSync(path);
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    if (!from) {
      const type = kTypes[extname(path)] ?? 'application/octet-stream';
      return response.writeHead(200, { 'Content-Type': type, 'Access-Control-Allow-Origin': '*' }).end(bytes);
    }
    const [first, last] = [Number(from), Math.min(Number(to), bytes.length - 1)];
    await this.gate(pathname, first);
    if (request.socket.destroyed) return;
    if (last > 0) this.ranges.push(`${pathname} ${first}-${last}`); // the probe asks for one byte
    response.writeHead(206, { 'Content-Range': `bytes ${first}-${last}/${bytes.length}`, ETag: '"1"' });
    response.end(bytes.subarray(first, last + 1));
  }

  #answerZeros(request, response, pathname) {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    if (Number(last) > 0) this.ranges.push(`${pathname} ${first}-${last}`);
    response.writeHead(206, { 'Content-Range': `bytes ${first}-${last}/${kZeroBytes}`, ETag: '"1"' });
    response.end(Buffer.alloc(Number(last) - Number(first) + 1));
  }
}
