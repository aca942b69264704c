// References of the golden cases, and a server of files by ranges: what node_test.mjs compares with and reads from.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

/** Folders below `root` that hold a refs.safetensors. @param {string} root @returns {string[]} */
export function caseFolders(root) {
  const below = readdirSync(root).map((name) => join(root, name)).filter((path) => statSync(path).isDirectory());
  const here = existsSync(join(root, 'refs.safetensors')) ? [root] : [];
  return [...here, ...below.flatMap(caseFolders)];
}

/** An I32 tensor of a safetensors file. @param {string} path @param {string} name @returns {number[]} */
export function readIntegers(path, name) {
  return read(path, name, 'I32', (data, at) => data.readInt32LE(at));
}

/** An F32 tensor of a safetensors file. @param {string} path @param {string} name @returns {number[]} */
export function readFloats(path, name) {
  return read(path, name, 'F32', (data, at) => data.readFloatLE(at));
}

/**
 * @param {string} path
 * @param {string} name
 * @param {string} type
 * @param {(data: Buffer, at: number) => number} number
 */
function read(path, name, type, number) {
  const file = readFileSync(path);
  const headerBytes = Number(file.readBigUInt64LE(0));
  const { dtype, data_offsets: [begin, end] } = JSON.parse(file.toString('utf8', 8, 8 + headerBytes))[name];
  if (dtype !== type) throw new Error(`${name} of ${path} is ${dtype}, not ${type}.`);
  const data = file.subarray(8 + headerBytes + begin, 8 + headerBytes + end);
  return Array.from({ length: data.length / 4 }, (_, i) => number(data, 4 * i));
}

/**
 * Serves `folder` at the address it answers with, also below /OWNER/NAME/resolve/COMMIT/ as a hub does.
 * @param {string} folder @param {Record<string, string>} [texts] by path: what is no file
 */
export async function serveFolder(folder, texts = {}) {
  const server = createServer((request, response) => {
    const asked = decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname);
    if (asked in texts) return void response.writeHead(200).end(texts[asked]);
    const path = join(folder, asked.replace(/^\/[^/]+\/[^/]+\/resolve\/[^/]+/, ''));
    if (!existsSync(path) || !statSync(path).isFile()) return void response.writeHead(404).end();
    const bytes = readFileSync(path);
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    if (!first) return void response.writeHead(200).end(bytes);
    const range = `bytes ${first}-${last}/${bytes.length}`;
    response.writeHead(206, { 'Content-Range': range }).end(bytes.subarray(Number(first), Number(last) + 1));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { address: `http://127.0.0.1:${port}/`, close: () => server.close() };
}
