// References of the golden cases, and a server of files by ranges: what node_test.mjs compares with and reads from.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';

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

const kPngStart = 8;
const kChunkFrame = 12; // length, name, checksum

/** An 8-bit RGB picture without interlacing, as Pillow writes it. @param {Buffer} file */
export function readPng(file) {
  const width = file.readUInt32BE(16), height = file.readUInt32BE(20), rowBytes = 3 * width;
  if (file[24] !== 8 || file[25] !== 2 || file[28] !== 0) throw new Error('The picture is no plain 8-bit RGB.');
  const parts = [];
  for (let at = kPngStart; at < file.length;) {
    const bytes = file.readUInt32BE(at);
    if (file.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(file.subarray(at + 8, at + 8 + bytes));
    at += kChunkFrame + bytes;
  }
  const rows = inflateSync(Buffer.concat(parts));
  const data = new Uint8Array(height * rowBytes);
  for (let y = 0, from = 0; y < height; y++) {
    const filter = rows[from++];
    for (let x = 0; x < rowBytes; x++, from++) {
      const at = y * rowBytes + x;
      const left = x >= 3 ? data[at - 3] : 0, up = y > 0 ? data[at - rowBytes] : 0, corner = x >= 3 && y > 0 ? data[at - rowBytes - 3] : 0;
      const distance = (value) => Math.abs(left + up - corner - value);
      const nearest = distance(left) <= distance(up) && distance(left) <= distance(corner) ? left : distance(up) <= distance(corner) ? up : corner;
      data[at] = rows[from] + [0, left, up, (left + up) >> 1, nearest][filter];
    }
  }
  return { width, height, data };
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
